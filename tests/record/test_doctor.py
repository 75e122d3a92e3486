"""A history that was tampered with is found, with the triggers out of the way and put back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from tests.forking import Forge
from tests.record.lives import OPERATOR, brought, opened, started
from truegreen.app import anchor_path
from truegreen.config import load_config
from truegreen.model import TaskStatus
from truegreen.record import doctor, migrate
from truegreen.record.chain import GENESIS, SEALED, Anchor, Reach, seal
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.rows import Event
from truegreen.record.store import Store

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


def test_a_task_that_moves_while_the_doctor_looks_is_not_accused(
    anchored: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving, look = opened(anchored), doctor._page

    def meanwhile(*words: Any, **where: Any) -> Any:
        rows = look(*words, **where)
        if words[1] == "all_tasks" and anchored.task(moving.id).status is S.QUEUED:
            started(anchored, moving.id)  # its row is read already, its events are not
        return rows

    monkeypatch.setattr(doctor, "_page", meanwhile)
    assert doctor.history(anchored.store) == []
    assert anchored.task(moving.id).status is S.RUNNING, "it moved meanwhile"


def test_a_house_that_grows_while_the_doctor_looks_is_not_accused(
    anchored: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchored.freeze(actor=OPERATOR, reason="a first event")
    look = doctor._house

    def meanwhile(store: Store) -> Iterator[Event]:
        anchored.thaw(actor=OPERATOR, reason="its row is read already")
        return look(store)

    monkeypatch.setattr(doctor, "_house", meanwhile)
    assert doctor._contradictions(anchored.store) == []
    assert anchored.frozen() is None


@pytest.mark.parametrize("attack", [cut_the_tail, compute_anew])
def test_a_chain_without_an_anchor_misses_what_the_anchor_finds(
    anchored: Ledger, attack: Callable[[Run], None]
) -> None:
    with behind_the_back(anchored) as run:
        attack(run)
    anchored.anchor = None
    assert {a.name for a in doctor.examine(anchored)} <= {"ghost", "counters"}


def test_a_block_by_raw_sql_is_shown_as_unsigned(made_url: str) -> None:
    ledger = open_ledger(made_url)
    ticket = started(ledger)
    with closing(raw_sqlite(ledger)) as raw:
        raw.execute(
            "UPDATE tasks SET status = 'blocked', exit_reason = 'blocked',"
            " exit_detail = 'input_needed' WHERE id = ?",
            [ticket.task],
        )
    assert [a.name for a in doctor.examine(ledger)] == ["unsigned"]
    ledger.close()


def test_wrong_counters_and_ghosts_are_found(made_url: str) -> None:
    ledger = open_ledger(made_url)
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
    assert [mark.events for mark in Anchor(str(path)).marks()] == [1, 2]
    ledger = open_ledger(store_url, anchor=str(path))
    ledger.page()
    ledger.close()
    assert len(Anchor(str(path)).marks()) == 2
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_mark_that_was_cut_by_a_crash_is_not_one(tmp_path: Path, made_url: str) -> None:
    path = tmp_path / "anchor"
    ledger = open_ledger(made_url, anchor=str(path))
    opened(ledger)
    ledger.mark()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"xact":0,"key":2,"ev')
    assert len(Anchor(str(path)).marks()) == 1
    assert Anchor(str(path)).last().events == 1
    opened(ledger)
    ledger.mark()
    assert [mark.events for mark in Anchor(str(path)).marks()] == [1, 2]
    ledger.close()


def test_two_processes_that_mark_at_once_take_turns(store_url: str, tmp_path: Path) -> None:
    path = str(tmp_path / "anchor")
    first, second = (open_ledger(store_url, anchor=path) for _ in range(2))
    anchor = first.anchor
    assert anchor
    opened(first)
    overtaking = threading.Thread(target=second.close)

    def overtaken(reach: Reach) -> Iterator[Event]:
        opened(second)
        overtaking.start()
        overtaking.join(0.3)
        assert overtaking.is_alive(), "the second waits for the first"
        yield from (told.event for told in first._since(reach))

    anchor.extend(overtaken)
    overtaking.join(20)
    assert not overtaking.is_alive()
    assert doctor.examine(first) == []
    assert anchor.last().events == 2
    first.close()


_ADDS = """
import os, sys
from truegreen.record.ledger import open_ledger
from tests.record.lives import opened
start, gun = os.pipe()
adding = []
for _ in range(8):
    adding.append(os.fork())
    if not adding[-1]:
        os.close(gun)
        os.read(start, 1)  # all begin at once, when the gun is closed
        for _ in range(4):
            ledger = open_ledger(sys.argv[1], anchor=sys.argv[2])
            opened(ledger)
            ledger.close()
        os._exit(0)
os.close(gun)
assert [os.waitpid(each, 0)[1] for each in adding] == [0] * 8
"""
"""Processes that were loaded once; none opens the store before it is forked."""


def test_many_processes_that_add_at_once_leave_a_history_as_it_was_anchored(
    store_url: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "anchor")
    open_ledger(store_url, anchor=path).close()
    subprocess.run([sys.executable, "-c", _ADDS, store_url, path], check=True, timeout=50)
    ledger = open_ledger(store_url, anchor=path)
    assert doctor.examine(ledger) == []
    assert Anchor(path).last().events == 32
    ledger.close()


# --- the same through the installed command, against an attacker who owns the database


@pytest.fixture
def kept(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with some history, marked where the command looks for its marks."""
    monkeypatch.setenv("TRUEGREEN_STORE", store_url)
    config = load_config(os.environ, str(tmp_path))
    ledger = open_ledger(store_url, anchor=anchor_path(config))
    for status in (S.SUCCEEDED, S.FAILED, S.BLOCKED):
        brought(ledger, status)
    ledger.close()
    assert Anchor(anchor_path(config)).marks()
    return anchor_path(config)


