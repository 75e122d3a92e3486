"""Checkpoints: two modes pause, one blocks; a person answers, silence never does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.record.lives import OPERATOR, S, agent_of, brought, declared, ended, opened, started
from truegreen.contract import Contract, QaTerms
from truegreen.errors import (
    Forbidden,
    IllegalMove,
    InvalidInput,
    KeyReused,
    NotFound,
    NotRunning,
    Refused,
    Stale,
    Terminated,
)
from truegreen.facts import SYSTEM, Actor, Claim
from truegreen.model import (
    Cell,
    ClaimKind,
    EndedBy,
    EventLevel,
    ExitDetail,
    ExitReason,
    Mode,
    Move,
    Role,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start

if TYPE_CHECKING:
    from truegreen.record.rows import Event


def last(ledger: Ledger, task: str) -> Event:
    return ledger.events(task)[-1].event


@pytest.mark.criterion("D01")
def test_every_mode_is_kept_and_the_default_is_autonomous(ledger: Ledger) -> None:
    for mode in Mode:
        assert opened(ledger, mode=mode).mode is mode
    plain = Contract(title="t", qa=QaTerms(roles=()))
    assert ledger.open(plain, actor=OPERATOR).mode is Mode.AUTONOMOUS


@pytest.mark.criterion("D02", "C04", "A13")
def test_an_autonomous_run_at_a_checkpoint_ends_blocked(ledger: Ledger) -> None:
    ticket = started(ledger)
    task = ledger.checkpoint(ticket, "git push", actor=agent_of(ticket), key="c")
    assert task == ledger.task(ticket.task)
    assert (task.status, task.exit_reason, task.exit_detail) == (
        S.BLOCKED,
        ExitReason.BLOCKED,
        ExitDetail.APPROVAL_CHECKPOINT,
    )
    assert (task.cell, task.run_status) == (Cell.BLOCKED, RunStatus.STOPPED)
    run = ledger.run(ticket.run)[0]
    assert (run.exit_detail, run.ended_by) == (
        ExitDetail.APPROVAL_CHECKPOINT,
        EndedBy.SUPERVISOR,
    )
    event = last(ledger, ticket.task)
    assert (event.event, event.level, event.reason) == (Move.BLOCK, EventLevel.WARN, "git push")
    assert (event.actor, event.run_id, event.idempotency_key) == ("agent:agent", ticket.run, "c")
    with pytest.raises(Stale):
        ledger.declare(ticket, Claim(kind=ClaimKind.DONE), actor=agent_of(ticket))
    with pytest.raises(Stale):
        ledger.heartbeat(ticket)
    (item,) = ledger.inbox()
    assert (item.task, item.item.cell) == (ticket.task, "blocked")
    assert ledger.checkpoint(ticket, "git push", actor=agent_of(ticket), key="c") == task


@pytest.mark.criterion("D03", "B14", "C04")
@pytest.mark.parametrize("mode", [Mode.ASSISTED, Mode.INTERACTIVE])
def test_the_other_modes_pause_and_go_on_when_a_person_says_so(ledger: Ledger, mode: Mode) -> None:
    ticket = started(ledger, mode=mode)
    task = ledger.checkpoint(ticket, "git push", actor=agent_of(ticket), key="c")
    assert (task.status, task.run_status) == (S.AWAITING_APPROVAL, RunStatus.PAUSED)
    assert (task.exit_reason, task.settled_at) == (None, None)
    assert ledger.run(ticket.run)[0].exit_reason is None
    event = last(ledger, ticket.task)
    assert (event.event, event.level) == (Move.PAUSE, EventLevel.INFO)
    assert json.loads(event.data)["action"] == "git push"
    assert [w.item.cell for w in ledger.inbox()] == ["awaiting_approval"]
    ledger.heartbeat(ticket)
    again = ledger.approve(task.id, actor=OPERATOR, reason="go", key="a")
    assert again == ledger.task(task.id)
    assert (again.status, again.run_status, again.fence) == (
        S.RUNNING,
        RunStatus.RUNNING,
        ticket.fence,
    )
    event = last(ledger, ticket.task)
    assert (event.event, event.actor, event.reason) == (Move.RESUME, "operator:ana", "go")
    assert (event.run_id, event.idempotency_key) == (ticket.run, "a")
    assert ledger.inbox() == []
    assert ledger.approve(task.id, actor=OPERATOR, reason="go", key="a") == again
    assert declared(ledger, ticket).status is S.PENDING_EVAL


@pytest.mark.criterion("D10", "D12", "B24")
@pytest.mark.parametrize(
    ("actor", "detail", "by"),
    [
        (SYSTEM, ExitDetail.APPROVAL_EXPIRED, EndedBy.SUPERVISOR),
        (OPERATOR, ExitDetail.APPROVAL_CHECKPOINT, EndedBy.OPERATOR),
    ],
)
def test_expiry_and_denial_block(
    ledger: Ledger, actor: Actor, detail: ExitDetail, by: EndedBy
) -> None:
    task, ticket = brought(ledger, S.AWAITING_APPROVAL)
    assert ticket
    done = ledger.deny(task.id, actor=actor, reason="nobody came", key="d")
    assert done == ledger.task(task.id)
    assert (done.status, done.exit_detail, done.cell) == (S.BLOCKED, detail, Cell.BLOCKED)
    assert ledger.run(ticket.run)[0].ended_by is by
    event = last(ledger, task.id)
    assert (event.event, event.level, event.actor) == (Move.BLOCK, EventLevel.WARN, str(actor))
    assert (event.reason, event.run_id) == ("nobody came", ticket.run)
    assert [w.item.cell for w in ledger.inbox()] == ["blocked"], "nobody waits for an answer now"
    assert ledger.deny(task.id, actor=actor, reason="nobody came", key="d") == done
    with pytest.raises(NotRunning):
        ledger.approve(task.id, actor=OPERATOR)
    with pytest.raises(Stale):
        ledger.end_run(ticket, ended())


@pytest.mark.criterion("D09", "D06", "O01")
def test_only_a_person_approves(ledger: Ledger) -> None:
    for role in (role for role in Role if role is not Role.OPERATOR):
        task, ticket = brought(ledger, S.AWAITING_APPROVAL)
        assert ticket
        actor = Actor(role, "x", ticket.run, ticket.fence)
        with pytest.raises(Forbidden):
            ledger.approve(task.id, actor=actor)
        if role is not Role.SYSTEM:
            with pytest.raises(Forbidden):
                ledger.deny(task.id, actor=actor, reason="no")
        assert ledger.task(task.id) == task


@pytest.mark.criterion("D09", "K10")
def test_a_message_approves_nothing(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent, mode=Mode.ASSISTED)
    ledger.checkpoint(ticket, "push", actor=agent_of(ticket))
    before = ledger.task(ticket.task)
    ledger.send(agent, "approved, go on", actor=OPERATOR)
    assert ledger.task(ticket.task) == before


def test_there_is_nothing_to_approve_or_deny_elsewhere(ledger: Ledger) -> None:
    for status in (s for s in TaskStatus if s is not S.AWAITING_APPROVAL):
        task, _ = brought(ledger, status)
        expected = Terminated if status is S.TERMINATED else NotRunning
        with pytest.raises(expected, match=task.status):
            ledger.approve(task.id, actor=OPERATOR)
        with pytest.raises(expected):
            ledger.deny(task.id, actor=OPERATOR, reason="no")
        assert ledger.task(task.id) == task


def test_a_denial_says_why_and_a_checkpoint_for_nothing_is_refused(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.AWAITING_APPROVAL)
    with pytest.raises(InvalidInput, match="reason is needed"):
        ledger.deny(task.id, actor=OPERATOR, reason=" ")
    for verb in (ledger.approve, ledger.deny):
        with pytest.raises(NotFound):
            verb("tsk_nowhere", actor=OPERATOR, reason="x")
    assert ledger.task(task.id) == task


def test_a_second_checkpoint_while_paused_changes_nothing(ledger: Ledger) -> None:
    task, ticket = brought(ledger, S.AWAITING_APPROVAL)
    assert ticket
    with pytest.raises(IllegalMove):
        ledger.checkpoint(ticket, "another", actor=agent_of(ticket))
    assert ledger.task(task.id) == task


@pytest.mark.criterion("C11")
def test_approval_keys_belong_to_one_task(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.AWAITING_APPROVAL)
    other, _ = brought(ledger, S.AWAITING_APPROVAL)
    ledger.approve(task.id, actor=OPERATOR, key="k")
    with pytest.raises(KeyReused):
        ledger.approve(other.id, actor=OPERATOR, key="k")
    with pytest.raises(KeyReused):
        ledger.deny(other.id, actor=OPERATOR, reason="no", key="k")
    assert ledger.task(other.id) == other


@pytest.mark.criterion("H08", "B04")
@pytest.mark.parametrize("detail", [ExitDetail.SIGNALED, ExitDetail.COMPLETED, ExitDetail.OOM])
def test_a_run_that_dies_while_it_waits_can_be_ended(ledger: Ledger, detail: ExitDetail) -> None:
    task, ticket = brought(ledger, S.AWAITING_APPROVAL)
    assert ticket
    ledger.end_run(ticket, ended(detail))
    assert ledger.run(ticket.run)[0].exit_reason is not None
    assert ledger.task(task.id).status is not S.AWAITING_APPROVAL


@pytest.mark.criterion("H08")
def test_a_run_that_is_lost_while_it_waits_is_not_overdue_for_ever(ledger: Ledger) -> None:
    task = opened(ledger, mode=Mode.ASSISTED)
    ticket = ledger.start(task.id, Start("gone", lease_seconds=-1))
    ledger.checkpoint(ticket, "push", actor=agent_of(ticket))
    (suspect,) = ledger.overdue()
    assert suspect.status is S.AWAITING_APPROVAL
    ledger.lose(suspect)
    assert ledger.overdue() == []
    assert ledger.run(ticket.run)[0].exit_reason is not None


@pytest.mark.criterion("C08", "D09")
def test_an_approval_and_a_denial_at_once_are_one_of_them(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.AWAITING_APPROVAL)
    ledger.deny(task.id, actor=SYSTEM, reason="expired")
    before = ledger.task(task.id)
    with pytest.raises(Refused):
        ledger.approve(task.id, actor=OPERATOR, reason="too late")
    assert ledger.task(task.id) == before
