"""What somebody sees who looks at everything at once: history, live runs, what waits, how long.

Nothing here changes, and nothing here reads more than a bounded number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from truegreen.contract import parse_duration
from truegreen.errors import NotFound
from truegreen.model import OVER, Cell, InboxState, RunStatus, Severity, Standing
from truegreen.record.ledger.desk import Desk
from truegreen.record.ledger.reads import (
    LONGEST_PAGE,
    PAGE,
    Count,
    Ended,
    Waiting,
    bounded,
    keys_of,
    waiting,
)
from truegreen.record.rows import Agent, InboxItem, Run, Task, read
from truegreen.record.store import Row, Tx
from truegreen.tuples import NamedTuple

HOUR = 3_600_000_000
_RUN_FIELDS = len(Run.__struct_fields__)
_LATEST_VERDICTS = 500
_WAITING = (InboxState.OPEN, InboxState.ACKED, InboxState.SNOOZED)
_UNDER_WAY = (RunStatus.STARTING, RunStatus.RUNNING, RunStatus.PAUSED)


class Hour(NamedTuple):
    """How many runs ended in one cell in one hour; `at` is its beginning."""

    at: int
    cell: Cell
    runs: int
    standing: Standing = Standing.UNCHECKED


class Looked(NamedTuple):
    """Of all that has ended, how much checks gave an answer about; one number for every face."""

    checked: int
    ended: int

    @property
    def share(self) -> float | None:
        """Cut, not rounded: one among many that nobody checked is not all of them."""
        return self.checked * 10_000 // self.ended / 10_000 if self.ended else None


def looked_at(counts: Iterable[Count]) -> Looked:
    """What share of the tasks that have ended was checked at all; what is under check is not."""
    over = [count for count in counts if count.cell in OVER]
    return Looked(sum(c.tasks for c in over if c.checked), sum(c.tasks for c in over))


def looked_at_runs(ended: Iterable[Ended]) -> Looked:
    """The same of runs; an answer that turned out wrong is none."""
    over = [tally for tally in ended if tally.cell in OVER]
    right = sum(tally.runs for tally in over if tally.standing is Standing.CHECKED)
    return Looked(right, sum(tally.runs for tally in over))


class LiveRun(NamedTuple):
    """A run that has not ended, whose it is, and when it was last seen to do something."""

    run: Run
    task: str
    title: str
    role: str
    agent: str | None
    agent_name: str | None
    holder: str | None
    active_at: int | None
    idle_cap: int | None = None
    """After how many microseconds without a sign the host ends it."""
    looked_at: int = 0
    """When this was read, by the store's clock."""
    suspect_since: int | None = None
    """When its lease ran out, if it did: nothing has been heard of its supervisor."""


class Pile(NamedTuple):
    """What waits for people with one urgency."""

    severity: Severity
    items: int
    unread: int
    oldest_at: int | None
    oldest_unread_at: int | None


