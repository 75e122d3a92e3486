"""What must hold in every store, whatever was done to it: rows, events and chains tell one story.

Nothing here asks the ledger's own verification: the fold and the counting are written anew.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from truegreen.record.chain import GENESIS, seal_of
from truegreen.record.rows import Event, Run, Task, read

if TYPE_CHECKING:
    from truegreen.record.ledger import Ledger

MANY = 1_000_000
ENDINGS = {"cancel", "terminate"}
TABLES = (
    *("tasks", "runs", "leases", "charges", "claims", "findings", "events", "refusals"),
    *("messages", "inbox", "tokens", "agents"),
)


class Story(NamedTuple):
    """A task with its runs and events, read at one moment."""

    task: Task
    runs: list[Run]
    events: list[Event]


class Folded(NamedTuple):
    """What a task must be after its first events."""

    status: str
    fence: int
    sealed: bool
    attempt: int
    attempts: int


def stories(ledger: Ledger, only: set[str] | None = None) -> list[Story]:
    """Every task of a store, or the named ones."""
    with ledger.store.snapshot() as tx:
        if only is None:
            rows = tx.all("all_tasks", after=0, n=MANY)
        else:
            rows = [row[:-1] for row in (tx.one("task", id=task) for task in sorted(only)) if row]
        return [
            Story(
                task,
                [read(Run, row) for row in tx.all("runs_of_task", key=task.key)],
                [
                    read(Event, row[:-1])
                    for row in tx.all("events_of_task", key=task.key, after=0, n=MANY)
                ],
            )
            for task in (read(Task, row) for row in rows)
        ]


def folds(events: list[Event]) -> list[Folded]:
    """The task after each of its events, from the events alone."""
    states: list[Folded] = []
    now = Folded("queued", 0, sealed=False, attempt=0, attempts=0)
    for event in events:
        data: dict[str, Any] = json.loads(event.data)
        if event.to_status is not None:
            assert event.from_status == now.status, f"{event.event} leads from nowhere: {event}"
        attempts = now.attempts + data.get("charged", []).count("attempts")
        if event.event in ("unblock", "reopen", "retry") and "attempts" in data:
            attempts = data["attempts"][0]
        now = Folded(
            status=str(event.to_status or now.status),
            fence=event.fence,
            sealed=now.sealed or event.event in ("terminate", "seal"),
            attempt=data["attempt"] if event.event == "start" else now.attempt,
            attempts=attempts,
        )
        if states:
            assert now.fence >= states[-1].fence, "the fence fell"
        states.append(now)
    return states


def check_story(story: Story) -> None:
    """One task: its events replay to its row, its chain is whole, its runs ended once."""
    task, events = story.task, story.events
    name = f"{task.id} ({task.status})"
    assert [event.revision for event in events] == list(range(1, task.revision + 1)), name
    state = folds(events)[-1]
    row = Folded(task.status, task.fence, task.sealed_at is not None, task.attempt, task.attempts)
    assert state == row, f"{name}: the events say {state}, the row says {row}"
    head = GENESIS
    for event in events:
        head = seal_of(head, task.id, event)
        assert head == event.hash, f"{name}: the chain breaks at revision {event.revision}"
    assert head == task.head, f"{name}: the head is not the last event's"
    assert task.attempts <= task.attempts_max, name
    check_runs(story)
    last_seal = max((n for n, s in enumerate(folds(events)) if not s.sealed), default=0)
    assert not [e for e in events[last_seal + 2 :] if e.to_status], f"{name} moved after its seal"


def check_runs(story: Story) -> None:
    """At most one live run, only where one may live; exactly one terminal event for the others."""
    task, runs, events = story
    name = f"{task.id} ({task.status})"
    live = [run for run in runs if run.exit_reason is None]
    assert len(live) <= 1, f"{name} has {len(live)} live runs"
    if live:
        assert task.status in ("running", "awaiting_approval"), f"{name} has a live run"
        assert live[0].attempt == task.attempt, name
        assert live[0].fence == task.fence, name
    assert [run.attempt for run in runs] == list(range(1, task.attempt + 1)), name
    starts = Counter(event.run_id for event in events if event.event == "start")
    noted = {event.run_id for event in events if event.event == "end"}  # and followed later
    ends = Counter(
        event.run_id
        for event in events
        if is_terminal(event) and not (event.event in ENDINGS and event.run_id in noted)
    )
    for run in runs:
        assert starts[run.id] == 1, f"{name}: {run.id} was started {starts[run.id]} times"
        wanted = 0 if run.exit_reason is None else 1
        assert ends[run.id] == wanted, f"{name}: {run.id} has {ends[run.id]} terminal events"


def is_terminal(event: Event) -> bool:
    """Whether an event says that a run ended."""
    if event.event in ENDINGS:
        return event.run_id is not None
    return "exit_reason" in json.loads(event.data)


def check_truth(ledger: Ledger, only: set[str] | None = None) -> None:
    """Every task, the house's chain, the counters, and the database's own opinion of its files."""
    check_rows(ledger, only)
    problems = ledger.store.integrity()
    assert not problems, problems


def damage(store: Any) -> list[Any]:
    """What SQLite finds wrong with its file, as `integrity` asks it, which opens one more.

    Only where nobody else has written since this store was opened.
    """
    with store._lent() as connection:
        checked = connection.execute("PRAGMA integrity_check").fetchall()
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
    return [row for row in [*checked, *orphans] if row != ("ok",)]


def check_rows(ledger: Ledger, only: set[str] | None = None) -> None:
    """Every task, the house's chain and the counters."""
    for story in stories(ledger, only):
        check_story(story)
    check_house(ledger)
    with ledger.store.snapshot() as tx:
        assert tx.all("counters") == tx.all("counters_by_hand"), "the counters drifted"


def check_house(ledger: Ledger) -> None:
    """The chain of what concerns no task is whole."""
    with ledger.store.transaction() as tx:  # on PostgreSQL the query locks the row
        house = tx.one("house")
        rows = tx.all("events_of_house", after=0, n=MANY)
    head = GENESIS
    for number, row in enumerate(rows, 1):
        event = read(Event, row[:-1])
        assert event.revision == number
        head = seal_of(head, None, event)
        assert head == event.hash, f"the house's chain breaks at {number}"
    assert (house or (0, GENESIS)) == (len(rows), head)


def has_reached(ledger: Ledger, acknowledged: list[tuple[str, int, str]]) -> list[str]:
    """What was acknowledged (task, revision, status) and is not in the store."""
    wanted = {task for task, _, _ in acknowledged}
    found = {story.task.id: folds(story.events) for story in stories(ledger, wanted)}
    return [
        f"{task} revision {revision}: {status}"
        for task, revision, status in acknowledged
        if len(found.get(task, ())) < revision or found[task][revision - 1].status != status
    ]
