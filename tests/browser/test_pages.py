"""Every page, for those who act and those who look, at three widths, in both themes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Visit
from tests.browser.furnishing import Furniture
from tests.browser.looking import (
    AGENTS,
    ANSWERS,
    CONTRAST,
    NAMES,
    PLACES,
    SHAPE,
    SILENT,
    TASKS,
    WOKEN,
    looked_at,
    path_of,
    unfold,
    wrong_with,
)
from tests.browser.serving import Site
from tests.browser.watching import THEMES, WIDTHS, Visitor
from tests.record.lives import OPERATOR
from truegreen.model import Role


def check(visitor: Visitor, pictures: Path) -> None:
    """Nothing is wrong with the page that somebody looks at, in any window or light."""
    page = visitor.page
    found = wrong_with(page, *NAMES)
    unfold(page)
    for at, width in enumerate(reversed(WIDTHS)):  # each look changes one thing
        shapes: list[list[str]] = []
        for theme in THEMES[:: -1 if at % 2 else 1]:
            checks = CONTRAST if shapes else (*SHAPE, *CONTRAST)
            wrong, shape = looked_at(visitor, width, theme, *checks)
            if wrong:
                page.screenshot(path=pictures / f"{width}-{theme}.png", full_page=True)
            found += [f"{width} {theme}: {each}" for each in wrong]
            shapes.append(shape)
        assert shapes[0] == shapes[1], f"{width}: the themes differ in more than colour"
    assert found == []
    assert visitor.trouble() == []


@pytest.mark.criterion("L05")
@pytest.mark.parametrize("name", [*PLACES, *ANSWERS, SILENT, *TASKS, *AGENTS])
def test_a_page_holds_at_every_width_and_in_both_themes(
    name: str, gallery: Site, visit: Visit, furniture: Furniture, tmp_path: Path
):
    visitor = visit(gallery)
    visitor.open(path_of(name, furniture))
    check(visitor, tmp_path)


@pytest.mark.parametrize("name", [*PLACES, *ANSWERS, SILENT, WOKEN])
def test_a_page_holds_for_somebody_who_may_only_look(
    name: str, gallery: Site, visit: Visit, furniture: Furniture, tmp_path: Path
):
    visitor = visit(gallery, Role.VIEWER)
    visitor.open(path_of(name, furniture))
    check(visitor, tmp_path)


STRANGE = {
    "login": ("/login", 200, "truegreen login"),
    "a used link": ("/login/tgl_used", 401, "truegreen login"),
    "no session": ("/tasks", 401, "truegreen login"),
}


def test_who_is_not_known_is_told_how_to_come_in(gallery: Site, visit: Visit, tmp_path: Path):
    visitor = visit(gallery, None)
    for path, status, words in STRANGE.values():
        answer = visitor.page.goto(path)
        assert answer
        assert answer.status == status
        assert words in visitor.page.inner_text("main")
        visitor.trouble()  # the browser says that it was refused
        check(visitor, tmp_path)


def test_a_page_that_is_not_there_leads_back(gallery: Site, visit: Visit, tmp_path: Path):
    visitor = visit(gallery)
    answer = visitor.page.goto("/tasks/tsk_nothing")
    assert answer
    assert answer.status == 404
    visitor.trouble()
    check(visitor, tmp_path)
    visitor.page.get_by_role("link", name="To the overview").click()
    visitor.page.wait_for_url(f"{gallery.url}/")
    assert visitor.trouble() == []


def test_a_frozen_store_says_so_on_every_page(site: Site, visit: Visit, tmp_path: Path):
    site.ledger.freeze(actor=OPERATOR, reason="a bad release")
    visitor = visit(site)
    visitor.open("/settings")
    assert "a bad release" in visitor.page.inner_text(".band")
    check(visitor, tmp_path)


def test_a_chosen_theme_stays(gallery: Site, visit: Visit):
    visitor = visit(gallery)
    page = visitor.open("/")
    ground = "getComputedStyle(document.body).backgroundColor"
    was = page.evaluate(ground)
    page.get_by_role("button", name="Dark theme").click()
    chosen = page.evaluate(ground)
    assert chosen != was
    visitor.open("/tasks")
    assert page.evaluate(ground) == chosen
    assert page.get_by_role("button", name="Dark theme").get_attribute("aria-pressed") == "true"
    assert visitor.trouble() == []


CORNER = """() => {
  const box = (node) => { const range = document.createRange(); range.selectNodeContents(node);
    return range.getBoundingClientRect() }
  const [first, ...heads] = document.querySelectorAll(".matrix thead tr > *")
  return [...first.children].map((words) => box(heads[0]).left - box(words).right)
}"""


def test_the_corner_of_the_matrix_keeps_clear_of_the_first_verdict(gallery: Site, visit: Visit):
    visitor = visit(gallery)
    page = visitor.open("/")
    for width in (1440, 820):  # where it is narrower, it has no heads
        visitor.look(width, "light")
        gaps = page.evaluate(CORNER)
        assert len(gaps) == 2
        assert min(gaps) > 8, (width, gaps)
