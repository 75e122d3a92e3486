"""A database that is used again is as the template is, whatever the test before did to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tests.record.lives import OPERATOR, brought, opened
from tests.record.raw_attacks import populated
from tests.record.raw_sql import raw_sql
from tests.table import each_row
from truegreen.errors import StoreUnreachable
from truegreen.model import TaskStatus
from truegreen.record.ledger import open_ledger

if TYPE_CHECKING:
    from tests.shared_database import SharedDatabase


def content(url: str) -> dict[str, Any]:
    """Every row of every table, and where every sequence stands."""
    with raw_sql(url) as raw:
        tables = raw.do("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        counters = raw.do(
            "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'public'"
        )
        found: dict[str, Any] = {
            name: sorted(map(str, raw.do(f"SELECT * FROM {name}"))) for (name,) in tables
        }
        return found | {"counters": sorted(map(str, counters))}


def database(url: str) -> str:
    return url.partition("///")[2].partition("?")[0]


def test_rows_sequences_and_seeds_are_as_in_the_template(shared_database: SharedDatabase) -> None:
    databases = shared_database
    databases.close()
    url = databases.acquire()
    fresh = content(url)
    ledger = open_ledger(url)
    for status in TaskStatus:
        brought(ledger, status)
    populated(ledger)
    ledger.close()
    with psycopg.connect(url) as raw:
        raw.execute("SET session_replication_role = replica")
        for table, rows in fresh.items():
            if table != "counters" and rows:
                raw.execute(f"DELETE FROM {table}".encode())
    assert content(url) != fresh
    databases.release()
    again = databases.acquire()
    assert database(again) == database(url)
    assert content(again) == fresh
    ledger = open_ledger(again)
    assert opened(ledger).key == 1
    ledger.close()
    databases.release()


@each_row(
    "change",
    [
        "ALTER TABLE tasks DISABLE TRIGGER tasks_kept",
        "DROP TRIGGER tasks_kept ON tasks",
        "DROP INDEX tasks_exit_reason",
        "ALTER TABLE tasks ADD COLUMN note text",
        "ALTER TABLE events ALTER COLUMN actor DROP NOT NULL",
        "ALTER TABLE tasks ALTER COLUMN verdict SET DEFAULT 'passed'",
        "ALTER TABLE tasks DROP CONSTRAINT tasks_mode_check",
        "CREATE TABLE more (key integer)",
        "CREATE FUNCTION more() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "DO $$ BEGIN EXECUTE 'ALTER DATABASE '||current_database()||' SET work_mem = 999'; END $$",
    ],
)
def test_a_database_whose_schema_was_changed_is_not_used_again(
    shared_database: SharedDatabase, change: str
) -> None:
    url = shared_database.acquire()
    with psycopg.connect(url) as raw:
        raw.execute(change.encode())
    shared_database.release()
    assert database(shared_database.acquire()) != database(url)
    shared_database.release()


def test_sessions_of_the_test_before_are_over(shared_database: SharedDatabase) -> None:
    url = shared_database.acquire()
    ledger, forgotten = open_ledger(url), psycopg.connect(url)
    opened(ledger)
    forgotten.execute("SELECT 1 FROM tasks FOR UPDATE")
    shared_database.release()
    again = shared_database.acquire()
    with pytest.raises(psycopg.OperationalError):
        forgotten.execute("SELECT 1")
    with pytest.raises(StoreUnreachable):
        ledger.freeze(actor=OPERATOR, reason="too late")
    assert content(again)["tasks"] == []
    shared_database.release()
    ledger.close()
    forgotten.close()
