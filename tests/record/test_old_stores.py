"""What earlier programs wrote is brought up whole, on both databases, and its work goes on."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import OPERATOR, declared, judged, started
from tests.record.old_stores import DIALECTS, kept, restored
from tests.record.raw_sql import Raw, raw_sql
from truegreen.errors import Refused, SchemaWrecked
from truegreen.model import Outcome, TaskStatus
from truegreen.record import doctor, migrate
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.rows import Task, read
from truegreen.record.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.postgres_server import PostgresServer

S = TaskStatus
NEWEST = migrate.migrations("sqlite")[-1].version
OLD = [(dialect, n) for dialect in DIALECTS for n in kept(dialect) if n < NEWEST]
DERIVED = {"schema_migrations", "schema_objects", "counters", "tallies"}
"""Counted anew or written anew; `doctor` compares the counters with what they count."""
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(params=OLD, ids=lambda old: f"{old[0]}-{old[1]}")
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """Address and version of a store that an earlier program left."""
    dialect, version = request.param
    if dialect == "sqlite":
        url = f"sqlite://{tmp_path}/old.db"
        restored(kept(dialect)[version], url)
        yield url, version
        return
    server: PostgresServer = request.getfixturevalue("postgres_desk")
    name = server.create_database()
    restored(kept(dialect)[version], server.url(name))
    yield server.url(name), version
    server.drop_database(name)


def tables(raw: Raw) -> set[str]:
    found = raw.do(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        " AND name NOT LIKE 'task_words%'"
        if raw.dialect == "sqlite"
        else "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    )
    return {name for (name,) in found} - DERIVED


def everything(url: str) -> Rows:
    """All rows, as they stand in the database."""
    with raw_sql(url) as raw:
        found = {}
        for table in tables(raw):
            columns = raw.columns(table)
            # What is a blob on one database is bytes on the other: both as text.
            rows = raw.do(f"SELECT {', '.join(_shown(raw, each) for each in columns)} FROM {table}")
            found[table] = [dict(zip(columns, row, strict=True)) for row in rows]
        return found


def _shown(raw: Raw, column: str) -> str:
    return f"hex({column})" if raw.dialect == "sqlite" else f"{column}::text"


def brought_up(url: str) -> list[str]:
    store = open_store(url)
    try:
        return migrate.migrate(store)
    finally:
        store.close()


def narrowed(rows: list[dict[str, Any]], to: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """The rows, in those columns that others have."""
    columns = sorted(to[0]) if to else []
    return Counter(tuple(row[name] for name in columns) for row in rows)


def test_there_is_a_store_of_every_schema_that_ever_was_the_newest():
    for dialect in DIALECTS:
        # Six to eleven came in one step: no program ever had seven. So did sixteen and seventeen.
        assert set(kept(dialect)) >= {1, 2, 3, 4, 5, *range(11, NEWEST)} - {16}


@pytest.mark.criterion("M06")
def test_an_older_store_loses_no_row_becomes_what_a_new_one_is_and_its_work_goes_on(
    old: tuple[str, int], fresh_objects: dict[str, dict[str, str]]
):
    url, version = old
    before = everything(url)
    assert {"tasks", "runs", "events", "claims", "findings", "agents", "inbox"} <= {
        table for table, rows in before.items() if rows
    }
    with pytest.raises(SchemaWrecked, match=f"the store has schema {version}, .*truegreen migrate"):
        open_ledger(url)
    steps = [step.version for step in migrate.migrations("sqlite") if step.version > version]
    assert [int(line.split()[1]) for line in brought_up(url)] == steps
    after = everything(url)
    for table, rows in before.items():
        assert narrowed(rows, rows) - narrowed(after[table], rows) == Counter(), table
        assert len(after[table]) == len(rows) or table == "meters", table
    ledger = open_ledger(url)
    assert ledger.store.objects() == fresh_objects[ledger.store.dialect]
    assert doctor.examine(ledger) == []
    check_work_goes_on(ledger, version)
    assert doctor.examine(ledger) == []
    ledger.close()


@pytest.fixture(scope="module")
def fresh_objects(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, dict[str, str]]:
    """What a store consists of that was just made, on each database."""
    server: PostgresServer = request.getfixturevalue("postgres_desk")
    template = request.getfixturevalue("postgres_template")
    name = server.create_database(template=template)
    found = {}
    for url in (f"sqlite://{tmp_path_factory.mktemp('fresh')}/fresh.db", server.url(name)):
        ledger = open_ledger(url)
        found[ledger.store.dialect] = ledger.store.objects()
        ledger.close()
    server.drop_database(name)
    return found


def check_work_goes_on(ledger: Ledger, version: int) -> None:
    """Each task goes on where it stood."""
    tasks = {status: _one(ledger, status) for status in S}
    for status in (S.QUEUED, S.BLOCKED, S.FAILED, S.CANCELED, S.SUCCEEDED):
        _queued_again(ledger, tasks[status], status)
        ticket = started(ledger, tasks[status])
        declared(ledger, ticket)
        if version == 1:  # its tasks name no check, so that nothing but a person takes them on
            judged(ledger, ticket, Outcome.INCONCLUSIVE)
            _accepted(ledger, ticket.task)
        else:
            assert judged(ledger, ticket, Outcome.PASSED).status is S.SUCCEEDED
    _accepted(ledger, tasks[S.NEEDS_REVIEW])
    ledger.terminate(tasks[S.RUNNING], actor=OPERATOR)
    with pytest.raises(Refused):
        ledger.retry(tasks[S.TERMINATED], actor=OPERATOR, reason="once more")


def _one(ledger: Ledger, status: TaskStatus) -> str:
    """The first in a status: it was brought there before anything else was written."""
    with ledger.store.snapshot() as tx:
        found = [read(Task, row) for row in tx.all("all_tasks", after=0, n=100)]
    return next(task.id for task in found if task.status is status)


def _accepted(ledger: Ledger, task: str) -> None:
    seen = ledger.review(task, accept=True, actor=OPERATOR, reason="seen")
    assert seen.status is S.SUCCEEDED


def _queued_again(ledger: Ledger, task: str, status: TaskStatus) -> None:
    if status is S.BLOCKED:
        ledger.unblock(task, actor=OPERATOR, reason="go on")
    elif status is not S.QUEUED:
        ledger.retry(task, actor=OPERATOR, reason="once more")


REPORTED: dict[str, dict[str, object]] = {
    "gone": {"output": {"size": 0}},
    "unconfirmed": {"output": {"size": 0}, "unconfirmed": True},
    "alive": {"output": {"size": 0}, "unconfirmed": True, "survivors": [4711]},
    "unknown": {"log": "/somewhere/with \\u0000 in it"},
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_facts_of_older_runs_say_of_their_processes_is_kept(
    dialect: str, tmp_path: Path, request: pytest.FixtureRequest
):
    server: PostgresServer | None = None
    url, name = f"sqlite://{tmp_path}/old.db", ""
    if dialect == "postgres":
        server = request.getfixturevalue("postgres_desk")
        name = server.create_database()
        url = server.url(name)
    restored(kept(dialect)[15], url)
    with raw_sql(url) as raw:
        ended = [row[0] for row in raw.do("SELECT id FROM runs WHERE exit_reason IS NOT NULL")]
        for run, facts in zip(ended, REPORTED.values(), strict=False):
            raw.do(f"UPDATE runs SET facts = '{json.dumps(facts)}' WHERE id = '{run}'")
    brought_up(url)
    with raw_sql(url) as raw:
        found = dict(raw.do("SELECT id, processes FROM runs"))
    assert [found[run] for run in ended[:4]] == list(REPORTED)
    if server:
        server.drop_database(name)
