"""Raw SQL on a store, behind the ledger's back: what anybody with a database client could do."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from truegreen.record.rows import Task

_numbers = itertools.count(1)


class RawRefused(Exception):
    """The database refused it, in these words."""


class Raw:
    """One store as a database client sees it."""

    dialect: str

    def _run(self, statements: tuple[str, ...], *, keep: bool) -> list[list[Any]]:
        raise NotImplementedError

    def do(self, *statements: str) -> list[list[Any]]:
        """Run statements in one transaction; the rows of the last one."""
        return self._run(statements, keep=True)

    def tried(self, *statements: str) -> str | None:
        """What the database says against it, or None; nothing is kept."""
        try:
            self._run(statements, keep=False)
        except RawRefused as refused:
            return str(refused)
        return None

    def columns(self, table: str) -> list[str]:
        """The columns of a table, in order."""
        raise NotImplementedError

    def copied(self, table: str, key: int, verb: str = "INSERT", /, **changes: object) -> str:
        """A statement that writes a row like that one, with changes given as SQL."""
        names = self.columns(table)
        values = ", ".join(str(changes.get(name, name)) for name in names)
        target = f"{verb} INTO {table} ({', '.join(names)})"
        return f"{target} SELECT {values} FROM {table} WHERE key = {key}"


class _Clients:
    """One process beside the tests for all who use a SQLite of their own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("raw_sqlite.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._one_at_a_time = threading.Lock()
        atexit.register(self._close)

    def ask(self, **order: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._one_at_a_time:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def _close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


@functools.cache
def _clients(_pid: int) -> _Clients:
    return _Clients()


class RawSqlite(Raw):
    """SQLite through the standard library, in another process."""

    dialect = "sqlite"

    def __init__(self, path: str) -> None:
        self._name = str(next(_numbers))
        self._clients = _clients(os.getpid())
        self._clients.ask(client=self._name, open=path)

    def _run(self, statements: tuple[str, ...], *, keep: bool) -> list[list[Any]]:
        answer = self._clients.ask(client=self._name, sql=statements, keep=keep)
        if "error" in answer:
            raise RawRefused(answer["error"])
        rows: list[list[Any]] = answer["rows"]
        return rows

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.do(f"PRAGMA table_info({table})")]

    def close(self) -> None:
        self._clients.ask(client=self._name)


class RawPostgres(Raw):
    """PostgreSQL through psycopg alone."""

    dialect = "postgres"

    def __init__(self, url: str) -> None:
        import psycopg  # noqa: PLC0415 - an extra; the SQLite half must load without it

        self._error = psycopg.Error
        self._connection: psycopg.Connection = psycopg.connect(url)

    def _run(self, statements: tuple[str, ...], *, keep: bool) -> list[list[Any]]:
        try:
            cursor = self._connection.cursor()
            for statement in statements:
                cursor.execute(statement.encode())
            rows = [list(row) for row in cursor.fetchall()] if cursor.description else []
            if keep:
                self._connection.commit()
            else:
                self._connection.rollback()
        except self._error as error:
            self._connection.rollback()
            raise RawRefused(error.diag.message_primary or str(error)) from error
        return rows

    def columns(self, table: str) -> list[str]:
        rows = self.do(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'"
            f" AND table_name = '{table}' ORDER BY ordinal_position"
        )
        return [row[0] for row in rows]

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def raw_sql(url: str) -> Iterator[Raw]:
    """A database client for the store behind a URL."""
    client = RawPostgres(url) if url.startswith("postgres") else RawSqlite(url[len("sqlite://") :])
    try:
        yield client
    finally:
        client.close()


def event(task: Task, name: str, edge: tuple[str, str] | None = None, **changes: object) -> str:
    """A statement that writes the next event of a task, with changes given as SQL."""
    values: dict[str, object] = {
        "id": f"'evt_raw{next(_numbers)}'",
        "task_key": task.key,
        "revision": task.revision + 1,
        "at": 1,
        "level": "'info'",
        "event": f"'{name}'",
        "from_status": f"'{edge[0]}'" if edge else "NULL",
        "to_status": f"'{edge[1]}'" if edge else "NULL",
        "actor": "'operator:eve'",
        "reason": "''",
        "fence": task.fence,
        "data": "'{}'",
        "hash": "head",
    } | changes
    names, given = ", ".join(values), ", ".join(str(value) for value in values.values())
    return f"INSERT INTO events ({names}) SELECT {given} FROM tasks WHERE key = {task.key}"


def written(task: Task, **changes: object) -> str:
    """A statement that changes a task's row, with changes given as SQL."""
    assigned = ", ".join(f"{name} = {value}" for name, value in changes.items())
    return f"UPDATE tasks SET {assigned} WHERE key = {task.key}"


def noted(task: Task, **changes: object) -> list[str]:
    """A change of a task's row that comes with an event, as a note."""
    return [event(task, "inbox"), written(task, revision="revision + 1", **changes)]


def fitting(status: str) -> dict[str, str]:
    """What else the CHECKs ask of a row in this status."""
    reason = {
        "succeeded": ("done", "completed"),
        "blocked": ("blocked", "input_needed"),
        "canceled": ("user_cancelled", "canceled"),
        "terminated": ("user_cancelled", "terminated"),
        "failed": ("fatal_error", "oom"),
    }.get(status)
    more = {"settled_at": "NULL"}
    if reason:
        more |= {"exit_reason": f"'{reason[0]}'", "exit_detail": f"'{reason[1]}'"}
    if status == "succeeded":
        more |= {"verdict": "'passed'", "acceptance": "'{}'", "proof": "'waived'"}
    if status == "terminated":
        more |= {"sealed_at": "1"}
    return more
