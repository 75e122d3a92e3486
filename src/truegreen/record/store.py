"""The seam between the ledger and a database: named queries, transactions, a pool, typed refusals.

It knows no driver: `sqlite.py` and `postgres.py` fill the Store protocol. It knows no verb either.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

from truegreen import errors
from truegreen.errors import Broken, StoreBusy, TruegreenError
from truegreen.model import Severity
from truegreen.patterns import late
from truegreen.record import rows
from truegreen.record.conditions import Condition
from truegreen.record.fleet_rules import (
    IS_ABOUT,
    OUTAGE,
    PROBING,
    SET_ASIDE,
    TOGETHER,
    about,
    used,
)
from truegreen.record.folders import ABOUT_TO, BETWEEN_ATTEMPTS, held, overlapping
from truegreen.record.holds import FIRST_HOLD, HOLD_OF_ALL, IN_USE, NEEDED_STATUS, UNMET
from truegreen.record.ids import SILENT
from truegreen.record.lifecycle import SETTLED, UNDER_WAY
from truegreen.record.rows import columns

Row = tuple[Any, ...]
C = TypeVar("C")

SQL_DIR = os.path.join(os.path.dirname(__file__), "sql")
REFUSAL = late(r"truegreen/(\w+): (.*)")
_NAME = "-- name: "
_STATEMENT = late(r"(?:--[^\n]*\n)+(.*?);$", re.MULTILINE | re.DOTALL)
_FRAGMENT = late(r"\{(\w+)\}")
_PARAMETER = late(r"(?<![:\w]):([a-z_]+)")
_AS_WRITTEN = r":\1"


class Again(StoreBusy):
    """Two transactions were in each other's way and this one gave in; it can be done again."""


class Hit:
    """The row that a guarded write met; known at the latest before the commit."""

    __slots__ = ("row",)

    def __init__(self, row: Row = ()) -> None:
        self.row = row


class Tx(Protocol):
    """One transaction. `now` is the store's clock; `lease_now` can't be moved by a wall clock."""

    events: list[str]
    """Ids of the events written so far: what to look up when a commit is cut."""
    hints: bool
    """Whether somebody should look at the queue once this is committed."""

    @property
    def now(self) -> int:
        """Microseconds UTC by the store's clock."""

    @property
    def lease_now(self) -> int:
        """Microseconds by a clock that nobody can set."""

    @property
    def boot(self) -> str:
        """Which boot of the machine `lease_now` belongs to; empty where that is not asked."""

    def one(self, query: str, /, **values: object) -> Row | None:
        """The first row of a named query."""

    def all(self, query: str, /, **values: object) -> list[Row]:
        """Every row of a named query."""

    def run(self, query: str, /, **values: object) -> None:
        """A named write; a refusal may surface here or at the latest before the commit."""

    def hit(self, query: str, /, **values: object) -> Hit:
        """A guarded write that must meet exactly one row; otherwise the transaction is refused."""


def lease_clock(tx: Tx) -> dict[str, object]:
    """The time that leases go by, as queries ask for it."""
    return {"lease_now": tx.lease_now, "boot": tx.boot}


def clocks(tx: Tx) -> dict[str, object]:
    """Both clocks, for what holds queued tasks back."""
    return {"now": tx.now, **lease_clock(tx)}


