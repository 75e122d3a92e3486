"""Everything with the keys alone: triage in the inbox, and a way by Tab to every deed of a page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Stored, Visit
from tests.browser.furnishing import Furniture
from tests.browser.looking import PLACES, SILENT, TASKS, path_of
from tests.browser.serving import Site
from tests.browser.watching import Visitor
from truegreen.model import InboxState

ITEM = "document.activeElement.closest('[data-item]')?.id ?? ''"


@pytest.fixture
def inbox(site: Site, visit: Visit) -> Iterator[Visitor]:
    """Somebody at an inbox of their own; at the end nothing has gone wrong."""
    yield from at_the_inbox(site, visit)


@pytest.fixture
def seen_inbox(gallery: Site, visit: Visit) -> Iterator[Visitor]:
    """The same, for those whose keys change nothing in the record."""
    yield from at_the_inbox(gallery, visit)


def at_the_inbox(site: Site, visit: Visit) -> Iterator[Visitor]:
    visitor = visit(site)
    visitor.open("/inbox").locator("#live-head").wait_for(state="attached")
    yield visitor
    assert visitor.trouble() == []


def items(page: Page) -> list[str]:
    found: list[str] = page.locator("[data-item]").evaluate_all("all => all.map((each) => each.id)")
    return found


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_j_and_k_go_through_the_inbox_in_its_order(seen_inbox: Visitor):
    page = seen_inbox.page
    listed = items(page)
    assert len(listed) > 5
    for item in listed:
        press(page, "j")
        assert page.evaluate(ITEM) == item
        assert page.locator(f"#{item}").evaluate("each => getComputedStyle(each).outlineStyle") != (
            "none"
        ), "one sees where one is"
    press(page, "j")
    assert page.evaluate(ITEM) == listed[-1], "the last is the last"
    press(page, "k", "k")
    assert page.evaluate(ITEM) == listed[-3]


def test_a_takes_and_the_place_is_kept(inbox: Visitor, site: Site):
    page = inbox.page
    listed = items(page)
    press(page, "j", "j", "a")
    expect(page.locator(".said")).to_be_visible()
    found = site.ledger.inbox_item(listed[1]).item
    assert (found.state, found.owner) == (InboxState.ACKED, "operator:operator-browser")
    press(page, "j")
    assert page.evaluate(ITEM) == listed[2], "one goes on where one was"


def test_s_puts_off_with_a_choice(inbox: Visitor, site: Site):
    page = inbox.page
    first = items(page)[0]
    press(page, "j", "s")
    inbox.until(lambda: page.evaluate("document.activeElement.textContent") == "1 hour")
    assert site.ledger.inbox_item(first).item.state is InboxState.OPEN
    press(page, "Tab", "Enter")
    expect(page.locator(".said")).to_contain_text("four hours")
    found = site.ledger.inbox_item(first).item
    assert found.state is InboxState.SNOOZED
    assert found.snoozed_until
    assert 3.9 < (found.snoozed_until - found.updated_at) / 3.6e9 < 4.1


@pytest.mark.criterion("L03")
def test_r_resolves_with_an_outcome_that_is_typed(inbox: Visitor, site: Site):
    page = inbox.page
    first = items(page)[0]
    press(page, "j", "r")
    inbox.until(lambda: page.evaluate("document.activeElement.name") == "reason")
    page.keyboard.type("ajsr? mended by hand")
    assert site.ledger.inbox_item(first).item.state is InboxState.OPEN, "keys are words in a field"
    press(page, "Enter")
    expect(page.locator(".said")).to_contain_text("resolved")
    found = site.ledger.inbox_item(first).item
    assert (found.state, found.outcome) == (InboxState.RESOLVED, "ajsr? mended by hand")


def test_nothing_is_skipped_after_something_is_gone(inbox: Visitor):
    page = inbox.page
    first, second, third, *_ = items(page)
    press(page, "j", "r")
    inbox.until(lambda: page.evaluate("document.activeElement.name") == "reason")
    page.keyboard.type("mended")
    press(page, "Enter")
    expect(page.locator(f"#{first}")).to_have_count(0)
    inbox.until(lambda: page.evaluate(ITEM) != "")
    assert page.evaluate(ITEM) == second, "the next takes its place"
    press(page, "j")
    assert page.evaluate(ITEM) == third


def test_escape_closes_and_leads_back_to_the_item(seen_inbox: Visitor):
    page = seen_inbox.page
    first = items(page)[0]
    press(page, "j", "r", "Escape")
    assert page.locator("details.deed[open]").count() == 0
    assert page.evaluate(ITEM) == first


def test_enter_opens_the_task(seen_inbox: Visitor, gallery: Site):
    page = seen_inbox.page
    task = gallery.ledger.inbox_item(items(page)[0]).task
    press(page, "j", "Enter")
    page.wait_for_url(f"{gallery.url}/tasks/{task}")


def test_a_question_mark_shows_the_keys(seen_inbox: Visitor):
    page = seen_inbox.page
    dialog = page.get_by_role("dialog", name="Triage by keys")
    expect(dialog).to_be_hidden()
    press(page, "?")
    expect(dialog).to_be_visible()
    press(page, "j")
    assert page.evaluate(ITEM) == "", "what is under a dialog does not move"
    press(page, "Escape")
    expect(dialog).to_be_hidden()


def test_keys_with_a_modifier_are_the_browsers(seen_inbox: Visitor, gallery: Site):
    page = seen_inbox.page
    first = items(page)[0]
    press(page, "j", "Control+a", "Alt+a", "Meta+a")
    seen_inbox.look(1440, "light")  # what was sent is answered then
    assert gallery.ledger.inbox_item(first).item.state is InboxState.OPEN


# --- the way by Tab

REACHED = """() => {
  const each = document.activeElement;
  if (each === document.body) return null;
  const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(each);
  const seen = (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
  each.dataset.reached = "yes";
  return {seen, what: each.outerHTML.slice(0, 120)};
}"""
LEFT = """() => [...document.querySelectorAll(
    "a[href], button:enabled, input:not([type=hidden]):enabled, select, textarea, summary")]
  .filter((each) => each.checkVisibility() && !each.dataset.reached)
  .map((each) => each.outerHTML.slice(0, 120))"""


@pytest.mark.criterion("L05")
@pytest.mark.parametrize(
    "name", ["overview", "inbox", "settings", SILENT, "task needs_review", "agents", "audit"]
)
def test_tab_leads_to_everything_and_one_sees_where_one_is(
    name: str, gallery: Site, visit: Visit, furniture: Furniture
):
    assert name in (*PLACES, *TASKS, SILENT)
    visitor = visit(gallery)
    page = visitor.open(path_of(name, furniture))
    page.locator(".skip").focus()
    unseen, steps = [], 0
    while reached := page.evaluate(REACHED):
        if not reached["seen"]:
            unseen.append(reached["what"])
        page.keyboard.press("Tab")
        steps += 1
        assert steps < 400, "the way has no end"
    assert page.evaluate(LEFT) == []
    assert unseen == []


def test_the_first_stop_leads_past_the_sections(gallery: Site, visit: Visit):
    page = visit(gallery).open("/tasks")
    press(page, "Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    assert skip.evaluate("each => each === document.activeElement")
    box = skip.bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["y"] >= 0
    press(page, "Enter", "Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_a_task_is_moved_with_the_keys_alone(site: Site, stored: Stored, visit: Visit):
    task = stored.furniture.silent
    visitor = visit(site)
    page = visitor.open(f"/tasks/{task}")
    page.locator("summary", has_text="Retry").focus()
    press(page, "Enter")
    visitor.until(lambda: page.evaluate("document.activeElement.name") == "reason")
    page.keyboard.type("once more")
    press(page, "Enter")
    expect(page.locator(".said")).to_contain_text("To be tried again")
    assert site.ledger.task(task).status == "queued"
    assert visitor.trouble() == []
