"""What a supervisor asks of the record while its run goes on, and after another one died."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.record.lives import (
    BASE,
    LEAD,
    OPERATOR,
    TREE,
    brought,
    contract,
    declared,
    ended,
    finding,
    judged,
    started,
    verdict,
)
from truegreen.contract import QaTerms
from truegreen.errors import Forbidden, IllegalMove, NotRunning, Stale, Terminated
from truegreen.facts import Ticket
from truegreen.model import ExitDetail, FindingOutcome, Mode, Outcome, TaskStatus
from truegreen.record.ledger import Ledger, Start

DATABASES = ("sqlite",)

S = TaskStatus


def test_a_run_stands_until_it_is_ended_fenced_or_taken_over(ledger: Ledger) -> None:
    ticket = started(ledger)
    assert ledger.standing(ticket) == (S.RUNNING, True, False, "")
    ledger.cancel(ticket.task, actor=OPERATOR)
    standing = ledger.standing(ticket)
    assert (standing.status, standing.mine, standing.ended) == (S.CANCELED, False, True)


def test_a_run_under_another_lease_or_fence_is_not_mine(ledger: Ledger) -> None:
    ticket = started(ledger)
    assert not ledger.standing(replace(ticket, lease="another")).mine
    assert not ledger.standing(replace(ticket, fence=ticket.fence + 1)).mine


@pytest.mark.criterion("G11")
def test_whoever_asks_a_run_to_stop_is_heard_by_its_supervisor(ledger: Ledger) -> None:
    ticket = started(ledger)
    ledger.ask_stop(ticket.task, actor=OPERATOR, reason="enough")
    assert ledger.standing(ticket).stop_asked == "operator:ana"
    assert ledger.events(ticket.task)[-1].event.reason == "enough"
    assert ledger.task(ticket.task).status is S.RUNNING


@pytest.mark.criterion("G11")
@pytest.mark.parametrize("status", [s for s in S if s not in (S.RUNNING, S.AWAITING_APPROVAL)])
def test_what_does_not_run_can_not_be_stopped(ledger: Ledger, status: TaskStatus) -> None:
    task, _ = brought(ledger, status)
    with pytest.raises(NotRunning, match=rf"is not running \(status: {status}\)"):
        ledger.ask_stop(task.id, actor=OPERATOR)


def test_a_lead_stops_only_its_own(ledger: Ledger) -> None:
    ticket = started(ledger)
    with pytest.raises(Forbidden):
        ledger.ask_stop(ticket.task, actor=LEAD)


def test_a_run_whose_supervisor_is_dead_is_not_waited_for(ledger: Ledger) -> None:
    task = ledger.open(contract(), actor=OPERATOR)
    ledger.start(task.id, Start("host/boot/7/9", base_digest=BASE))
    assert ledger.owned("other/") == []
    (left,) = ledger.owned("host/")
    with pytest.raises(Stale, match="not overdue"):
        ledger.lose(left)
    lost = ledger.lose(left._replace(gone=True), detail=ExitDetail.SUPERVISOR_CRASHED)
    assert (lost.status, lost.exit_detail) == (S.QUEUED, ExitDetail.SUPERVISOR_CRASHED)


def test_a_lease_that_was_taken_over_meanwhile_is_not_lost_for_its_old_holder(
    ledger: Ledger,
) -> None:
    started(ledger)
    (left,) = ledger.owned("test")
    ledger.adopt(left._replace(gone=True), holder="new")
    with pytest.raises(Stale):
        ledger.lose(left._replace(gone=True))


def test_what_comes_to_light_by_the_end_is_kept_with_the_run(ledger: Ledger) -> None:
    task = ledger.open(contract(), actor=OPERATOR)
    ticket = ledger.start(task.id, Start("test", base_digest=BASE, facts={"adapter": "command"}))
    ledger.end_run(ticket, ended(message="all of it", facts={"swept": ["sleep (7)"]}))
    run, _ = ledger.run(ticket.run)
    assert run.facts == '{"adapter":"command","message":"all of it","swept":["sleep (7)"]}'


def test_a_session_is_kept_with_its_agent(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR)
    ledger.end_run(started(ledger, agent_id=agent.id), ended(session="conversation-1"))
    assert ledger.agent(agent.id).session == "conversation-1"


# --- checking again


def again(ledger: Ledger, task: str) -> Ticket:
    return ledger.recheck(task, holder="test", actor=OPERATOR)


@pytest.mark.parametrize("status", [s for s in S if s is not S.NEEDS_REVIEW])
def test_only_what_is_undecided_is_checked_again(ledger: Ledger, status: TaskStatus) -> None:
    task, _ = brought(ledger, status)
    with pytest.raises((IllegalMove, Stale, Terminated)):
        again(ledger, task.id)


def test_a_pass_on_the_second_look_is_a_pass_and_leaves_nobody_waiting(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    assert judged(ledger, again(ledger, task.id), Outcome.PASSED).status is S.SUCCEEDED
    assert ledger.inbox() == []


def test_a_second_look_that_decides_nothing_leaves_it_to_a_person(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    assert judged(ledger, again(ledger, task.id), Outcome.INCONCLUSIVE).status is S.NEEDS_REVIEW
    assert len(ledger.inbox()) == 1
    assert judged(ledger, again(ledger, task.id), Outcome.FAILED).status is S.QUEUED


def test_two_do_not_check_the_same_at_once(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    again(ledger, task.id)
    with pytest.raises(Stale, match="somebody else"):
        again(ledger, task.id)


def test_a_second_look_does_not_rescue_a_run_without_a_sign_of_work(ledger: Ledger) -> None:
    ticket = started(ledger)
    ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED, digest=BASE))
    found = finding(ledger, ticket, FindingOutcome.PASSED, digest=BASE, before=None)
    ledger.record(ticket, [found])
    first = ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, digest=BASE))
    assert first.status is S.NEEDS_REVIEW
    second = again(ledger, ticket.task)
    ledger.record(second, [found])
    now = ledger.judge(second, verdict(ledger, second, Outcome.PASSED, digest=BASE))
    assert now.status is S.NEEDS_REVIEW


def test_a_second_look_does_not_lead_past_qa(ledger: Ledger) -> None:
    ticket = started(ledger, role="coder", qa=QaTerms(roles=("coder",)))
    declared(ledger, ticket)
    assert judged(ledger, ticket, Outcome.INCONCLUSIVE).status is S.NEEDS_REVIEW
    assert judged(ledger, again(ledger, ticket.task), Outcome.PASSED).status is S.NEEDS_REVIEW


def test_agents_do_not_ask_for_a_second_look(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    with pytest.raises(Forbidden):
        ledger.recheck(task.id, holder="test", actor=LEAD)


@pytest.mark.criterion("A18")
def test_an_interactive_session_rings_no_bell(ledger: Ledger) -> None:
    ticket = started(ledger, mode=Mode.INTERACTIVE)
    declared(ledger, ticket)
    assert judged(ledger, ticket, Outcome.INCONCLUSIVE).status is S.NEEDS_REVIEW
    assert ledger.inbox() == []
    assert ledger.run(ticket.run)[0].digest == TREE
