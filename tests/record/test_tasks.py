"""Opening a task, letting a blocked one go on, trying one again."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import (
    LEAD,
    OPERATOR,
    S,
    agent_of,
    brought,
    contract,
    declared,
    ended,
    finding,
    judged,
    started,
    verdict,
)
from truegreen.contract import Budget, QaTerms, contract_digest, read_contract
from truegreen.errors import (
    BudgetSpent,
    Forbidden,
    IllegalMove,
    InvalidInput,
    KeyReused,
    NotFound,
    Refused,
    Stale,
    Terminated,
)
from truegreen.facts import Actor
from truegreen.model import (
    Cell,
    EventLevel,
    ExitDetail,
    FindingOutcome,
    Mode,
    Move,
    Note,
    Outcome,
    Role,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start

if TYPE_CHECKING:
    from truegreen.record.rows import Event


def events(ledger: Ledger, task: str) -> list[Event]:
    return [told.event for told in ledger.events(task)]


@pytest.mark.criterion("C04", "O03")
def test_opening_writes_the_task_and_its_first_event(ledger: Ledger) -> None:
    terms = contract(title="fix it", goal="all of it", role="coder", mode=Mode.ASSISTED, priority=7)
    task = ledger.open(terms, actor=LEAD, key="open-1")
    assert task == ledger.task(task.id)
    assert (task.title, task.role, task.mode, task.priority) == ("fix it", "coder", "assisted", 7)
    assert (task.status, task.verdict, task.fence, task.attempt) == (S.QUEUED, "unknown", 0, 0)
    assert (task.exit_reason, task.run_status, task.cell, task.settled_at) == (None,) * 4
    assert (task.rescued, task.overridden, task.sealed_at) == (False, False, None)
    assert task.acceptance is None
    assert task.created_by == "lead:lead"
    (event,) = events(ledger, task.id)
    assert (event.event, event.actor, event.fence) == (Note.OPEN, "lead:lead", 0)
    assert (event.idempotency_key, event.revision, event.run_id) == ("open-1", 1, None)
    assert (event.from_status, event.to_status) == (None, None)
    assert event.at == task.created_at
    assert json.loads(event.data)["contract"] == task.contract_digest


def test_the_contract_is_frozen_whole(ledger: Ledger) -> None:
    terms = contract(
        budget=Budget(attempts=5, deferrals=1, qa_rounds=4), qa=QaTerms(roles=("coder",))
    )
    task = ledger.open(terms, actor=OPERATOR)
    assert (task.attempts_max, task.deferrals_max, task.qa_rounds_max) == (5, 1, 4)
    assert read_contract(ledger.dossier(task.id).contract) == terms
    assert task.contract_digest == contract_digest(terms)


def test_a_child_names_its_parent_and_an_unknown_parent_is_refused(ledger: Ledger) -> None:
    parent = ledger.open(contract(), actor=LEAD)
    child = ledger.open(contract(), actor=LEAD, parent=parent.id)
    assert child.parent_key == parent.key
    with pytest.raises(NotFound, match="tsk_nowhere"):
        ledger.open(contract(), actor=LEAD, parent="tsk_nowhere")
    assert len(ledger.page().tasks) == 2


@pytest.mark.criterion("C11")
def test_opening_again_under_a_key_gives_the_first_task(ledger: Ledger) -> None:
    first = ledger.open(contract(), actor=OPERATOR, key="k")
    started(ledger, first.id)
    again = ledger.open(contract(), actor=OPERATOR, key="k")
    assert (again.id, again.status) == (first.id, S.RUNNING)
    assert len(ledger.page().tasks) == 1
    with pytest.raises(KeyReused):
        ledger.open(contract(title="something else"), actor=OPERATOR, key="k")
    with pytest.raises(KeyReused):
        ledger.cancel(first.id, actor=OPERATOR, key="k")
    assert ledger.task(first.id).status is S.RUNNING


@pytest.mark.criterion("C11")
def test_opening_at_once_under_one_key_makes_one_task(ledger: Ledger) -> None:
    with ThreadPoolExecutor(6) as pool:
        tasks = list(
            pool.map(lambda _: ledger.open(contract(), actor=OPERATOR, key="k"), range(12))
        )
    assert len({task.id for task in tasks}) == 1
    assert len(ledger.page().tasks) == 1


# -- unblock -----------------------------------------------------------------------------------


@pytest.mark.criterion("D05", "C04", "I04")
def test_unblocking_into_another_mode_pays_an_attempt_and_is_written_down(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.BLOCKED)
    again = ledger.unblock(
        task.id, actor=OPERATOR, reason="I am here now", mode=Mode.ASSISTED, key="u"
    )
    assert again == ledger.task(task.id)
    assert (again.status, again.mode, again.attempts) == (S.QUEUED, Mode.ASSISTED, 1)
    assert again.settled_at is None
    event = events(ledger, task.id)[-1]
    assert (event.event, event.from_status, event.to_status) == (
        Move.UNBLOCK,
        S.BLOCKED,
        S.QUEUED,
    )
    assert (event.actor, event.reason) == ("operator:ana", "I am here now")
    assert event.idempotency_key == "u"
    data = json.loads(event.data)
    assert (data["mode"], data["attempts"]) == ("assisted", [1, 3])


@pytest.mark.criterion("D05")
def test_another_mode_approves_nothing_by_itself(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.AWAITING_APPROVAL)
    with pytest.raises(IllegalMove):
        ledger.unblock(task.id, actor=OPERATOR, reason="let it", mode=Mode.AUTONOMOUS)
    assert ledger.task(task.id) == task


@pytest.mark.criterion("D06", "C03")
def test_only_a_person_unblocks(ledger: Ledger) -> None:
    for role in (role for role in Role if role is not Role.OPERATOR):
        task, ticket = brought(ledger, S.BLOCKED)
        assert ticket
        actor = agent_of(ticket) if role is Role.AGENT else Actor(role, "x")
        with pytest.raises(Forbidden):
            ledger.unblock(task.id, actor=actor, reason="let me")
        assert ledger.claim_next(Start("test")) == []
        assert ledger.task(task.id) == task


@pytest.mark.parametrize("given", [0, 1])
def test_unblocking_without_an_attempt_to_spare_grants_one_by_name(
    ledger: Ledger, given: int
) -> None:
    ticket = started(ledger, budget=Budget(attempts=1))
    ledger.end_run(ticket, ended(ExitDetail.REFUSED))
    more = ledger.unblock(ticket.task, actor=OPERATOR, reason="again", more_attempts=given)
    assert (more.status, more.attempts, more.attempts_max) == (S.QUEUED, 1, 2)
    granted = events(ledger, ticket.task)[-1]
    assert (granted.actor, json.loads(granted.data)["more_attempts"]) == (str(OPERATOR), 1)
    started(ledger, ticket.task)


def test_unblocking_with_an_attempt_to_spare_grants_none(ledger: Ledger) -> None:
    ticket = started(ledger, budget=Budget(attempts=2))
    ledger.end_run(ticket, ended(ExitDetail.REFUSED))
    task = ledger.unblock(ticket.task, actor=OPERATOR, reason="again")
    assert (task.attempts, task.attempts_max) == (1, 2)
    assert "more_attempts" not in json.loads(events(ledger, ticket.task)[-1].data)


@pytest.mark.criterion("I19")
def test_a_budget_stays_finite_whatever_is_granted(ledger: Ledger) -> None:
    for more in (-1, 98, 100, 10**30):
        for status in (S.BLOCKED, S.FAILED, S.NEEDS_REVIEW):
            task, _ = brought(ledger, status)
            verb = ledger.unblock if status is S.BLOCKED else ledger.retry
            too_much = more if more < 0 else max(more, 101 - task.attempts_max)
            with pytest.raises(InvalidInput, match=r"between 1 and 100|out of range"):
                verb(task.id, actor=OPERATOR, reason="x", more_attempts=too_much)
            assert ledger.task(task.id) == task


# -- retry and reopen --------------------------------------------------------------------------


@pytest.mark.criterion("C13", "C12")
def test_a_person_sends_an_undecided_task_round_again_and_pays_for_it(ledger: Ledger) -> None:
    task, ticket = brought(ledger, S.NEEDS_REVIEW)
    assert ticket
    again = ledger.retry(task.id, actor=OPERATOR, reason="try harder", key="r")
    assert (again.status, again.attempts) == (S.QUEUED, 1)
    event = events(ledger, task.id)[-1]
    assert (event.event, event.from_status, event.actor) == (
        Move.RETRY,
        S.NEEDS_REVIEW,
        "operator:ana",
    )
    assert ledger.retry(task.id, actor=OPERATOR, reason="try harder", key="r") == again
    first = ledger.run(ticket.run)[0]
    second = started(ledger, task.id)
    assert ledger.run(second.run)[0].attempt == 2
    assert ledger.run(ticket.run)[0] == first


@pytest.mark.criterion("I06", "C15", "C13")
@pytest.mark.parametrize("status", [S.FAILED, S.CANCELED, S.SUCCEEDED])
def test_reopening_resets_the_budget_and_says_so(ledger: Ledger, status: TaskStatus) -> None:
    task, ticket = brought(ledger, status)
    assert ticket
    assert task.settled_at is not None
    run = ledger.run(ticket.run)[0]
    again = ledger.retry(task.id, actor=OPERATOR, reason="the bug is back", key="r")
    assert ledger.retry(task.id, actor=OPERATOR, reason="the bug is back", key="r") == again
    assert again == ledger.task(task.id)
    assert (again.status, again.attempts, again.deferrals, again.qa_rounds) == (
        S.QUEUED,
        0,
        0,
        0,
    )
    assert (again.settled_at, again.acceptance, again.verdict) == (None, None, Outcome.UNKNOWN)
    assert again.cell is None, "a task that is open again stands in no green cell"
    event = events(ledger, task.id)[-1]
    assert (event.event, event.from_status, event.to_status) == (Move.REOPEN, status, S.QUEUED)
    assert (event.reason, event.revision) == ("the bug is back", task.revision + 1)
    data = json.loads(event.data)
    assert data["attempts"] == [0, task.attempts_max]
    assert data.get("acceptance") == task.acceptance
    second = started(ledger, task.id)
    assert (second.fence, ledger.run(second.run)[0].attempt) == (again.fence + 1, 2)
    assert ledger.run(ticket.run)[0] == run


def test_reopening_can_grant_more_attempts(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.FAILED)
    again = ledger.retry(task.id, actor=OPERATOR, reason="x", more_attempts=2)
    assert (again.attempts, again.attempts_max) == (0, task.attempts_max + 2)
    assert json.loads(events(ledger, task.id)[-1].data)["attempts"] == [0, again.attempts_max]


@pytest.mark.criterion("I06")
def test_a_failed_task_stays_failed_without_an_operator(ledger: Ledger) -> None:
    for role in (role for role in Role if role is not Role.OPERATOR):
        task, _ = brought(ledger, S.FAILED)
        with pytest.raises(Forbidden):
            ledger.retry(task.id, actor=Actor(role, "x"), reason="again")
        with pytest.raises(InvalidInput, match="reason is needed"):
            ledger.retry(task.id, actor=OPERATOR, reason="  ")
        with pytest.raises((IllegalMove, BudgetSpent)):
            started(ledger, task.id)
        assert ledger.task(task.id) == task


@pytest.mark.criterion("F26")
def test_badges_survive_a_reopening_and_what_follows(ledger: Ledger) -> None:
    ticket = started(ledger)
    ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED))
    task = judged(ledger, ticket, Outcome.PASSED)
    assert task.rescued
    assert ledger.retry(task.id, actor=OPERATOR, reason="again").rescued
    second = started(ledger, task.id)
    assert ledger.task(task.id).rescued
    declared(ledger, second)
    assert judged(ledger, second, Outcome.PASSED).rescued
    ledger.terminate(task.id, actor=OPERATOR)
    assert ledger.task(task.id).rescued


RETRY_LEADS_TO: dict[TaskStatus, Any] = {
    S.QUEUED: IllegalMove,
    S.RUNNING: Refused,
    S.AWAITING_APPROVAL: IllegalMove,
    S.PENDING_EVAL: S.QUEUED,
    S.FAILED_PENDING_EVAL: S.QUEUED,
    S.PENDING_QA: S.QUEUED,
    S.NEEDS_REVIEW: S.QUEUED,
    S.BLOCKED: IllegalMove,
    S.SUCCEEDED: S.QUEUED,
    S.FAILED: S.QUEUED,
    S.CANCELED: S.QUEUED,
    S.TERMINATED: Terminated,
}


@pytest.mark.criterion("C13")
def test_retry_from_every_status(ledger: Ledger) -> None:
    for status in TaskStatus:
        task, _ = brought(ledger, status)
        wanted = RETRY_LEADS_TO[status]
        if isinstance(wanted, TaskStatus):
            assert ledger.retry(task.id, actor=OPERATOR, reason="x").status is wanted
            # Whatever was going on is over: the next run starts, and is the only one.
            second = started(ledger, task.id)
            live = [run for run in ledger.dossier(task.id).runs if run.exit_reason is None]
            assert [run.id for run in live] == [second.run]
            assert [o.run for o in ledger.overdue()] == []
            runs = ledger.dossier(task.id).runs
            assert all(run.verdict is not Outcome.PENDING for run in runs)
        else:
            with pytest.raises(wanted):
                ledger.retry(task.id, actor=OPERATOR, reason="x")
            assert ledger.task(task.id) == task


@pytest.mark.criterion("C10")
def test_a_verdict_about_a_task_that_was_sent_round_again_is_refused(ledger: Ledger) -> None:
    task, ticket = brought(ledger, S.PENDING_EVAL)
    assert ticket
    ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.PASSED)])
    ledger.retry(task.id, actor=OPERATOR, reason="x")
    before = ledger.task(task.id)
    with pytest.raises(Stale):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
    assert ledger.task(task.id) == before
    assert [r.verb for r in ledger.dossier(task.id).refusals] == ["judge"]


def test_unblock_is_for_blocked_tasks_only(ledger: Ledger) -> None:
    for status in (s for s in TaskStatus if s is not S.BLOCKED):
        task, _ = brought(ledger, status)
        with pytest.raises(Terminated if status is S.TERMINATED else IllegalMove):
            ledger.unblock(task.id, actor=OPERATOR, reason="x", more_attempts=2)
        assert ledger.task(task.id) == task


@pytest.mark.criterion("C11")
def test_recovery_keys_belong_to_one_request(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.BLOCKED)
    other, _ = brought(ledger, S.BLOCKED)
    first = ledger.unblock(task.id, actor=OPERATOR, reason="x", key="u")
    assert ledger.unblock(task.id, actor=OPERATOR, reason="x", key="u") == first
    with pytest.raises(KeyReused):
        ledger.unblock(other.id, actor=OPERATOR, reason="x", key="u")
    with pytest.raises(KeyReused):
        ledger.retry(task.id, actor=OPERATOR, reason="x", key="u")
    assert (ledger.task(task.id), ledger.task(other.id)) == (first, other)


def test_unknown_tasks_are_not_found(ledger: Ledger) -> None:
    for verb in (ledger.retry, ledger.unblock):
        with pytest.raises(NotFound):
            verb("tsk_nowhere", actor=OPERATOR, reason="x")


@pytest.mark.criterion("C04", "M01")
def test_a_whole_life_reads_as_one_gapless_chain(ledger: Ledger) -> None:
    ticket = started(ledger, budget=Budget(attempts=2))
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    second = started(ledger, ticket.task)
    declared(ledger, second)
    judged(ledger, second, Outcome.PASSED)
    ledger.retry(ticket.task, actor=OPERATOR, reason="again")
    ledger.terminate(ticket.task, actor=OPERATOR, reason="enough")
    told = events(ledger, ticket.task)
    assert [e.revision for e in told] == list(range(1, len(told) + 1))
    moves = [(e.from_status, e.to_status) for e in told if e.to_status]
    assert [a[1] for a in moves[:-1]] == [b[0] for b in moves[1:]]
    assert moves[0][0] is S.QUEUED
    assert moves[-1][1] is ledger.task(ticket.task).status is S.TERMINATED
    assert all(e.actor and e.at and e.hash for e in told)
    assert told[-1].level is EventLevel.WARN
    assert {e.run_id for e in told if e.event in (Move.DECLARE, Move.RETRY, Move.ACCEPT)} == {
        ticket.run,
        second.run,
    }
    assert ledger.task(ticket.task).cell in (None, Cell.STOPPED)
