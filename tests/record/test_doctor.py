"""A history that was tampered with is found, with the triggers out of the way and put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from tests.record.lives import brought, opened, started
from truegreen.model import TaskStatus
from truegreen.record import doctor, migrate
from truegreen.record.chain import GENESIS, SEALED, Anchor, seal
from truegreen.record.ledger import Ledger, open_ledger

S = TaskStatus
Run = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def anchored(store_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with some history and a mark of it outside."""
    ledger = open_ledger(store_url, anchor=str(tmp_path / "anchor"))
    for status in (S.SUCCEEDED, S.FAILED, S.BLOCKED):
        brought(ledger, status)
    ledger.mark()
    yield ledger
    ledger.close()


def raw_sqlite(ledger: Ledger) -> apsw.Connection:
    """The store's own SQLite library: two of them in one process drop each other's locks."""
    return apsw.Connection(ledger.store.url.removeprefix("sqlite://"))


@contextmanager
def behind_the_back(ledger: Ledger) -> Iterator[Run]:
    """A connection with the right to everything: the triggers are gone while it works."""
    guards = ("events_no_update", "events_no_delete", "events_true", "tasks_kept", "tasks_open")
    if ledger.store.dialect == "sqlite":
        with closing(raw_sqlite(ledger)) as raw:
            for name in (*guards, "events_no_replace"):
                raw.execute(f"DROP TRIGGER IF EXISTS {name}")
            yield lambda sql, *values: raw.execute(sql, values).fetchall()
    else:
        with psycopg.connect(ledger.store.url, autocommit=True) as raw_pg:
            for table in ("events", "tasks"):
                raw_pg.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER".encode())

            def run(sql: str, *values: object) -> list[tuple[Any, ...]]:
                cursor = raw_pg.execute(sql.replace("?", "%s").encode(), values)
                return cursor.fetchall() if cursor.description else []

            yield run
    migrate.migrate(ledger.store, repair=True)


def edit(run: Run) -> None:
    run("UPDATE events SET actor = 'operator:mallory' WHERE event = 'accept'")


def delete(run: Run) -> None:
    run("DELETE FROM events WHERE event = 'findings'")


def insert(run: Run) -> None:
    key = run("SELECT task_key FROM events WHERE event = 'accept'")[0][0]
    run(
        "INSERT INTO events (id, task_key, revision, at, level, event, actor, reason, fence, data,"
        " hash) VALUES ('evt_x', ?, 99, 1, 'info', 'seen', 'system:truegreen', '', 1, '{}', ?)",
        key,
        b"0" * 32,
    )


def swap(run: Run) -> None:
    (a, x), (b, y) = run(
        "SELECT key, reason FROM events WHERE event IN ('accept', 'findings') ORDER BY key LIMIT 2"
    )
    run("UPDATE events SET event = 'charge' WHERE key = ?", a)
    run("UPDATE events SET reason = ? WHERE key = ?", x + "!", b)
    assert (a, x) != (b, y)


def cut_the_tail(run: Run) -> None:
    """Remove the newest task's last event and put its row back, as if it had never happened."""
    task, revision = run("SELECT key, revision FROM tasks ORDER BY key DESC LIMIT 1")[0]
    run("DELETE FROM events WHERE task_key = ? AND revision = ?", task, revision)
    before = run("SELECT hash FROM events WHERE task_key = ? ORDER BY revision DESC", task)[0][0]
    run(
        "UPDATE tasks SET status = 'running', revision = ?, head = ?, settled_at = NULL,"
        " exit_reason = NULL, exit_detail = NULL WHERE key = ?",
        revision - 1,
        before,
        task,
    )


def compute_anew(run: Run) -> None:
    """Change one event and give every later one of its task a hash that fits."""
    task = run("SELECT task_key FROM events WHERE event = 'accept'")[0][0]
    run("UPDATE events SET reason = 'nothing to see' WHERE task_key = ? AND revision = 2", task)
    task_id = run("SELECT id FROM tasks WHERE key = ?", task)[0][0]
    head = GENESIS
    columns = ", ".join(SEALED)
    for row in run(f"SELECT {columns} FROM events WHERE task_key = ? ORDER BY revision", task):
        values = dict(zip(SEALED, row, strict=True))
        head = seal(head, task_id, values)
        sql = "UPDATE events SET hash = ? WHERE task_key = ? AND revision = ?"
        run(sql, head, task, values["revision"])
    run("UPDATE tasks SET head = ? WHERE key = ?", head, task)


@pytest.mark.criterion("M01", "M10")
@pytest.mark.parametrize(
    ("attack", "found_by"),
    [
        (edit, "history"),
        (delete, "history"),
        (insert, "history"),
        (swap, "history"),
        (cut_the_tail, "anchor"),
        (compute_anew, "anchor"),
    ],
)
def test_six_manipulations_are_found(
    anchored: Ledger, attack: Callable[[Run], None], found_by: str
) -> None:
    assert doctor.examine(anchored) == []
    with behind_the_back(anchored) as run:
        attack(run)
    assert found_by in {ailment.name for ailment in doctor.examine(anchored)}


@pytest.mark.parametrize("attack", [cut_the_tail, compute_anew])
def test_a_chain_without_an_anchor_misses_what_the_anchor_finds(
    anchored: Ledger, attack: Callable[[Run], None]
) -> None:
    with behind_the_back(anchored) as run:
        attack(run)
    anchored.anchor = None
    assert {a.name for a in doctor.examine(anchored)} <= {"ghost", "counters"}


def test_a_block_by_raw_sql_is_shown_as_unsigned(sqlite_url: str) -> None:
    ledger = open_ledger(sqlite_url)
    ticket = started(ledger)
    with closing(raw_sqlite(ledger)) as raw:
        raw.execute(
            "UPDATE tasks SET status = 'blocked', exit_reason = 'blocked',"
            " exit_detail = 'input_needed' WHERE id = ?",
            [ticket.task],
        )
    assert [a.name for a in doctor.examine(ledger)] == ["unsigned"]
    ledger.close()


def test_wrong_counters_and_ghosts_are_found(sqlite_url: str) -> None:
    ledger = open_ledger(sqlite_url)
    started(ledger)
    opened(ledger)
    with closing(raw_sqlite(ledger)) as raw:
        raw.execute("UPDATE counters SET tasks = tasks + 1 WHERE status = 'queued'")
        raw.execute("DELETE FROM leases")
    assert {a.name for a in doctor.examine(ledger)} == {"counters", "ghost"}
    assert migrate.migrate(ledger.store, repair=True) == [
        "mended: the matrix's counters were wrong"
    ]
    assert {a.name for a in doctor.examine(ledger)} == {"ghost"}
    ledger.close()


def test_closing_a_ledger_that_wrote_marks_the_history_outside(
    store_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "outside" / "anchor"
    for _ in range(2):
        ledger = open_ledger(store_url, anchor=str(path))
        opened(ledger)
        ledger.close()
    marks = Anchor(str(path)).marks()
    assert [mark.events for mark in marks] == [1, 2]
    ledger = open_ledger(store_url, anchor=str(path))
    ledger.page()
    ledger.close()
    assert len(Anchor(str(path)).marks()) == 2
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_mark_that_was_cut_by_a_crash_is_not_one(tmp_path: Path, sqlite_url: str) -> None:
    path = tmp_path / "anchor"
    ledger = open_ledger(sqlite_url, anchor=str(path))
    opened(ledger)
    ledger.mark()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"xact":0,"key":2,"ev')
    assert len(Anchor(str(path)).marks()) == 1
    assert Anchor(str(path)).last().events == 1
    ledger.close()
