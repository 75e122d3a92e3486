"""A store is created whole or not at all, and every start finds what has been wrecked since."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.postgres_server import roomiest
from tests.record.lives import brought, opened
from tests.record.raw_sql import Raw, raw_sql
from tests.repeat import repeated
from tests.table import each_row
from truegreen.errors import (
    SchemaMissing,
    SchemaNewer,
    SchemaWrecked,
    StoreCorrupt,
    StoreReadOnly,
    StoreUnreachable,
    TruegreenError,
)
from truegreen.model import TaskStatus
from truegreen.record import dialects, guards, migrate
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.migrate import REPAIR, Migration
from truegreen.record.store import SQL_DIR, Store, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.postgres_server import PostgresServer

KILLED = Path(__file__).with_name("raw_killed.py")
NOBODY = 65534


@pytest.fixture
def raw(store_url: str) -> Iterator[Raw]:
    open_ledger(store_url).close()
    with raw_sql(store_url) as client:
        yield client


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[str]:
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


another_database = empty_database


def refused(url: str) -> list[str]:
    """What a start finds wrong with a store."""
    with pytest.raises(SchemaWrecked) as found:
        open_ledger(url)
    assert REPAIR in found.value.message
    assert found.value.allowed == (REPAIR,)
    problems = found.value.details["problems"]
    assert isinstance(problems, list)
    assert problems[0] in found.value.message
    return problems


def repaired(url: str) -> list[str]:
    store = open_store(url)
    try:
        return migrate.migrate(store, repair=True)
    finally:
        store.close()


# -- what every start finds ---------------------------------------------------------------------


def dropped(raw: Raw, trigger: str, table: str) -> str:
    return f"DROP TRIGGER {trigger}" + (f" ON {table}" if raw.dialect == "postgres" else "")


@pytest.mark.criterion("B09")
def test_every_dropped_trigger_is_found_named_and_mended(store_url: str, raw: Raw):
    triggers = raw.do(
        "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'"
        if raw.dialect == "sqlite"
        else "SELECT tgname, relname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid"
        " WHERE NOT tgisinternal"
    )
    names = {name for name, _ in triggers}
    assert {guard.name for guard in guards.GUARDS} <= names
    for name, table in sorted(triggers):
        raw.do(dropped(raw, name, table))
        assert f"trigger {name} is missing" in refused(store_url)
    assert len(repaired(store_url)) == len(names)
    open_ledger(store_url).close()


@pytest.mark.criterion("B09")
def test_every_dropped_index_is_found_named_and_mended(store_url: str, raw: Raw):
    indexes = [
        row[0]
        for row in raw.do(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
            if raw.dialect == "sqlite"
            else "SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND NOT EXISTS"
            " (SELECT 1 FROM pg_constraint WHERE conname = indexname)"
        )
    ]
    assert {"tasks_exit_reason", "tasks_status_exit_reason", "runs_one_live"} <= set(indexes)
    for name in indexes:
        raw.do(f"DROP INDEX {name}")
    problems = refused(store_url)
    assert sorted(problems) == sorted(f"index {name} is missing" for name in indexes)
    assert repaired(store_url) == [f"mended: index {name} is missing" for name in sorted(indexes)]
    open_ledger(store_url).close()


def test_what_is_missing_is_found_even_when_the_store_forgot_that_it_had_it(
    store_url: str, raw: Raw
):
    raw.do(
        dropped(raw, "tasks_kept", "tasks"),
        "DROP INDEX tasks_exit_reason",
        "DELETE FROM schema_objects WHERE name IN"
        " ('trigger tasks_kept', 'index tasks_exit_reason')",
    )
    assert refused(store_url) == [
        "index tasks_exit_reason is missing",
        "trigger tasks_kept is missing",
    ]
    repaired(store_url)
    open_ledger(store_url).close()


def test_a_mended_trigger_refuses_again(store_url: str, raw: Raw):
    ledger = open_ledger(store_url)
    task, _ = brought(ledger, TaskStatus.RUNNING)
    lie = f"UPDATE tasks SET verdict = 'passed' WHERE key = {task.key}"
    raw.do(dropped(raw, "tasks_kept", "tasks"))
    assert raw.tried(lie) is None
    repaired(store_url)
    assert "changes only with its event" in (raw.tried(lie) or "")
    ledger.close()


@pytest.mark.criterion("B09")
def test_a_trigger_with_another_text_is_found_and_mended(store_url: str, raw: Raw):
    if raw.dialect == "sqlite":
        (text,) = raw.do("SELECT sql FROM sqlite_master WHERE name = 'events_no_delete'")[0]
        raw.do("DROP TRIGGER events_no_delete", text.replace("1 = 1", "1 = 0"))
    else:
        (text,) = raw.do("SELECT pg_get_functiondef('truegreen_events_no_delete'::regproc)")[0]
        raw.do(text.replace("1 = 1", "1 = 0"))
    assert raw.tried("DELETE FROM events") is None
    assert refused(store_url) == ["trigger events_no_delete was changed"]
    repaired(store_url)
    open_ledger(store_url).close()


@pytest.mark.criterion("B09")
@pytest.mark.parametrize("how", ["DISABLE TRIGGER tasks_kept", "DISABLE TRIGGER ALL",
                                 "ENABLE REPLICA TRIGGER tasks_kept"])  # fmt: skip
def test_a_disabled_trigger_is_found_and_mended(postgres_url: str, how: str):
    with raw_sql(postgres_url) as raw:
        raw.do(f"ALTER TABLE tasks {how}")
    assert "trigger tasks_kept was changed" in refused(postgres_url)
    repaired(postgres_url)
    open_ledger(postgres_url).close()


@pytest.mark.criterion("B09")
def test_a_table_that_was_rebuilt_without_its_checks_is_found_and_no_command_vouches_for_it(
    sqlite_url: str,
):
    ledger = open_ledger(sqlite_url)
    opened(ledger)
    ledger.close()
    with raw_sql(sqlite_url) as raw:
        raw.do(
            "PRAGMA legacy_alter_table = ON",
            "CREATE TABLE loose AS SELECT * FROM tasks",
            "DROP TABLE tasks",
            "ALTER TABLE loose RENAME TO tasks",
        )
    assert "table tasks was changed" in refused(sqlite_url)
    with pytest.raises(SchemaWrecked, match="table tasks was changed"):
        repaired(sqlite_url)
    refused(sqlite_url)


@pytest.mark.criterion("B09")
@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE tasks DROP CONSTRAINT tasks_exit_fits_status",
        "ALTER TABLE runs DROP CONSTRAINT runs_reason_when_ended",
        "ALTER TABLE tasks DROP CONSTRAINT tasks_mode_check",
        "ALTER TABLE findings DROP CONSTRAINT findings_run_key_fkey",
        "ALTER TABLE events ALTER COLUMN actor DROP NOT NULL",
        "ALTER TABLE tasks ALTER COLUMN verdict SET DEFAULT 'passed'",
        "ALTER TABLE tasks ADD COLUMN note text",
    ],
)
def test_a_loosened_table_of_postgres_is_found_and_no_command_vouches_for_it(
    postgres_url: str, change: str
):
    with raw_sql(postgres_url) as raw:
        raw.do(change)
    (problem,) = refused(postgres_url)
    assert problem.startswith(("table", "constraint"))
    with pytest.raises(SchemaWrecked, match=re.escape(problem)):
        repaired(postgres_url)


def test_a_wrecked_table_is_not_sealed_as_good_by_a_later_migration(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
):
    open_ledger(sqlite_url).close()
    with raw_sql(sqlite_url) as raw:
        raw.do("ALTER TABLE tasks ADD COLUMN note TEXT")
    further(monkeypatch, "CREATE TABLE more (key INTEGER PRIMARY KEY)")
    for repair in (False, True):
        with pytest.raises(SchemaWrecked, match="table tasks was changed"):
            migrate.migrate(open_store(sqlite_url), repair=repair)
    refused(sqlite_url)


def test_a_store_that_forgot_its_migrations_is_wrecked_not_empty(store_url: str, raw: Raw):
    raw.do("DELETE FROM schema_migrations")
    with pytest.raises(SchemaWrecked, match="schema_migrations"):
        open_ledger(store_url)


def test_an_untouched_store_is_opened_as_often_as_one_likes(store_url: str, raw: Raw):
    before = raw.do("SELECT name, definition FROM schema_objects ORDER BY name")
    for _ in range(3):
        open_ledger(store_url).close()
    store = open_store(store_url)
    assert migrate.migrate(store) == []
    assert migrate.migrate(store, repair=True) == []
    store.close()
    assert raw.do("SELECT name, definition FROM schema_objects ORDER BY name") == before


def test_maintenance_by_hand_is_no_wreck(store_url: str, raw: Raw):
    ledger = open_ledger(store_url)
    brought(ledger, TaskStatus.SUCCEEDED)
    ledger.close()
    raw.do("ANALYZE")
    raw.do("REINDEX" if raw.dialect == "sqlite" else "REINDEX TABLE tasks")
    open_ledger(store_url).close()


# -- versions -----------------------------------------------------------------------------------

NEXT = migrate.migrations("sqlite")[-1].version + 1


def further(monkeypatch: pytest.MonkeyPatch, *statements: str, version: int = NEXT) -> None:
    """Let the program know one migration more."""
    known = migrate.migrations

    def more(dialect: str) -> list[Migration]:
        text = ";\n".join(statements).replace("{", "{{").replace("}", "}}")
        return [*known(dialect), Migration(version, "more", f"{text};\n", dialect)]

    monkeypatch.setattr(migrate, "migrations", more)


def other_triggers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program have another rule, and know of it."""
    renamed = guards.GUARDS[0]._replace(when="1 = 1")
    monkeypatch.setattr(guards, "GUARDS", (renamed, *guards.GUARDS[1:]))
    monkeypatch.setattr(migrate, "kept_guards", migrate.made_guards)


