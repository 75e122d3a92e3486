"""What can be counted exactly: statements and syncs on SQLite, messages and waits on PostgreSQL.

Each meter opens a ledger on a store that reports what is done to it.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import apsw

from truegreen.record import migrate
from truegreen.record.ledger import Ledger
from truegreen.record.sqlite import SqliteStore


class Tally(NamedTuple):
    """What was counted so far."""

    statements: int
    syncs: int = 0
    round_trips: int = 0

    def since(self, before: Tally) -> Tally:
        """What came since an earlier count."""
        return Tally(*(now - then for now, then in zip(self, before, strict=True)))


class Meter(Protocol):
    """A ledger whose store is watched."""

    ledger: Ledger

    def read(self) -> Tally:
        """What was counted so far."""


class _File(apsw.VFSFile):
    def __init__(self, layer: _Layer, name: Any, flags: Any) -> None:
        self._layer = layer
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._layer.syncs += 1
        super().xSync(flags)


class _Layer(apsw.VFS):
    """SQLite's own file layer, with every sync counted."""

    def __init__(self) -> None:
        self.syncs = 0
        self.vfs_name = f"bench-{uuid.uuid4().hex[:8]}"
        super().__init__(self.vfs_name, "")

    def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _File(self, name, flags)


class _Traced(SqliteStore):
    statements = 0

    def _connect(self) -> apsw.Connection:
        connection = super()._connect()
        connection.set_exec_trace(self._count)
        return connection

    def _count(self, *_: object) -> bool:
        self.statements += 1
        return True


class SqliteMeter:
    """Statements that the ledger sends (BEGIN and COMMIT too), and syncs of any file."""

    def __init__(self, url: str) -> None:
        self._layer = _Layer()
        self._store = _Traced(url, vfs=self._layer.vfs_name)
        migrate.ensure(self._store)
        self.ledger = Ledger(self._store)

    def read(self) -> Tally:
        """What was counted so far."""
        return Tally(self._store.statements, self._layer.syncs)

    def close(self) -> None:
        """Close the store, then take its file layer away."""
        self.ledger.close()
        self._layer.unregister()


class PostgresMeter:
    """Statements that are executed, and how often the client waits for an answer."""

    def __init__(self, url: str) -> None:
        from psycopg.pq import Trace  # noqa: PLC0415 - an extra

        from truegreen.record.postgres import PostgresStore  # noqa: PLC0415 - an extra

        self._traces: list[str] = []
        self._open: list[Any] = []
        store = PostgresStore(url)
        connect = store._connect  # noqa: SLF001 - watched from here on

        def traced() -> Any:
            handle, path = tempfile.mkstemp(prefix="tgbench-")
            connection = connect()
            connection.pgconn.trace(handle)
            connection.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
            self._traces.append(path)
            self._open.append((handle, connection))
            return connection

        migrate.ensure(store)
        store.close()
        store._pool._connect = traced  # noqa: SLF001 - as above
        self.ledger = Ledger(store)

    def read(self) -> Tally:
        """What was counted so far, over all connections."""
        statements = trips = 0
        for path in self._traces:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = [line.split("\t")[:3] for line in file if line[:2] in ("F\t", "B\t")]
            statements += sum(m[0] == "F" and m[2].strip() in ("Execute", "Query") for m in lines)
            sides = [m[0] for m in lines]
            trips += sum(a == "F" and b == "B" for a, b in itertools.pairwise(sides))
        return Tally(statements, 0, trips)

    def close(self) -> None:
        """Close the store and forget what was traced."""
        for handle, connection in self._open:
            connection.pgconn.untrace()
            os.close(handle)
        self.ledger.close()
        for path in self._traces:
            os.unlink(path)


@contextmanager
def metered(url: str) -> Iterator[Meter]:
    """A watched ledger on a new store."""
    meter = PostgresMeter(url) if url.startswith("postgres") else SqliteMeter(url)
    try:
        yield meter
    finally:
        meter.close()
