"""Verbs about who owns a run: heartbeats, leases that ran out, taking over, giving up."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from truegreen.contract import checked
from truegreen.errors import InvalidInput, Stale, Terminated
from truegreen.facts import SYSTEM, Actor, Exit, Ticket
from truegreen.model import (
    PARENT,
    RESCUABLE,
    EndedBy,
    ExitDetail,
    ExitReason,
    Note,
    RunStatus,
    TaskStatus,
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
from truegreen.record.rows import Lease, Task, read
from truegreen.record.store import Tx


class Overdue(NamedTuple):
    """A run whose lease ran out."""

    task: str
    run: str
    status: TaskStatus
    fence: int
    lease: Lease


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

    def overdue(self, *, limit: int = 1000) -> list[Overdue]:
        """Runs whose lease ran out: suspects, not yet lost."""
        with self._store.snapshot() as tx:
            n = bounded(limit)
            rows = tx.all("leases_that_ran_out", now=tx.lease_now, boot=tx.boot, n=n)
        return [Overdue(r[-3], r[-4], TaskStatus(r[-2]), r[-1], read(Lease, r[:-4])) for r in rows]

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

    def _silent(self, tx: Tx, overdue: Overdue) -> Work:
        """The suspect's work, if nothing has been heard of it since it was found."""
        work = self._work(tx, "work_locked", run=overdue.run)
        if work.task.sealed_at is not None:
            raise Terminated(f"{overdue.task} is sealed for ever (status: {work.task.status})")
        row = tx.one("lease", run_key=work.run.key)
        lease = read(Lease, row) if row else None
        if lease is None or lease.token != overdue.lease.token or not _ran_out(lease, tx):
            raise Stale(f"{overdue.run} is not overdue any more", stale="lease")
        return work


def _ran_out(lease: Lease, tx: Tx) -> bool:
    return lease.expires_at < tx.lease_now or lease.boot != tx.boot
