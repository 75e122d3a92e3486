"""What can be asked: pages, one task, the matrix, events, the inbox. Nothing here changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from truegreen.errors import Ambiguous, InvalidInput, NotFound
from truegreen.facts import Claim
from truegreen.model import (
    AgentStatus,
    Cell,
    ExitReason,
    InboxState,
    Mode,
    Severity,
    Standing,
    TaskStatus,
)
from truegreen.record.conditions import Condition
from truegreen.record.ids import ID_LENGTH
from truegreen.record.ledger.answers import Question, open_for, question_of, questions
from truegreen.record.ledger.desk import Desk
from truegreen.record.ledger.lists import EVERYTHING, Filter, Page, listed
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
from truegreen.tuples import NamedTuple

PAGE = 50
LONGEST_PAGE = 1000
_NEWEST = 1 << 62
_LOOKS = 20
"""A server whose other databases are written all the time could keep a reader for ever."""
MOST_NAMED = 8
"""So many that could be meant are named."""
_KINDS = {
    "tsk": "task",
    "run": "run",
    "agt": "agent",
    "tok": "token",
    "inb": "inbox",
    "wak": "wake",
    "brk": "breaker",
}
_NAMES = {"inb": "inbox item", "wak": "wake-up"}


class Verdicted(NamedTuple):
    """The level and sentence of a task's latest verdict, and what its agent was kept in."""

    level: str | None
    reason: str
    isolation: str = ""
    said: str = ""
    """What the agent declared at the end, in its own words."""


class CalledOff(NamedTuple):
    """By whom a task was called off or terminated, and why."""

    actor: str
    reason: str


class Need(NamedTuple):
    """A task that another one waits for; one that nobody knows has no status."""

    task: str
    status: TaskStatus | None

    @property
    def is_lost(self) -> bool:
        """Whether it can't succeed any more, unless somebody does something about it."""
        return self.status is None or self.status in _LOST


_CALLED_OFF = (TaskStatus.CANCELED, TaskStatus.TERMINATED)
_LOST = (TaskStatus.FAILED, TaskStatus.CANCELED, TaskStatus.TERMINATED)


def keys_of(rows: Iterable[Task | Agent]) -> str:
    """The keys of some rows, as one value of a statement."""
    return f"[{','.join(str(row.key) for row in rows)}]"


def unmet(tx: Tx, tasks: Sequence[Task]) -> dict[int, list[Need]]:
    """What tasks wait for, by their keys."""
    found: dict[int, list[Need]] = {}
    for key, needed, status in tx.all("unmet_needs", keys=keys_of(tasks)):
        found.setdefault(key, []).append(Need(needed, TaskStatus(status) if status else None))
    return found


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
    question: Question | None = None
    """What somebody can answer about it."""
    conditions: Sequence[Condition] = ()
    """What it waits for, and has waited for, beside other tasks."""


class Told(NamedTuple):
    """An event and the task that it is about."""

    event: Event
    task: str | None


class Waiting(NamedTuple):
    """An inbox item and the task that it is about."""

    item: InboxItem
    task: str
    question: Question | None = None
    """What can be answered about it; None where the task has moved on from there."""


def waiting(tx: Tx, rows: Iterable[Row]) -> list[Waiting]:
    """Inbox items with what can be answered about each, at the same moment."""
    found = [(read(InboxItem, row[:-1]), str(row[-1])) for row in rows]
    waits = (item.task_key for item, _ in found if item.state is not InboxState.RESOLVED)
    asked = questions(tx, waits)
    return [Waiting(item, task, open_for(item, asked.get(item.task_key))) for item, task in found]


class Count(NamedTuple):
    """How many tasks stand in one place."""

    status: TaskStatus
    cell: Cell | None
    run_status: str
    tasks: int
    checked: bool = False
    """Some check gave an answer about them."""


