"""Verbs at a checkpoint: a run asks, a person answers, silence never approves."""

from __future__ import annotations

from collections.abc import Callable

from truegreen.contract import checked
from truegreen.errors import NotRunning
from truegreen.facts import Actor, Exit, Ticket
from truegreen.model import (
    PARENT,
    EndedBy,
    ExitDetail,
    Mode,
    Move,
    Role,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger.desk import (
    Entry,
    Work,
)
from truegreen.record.ledger.inputs import REASON_LIMIT
from truegreen.record.ledger.runs import (
    Runs,
)
from truegreen.record.lifecycle import decide
from truegreen.record.rows import Task, read
from truegreen.record.store import Tx

_ASKED = (Move.PAUSE, Move.BLOCK)


class Approvals(Runs):
    """What happens between «may I?» and the answer."""

    def checkpoint(
        self, ticket: Ticket, action: str, *, actor: Actor, key: str | None = None
    ) -> Task:
        """The agent needs an approval: assisted and interactive pause, autonomous ends blocked."""
        self._may(actor, "pause")
        action = checked(action, "action", REASON_LIMIT)

        def act(tx: Tx) -> Callable[[], Task]:
            if self._done_before(tx, key, _ASKED, ticket.task, ticket.run):
                done = self._task(tx, ticket.task)
                return lambda: done
            work = self._live(tx, ticket, actor)
            entry = Entry(actor, action, run=ticket.run, data={"action": action}, key=key)
            if work.task.mode is Mode.AUTONOMOUS:
                hit = self._end_run(tx, work, _blocked(ExitDetail.APPROVAL_CHECKPOINT), entry)
            else:
                hit = self._move(tx, work.task, Move.PAUSE, entry, run_status=RunStatus.PAUSED)
                tx.hit("see_run", key=work.run.key, to_status=RunStatus.PAUSED, now=tx.now)
                self._attend(tx, work, Move.PAUSE, None, action)
            return lambda: read(Task, hit.row)

        return self._witnessed("checkpoint", actor, ticket, act, {"action": action})

    def approve(
        self, task_id: str, *, actor: Actor, reason: str = "", key: str | None = None
    ) -> Task:
        """A person lets a paused run go on."""
        self._may(actor, "approve")
        reason = self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            if self._done_before(tx, key, (Move.RESUME,), task_id):
                return lambda: task
            work = self._paused(tx, task, Move.RESUME)
            entry = Entry(actor, reason, run=work.run.id, key=key)
            hit = self._move(tx, task, Move.RESUME, entry, run_status=RunStatus.RUNNING)
            tx.hit("see_run", key=work.run.key, to_status=RunStatus.RUNNING, now=tx.now)
            self._nobody_needed(tx, task, f"approved by {actor}")
            return lambda: read(Task, hit.row)

        return self._do(act)

    def deny(self, task_id: str, *, actor: Actor, reason: str, key: str | None = None) -> Task:
        """An approval was denied by a person, or expired: the run ends and the task is blocked."""
        self._may(actor, "deny")
        reason = self._needed(reason, actor)
        person = actor.role is not Role.SYSTEM
        detail = ExitDetail.APPROVAL_CHECKPOINT if person else ExitDetail.APPROVAL_EXPIRED
        by = EndedBy.OPERATOR if person else EndedBy.SUPERVISOR

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            if self._done_before(tx, key, (Move.BLOCK,), task_id):
                return lambda: task
            work = self._paused(tx, task, Move.BLOCK)
            self._nobody_needed(tx, task, f"denied by {actor}: {reason}")
            hit = self._end_run(tx, work, _blocked(detail, by), Entry(actor, reason, key=key))
            return lambda: read(Task, hit.row)

        return self._do(act)

    def _paused(self, tx: Tx, task: Task, move: Move) -> Work:
        if task.sealed_at is not None:
            decide(task.status, move, sealed=True)
        if task.status is not TaskStatus.AWAITING_APPROVAL:
            message = f"{task.id} waits for no approval (status: {task.status}); {move} is refused"
            raise NotRunning(message, status=task.status)
        return self._work(tx, "latest_locked", key=task.key)


def _blocked(detail: ExitDetail, by: EndedBy = EndedBy.SUPERVISOR) -> Exit:
    return Exit(
        status=RunStatus.STOPPED,
        reason=PARENT[detail],
        detail=detail,
        ended_by=by,
    )
