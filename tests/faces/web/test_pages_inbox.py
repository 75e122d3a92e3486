"""The inbox as a page: what it shows, in which order, and that every deed reaches the record."""

from __future__ import annotations

import re
import time

import pytest

from tests.faces.web.conftest import Web
from tests.record.lives import OPERATOR, brought, declared, ended, judged, opened, started
from tests.table import each_row
from truegreen.contract import Budget
from truegreen.faces.web.pages.inbox import busiest_minute, choices, seconds_until, stamps
from truegreen.faces.web.pages.rendering import environment
from truegreen.faces.web.routes import OPERATORS, ROUTES
from truegreen.model import CELLS, Cell, ExitDetail, InboxState, Outcome, Role, TaskStatus
from truegreen.record.ledger.reads import Waiting
from truegreen.record.ledger.telling import Owed
from truegreen.record.rows import InboxItem

DEEDS = ("ack", "snooze", "resolve", "act")


def item_of(web: Web, task: str) -> Waiting:
    """What waits about a task."""
    return next(each for each in web.ledger.inbox() if each.task == task)


def asked_of(waiting: Waiting) -> dict[str, str]:
    """What a form about something says of the question that it answers."""
    question = waiting.question
    return {"question": question.id, "digest": question.digest} if question else {}


def main_of(text: str) -> str:
    """A page without the frame around it."""
    return text.partition("<main")[2].partition("</main>")[0]


def failed(web: Web, title: str, times: int = 1) -> str:
    """A silent failure that came several times; its task."""
    for _ in range(times):
        ticket = started(web.ledger, title=title, budget=Budget(attempts=1))
        declared(web.ledger, ticket)
        judged(web.ledger, ticket, Outcome.FAILED)
    return next(each.task for each in web.ledger.inbox() if each.item.title == title)


# --- what is shown


@pytest.mark.criterion("L03")
def test_each_thing_shows_reason_evidence_next_step_age_and_owner(web: Web):
    task = web.tasks[TaskStatus.NEEDS_REVIEW]
    waiting = item_of(web, task)
    web.ledger.ack(waiting.item.id, actor=OPERATOR)
    page = main_of(web.browser().get("/inbox").text)
    shown = page.partition(f'id="{waiting.item.id}"')[2].partition("</li>")[0]
    assert waiting.item.reason in shown
    assert f'href="/tasks/{task}"' in shown
    assert 'name="verb" value="accept"' in shown
    assert "<time " in shown
    assert "ana looks into it" in shown


@pytest.mark.criterion("L13")
def test_the_most_urgent_cause_stands_first_and_says_for_how_long_nobody_took_it(web: Web):
    page = main_of(web.browser().get("/inbox").text)
    heads = re.findall(r'<li class="card group.*?class="word">(\w+)<', page, re.DOTALL)
    assert heads == sorted(heads, key=["critical", "high", "normal"].index)
    assert heads[0] == "critical"
    assert re.search(r"unread for (less than a minute|\d+ min)", page)


@pytest.mark.criterion("L13")
def test_one_cause_is_one_group_and_what_comes_again_is_counted_not_repeated(web: Web):
    failed(web, "nightly", times=3)
    failed(web, "weekly")
    page = main_of(web.browser().get("/inbox").text)
    assert page.count("<h2>silent failure: gate tests</h2>") == 1
    assert page.count(">nightly</a>") == 1
    assert "third time" in page
    assert "3 alike" in page
    assert "with one cause" not in page


def test_a_folder_is_named_by_its_end_and_told_whole_to_whoever_asks(web: Web):
    ticket = started(web.ledger, title="nightly", cwd="/srv/a/b/orders", budget=Budget(attempts=1))
    declared(web.ledger, ticket)
    judged(web.ledger, ticket, Outcome.FAILED)
    page = main_of(web.browser().get("/inbox").text)
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    head = next(each for each in heads if "orders" in each)
    assert re.sub("<.*?>", "", head) == "silent failure: gate tests in …/orders"
    assert 'title="/srv/a/b/orders"' in head


