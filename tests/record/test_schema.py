"""One enum, one schema, on both databases; every named query has a purpose and a use."""

from __future__ import annotations

import ast
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.population import populate
from tests.record.lives import brought, ended, judged, opened, started
from tests.record.raw_sql import Raw, raw_sql
from tests.source import nodes
from truegreen import model
from truegreen.contract.waits import MET_ONCE
from truegreen.facts import AgentKind, JobState, JobWord, Processes, WakeCause, WakeState
from truegreen.model import (
    DETAILS,
    AgentStatus,
    Cell,
    ClaimKind,
    Disposition,
    EndedBy,
    EventLevel,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    InboxState,
    Level,
    Mode,
    Move,
    Note,
    Outcome,
    Phase,
    Role,
    RunStatus,
    Severity,
    TaskStatus,
)
from truegreen.record import rows
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.store import SQL_DIR, open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

S = TaskStatus
TEXT = (Path(SQL_DIR) / "queries.sql").read_text()
NAMES = re.findall(r"^-- name: (.*)$", TEXT, re.MULTILINE)

# By hand: which enum a column holds.
ENUMS: dict[tuple[str, str], set[str]] = {
    ("agents", "status"): set(AgentStatus),
    ("tasks", "mode"): set(Mode),
    ("tasks", "status"): set(TaskStatus),
    ("tasks", "exit_reason"): set(ExitReason),
    ("tasks", "run_status"): set(RunStatus),
    ("tasks", "verdict"): set(Outcome),
    ("tasks", "cell"): set(Cell),
    ("runs", "status"): set(RunStatus),
    ("runs", "exit_reason"): set(ExitReason),
    ("runs", "ended_by"): set(EndedBy),
    ("runs", "verdict"): set(Outcome),
    ("runs", "level"): set(Level),
    ("runs", "cell"): set(Cell),
    ("claims", "kind"): set(ClaimKind),
    ("findings", "phase"): set(Phase),
    ("findings", "outcome"): set(FindingOutcome),
    ("findings", "before"): set(FindingOutcome),
    ("findings", "level"): set(Level),
    ("events", "level"): set(EventLevel),
    ("events", "event"): {*Move, *Note},
    ("events", "from_status"): set(TaskStatus),
    ("events", "to_status"): set(TaskStatus),
    ("messages", "disposition"): set(Disposition),
    ("inbox", "severity"): set(Severity),
    ("inbox", "state"): set(InboxState),
    ("tokens", "role"): set(Role),
}
LATER: dict[tuple[str, str], Iterable[StrEnum]] = {
    ("agents", "kind"): AgentKind,
    ("wakes", "cause"): WakeCause,
    ("wakes", "state"): WakeState,
    ("jobs", "word"): JobWord,
    ("jobs", "state"): JobState,
    ("conditions", "kind"): MET_ONCE,
    ("runs", "processes"): Processes,
}
"""Columns of later migrations, whose words are written out as they were then."""
PUBLIC = {
    "tasks": "status exit_reason exit_detail rescued sealed_at",
    "runs": "status exit_reason exit_detail verdict",
    "findings": "outcome",
    "claims": "kind",
    "agents": "status kind",
    "wakes": "state cause",
    "messages": "body",
    "inbox": "reason",
    "events": "actor",
    "tokens": "role",
}


@pytest.fixture
def raw(store_url: str) -> Iterator[Raw]:
    open_ledger(store_url).close()
    with raw_sql(store_url) as client:
        yield client


def quoted(text: str) -> set[str]:
    """Every word that stands in quotes, alone or in a list."""
    return {word for each in re.findall(r"'([^']*)'", text) for word in re.findall(r"\w+", each)}


def checks(raw: Raw, table: str, column: str) -> str:
    """The CHECK of a column as the database has it."""
    if raw.dialect == "sqlite":
        (sql,) = raw.do(f"SELECT sql FROM sqlite_master WHERE name = '{table}'")[0]
        (line,) = (line for line in sql.splitlines() if line.startswith(f"  {column} "))
        return str(line).partition("CHECK")[2]
    found = raw.do(
        "SELECT pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_attribute a"
        f" ON a.attrelid = c.conrelid AND a.attname = '{column}'"
        f" WHERE contype = 'c' AND conrelid = '{table}'::regclass AND conkey = ARRAY[a.attnum]"
        f" AND conname = '{table}_{column}_check'"
    )
    return str(found[0][0])


