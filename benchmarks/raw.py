"""Three ways to write rows without the ledger: SQLite, PostgreSQL pipelined, PostgreSQL as one CTE.

Each lends a transaction that takes named statements of queries.sql. They use the store's own
connection, so that pragmas and prepared statements are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.lives import Execute, RawLife
from truegreen.record import migrate
from truegreen.record.sqlite import SqliteStore

if TYPE_CHECKING:
    import psycopg

_PARAMETER = re.compile(r"%\((\w+)\)s")
_ANCHOR = re.compile(r"%\((?:task_key|run_key|key)\)s")
_OF_THE_RUN = "(SELECT key FROM runs WHERE id = %(run)s)"


@contextmanager
def raw_sqlite(url: str) -> Iterator[RawLife]:
    """BEGIN IMMEDIATE, the statements, COMMIT."""
    store = SqliteStore(url)
    migrate.ensure(store)
    connection = store._connect()  # noqa: SLF001 - the very same settings
    queries = store.queries

    def execute(query: str, /, **values: Any) -> object:
        return connection.execute(queries[query], values).fetchall()

    @contextmanager
    def transaction() -> Iterator[Execute]:
        connection.execute("BEGIN IMMEDIATE")
        yield execute
        connection.execute("COMMIT")

    yield RawLife(transaction)
    connection.close()
    store.close()


@contextmanager
def _connected(url: str) -> Iterator[tuple[psycopg.Connection, dict[str, str]]]:
    from truegreen.record.postgres import PostgresStore  # noqa: PLC0415 - an extra

    store = PostgresStore(url)
    migrate.ensure(store)
    with store._connect() as connection:  # noqa: SLF001 - the very same settings
        yield connection, store.queries
    store.close()


@contextmanager
def raw_pipelined(url: str) -> Iterator[RawLife]:
    """BEGIN, the statements and COMMIT in one pipeline: one round trip per transition."""
    with _connected(url) as (connection, queries):

        def execute(query: str, /, **values: object) -> object:
            return connection.execute(queries[query].encode(), values)

        @contextmanager
        def transaction() -> Iterator[Execute]:
            with connection.pipeline():
                connection.execute("BEGIN")
                yield execute
                connection.execute("COMMIT")

        yield RawLife(transaction)


_TABLE = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)")
_KEYS = {"leases": "run_key", "demands": "task_key"}
"""What rows are known by that have no key of their own."""


def as_one(statements: list[str]) -> str:
    """One data-modifying CTE, in which each statement waits for the one before it."""
    parts = []
    for number, statement in enumerate(statements):
        bare = statement.split("RETURNING")[0].strip()
        if number:
            before = f"w{number - 1}"
            if _OF_THE_RUN in bare:  # a row of the same statement can't be looked up
                bare = bare.replace(_OF_THE_RUN, f"(SELECT key FROM {before})")
            else:
                bare = _ANCHOR.sub(rf"(SELECT \g<0>::bigint FROM {before})", bare, count=1)
        table = _TABLE.match(bare)
        key = _KEYS.get(table[1], "key") if table else "key"
        own = _PARAMETER.sub(rf"%(p{number}_\1)s", bare)
        parts.append(f"w{number} AS ({own} RETURNING {key})")
    return f"WITH {', '.join(parts)} SELECT 1 FROM w{len(statements) - 1}"


@contextmanager
def raw_cte(url: str) -> Iterator[RawLife]:
    """Every transition one statement in autocommit: one round trip, one parse, one plan."""
    composed: dict[tuple[str, ...], bytes] = {}
    with _connected(url) as (connection, queries):

        @contextmanager
        def transaction() -> Iterator[Execute]:
            names: list[str] = []
            given: dict[str, Any] = {}

            def execute(query: str, /, **values: object) -> object:
                given.update({f"p{len(names)}_{name}": value for name, value in values.items()})
                names.append(query)
                return None

            yield execute
            text = composed.get(tuple(names))
            if text is None:
                text = as_one([queries[name] for name in names]).encode()
                composed[tuple(names)] = text
            rows = connection.execute(text, given).fetchall()
            assert len(rows) == 1, names

        yield RawLife(transaction)
