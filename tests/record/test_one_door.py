"""One door: one statement moves a task, one method runs it, and a scan finds every other writer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.source import nodes, trees
from tests.table import each_row
from truegreen.record.store import SQL_DIR

pytestmark = pytest.mark.timeout(300)  # one test reads all of the source, and a machine may be busy
TEXT = (Path(SQL_DIR) / "queries.sql").read_text()
STATEMENTS = {
    name: re.sub(r"--[^\n]*\n", "", body)
    for name, body in re.findall(r"^-- name: (\w+)\n(.*?);$", TEXT, re.MULTILINE | re.DOTALL)
}
WRITES = re.compile(
    r"\b(INSERT\s+(?:OR\s+\w+\s+)?INTO|REPLACE\s+INTO|UPDATE|DELETE\s+FROM|TRUNCATE)\s+"
    r"(?:ONLY\s+|OR\s+\w+\s+)?([a-z_]+)(?=[\s(;]|$)"
)
SQL_WORDS = re.compile(
    r"\b(INSERT INTO|REPLACE INTO|UPDATE \w+ SET|DO UPDATE SET|DELETE FROM|TRUNCATE \w+|"
    r"DROP (?:TABLE|TRIGGER|INDEX)|ALTER TABLE|CREATE (?:UNIQUE )?(?:TABLE|INDEX|TRIGGER))\b"
)
# By hand: who writes which table. A new writer of the record's state belongs on this list.
WRITERS = {
    "tasks": {"insert_task", "write_task", "write_tasks", "note_task"},
    "runs": {
        "insert_run",
        "see_run",
        "end_run",
        "end_runs",
        "judge_run",
        "tell_run",
        "insert_missed_run",
    },
    "routines": {"insert_routine", "write_routine"},
    "occurrences": {"insert_occurrence", "write_occurrence"},
    "events": {"insert_event", "insert_events"},
    "claims": {"insert_claim"},
    "findings": {"insert_finding"},
    "agents": {
        "insert_agent",
        "write_agent",
        "terminate_agent",
        "terminate_agents",
        "settle_inside",
    },
    "tokens": {
        *("insert_token", "revoke_token", "revoke_tokens_of_task", "revoke_tokens_of_agent"),
        "revoke_tokens_of_the_dead",
    },
}
SQL_ROOMS = {
    "record/guards.py",  # the rules and effects of the triggers
    "record/metering.py",  # and what they count
    "record/fleet_rules.py",  # and what they hold over everybody
    "record/folders.py",  # and the turn of starts on one host
    "record/sqlite_guards.py",  # and what SQLite alone needs of them
    "record/triggers.py",  # the triggers themselves
    "record/migrate.py",  # the schema's own bookkeeping
    "record/sqlite.py",  # the drivers
    "record/postgres.py",
}
DRIVERS = {
    "apsw": {"record/sqlite.py"},
    "sqlite3": set(),
    "psycopg": {"record/postgres.py"},
    "psycopg_pool": {"record/postgres.py"},
}


def strings(nodes: Iterable[ast.AST]) -> list[str]:
    """Every string of a module that is not a docstring, composed ones in one piece."""
    docstrings = set()
    found = []
    for node in nodes:  # a docstring comes after what it is about
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if node.body and isinstance(node.body[0], ast.Expr):
                docstrings.add(id(node.body[0].value))
        elif isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "x" for p in node.values]
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append("" if id(node) in docstrings else node.value)
    return found


def sql_in(nodes: Iterable[ast.AST]) -> list[str]:
    return [text for text in strings(nodes) if SQL_WORDS.search(text)]


class Function(NamedTuple):
    """Where it is (module and name), its constants, and what it calls: methods, and bare names."""

    place: str
    words: set[object]
    methods: set[str]
    names: set[str]


@cache
def functions() -> list[Function]:
    """Every function of the product."""
    return [
        _read(f"{module}:{node.name}", node)
        for module, found in nodes().items()
        for node in found
        if isinstance(node, ast.FunctionDef)
    ]


def _read(place: str, function: ast.FunctionDef) -> Function:
    read = Function(place, set(), set(), set())
    for node in ast.walk(function):
        if isinstance(node, ast.Constant):
            read.words.add(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            read.methods.add(node.func.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            read.names.add(node.func.id)
    return read


def uses(word: str) -> set[str]:
    """Where a string constant is used: module and function."""
    return {each.place for each in functions() if word in each.words}


def callers(method: str) -> set[str]:
    """Who calls a method: module and function."""
    return {each.place for each in functions() if method in each.methods}


def makers(name: str) -> set[str]:
    """Who calls something by its bare name: module and function."""
    return {each.place for each in functions() if name in each.names}


def writers() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, statement in STATEMENTS.items():
        for _, table in WRITES.findall(statement.replace("DO UPDATE SET", "")):
            found.setdefault(table, set()).add(name)
    return found


@pytest.mark.criterion("C06", "P07")
def test_each_table_of_the_record_has_exactly_the_writers_on_the_list():
    found = writers()
    assert {table: found.get(table) for table in WRITERS} == WRITERS


def assigned(statement: str) -> set[str]:
    """The columns that an UPDATE sets."""
    between = re.search(r"\bSET\b(.*?)\bWHERE\b", statement, re.DOTALL)
    assert between
    return set(re.findall(r"(?:^|,)\s*(\w+) =", between[1]))


@pytest.mark.criterion("C06", "P07")
def test_one_statement_alone_changes_the_status_of_a_task_and_its_twin_those_of_several():
    updates = {name for name in WRITERS["tasks"] if "UPDATE tasks" in STATEMENTS[name]}
    moving = {name for name in updates if "status" in assigned(STATEMENTS[name])}
    assert moving == {"write_task", "write_tasks"}
    assert assigned(STATEMENTS["write_tasks"]) == assigned(STATEMENTS["write_task"])
    assert assigned(STATEMENTS["note_task"]) == {"revision", "head", "updated_at"}
    inserted = STATEMENTS["insert_task"]
    assert "'queued'" in inserted
    assert ":status" not in inserted


@pytest.mark.criterion("B16")
def test_reason_and_status_are_written_by_one_statement():
    assert {"status", "exit_reason", "exit_detail"} <= assigned(STATEMENTS["write_task"])
    assert {"status", "exit_reason", "exit_detail"} <= assigned(STATEMENTS["end_run"])
    for name, statement in STATEMENTS.items():
        if "UPDATE tasks" in statement or "UPDATE runs" in statement:
            sets = assigned(statement)
            assert ("exit_reason" in sets) == ("exit_detail" in sets), name
            assert "exit_reason" not in sets or "status" in sets, name


def test_what_changes_a_task_names_what_it_comes_from_and_says_what_it_met():
    for name in ("write_task", "note_task"):
        condition = STATEMENTS[name].rpartition("WHERE")[2]
        for guard in ("key = :key", "status = :status", "fence = :fence", "revision = :revision"):
            assert guard in condition, name
        assert "RETURNING" in condition
    several = STATEMENTS["write_tasks"].rpartition("WHERE")[2]
    for guard in ("key", "status", "fence", "revision"):
        assert re.search(rf"tasks\.{guard} = [^=]*'{guard}'", several), guard
    assert "RETURNING" in several


@pytest.mark.criterion("C06", "P07")
def test_one_method_moves_a_task_and_one_creates_it():
    assert uses("write_task") == {"record/ledger/desk.py:_write"}
    assert uses("note_task") == {"record/ledger/desk.py:_write"}
    assert uses("insert_task") == {"record/ledger/tasks.py:_open"}
    assert uses("insert_event") == {"record/ledger/desk.py:_event"}
    for twin in ("write_tasks", "insert_events", "end_runs"):
        assert uses(twin) == set(), "only what waits for the others is written so"
    within = {place for place in callers("_write") if place.startswith("record/")}
    assert within == {"record/ledger/desk.py:_move", "record/ledger/desk.py:_note"}


@pytest.mark.criterion("P01")
def test_evidence_is_made_by_those_who_looked_and_by_nobody_else():
    """A new place that makes a finding belongs on this list, with what it has executed or heard."""
    assert makers("Finding") == {
        "work/verify.py:_finding",  # a gate that was asked
        "supervisor/judging.py:finding_of",  # an evaluator that was heard
        "supervisor/qa.py:_finding",  # a review that was given
        "supervisor/closing.py:close_review",  # whether it was given
        "supervisor/examination.py:_about_claim",  # statements held against the tree
        "record/ledger/reviews.py:_opinion",  # a person's own word, by their name
        "record/rows.py:finding",  # what is kept, read again
    }
    assert {place.partition(":")[0] for place in callers("record")} == {
        "supervisor/attempt.py",
        "supervisor/closing.py",
        "supervisor/examination.py",
    }
    assert uses("insert_finding") == {"record/ledger/verdicts.py:_find"}


def test_every_move_is_decided_by_the_edge_table():
    desk = trees()["record/ledger/desk.py"]
    (move,) = (
        node
        for node in ast.walk(desk)
        if isinstance(node, ast.FunctionDef) and node.name == "_move"
    )
    calls = [node.func for node in ast.walk(move) if isinstance(node, ast.Call)]
    assert "decide" in {call.id for call in calls if isinstance(call, ast.Name)}


@pytest.mark.criterion("C06", "P07")
def test_no_sql_that_writes_stands_outside_its_rooms():
    outside = {name: sql_in(found) for name, found in nodes().items() if name not in SQL_ROOMS}
    assert {name: found for name, found in outside.items() if found} == {}
    assert len(outside) > 100


def test_the_drivers_write_no_table_of_the_record():
    for name in ("record/sqlite.py", "record/postgres.py"):
        assert sql_in(nodes()[name]) == []
    for text in sql_in(nodes()["record/migrate.py"]):
        for _, table in WRITES.findall(text):
            assert table in {"schema_migrations", "schema_objects", "counters"}, text


@cache
def imported() -> dict[str, set[str]]:
    """What each module imports, by the first part of its name."""
    found: dict[str, set[str]] = {}
    for name, inside in nodes().items():
        named: list[str] = []
        for node in inside:
            named += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found[name] = {module.partition(".")[0] for module in named}
    return found


@pytest.mark.parametrize("driver", sorted(DRIVERS))
def test_only_its_own_room_imports_a_driver(driver: str):
    importing = {name for name, named in imported().items() if driver in named}
    assert importing <= DRIVERS[driver]


def test_only_the_desk_opens_a_transaction_and_only_migrate_runs_a_script():
    assert {place.partition(":")[0] for place in callers("transaction")} == {
        "record/ledger/desk.py"
    }
    assert {place.partition(":")[0] for place in callers("script")} == {"record/migrate.py"}


# -- the scan itself is awake --------------------------------------------------------------------


@each_row(
    "planted",
    [
        "tx.execute(\"UPDATE tasks SET status = 'succeeded'\")",
        'tx.execute("INSERT INTO tasks (id) VALUES (1)")',
        'tx.execute(f"UPDATE {table} SET status = 1")',
        'tx.execute(f"DELETE FROM {table}")',
        'tx.execute("REPLACE INTO events VALUES (1)")',
        'tx.execute("DROP TRIGGER tasks_kept")',
    ],
)
def test_the_scan_finds_a_writer_that_was_planted(planted: str):
    assert sql_in(ast.walk(ast.parse(f"def f(tx, table):\n    {planted}\n")))


def test_the_scan_finds_a_planted_query(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(STATEMENTS, "shortcut", "UPDATE tasks SET status = :s WHERE key = :k")
    assert writers()["tasks"] - WRITERS["tasks"] == {"shortcut"}
