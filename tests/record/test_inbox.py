"""What waits for a person: one item per cause, taken, put off, dealt with, or gone by itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import (
    OPERATOR,
    S,
    agent_of,
    brought,
    declared,
    ended,
    judged,
    opened,
    started,
)
from truegreen.contract import Budget
from truegreen.errors import InvalidInput, NotFound, Refused, Stale
from truegreen.model import (
    Cell,
    ExitDetail,
    InboxState,
    Mode,
    Note,
    Outcome,
    Severity,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start, open_ledger

if TYPE_CHECKING:
    from truegreen.facts import Ticket
    from truegreen.record.rows import Event, InboxItem

ONCE = Budget(attempts=1)


def silent_failure(ledger: Ledger, **terms: Any) -> Ticket:
    ticket = started(ledger, budget=ONCE, **terms)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    return ticket


def only(ledger: Ledger) -> InboxItem:
    (waiting,) = ledger.inbox()
    return waiting.item


def last(ledger: Ledger, task: str) -> Event:
    return ledger.events(task)[-1].event


@pytest.mark.criterion("A06", "A03", "C11", "L03")
def test_a_silent_failure_is_one_critical_item_and_a_replay_makes_no_second(
    ledger: Ledger,
) -> None:
    ticket = started(ledger, budget=ONCE, title="nightly triage")
    declared(ledger, ticket)
    from tests.record.lives import verdict  # noqa: PLC0415 - one use

    failed = verdict(ledger, ticket, Outcome.FAILED)
    for _ in range(3):
        ledger.judge(ticket, failed, key="v")
    with pytest.raises(Stale):
        ledger.judge(ticket, failed)
    item = only(ledger)
    assert (item.cell, item.severity, item.times) == (Cell.SILENT_FAILURE, Severity.CRITICAL, 1)
    assert (item.title, item.reason) == ("nightly triage", "gate tests: failed")
    assert (item.state, item.outcome, item.owner) == (InboxState.OPEN, None, "")
    assert item.next == f"truegreen show {ticket.task}"
    assert item.run_key == ledger.run(ticket.run)[0].key
    assert ledger.inbox()[0].task == ticket.task
    assert item.created_at == ledger.task(ticket.task).updated_at


@pytest.mark.criterion("A22", "L13")
def test_the_third_night_is_one_item_with_a_count(ledger: Ledger) -> None:
    nights = [silent_failure(ledger, title="nightly triage") for _ in range(3)]
    other = silent_failure(ledger, title="another routine")
    items = {w.item.title: w for w in ledger.inbox()}
    assert len(items) == len(ledger.inbox()) == 2
    nightly = items["nightly triage"]
    assert (nightly.item.times, nightly.task) == (3, nights[-1].task)
    assert (items["another routine"].item.times, items["another routine"].task) == (1, other.task)
    ledger.resolve(nightly.item.id, outcome="fixed the connector", actor=OPERATOR)
    silent_failure(ledger, title="nightly triage")
    again = next(w.item for w in ledger.inbox() if w.item.title == "nightly triage")
    assert (again.times, again.id != nightly.item.id) == (1, True)


WAITS: list[tuple[str, ExitDetail | None, Outcome | None, str, Severity]] = [
    ("silent failure", ExitDetail.COMPLETED, Outcome.FAILED, "silent_failure", Severity.CRITICAL),
    ("undecided", ExitDetail.COMPLETED, Outcome.INCONCLUSIVE, "undecided", Severity.NORMAL),
    ("unverified", ExitDetail.COMPLETED, Outcome.UNKNOWN, "unverified", Severity.NORMAL),
    ("cap", ExitDetail.COST_CAP, Outcome.FAILED, "cap_hit", Severity.HIGH),
    ("outage", ExitDetail.OOM, None, "outage", Severity.HIGH),
    ("blocked", ExitDetail.REFUSED, None, "blocked", Severity.HIGH),
    ("hindered", ExitDetail.EGRESS_DENIED, Outcome.FAILED, "blocked", Severity.HIGH),
    ("red and red", ExitDetail.AGENT_ERROR, Outcome.FAILED, "failed", Severity.NORMAL),
    ("fine", ExitDetail.COMPLETED, Outcome.PASSED, "", Severity.NORMAL),
    ("rescued", ExitDetail.AGENT_ERROR, Outcome.PASSED, "", Severity.NORMAL),
    ("stopped", ExitDetail.STOPPED, None, "", Severity.NORMAL),
]


@pytest.mark.criterion("A04", "A06", "I01", "L03")
@pytest.mark.parametrize(("name", "detail", "outcome", "cell", "severity"), WAITS)
def test_what_cannot_go_on_by_itself_waits_for_somebody(
    ledger: Ledger,
    name: str,
    detail: ExitDetail,
    outcome: Outcome | None,
    cell: str,
    severity: Severity,
) -> None:
    ticket = started(ledger, budget=ONCE, title=name)
    ledger.end_run(ticket, ended(detail, message="so it was"))
    if outcome:
        judged(ledger, ticket, outcome)
    if not cell:
        assert ledger.inbox() == []
        return
    item = only(ledger)
    assert (item.cell, item.severity, item.times) == (cell, severity, 1)
    assert item.reason == (f"gate tests: {outcome}" if outcome else "so it was")


def test_another_attempt_needs_nobody(ledger: Ledger) -> None:
    ticket = started(ledger, budget=Budget(attempts=2))
    declared(ledger, ticket)
    assert judged(ledger, ticket, Outcome.FAILED).status is S.QUEUED
    assert ledger.inbox() == []


@pytest.mark.criterion("L03")
def test_two_tasks_that_wait_are_not_settled_by_an_answer_to_one(ledger: Ledger) -> None:
    for status in (S.AWAITING_APPROVAL, S.NEEDS_REVIEW, S.BLOCKED):
        first, _ = brought(ledger, status)
        second, _ = brought(ledger, status)
        if status is S.AWAITING_APPROVAL:
            ledger.approve(second.id, actor=OPERATOR)
        elif status is S.NEEDS_REVIEW:
            ledger.review(second.id, accept=True, actor=OPERATOR, reason="fine")
        else:
            ledger.unblock(second.id, actor=OPERATOR, reason="go")
        waiting = [w.task for w in ledger.inbox()]
        assert first.id in waiting, status
        assert second.id not in waiting, status


@pytest.mark.criterion("L03", "C04")
def test_acknowledging_names_an_owner_and_is_written_down(ledger: Ledger) -> None:
    ticket = silent_failure(ledger)
    item = ledger.ack(only(ledger).id, actor=OPERATOR)
    assert (item.state, item.owner, item.outcome) == (InboxState.ACKED, "operator:ana", None)
    assert only(ledger) == item
    event = last(ledger, ticket.task)
    assert (event.event, event.actor) == (Note.INBOX, "operator:ana")
    assert json.loads(event.data) == {"item": item.id, "state": "acked"}


def test_a_question_that_a_task_waits_for_is_answered_and_not_resolved(ledger: Ledger) -> None:
    before = opened(ledger, wait_for=("human:deploy it?",))
    at_work, _ = brought(ledger, TaskStatus.AWAITING_APPROVAL)
    for task in (before, at_work):
        (item,) = [each.item for each in ledger.inbox() if each.task == task.id]
        with pytest.raises(Refused, match=f"truegreen approve {task.id} or truegreen reject"):
            ledger.resolve(item.id, outcome="yes", actor=OPERATOR)
        assert ledger.inbox_item(item.id).item == item
        ledger.ack(item.id, actor=OPERATOR)
        ledger.cancel(task.id, actor=OPERATOR)
        assert ledger.inbox_item(item.id).item.state is InboxState.RESOLVED
    undecided, _ = brought(ledger, TaskStatus.NEEDS_REVIEW)
    (item,) = [each.item for each in ledger.inbox() if each.task == undecided.id]
    assert ledger.resolve(item.id, outcome="let it be", actor=OPERATOR).outcome == "let it be"


@pytest.mark.criterion("L03")
def test_resolving_needs_an_outcome_and_is_final(ledger: Ledger) -> None:
    ticket = silent_failure(ledger)
    item = only(ledger)
    for empty in ("", "  \n"):
        with pytest.raises(InvalidInput):
            ledger.resolve(item.id, outcome=empty, actor=OPERATOR)
    assert only(ledger) == item
    done = ledger.resolve(item.id, outcome="moved to a new key", actor=OPERATOR)
    assert (done.state, done.outcome) == (InboxState.RESOLVED, "moved to a new key")
    assert ledger.inbox() == []
    assert last(ledger, ticket.task).reason == "moved to a new key"
    for again in (
        lambda: ledger.ack(item.id, actor=OPERATOR),
        lambda: ledger.snooze(item.id, seconds=60, actor=OPERATOR),
        lambda: ledger.resolve(item.id, outcome="again", actor=OPERATOR),
    ):
        with pytest.raises(Stale, match="moved to a new key"):
            again()
    with pytest.raises(NotFound):
        ledger.ack("inb_nowhere", actor=OPERATOR)


@pytest.mark.criterion("L13")
def test_a_snoozed_item_comes_back_by_itself(
    made_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(made_url)
    store: Any = ledger.store
    now = 10**15
    monkeypatch.setattr(store, "clock", lambda: now)
    silent_failure(ledger)
    item = ledger.snooze(only(ledger).id, seconds=3600, actor=OPERATOR)
    assert (item.state, item.snoozed_until) == (InboxState.SNOOZED, now + 3_600_000_000)
    assert ledger.inbox() == []
    now += 3_600_000_000 - 1
    assert ledger.inbox() == []
    now += 1
    assert only(ledger).id == item.id
    assert ledger.ack(item.id, actor=OPERATOR).snoozed_until is None
    now -= 3_000_000_000
    assert only(ledger).state is InboxState.ACKED
    ledger.close()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 31 * 86400])
def test_nothing_is_put_off_for_ever(ledger: Ledger, seconds: float) -> None:
    silent_failure(ledger)
    item = only(ledger)
    with pytest.raises(InvalidInput):
        ledger.snooze(item.id, seconds=seconds, actor=OPERATOR)
    assert only(ledger) == item
    ledger.snooze(item.id, seconds=30 * 86400, actor=OPERATOR)
    assert ledger.inbox() == []


@pytest.mark.parametrize(
    "status", [S.NEEDS_REVIEW, S.BLOCKED, S.AWAITING_APPROVAL, S.FAILED, S.PENDING_QA]
)
def test_an_item_is_gone_when_its_task_moves_on(ledger: Ledger, status: TaskStatus) -> None:
    ways: dict[TaskStatus, list[str]] = {
        S.NEEDS_REVIEW: ["accept", "reject", "retry", "cancel", "terminate"],
        S.BLOCKED: ["unblock", "cancel", "terminate"],
        S.AWAITING_APPROVAL: ["approve", "cancel", "terminate"],
        S.FAILED: ["retry"],
        S.PENDING_QA: ["cancel"],
    }
    acts = {
        "accept": lambda t: ledger.review(t, accept=True, actor=OPERATOR, reason="x"),
        "reject": lambda t: ledger.review(t, accept=False, actor=OPERATOR, reason="x"),
        "retry": lambda t: ledger.retry(t, actor=OPERATOR, reason="x"),
        "cancel": lambda t: ledger.cancel(t, actor=OPERATOR),
        "terminate": lambda t: ledger.terminate(t, actor=OPERATOR),
        "unblock": lambda t: ledger.unblock(t, actor=OPERATOR, reason="x"),
        "approve": lambda t: ledger.approve(t, actor=OPERATOR),
    }
    for way in ways[status]:
        task, _ = brought(ledger, status)
        assert len(ledger.inbox()) == (status is not S.PENDING_QA)
        acts[way](task.id)
        assert ledger.inbox() == [], way


@pytest.mark.criterion("L03")
def test_the_most_urgent_and_then_the_oldest_comes_first(ledger: Ledger) -> None:
    made = []
    for n, (name, detail, outcome, cell, severity) in enumerate([*WAITS[:8], *WAITS[:8]]):
        if cell:
            ticket = started(ledger, budget=ONCE, title=f"{name} {n}")
            ledger.end_run(ticket, ended(detail or ExitDetail.COMPLETED))
            if outcome:
                judged(ledger, ticket, outcome)
            made.append((["critical", "high", "normal"].index(severity), n, ticket.task))
    wanted = [task for _, _, task in sorted(made)]
    assert [w.task for w in ledger.inbox()] == wanted
    assert [w.task for w in ledger.inbox(limit=3)] == wanted[:3]


@pytest.mark.criterion("A06")
def test_a_pause_waits_for_somebody_once(ledger: Ledger) -> None:
    ticket = ledger.start(opened(ledger, mode=Mode.ASSISTED).id, Start("x"))
    ledger.checkpoint(ticket, "git push", actor=agent_of(ticket), key="c")
    ledger.checkpoint(ticket, "git push", actor=agent_of(ticket), key="c")
    item = only(ledger)
    assert (item.cell, item.reason, item.times) == ("awaiting_approval", "git push", 1)
