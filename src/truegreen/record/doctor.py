"""The look at a whole store: schema, files, counters, history, and the anchor outside of it.

It changes nothing. What it finds is a list of ailments, each with the next step; an empty list
means that the record is what it says it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truegreen.model import TaskStatus
from truegreen.record import migrate
from truegreen.record.chain import GENESIS, Anchor, Reach, seal_of
from truegreen.record.ledger import Ledger
from truegreen.record.rows import Event, Task, read
from truegreen.record.store import Row, Store
from truegreen.tuples import NamedTuple

_PAGE = 1000
_RESTORE = "restore a backup (truegreen backup makes them) and compare"


class Ailment(NamedTuple):
    """Something that is not as it should be, and what to do about it."""

    name: str
    message: str
    next: str


def examine(ledger: Ledger) -> list[Ailment]:
    """Everything that is wrong with a store, worst first."""
    store = ledger.store
    state = migrate.inspect(store)
    if not state.current:
        found = state.problems or (f"schema {state.version}, this program has {state.newest}",)
        return [Ailment("schema", problem, migrate.REPAIR) for problem in found]
    ailments = [Ailment("files", problem, _RESTORE) for problem in store.integrity()]
    ailments += history(store)
    ailments += anchored(store, ledger.anchor)
    ailments += _counters(store)
    ailments += _ghosts(store)
    ailments += _contradictions(store)
    return ailments


def history(store: Store) -> list[Ailment]:
    """Walk every chain: the hashes hold, and the events lead to the rows."""
    ailments: list[Ailment] = []
    for task, events in _chains(store):
        if found := walk(task, events):
            ailments += _walk_again(store, task) if task else found
    return ailments


def _walk_again(store: Store, task: Task) -> list[Ailment]:
    """Row and chain at one moment: between two looks at a live store a task may have moved."""
    with store.snapshot() as tx:
        row = tx.one("task", id=task.id)
        events: list[Event] = []
        while rows := tx.all(
            "events_of_task", key=task.key, after=events[-1].revision if events else 0, n=_PAGE
        ):
            events += [read(Event, row[:-1]) for row in rows]
    return walk(read(Task, row[:-1]) if row else task, events)


class _Line(NamedTuple):
    """What a chain says about its task so far."""

    head: bytes = GENESIS
    revision: int = 0
    status: TaskStatus | None = None
    fence: int = 0


def walk(task: Task | None, events: list[Event]) -> list[Ailment]:
    """What is wrong with one chain: hashes that don't fit, or events that lead elsewhere."""
    name = task.id if task else "the house"
    ailments = []
    line = _Line()
    for event in events:
        where = f"{name}, event {event.revision} ({event.event})"
        if event.revision != line.revision + 1:
            ailments.append(Ailment("history", f"{where}: an event before it is gone", _RESTORE))
        if event.hash is None:
            message = f"{where}: written by raw SQL, by nobody that the record knows"
            ailments.append(Ailment("unsigned", message, f"truegreen events {name}"))
        elif event.hash != seal_of(line.head, task.id if task else None, event):
            ailments.append(Ailment("history", f"{where}: its hash does not fit", _RESTORE))
        line = _Line(
            event.hash or line.head,
            event.revision,
            _next_status(line, event),
            max(line.fence, event.fence),
        )
    if task and (task.status, task.fence, task.revision, task.head) != (
        line.status,
        line.fence,
        line.revision,
        line.head,
    ):
        message = f"{name}: its events lead to {line.status}, its row says {task.status}"
        ailments.append(Ailment("history", message, _RESTORE))
    return ailments


def _next_status(line: _Line, event: Event) -> TaskStatus | None:
    return TaskStatus.QUEUED if event.event == "open" else event.to_status or line.status


def _chains(store: Store) -> Iterator[tuple[Task | None, list[Event]]]:
    """Each task with its whole chain, then the house's own."""
    events = _events(store)
    upcoming = next(events, None)
    after = 0
    while rows := _page(store, "all_tasks", after=after):
        for row in rows:
            task = read(Task, row)
            chain = []
            while upcoming and (upcoming.task_key or 0) <= task.key:
                if upcoming.task_key == task.key:
                    chain.append(upcoming)
                upcoming = next(events, None)
            yield task, chain
            after = task.key
    yield None, list(_house(store))


def _events(store: Store) -> Iterator[Event]:
    """Every event of every task, chain by chain; one that lost its task is passed over."""
    task, revision = 0, 0
    while rows := _page(store, "chains", after_task=task, after=revision):
        for row in rows:
            event = read(Event, row)
            task, revision = event.task_key or 0, event.revision
            yield event


def _house(store: Store) -> Iterator[Event]:
    revision = 0
    while rows := _page(store, "events_of_house", after=revision):
        for row in rows:
            event = read(Event, row[:-1])
            revision = event.revision
            yield event


def _page(store: Store, query: str, **where: int) -> list[Row]:
    with store.snapshot() as tx:
        return tx.all(query, n=_PAGE, **where)


def _reaches(store: Store) -> Iterator[Reach]:
    """The running digest over the whole feed, event by event."""
    reach = Reach()
    while rows := _page(store, "feed", after_xact=reach.xact, after_key=reach.key):
        for row in rows:
            reach = reach.over(read(Event, row[:-1]))
            yield reach


def anchored(store: Store, anchor: Anchor | None) -> list[Ailment]:
    """Every mark of the anchor is still true: no tail was cut, no history computed anew."""
    marks = {mark.events: mark for mark in anchor.marks()} if anchor else {}
    missing = dict(marks)
    for reach in _reaches(store):
        mark = missing.pop(reach.events, None)
        if mark and mark.digest != reach.digest.hex():
            message = f"the first {mark.events} events are not those that were anchored"
            return [Ailment("anchor", message, _RESTORE)]
        if not missing:
            return []
    if missing and anchor:
        message = f"events were removed: {max(missing)} were anchored in {anchor.path}"
        step = f"{_RESTORE}; after restoring an older backup on purpose, move the anchor away"
        return [Ailment("anchor", message, step)]
    return []


def _counters(store: Store) -> list[Ailment]:
    if not migrate.miscounted(store):
        return []
    message = "the matrix's counters differ from the tasks that they count"
    return [Ailment("counters", message, migrate.REPAIR)]


def _contradictions(store: Store) -> list[Ailment]:
    with store.snapshot() as tx:
        tasks, orphans, house = tx.all("contradictions"), tx.all("orphans"), tx.one("house_now")
    ailments = [
        Ailment("contradiction", f"{task} and its latest run, or its findings, disagree", _RESTORE)
        for (task,) in tasks
    ]
    ailments += [
        Ailment("orphan", f"{event} belongs to a task that is gone", _RESTORE)
        for (event,) in orphans
    ]
    if house and _house_astray(store, tuple(house)):
        message = "the house's events lead to another head than its row"
        ailments.append(Ailment("history", message, _RESTORE))
    return ailments


def _house_astray(store: Store, head: tuple[Any, ...]) -> bool:
    """Whether its events don't lead to its head; it may grow meanwhile, and only grow."""
    reached, last = False, 0
    for event in _house(store):
        reached = reached or (event.revision, event.hash) == head
        last = event.revision
    with store.snapshot() as tx:
        (grown, _) = tx.one("house_now") or (0, None)
    return last > 0 and not (reached and last <= grown)


def _ghosts(store: Store) -> list[Ailment]:
    with store.snapshot() as tx:
        rows = tx.all("ghosts")
    return [
        Ailment(
            "ghost", f"{run} has not ended and nobody holds its lease", f"truegreen show {task}"
        )
        for run, task in rows
    ]