@each_row("dialect", ["sqlite", "postgres"])
def test_the_triggers_that_a_start_looks_for_are_those_that_the_rules_make(dialect: str):
    kept, made = migrate.kept_guards(dialect), migrate.made_guards(dialect)
    assert kept == made, "after a change of the rules: migrate.keep_guards() writes guards.json"


def test_an_empty_store_is_missing_for_whoever_only_looks(sqlite_url: str):
    store = open_store(sqlite_url)
    with pytest.raises(SchemaMissing, match="truegreen migrate"):
        migrate.verify(store)
    assert migrate.migrate(store) == [
        "applied 0001 record",
        "applied 0002 stop",
        "applied 0003 judgement",
        "applied 0004 doors",
        "applied 0005 faces",
        "applied 0006 queue",
        "applied 0007 routines",
        "applied 0008 budgets",
        "applied 0009 workers",
        "applied 0010 notices",
        "applied 0011 engines",
        "applied 0012 lists",
        "applied 0013 conditions",
        "applied 0014 under_way",
        "applied 0015 proof",
        "applied 0016 processes_quiet",
        "applied 0017 restarted",
    ]
    migrate.verify(store)
    store.close()


def test_a_store_of_a_newer_program_is_left_alone(store_url: str, raw: Raw):
    raw.do(
        "INSERT INTO schema_migrations (version, name, checksum, applied_at)"
        " VALUES (99, 'future', 'x', 1)"
    )
    before = raw.do("SELECT * FROM schema_objects ORDER BY name")
    store = open_store(store_url)
    for act in (migrate.verify, migrate.ensure, migrate.migrate):
        with pytest.raises(SchemaNewer, match="99"):
            act(store)
    with pytest.raises(SchemaNewer):
        migrate.migrate(store, repair=True)
    store.close()
    assert raw.do("SELECT * FROM schema_objects ORDER BY name") == before