def test_the_words_in_the_database_are_those_of_the_enums(raw: Raw):
    found = {place: quoted(checks(raw, *place)) for place in ENUMS}
    assert found == {place: {str(word) for word in words} for place, words in ENUMS.items()}


def test_the_words_of_later_columns_are_those_of_the_enums(raw: Raw):
    for (table, column), enum in LATER.items():
        if raw.dialect == "sqlite":
            (text,) = raw.do(f"SELECT sql FROM sqlite_master WHERE name = '{table}'")[0]
            (listed,) = re.findall(rf"CHECK \({column} IN \(([^)]*)\)\)", text)
        else:
            listed = checks(raw, table, column)
        assert quoted(listed) - {"text"} == set(enum), (table, column)


@pytest.mark.parametrize("table", ["tasks", "runs"])
def test_the_pairs_in_the_database_are_those_of_the_model(raw: Raw, table: str):
    if raw.dialect == "sqlite":
        (sql,) = raw.do(f"SELECT sql FROM sqlite_master WHERE name = '{table}'")[0]
        (text,) = (line for line in sql.splitlines() if f"CONSTRAINT {table}_exit_pair" in line)
    else:
        constraint = f"conname = '{table}_exit_pair'"
        (text,) = raw.do(f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE {constraint}")[
            0
        ]
    pairs = {f"{reason}/{detail}" for reason, details in DETAILS.items() for detail in details}
    assert set(re.findall(r"\w+/\w+", text)) == pairs


def test_every_column_that_holds_an_enum_is_on_the_list(raw: Raw):
    """A new column with a list of words must be compared with its enum, too."""
    words: list[set[str]] = [
        {str(member) for member in enum}
        for enum in vars(model).values()
        if isinstance(enum, type) and issubclass(enum, StrEnum) and len(enum) > 1
    ]
    migration = (Path(SQL_DIR) / "migrations" / "0001_record.sql").read_text()
    listed = set()
    table = ""
    for line in migration.splitlines():
        created = re.match(r"CREATE TABLE (\w+)", line)
        table = created[1] if created else table
        column = re.match(r"  (\w+) .*CHECK \(\{among\[(\w+) (\w+)\]", line)
        if column:
            assert column[1] == column[2], "a CHECK looks at another column than its own"
            listed.add((table, column[1]))
    assert listed == set(ENUMS)
    later = "".join(
        each.read_text()
        for each in (Path(SQL_DIR) / "migrations").glob("*.sql")
        if not each.name.startswith("0001")
    )
    assert set(re.findall(r"CHECK \((\w+) IN \('", later)) == {column for _, column in LATER}
    assert all(
        {str(word) for word in ENUMS[place]} in words or place[1] == "event" for place in listed
    )


# -- indexes and the queries that people will write --------------------------------------------


@pytest.mark.criterion("B06")
def test_exit_reason_and_status_with_exit_reason_are_indexed(raw: Raw):
    if raw.dialect == "sqlite":
        found = {
            name: [row[2] for row in raw.do(f"PRAGMA index_info({name})")]
            for (name,) in raw.do(
                "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'tasks'"
            )
        }
    else:
        found = {
            name: re.findall(r"\w+", definition.partition("btree (")[2].partition(")")[0])
            for name, definition in raw.do(
                "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'tasks'"
            )
        }
    assert found["tasks_exit_reason"][:1] == ["exit_reason"]
    assert found["tasks_status_exit_reason"][:2] == ["status", "exit_reason"]


@pytest.mark.criterion("B06")
def test_the_database_uses_those_indexes(store_url: str, raw: Raw):
    populate(store_url, 1000)  # in an empty store any index is as good
    queries = {
        "exit_reason = 'blocked'": "tasks_exit_reason",
        "status = 'succeeded' AND exit_reason = 'blocked'": "tasks_status_exit_reason",
    }
    for condition, index in queries.items():
        query = f"SELECT * FROM tasks WHERE {condition}"
        if raw.dialect == "sqlite":
            plan = raw.do(f"EXPLAIN QUERY PLAN {query}")
        else:
            plan = raw.do("SET LOCAL enable_seqscan = off", f"EXPLAIN {query}")
        assert index in str(plan), plan