@pytest.mark.criterion("L13")
def test_putting_off_a_whole_group_names_how_many_and_which_and_holds_for_what_comes(web: Web):
    def crashed(title: str) -> None:
        ticket = started(web.ledger, title=title, budget=Budget(attempts=1))
        web.ledger.end_run(ticket, ended(ExitDetail.OOM))

    crashed("nightly")
    crashed("weekly")
    page = main_of(web.browser().get("/inbox").text)
    deed = page.partition("Snooze all 2")[2].partition("</form>")[0]
    assert "<li>nightly</li><li>weekly</li>" in deed
    assert "These 2, and whatever else comes as «outage: oom»" in deed
    (ids,) = re.findall(r'name="items" value="([^"]+)"', deed)
    form = {"items": ids, "whole": "topic", "until": "1h"}
    assert web.browser().post("/inbox/snooze", data=form).status_code == 303
    crashed("monthly")
    page = main_of(web.browser().get("/inbox").text).partition("Put off")[0]
    assert not any(title in page for title in ("nightly", "weekly", "monthly"))


@pytest.mark.criterion("L13")
def test_putting_off_one_thing_says_so_and_holds_for_nothing_else(web: Web):
    def crashed(title: str) -> InboxItem:
        ticket = started(web.ledger, title=title, budget=Budget(attempts=1))
        web.ledger.end_run(ticket, ended(ExitDetail.OOM))
        return item_of(web, ticket.task).item

    item = crashed("nightly")
    page = main_of(web.browser().get("/inbox").text)
    assert "This one only, however often it happens again" in page
    web.browser().post("/inbox/snooze", data={"items": item.id, "until": "1h"})
    assert crashed("weekly").title == "weekly"


@pytest.mark.criterion("L16")
def test_what_an_agent_wrote_is_text_and_nothing_more(web: Web):
    failed(web, '<img src=x onerror="alert(1)">')
    page = web.browser().get("/inbox").text
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=&#34;alert(1)&#34;&gt;" in page


def test_secrets_are_masked_for_those_who_may_only_look(web: Web):
    secret = "sk-ant-api03-" + "a1B2c3D4" * 6
    failed(web, f"use {secret}")
    assert secret in web.browser().get("/inbox").text
    assert secret not in web.browser(Role.VIEWER).get("/inbox").text