def test_a_migration_whose_text_was_edited_after_it_was_applied_is_refused(
    store_url: str, raw: Raw
):
    raw.do("UPDATE schema_migrations SET checksum = 'another' WHERE version = 1")
    assert refused(store_url) == ["migration 1 record was applied with another text"]
    with pytest.raises(SchemaWrecked, match="migration 1 record"):
        repaired(store_url)


def test_every_byte_of_a_migration_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "sql"
    shutil.copytree(SQL_DIR, folder)
    monkeypatch.setattr(migrate, "SQL_DIR", str(folder))
    before = {
        dialect: migrate.migrations(dialect)[0].checksum for dialect in ("sqlite", "postgres")
    }
    assert len(set(before.values())) == 2
    file = folder / "migrations" / "0001_record.sqlite.sql"
    file.write_text(file.read_text() + "-- a word more\n")
    after = {dialect: migrate.migrations(dialect)[0].checksum for dialect in ("sqlite", "postgres")}
    assert after["sqlite"] != before["sqlite"]
    assert after["postgres"] == before["postgres"]


@each_row("dialect", ["sqlite", "postgres"])
def test_shipped_migrations_execute_the_sql_that_their_checksums_are_of(dialect: str):
    kept = {n: each.rendered for n, each in migrate.kept_checksums(dialect).items()}
    assert kept == migrate.made_checksums(dialect), (
        "The SQL of a shipped migration has changed, perhaps with an enum: stores that have it"
        " would be refused. Leave its SQL as it is, and change the schema by a new migration."
        " For a new migration: migrate.keep_checksums() writes checksums.json"
    )


