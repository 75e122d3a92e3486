"""A page that is open moves with the record, and says so when it can't."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from tests.browser.acting import filled, opened
from tests.browser.conftest import Visit
from tests.browser.furnishing import Furniture
from tests.browser.serving import Site
from tests.browser.watching import Visitor
from tests.record.lives import OPERATOR, brought, declared, judged, started
from truegreen.contract import Budget
from truegreen.model import Outcome, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger

S = TaskStatus
SOON = 3000
"""So soon a change must be on the page, in milliseconds."""


def elsewhere(site: Site, change: Callable[[Ledger], object]) -> None:
    """Somebody else changes the record, with a connection of their own."""

    def work() -> None:
        ledger = open_ledger(site.config.store, anchor=f"{site.folder}/store.db.anchor")
        change(ledger)
        ledger.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def fails_silently(ledger: Ledger, title: str = "while you looked") -> None:
    ticket = started(ledger, title=title, budget=Budget(attempts=1))
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)


def following(visitor: Visitor, path: str) -> None:
    """Open a page, and wait until its stream has brought something."""
    page = visitor.open(path)
    page.locator("#live-head").wait_for(state="attached")
    page.evaluate("window.untouched = true")


@pytest.mark.criterion("L08")
def test_the_overview_moves_without_a_reload(workshop: Site, visit: Visit):
    visitor = visit(workshop)
    following(visitor, "/")
    page = visitor.page
    cell = page.locator("[data-cell=silent_failure] .cell-count")
    before = int(cell.inner_text())
    elsewhere(workshop, lambda ledger: fails_silently(ledger, "seen at once"))
    expect(cell).to_have_text(str(before + 1), timeout=SOON)
    expect(page.locator(".notice.silent")).to_contain_text("seen at once")
    expect(page.locator(".nav a[href='/tasks'] .count")).to_contain_text(str(before + 1))
    assert page.title().startswith(f"({before + 1})")
    assert page.evaluate("window.untouched"), "nothing was loaded again"
    assert visitor.trouble() == []


def test_a_script_that_comes_late_does_not_keep_a_page_from_following(workshop: Site, visit: Visit):
    visitor = visit(workshop, alone=True)

    def late(route: Route) -> None:
        time.sleep(0.4)
        route.continue_()

    visitor.context.route("**/hx-sse*", late)
    visitor.open("/")
    visitor.page.locator("#live-head").wait_for(state="attached", timeout=SOON)


@pytest.mark.parametrize("path", ["/tasks", "/inbox", "/tasks?cell=silent_failure"])
def test_lists_move_without_a_reload(path: str, workshop: Site, visit: Visit):
    visitor = visit(workshop)
    following(visitor, path)
    title = f"while you looked at {path}"
    elsewhere(workshop, lambda ledger: fails_silently(ledger, title))
    expect(visitor.page.locator("main")).to_contain_text(title, timeout=SOON)
    assert visitor.page.evaluate("window.untouched")
    assert visitor.trouble() == []


def test_agents_move_without_a_reload(workshop: Site, visit: Visit):
    visitor = visit(workshop)
    following(visitor, "/agents")
    elsewhere(
        workshop, lambda ledger: ledger.register_agent("newcomer", "sha256:1", actor=OPERATOR)
    )
    expect(visitor.page.locator("tbody")).to_contain_text("newcomer", timeout=SOON)
    assert visitor.page.evaluate("window.untouched")


@pytest.mark.criterion("L08")
def test_a_task_moves_without_a_reload_and_its_deeds_follow(workshop: Site, visit: Visit):
    task, _ = brought(workshop.ledger, S.QUEUED)
    visitor = visit(workshop)
    following(visitor, f"/tasks/{task.id}")
    page = visitor.page
    elsewhere(workshop, lambda ledger: started(ledger, task.id))
    expect(page.locator(".axis-box .chip.big").last).to_contain_text("running", timeout=SOON)
    expect(page.locator("summary", has_text="Stop")).to_be_visible()
    assert page.evaluate("window.untouched")
    assert visitor.trouble() == []


def test_a_form_that_somebody_fills_in_is_left_alone(workshop: Site, visit: Visit):
    task, _ = brought(workshop.ledger, S.NEEDS_REVIEW)
    visitor = visit(workshop)
    following(visitor, f"/tasks/{task.id}")
    form = filled(opened(visitor.page, "Accept the work"), reason="half a sentence")
    rendered = visitor.page.locator("#live-head").get_attribute("data-rendered")
    elsewhere(workshop, fails_silently)
    head = visitor.page.locator("#live-head")
    expect(head).not_to_have_attribute("data-rendered", str(rendered), timeout=SOON)
    field = form.locator("[name=reason]")
    assert field.is_visible()
    assert field.input_value() == "half a sentence"
    assert visitor.page.evaluate("document.activeElement.name") == "reason"


def test_what_is_filled_in_at_the_inbox_survives_an_update(workshop: Site, visit: Visit):
    visitor = visit(workshop)
    fails_silently(workshop.ledger, "written about")
    following(visitor, "/inbox")
    item = visitor.page.locator("[data-item]", has_text="written about")
    form = filled(opened(item, "Resolve"), reason="half a sentence")
    elsewhere(workshop, lambda ledger: fails_silently(ledger, "while you wrote"))
    expect(visitor.page.locator("main")).to_contain_text("while you wrote", timeout=SOON)
    assert form.locator("[name=reason]").is_visible()
    assert form.locator("[name=reason]").input_value() == "half a sentence"


def test_the_output_of_a_run_is_followed(workshop: Site, visit: Visit):
    ticket = started(workshop.ledger, title="writes")
    workshop.ledger.seen(ticket)
    folder = workshop.state_dir / "runs" / ticket.run
    folder.mkdir(parents=True)
    log = folder / "stdout.log"
    log.write_text("first line\n")
    visitor = visit(workshop)
    page = visitor.open(f"/tasks/{ticket.task}")
    expect(page.locator("pre.output")).to_contain_text("first line")
    with log.open("a") as file:
        file.write("second <b>line</b>\n")
    expect(page.locator("pre.output")).to_contain_text("second <b>line</b>", timeout=SOON)
    assert page.locator("pre.output b").count() == 0
    assert visitor.trouble() == []


@pytest.mark.criterion("L08")
def test_a_page_without_its_server_says_since_when_it_is_stale(site: Site, visit: Visit):
    visitor = visit(site)
    following(visitor, "/")
    page = visitor.page
    line = page.locator("#stale")
    expect(line).to_be_hidden()
    site.stop()
    expect(line).to_be_visible(timeout=15_000)
    expect(line).to_contain_text("Stale since")
    assert page.evaluate("document.documentElement.hasAttribute('data-stale')")
    visitor.trouble()  # the browser says that it was refused
    site.start()
    expect(line).to_be_hidden(timeout=10_000)
    assert page.evaluate("window.untouched"), "it comes back by itself"
    elsewhere(site, fails_silently)
    expect(page.locator(".notice.silent")).to_contain_text("while you looked", timeout=SOON)


def test_a_server_stops_at_once_while_somebody_looks(site: Site, visit: Visit):
    visitor = visit(site)
    following(visitor, "/")
    begun = time.monotonic()
    site.stop()
    assert time.monotonic() - begun < 2


def test_two_who_look_see_the_same(workshop: Site, visit: Visit, furniture: Furniture):
    one, other = visit(workshop), visit(workshop)
    for visitor in (one, other):
        following(visitor, f"/tasks/{furniture.silent}")
    elsewhere(
        workshop,
        lambda ledger: ledger.retry(
            furniture.silent, actor=OPERATOR, reason="again", more_attempts=1
        ),
    )
    for visitor in (one, other):
        chip = visitor.page.locator(".axis-box .chip.big").last
        expect(chip).to_contain_text("queued", timeout=SOON)
