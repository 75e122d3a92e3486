"""Everything that can be done in the dashboard, by clicking; what came of it is read in the ledger.

Each test brings about what it acts on; they share one server, because none touches another's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.acting import done, filled, opened
from tests.browser.conftest import Stored, Visit
from tests.browser.serving import Site
from tests.browser.watching import Visitor
from tests.record.lives import OPERATOR, agent_of, brought, ended, judged, started
from truegreen.facts import WakeState
from truegreen.model import (
    AgentStatus,
    ExitDetail,
    InboxState,
    Mode,
    Outcome,
    Role,
    TaskStatus,
)
from truegreen.record.ledger.portraits import portrait
from truegreen.record.ledger.telling import Owed

S = TaskStatus


@pytest.fixture
def ana(workshop: Site, visit: Visit) -> Iterator[Visitor]:
    """An operator at her browser; at the end nothing has gone wrong in it."""
    visitor = visit(workshop)
    yield visitor
    assert visitor.trouble() == []


# --- a task

DEEDS = {
    "Approve": (S.AWAITING_APPROVAL, {"reason": "go on"}, S.RUNNING),
    "Reject": (S.AWAITING_APPROVAL, {"reason": "not now"}, S.BLOCKED),
    "Accept the work": (S.NEEDS_REVIEW, {"reason": "looked at the diff"}, S.SUCCEEDED),
    "Turn it down": (S.NEEDS_REVIEW, {"reason": "half of it is missing"}, S.QUEUED),
    "Unblock": (S.BLOCKED, {"reason": "allowed now", "mode": "assisted"}, S.QUEUED),
    "Retry": (S.FAILED, {"reason": "once more", "more_attempts": "1"}, S.QUEUED),
    "Reopen": (S.SUCCEEDED, {"reason": "CI was red"}, S.QUEUED),
    "Cancel": (S.QUEUED, {"reason": "not needed"}, S.CANCELED),
}


@pytest.mark.criterion("O03")
@pytest.mark.parametrize("label", DEEDS)
def test_a_task_is_moved_by_clicking(label: str, ana: Visitor, workshop: Site):
    status, fields, becomes = DEEDS[label]
    task, _ = brought(workshop.ledger, status)
    page = ana.open(f"/tasks/{task.id}")
    said = done(page, filled(opened(page, label), **fields), label)
    assert workshop.ledger.task(task.id).status is becomes
    assert said.endswith(".")
    assert becomes not in said, "it stands there when that has changed"
    expect(page.locator(".axis-box .chip.big").last).to_contain_text(becomes)
    moved = [told.event for told in workshop.ledger.events(task.id) if told.event.reason]
    assert any(fields["reason"] in event.reason for event in moved)
    assert any(event.actor.startswith("operator:operator-browser") for event in moved)
    if "mode" in fields:
        assert workshop.ledger.task(task.id).mode is Mode.ASSISTED


def test_a_run_is_asked_to_stop_by_clicking(ana: Visitor, workshop: Site):
    ticket = started(workshop.ledger)
    page = ana.open(f"/tasks/{ticket.task}")
    done(page, filled(opened(page, "Stop"), reason="enough"), "Stop")
    assert workshop.ledger.standing(ticket).stop_asked


@pytest.mark.criterion("L17")
def test_a_task_is_terminated_only_when_the_end_of_its_id_is_typed(ana: Visitor, workshop: Site):
    task, _ = brought(workshop.ledger, S.QUEUED)
    page = ana.open(f"/tasks/{task.id}")
    form = opened(page, "Terminate")
    button = form.get_by_role("button", name="Terminate")
    assert button.is_disabled()
    filled(form, reason="a zombie", confirm="abcdef")
    assert button.is_disabled()
    form.locator("[name=confirm]").press("Enter")
    assert workshop.ledger.task(task.id).status is S.QUEUED
    filled(form, confirm=task.id[-6:])
    said = done(page, form, "Terminate")
    assert said.startswith("Terminated for ever")
    assert workshop.ledger.task(task.id).status is S.TERMINATED
    expect(page.locator("main")).to_contain_text("Sealed for ever")
    assert page.locator("details.deed").count() == 0, "nothing leads on"


def test_a_wrong_word_is_refused_by_the_server_too(workshop: Site, visit: Visit):
    task, _ = brought(workshop.ledger, S.QUEUED)
    visitor = visit(workshop)
    page = visitor.open(f"/tasks/{task.id}")
    form = filled(opened(page, "Terminate"), confirm="abcdef")
    form.evaluate("form => { form.noValidate = true; HTMLFormElement.prototype.submit.call(form) }")
    expect(page.locator("h1")).to_have_text("That is not quite right")
    assert task.id[-6:] in page.inner_text("main")
    assert workshop.ledger.task(task.id).status is S.QUEUED
    page.get_by_role("link", name="Back to where you were").click()
    page.wait_for_url(f"{workshop.url}/tasks/{task.id}")


def test_what_the_record_refuses_is_said_and_changes_nothing(workshop: Site, visit: Visit):
    """The page is older than the record: somebody else was faster."""
    task, _ = brought(workshop.ledger, S.BLOCKED)
    visitor = visit(workshop, alone=True)
    visitor.context.route("**/live/**", lambda route: route.abort())
    page = visitor.open(f"/tasks/{task.id}")
    form = filled(opened(page, "Unblock"), reason="mine")
    workshop.ledger.cancel(task.id, actor=OPERATOR, reason="theirs")
    form.get_by_role("button", name="Unblock").click()
    expect(page.locator("main")).to_contain_text("canceled")
    assert workshop.ledger.task(task.id).status is S.CANCELED


# --- the inbox


def waiting(site: Site, title: str) -> str:
    """Something new in the inbox, with a cause of its own; its id."""
    ticket = started(site.ledger, title=title, mode=Mode.ASSISTED)
    site.ledger.checkpoint(ticket, title, actor=agent_of(ticket))
    return item_of(site, title)


def item_of(site: Site, title: str) -> str:
    (found,) = [each.item.id for each in site.ledger.inbox(limit=200) if each.item.title == title]
    return found


def test_something_is_taken_by_clicking(ana: Visitor, workshop: Site):
    item = waiting(workshop, "to be taken")
    page = ana.open("/inbox")
    done(page, page.locator(f"#{item}"), "Take")
    found = workshop.ledger.inbox_item(item).item
    assert (found.state, found.owner) == (InboxState.ACKED, "operator:operator-browser")
    expect(page.locator(f"#{item}")).to_contain_text("looks into it")


@pytest.mark.parametrize(("label", "hours"), [("1 hour", 1), ("4 hours", 4)])
def test_something_is_put_off_by_clicking(label: str, hours: int, ana: Visitor, workshop: Site):
    item = waiting(workshop, f"to be put off for {hours}")
    page = ana.open("/inbox")
    done(page, opened(page.locator(f"#{item}"), "Snooze"), label)
    found = workshop.ledger.inbox_item(item).item
    assert found.state is InboxState.SNOOZED
    assert found.snoozed_until
    assert abs((found.snoozed_until - found.updated_at) / 3.6e9 - hours) < 0.01
    assert page.locator(f"#{item}").count() == 0
    row = page.locator("tr", has_text=f"to be put off for {hours}")
    done(page, row, "Take it now")
    assert workshop.ledger.inbox_item(item).item.state is InboxState.ACKED


def test_tomorrow_is_tomorrow_morning(ana: Visitor, workshop: Site):
    item = waiting(workshop, "to be put off until tomorrow")
    page = ana.open("/inbox")
    done(page, opened(page.locator(f"#{item}"), "Snooze"), "tomorrow, 08:00")
    until = workshop.ledger.inbox_item(item).item.snoozed_until
    assert until
    assert until % 3_600_000_000 < 2_000_000 or until % 3_600_000_000 > 3_598_000_000


@pytest.mark.criterion("L03")
def test_something_is_resolved_with_an_outcome_and_not_without(ana: Visitor, workshop: Site):
    ticket = started(workshop.ledger, title="to be resolved")
    workshop.ledger.end_run(ticket, ended(ExitDetail.REFUSED))  # no question: those are answered
    item = item_of(workshop, "to be resolved")
    page = ana.open("/inbox")
    form = opened(page.locator(f"#{item}"), "Resolve")
    form.get_by_role("button", name="Resolve").click()
    assert workshop.ledger.inbox_item(item).item.state is InboxState.OPEN
    assert form.locator("[name=reason]").evaluate("each => each.matches(':user-invalid, :invalid')")
    done(page, filled(form, reason="mended by hand, ticket 4711"), "Resolve")
    found = workshop.ledger.inbox_item(item).item
    assert (found.state, found.outcome) == (InboxState.RESOLVED, "mended by hand, ticket 4711")


ANSWERS = {
    "Approve": (S.AWAITING_APPROVAL, S.RUNNING),
    "Reject": (S.AWAITING_APPROVAL, S.BLOCKED),
    "Accept the work": (S.NEEDS_REVIEW, S.SUCCEEDED),
    "Unblock": (S.BLOCKED, S.QUEUED),
    "Retry": (S.FAILED, S.QUEUED),
}


@pytest.mark.parametrize("label", ANSWERS)
def test_what_a_task_waits_for_is_done_in_the_inbox(label: str, ana: Visitor, workshop: Site):
    status, becomes = ANSWERS[label]
    title = f"{label} it here"
    task, _ = brought(workshop.ledger, status, title=title)
    item = item_of(workshop, title)
    page = ana.open("/inbox")
    decide = page.locator(f"#{item} details[data-key=d] > summary")
    decide.click()
    form = filled(page.locator(f"#{item} details[data-key=d] form"), reason="because")
    said = done(page, form, label)
    assert becomes in said
    assert workshop.ledger.task(task.id).status is becomes
    assert workshop.ledger.inbox_item(item).item.state is InboxState.RESOLVED


@pytest.mark.criterion("L13")
def test_all_of_a_cause_are_taken_at_once(ana: Visitor, workshop: Site):
    for title in ("one of many", "another of many"):
        ticket = started(workshop.ledger, title=title)
        workshop.ledger.end_run(ticket, ended(ExitDetail.EGRESS_DENIED))
        judged(workshop.ledger, ticket, Outcome.FAILED)
    page = ana.open("/inbox")
    group = page.locator(".group", has_text="one of many")
    expect(group).to_contain_text("another of many")
    ids = group.locator("[data-item]").evaluate_all("all => all.map((each) => each.id)")
    done(page, group.locator(".group-head"), f"Take all {len(ids)}")
    states = {workshop.ledger.inbox_item(item).item.state for item in ids}
    assert states == {InboxState.ACKED}


# --- agents


def agent(site: Site, name: str) -> str:
    return site.ledger.register_agent(name, "sha256:1", actor=OPERATOR, session=f"s-{name}").id


def test_an_agent_gets_a_message_by_clicking(ana: Visitor, workshop: Site):
    whom = agent(workshop, "reader")
    page = ana.open(f"/agents/{whom}")
    form = filled(opened(page, "Send a message"), text="first line\nsecond line")
    assert "The message is left" in done(page, form, "Send a message")
    (letter,) = portrait(workshop.ledger.store, whom, limit=5).letters
    assert letter.message.body.replace("\r\n", "\n") == "first line\nsecond line"
    expect(page.locator(".letter").first).to_contain_text("second line")


def test_a_wake_up_is_called_off_by_clicking(ana: Visitor, workshop: Site, stored: Stored):
    whom = stored.furniture.agents[AgentStatus.COMPLETED]
    page = ana.open(f"/agents/{whom}")
    done(page, page.locator("main"), "Call off")
    (wake,) = portrait(workshop.ledger.store, whom, limit=5).wakes
    assert wake.state is WakeState.VOID


def test_an_agent_is_terminated_only_when_the_end_of_its_id_is_typed(ana: Visitor, workshop: Site):
    whom = agent(workshop, "zombie")
    page = ana.open(f"/agents/{whom}")
    form = filled(opened(page, "Terminate"), confirm="nope")
    assert form.get_by_role("button", name="Terminate").is_disabled()
    said = done(page, filled(form, confirm=whom[-6:]), "Terminate")
    assert said.startswith("Terminated for ever")
    assert workshop.ledger.agent(whom).status is AgentStatus.TERMINATED
    assert page.locator("details.deed").count() == 0


# --- settings


def test_a_key_is_made_shown_once_and_revoked(ana: Visitor, workshop: Site):
    page = ana.open("/settings")
    form = page.locator("form[action='/settings/tokens']")
    filled(form, name="ci", role="viewer", ttl="12h")
    form.get_by_role("button", name="Create").click()
    secret = page.locator("#secret")
    secret.wait_for()
    actor = workshop.ledger.authenticate(secret.inner_text().strip())
    assert (actor.role, actor.name) == (Role.VIEWER, "ci")
    ana.open("/settings")
    assert page.locator("#secret").count() == 0
    row = page.locator("tr", has=page.locator("th", has_text=re.compile("^ci")))
    done(page, filled(opened(row, "Revoke"), reason="leaked"), "Revoke")
    states = {token.name: token.revoked_at for token in workshop.ledger.tokens()}
    assert states["ci"]


def test_another_browser_is_logged_out_by_clicking(ana: Visitor, workshop: Site, visit: Visit):
    other = visit(workshop, Role.VIEWER, alone=True)
    other.open("/")
    page = ana.open("/settings")
    row = page.locator("tr", has_text="viewer-browser").first
    done(page, opened(row, "End"), "End")
    answer = other.page.goto("/tasks")
    assert answer
    assert answer.status == 401
    workshop.sessions.pop(Role.VIEWER)


def test_a_post_that_was_given_up_is_tried_again(ana: Visitor, workshop: Site):
    workshop.ledger.owe("webhook:late", [Owed("a late post", "{}")], (0, 0))
    (post,) = workshop.ledger.take_posts("webhook:late")
    workshop.ledger.unposted(post.id, "500", again_in=None)
    page = ana.open("/settings")
    done(page, page.locator("tr", has_text="a late post"), "Try again")
    (found,) = [each for each in workshop.ledger.posts() if each.id == post.id]
    assert found.state == "waiting"


def test_everything_is_frozen_and_thawed_by_clicking(ana: Visitor, workshop: Site):
    page = ana.open("/settings")
    form = opened(page, "Freeze")
    done(page, filled(form, reason="a bad release"), "Freeze")
    held = workshop.ledger.frozen()
    assert held
    ana.open("/")
    expect(page.locator(".band")).to_contain_text("a bad release")
    ana.open("/settings")
    thaw = page.locator("form[action='/settings/thaw']")
    done(page, filled(thaw, reason="rolled back"), "Thaw")
    assert workshop.ledger.frozen() is None


# --- coming and going


def test_who_logs_out_is_out_everywhere(site: Site, visit: Visit):
    visitor = visit(site)
    page = visitor.open("/")
    page.locator("details.menu > summary").click()
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("h1")).to_have_text("You are logged out")
    answer = page.goto("/")
    assert answer
    assert answer.status == 401
    session = next(each for each in site.sessions[Role.OPERATOR] if "session" in each["name"])
    assert session["httpOnly"]
    assert session["sameSite"] == "Strict"
    visitor.context.add_cookies([session])
    answer = page.goto("/")
    assert answer
    assert answer.status == 401, "the session is over in the store, too"


def test_a_link_opens_once(site: Site, visit: Visit):
    link = site.link(Role.VIEWER)
    first = visit(site, None)
    first.page.goto(link)
    first.page.wait_for_url(f"{site.url}/")
    second = visit(site, None)
    answer = second.page.goto(link)
    assert answer
    assert answer.status == 401
    assert "truegreen login" in second.page.inner_text("main")