def test_who_has_been_blocked_longest_is_found_without_looking_at_the_others(raw: Raw):
    """It is asked with every scrape: another index would bring all that is blocked."""
    query = "SELECT settled_at FROM tasks WHERE status = 'blocked' ORDER BY settled_at LIMIT 1"
    if raw.dialect == "sqlite":
        plan = str(raw.do(f"EXPLAIN QUERY PLAN {query}"))
    else:
        plan = str(raw.do("SET LOCAL enable_seqscan = off", f"EXPLAIN {query}"))
    assert "tasks_blocked" in plan
    assert "TEMP B-TREE" not in plan
    assert "Sort" not in plan


@pytest.mark.criterion("B07")
def test_the_three_queries_of_the_source_return_the_right_rows(store_url: str, raw: Raw):
    ledger = open_ledger(store_url)
    for status in S:
        brought(ledger, status)
    capped = started(ledger)
    ledger.end_run(capped, ended(ExitDetail.TURN_CAP))
    rescued = started(ledger)
    ledger.end_run(rescued, ended(ExitDetail.TIME_CAP))
    judged(ledger, rescued, Outcome.PASSED)
    expected = {
        "exit_reason = 'blocked'": {"blocked"},
        "exit_reason = 'max_iterations'": {"failed_pending_eval", "succeeded"},
        "status = 'succeeded' AND exit_reason = 'done'": {"succeeded"},
    }
    found = {
        condition: {
            ledger.task(row[0]) for row in raw.do(f"SELECT id FROM tasks WHERE {condition}")
        }
        for condition in expected
    }
    ledger.close()
    assert {c: {task.status.value for task in tasks} for c, tasks in found.items()} == expected
    by_cap = found["exit_reason = 'max_iterations'"]
    assert {task.id for task in by_cap} == {capped.task, rescued.task}
    (green,) = found["status = 'succeeded' AND exit_reason = 'done'"]
    assert not green.rescued
    for reason, details in DETAILS.items():
        for row in raw.do(f"SELECT exit_detail FROM tasks WHERE exit_reason = '{reason}'"):
            assert row[0] in set(details)


def test_the_public_tables_have_the_columns_that_people_read(raw: Raw):
    for table, columns in PUBLIC.items():
        assert set(columns.split()) <= set(raw.columns(table)), table


# -- both databases end in the same schema -------------------------------------------------------

TYPES = {"INTEGER": "bigint", "TEXT": "text", "REAL": "double precision", "BLOB": "bytea"}
ONLY_POSTGRES = {"task_words", "events_feed"}
"""SQLite searches in a table of its own, and its keys are the feed's order already."""
Table = dict[str, tuple[str, bool]]


