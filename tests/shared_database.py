"""A database that many tests use one after the other, and its connections that stay open.

To make a database and to open its first connection takes longer than what most tests do with it:
each connection reads the catalogs, plans every statement and compiles every trigger. After a test
its rows are taken away, with the triggers off, and what the template holds is put back. A database
whose catalogs a test changed is dropped, and another one is made.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg.pq import TransactionStatus

from truegreen.errors import StoreUnreachable
from truegreen.record.postgres import PostgresStore, _silent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.postgres_server import PostgresServer

USES = 60
"""So often a database is used: rows that were deleted stay in its files."""
_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
)
_SEQUENCES = (
    "SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace"
)
_CATALOGS = {
    "pg_class": "oid",
    "pg_attribute": "attrelid",
    "pg_attrdef": "oid",
    "pg_constraint": "oid",
    "pg_index": "indexrelid",
    "pg_trigger": "oid",
    "pg_proc": "oid",
    "pg_type": "oid",
    "pg_namespace": "oid",
    "pg_rewrite": "oid",
    "pg_policy": "oid",
    "pg_event_trigger": "oid",
    "pg_extension": "oid",
    "pg_db_role_setting": "setdatabase",
}
# Whatever changes a catalog writes a row that is newer than all, or takes one away.
_SCHEMA = " UNION ALL ".join(
    f"SELECT '{name}', count(*), count(*) FILTER (WHERE age(xmin) < age('{{now}}'::xid))"
    f" FROM {name} WHERE {key} >= 16384"
    for name, key in _CATALOGS.items()
)
_OTHERS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL(%s)"
)


class _Seed(NamedTuple):
    """What a table of the template holds."""

    rows: str
    columns: str


class KeptConnections:
    """The connections of the database that is in use, for the next ledger that opens it."""

    def __init__(self) -> None:
        self.url = ""
        self.former: set[str] = set()
        self._idle: list[psycopg.Connection[Any]] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def take(self, url: str) -> psycopg.Connection[Any] | None:
        """One that nobody uses, as if it were new."""
        if os.getpid() != self._pid:
            return None
        if url in self.former:
            message = "the test that used this database is over"
            raise StoreUnreachable(message)
        while True:
            with self._lock:
                if url != self.url or not self._idle:
                    return None
                connection = self._idle.pop()
            if _silent(connection):
                with contextlib.suppress(psycopg.Error):
                    connection.execute(b"RESET ALL")
                    connection.execute(b"UNLISTEN *")
                    return connection
            connection.close()

    def give(self, url: str, connections: list[psycopg.Connection[Any]]) -> list[Any]:
        """Keep what can be used again; the others are given back."""
        if url != self.url or os.getpid() != self._pid:
            return connections
        idle = TransactionStatus.IDLE
        good = [each for each in connections if each.info.transaction_status is idle]
        with self._lock:
            self._idle.extend(good)
        return [each for each in connections if each not in good]

    def pids(self) -> list[int]:
        """The sessions of those that are kept."""
        with self._lock:
            return [each.info.backend_pid for each in self._idle]

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


@contextlib.contextmanager
def keep_connections(kept: KeptConnections) -> Iterator[None]:
    """Let stores of this process use what is kept; other processes connect as ever."""
    connect, close = PostgresStore._connect, PostgresStore.close

    def connected(store: PostgresStore) -> psycopg.Connection[Any]:
        connection = kept.take(store.url)
        if connection is None:
            return connect(store)
        store._check_surroundings(connection)
        return connection

    def closed(store: PostgresStore) -> None:
        pool = store._pool
        if pool._pid == os.getpid():
            with pool._lock:
                pool._idle = kept.give(store.url, pool._idle)
        close(store)

    PostgresStore._connect = connected  # type: ignore[method-assign, assignment]
    PostgresStore.close = closed  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        PostgresStore._connect, PostgresStore.close = connect, close  # type: ignore[method-assign]
        kept.close()


class ClearedDatabase:
    """One database, with a connection that clears it."""

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server = server
        self.name = server.create_database(template=template)
        self.uses = 0
        self._connection = psycopg.connect(server.url(self.name), autocommit=True)
        self._connection.execute(b"SET session_replication_role = replica")
        tables = [name for (name,) in self._ask(_TABLES)]
        self._seeds = {name: seed for name in tables if (seed := self._seed(name))}
        self._filled = " UNION ALL ".join(
            f"SELECT '{name}', 0, 0 WHERE EXISTS (SELECT 1 FROM {name})"
            for name in tables
            if name not in self._seeds
        )
        self._sown = " UNION ALL ".join(
            f"SELECT '{name}', count(*), max(xmin::text::bigint) FROM {name}"
            for name in self._seeds
        )
        sequences = [name for (name,) in self._ask(_SEQUENCES)]
        self._counters = "SELECT " + ", ".join(
            f"setval('{name}', {value}, {called})"
            for name in sequences
            for value, called in self._ask(f"SELECT last_value, is_called FROM {name}")
        )
        ((now,),) = self._ask("SELECT pg_current_xact_id()::xid::text")
        self._catalogs = _SCHEMA.format(now=now)
        self._schema = self._ask(self._catalogs)
        self._state = self._ask(self._sown)

    def _ask(self, query: str, *values: object) -> list[Any]:
        return self._connection.execute(query.encode(), values or None, prepare=True).fetchall()

    def _seed(self, table: str) -> _Seed | None:
        ((rows,),) = self._ask(f"SELECT jsonb_agg(to_jsonb(t))::text FROM {table} AS t")
        if rows is None:
            return None
        names = (
            f"SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute WHERE attnum > 0"
            f" AND NOT attisdropped AND attgenerated = '' AND attrelid = '{table}'::regclass"
        )
        ((columns,),) = self._ask(names)
        return _Seed(rows, columns)

    def cleared(self, kept: KeptConnections) -> bool:
        """Make it as the template is; says no if only a new one could be."""
        self.uses += 1
        if self.uses >= USES:
            return False
        try:
            self._ask(_OTHERS, kept.pids())
            if self._ask(self._catalogs) != self._schema:
                return False
            self._clear()
        except psycopg.Error:
            return False
        return True

    def _clear(self) -> None:
        changed = set(self._ask(self._sown)) - set(self._state)
        with self._connection.transaction(), self._connection.pipeline():
            for name in [
                *(row[0] for row in self._ask(self._filled)),
                *(row[0] for row in changed),
            ]:
                self._connection.execute(f"DELETE FROM {name}".encode(), prepare=True)
                if seed := self._seeds.get(name):
                    self._connection.execute(
                        f"INSERT INTO {name} ({seed.columns}) SELECT {seed.columns}"
                        f" FROM jsonb_populate_recordset(NULL::{name}, %s::jsonb)".encode(),
                        [seed.rows],
                    )
            self._connection.execute(self._counters.encode(), prepare=True)
        if changed:
            self._state = self._ask(self._sown)

    def drop(self) -> None:
        """Take it away."""
        self._connection.close()
        self._server.drop_database(self.name)


class SharedDatabase:
    """One room at a time for the tests of a process."""

    def __init__(self, server: PostgresServer, template: str, kept: KeptConnections) -> None:
        self._server, self._template, self._kept = server, template, kept
        self._database: ClearedDatabase | None = None
        self._number = 0

    def acquire(self) -> str:
        """The address of a database that is as the template is; no test before had this one."""
        if self._database is None:
            self._database = ClearedDatabase(self._server, self._template)
        self._number += 1
        name = f"fallback_application_name=use{self._number}"
        self._kept.url = f"{self._server.url(self._database.name)}&{name}"
        return self._kept.url

    def release(self) -> None:
        """Clear it, or take it away if that can not be done."""
        assert self._database is not None
        url, self._kept.url = self._kept.url, ""
        self._kept.former.add(url)
        if not self._database.cleared(self._kept):
            self.close()

    def close(self) -> None:
        """Take away what there is."""
        self._kept.close()
        if self._database is not None:
            self._database.drop()
            self._database = None
