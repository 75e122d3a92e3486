"""Verbs about each time that something is due: it fires, waits, is skipped or was missed; once.

One transaction holds the routine, writes the occurrence, opens its task and moves the routine on:
any number of schedulers on one store see to a slot once. What becomes of it is decided in
`recurrence`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import force_setattr, replace

from truegreen.contract import Routine, read_contract, read_json
from truegreen.contract.schedules import after, due
from truegreen.errors import InvalidInput, NotFound
from truegreen.facts import SYSTEM, Actor
from truegreen.model import (
    Cell,
    EndedBy,
    EventLevel,
    ExitDetail,
    ExitReason,
    Move,
    Outcome,
    RunStatus,
    Severity,
    TaskStatus,
)
from truegreen.record.ids import new_id
from truegreen.record.ledger.attention import Call, bring_up
from truegreen.record.ledger.desk import Entry
from truegreen.record.ledger.inputs import REASON_LIMIT, to_json
from truegreen.record.ledger.reads import bounded
from truegreen.record.ledger.tasks import Tasks
from truegreen.record.recurrence import Fate, Missed, overlapping, plan, turn
from truegreen.record.rows import OccurrenceRow, RoutineRow, Task, read
from truegreen.record.store import Tx
from truegreen.tuples import NamedTuple

_WRITTEN = (
    *("key", "kind", "settings", "contract", "digest", "source", "paused_by", "paused_at"),
    *("next_at", "generation", "iteration", "failures", "task_key", "ended", "ended_at"),
    *("gone_at", "revision"),
)
NOBODY_LOOKED = "nobody looked within its grace: no scheduler ran, or the machine slept"


class Happened(NamedTuple):
    """What became of a routine at one look: an occurrence, or the end of a cycle."""

    routine: str
    fate: Fate | None
    cause: str
    task: str = ""
    slot: str = ""


class Slot(NamedTuple):
    """Which occurrence: its name, when it was due, and who wanted it."""

    name: str
    due_at: int
    generation: int = 0
    actor: Actor = SYSTEM
    cause: str = ""
    key: str | None = None


class Occurrences(Tasks):
    """What happens again and again, one time after the other."""

    def due_routines(self, *, limit: int = 100) -> list[str]:
        """The routines about which something may have to be done now."""
        with self._store.snapshot() as tx:
            return [row[0] for row in tx.all("routines_due", now=tx.now, n=bounded(limit))]

    def tend_routine(self, name: str, *, actor: Actor = SYSTEM) -> list[Happened]:
        """See to what is due of one routine; nothing where somebody else was quicker."""
        self._may(actor, "supervise")

        def act(tx: Tx) -> Callable[[], list[Happened]]:
            routine = self._routine(tx, name)
            idle = routine.paused_at or routine.gone_at or routine.ended is not None
            happened = [] if idle else self._tended(tx, routine)
            return lambda: happened

        return self._do(act)

    def _tended(self, tx: Tx, routine: RoutineRow) -> list[Happened]:
        held = tx.one("frozen")
        if routine.kind == "cycle":
            return [] if held else self._turned(tx, routine, Slot("", tx.now))
        happened = [] if held else self._waited(tx, routine)
        if routine.next_at is None or routine.next_at > tx.now:
            return happened
        cause = f"frozen by {held[0]}: {held[1]}" if held else NOBODY_LOOKED
        return happened + self._came(tx, self._routine(tx, routine.name), cause, held=bool(held))

    @staticmethod
    def _routine(tx: Tx, name: str) -> RoutineRow:
        row = tx.one("routine_locked", name=name)
        if row is None:
            raise NotFound(f"no routine {name}", kind="routine")
        return read(RoutineRow, row)

    @staticmethod
    def _stands(tx: Tx, routine: RoutineRow, **changes: Any) -> None:
        """Write down how a routine stands now; once in a transaction."""
        values = {field: getattr(routine, field) for field in _WRITTEN} | changes
        tx.hit("write_routine", **values, now=tx.now)

    # -- on a schedule --------------------------------------------------------------------------

    def _waited(self, tx: Tx, routine: RoutineRow) -> list[Happened]:
        """The first occurrence that waits goes on when none before it is under way."""
        rows = tx.all("occurrences_waiting", routine_key=routine.key)
        if not rows or tx.one("routine_under_way", routine_key=routine.key):
            return []
        first = read(OccurrenceRow, rows[0])
        cause = "started when the one before it was over"
        task = self._begun(tx, routine, Slot(first.slot, first.due_at, cause=cause))
        state = {"state": Fate.FIRED, "cause": cause, "task_key": task.key}
        tx.hit("write_occurrence", key=first.key, now=tx.now, **state)
        self._stands(tx, routine, task_key=task.key)
        return [Happened(routine.name, Fate.FIRED, cause, task.id, first.slot)]

    def _came(
        self, tx: Tx, routine: RoutineRow, cause: str, *, held: bool, ahead: bool = True
    ) -> list[Happened]:
        """All that is due of a schedule; without `ahead` only what was missed counts."""
        terms = terms_of(routine)
        first = self._unseen(tx, routine, terms)
        span = due(terms.schedule, terms.timezone, first, tx.now) if first else None
        if span is None:
            if first != routine.next_at:
                self._stands(tx, routine, next_at=first)
            return []
        todo = plan(span, tx.now, terms.grace, terms.catch_up, held=held)
        latest, happened = routine.task_key, list[Happened]()
        if todo.missed:
            task = self._missed(tx, routine, todo.missed, cause)
            latest = task.key
            happened.append(Happened(routine.name, Fate.MISSED, cause, task.id))
        if todo.start is not None and ahead:
            started = self._started(tx, routine, terms, todo.start, late=todo.late)
            happened += started
            latest = self._latest(tx, started, latest)
        kept = todo.keep or after(terms.schedule, terms.timezone, span.newest)
        if (kept, latest) != (routine.next_at, routine.task_key):
            self._stands(tx, routine, next_at=kept, task_key=latest)
        return happened

    @staticmethod
    def _unseen(tx: Tx, routine: RoutineRow, terms: Routine) -> int | None:
        """The first instant that is due and has no row: a clock that was set back knew the rest."""
        begins = routine.next_at or 0
        slots = {"first": slot_of(begins), "last": slot_of(tx.now)}
        row = tx.one("latest_seen_to", routine_key=routine.key, **slots)
        return after(terms.schedule, terms.timezone, row[0]) if row else begins

    def _latest(self, tx: Tx, started: list[Happened], latest: int | None) -> int | None:
        tasks = [each.task for each in started if each.task]
        return self._task(tx, tasks[-1]).key if tasks else latest

    def _started(
        self, tx: Tx, routine: RoutineRow, terms: Routine, due_at: int, *, late: bool
    ) -> list[Happened]:
        waiting = len(tx.all("occurrences_waiting", routine_key=routine.key))
        busy = tx.one("routine_under_way", routine_key=routine.key)
        fate, cause = overlapping(terms.overlap, busy[0] if busy else "", waiting)
        if fate is Fate.FIRED:
            cause = f"started late, due {told(due_at)}" if late else ""
        slot = Slot(slot_of(due_at), due_at, cause=cause)
        task = self._begun(tx, routine, slot) if fate is Fate.FIRED else None
        self._occurred(tx, routine, slot, fate, task)
        return [Happened(routine.name, fate, cause, task.id if task else "", slot.name)]

    def _begun(self, tx: Tx, routine: RoutineRow, slot: Slot) -> Task:
        """The task of an occurrence, by the terms that its routine was frozen with."""
        data = {"routine": routine.name, "slot": slot.name}
        words = f"routine {routine.name}" + (f": {slot.cause}" if slot.cause else "")
        entry = Entry(slot.actor, words[:REASON_LIMIT], data=data, key=slot.key)
        task_id, _ = self._open(tx, read_contract(routine.contract), entry)
        return self._task(tx, task_id)

    @staticmethod
    def _occurred(
        tx: Tx,
        routine: RoutineRow,
        slot: Slot,
        fate: Fate,
        task: Task | None,
        missed: Missed | None = None,
    ) -> None:
        tx.run(
            "insert_occurrence",
            routine_key=routine.key,
            slot=slot.name,
            generation=slot.generation,
            first_at=missed.first if missed else slot.due_at,
            due_at=slot.due_at,
            times=missed.number if missed else 1,
            state=fate,
            cause=slot.cause[:REASON_LIMIT],
            task_key=task.key if task else None,
            actor=str(slot.actor),
            now=tx.now,
        )

    # -- what never started ---------------------------------------------------------------------

    def _missed(self, tx: Tx, routine: RoutineRow, missed: Missed, cause: str) -> Task:
        """Occurrences that never started: one row, one task that failed, one run that was none."""
        slot = Slot(slot_of(missed.last), missed.last, cause=cause)
        reason = f"{missed_words(missed)}: {cause}"[:REASON_LIMIT]
        task = self._begun(tx, routine, slot._replace(cause=reason))
        run = new_id("run", tx.now)
        data = {"attempt": task.attempt + 1, "missed": missed.number, "routine": routine.name}
        entry = Entry(SYSTEM, reason, run=run, data=data, level=EventLevel.WARN)
        begun = {"attempt": task.attempt + 1, "run_status": RunStatus.MISSED, "cell": None}
        # No edge leads from queued to failed: its run is reserved, and ends, at the same moment.
        self._move(tx, task, Move.START, entry, fence=task.fence + 1, **begun)
        ending = {"exit_reason": ExitReason.FATAL_ERROR, "exit_detail": ExitDetail.LAUNCH_FAILED}
        task = self._task(tx, task.id)
        tx.run(
            "insert_missed_run",
            id=run,
            task_key=task.key,
            attempt=task.attempt,
            fence=task.fence,
            **ending,
            ended_by=EndedBy.MACHINE,
            reason=reason,
            cell=Cell.OUTAGE,
            facts=to_json({"message": reason, "due_at": missed.last}),
            now=tx.now,
        )
        known = {"verdict": Outcome.UNKNOWN, "cell": Cell.OUTAGE, "run_status": RunStatus.MISSED}
        self._move(tx, task, Move.FAIL, entry._replace(data={"missed": True}), **ending, **known)
        self._occurred(tx, routine, slot, Fate.MISSED, task, missed)
        self._asked(tx, routine, self._task(tx, task.id), reason)
        return task

    def _asked(self, tx: Tx, routine: RoutineRow, task: Task, reason: str) -> None:
        """One thing to look at for each routine; the next miss only counts."""
        run = self._work(tx, "latest_locked", key=task.key).run
        words = f"routine {routine.name}: {reason}"[:REASON_LIMIT]
        topic = f"{Cell.OUTAGE}: missed: {routine.name}"
        command = f"routine show {routine.name}"
        cause = f"missed:{routine.name}"
        bring_up(tx, task, run.key, Call(cause, topic, Cell.OUTAGE, Severity.HIGH, words, command))

    # -- in a cycle -----------------------------------------------------------------------------

    def _turned(self, tx: Tx, routine: RoutineRow, wish: Slot) -> list[Happened]:
        """The next iteration of a cycle, or its end; nothing while the latest has no outcome."""
        row = tx.one("iteration_of_cycle", task_key=routine.task_key) if routine.task_key else None
        if row is None:
            return [self._round(tx, routine, wish)]
        repeat = terms_of(routine).repeat
        status, sealed, noop = TaskStatus(row[1]), row[2] is not None, row[3] == "noop"
        given = (routine.iteration, routine.failures, status)
        step = turn(repeat, *given, sealed=sealed, noop=noop) if repeat else None
        if step is None:
            return []
        if step.ended:
            self._stands(tx, routine, failures=step.failures, ended=step.ended, ended_at=tx.now)
            return [Happened(routine.name, None, step.ended)]
        return [self._iterated(tx, routine, routine.iteration + 1, step.failures, wish)]

    def _round(self, tx: Tx, routine: RoutineRow, wish: Slot) -> Happened:
        """The first iteration of a new round."""
        new = replace(routine, generation=routine.generation + 1)
        return self._iterated(tx, new, 1, 0, wish)

    def _iterated(
        self, tx: Tx, routine: RoutineRow, iteration: int, failures: int, wish: Slot
    ) -> Happened:
        repeat = terms_of(routine).repeat
        words = f"iteration {iteration} of {repeat.max_iterations if repeat else iteration}"
        cause = f"{words}; {wish.cause}" if wish.cause else words
        name = f"{routine.generation}/{iteration}"
        slot = wish._replace(name=name, generation=routine.generation, cause=cause)
        task = self._begun(tx, routine, slot)
        self._occurred(tx, routine, slot, Fate.FIRED, task)
        begun = {"task_key": task.key, "ended": None, "ended_at": None}
        self._stands(tx, routine, iteration=iteration, failures=failures, **begun)
        return Happened(routine.name, Fate.FIRED, cause, task.id, name)


def terms_of(routine: RoutineRow) -> Routine:
    """The settings of a routine, as they were taken over."""
    return read_json(routine.settings, Routine, f"routine {routine.name}")


def terms_here(routine: RoutineRow) -> tuple[Routine, str]:
    """The same where they are only shown, and what keeps this machine from going by them."""
    try:
        return terms_of(routine), ""
    except InvalidInput as error:
        said = msgspec.json.decode(routine.settings)
        known = replace(routine, settings=to_json({**said, "timezone": "UTC"}))
        terms = terms_of(known)  # refused where anything else is wrong
        force_setattr(terms, "timezone", said["timezone"])
        return terms, f"{error.message}; until then another machine has to see to it"


def slot_of(instant: int) -> str:
    """The name of an occurrence on a schedule: when it was due."""
    return told(instant)


def told(instant: int) -> str:
    """An instant in words that mean the same everywhere."""
    return datetime.fromtimestamp(instant / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def missed_words(missed: Missed) -> str:
    """How many never started, and when they were due."""
    if missed.number == 1:
        return f"due {told(missed.last)}, never started"
    number = f"{missed.number}" if missed.exact else f"more than {missed.number}"
    return f"{number} missed, due from {told(missed.first)} to {told(missed.last)}, never started"
