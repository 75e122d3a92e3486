"""Whatever agents call things: it is read and does nothing. No script, no request, no rubble."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Running, Visit, shared
from tests.browser.furnishing import TOML
from tests.browser.looking import SHAPE, unfold, wrong_with
from tests.browser.planting import Planted, plant
from tests.browser.serving import Site
from tests.browser.watching import Visitor
from tests.faces.web.hostile_web import RAN, TEXTS
from truegreen.model import Role
from truegreen.record.ledger import open_ledger

FIELDS = {
    *("title", "goal", "done when", "command", "approval", "agent name", "session", "definition"),
    *("inner", "exit message", "claim", "stated", "observed", "extra key", "extra", "source"),
    *("evidence", "diff", "argv", "short", "check", "judge", "finding", "verdict", "log"),
    *("checkpoint", "refusal", "live title", "message", "wake", "subject", "post error", "token"),
}
"""What some page shows; each was seen with hostile words in it."""
FORGED = Path(__file__).with_name("forged.js").read_text()

pytestmark = pytest.mark.timeout(180)  # each looks at many pages


class Garden(NamedTuple):
    """A server whose store is full of hostile words."""

    site: Site
    planted: Planted


@pytest.fixture(scope="module")
def garden(running_browser: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Garden]:
    folder = tmp_path_factory.mktemp("garden") / "place"
    folder.mkdir()
    (folder / "truegreen.toml").write_text(TOML)
    file = folder / "store.db"
    ledger = open_ledger(f"sqlite://{file}", anchor=f"{file}.anchor")
    planted = plant(ledger, folder / "state" / "truegreen")
    ledger.mark()
    ledger.close()
    with Site(folder) as site, shared(site, running_browser):
        yield Garden(site, planted)


def nothing_happened(visitor: Visitor) -> None:
    page = visitor.page
    assert page.evaluate(f"typeof window.{RAN}") == "undefined"
    assert page.evaluate(FORGED) == []
    assert visitor.trouble() == []


def in_order(visitor: Visitor, pictures: Path) -> None:
    """The layout holds, on a phone and on a desk."""
    unfold(visitor.page)
    for width in sorted((390, 1440), key=lambda each: each != visitor.width):  # as it is, first
        visitor.look(width, "light")
        wrong = wrong_with(visitor.page, *SHAPE)
        if wrong:
            visitor.page.screenshot(path=pictures / f"{width}.png")
        assert wrong == [], visitor.page.url


def seen_on(page: Page) -> str:
    """All words of a page, and those that are said of things on it."""
    words: str = page.evaluate(
        "() => document.title + document.body.textContent"
        " + [...document.querySelectorAll('[title], [aria-label]')]"
        ".map((each) => each.title + each.getAttribute('aria-label')).join()"
    )
    return words


def test_there_are_hundreds_of_hostile_texts():
    assert len(TEXTS) >= 200
    assert len(set(TEXTS)) == len(TEXTS)


@pytest.mark.criterion("L16")
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
def test_hostile_words_do_nothing_on_any_page(
    role: Role, garden: Garden, visit: Visit, tmp_path: Path
):
    """Every page is looked at as it is served, and again as the stream has redrawn it."""
    visitor = visit(garden.site, role)
    first, agent = garden.planted.tasks[0], garden.planted.agents[0]
    places = ("/", "/tasks", "/inbox", "/agents", "/audit", "/routines")
    for path in (*places, f"/tasks/{first}", f"/agents/{agent}"):
        page = visitor.open(path)
        page.locator("#live-head").wait_for(state="attached")
        nothing_happened(visitor)
        in_order(visitor, tmp_path)
    visitor.open("/settings")
    nothing_happened(visitor)
    in_order(visitor, tmp_path)


@pytest.mark.criterion("L16")
@pytest.mark.parametrize("quarter", range(4))
def test_every_hostile_title_goal_claim_and_finding_is_only_read(
    quarter: int, garden: Garden, visit: Visit
):
    visitor = visit(garden.site)
    visitor.turn(390, "light")  # the smaller the window, the less is drawn
    for task in garden.planted.tasks[quarter::4]:
        visitor.page.goto(f"/tasks/{task}", wait_until="domcontentloaded")
        nothing_happened(visitor)


def test_every_field_that_an_agent_fills_was_seen_with_hostile_words(garden: Garden, visit: Visit):
    visitor = visit(garden.site)
    first, agent = garden.planted.tasks[0], garden.planted.agents[0]
    seen = ""
    for path in (f"/tasks/{first}", f"/agents/{agent}", "/", "/inbox", "/settings"):
        visitor.page.goto(path, wait_until="domcontentloaded")
        seen += seen_on(visitor.page)
    assert {field for field in FIELDS if f"{field}: " not in seen} == set()
    for words in ("<script>", "onerror=", "<svg/onload="):
        assert words in seen, "it is read as it was written"


def test_lists_of_hostile_words_are_paged_through_to_their_end(garden: Garden, visit: Visit):
    visitor = visit(garden.site)
    for path in ("/tasks", "/agents"):
        visitor.open(path)
        rows = 0
        while True:
            nothing_happened(visitor)
            rows += visitor.page.locator("tbody tr").count()
            older = visitor.page.get_by_role("link", name="Older")
            if not older.count():
                break
            older.click()
            visitor.page.wait_for_load_state()
        assert rows >= len(garden.planted.tasks)


def test_who_hovers_and_focuses_hostile_words_starts_nothing(garden: Garden, visit: Visit):
    visitor = visit(garden.site)
    page = visitor.open(f"/tasks/{garden.planted.tasks[1]}")
    for _ in range(40):
        page.keyboard.press("Tab")
    page.mouse.move(5, 5)
    for y in range(100, 880, 40):
        page.mouse.move(400, y)
    nothing_happened(visitor)
