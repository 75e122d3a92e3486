"""What can be asked: pages, one task, the matrix, events, the inbox. Nothing here changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple
from unicodedata import ucd_3_2_0

from truegreen.contract import checked
from truegreen.errors import Ambiguous, InvalidInput, NotFound
from truegreen.facts import Claim
from truegreen.model import AgentStatus, Cell, ExitReason, Mode, Severity, TaskStatus
from truegreen.record.ids import ID_LENGTH
from truegreen.record.ledger.desk import Desk
from truegreen.record.rows import (
    Agent,
    ClaimRow,
    Event,
    FindingRow,
    InboxItem,
    Message,
    Refusal,
    Run,
    Task,
    Token,
    read,
)
from truegreen.record.store import Row, Tx

PAGE = 50
LONGEST_PAGE = 1000
SEARCH_LIMIT = 10_000
_NEWEST = 1 << 62
MOST_NAMED = 8
"""So many that could be meant are named."""
_KINDS = {
    "tsk": "task",
    "run": "run",
    "agt": "agent",
    "tok": "token",
    "inb": "inbox",
    "wak": "wake",
}
_NAMES = {"inb": "inbox item", "wak": "wake-up"}


class Filter(NamedTuple):
    """Which tasks; everything that is given must hold, and one of the statuses."""

    statuses: tuple[TaskStatus, ...] = ()
    cell: Cell | None = None
    exit_reason: ExitReason | None = None
    role: str | None = None
    agent: str | None = None
    search: str | None = None


EVERYTHING = Filter()


class Page(NamedTuple):
    """Some tasks, and where the next ones begin."""

    tasks: list[Task]
    after: str | None


class Verdicted(NamedTuple):
    """The level and sentence of a task's latest verdict."""

    level: str | None
    reason: str


class Need(NamedTuple):
    """A task that another one waits for; one that nobody knows has no status."""

    task: str
    status: TaskStatus | None

    @property
    def is_lost(self) -> bool:
        """Whether it can't succeed any more, unless somebody does something about it."""
        return self.status is None or self.status in _LOST


_LOST = (TaskStatus.FAILED, TaskStatus.CANCELED, TaskStatus.TERMINATED)


def unmet(tx: Tx, task: Task) -> list[Need]:
    """What a task waits for."""
    rows = tx.all("unmet_needs", key=task.key)
    return [Need(row[0], TaskStatus(row[1]) if row[1] else None) for row in rows]


class Dossier(NamedTuple):
    """Everything about one task."""

    task: Task
    contract: str
    runs: list[Run]
    claims: list[ClaimRow]
    findings: list[FindingRow]
    agents: list[Agent]
    refusals: list[Refusal]
    charges: list[tuple[int, str, str, int, int]]
    needs: Sequence[Need] = ()
    """What it waits for while it is queued."""


class Told(NamedTuple):
    """An event and the task that it is about."""

    event: Event
    task: str | None


class Waiting(NamedTuple):
    """An inbox item and the task that it is about."""

    item: InboxItem
    task: str


class Count(NamedTuple):
    """How many tasks stand in one place."""

    status: TaskStatus
    cell: Cell | None
    run_status: str
    tasks: int


class Ended(NamedTuple):
    """How many runs ended in one way."""

    cell: Cell
    exit_reason: ExitReason
    mode: Mode
    role: str
    runs: int