def test_what_is_put_off_is_listed_with_when_it_comes_back(web: Web):
    waiting = item_of(web, web.tasks[TaskStatus.BLOCKED])
    until = web.ledger.snooze(waiting.item.id, seconds=7200, actor=OPERATOR).snoozed_until
    page = main_of(web.browser().get("/inbox").text)
    put_off = page.partition("Put off")[2]
    assert until is not None
    assert time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(until // 10**6)) in put_off
    assert f'id="{waiting.item.id}"' not in page


def test_an_empty_inbox_says_so(web: Web):
    for waiting in web.ledger.inbox():
        if waiting.item.cell == TaskStatus.AWAITING_APPROVAL:
            web.ledger.cancel(waiting.task, actor=OPERATOR)
    for waiting in web.ledger.inbox():
        web.ledger.resolve(waiting.item.id, outcome="dealt with", actor=OPERATOR)
    assert "Nothing waits for anybody" in web.browser().get("/inbox").text


# --- rubber stamps


def test_a_single_yes_is_counted_and_warned_of_by_nobody(web: Web):
    task, _ = brought(web.ledger, TaskStatus.AWAITING_APPROVAL)
    web.ledger.approve(task.id, actor=OPERATOR, reason="ok")
    page = main_of(web.browser().get("/inbox").text)
    assert "Said yes in the last 24 hours: ana 1, 1 of them hasty" in page
    assert "notice l-amber stamp" not in page


def test_what_waits_without_a_reason_says_what_it_means():
    why = environment().from_string('{% import "macros.html" as m %}{{ m.why(reason, cell) }}')
    sentence = CELLS[Cell.OUTAGE].sentence
    assert [why.render(reason=reason, cell="outage") for reason in ("", "outage", "429")] == [
        sentence,
        sentence,
        "429",
    ]
    assert why.render(reason="", cell="pending_qa") == "pending qa"


def test_whoever_approves_by_the_dozen_is_named_with_the_numbers(web: Web):
    for _ in range(7):
        task, _ = brought(web.ledger, TaskStatus.AWAITING_APPROVAL)
        web.ledger.approve(task.id, actor=OPERATOR, reason="ok")
    page = main_of(web.browser().get("/inbox").text)
    assert "ana said yes 7 times in 24 hours, up to 7 within one minute" in page
    assert "7 hasty, 2 in a row" in page
    assert page.index("ana said yes") > page.index('class="groups"')  # what waits comes first
    told = stamps(list(web.ledger.answered(0)))
    assert [(each["name"], each["answers"], each["per_minute"]) for each in told] == [("ana", 7, 7)]


@each_row(
    ("seconds", "most"),
    [
        ([], 0),
        ([5], 1),
        ([0, 60, 120], 1),
        ([0, 59.9, 60.1, 119], 3),
        ([0, 1, 2, 61.5, 62, 62.5, 63], 4),
    ],
)
def test_the_busiest_minute_counts_what_lies_within_one_minute(seconds: list[float], most: int):
    assert busiest_minute([int(each * 1e6) for each in seconds]) == most


# --- what is done


@pytest.mark.criterion("L17")
def test_every_deed_is_for_operators_at_the_door_already():
    deeds = [each for each in ROUTES if each.path.startswith("/inbox/") and each.method == "POST"]
    assert len(deeds) == 4
    assert {each.roles for each in deeds} == {OPERATORS}


@pytest.mark.criterion("L17")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.LEAD])
def test_who_may_only_look_sees_no_button_and_is_refused(web: Web, role: Role):
    waiting = item_of(web, web.tasks[TaskStatus.BLOCKED])
    form = {"items": waiting.item.id, "reason": "because", "verb": "unblock"}
    for deed in DEEDS:
        client = web.client(role, Origin="http://127.0.0.1:8787")
        answer = client.post(f"/inbox/{deed}", data=form)
        assert answer.status_code == 403
    assert web.ledger.inbox_item(waiting.item.id).item.state is InboxState.OPEN
    assert web.ledger.task(waiting.task).status is TaskStatus.BLOCKED
    if role is Role.VIEWER:
        page = main_of(web.browser(role).get("/inbox").text)
        assert waiting.item.id in page
        assert "<form" not in page.partition("<dialog")[0]
        assert "/inbox/" not in page


def test_taking_a_thing_makes_it_yours(web: Web):
    waiting = item_of(web, web.tasks[TaskStatus.BLOCKED])
    browser = web.browser()
    answer = browser.post("/inbox/ack", data={"items": waiting.item.id})
    assert (answer.status_code, answer.headers["location"]) == (303, "/inbox")
    item = web.ledger.inbox_item(waiting.item.id).item
    assert (item.state, item.owner) == (InboxState.ACKED, "operator:operator-browser")
    assert "«fix the parser» is taken" in browser.get("/inbox").text


@pytest.mark.criterion("L03")
def test_resolving_takes_an_outcome_and_keeps_it(web: Web):
    item = item_of(web, web.tasks[TaskStatus.BLOCKED]).item.id
    browser = web.browser()
    refused = browser.post("/inbox/resolve", data={"items": item, "reason": "  "})
    assert refused.status_code == 422
    assert web.ledger.inbox_item(item).item.state is InboxState.OPEN
    browser.post("/inbox/resolve", data={"items": item, "reason": "mended by hand"})
    found = web.ledger.inbox_item(item).item
    assert (found.state, found.outcome) == (InboxState.RESOLVED, "mended by hand")


