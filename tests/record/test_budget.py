"""Failure budgets: every way back to the queue pays, and the last failure is final."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.record.lives import (
    OPERATOR,
    S,
    agent_of,
    contract,
    declared,
    ended,
    judged,
    opened,
    started,
)
from truegreen.contract import Budget
from truegreen.errors import Forbidden, IllegalMove, InvalidInput, Refused
from truegreen.facts import Claim
from truegreen.model import NO_BLIND_RETRY, ClaimKind, ExitDetail, Outcome
from truegreen.record.ledger import Ledger, Start, open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from truegreen.facts import Ticket
    from truegreen.record.rows import Task

DATABASES = ("sqlite",)

D = ExitDetail


def charges(ledger: Ledger, task: str) -> list[str]:
    """Every charge of a task, in order, from its events alone."""
    data = [json.loads(told.event.data) for told in ledger.events(task)]
    return [charge for each in data for charge in each.get("charged", [])]


def red_gate(ledger: Ledger, ticket: Ticket) -> Task:
    declared(ledger, ticket)
    return judged(ledger, ticket, Outcome.FAILED)


def crash(ledger: Ledger, ticket: Ticket) -> Task:
    return ledger.end_run(ticket, ended(D.SIGNALED))


def admitted(ledger: Ledger, ticket: Ticket) -> Task:
    return ledger.end_run(ticket, ended(D.DECLARED_FAILURE))


def not_rescued(ledger: Ledger, ticket: Ticket) -> Task:
    ledger.end_run(ticket, ended(D.UNCLAIMED))
    return judged(ledger, ticket, Outcome.FAILED)


def rejected(ledger: Ledger, ticket: Ticket) -> Task:
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.INCONCLUSIVE)
    return ledger.review(ticket.task, accept=False, actor=OPERATOR, reason="no")


def lost(ledger: Ledger, ticket: Ticket) -> Task:
    ledger.heartbeat(ticket, lease_seconds=-1)
    return ledger.lose(ledger.overdue()[0])


FAILURES: dict[str, Callable[[Ledger, Ticket], Task]] = {
    "red gate": red_gate,
    "crash": crash,
    "admitted": admitted,
    "not rescued": not_rescued,
    "rejected": rejected,
    "lost": lost,
}


@pytest.mark.criterion("I01", "I02", "I04", "I16", "F03")
@pytest.mark.parametrize("failure", FAILURES)
def test_two_failures_go_round_again_and_the_third_is_final(ledger: Ledger, failure: str) -> None:
    task = opened(ledger)
    assert (task.attempts, task.attempts_max) == (0, 3)
    for n in (1, 2, 3):
        ticket = started(ledger, task.id)
        now = FAILURES[failure](ledger, ticket)
        assert (now.status, now.attempts) == (S.QUEUED if n < 3 else S.FAILED, n)
        assert charges(ledger, task.id) == ["attempts"] * n
        waiting = [w for w in ledger.inbox() if w.task == task.id]
        assert len(waiting) == (n == 3)
    before = ledger.task(task.id)
    with pytest.raises(IllegalMove):
        started(ledger, task.id)
    assert ledger.claim_next(Start("x")) == []
    assert ledger.task(task.id) == before
    assert [run.attempt for run in ledger.dossier(task.id).runs] == [1, 2, 3]


@pytest.mark.criterion("I02", "I03")
def test_an_agents_wish_for_another_go_counts_for_nothing(ledger: Ledger) -> None:
    task = opened(ledger)
    starts = 0
    for _ in range(319):
        tickets = ledger.claim_next(Start("x"))
        if not tickets:
            break
        starts += 1
        wish = Claim(kind=ClaimKind.FAILED, reason="retry me", extra={"retry": True, "budget": 99})
        ledger.declare(tickets[0], wish, actor=agent_of(tickets[0]))
        with pytest.raises(Forbidden):
            ledger.retry(task.id, actor=agent_of(tickets[0]), reason="please")
        ledger.end_run(tickets[0], ended(D.DECLARED_FAILURE))
    assert (starts, ledger.task(task.id).status) == (3, S.FAILED)
    assert len(ledger.inbox()) == 1


@pytest.mark.criterion("I19")
@pytest.mark.parametrize("attempts", [1, 2, 7])
def test_a_budget_of_any_size_holds(ledger: Ledger, attempts: int) -> None:
    task = opened(ledger, budget=Budget(attempts=attempts))
    statuses = [crash(ledger, started(ledger, task.id)).status for _ in range(attempts)]
    assert statuses == [S.QUEUED] * (attempts - 1) + [S.FAILED]
    for unlimited in (0, -1, 101, None, float("inf")):
        with pytest.raises(InvalidInput):
            contract(budget=Budget(attempts=unlimited))  # type: ignore[arg-type]


@pytest.mark.criterion("I08", "I18")
def test_rate_limits_have_a_budget_of_their_own(ledger: Ledger) -> None:
    task = opened(ledger)
    for n in (1, 2, 3):
        now = ledger.end_run(started(ledger, task.id), ended(D.RATE_LIMITED, not_before=n))
        assert (now.status, now.attempts, now.deferrals) == (S.QUEUED, 0, n)
        assert now.not_before == n
    last = ledger.end_run(started(ledger, task.id), ended(D.RATE_LIMITED))
    assert (last.status, last.attempts, last.deferrals) == (S.FAILED, 1, 3)
    assert charges(ledger, task.id) == ["deferrals"] * 3 + ["attempts"]
    assert len(ledger.inbox()) == 1


@pytest.mark.criterion("I08")
def test_a_task_may_have_no_deferral_at_all(ledger: Ledger) -> None:
    ticket = started(ledger, budget=Budget(deferrals=0))
    now = ledger.end_run(ticket, ended(D.RATE_LIMITED))
    assert (now.status, now.deferrals, now.attempts) == (S.FAILED, 0, 1)


@pytest.mark.criterion("I09")
def test_what_would_only_happen_again_is_not_tried_again(ledger: Ledger) -> None:
    for detail in NO_BLIND_RETRY:
        now = ledger.end_run(started(ledger, rescue=()), ended(detail))
        assert (now.status, now.attempts) == (S.FAILED, 1), detail


@pytest.mark.criterion("I09", "B21")
def test_a_policy_by_reason_does_not_retry_it_blindly_either(ledger: Ledger) -> None:
    for detail in NO_BLIND_RETRY:
        ticket = started(ledger, rescue=(), retry=("fatal_error", "max_iterations"))
        assert ledger.end_run(ticket, ended(detail)).status is S.FAILED, detail


@pytest.mark.criterion("B21")
def test_the_retry_policy_of_the_contract_decides(ledger: Ledger) -> None:
    policies: list[tuple[tuple[str, ...], ExitDetail, bool]] = [
        ((), D.SIGNALED, False),
        (("signaled",), D.SIGNALED, True),
        (("signaled",), D.OOM, False),
        (("fatal_error",), D.OOM, True),
        (("done",), D.DECLARED_FAILURE, True),
        (("declared_failure",), D.DECLARED_FAILURE, True),
    ]
    for policy, detail, again in policies:
        now = ledger.end_run(started(ledger, retry=policy), ended(detail))
        assert now.status is (S.QUEUED if again else S.FAILED), (policy, detail)


@pytest.mark.criterion("I05", "H03")
def test_failures_at_once_are_each_counted_once(ledger: Ledger) -> None:
    tickets = [started(ledger) for _ in range(6)]

    def fail(n: int) -> object:
        try:
            return crash(ledger, tickets[n % 6])
        except Refused as error:
            return error

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(fail, range(18)))
    assert sum(not isinstance(answer, Refused) for answer in answers) == 6
    assert [ledger.task(t.task).attempts for t in tickets] == [1] * 6
    with ThreadPoolExecutor(6) as pool:
        again = list(pool.map(lambda t: crash(ledger, started(ledger, t.task)), tickets))
    assert [task.attempts for task in again] == [2] * 6


@pytest.mark.criterion("I05", "I06")
def test_the_count_survives_a_new_start_of_the_house(ledger: Ledger) -> None:
    ticket = started(ledger)
    crash(ledger, ticket)
    other = open_ledger(ledger.store.url)
    try:
        crash(other, started(other, ticket.task))
        assert crash(other, started(other, ticket.task)).status is S.FAILED
    finally:
        other.close()


@pytest.mark.criterion("I14", "I15")
def test_waiting_and_lost_races_charge_nothing(ledger: Ledger) -> None:
    ticket = started(ledger)
    with ledger.store.snapshot() as tx:
        later = tx.now + 10**12
    held = ledger.end_run(ticket, ended(D.RATE_LIMITED, not_before=later))
    for _ in range(5):
        assert ledger.claim_next(Start("x")) == []
        with pytest.raises(Refused):
            started(ledger, ticket.task)
    assert ledger.task(ticket.task) == held
    agent = ledger.register_agent("a", "sha256:1", actor=OPERATOR).id
    started(ledger, agent_id=agent)
    waiting = opened(ledger)
    for _ in range(5):
        with pytest.raises(Refused):
            started(ledger, waiting.id, agent_id=agent)
    assert ledger.task(waiting.id) == waiting


@pytest.mark.criterion("I06")
def test_a_fresh_budget_needs_an_operator_and_is_in_the_record(ledger: Ledger) -> None:
    ticket = started(ledger, budget=Budget(attempts=1))
    crash(ledger, ticket)
    again = ledger.retry(ticket.task, actor=OPERATOR, reason="new key")
    assert (again.attempts, again.attempts_max) == (0, 1)
    told = ledger.events(ticket.task)[-1].event
    assert (told.actor, told.reason) == ("operator:ana", "new key")
    assert json.loads(told.data)["attempts"] == [0, 1]
    assert crash(ledger, started(ledger, ticket.task)).status is S.FAILED


@pytest.mark.criterion("I04", "I12")
def test_nothing_comes_back_for_free(ledger: Ledger) -> None:
    """Every move to queued but the first charges a counter, or is a person's reopening."""
    ways: list[Callable[[Ledger, Ticket], object]] = [
        *FAILURES.values(),
        lambda g, t: g.end_run(t, ended(D.RATE_LIMITED)),
        lambda g, t: (
            g.end_run(t, ended(D.REFUSED)),
            g.unblock(t.task, actor=OPERATOR, reason="x"),
        ),
        lambda g, t: (
            declared(g, t),
            judged(g, t, Outcome.UNKNOWN),
            g.retry(t.task, actor=OPERATOR, reason="x"),
        ),
    ]
    for way in ways:
        ticket = started(ledger)
        way(ledger, ticket)
        now = ledger.task(ticket.task)
        assert now.status is S.QUEUED
        assert now.attempts + now.deferrals + now.qa_rounds == 1
    blocked = started(ledger, budget=Budget(attempts=2))
    ledger.end_run(blocked, ended(D.REFUSED))
    ledger.unblock(blocked.task, actor=OPERATOR, reason="x")
    again = started(ledger, blocked.task)
    ledger.end_run(again, ended(D.REFUSED))
    more = ledger.unblock(blocked.task, actor=OPERATOR, reason="x")
    assert (more.attempts, more.attempts_max) == (2, 3), "a person grants one attempt at a time"
