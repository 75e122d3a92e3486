"""Verbs about who owns a run: heartbeats, leases that ran out, taking over, giving up."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from truegreen.contract import checked
from truegreen.errors import InvalidInput, NotFound, NotRunning, Stale, Terminated
from truegreen.facts import SYSTEM, Actor, Exit, Ticket
from truegreen.model import (
    PARENT,
    RESCUABLE,
    EndedBy,
    ExitDetail,
    ExitReason,
    Move,
    Note,
    RunStatus,
    TaskStatus,
    runs_now,
)
from truegreen.record.ledger.desk import (
    Entry,
    Work,
)
from truegreen.record.ledger.inputs import as_json, microseconds
from truegreen.record.ledger.reads import bounded
from truegreen.record.ledger.runs import (
    LEASE_SECONDS,
    Runs,
)
from truegreen.record.lifecycle import decide
from truegreen.record.rows import Lease, Task, read
from truegreen.record.store import Row, Tx


class Overdue(NamedTuple):
    """A run whose lease ran out, or (`gone`) whose supervisor is known to be dead."""

    task: str
    run: str
    status: TaskStatus
    fence: int
    lease: Lease
    gone: bool = False


class Standing(NamedTuple):
    """How a run stands in the record, as its supervisor asks again and again."""

    status: TaskStatus
    mine: bool
    ended: bool
    stop_asked: str


class Leases(Runs):
    """A run and its owner."""

    def heartbeat(
        self,
        ticket: Ticket,
        *,
        lease_seconds: float = LEASE_SECONDS,
        process: dict[str, Any] | None = None,
        actor: Actor = SYSTEM,
    ) -> None:
        """Renew the lease of a live run under its fence."""
        self._may(actor, "supervise")
        lease = microseconds(lease_seconds)
        kept = as_json(process, "process") if process else None

        def act(tx: Tx) -> Callable[[], None]:
            row = tx.one(
                "renew_lease",
                run=ticket.run,
                token=ticket.lease,
                fence=ticket.fence,
                boot=tx.boot,
                process=kept,
                expires_at=tx.lease_now + lease,
            )
            if row is None:
                self._live(tx, ticket, actor)
                raise Stale(f"{ticket.run} has no lease to renew", stale="lease")
            return lambda: None

        self._witnessed("heartbeat", actor, ticket, act, process)

    def standing(self, ticket: Ticket) -> Standing:
        """Whether a run may go on: it is under the task's fence, and under this lease."""
        with self._store.snapshot() as tx:
            row = tx.one("standing", run=ticket.run)
        if row is None:
            raise NotFound(f"no run {ticket.run}")
        status, fence, sealed_at, exit_reason, token, stop_asked = row
        mine = (fence, token) == (ticket.fence, ticket.lease) and sealed_at is None
        return Standing(TaskStatus(status), mine, exit_reason is not None, stop_asked or "")

    def ask_stop(self, task_id: str, *, actor: Actor, reason: str = "") -> Task:
        """Ask the supervisor of a live run to end it gracefully."""
        self._may(actor, "end")
        reason = self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            self._own(tx, actor, "task_in_tree", task.key)
            if not runs_now(task.status):
                message = f"task {task.id} is not running (status: {task.status})"
                raise NotRunning(message, status=task.status)
            work = self._work(tx, "latest_locked", key=task.key)
            tx.hit("ask_stop", run_key=work.run.key, actor=str(actor))
            entry = Entry(actor, reason, run=work.run.id)
            data = {"asked": "stop", **self._call_off_wakes(tx, task, entry)}
            hit = self._note(tx, task, Note.MESSAGE, entry._replace(data=data))
            return lambda: read(Task, hit.row)

        return self._do(act)

    def overdue(self, *, limit: int = 1000) -> list[Overdue]:
        """Runs whose lease ran out: suspects, not yet lost."""
        with self._store.snapshot() as tx:
            n = bounded(limit)
            rows = tx.all("leases_that_ran_out", now=tx.lease_now, boot=tx.boot, n=n)
        return [_overdue(row) for row in rows]

    def owned(self, host: str, *, limit: int = 1000) -> list[Overdue]:
        """Runs whose supervisor's name begins so, whether or not their lease ran out."""
        with self._store.snapshot() as tx:
            rows = tx.all("leases_of_holders", host=host, n=bounded(limit))
        return [_overdue(row) for row in rows]

    def lose(
        self,
        overdue: Overdue,
        *,
        detail: ExitDetail = ExitDetail.PROCESS_LOST,
        actor: Actor = SYSTEM,
    ) -> Task:
        """A suspect's process is gone: fence it off, end its run as lost. Never towards green."""
        self._may(actor, "supervise")
        if PARENT[detail] is not ExitReason.FATAL_ERROR or detail in RESCUABLE:
            raise InvalidInput(f"{detail} is not how a run is lost: it could lead towards green")
        lost = Exit(
            status=RunStatus.LOST,
            reason=PARENT[detail],
            detail=detail,
            ended_by=EndedBy.MACHINE,
            message="its lease ran out and its process is gone",
        )

        def act(tx: Tx) -> Callable[[], Task]:
            work = self._silent(tx, overdue)
            self._unended(work.run)
            hit = self._end_run(tx, work, lost, Entry(actor, lost.message), raised=1)
            return lambda: read(Task, hit.row)

        return self._do(act)

    def adopt(
        self, overdue: Overdue, *, holder: str, lease_seconds: float = LEASE_SECONDS
    ) -> Ticket:
        """Take over from a supervisor that fell silent; its lease token is worth nothing now."""
        checked(holder, "holder", 200)
        lease = microseconds(lease_seconds)

        def act(tx: Tx) -> Callable[[], Ticket]:
            work = self._silent(tx, overdue)
            ticket = Ticket(work.task.id, work.run.id, work.task.fence, os.urandom(16).hex())
            entry = Entry(SYSTEM, f"taken over by {holder}", run=work.run.id)
            self._note(tx, work.task, Note.ADOPT, entry)
            tx.hit(
                "take_lease",
                run_key=work.run.key,
                token=ticket.lease,
                holder=holder,
                boot=tx.boot,
                expires_at=tx.lease_now + lease,
            )
            return lambda: ticket

        return self._do(act)

    def recheck(
        self, task_id: str, *, holder: str, actor: Actor, lease_seconds: float = LEASE_SECONDS
    ) -> Ticket:
        """The right to check what a task left once more, while it waits for a person."""
        self._may(actor, "recover")
        self._said("", actor)
        checked(holder, "holder", 200)
        lease = microseconds(lease_seconds)

        def act(tx: Tx) -> Callable[[], Ticket]:
            task = self._task(tx, task_id)
            decide(task.status, Move.ACCEPT, sealed=task.sealed_at is not None)
            if task.status is not TaskStatus.NEEDS_REVIEW:
                raise Stale(f"{task.id} is not undecided (status: {task.status})", stale="status")
            work = self._work(tx, "latest_locked", key=task.key)
            row = tx.one("lease", run_key=work.run.key)
            if row and not _ran_out(read(Lease, row), tx):
                raise Stale(f"{task.id} is being checked by somebody else", stale="lease")
            tx.run("drop_lease", run_key=work.run.key)
            ticket = Ticket(task.id, work.run.id, task.fence, os.urandom(16).hex())
            self._note(tx, task, Note.ADOPT, Entry(actor, "checked again", run=work.run.id))
            tx.run(
                "insert_lease",
                run=work.run.id,
                token=ticket.lease,
                holder=holder,
                boot=tx.boot,
                expires_at=tx.lease_now + lease,
            )
            return lambda: ticket

        return self._do(act)

    def _silent(self, tx: Tx, overdue: Overdue) -> Work:
        """The suspect's work, if nothing has been heard of it since it was found."""
        work = self._work(tx, "work_locked", run=overdue.run)
        if work.task.sealed_at is not None:
            raise Terminated(f"{overdue.task} is sealed for ever (status: {work.task.status})")
        row = tx.one("lease", run_key=work.run.key)
        lease = read(Lease, row) if row else None
        over = lease is not None and (overdue.gone or _ran_out(lease, tx))
        if lease is None or lease.token != overdue.lease.token or not over:
            raise Stale(f"{overdue.run} is not overdue any more", stale="lease")
        return work


def _overdue(row: Row) -> Overdue:
    return Overdue(row[-3], row[-4], TaskStatus(row[-2]), row[-1], read(Lease, row[:-4]))


def _ran_out(lease: Lease, tx: Tx) -> bool:
    return lease.expires_at < tx.lease_now or lease.boot != tx.boot