def doctors_word(forge: Forge, folder: Path) -> tuple[int, set[str]]:
    """The exit status of `truegreen doctor`, and the names of what it found."""
    done = forge.run(("doctor", "--json"), os.environ, folder, 50)
    return done.returncode, {each["name"] for each in json.loads(done.stdout)["ailments"]}


@contextmanager
def owning(url: str) -> Iterator[Run]:
    """Whoever owns the database: every trigger out of the way, and put back as it was."""
    if url.startswith("sqlite"):
        with closing(apsw.Connection(url.removeprefix("sqlite://"))) as raw:
            query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            triggers = raw.execute(query).fetchall()
            assert triggers
            for name, _ in triggers:
                raw.execute(f"DROP TRIGGER {name}")
            yield lambda sql, *values: raw.execute(sql, values).fetchall()
            for _, text in triggers:
                raw.execute(str(text))
        return
    with psycopg.connect(url, autocommit=True) as raw_pg:

        def run(sql: str, *values: object) -> list[tuple[Any, ...]]:
            cursor = raw_pg.execute(sql.replace("?", "%s").encode(), values)
            return cursor.fetchall() if cursor.description else []

        tables = [
            row[0] for row in run("SELECT tablename FROM pg_tables WHERE schemaname='public'")
        ]
        for table in tables:
            run(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield run
        for table in tables:
            run(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def green_task(run: Run) -> int:
    key: int = run("SELECT task_key FROM events WHERE event = 'accept'")[0][0]
    return key


def renumber(run: Run, task: int, after: int, by: int) -> None:
    """Close or open a gap in a chain, so that no number is missing or there twice."""
    where = "WHERE task_key = ? AND revision"
    run(f"UPDATE events SET revision = -revision {where} > ?", task, after)
    run(f"UPDATE events SET revision = -revision + {by} {where} < 0", task)
    run(f"UPDATE tasks SET revision = revision + {by} WHERE key = ?", task)


def edit_one(run: Run) -> None:
    run("UPDATE events SET reason = 'another' WHERE task_key = ? AND revision = 3", green_task(run))


def delete_one_in_the_middle(run: Run) -> None:
    task = green_task(run)
    run("DELETE FROM events WHERE task_key = ? AND revision = 3", task)
    renumber(run, task, 3, -1)


def insert_one(run: Run) -> None:
    """A new event whose own hash fits what is before it."""
    task = green_task(run)
    task_id = run("SELECT id FROM tasks WHERE key = ?", task)[0][0]
    before = run("SELECT hash FROM events WHERE task_key = ? AND revision = 2", task)[0][0]
    renumber(run, task, 2, 1)
    columns = ", ".join(SEALED)
    row = run(f"SELECT {columns} FROM events WHERE task_key = ? AND revision = 2", task)[0]
    values = dict(zip(SEALED, row, strict=True))
    values |= {"revision": 3, "id": "evt_x", "event": "seen", "from_status": None}
    values |= {"to_status": None, "idempotency_key": None}
    marks = ", ".join("?" * len(SEALED))
    run(
        f"INSERT INTO events ({columns}, task_key, hash) VALUES ({marks}, ?, ?)",
        *values.values(),
        task,
        seal(before, task_id, values),
    )


def swap_two(run: Run) -> None:
    task = green_task(run)
    for old, new in ((3, -4), (4, 3), (-4, 4)):
        sql = "UPDATE events SET revision = ? WHERE task_key = ? AND revision = ?"
        run(sql, new, task, old)


def compute_everything_anew(run: Run) -> None:
    """Change an event, and let every hash of every chain fit again."""
    edit_one(run)
    for task, task_id in run("SELECT key, id FROM tasks"):
        head = GENESIS
        columns = ", ".join(SEALED)
        sql = f"SELECT {columns} FROM events WHERE task_key = ? ORDER BY revision"
        for row in run(sql, task):
            values = dict(zip(SEALED, row, strict=True))
            head = seal(head, task_id, values)
            sql = "UPDATE events SET hash = ? WHERE task_key = ? AND revision = ?"
            run(sql, head, task, values["revision"])
        run("UPDATE tasks SET head = ? WHERE key = ?", head, task)


@pytest.mark.criterion("M01", "M10")
@pytest.mark.parametrize(
    ("attack", "found_by"),
    [
        (edit_one, "history"),
        (delete_one_in_the_middle, "history"),
        (insert_one, "history"),
        (swap_two, "history"),
        (cut_the_tail, "anchor"),
        (compute_everything_anew, "anchor"),
    ],
)
def test_doctor_finds_each_of_six_manipulations(
    kept: str,
    store_url: str,
    tmp_path: Path,
    forge: Forge,
    attack: Callable[[Run], None],
    found_by: str,
) -> None:
    assert doctors_word(forge, tmp_path) == (0, set())
    with owning(store_url) as run:
        attack(run)
    status, names = doctors_word(forge, tmp_path)
    assert status == 5
    assert found_by in names
    assert "schema" not in names, "the triggers are as they were"
    os.unlink(kept)
    _, without = doctors_word(forge, tmp_path)
    assert (found_by in without) == (found_by == "history"), "the anchor alone finds the last two"