class Reads(Desk):
    """The reading side of the ledger."""

    def find(self, kind: str, given: str) -> str:
        """The whole id behind a unique beginning of one."""
        if kind not in _KINDS:
            raise InvalidInput(f"nothing has ids that begin with {kind!r}", allowed=tuple(_KINDS))
        name = _NAMES.get(kind, _KINDS[kind])
        rest = given.removeprefix(f"{kind}_")
        beginning = f"{kind}_{rest}"
        if not rest.isascii() or not rest.replace("_", "").isalnum():
            article = "an" if name[0] in "ai" else "a"
            message = f"{given!r} is not the id of {article} {name}, nor the beginning of one"
            raise InvalidInput(message)
        if len(beginning) > ID_LENGTH:
            raise NotFound(f"no {name} {given}", kind=_KINDS[kind])
        with self._store.snapshot() as tx:
            rows = tx.all(f"ids_from_{_KINDS[kind]}", low=beginning, high=beginning + "~")
        if not rows:
            raise NotFound(f"no {name} {given}", kind=_KINDS[kind])
        if len(rows) > 1:
            ids = tuple(row[0] for row in rows)
            raise several(given, ids)
        return str(rows[0][0])

    def task(self, task_id: str) -> Task:
        """One task."""
        return self.dossier(task_id).task

    def dossier(self, task_id: str) -> Dossier:
        """Everything about one task, at one moment."""
        with self._store.snapshot() as tx:
            row = tx.one("task", id=task_id)
            if row is None:
                raise NotFound(f"no task {task_id}")
            task = read(Task, row[:-1])
            return Dossier(
                task,
                row[-1],
                [read(Run, r) for r in tx.all("runs_of_task", key=task.key)],
                [read(ClaimRow, r) for r in tx.all("claims_of_task", key=task.key)],
                [read(FindingRow, r) for r in tx.all("findings_of_task", key=task.key)],
                [read(Agent, r) for r in tx.all("agents_of_task", key=task.key)],
                [read(Refusal, r) for r in tx.all("refusals_of_task", key=task.key)],
                [(r[0], r[1], r[2], r[3], r[4]) for r in tx.all("charges_of_task", key=task.key)],
                unmet(tx, task) if task.status is TaskStatus.QUEUED else (),
            )

    def run(self, run_id: str) -> tuple[Run, str]:
        """One run and the id of its task."""
        with self._store.snapshot() as tx:
            row = tx.one("run", id=run_id)
        if row is None:
            raise NotFound(f"no run {run_id}")
        return read(Run, row[:-1]), str(row[-1])

    def claim(self, run_id: str) -> Claim | None:
        """What the agent of a run declared so far."""
        with self._store.snapshot() as tx:
            row = tx.one("claim_of_run", run=run_id)
        return read(ClaimRow, row).claim() if row else None

    def page(
        self, where: Filter = EVERYTHING, *, limit: int = PAGE, after: str | None = None
    ) -> Page:
        """Tasks by filters: silent failures first, then the newest."""
        bounded(limit)
        part, before = _cursor(after)
        found: list[tuple[int, Task]] = []
        with self._store.snapshot() as tx:
            for number, silent in enumerate(_parts(where)):
                if number >= part and len(found) <= limit:
                    start = before if number == part else _NEWEST
                    tasks = _merged(tx, where, silent, start, limit + 1 - len(found))
                    found += [(number, task) for task in tasks]
        shown = found[:limit]
        more = len(found) > limit
        return Page([t for _, t in shown], f"{shown[-1][0]}.{shown[-1][1].key}" if more else None)

    def verdicts(self, tasks: list[Task]) -> dict[int, Verdicted]:
        """The latest verdict of each task of a page."""
        with self._store.snapshot() as tx:
            rows = [
                tx.one("latest_verdict", key=t.key, attempt=t.attempt) for t in tasks if t.attempt
            ]
        return {row[0]: Verdicted(row[1], row[2]) for row in rows if row}

    def counts(self) -> list[Count]:
        """How many tasks stand in which status and cell, from the maintained counters."""
        with self._store.snapshot() as tx:
            rows = tx.all("counters")
        return [Count(TaskStatus(s), Cell(c) if c else None, run, n) for s, c, run, n in rows]

    def ended_since(self, at: int) -> list[Ended]:
        """How many runs ended how since an instant, by the hour."""
        with self._store.snapshot() as tx:
            rows = tx.all("tallies", hour=at // 3_600_000_000)
        return [Ended(Cell(c), ExitReason(r), Mode(m), role, n) for c, r, m, role, n in rows]

    def meters(self) -> dict[tuple[str, str], int]:
        """How often which call was made: (name, label) → times."""
        with self._store.snapshot() as tx:
            return {(name, label): total for name, label, total in tx.all("meters")}

    def events(self, task_id: str, *, after: int = 0, limit: int = LONGEST_PAGE) -> list[Told]:
        """A task's events after a revision, oldest first."""
        with self._store.snapshot() as tx:
            row = tx.one("task", id=task_id)
            if row is None:
                raise NotFound(f"no task {task_id}")
            rows = tx.all("events_of_task", key=row[0], after=after, n=bounded(limit))
        return [Told(read(Event, r[:-1]), r[-1]) for r in rows]

    def feed(self, after: tuple[int, int] = (0, 0), *, limit: int = LONGEST_PAGE) -> list[Told]:
        """All events after (xact, key), in an order that no later commit can change."""
        with self._store.snapshot() as tx:
            rows = tx.all("feed", after_xact=after[0], after_key=after[1], n=bounded(limit))
        return [Told(read(Event, r[:-1]), r[-1]) for r in rows]

    def latest_events(self, *, limit: int = PAGE) -> list[Told]:
        """The newest events, oldest of them first."""
        with self._store.snapshot() as tx:
            rows = tx.all("latest_events", before=_NEWEST, n=bounded(limit))
        return [Told(read(Event, r[:-1]), r[-1]) for r in reversed(rows)]

    def house_events(self, *, after: int = 0, limit: int = LONGEST_PAGE) -> list[Told]:
        """Events that concern no task, oldest first."""
        with self._store.snapshot() as tx:
            rows = tx.all("events_of_house", after=after, n=bounded(limit))
        return [Told(read(Event, r[:-1]), None) for r in rows]

    def agent(self, agent_id: str) -> Agent:
        """One agent."""
        with self._store.snapshot() as tx:
            row = tx.one("agent", id=agent_id)
        if row is None:
            raise NotFound(f"no agent {agent_id}", kind="agent")
        return read(Agent, row)

    def agents(
        self, status: AgentStatus | None = None, *, limit: int = PAGE, before: int = _NEWEST
    ) -> list[Agent]:
        """Agents, newest first."""
        query = "agents_page+filter_agent_status" if status else "agents_page"
        given = {"status": status} if status else {}
        with self._store.snapshot() as tx:
            rows = tx.all(query, before=before, n=bounded(limit), **given)
        return [read(Agent, row) for row in rows]

    def messages(
        self, agent_id: str, *, after: int = 0, limit: int = LONGEST_PAGE
    ) -> list[Message]:
        """An agent's messages, oldest first."""
        key = self.agent(agent_id).key
        with self._store.snapshot() as tx:
            rows = tx.all("messages_of_agent", agent_key=key, after=after, n=bounded(limit))
        return [read(Message, row) for row in rows]

    def inbox(self, *, limit: int = PAGE) -> list[Waiting]:
        """What waits for a person, most urgent first."""
        rows: list[Row] = []
        with self._store.snapshot() as tx:
            for severity in Severity:
                left = bounded(limit) - len(rows)
                if left:
                    rows += tx.all("inbox_waiting", severity=severity, now=tx.now, n=left)
        return [Waiting(read(InboxItem, row[:-1]), row[-1]) for row in rows]

    def refusals(self, *, limit: int = PAGE) -> list[Refusal]:
        """Late and conflicting writes that were refused and kept, newest first."""
        with self._store.snapshot() as tx:
            return [read(Refusal, row) for row in tx.all("refusals_latest", n=bounded(limit))]

    def tokens(self) -> list[Token]:
        """Every token, never a secret."""
        with self._store.snapshot() as tx:
            return [read(Token, row) for row in tx.all("tokens_all")]


def several(given: str, ids: tuple[str, ...]) -> Ambiguous:
    """What to say of a word that several could be meant by."""
    shown = ", ".join(ids[:MOST_NAMED]) + (", and others" if len(ids) > MOST_NAMED else "")
    return Ambiguous(f"{given} could be {shown}; give more of it", allowed=ids[:MOST_NAMED])


def bounded(limit: int) -> int:
    """How long a list may be."""
    if not 1 <= limit <= LONGEST_PAGE:
        raise InvalidInput(f"a page has between 1 and {LONGEST_PAGE} rows, not {limit}")
    return limit


def _words(text: str) -> str:
    """Each word of a search in quotes, so that neither database finds operators among them.

    Characters younger than both tokenizers know would split a quoted word, which SQLite refuses.
    """
    checked(text, "search", SEARCH_LIMIT)
    known = "".join(" " if ucd_3_2_0.category(char) == "Cn" else char for char in text)
    return " ".join(f'"{word}"' for word in re.findall(r"[^\W_]+", known))


def _cursor(after: str | None) -> tuple[int, int]:
    if after is None:
        return 0, _NEWEST
    part, _, key = after.partition(".")
    if part not in ("0", "1") or not key.isascii() or not key.isdigit() or len(key) > 18:  # noqa: PLR2004
        raise InvalidInput(f"{after!r} is not a cursor; take `after` from the page before")
    return int(part), int(key)


def _parts(where: Filter) -> tuple[str | None, ...]:
    """Silent failures come first, unless one cell was asked for."""
    return (None,) if where.cell else ("filter_silent", "filter_not_silent")


def _merged(tx: Tx, where: Filter, silent: str | None, before: int, limit: int) -> Iterator[Task]:
    """One indexed query per status, merged: newest first."""
    names = ("cell", "exit_reason", "role", "agent", "search")
    given = {name: getattr(where, name) for name in names if getattr(where, name) is not None}
    if where.search is not None:
        given["search"] = _words(where.search)
        if not given["search"]:
            return iter(())
    filters = [f"filter_{name}" for name in given] + ([silent] if silent else [])
    if not where.statuses:
        query = "+".join(["page", *filters])
        rows = tx.all(query, before=before, n=limit, **given)
        return iter([read(Task, row) for row in rows])
    query = "+".join(["page", "filter_status", *filters])
    parts = [
        [read(Task, row) for row in tx.all(query, before=before, n=limit, status=status, **given)]
        for status in dict.fromkeys(where.statuses)
    ]
    return islice(merge(*parts, key=lambda task: -task.key), limit)