class Store(Protocol):
    """One database. Every write transaction is durable when its context ends."""

    dialect: str
    url: str
    catalog: str
    """A SELECT of every table, index, constraint and trigger: name, definition."""

    def patient(self, may_wait: Callable[[], bool]) -> AbstractContextManager[None]:
        """In this, a store that can't be reached is waited for, as long as one may."""

    def spare_room(self) -> AbstractContextManager[None]:
        """In this, room on the disk of the store is set aside for what is recorded after it."""

    def transaction(self) -> AbstractContextManager[Tx]:
        """A write transaction that holds what it reads until it ends."""

    def snapshot(self) -> AbstractContextManager[Tx]:
        """A consistent read."""

    def script(self, statements: list[str]) -> None:
        """Run statements in one transaction, alone: nobody else migrates meanwhile."""

    def hint(self) -> None:
        """Tell whoever listens to look now; it may get lost."""

    def listen(self, heard: Callable[[], None], over: threading.Event) -> None:
        """Call somebody at every hint, until it is over; Unavailable when the line is cut."""

    def end_stuck(self, seconds: float) -> int:
        """End sessions of ours that have been writing for so long; says how many."""

    def objects(self) -> dict[str, str]:
        """What the catalog finds now."""

    def settings(self) -> dict[str, str]:
        """The version and the settings that durability hangs on."""

    def integrity(self) -> list[str]:
        """What the database itself finds wrong with its files; empty when nothing."""

    def backup(self, path: str) -> None:
        """A consistent copy into a new file."""

    def close(self) -> None:
        """Give every connection back."""


class Queries(dict[str, str]):
    """Statements by name, each made when it is first asked for: most commands need a dozen of 300.

    `page+filter_role` is the page with that filter in it.
    """

    def __init__(self, text: str, words: dict[str, str], parameter: str) -> None:
        super().__init__()
        self.written = dict(part.split("\n", 1) for part in text.split(_NAME)[1:])
        self._words, self._parameter = words, parameter

    def __missing__(self, name: str) -> str:
        base, *filters = name.split("+")
        clauses = "".join(f" AND {self[each]}" for each in filters)
        self[name] = self.made(base).replace("{filters}", clauses)
        return self[name]

    def made(self, name: str) -> str:
        """One as its database reads it; of a page, the place for filters is still open."""
        found = _STATEMENT.match(self.written[name])
        text = found[1] if found else ""
        for _ in range(2):  # a list may have fragments in it
            text = _FRAGMENT.sub(lambda word: self._words.get(word[1], word[0]), text)
        if self._parameter != _AS_WRITTEN:
            text = _PARAMETER.sub(self._parameter, text)
        return text.strip()


_LISTS = {
    "task": columns(rows.Task, "tasks"),
    "place": f"(tasks.silent * {SILENT} + tasks.key)",
    "place_of_two": f"(tasks.key + tasks.silent * {SILENT})",
    "run": columns(rows.Run, "runs"),
    "finding": columns(rows.FindingRow, "findings"),
    "claim": columns(rows.ClaimRow, "claims"),
    "agent": columns(rows.Agent, "agents"),
    "event": columns(rows.Event, "events"),
    "message": columns(rows.Message, "messages"),
    "wake": columns(rows.Wake, "wakes"),
    "inbox": columns(rows.InboxItem, "inbox"),
    "token": columns(rows.Token, "tokens"),
    "refusal": columns(rows.Refusal, "refusals"),
    "lease": columns(rows.Lease, "leases"),
    "worker": columns(rows.Worker, "workers"),
    "artifact": columns(rows.Artifact, "artifacts"),
    "post": columns(rows.Post, "posts"),
    "routine": columns(rows.RoutineRow, "routines"),
    "occurrence": columns(rows.OccurrenceRow, "occurrences"),
    "beat": columns(rows.Beat, "beats"),
    "job": columns(rows.Job, "jobs"),
    "condition": columns(Condition, "conditions"),
    "severities": ", ".join(f"('{severity}')" for severity in Severity),
    "settled": ", ".join(f"'{status}'" for status in sorted(SETTLED)),
    "under_way": ", ".join(f"'{status}'" for status in sorted(UNDER_WAY)),
    "needed_status": NEEDED_STATUS,
    "unmet": UNMET,
    "asked_folder": (
        "(SELECT CAST(:folder_host AS text) AS folder_host, CAST(:folder AS text) AS folder) asked"
    ),
    "folders_overlap": overlapping("leases", "asked"),
    "own_overlaps": overlapping("own", "asked"),
    "runs_overlap": overlapping("runs", "asked"),
    "folder_in_use": IN_USE,
    "shares_folder": (
        "CASE WHEN EXISTS (SELECT 1 FROM demands WHERE demands.task_key = tasks.key"
        " AND demands.folder IS NOT NULL) THEN 1 ELSE 0 END"
    ),
    "about_to": ABOUT_TO,
    "between_attempts": BETWEEN_ATTEMPTS,
    "folder_held": held("leases", ":lease_now", ":boot"),
    "hold": FIRST_HOLD,
    "hold_of_all": HOLD_OF_ALL,
    "breaker": columns(rows.Breaker, "breakers"),
    "limit": columns(rows.LimitRow, "limits"),
    "probing": PROBING,
    "together": TOGETHER,
    "is_about": IS_ABOUT,
    "limit_is_about": about("demands"),
    "outage": ", ".join(f"'{detail}'" for detail in sorted(OUTAGE)),
    **{f"used_{what}": sql for what, sql in used(":now").items()},
    "set_aside": SET_ASIDE,
}