def sqlite_schema(raw: Raw) -> tuple[dict[str, Table], dict[str, Any], set[Any], set[str]]:
    names = [
        row[0]
        for row in raw.do("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not row[0].startswith(("task_words", "sqlite_"))
    ]
    tables: dict[str, Table] = {}
    indexes: dict[str, Any] = {}
    references: set[Any] = set()
    for table in names:
        fields = raw.do(f"PRAGMA table_info({table})")
        tables[table] = {row[1]: (TYPES[row[2]], bool(row[3] or row[5])) for row in fields}
        for row in raw.do(f"PRAGMA index_list({table})"):
            info = raw.do(f"PRAGMA index_info({row[1]})")
            columns = [each[2] for each in info if each[2]]  # an expression has no name
            name = row[1] if row[3] == "c" else f"{table}: {', '.join(columns)}"
            indexes[name] = (table, columns, bool(row[2]), bool(row[4]))
        for row in raw.do(f"PRAGMA foreign_key_list({table})"):
            references.add((table, row[3], row[2]))
    sql = " ".join(row[0] for row in raw.do("SELECT sql FROM sqlite_master WHERE type = 'table'"))
    return tables, indexes, references, set(re.findall(r"CONSTRAINT (\w+) CHECK", sql))


def postgres_schema(raw: Raw) -> tuple[dict[str, Table], dict[str, Any], set[Any], set[str]]:
    tables: dict[str, Table] = {}
    for table, column, kind, nullable in raw.do(
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
        " WHERE table_schema = 'public' ORDER BY ordinal_position"
    ):
        tables.setdefault(table, {})[column] = (kind, nullable == "NO")
    indexes = {
        name if not constraint else f"{table}: {', '.join(columns)}": (table, columns, unique, part)
        for name, table, columns, unique, part, constraint in raw.do(
            "SELECT i.relname, t.relname, ARRAY(SELECT a.attname::text FROM"
            " unnest(x.indkey::int[]) WITH ORDINALITY k (num, at) JOIN pg_attribute a"
            " ON a.attrelid = t.oid AND a.attnum = k.num ORDER BY k.at), x.indisunique,"
            " x.indpred IS NOT NULL, c.contype FROM pg_index x JOIN pg_class i"
            " ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid"
            " LEFT JOIN pg_constraint c ON c.conindid = i.oid AND c.contype IN ('p', 'u')"
            " WHERE t.relnamespace = 'public'::regnamespace"
        )
    }
    references = {
        (table, column, parent)
        for table, column, parent in raw.do(
            "SELECT c.conrelid::regclass::text, a.attname, c.confrelid::regclass::text"
            " FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid"
            " AND a.attnum = c.conkey[1] WHERE c.contype = 'f'"
        )
    }
    named = {row[0] for row in raw.do("SELECT conname FROM pg_constraint WHERE contype = 'c'")}
    return tables, indexes, references, named


def test_both_databases_end_in_the_same_schema(sqlite_url: str, postgres_url: str):
    open_ledger(sqlite_url).close()
    with raw_sql(sqlite_url) as one, raw_sql(postgres_url) as other:
        ours, our_indexes, our_references, our_checks = sqlite_schema(one)
        theirs, their_indexes, their_references, their_checks = postgres_schema(other)
    assert ours == theirs
    assert our_references == their_references
    assert our_checks <= their_checks
    assert len(our_checks) > 8
    assert their_indexes.keys() - our_indexes.keys() - ONLY_POSTGRES == {
        f"{table}: key" for table, columns in theirs.items() if "key" in columns
    } | {"schema_migrations: version", "leases: run_key"}
    assert our_indexes.keys() <= their_indexes.keys()
    for name, (table, columns, unique, partial) in our_indexes.items():
        then_key = [*columns, "key"]
        assert their_indexes[name] in (
            (table, columns, unique, partial),
            (table, then_key, unique, partial),
        ), name


def test_sqlite_tables_are_strict(sqlite_url: str):
    open_ledger(sqlite_url).close()
    with raw_sql(sqlite_url) as raw:
        loose = raw.do("SELECT name FROM pragma_table_list WHERE NOT strict AND schema = 'main'"
                       " AND name NOT LIKE 'task_words%' AND name NOT LIKE 'sqlite_%'")  # fmt: skip
    assert loose == []


def test_every_column_of_a_row_is_read_by_its_struct_or_left_out_on_purpose(raw: Raw):
    """A struct's fields are its SELECT list; what it leaves out is named here."""
    left_out = {
        "tasks": {"goal", "contract", "silent"},
        "runs": {
            *("standing", "lane", "cost", "tokens", "cost_granted", "tokens_granted"),
            *("folder_host", "folder"),
        },
        "findings": {"key", "task_key"},
        "claims": {"key", "task_key"},
        "tokens": {"digest"},
        "refusals": {"key", "task_key"},
        "inbox": {"open_since", "closed_by", "quiet_until"},
    }
    structs = {
        "tasks": rows.Task,
        "runs": rows.Run,
        "findings": rows.FindingRow,
        "claims": rows.ClaimRow,
        "agents": rows.Agent,
        "events": rows.Event,
        "messages": rows.Message,
        "inbox": rows.InboxItem,
        "tokens": rows.Token,
        "refusals": rows.Refusal,
        "leases": rows.Lease,
    }
    for table, struct in structs.items():
        missing = set(raw.columns(table)) - set(struct.__struct_fields__)
        assert missing == left_out.get(table, set()), table


# -- queries.sql ---------------------------------------------------------------------------------


def words_in_source() -> tuple[set[str], set[str]]:
    """Every string constant of the source, and the beginnings of those that are composed."""
    whole: set[str] = set()
    begun: set[str] = set()
    for inside in nodes().values():
        for node in inside:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                whole.update(node.value.split("+"))
            if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                begun.add(str(node.values[0].value))
    return whole, {word for word in begun if re.fullmatch(r"[a-z]+_[a-z_]*", word)}


def test_every_query_has_a_name_of_its_own_and_a_line_that_says_what_it_is_for():
    assert len(NAMES) == len(set(NAMES))
    purposes = dict(re.findall(r"^-- name: (\w+)\n-- (.{8,})$", TEXT, re.MULTILINE))
    assert list(purposes) == NAMES


def test_every_query_is_used():
    whole, begun = words_in_source()
    used = {name for name in NAMES if name in whole or name.startswith(tuple(begun))}
    assert set(NAMES) - used == set()


def test_every_query_of_the_file_is_loaded(sqlite_url: str):
    store: Any = open_store(sqlite_url)
    assert list(store.queries.written) == NAMES
    made = {name: store.queries[name] for name in NAMES}
    assert "{" not in "".join(made.values())
    assert not [name for name, text in made.items() if not text]


def test_a_statement_is_made_when_it_is_asked_for(sqlite_url: str):
    store: Any = open_store(sqlite_url)
    assert not store.queries
    assert store.queries["event_landed"] is store.queries["event_landed"]
    assert list(store.queries) == ["event_landed"]


def complete(queries: Any) -> dict[str, str]:
    """Every statement that can be run, each filter within its page."""
    fragments = {name: queries[name] for name in NAMES if name.startswith("filter_")}
    whole = {name: queries[name] for name in NAMES if name not in fragments}
    pages = {name: text for name in NAMES if "{filters}" in (text := queries.made(name))}
    for name, text in fragments.items():
        table = (re.findall(r"\b(tasks|agents|posts)\.", text) or ["tasks"])[0]
        page = next(p for p, sql in pages.items() if f"FROM {table} WHERE" in sql)
        whole[f"{page}+{name}"] = queries[f"{page}+{name}"]
    return whole


def test_every_query_is_understood_by_sqlite(made_url: str):
    ledger = open_ledger(made_url)
    store: Any = ledger.store
    not_understood = {}
    with store._lent() as connection:
        for name, text in complete(store.queries).items():
            values = dict.fromkeys(re.findall(r":([a-z_]+)", text))
            try:
                connection.execute(f"EXPLAIN {text}", values).fetchall()
            except Exception as error:  # noqa: BLE001 - whatever the driver says against it
                not_understood[name] = str(error)
    ledger.close()
    assert not_understood == {}


def test_every_query_is_understood_by_postgres(postgres_url: str):
    store: Any = open_store(postgres_url)
    not_understood = {}
    with raw_sql(postgres_url) as raw:
        for name, text in complete(store.queries).items():
            names = list(dict.fromkeys(re.findall(r"%\(([a-z_]+)\)s", text)))
            numbered = text
            for number, each in enumerate(names, 1):
                numbered = numbered.replace(f"%({each})s", f"${number}")
            prepared = (f"PREPARE q AS {numbered}", "DEALLOCATE q")
            said = raw.tried(*([numbered] if numbered.startswith("LOCK ") else prepared))
            if said:
                not_understood[name] = said
    store.close()
    assert not_understood == {}


def test_a_search_finds_what_was_written(ledger: Ledger):
    """Both databases keep the words of a task where `page` with a search finds them."""
    opened(ledger, title="feed the quokka")
    opened(ledger, title="mend the fence")
    with ledger.store.snapshot() as tx:
        values = {"before": 10**9, "n": 10}
        found = tx.all("page+filter_search", **values, search="quokka", edge=0, top=10**9)
        assert len(found) == 1
        assert len(tx.all("page", **values)) == 2