def one_word_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an enum that migrations are rendered from have one more word."""
    words = dialects._VOCABULARY["Cell"]
    monkeypatch.setitem(dialects._VOCABULARY, "Cell", (*words, "half_done"))


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_changed_enum_changes_the_checksum(dialect: str, monkeypatch: pytest.MonkeyPatch):
    before = migrate.made_checksums(dialect)
    one_word_more(monkeypatch)
    after = migrate.made_checksums(dialect)
    changed = {version for version in before if before[version] != after[version]}
    assert changed == ({1} if dialect == "sqlite" else {1, 15})


def test_a_store_made_with_other_enums_is_refused(
    store_url: str, empty_database: str, tmp_path: Path
):
    """Its tables take other words: the checksum of the template never showed that."""
    url = f"sqlite://{tmp_path}/other.db" if store_url.startswith("sqlite") else empty_database
    with pytest.MonkeyPatch.context() as patched:
        one_word_more(patched)
        made = migrate.made_checksums("sqlite" if url.startswith("sqlite") else "postgres")
        patched.setattr(
            migrate,
            "kept_checksums",
            lambda _: {version: migrate.Checksums(digest) for version, digest in made.items()},
        )
        open_ledger(url).close()
    assert "migration 1 record was applied with another text" in refused(url)


def test_a_store_with_the_checksums_of_templates_is_opened(store_url: str, raw: Raw):
    """Earlier versions wrote those; of a migration that came later none is accepted."""
    for version, each in migrate.kept_checksums(raw.dialect).items():
        if each.template:
            raw.do(
                f"UPDATE schema_migrations SET checksum = '{each.template}'"
                f" WHERE version = {version}"
            )
    open_ledger(store_url).close()
    raw.do("UPDATE schema_migrations SET checksum = '' WHERE version = 16")
    assert refused(store_url) == ["migration 16 processes_quiet was applied with another text"]


def test_an_older_store_is_not_opened_and_is_brought_up_by_migrate(
    store_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
):
    ledger = open_ledger(store_url)
    task, _ = brought(ledger, TaskStatus.SUCCEEDED)
    ledger.close()
    further(monkeypatch, "CREATE TABLE more (key integer PRIMARY KEY)")
    # A newer program has other triggers, too.
    other_triggers(monkeypatch)
    with pytest.raises(SchemaWrecked) as older:
        open_ledger(store_url)
    assert older.value.allowed == ("truegreen backup FILE", "truegreen migrate")
    assert "truegreen backup FILE" in older.value.message
    store = open_store(store_url)
    assert migrate.migrate(store) == [f"applied {NEXT:04d} more"]
    store.close()
    ledger = open_ledger(store_url)
    assert ledger.task(task.id) == task
    ledger.close()


def test_other_triggers_of_the_same_schema_are_brought_by_repair(
    store_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
):
    other_triggers(monkeypatch)
    assert refused(store_url) == ["the triggers are those of another version of truegreen"]
    repaired(store_url)
    open_ledger(store_url).close()


@pytest.mark.criterion("B10")
def test_a_migration_that_rebuilds_a_table_gets_every_trigger_back(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
):
    ledger = open_ledger(sqlite_url)
    brought(ledger, TaskStatus.SUCCEEDED)
    ledger.close()
    further(monkeypatch, *rebuilt("claims"))
    store = open_store(sqlite_url)
    assert migrate.migrate(store) == [f"applied {NEXT:04d} more"]
    assert {"trigger claims_no_update", "trigger claims_no_delete"} <= set(store.objects())
    store.close()
    with raw_sql(sqlite_url) as raw:
        said = raw.tried("INSERT INTO claims (task_key, run_key, kind, reason, statements, extra,"
                         " source, at) VALUES (1, 2, 'wrong', '', '', '', '', 1)")  # fmt: skip
        assert "CHECK constraint failed" in (said or "")


@pytest.mark.criterion("B10")
def test_a_migration_that_loses_an_index_is_refused_by_its_own_last_look(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
):
    open_ledger(sqlite_url).close()
    further(monkeypatch, *rebuilt("refusals"))
    store = open_store(sqlite_url)
    with pytest.raises(SchemaWrecked, match="index refusals_task is missing"):
        migrate.migrate(store)
    store.close()
    refused(sqlite_url)


@pytest.mark.criterion("B10")
def test_every_migration_ends_with_the_look_of_every_start(
    store_url: str, raw: Raw, monkeypatch: pytest.MonkeyPatch
):
    looked: list[migrate.State] = []
    real = migrate.inspect

    def inspect(store: Store) -> migrate.State:
        looked.append(real(store))
        return looked[-1]

    monkeypatch.setattr(migrate, "inspect", inspect)
    further(monkeypatch, "CREATE TABLE more (key integer PRIMARY KEY)")
    store = open_store(store_url)
    migrate.migrate(store)
    store.close()
    assert [state.version for state in looked] == [NEXT - 1, NEXT]
    assert looked[-1].current


def rebuilt(table: str) -> list[str]:
    """The twelve-step way to change a table in SQLite, in short."""
    (statement,) = (
        each
        for each in migrate.migrations("sqlite")[0].statements
        if f"CREATE TABLE {table} (" in each
    )
    return [
        "PRAGMA legacy_alter_table = ON",  # triggers of other tables look at this one
        statement.replace(f"CREATE TABLE {table} (", f"CREATE TABLE new_{table} ("),
        f"INSERT INTO new_{table} SELECT * FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE new_{table} RENAME TO {table}",
    ]


# -- deaths and crowds ----------------------------------------------------------------------------


def ran(*arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, KILLED, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_deaths(deaths: list[dict[str, Any]]) -> None:
    *before, after = deaths
    assert {death["left"] for death in before} == {"empty"}
    assert after["left"] == "complete"
    assert {death["signal"] for death in deaths} == {9}
    assert {death["then"] for death in deaths} == {"complete"}
    assert [death["integrity"] for death in deaths if death["integrity"]] == []


_KILLS = repeated(10)
"""Real deaths, evenly over all statements; what any other would leave is looked at as well."""


def check_watched(deaths: list[dict[str, Any]]) -> None:
    *before, after = deaths
    assert len(before) > 400, "every statement, and the moment before the commit"
    assert {death["left"] for death in before} == {"empty"}
    assert after["left"] == "complete"


@pytest.mark.timeout(240)
def test_a_migration_killed_at_any_statement_leaves_an_empty_store_that_can_be_completed():
    with tempfile.TemporaryDirectory(dir=roomiest()) as folder:
        url = f"sqlite://{folder}/{{n}}.db"
        watched, deaths = ran("watched", url), ran("killed", url, str(_KILLS))
    check_watched(watched)
    assert {death["then"] for death in watched} == {"complete"}
    assert [death["integrity"] for death in watched if death["integrity"]] == []
    assert len(deaths) > _KILLS
    check_deaths(deaths)


@pytest.mark.timeout(240)
def test_a_migration_of_postgres_killed_at_any_statement_leaves_an_empty_store(
    empty_database: str, another_database: str
):
    check_watched(ran("watched", another_database))
    deaths = ran("killed", empty_database, str(_KILLS))
    assert len(deaths) > _KILLS
    check_deaths(deaths)
    ledger = open_ledger(empty_database)
    opened(ledger)
    ledger.close()


def test_eight_processes_create_one_sqlite_store_at_once(tmp_path: Path):
    url = f"sqlite://{tmp_path}/crowd.db"
    assert ran("together", url, "8") == [0] * 8
    check_crowd(url, 8)


def test_four_processes_create_one_postgres_store_at_once(empty_database: str):
    assert ran("together", empty_database, "4") == [0] * 4
    check_crowd(empty_database, 4)


def check_crowd(url: str, count: int) -> None:
    ledger = open_ledger(url)
    with ledger.store.snapshot() as tx:
        assert len(tx.all("all_tasks", after=0, n=100)) == count
        assert len(tx.all("schema_migrations")) == len(migrate.migrations(ledger.store.dialect))
    ledger.close()


# -- files that are no store ----------------------------------------------------------------------


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """As somebody whom file permissions bind; root is bound by none."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="tg-", dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777)
    shutil.rmtree(folder)