@pytest.mark.parametrize(("until", "seconds"), [("1h", 3600), ("4h", 14400)])
def test_putting_off_is_for_a_time(web: Web, until: str, seconds: int):
    item = item_of(web, web.tasks[TaskStatus.BLOCKED]).item.id
    web.browser().post("/inbox/snooze", data={"items": item, "until": until})
    found = web.ledger.inbox_item(item).item
    assert found.snoozed_until is not None
    assert found.snoozed_until - found.updated_at == seconds * 10**6


def test_tomorrow_is_the_next_morning_here(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        then = time.localtime(time.time() + seconds_until("tomorrow"))
        midnight = time.localtime(time.time() + 86400)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (then.tm_hour, then.tm_min) in ((8, 0), (7, 59))
    assert then.tm_yday == midnight.tm_yday or then.tm_isdst != midnight.tm_isdst


def test_a_time_that_is_not_offered_is_refused(web: Web):
    item = item_of(web, web.tasks[TaskStatus.BLOCKED]).item.id
    answer = web.browser().post("/inbox/snooze", data={"items": item, "until": "900d"})
    assert answer.status_code == 422


def test_a_deed_for_a_cause_reaches_every_member(web: Web):
    tasks = [failed(web, f"night {n}") for n in range(3)]
    items = [item_of(web, task).item.id for task in tasks]
    page = web.browser().get("/inbox").text
    ids = next(ids for ids in re.findall(r'name="items" value="([^"]+)"', page) if items[2] in ids)
    assert set(items) <= set(ids.split())
    web.browser().post("/inbox/resolve", data={"items": " ".join(items), "reason": "one cause"})
    assert {web.ledger.inbox_item(item).item.outcome for item in items} == {"one cause"}


@pytest.mark.parametrize("items", ["", " ", "inb_nothing", "tsk_0", "inb_*"])
def test_what_is_not_there_is_refused_and_nothing_breaks(web: Web, items: str):
    answer = web.browser().post("/inbox/ack", data={"items": items})
    assert answer.status_code in (404, 422)


@pytest.mark.parametrize(
    ("status", "verb", "reason", "becomes"),
    [
        (TaskStatus.AWAITING_APPROVAL, "approve", "", TaskStatus.RUNNING),
        (TaskStatus.AWAITING_APPROVAL, "reject", "not this", TaskStatus.BLOCKED),
        (TaskStatus.NEEDS_REVIEW, "accept", "I looked", TaskStatus.SUCCEEDED),
        (TaskStatus.NEEDS_REVIEW, "send_back", "no tests", TaskStatus.QUEUED),
        (TaskStatus.BLOCKED, "unblock", "", TaskStatus.QUEUED),
        (TaskStatus.FAILED, "retry", "the disk was full", TaskStatus.QUEUED),
    ],
)
def test_a_task_is_dealt_with_right_here(
    web: Web, status: TaskStatus, verb: str, reason: str, becomes: TaskStatus
):
    waiting = item_of(web, web.tasks[status])
    browser = web.browser()
    shown = main_of(browser.get("/inbox").text).partition(f'id="{waiting.item.id}"')[2]
    assert f'name="verb" value="{verb}"' in shown.partition('data-item tabindex="-1"')[2]
    form = {"items": waiting.item.id, "verb": verb, "reason": reason, **asked_of(waiting)}
    answer = browser.post("/inbox/act", data=form)
    assert answer.status_code == 303, answer.text
    assert web.ledger.task(waiting.task).status is becomes
    actors = {told.event.actor for told in web.ledger.events(waiting.task)}
    assert "operator:operator-browser" in actors


@pytest.mark.parametrize(
    ("status", "verb"),
    [
        (TaskStatus.NEEDS_REVIEW, "accept"),
        (TaskStatus.NEEDS_REVIEW, "send_back"),
        (TaskStatus.NEEDS_REVIEW, "retry"),
        (TaskStatus.AWAITING_APPROVAL, "reject"),
    ],
)
def test_what_goes_into_the_history_needs_a_reason(web: Web, status: TaskStatus, verb: str):
    waiting = item_of(web, web.tasks[status])
    form = {"items": waiting.item.id, "verb": verb, **asked_of(waiting)}
    answer = web.browser().post("/inbox/act", data=form)
    assert answer.status_code == 422
    assert "reason" in answer.text
    assert web.ledger.task(waiting.task).status is status


@pytest.mark.parametrize("verb", ["terminate", "create", "__init__", "_item", "cancel", ""])
def test_only_what_is_offered_can_be_asked_for(web: Web, verb: str):
    waiting = item_of(web, web.tasks[TaskStatus.BLOCKED])
    form = {"items": waiting.item.id, "verb": verb, "reason": "because"}
    assert web.browser().post("/inbox/act", data=form).status_code == 422
    assert web.ledger.task(waiting.task).status is TaskStatus.BLOCKED


@each_row(
    ("cell", "suggested", "verbs"),
    [
        ("blocked", "truegreen unblock tsk_1", ["unblock"]),
        ("undecided", "truegreen review tsk_1 --accept|--reject", ["accept", "send_back"]),
        ("silent_failure", "truegreen show tsk_1", ["retry"]),
        ("pending_qa", "truegreen show tsk_1", ["accept", "send_back"]),
        ("zombie", "truegreen show tsk_1; find the process", []),
        ("zombie", "truegreen terminate tsk_1; find the process", []),
        ("blocked", "", []),
    ],
)
def test_what_is_offered_is_what_the_record_suggests(cell: str, suggested: str, verbs: list[str]):
    assert [choice.verb for choice in choices(cell, suggested)] == verbs


@pytest.mark.criterion("L12")
def test_news_that_did_not_get_out_is_said_above_everything_that_waits(web: Web):
    assert "given up" not in web.browser().get("/inbox").text
    web.ledger.owe("ops", [Owed("evt_1", "body")], (1, 1))
    (post,) = web.ledger.take_posts("ops")
    web.ledger.unposted(post.id, "it answered 410", again_in=None)
    unsent = "1 message is left of the outlet ops, which truegreen.toml has no more"
    page = web.browser().get("/inbox").text.partition("<main")[2]
    assert unsent in page.partition('class="groups"')[0]
    assert 'href="/settings#outlets"' in page
    assert 'id="outlets"' in web.browser().get("/settings").text
    seen = web.browser(Role.VIEWER).get("/inbox").text
    assert unsent in seen
    assert "/settings#outlets" not in seen


def test_a_command_stands_only_where_no_button_does_the_same(web: Web):
    command = f"truegreen review {web.tasks[TaskStatus.NEEDS_REVIEW]}"
    assert command not in main_of(web.browser().get("/inbox").text)
    assert command in main_of(web.browser(Role.VIEWER).get("/inbox").text)


def test_every_button_of_a_group_says_how_many_it_is_about(web: Web):
    failed(web, "nightly")
    failed(web, "weekly")
    page = main_of(web.browser().get("/inbox").text)
    heads = re.findall(r'<header class="group-head">.*?</header>', page, re.DOTALL)
    head = next(each for each in heads if "silent failure: gate tests" in each)
    many = re.search(r"(\d+) alike", head)
    assert many
    assert re.findall(r">((?:Take|Snooze|Resolve) all.*?)<", head) == [
        f"{word} all {many[1]}" for word in ("Take", "Snooze", "Resolve", "Resolve")
    ]


def test_a_question_that_a_task_waits_for_has_no_button_to_resolve_it(web: Web) -> None:
    task = opened(web.ledger, title="deploy", wait_for=("human:deploy it?",)).id
    (item,) = [each.item.id for each in web.ledger.inbox() if each.task == task]
    page = web.browser().get("/inbox").text
    forms = [form for form in page.split("<form") if f'value="{item}"' in form]
    assert any("/inbox/act" in form for form in forms)
    assert not any("/inbox/resolve" in form for form in forms)
    refused = web.browser().post("/inbox/resolve", data={"items": item, "reason": "yes"})
    assert refused.status_code == 409
    assert "an outcome is no answer to it" in refused.text