def load_queries(fragments: dict[str, str], parameter: str) -> Queries:
    """The statements of queries.sql by name, with a dialect's fragments and parameter style."""
    with open(os.path.join(SQL_DIR, "queries.sql"), encoding="utf-8") as file:
        return Queries(file.read(), _LISTS | fragments, parameter)


_BY_CODE: dict[str, type[TruegreenError]] = {
    value.code: value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, TruegreenError)
}


def refusal(text: str) -> TruegreenError | None:
    """The typed error behind a trigger's message, if it is one of ours."""
    found = REFUSAL.search(text)
    if not found:
        return None
    code, message = found.groups()
    return _BY_CODE.get(code, Broken)(f"the database refused it: {message}")


_SEEN_TO = ("routines_name", "occurrences_slot")
_BUDGETS = ("tasks_attempts", "tasks_deferrals", "tasks_qa_rounds", "charges_used")


def refused_by(constraint: str) -> tuple[type[TruegreenError], str]:
    """What it means that a constraint of ours was in the way."""
    if "idempotency_key" in constraint:
        return Again, "the idempotency key was taken a moment ago: what for is looked up"
    if constraint in _SEEN_TO:
        return Again, "somebody saw to that routine a moment ago: it is looked at again"
    if constraint.endswith(("runs_one_in_lane", "runs.lane")):
        return errors.Stale, "another run of its lane is under way"
    if any(budget in constraint for budget in _BUDGETS):
        return errors.BudgetSpent, "the budget has nothing left for this"
    return errors.Refused, "the database refused it"


class Pool(Generic[C]):
    """Connections that are lent to one thread at a time and never cross a fork."""

    def __init__(
        self,
        connect: Callable[[], C],
        close: Callable[[C], None],
        usable: Callable[[C], bool] = lambda _: True,
    ) -> None:
        self._connect, self._close, self._usable = connect, close, usable
        self._idle: list[C] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def take(self) -> C:
        """An idle connection, or a new one."""
        with self._lock:
            if self._pid != os.getpid():
                # A forked child must neither use nor close what its parent opened.
                self._abandoned, self._idle = self._idle, []
                self._pid = os.getpid()
            idle = self._idle.pop() if self._idle else None
        if idle is None:
            return self._connect()
        if self._usable(idle):
            return idle
        self._close(idle)
        return self.take()

    def give(self, connection: C) -> None:
        """Back into the pool."""
        with self._lock:
            self._idle.append(connection)

    def drop(self, connection: C) -> None:
        """Away with a connection that may be broken."""
        self._close(connection)

    def close(self) -> None:
        """Close what is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            self._close(connection)


def open_store(url: str, clock: Callable[[], int] | None = None) -> Store:
    """The store behind a URL; nothing is created or verified yet (see migrate.py).

    Only a file can have another clock than its machine's: a server has its own.
    """
    if url.startswith(("postgresql:", "postgres:")):
        if clock:
            raise errors.InvalidInput("a PostgreSQL server tells its own time")
        from truegreen.record.postgres import PostgresStore  # noqa: PLC0415 - psycopg takes 200 ms

        return PostgresStore(url)
    from truegreen.record.sqlite import SqliteStore  # noqa: PLC0415 - only the driver that is used

    return SqliteStore(url, clock=clock)