def test_a_store_that_cannot_be_written_says_so(open_folder: Path):
    path = open_folder / "truegreen.db"
    open_ledger(f"sqlite://{path}").close()
    path.chmod(0o444)
    with unprivileged(), pytest.raises(StoreReadOnly, match=r"truegreen\.db.*look at a copy"):
        open_ledger(f"sqlite://{path}")
    path.chmod(0)
    with unprivileged(), pytest.raises(StoreReadOnly, match=r"truegreen\.db can't be read"):
        open_ledger(f"sqlite://{path}")


def test_a_folder_that_cannot_be_written_says_so(open_folder: Path):
    open_folder.chmod(0o555)
    with unprivileged(), pytest.raises(StoreReadOnly):
        open_ledger(f"sqlite://{open_folder}/truegreen.db")
    with unprivileged(), pytest.raises(StoreReadOnly):
        open_ledger(f"sqlite://{open_folder}/deeper/truegreen.db")
    assert list(open_folder.iterdir()) == []


def test_a_writable_store_in_a_read_only_folder_says_so(open_folder: Path):
    path = open_folder / "truegreen.db"
    open_ledger(f"sqlite://{path}").close()
    path.chmod(0o666)
    open_folder.chmod(0o555)
    with unprivileged(), pytest.raises((StoreReadOnly, StoreUnreachable)):
        open_ledger(f"sqlite://{path}")


