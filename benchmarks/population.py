"""A store with very many tasks, quickly: a hundred lives of every kind, then copies of their rows.

The triggers are away while the copies are made; counters, tallies and words are computed anew and
the triggers put back, so that the ledger finds a store like any other. Only the hash chains of the
copies are not true: `verify` measures on lives that were lived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw
import msgspec

from benchmarks.lives import CLAIM, CONTRACT, EXIT, FINDING, OPERATOR, VERDICT
from truegreen.contract import Budget, Contract, QaTerms, contract_digest
from truegreen.facts import Exit, Ticket
from truegreen.model import PARENT, EndedBy, ExitDetail, FindingOutcome, Outcome, RunStatus
from truegreen.record import migrate
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.store import open_store

PATTERNS = 100
AGENTS = 10
BUSY_AGENT = 1
"""The key of an agent that worked at a tenth of all tasks; the others have a few each."""
COMMIT_EVERY = 200
HOURS = 90 * 24
"""The copies lie this far back, and come up to now in whole hours."""
COMMON_WORD, RARE_WORD = "parser", "copy7"
_HOUR = 3_600_000_000
_ROLES = ("writer", "fixer", "reader", "planner")
_CRASH = Exit(
    status=RunStatus.CRASHED,
    reason=PARENT[ExitDetail.AGENT_ERROR],
    detail=ExitDetail.AGENT_ERROR,
    ended_by=EndedBy.AGENT,
    code=1,
)
_BLOCK = Exit(
    status=RunStatus.STOPPED,
    reason=PARENT[ExitDetail.APPROVAL_CHECKPOINT],
    detail=ExitDetail.APPROVAL_CHECKPOINT,
    ended_by=EndedBy.SUPERVISOR,
)


def _green(ledger: Ledger, ticket: Ticket, digest: str) -> None:
    _judged(ledger, ticket, digest, Outcome.PASSED, FindingOutcome.PASSED)


def _silent_failure(ledger: Ledger, ticket: Ticket, digest: str) -> None:
    _judged(ledger, ticket, digest, Outcome.FAILED, FindingOutcome.FAILED)


def _unclear(ledger: Ledger, ticket: Ticket, digest: str) -> None:
    _judged(ledger, ticket, digest, Outcome.INCONCLUSIVE, FindingOutcome.INCONCLUSIVE)


def _judged(
    ledger: Ledger, ticket: Ticket, digest: str, outcome: Outcome, found: FindingOutcome
) -> None:
    ledger.end_run(ticket, EXIT, claim=CLAIM)
    ledger.record(ticket, [_replaced(FINDING, outcome=found, contract_digest=digest)])
    ledger.judge(ticket, _replaced(VERDICT, outcome=outcome, contract_digest=digest))


def _crashed(ledger: Ledger, ticket: Ticket, _digest: str) -> None:
    ledger.end_run(ticket, _CRASH)


def _blocked(ledger: Ledger, ticket: Ticket, _digest: str) -> None:
    ledger.end_run(ticket, _BLOCK)


def _terminated(ledger: Ledger, ticket: Ticket, _digest: str) -> None:
    ledger.terminate(ticket.task, actor=OPERATOR)


def _running(_ledger: Ledger, _ticket: Ticket, _digest: str) -> None:
    pass


_ENDINGS: tuple[tuple[int, Callable[[Ledger, Ticket, str], None]], ...] = (
    (62, _green),
    (8, _silent_failure),
    (8, _crashed),
    (2, _unclear),
    (3, _blocked),
    (3, _terminated),
    (4, _running),
)
"""How many of a hundred end how; the rest are queued."""


def _replaced(struct: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(struct, **changes)


def _live_patterns(ledger: Ledger) -> None:
    agents = [
        ledger.register_agent(f"agent {number}", "bench", actor=OPERATOR).id
        for number in range(AGENTS)
    ]
    endings = [end for times, end in _ENDINGS for _ in range(times)]
    for number in range(PATTERNS):
        # Scattered, so that no status lies in one stretch of keys.
        place = number * 37 % PATTERNS
        contract = Contract(
            title=f"fix the parser of part {number}",
            goal=f"make the tests of part {number} pass",
            role=_ROLES[number % len(_ROLES)],
            gates=CONTRACT.gates,
            command=(f"agent-{number}",),  # of one definition, so many failures would hold it back
            priority=number % 5,
            budget=Budget(attempts=1),
            qa=QaTerms(roles=()),
        )
        task = ledger.open(contract, actor=OPERATOR)
        if place < len(endings):
            agent = agents[number // AGENTS] if endings[place] is _green else None
            start = Start("bench", agent=agent, base_digest="before", lease_seconds=1e6)
            endings[place](ledger, ledger.start(task.id, start), contract_digest(contract))


# -- copies -----------------------------------------------------------------------------------

_TIMES = ("created_at", "updated_at", "settled_at", "seen_at", "ended_at", "judged_at", "at")
_KINDS = {"tasks": "tsk", "runs": "run", "findings": "fnd", "events": "evt", "inbox": "inb"}
_KINDS["agents"] = "agt"
_TABLES = ("agents", "tasks", "demands", "runs", "leases", "claims", "findings", "events", "inbox")
_OWNED = {"leases": ("runs", "run_key"), "demands": ("tasks", "task_key")}
"""Tables whose rows go by another's key."""
_DIGITS = {"sqlite": "printf('%018d', {})", "postgres": "lpad(({})::text, 18, '0')"}


class _Loader(NamedTuple):
    """A connection without triggers: runs a statement, commits."""

    dialect: str
    run: Callable[..., list[tuple[Any, ...]]]
    commit: Callable[[], None]