class Overview(Desk):
    """The reading side for pages, graphs and lists of everything."""

    def head(self) -> int:
        """How far the history reaches: another number, and something may have changed."""
        with self._store.snapshot() as tx:
            row = tx.one("latest_event")
        return int(row[0]) if row else 0

    def history(self, since: int) -> list[Hour]:
        """Which runs ended how since an instant, hour by hour."""
        with self._store.snapshot() as tx:
            rows = tx.all("tallies_by_hour", hour=since // HOUR)
        return [
            Hour(hour * HOUR, Cell(cell), runs, Standing(standing))
            for hour, cell, runs, standing in rows
        ]

    def live_runs(self, *, limit: int = PAGE) -> list[LiveRun]:
        """What is under way, newest first."""
        with self._store.snapshot() as tx:
            return [_live(tx, row) for row in tx.all("live_runs", n=bounded(limit))]

    def live(self, tasks: Iterable[Task]) -> dict[int, LiveRun]:
        """The run under way of each task that has one, by the task's key."""
        working = [task for task in tasks if task.run_status in _UNDER_WAY]
        if not working:
            return {}
        with self._store.snapshot() as tx:
            rows = tx.all("live_runs_of_tasks", keys=keys_of(working))
            found = [_live(tx, row) for row in rows]
        return {each.run.task_key: each for each in found}

    def verdict_times(self, since: int) -> list[float]:
        """Seconds from start to verdict of the latest runs since an instant, unordered."""
        with self._store.snapshot() as tx:
            rows = tx.all("verdict_times", since=since, n=_LATEST_VERDICTS)
        return [row[0] / 1e6 for row in rows]

    def honesty(self, agents: Iterable[Agent]) -> dict[str, dict[str, int]]:
        """What became of statements: by the definitions of some agents, and by outcome."""
        told: dict[str, dict[str, int]] = {}
        with self._store.snapshot() as tx:
            for definition, outcome, n in tx.all("honesty_of_agents", keys=keys_of(agents)):
                told.setdefault(definition, {})[outcome] = n
        return told

    def inbox_item(self, item_id: str) -> Waiting:
        """One inbox item, in whatever state."""
        with self._store.snapshot() as tx:
            row = tx.one("inbox_item", id=item_id)
            if row is None:
                raise NotFound(f"no inbox item {item_id}", kind="inbox")
            return waiting(tx, [row])[0]

    def put_off(self, *, limit: int = PAGE) -> list[Waiting]:
        """What is snoozed, the first to come back first."""
        with self._store.snapshot() as tx:
            return waiting(tx, tx.all("inbox_put_off", now=tx.now, n=bounded(limit)))

    def inbox_of(self, task_key: int, *, limit: int = PAGE) -> list[Waiting]:
        """What waits, or waited, for a person about one task."""
        with self._store.snapshot() as tx:
            return waiting(tx, tx.all("inbox_of_task", task_key=task_key, n=bounded(limit)))

    def item_of(self, cause: str, *, task_key: int, kind: str, at: int) -> InboxItem | None:
        """What waited for a person at an instant because of something that happened then."""
        given = {"cause": cause, "task_key": task_key, "cell": kind, "at": at}
        with self._store.snapshot() as tx:
            row = tx.one("inbox_of_cause", **given)
        return read(InboxItem, row) if row else None

    def piles(self) -> list[Pile]:
        """How much waits for people, most urgent first."""
        with self._store.snapshot() as tx:
            totals = {row[0]: row[1] for row in tx.all("inbox_sums")}
            asleep = {row[0]: row[1] for row in tx.all("inbox_sleeping", now=tx.now)}
            piles = [_pile(row, totals, asleep) for row in tx.all("inbox_oldest", now=tx.now)]
        return [pile for pile in piles if pile.items]

    def of_topic(self, topic: str, *, limit: int = LONGEST_PAGE) -> list[str]:
        """The ids of all that waits for a person with one topic, put off or not, oldest first."""
        with self._store.snapshot() as tx:
            return [row[0] for row in tx.all("inbox_of_topic", topic=topic, n=bounded(limit))]

    def inbox_all(self, *, limit: int = PAGE) -> list[Waiting]:
        """Everything that ever waited for a person, in whatever state, newest first."""
        with self._store.snapshot() as tx:
            return waiting(tx, tx.all("inbox_all", n=bounded(limit)))

    def oldest_blocked(self) -> int | None:
        """Since when the task is blocked that has been blocked longest."""
        with self._store.snapshot() as tx:
            row = tx.one("blocked_longest")
        return row[0] if row else None


def _pile(row: Row, totals: dict[str, int], asleep: dict[str, int]) -> Pile:
    severity, *oldest = row
    waiting = {state: totals.get(f"{severity}|{state}", 0) for state in _WAITING}
    items = sum(waiting.values()) - asleep.get(severity, 0)
    return Pile(Severity(severity), items, items - waiting[InboxState.ACKED], *oldest)


def _live(tx: Tx, row: Row) -> LiveRun:
    said = _capped(row[-1]).caps.idle
    idle_cap = int(parse_duration(said)) if said else None
    run = read(Run, row[:_RUN_FIELDS])
    *known, expires_at, boot = row[_RUN_FIELDS:-1]
    since = None
    if expires_at is not None and (expires_at < tx.lease_now or boot != tx.boot):
        since = tx.now - max(0, tx.lease_now - expires_at)
    return LiveRun._make((run, *known, idle_cap, tx.now, since))


class _Caps(msgspec.Struct, frozen=True):
    idle: str = ""


class _Capped(msgspec.Struct, frozen=True):
    """The part of a contract that says when the host ends a silent agent."""

    caps: _Caps = _Caps()


_capped = msgspec.json.Decoder(_Capped).decode
