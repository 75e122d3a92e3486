"""Verbs about who owns a run: heartbeats, leases that ran out, taking over, giving up."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from types import MappingProxyType
from typing import Any

from truegreen.contract import checked
from truegreen.errors import InvalidInput, NotFound, NotRunning, Refused, Stale, Terminated
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
)
from truegreen.record.ledger.desk import (
    Entry,
    Work,
)
from truegreen.record.ledger.inputs import as_json, microseconds, to_json
from truegreen.record.ledger.reads import bounded
from truegreen.record.ledger.runs import (
    LEASE_SECONDS,
    FolderUse,
    Runs,
    user_of,
)
from truegreen.record.lifecycle import decide
from truegreen.record.rows import Lease, Task, read
from truegreen.record.store import Hit, Row, Tx
from truegreen.tuples import NamedTuple

_LOST_AT_ONCE = 100


class Overdue(NamedTuple):
    """A run whose lease ran out; or (`gone`) whose supervisor is known to be dead or too late."""

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

    @property
    def is_shared(self) -> bool:
        """Whether other machines may use the same store."""
        return self._store.dialect != "sqlite"

    def patient(self, may_wait: Callable[[], bool]) -> AbstractContextManager[None]:
        """In this, the calling thread waits for a store that is away, as long as it may."""
        return self._store.patient(may_wait)

    def spare_room(self) -> AbstractContextManager[None]:
        """In this, room on the disk of the store is set aside for what is recorded after it."""
        return self._store.spare_room()

    def heartbeat(
        self,
        ticket: Ticket,
        *,
        lease_seconds: float = LEASE_SECONDS,
        process: dict[str, Any] | None = None,
        idle_seconds: float | None = None,
        actor: Actor = SYSTEM,
    ) -> None:
        """Renew the lease of a live run under its fence, and say how long its agent is idle."""
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
                active_at=tx.now - int(idle_seconds * 1e6) if idle_seconds is not None else None,
                expires_at=tx.lease_now + lease,
                lasts=lease,
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
            if task.status not in (TaskStatus.RUNNING, TaskStatus.AWAITING_APPROVAL):
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

    def free_locks(self, seconds: float) -> int:
        """Cut off writers that were frozen half-way and keep what they locked; says how many."""
        return self._store.end_stuck(seconds)

    def in_folder(self, host: str, folder: str, *, but: str = "") -> FolderUse | None:
        """The task that works in a folder, or in one above or below it; `but` one is left out."""
        with self._store.snapshot() as tx:
            where = {"folder_host": host, "folder": folder, "task": but}
            return user_of(tx, where)

    def used_since(self, host: str, folder: str, run_key: int, *, but: str) -> str:
        """The last other task that has worked in a folder after a run; empty if none has."""
        with self._store.snapshot() as tx:
            where = {"folder_host": host, "folder": folder, "task": but}
            found = tx.one("folder_used_since", **where, after=run_key)
        return found[0] if found else ""

    def last_run_key(self) -> int:
        """The key of the newest run."""
        with self._store.snapshot() as tx:
            found = tx.one("last_run_key")
        return found[0] if found else 0

    def owned(self, host: str, *, limit: int = 1000, after: int = 0) -> list[Overdue]:
        """Runs whose supervisor's name begins so, whether or not their lease ran out."""
        with self._store.snapshot() as tx:
            rows = tx.all("leases_of_holders", host=host, after=after, n=bounded(limit))
        return [_overdue(row) for row in rows]

    def lose(
        self,
        overdue: Overdue,
        *,
        detail: ExitDetail = ExitDetail.PROCESS_LOST,
        facts: Mapping[str, Any] = MappingProxyType({}),
        actor: Actor = SYSTEM,
    ) -> Task:
        """A suspect's process is gone: fence it off, end its run as lost. Never towards green.

        `facts` say how that is known.
        """
        lost = self._lost(detail, facts, actor)

        def act(tx: Tx) -> Callable[[], Task]:
            hit = self._lose(tx, self._silent(tx, overdue), lost, actor)
            return lambda: read(Task, hit.row)

        return self._do(act)

    def lose_all(
        self,
        overdue: Sequence[Overdue],
        *,
        detail: ExitDetail = ExitDetail.PROCESS_LOST,
        facts: Mapping[str, Any] = MappingProxyType({}),
        actor: Actor = SYSTEM,
    ) -> list[str]:
        """The same of several; says which tasks. Those that were heard of again are left alone."""
        lost = self._lost(detail, facts, actor)
        done: list[str] = []
        for start in range(0, len(overdue), _LOST_AT_ONCE):
            some = overdue[start : start + _LOST_AT_ONCE]
            try:
                done += self._do(lambda tx, some=some: self._lose_some(tx, some, lost, actor))  # type: ignore[misc]
            except Refused:
                for each in some:  # one of them is why; the others are lost all the same
                    with suppress(Refused):
                        done.append(self.lose(each, detail=detail, facts=facts, actor=actor).id)
        return done

    def _lose_some(
        self, tx: Tx, some: Sequence[Overdue], lost: Exit, actor: Actor
    ) -> Callable[[], list[str]]:
        from truegreen.record.ledger.gathering import (  # noqa: PLC0415 - only after a crash
            Gathered,
        )

        runs = to_json([each.lease.run_key for each in some])
        held = [self._split(row) for row in tx.all("works_locked", keys=runs)]
        leases = {lease.run_key: lease for lease in map(_lease, tx.all("leases_of", keys=runs))}
        tasks = to_json([work.task.key for work in held])
        gathered = Gathered(tx, {row[0]: row[1:] for row in tx.all("demanded_of", keys=tasks)})
        by_run = {each.run: each for each in some}
        done = []
        for work in held:
            try:
                _check_silent(work, leases.get(work.run.key), by_run[work.run.id], tx)
                self._unended(work.run)
            except Refused:
                continue  # it was heard of again, or another one was quicker
            self._lose(gathered, work, lost, actor)
            done.append(work.task.id)
        gathered.flush()
        return lambda: done

    def _lost(self, detail: ExitDetail, facts: Mapping[str, Any], actor: Actor) -> Exit:
        self._may(actor, "supervise")
        if PARENT[detail] is not ExitReason.FATAL_ERROR or detail in RESCUABLE:
            raise InvalidInput(f"{detail} is not how a run is lost: it could lead towards green")
        return Exit(
            status=RunStatus.LOST,
            reason=PARENT[detail],
            detail=detail,
            ended_by=EndedBy.MACHINE,
            message="its lease ran out and its process is gone",
            facts=dict(facts),
        )

    def _lose(self, tx: Tx, work: Work, lost: Exit, actor: Actor) -> Hit:
        self._unended(work.run)
        return self._end_run(tx, work, lost, Entry(actor, lost.message), raised=1)

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
                lasts=lease,
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
                lasts=lease,
                folder_host="",  # what was left is checked in copies
                folder="",
            )
            return lambda: ticket

        return self._do(act)

    def _silent(self, tx: Tx, overdue: Overdue) -> Work:
        """The suspect's work, if nothing has been heard of it since it was found."""
        work = self._work(tx, "work_locked", run=overdue.run)
        row = tx.one("lease", run_key=work.run.key)
        _check_silent(work, _lease(row) if row else None, overdue, tx)
        return work


def _lease(row: Row) -> Lease:
    return read(Lease, row)


def _check_silent(work: Work, lease: Lease | None, overdue: Overdue, tx: Tx) -> None:
    if work.task.sealed_at is not None:
        raise Terminated(f"{overdue.task} is sealed for ever (status: {work.task.status})")
    if lease is None or lease.token != overdue.lease.token or not _is_over(lease, overdue, tx):
        raise Stale(f"{overdue.run} is not overdue any more", stale="lease")


def _overdue(row: Row) -> Overdue:
    return Overdue(row[-3], row[-4], TaskStatus(row[-2]), row[-1], read(Lease, row[:-4]))


def _is_over(lease: Lease, overdue: Overdue, tx: Tx) -> bool:
    """Whether its holder has lost it: one that was given up must not have been renewed since."""
    given_up = overdue.gone and lease.expires_at == overdue.lease.expires_at
    return given_up or _ran_out(lease, tx)


def _ran_out(lease: Lease, tx: Tx) -> bool:
    return lease.expires_at < tx.lease_now or lease.boot != tx.boot