class Ended(NamedTuple):
    """How many runs ended in one way."""

    cell: Cell
    exit_reason: ExitReason
    mode: Mode
    role: str
    runs: int
    standing: Standing = Standing.UNCHECKED


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

    def now(self) -> int:
        """What the store's clock says; a host's own may be wrong."""
        with self._store.snapshot() as tx:
            return tx.now

    def task(self, task_id: str) -> Task:
        """One task."""
        with self._store.snapshot() as tx:
            return _contracted(tx, task_id)[0]

    def dossier(self, task_id: str) -> Dossier:
        """Everything about one task, at one moment."""
        with self._store.snapshot() as tx:
            task, contract = _contracted(tx, task_id)
            return Dossier(
                task,
                contract,
                [read(Run, r) for r in tx.all("runs_of_task", key=task.key)],
                [read(ClaimRow, r) for r in tx.all("claims_of_task", key=task.key)],
                [read(FindingRow, r) for r in tx.all("findings_of_task", key=task.key)],
                [read(Agent, r) for r in tx.all("agents_of_task", key=task.key)],
                [read(Refusal, r) for r in tx.all("refusals_of_task", key=task.key)],
                [(r[0], r[1], r[2], r[3], r[4]) for r in tx.all("charges_of_task", key=task.key)],
                unmet(tx, [task]).get(task.key, []) if task.status is TaskStatus.QUEUED else (),
                question_of(tx, task),
                [read(Condition, r) for r in tx.all("conditions_of_task", task_key=task.key)],
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
        with self._store.snapshot() as tx:
            return listed(tx, where, limit, after)

    def verdicts(self, tasks: list[Task]) -> dict[int, Verdicted]:
        """The latest verdict of each task of a page."""
        with self._store.snapshot() as tx:
            rows = tx.all("latest_verdicts", keys=keys_of(task for task in tasks if task.attempt))
        return {row[0]: Verdicted(*row[1:]) for row in rows}

    def called_off(self, tasks: list[Task]) -> dict[int, CalledOff]:
        """Who called off or terminated which tasks of a page, by their keys."""
        over = [task for task in tasks if task.status in _CALLED_OFF]
        if not over:
            return {}
        with self._store.snapshot() as tx:
            rows = tx.all("called_off", keys=keys_of(over))
        return {row[0]: CalledOff(*row[1:]) for row in rows}

    def counts(self) -> list[Count]:
        """How many tasks stand in which status and cell, from the maintained counters."""
        with self._store.snapshot() as tx:
            rows = tx.all("counters")
        return [
            Count(TaskStatus(status), Cell(cell) if cell else None, run, tasks, bool(checked))
            for status, cell, run, tasks, checked in rows
        ]

    def ended_since(self, at: int) -> list[Ended]:
        """How many runs ended how since an instant, by the hour."""
        with self._store.snapshot() as tx:
            rows = tx.all("tallies", hour=at // 3_600_000_000)
        return [
            Ended(Cell(cell), ExitReason(reason), Mode(mode), role, runs, Standing(standing))
            for cell, reason, mode, role, runs, standing in rows
        ]

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
        given = {"after_xact": after[0], "after_key": after[1], "n": bounded(limit)}
        rows: list[Row] = []
        for _ in range(_LOOKS):
            with self._store.snapshot() as tx:
                rows = tx.all("feed", **given)
                if len(rows) == given["n"] or not tx.one("feed_in_doubt"):
                    break
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

    def inbox(self, *, limit: int = PAGE, after: str | None = None) -> list[Waiting]:
        """What waits for a person, most urgent first; or what stands behind an item there."""
        rows: list[Row] = []
        with self._store.snapshot() as tx:
            for severity, key in _behind(tx, after).items():
                left = bounded(limit) - len(rows)
                if left:
                    known = {"severity": severity, "after": key, "now": tx.now}
                    rows += tx.all("inbox_waiting", **known, n=left)
            return waiting(tx, rows)

    def refusals(self, *, limit: int = PAGE) -> list[Refusal]:
        """Late and conflicting writes that were refused and kept, newest first."""
        with self._store.snapshot() as tx:
            return [read(Refusal, row) for row in tx.all("refusals_latest", n=bounded(limit))]

    def tokens(self, *, of_runs: bool = False) -> list[Token]:
        """The tokens of people and their programs, or those of runs; never a secret."""
        query = "tokens_of_runs" if of_runs else "tokens_of_people"
        with self._store.snapshot() as tx:
            return [read(Token, row) for row in tx.all(query)]


def _behind(tx: Tx, item: str | None) -> dict[Severity, int]:
    """Which urgencies are left behind an inbox item, and behind which key each goes on."""
    if item is None:
        return dict.fromkeys(Severity, 0)
    row = tx.one("inbox_item", id=item)
    if row is None:
        raise NotFound(f"no inbox item {item}", kind="inbox")
    last = read(InboxItem, row[:-1])
    known = list(Severity)
    left = known[known.index(last.severity) :]
    return {severity: last.key if severity is last.severity else 0 for severity in left}


def _contracted(tx: Tx, task_id: str) -> tuple[Task, str]:
    """A task, and the terms that it is frozen with."""
    row = tx.one("task", id=task_id)
    if row is None:
        raise NotFound(f"no task {task_id}")
    return read(Task, row[:-1]), row[-1]


def several(given: str, ids: tuple[str, ...]) -> Ambiguous:
    """What to say of a word that several could be meant by."""
    shown = ", ".join(ids[:MOST_NAMED]) + (", and others" if len(ids) > MOST_NAMED else "")
    return Ambiguous(f"{given} could be {shown}; give more of it", allowed=ids[:MOST_NAMED])


def bounded(limit: int) -> int:
    """How long a list may be."""
    if not 1 <= limit <= LONGEST_PAGE:
        raise InvalidInput(f"a page has between 1 and {LONGEST_PAGE} rows, not {limit}")
    return limit
