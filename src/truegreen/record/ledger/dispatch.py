"""Verbs about what is to be carried out next, and who is about to.

A reservation is a courtesy between supervisors: it keeps them from preparing the same task at once.
What counts is the start of the run, which looks at everything again in its own transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event

import msgspec

from truegreen.contract import checked
from truegreen.errors import InvalidInput, NotFound, NotRunning, Terminated
from truegreen.facts import SYSTEM, Actor
from truegreen.model import EventLevel, Note, TaskStatus
from truegreen.record.conditions import Condition
from truegreen.record.holds import HOST_LABEL, Hold
from truegreen.record.ledger.conditions import Conditions, open_of
from truegreen.record.ledger.desk import Entry
from truegreen.record.ledger.fleet import Standing, holding, standing
from truegreen.record.ledger.inputs import microseconds, to_json
from truegreen.record.ledger.limits import Used, limits_of
from truegreen.record.ledger.reads import LONGEST_PAGE, Need, bounded, keys_of, unmet
from truegreen.record.ledger.workers import STALE_SECONDS
from truegreen.record.rows import FOR_ENGINES, Job, Task, read
from truegreen.record.store import Row, Tx, clocks, lease_clock
from truegreen.tuples import NamedTuple

RESERVED_SECONDS = 3600.0


class Due(NamedTuple):
    """A task that could start now, as it was seen; `chain` is the task that a review is about."""

    task: str
    revision: int
    chain: str | None
    shares: bool = False
    """Whether it works in a folder where other tasks could work, too."""


class Why(NamedTuple):
    """What holds a queued task back first, and what is known about that."""

    task: Task
    hold: Hold | None
    """None: it may start now."""
    needs: tuple[Need, ...] = ()
    reserved_by: str = ""
    lane: str = ""
    lane_taken_by: str = ""
    """The task whose run is in its lane."""
    labels: tuple[str, ...] = ()
    """What it asks of whoever starts it."""
    breaker: Standing | None = None
    limit: Used | None = None
    """The limit that has no room for it."""
    job: Job | None = None
    """The job that it was handed to an engine as."""
    host: str = ""
    """The only machine where it can run."""
    conditions: tuple[Condition, ...] = ()
    """What else has not happened that it waits for."""
    folder: str = ""
    """Where it would work; empty for a folder of its own."""
    folder_taken_by: str = ""
    """The task that works there, or has begun there and is queued to go on."""


class HeldBack(NamedTuple):
    """Queued tasks that could not start now."""

    counts: dict[Hold, int]
    """How many, by what holds them first."""
    tasks: list[Why]
    """The most urgent of them."""


class Dispatch(Conditions):
    """The queue, as those see it who carry it out."""

    def dispatchable(self, labels: Iterable[str] = (), *, limit: int = 100) -> list[Due]:
        """Queued tasks that could start now where these labels are, most urgent first."""
        with self._store.snapshot() as tx:
            return _dispatchable(tx, labels, limit)

    def take_due(
        self,
        holder: str,
        chosen: Callable[[list[Due]], list[Due]],
        labels: Iterable[str] = (),
        *,
        limit: int = 100,
        actor: Actor = SYSTEM,
    ) -> list[Due]:
        """Reserve what somebody chooses of what could start now; says what nobody else has taken.

        One transaction where a server is asked. A file, which has one writer at a time, is only
        read where there is nothing to take.
        """
        self._may(actor, "start")
        offered = tuple(labels)
        if self._store.dialect == "sqlite" and not chosen(self.dispatchable(offered, limit=limit)):
            return []

        def act(tx: Tx) -> Callable[[], list[Due]]:
            taken: list[Due] = []
            for due in chosen(_dispatchable(tx, offered, limit)):
                # Of tasks for one folder only the first is taken: the others are held from then on.
                if taken and due.shares and _is_in_use(tx, due.task):
                    continue
                if self._reserve(tx, due.chain or due.task, holder, take=False):
                    taken.append(due)
            return lambda: taken

        return self._do(act)

    def is_folder_free(self, due: Due) -> bool:
        """Whether no other task works in the folder of one that could start, or is about to."""
        if not due.shares:
            return True
        with self._store.snapshot() as tx:
            return not _is_in_use(tx, due.task)

    def why(self, task_id: str, labels: Iterable[str] | None = None) -> Why:
        """What holds a queued task back first, asked of the list that the dispatcher goes by.

        Without labels it is asked for somebody who has whatever the task wants.
        """
        with self._store.snapshot() as tx:
            row = tx.one("task", id=task_id)
            if row is None:
                raise NotFound(f"no task {task_id}")
            task = read(Task, row[:-1])
            if task.status is not TaskStatus.QUEUED:
                message = f"task {task.id} is not queued (status: {task.status})"
                raise NotRunning(message, status=task.status)
            asked = _asked(tx, task)
            offered = _all_of(asked) if labels is None else to_json(sorted(labels))
            found = tx.one("hold_of_task", key=task.key, labels=offered, **clocks(tx))
            return _why(tx, task, Hold(found[0]) if found and found[0] else None, asked)

    def waive(self, task_id: str, needed: str, *, actor: Actor, reason: str) -> Task:
        """Let a task do without one that it depends on, or a message or a file.

        Its contract stays, and so does this.
        """
        self._may(actor, "recover")
        reason = self._needed(reason, actor)

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            if task.sealed_at is not None:
                raise Terminated(f"{task.id} is sealed for ever (status: {task.status})")
            missing = [need.task for need in unmet(tx, [task]).get(task.key, ())]
            let_off = self._let_off(tx, task, needed, Entry(actor, reason))
            if let_off:
                return lambda: let_off
            if needed not in missing:
                missing += [str(each.wait) for each in open_of(tx, [task.key])]
                message = f"{task.id} does not wait for {needed}"
                raise InvalidInput(message, allowed=tuple(missing))
            values = {"task_key": task.key, "needed": needed, "actor": str(actor)}
            tx.run("insert_waiver", **values, reason=reason, now=tx.now)
            entry = Entry(actor, reason, data={"waived": needed}, level=EventLevel.WARN)
            hit = self._note(tx, task, Note.MESSAGE, entry)
            return lambda: read(Task, hit.row)

        return self._do(act)

    def listen(self, heard: Callable[[], None], over: Event) -> None:
        """Call somebody whenever something was queued, until it is over. Only a hint."""
        self._store.listen(heard, over)

    def held_back(self, labels: Iterable[str] = (), *, limit: int = LONGEST_PAGE) -> HeldBack:
        """Queued tasks that could not start now where these labels are, and what holds each."""
        offered = to_json(sorted(labels))
        with self._store.snapshot() as tx:
            values = {"labels": offered, **clocks(tx)}
            counted = tx.all("held_back", **values)
            rows = tx.all("held_tasks", **values, n=bounded(limit))
            tasks = [(read(Task, row[:-1]), Hold(row[-1])) for row in rows]
            whys = [_why(tx, task, hold, _asked(tx, task)) for task, hold in tasks]
        return HeldBack({Hold(hold): number for hold, number in counted if hold}, whys)

    def waits(self, tasks: Iterable[Task]) -> tuple[dict[int, list[Need]], dict[int, Hold]]:
        """What queued tasks need, and what holds them, by their keys; in one look."""
        queued = [task for task in tasks if task.status is TaskStatus.QUEUED]
        needs: dict[int, list[Need]] = {}
        holds: dict[int, Hold] = {}
        if not queued:
            return needs, holds
        with self._store.snapshot() as tx:
            values = {**clocks(tx), "seen": tx.now - microseconds(STALE_SECONDS)}
            rows = tx.all("waits_of_tasks", keys=keys_of(queued), **values)
        for key, hold, needed, status in sorted(rows, key=lambda row: (row[0], row[2] or "")):
            if hold:
                holds[key] = Hold(hold)
            if needed:
                needs.setdefault(key, []).append(Need(needed, status and TaskStatus(status)))
        return needs, holds

    def holds(self, tasks: Iterable[Task]) -> dict[int, Hold]:
        """What keeps queued tasks from every worker that was heard of lately, by their keys."""
        queued = [task for task in tasks if task.status is TaskStatus.QUEUED]
        if not queued:
            return {}
        with self._store.snapshot() as tx:
            values = {**clocks(tx), "seen": tx.now - microseconds(STALE_SECONDS)}
            rows = tx.all("holds_of_tasks", keys=keys_of(queued), **values)
        return {key: Hold(hold) for key, hold in rows if hold}

    def needs(self, tasks: Iterable[Task]) -> dict[int, list[Need]]:
        """What queued tasks wait for, by their keys."""
        queued = [task for task in tasks if task.status is TaskStatus.QUEUED]
        with self._store.snapshot() as tx:
            return unmet(tx, queued)

    def reserve(
        self,
        task_id: str,
        holder: str,
        *,
        seconds: float = RESERVED_SECONDS,
        take: bool = False,
        actor: Actor = SYSTEM,
    ) -> bool:
        """Say who is about to carry a task out; `take` does so whoever else has said it."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], bool]:
            done = self._reserve(tx, task_id, holder, seconds=seconds, take=take)
            return lambda: done

        return self._do(act)

    @staticmethod
    def _reserve(
        tx: Tx, task_id: str, holder: str, *, seconds: float = RESERVED_SECONDS, take: bool = True
    ) -> bool:
        row = tx.one(
            "reserve_task",
            task=task_id,
            holder=checked(holder, "holder", 200),
            expires_at=tx.now + microseconds(seconds),
            take=int(take),
            now=tx.now,
        )
        return row is not None

    def release(self, task_id: str, holder: str, *, actor: Actor = SYSTEM) -> None:
        """Whoever was about to carry a task out is not any more."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], None]:
            tx.run("release_task", task=task_id, holder=holder)
            return lambda: None

        self._do(act)

    def reservations(self, host: str) -> list[tuple[str, str]]:
        """Tasks that processes of one machine are about to carry out, each with its holder."""
        with self._store.snapshot() as tx:
            return [(row[0], row[1]) for row in tx.all("reservations_of_holders", host=host)]


def _dispatchable(tx: Tx, labels: Iterable[str], limit: int) -> list[Due]:
    values = {**clocks(tx), "labels": to_json(sorted(labels)), "n": bounded(limit)}
    return [
        Due(task, revision, chain, bool(shares))
        for task, revision, chain, shares in tx.all("dispatchable", **values)
    ]


def _is_in_use(tx: Tx, task: str) -> bool:
    return tx.one("is_folder_in_use", task=task, **clocks(tx)) is not None


def _asked(tx: Tx, task: Task) -> Row:
    return tx.one("demand", task_key=task.key) or ("[]", None, None, None, None, None)


def _why(tx: Tx, task: Task, hold: Hold | None, asked: Row) -> Why:
    held = tx.one("reservation", task_key=task.key, now=tx.now)
    return Why(
        task,
        hold,
        tuple(unmet(tx, [task]).get(task.key, ())),
        held[0] if held else "",
        asked[1] or "",
        asked[2] or "",
        msgspec.json.decode(asked[0], type=tuple[str, ...]),
        _breaker(tx, task, hold) if hold else None,
        _limit(tx, task) if hold is Hold.SPENT else None,
        _job_of(tx, held[0]) if held else None,
        asked[3] or "",
        tuple(open_of(tx, [task.key])),
        asked[5] or "",
        _in_folder(tx, task, asked) if hold is Hold.FOLDER else "",
    )


def _in_folder(tx: Tx, task: Task, asked: Row) -> str:
    where = {"folder_host": asked[4] or "", "folder": asked[5] or ""}
    found = tx.one("folder_in_use", task=task.id, **where, **lease_clock(tx))
    found = found or tx.one("folder_begun", task_key=task.key)
    found = found or tx.one("folder_awaited", task_key=task.key, now=tx.now)
    return found[0] if found else ""


def _breaker(tx: Tx, task: Task, hold: Hold) -> Standing | None:
    rows = tx.all("breakers_of_task", task_key=task.key)
    return holding((standing(row, tx.now) for row in rows), hold)


def _limit(tx: Tx, task: Task) -> Used | None:
    return next((each for each in limits_of(tx, task.key) if each.full), None)


def _job_of(tx: Tx, holder: str) -> Job | None:
    """The job that a task is reserved for; people and processes reserve under other names."""
    row = tx.one("job", id=holder.rpartition("/")[2]) if holder.startswith(FOR_ENGINES) else None
    return read(Job, row[:-1]) if row else None


def _all_of(asked: Row) -> str:
    """Whatever a task wants, as somebody would offer it who has all of it."""
    wanted = msgspec.json.decode(asked[0], type=list[str])
    return to_json([*wanted, *([f"{HOST_LABEL}{asked[3]}"] if asked[3] else [])])
