"""Without JavaScript: pages are read, lists are paged and filtered, and deeds still work."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.acting import filled, opened
from tests.browser.conftest import Visit
from tests.browser.furnishing import Furniture
from tests.browser.looking import NAMES, PLACES, SHAPE, SILENT, WOKEN, path_of, wrong_with
from tests.browser.serving import Site
from tests.record import lives
from truegreen.model import InboxState, Role, TaskStatus

SAID = {
    "overview": ("silent failure", "Matrix", "Inbox"),
    "overview of a month": ("30 days",),
    "tasks": ("make the nightly order totals right again", "gate tests: 3 failed of 212"),
    "tasks by filters": ("silent_failure", "Clear all"),
    "tasks that are not there": ("No task fits these filters",),
    "inbox": ("What waits for a person", "Put off"),
    "agents": ("claude", "contradicted"),
    "agents by status": ("error-coder",),
    "routines": ("nightly", "0 2 * * *"),
    "audit": ("212 tests passed",),
    "settings": ("Kill switch", "Configuration"),
    "help": ("silent failure",),
    SILENT: ("212 tests passed", "209 passed, 3 failed", "3 failed of 212"),
    WOKEN: ("The deadline moved", "answer the mail"),
}


@pytest.mark.parametrize("name", [*PLACES, SILENT, WOKEN])
def test_a_page_is_read_without_javascript_and_a_viewer_finds_nothing_to_act_with(
    name: str, gallery: Site, visit: Visit, furniture: Furniture
):
    """The one thing that a viewer may send is a log-out."""
    visitor = visit(gallery, Role.VIEWER, java_script_enabled=False)
    page = visitor.open(path_of(name, furniture))
    shown = page.inner_text("main")
    assert [words for words in SAID[name] if words not in shown] == []
    expect(page.locator("#stale")).to_be_hidden()
    forms = page.locator("form[method=post]").evaluate_all("all => all.map((each) => each.action)")
    assert forms == [f"{gallery.url}/logout"]
    assert page.locator("details.deed, button[data-key]").count() == 0
    assert wrong_with(page, *NAMES, *SHAPE) == []
    assert visitor.trouble() == []


def test_a_list_is_filtered_by_its_form(gallery: Site, visit: Visit):
    visitor = visit(gallery, Role.VIEWER, java_script_enabled=False)
    page = visitor.open("/tasks")
    form = page.locator("form.filters")
    filled(form, search="order totals", status="failed", age="24h")
    form.get_by_role("button", name="Filter").click()
    asked = parse_qs(urlsplit(page.url).query)
    assert (asked["search"], asked["status"], asked["age"]) == (
        ["order totals"],
        ["failed"],
        ["24h"],
    )
    assert page.locator("tbody tr").count() == 1
    assert form.locator("[name=search]").input_value() == "order totals", "the filter stays"
    page.get_by_role("link", name=re.compile("^search")).click()
    assert "search" not in parse_qs(urlsplit(page.url).query)
    assert page.locator("tbody tr").count() > 1


def test_a_list_is_paged_to_its_end(workshop: Site, visit: Visit):
    for number in range(60):
        lives.opened(workshop.ledger, title=f"one of many {number}")
    visitor = visit(workshop, Role.VIEWER, java_script_enabled=False)
    page = visitor.open("/tasks?search=one+of+many")
    seen = set(page.locator("tbody .title").all_inner_texts())
    assert len(seen) == 50
    page.get_by_role("link", name="Older").click()
    seen |= set(page.locator("tbody .title").all_inner_texts())
    assert len(seen) == 60
    assert page.get_by_role("link", name="Older").count() == 0
    page.get_by_role("link", name="Newest").click()
    assert page.locator("tbody tr").count() == 50


@pytest.mark.criterion("L17")
def test_deeds_work_without_javascript(workshop: Site, visit: Visit):
    task, _ = lives.brought(workshop.ledger, TaskStatus.BLOCKED, title="stuck")
    visitor = visit(workshop, java_script_enabled=False)
    page = visitor.open("/inbox")
    item = page.locator("[data-item]", has_text="stuck")
    item.get_by_role("button", name="Take").click()
    expect(page.locator(".said")).to_be_visible()
    (found,) = [e.item for e in workshop.ledger.inbox(limit=100) if e.item.title == "stuck"]
    assert found.state is InboxState.ACKED
    visitor.open(f"/tasks/{task.id}")
    form = filled(opened(page, "Unblock"), reason="allowed now")
    form.get_by_role("button", name="Unblock").click()
    expect(page.locator(".said")).to_contain_text("Unblocked")
    assert workshop.ledger.task(task.id).status is TaskStatus.QUEUED
    form = filled(opened(page, "Terminate"), confirm=task.id[-6:])
    form.get_by_role("button", name="Terminate").click()
    expect(page.locator(".said")).to_contain_text("Terminated for ever")
    assert workshop.ledger.task(task.id).status is TaskStatus.TERMINATED
    assert visitor.trouble() == []


def test_a_wrong_confirmation_does_nothing_without_javascript(workshop: Site, visit: Visit):
    task, _ = lives.brought(workshop.ledger, TaskStatus.QUEUED)
    visitor = visit(workshop, java_script_enabled=False)
    page = visitor.open(f"/tasks/{task.id}")
    form = filled(opened(page, "Terminate"), confirm="wrong1")
    form.get_by_role("button", name="Terminate").click()
    assert page.url == f"{workshop.url}/tasks/{task.id}", "the browser itself refuses to send it"
    assert workshop.ledger.task(task.id).status is TaskStatus.QUEUED