def _copy(dialect: str, table: str, columns: list[str], strides: dict[str, int], n: str) -> str:
    """The statement that copies a table's patterns into the n-th hundred."""

    def shifted(column: str, owner: str) -> str:
        return f"{column} + {n} * {strides[owner]}"

    back = f"({n} * {HOURS} / {strides['copies']} - {HOURS}) * {_HOUR}"
    others = shifted("agent_key", "agents")
    changed = {time: f"{time} + {back}" for time in _TIMES} | {
        "task_key": shifted("task_key", "tasks"),
        "run_key": shifted("run_key", "runs"),
        "agent_key": f"CASE agent_key WHEN {BUSY_AGENT} THEN {BUSY_AGENT} ELSE {others} END",
        "cause": f"cause || ':' || CAST({n} AS TEXT)",
    }
    if "key" in columns:
        changed["key"] = shifted("key", table)
    if "id" in columns:
        changed["id"] = f"'{_KINDS[table]}_' || {_DIGITS[dialect].format(shifted('key', table))}"
    if table == "tasks":
        changed["title"] = f"title || ' copy' || CAST({n} AS TEXT)"
    owner, key = _OWNED.get(table, (table, "key"))
    only = " AND task_key IS NOT NULL" if table == "events" else ""
    chosen = ", ".join(changed.get(column, column) for column in columns)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM {table}"
        f" WHERE {key} <= {strides[owner]}{only} ORDER BY {key}"
    )


def populate(url: str, tasks: int) -> None:
    """Fill an empty store with so many tasks, in whole hundreds."""
    ledger = open_ledger(url)
    _live_patterns(ledger)
    ledger.close()
    with (_postgres if url.startswith("postgres") else _sqlite)(url) as loader:
        hundreds = max(1, tasks // PATTERNS)
        _multiply(loader, hundreds)
        _count(loader, hundreds)
        loader.commit()
    store = open_store(url)
    migrate.migrate(store, repair=True)
    migrate.verify(store)
    store.close()


def _multiply(loader: _Loader, hundreds: int) -> None:
    strides = {table: loader.run(f"SELECT MAX(key) FROM {table}")[0][0] or 0 for table in _KINDS}
    strides["claims"] = loader.run("SELECT MAX(key) FROM claims")[0][0]
    strides["copies"] = hundreds
    parameter = ":n" if loader.dialect == "sqlite" else "%(n)s::bigint"
    copies = [
        _copy(loader.dialect, table, _columns(loader, table), strides, parameter)
        for table in _TABLES
    ]
    for number in range(1, hundreds):
        for copy in copies:
            loader.run(copy, n=number)
        if number % COMMIT_EVERY == 0:
            loader.commit()


def _count(loader: _Loader, hundreds: int) -> None:
    """Every copy stands where its pattern stands, and ended so many hours before it."""
    loader.run(f"UPDATE counters SET tasks = tasks * {hundreds}")
    loader.run(f"UPDATE meters SET total = total * {hundreds}")
    columns = _columns(loader, "tallies")
    hour, runs = columns.index("hour"), columns.index("runs")
    tallied: Counter[tuple[Any, ...]] = Counter()
    patterns = loader.run(f"SELECT {', '.join(columns)} FROM tallies")
    for number in range(hundreds):
        back = number * HOURS // hundreds - HOURS if number else 0
        for row in patterns:
            place = tuple(
                row[i] + back if i == hour else row[i] for i in range(len(row)) if i != runs
            )
            tallied[place] += row[runs]
    loader.run("DELETE FROM tallies")
    names = [column for column in columns if column != "runs"]
    mark = ":{}" if loader.dialect == "sqlite" else "%({})s"
    given = ", ".join(mark.format(name) for name in (*names, "runs"))
    insert = f"INSERT INTO tallies ({', '.join(names)}, runs) VALUES ({given})"
    for place, ended in tallied.items():
        loader.run(insert, **dict(zip(names, place, strict=True)), runs=ended)


def _columns(loader: _Loader, table: str) -> list[str]:
    if loader.dialect == "sqlite":
        return [str(row[1]) for row in loader.run(f"PRAGMA table_info({table})")]
    rows = loader.run(
        "SELECT attname FROM pg_attribute WHERE attrelid = %(name)s::regclass AND attnum > 0"
        " AND NOT attisdropped ORDER BY attnum",
        name=table,
    )
    return [str(row[0]) for row in rows]


@contextmanager
def _sqlite(url: str) -> Iterator[_Loader]:
    connection = apsw.Connection(url.removeprefix("sqlite://"))
    for name, value in (("synchronous", 0), ("foreign_keys", 0), ("cache_size", -200_000)):
        connection.pragma(name, value)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (trigger,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")

    def run(statement: str, **values: Any) -> list[tuple[Any, ...]]:
        return connection.execute(statement, values).fetchall()

    def commit() -> None:
        connection.execute("COMMIT")
        connection.execute("BEGIN")

    connection.execute("BEGIN")
    yield _Loader("sqlite", run, commit)
    connection.execute("INSERT INTO task_words (task_words) VALUES ('rebuild')")
    connection.execute("COMMIT")
    connection.pragma("wal_checkpoint(truncate)")
    connection.close()


@contextmanager
def _postgres(url: str) -> Iterator[_Loader]:
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(url, prepare_threshold=1) as connection:
        # Neither our triggers nor those of the foreign keys: they stand, but do not fire.
        connection.execute("SET session_replication_role = replica")
        # The copies are planned once, while the tables are small: they must not scan them later.
        connection.execute("SET enable_seqscan = off")

        def run(statement: str, **values: Any) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

        yield _Loader("postgres", run, connection.commit)
        for table in (*_KINDS, "claims"):
            run(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'key'),"
                f" (SELECT MAX(key) FROM {table}))"
            )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
