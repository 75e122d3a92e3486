"""Verbs about what is to happen again and again: taken from settings, paused, run now, looked at.

What is taken over is frozen with its contract: whoever writes into a settings file later changes
nothing here, until those settings are trusted and taken over again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from truegreen.contract import Contract, Routine, canonical, checked, checked_name, digest_of
from truegreen.contract.reading import PATH_BYTES
from truegreen.contract.schedules import after
from truegreen.errors import InvalidInput, NotFound, Refused
from truegreen.facts import SYSTEM, Actor
from truegreen.model import Cell, EventLevel, Note, RunStatus, TaskStatus
from truegreen.record.ledger.desk import Entry
from truegreen.record.ledger.occurrences import Occurrences, Slot, terms_here, terms_of
from truegreen.record.ledger.reads import bounded
from truegreen.record.recurrence import Fate, Rollup, rollup
from truegreen.record.rows import OccurrenceRow, RoutineRow, Task, read
from truegreen.record.store import Row, Tx
from truegreen.tuples import NamedTuple

BY_SETTINGS = "settings"
"""Who paused what says `paused = true`."""
STRIP = 14
"""So many of the latest occurrences show how a routine fares."""
_NEWEST = 1 << 62


class Definition(NamedTuple):
    """A routine as trusted settings say it, and the contract that its tasks will have."""

    name: str
    routine: Routine
    contract: Contract


class Taken(NamedTuple):
    """What taking settings over did to a routine."""

    name: str
    change: str


class Occurred(NamedTuple):
    """An occurrence, and how its task stands on both axes."""

    row: OccurrenceRow
    task: str | None
    status: TaskStatus | None
    run_status: RunStatus | None
    cell: Cell | None


class Known(NamedTuple):
    """A routine, the latest times that it was due, and what they come to."""

    row: RoutineRow
    terms: Routine
    recent: list[Occurred]
    missed: int
    waiting: int
    rollup: Rollup
    trouble: str = ""
    """What keeps this machine from seeing to it."""

    @property
    def latest(self) -> Occurred | None:
        """The newest occurrence that has a task, also one that never started."""
        return next((each for each in self.recent if each.task), None)


class Routines(Occurrences):
    """What is to happen again and again."""

    def take_routines(
        self,
        source: str,
        definitions: Iterable[Definition],
        *,
        kept: Iterable[str] = (),
        ends: bool = True,
        actor: Actor = SYSTEM,
    ) -> list[Taken]:
        """Take over what trusted settings say; `ends`: what they name no more is over.

        `kept` stay as they are. The last one who does it decides; that somebody else had said
        otherwise is an event.
        """
        self._may(actor, "start")
        checked(source, "source", PATH_BYTES)
        given = sorted(definitions, key=lambda each: each.name)
        for each in given:
            checked_name(each.name, "routine")

        def act(tx: Tx) -> Callable[[], list[Taken]]:
            taken = [self._take(tx, source, each, actor) for each in given]
            names = {*kept, *(each.name for each in given)}
            gone = tx.all("routines_of_source", source=source) if ends else []
            left = [read(RoutineRow, row) for row in gone]
            taken += [self._gone(tx, row, actor) for row in left if row.name not in names]
            return lambda: [each for each in taken if each.change]

        return self._do(act)

    def _take(self, tx: Tx, source: str, given: Definition, actor: Actor) -> Taken:
        settings, contract = canonical(given.routine), given.contract.text()
        digest = digest_of(canonical([settings, contract]))
        said: dict[str, Any] = {
            "settings": settings,
            "contract": contract,
            "digest": digest,
            "source": source,
        }
        row = tx.one("routine_locked", name=given.name)
        if row is None:
            said |= {"kind": _kind(given.routine), "next_at": _next(given.routine, tx.now)}
            said |= {"paused_by": "", "paused_at": None} | _paused(given.routine, tx.now)
            tx.hit("insert_routine", name=given.name, **said, now=tx.now)
            return self._told(tx, given.name, "new", Entry(actor, data={"source": source}))
        was = read(RoutineRow, row)
        if (was.digest, was.source, was.gone_at) == (digest, source, None):
            return Taken(given.name, "")
        return self._changed(tx, was, given.routine, said, actor)

    def _changed(
        self, tx: Tx, was: RoutineRow, now: Routine, said: dict[str, Any], actor: Actor
    ) -> Taken:
        """Another definition under a name that is known; what was due by then is not forgotten."""
        before, other = terms_of(was), _kind(now) != was.kind
        moved = other or (before.schedule, before.timezone) != (now.schedule, now.timezone)
        if moved and was.next_at and not was.gone_at and not was.paused_at:
            cause = "nobody looked within its grace, and its schedule is another one by now"
            self._came(tx, was, cause, held=False, ahead=False)
            was = self._routine(tx, was.name)
        changes: dict[str, Any] = {**said, "kind": _kind(now), "gone_at": None}
        if moved or was.gone_at:
            changes["next_at"] = _next(now, tx.now)
        if other:
            self._skip_waiting(tx, was, f"it is a {_kind(now)} by now")
            changes |= {"iteration": 0, "failures": 0, "task_key": None}
            changes |= {"ended": None, "ended_at": None}
        if now.paused and not was.paused_at:
            changes |= _paused(now, tx.now)
        elif not now.paused and was.paused_by == BY_SETTINGS:
            changes |= {"paused_by": "", "paused_at": None, "next_at": _next(now, tx.now)}
        self._stands(tx, was, **changes)
        if was.gone_at is None and was.digest == said["digest"]:
            return Taken(was.name, "")
        word = "back" if was.gone_at else "changed"
        data = {"source": said["source"], "was_source": was.source, "was": was.digest}
        return self._told(tx, was.name, word, Entry(actor, data=data))

    def _gone(self, tx: Tx, routine: RoutineRow, actor: Actor) -> Taken:
        """Settings name it no more: nothing of it starts, and all of it is kept."""
        self._skip_waiting(tx, routine, "not in the settings any more")
        self._stands(tx, routine, gone_at=tx.now, next_at=None)
        return self._told(tx, routine.name, "gone", Entry(actor, data={"source": routine.source}))

    @staticmethod
    def _skip_waiting(tx: Tx, routine: RoutineRow, cause: str) -> None:
        for row in tx.all("occurrences_waiting", routine_key=routine.key):
            state = {"state": Fate.SKIPPED, "cause": cause, "task_key": None}
            tx.hit("write_occurrence", key=read(OccurrenceRow, row).key, now=tx.now, **state)

    def _told(self, tx: Tx, name: str, change: str, entry: Entry) -> Taken:
        data = {"routine": name, "change": change, **entry.data}
        self._house_note(tx, Note.AGENT, entry._replace(data=data))
        return Taken(name, change)

    def realign_routines(self, *, actor: Actor = SYSTEM) -> list[str]:
        """After a clock was set back: what comes earlier than was thought is due then."""
        self._may(actor, "supervise")

        with self._store.snapshot() as tx:
            known = [read(RoutineRow, row) for row in tx.all("routines")]
            astray = [each.name for each in known if _earlier(each, tx.now)]

        def act(tx: Tx) -> Callable[[], list[str]]:
            moved = []
            for routine in [self._routine(tx, name) for name in astray]:
                if first := _earlier(routine, tx.now):
                    self._stands(tx, routine, next_at=first)
                    self._told(tx, routine.name, "realigned", Entry(actor, level=EventLevel.WARN))
                    moved.append(routine.name)
            return lambda: moved

        return self._do(act) if astray else []

    # -- what people do -------------------------------------------------------------------------

    def pause_routine(self, name: str, *, actor: Actor, reason: str = "") -> RoutineRow:
        """Nothing of it starts by itself until somebody resumes it; again changes nothing."""
        self._may(actor, "switch")
        self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], RoutineRow]:
            routine = self._kept(tx, name)
            if not routine.paused_at:
                self._stands(tx, routine, paused_by=str(actor), paused_at=tx.now)
                self._told(tx, name, "paused", Entry(actor, reason))
            done = self._routine(tx, name)
            return lambda: done

        return self._do(act)

    def resume_routine(self, name: str, *, actor: Actor, reason: str = "") -> RoutineRow:
        """It starts by itself again, from now on: what was due meanwhile is not made up for."""
        self._may(actor, "switch")
        self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], RoutineRow]:
            routine = self._kept(tx, name)
            if routine.paused_by == BY_SETTINGS:
                message = f"{name} is paused in the settings: set paused = false there"
                raise Refused(message, allowed=(f"routines.{name}.paused = false",))
            if routine.paused_at:
                begins = _next(terms_of(routine), tx.now)
                self._stands(tx, routine, paused_by="", paused_at=None, next_at=begins)
                self._told(tx, name, "resumed", Entry(actor, reason))
            done = self._routine(tx, name)
            return lambda: done

        return self._do(act)

    def run_routine(
        self, name: str, *, actor: Actor, reason: str = "", key: str | None = None
    ) -> Task:
        """Queue the task of a routine now, also of a paused one, beside its schedule.

        Of a cycle it is the next iteration, or the first of a new round.
        """
        self._may(actor, "open")
        self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], Task]:
            before = self._done_before(tx, key, (Note.OPEN,))
            if before:
                first = self._task(tx, before)
                return lambda: first
            routine = self._kept(tx, name)
            words = f"run by {actor}" + (f": {reason}" if reason else "")
            wish = Slot("", tx.now, actor=actor, cause=words, key=key)
            of = self._run_cycle if routine.kind == "cycle" else self._run_once
            done = self._task(tx, of(tx, routine, wish))
            return lambda: done

        return self._do(act)

    def _run_once(self, tx: Tx, routine: RoutineRow, wish: Slot) -> str:
        task = self._begun(tx, routine, wish._replace(name="now"))
        self._occurred(tx, routine, wish._replace(name=f"now/{task.id}"), Fate.FIRED, task)
        self._stands(tx, routine, task_key=task.key)
        return task.id

    def _run_cycle(self, tx: Tx, routine: RoutineRow, wish: Slot) -> str:
        if routine.task_key is None or routine.ended is not None:
            return self._round(tx, routine, wish).task
        happened = self._turned(tx, routine, wish)
        if happened and happened[-1].task:
            return happened[-1].task
        if happened:
            return self._round(tx, self._routine(tx, routine.name), wish).task
        row = tx.one("iteration_of_cycle", task_key=routine.task_key) or ("", "")
        message = f"iteration {routine.iteration} of {routine.name} has no outcome yet: {row[0]}"
        raise Refused(f"{message} ({row[1]})", task=row[0], allowed=(f"show {row[0]}",))

    def _kept(self, tx: Tx, name: str) -> RoutineRow:
        routine = self._routine(tx, name)
        if routine.gone_at:
            raise Refused(f"{name} is not in the settings any more", source=routine.source)
        return routine

    # -- reading --------------------------------------------------------------------------------

    def routines(self) -> list[Known]:
        """Every routine that was ever taken over, by name."""
        with self._store.snapshot() as tx:
            return [_known(tx, read(RoutineRow, row)) for row in tx.all("routines")]

    def routine(self, name: str, *, limit: int = STRIP) -> Known:
        """One routine with its latest occurrences."""
        with self._store.snapshot() as tx:
            row = tx.one("routine", name=name)
            if row is None:
                names = tuple(read(RoutineRow, each).name for each in tx.all("routines"))
                raise NotFound(f"no routine {name}", kind="routine", allowed=names)
            return _known(tx, read(RoutineRow, row), bounded(limit))

    def routine_of(self, task: Task) -> str | None:
        """The routine that a task was opened for."""
        with self._store.snapshot() as tx:
            row = tx.one("routine_of_task", task_key=task.key)
        return str(row[0]) if row else None


def _known(tx: Tx, row: RoutineRow, limit: int = STRIP) -> Known:
    fields = len(OccurrenceRow.__struct_fields__)
    rows = tx.all("occurrences_of_routine", routine_key=row.key, before=_NEWEST, n=limit)
    recent = [
        Occurred(read(OccurrenceRow, each[:fields]), *_standing(each[fields:])) for each in rows
    ]
    counts = {each[0]: each[1] for each in tx.all("occurrences_counted", routine_key=row.key)}
    terms, trouble = terms_here(row)
    return Known(
        row,
        terms,
        recent,
        counts.get(Fate.MISSED, 0),
        counts.get(Fate.WAITING, 0),
        rollup(_members(tx, row)),
        trouble,
    )


def _standing(row: Row) -> tuple[Any, ...]:
    task, *words = row
    kinds = (TaskStatus, RunStatus, Cell)
    return (task, *(kind(word) if word else None for kind, word in zip(kinds, words, strict=True)))


def _members(tx: Tx, row: RoutineRow) -> list[TaskStatus | None]:
    """The tasks by which a routine is judged: a whole round of a cycle, or the latest of others."""
    if row.kind == "cycle":
        given = {"routine_key": row.key, "generation": row.generation}
        found = tx.all("statuses_of_generation", **given)
    else:
        found = tx.all("statuses_of_latest", routine_key=row.key, n=STRIP)
    return [TaskStatus(each[0]) if each[0] else None for each in found]


def _kind(routine: Routine) -> str:
    return "cycle" if routine.repeat else "schedule"


def _next(routine: Routine, now: int) -> int | None:
    return after(routine.schedule, routine.timezone, now) if routine.schedule else None


def _earlier(routine: RoutineRow, now: int) -> int | None:
    """When a schedule is due before it is thought to be, as after a clock was set back."""
    try:
        first = _next(terms_of(routine), now) if routine.next_at else None
    except InvalidInput:
        return None  # a time zone that this machine does not know: others look, too
    return first if first and routine.next_at and first < routine.next_at else None


def _paused(routine: Routine, now: int) -> dict[str, Any]:
    return {"paused_by": BY_SETTINGS, "paused_at": now} if routine.paused else {}