def test_a_folder_in_place_of_a_store_says_so(tmp_path: Path):
    with pytest.raises(StoreUnreachable, match="directory"):
        open_ledger(f"sqlite://{tmp_path}")


def test_a_file_in_place_of_a_folder_says_so(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnreachable):
        open_ledger(f"sqlite://{tmp_path}/file/truegreen.db")


@pytest.mark.parametrize(
    "content", [b"# My notes\n", b"# My notes\n" * 1000, b"\x00" * 4096, b"SQLite format 3"]
)
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes):
    path = tmp_path / "notes.md"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="not a"):
        open_ledger(f"sqlite://{path}")
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(tmp_path: Path):
    path = tmp_path / "truegreen.db"
    path.touch()
    ledger = open_ledger(f"sqlite://{path}")
    assert opened(ledger).status is TaskStatus.QUEUED
    ledger.close()


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_store_is_a_typed_error_and_never_an_empty_store(tmp_path: Path, share: float):
    path = tmp_path / "truegreen.db"
    url = f"sqlite://{path}"
    ledger = open_ledger(url)
    for _ in range(3):
        opened(ledger)
    ledger.close()
    whole = path.stat().st_size
    assert not path.with_name("truegreen.db-wal").exists()
    with path.open("rb+") as file:
        file.truncate(int(whole * share))
    with pytest.raises(TruegreenError) as found:
        use_everything(url)
    assert isinstance(found.value, StoreCorrupt)


def use_everything(url: str) -> None:
    """Open, look at everything, write."""
    ledger = open_ledger(url)
    try:
        problems = ledger.store.integrity()
        if problems:
            raise StoreCorrupt(problems[0])
        opened(ledger)
    finally:
        ledger.close()


def test_a_failed_open_leaves_no_connection_behind(sqlite_url: str):
    open_ledger(sqlite_url).close()
    with raw_sql(sqlite_url) as raw:
        raw.do("DROP TRIGGER tasks_kept")
    gc.collect()  # what an earlier test left to the collector is not closed during this one
    handles = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        refused(sqlite_url)
    assert len(os.listdir("/proc/self/fd")) == handles


def test_the_ledger_of_a_mended_store_is_the_same(store_url: str, raw: Raw):
    ledger: Ledger = open_ledger(store_url)
    task = opened(ledger)
    ledger.close()
    raw.do(dropped(raw, "runs_kept", "runs"), "DROP INDEX tasks_role")
    refused(store_url)
    assert sorted(repaired(store_url)) == [
        "mended: index tasks_role is missing",
        "mended: trigger runs_kept is missing",
    ]
    ledger = open_ledger(store_url)
    assert ledger.task(task.id) == task
    ledger.close()
