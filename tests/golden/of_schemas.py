"""Both schemas as the databases themselves describe them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import apsw

from tests.golden.scratch import Scratch

if TYPE_CHECKING:
    import psycopg

COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
       coalesce(pg_get_expr(d.adbin, d.adrelid), '')
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
CONSTRAINTS = """
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = %s AND contype <> 'n' ORDER BY conname
"""
INDEXES = """
SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %s ORDER BY c.relname
"""
TRIGGERS = """
SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger
WHERE tgrelid = %s AND NOT tgisinternal ORDER BY tgname
"""
RELATIONS = """
SELECT oid, relname, relkind::text FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S')
ORDER BY relname
"""
FUNCTIONS = """
SELECT proname, pg_get_functiondef(oid) FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
ORDER BY proname, pg_get_function_identity_arguments(oid)
"""
KINDS = {"r": "TABLE", "p": "TABLE", "v": "VIEW", "m": "MATERIALIZED VIEW", "S": "SEQUENCE"}


def of_sqlite(scratch: Scratch) -> dict[str, str]:
    """The schema of SQLite: the text of every table, index and trigger."""
    store = scratch.folder / "schema.db"
    assert scratch.tg("migrate", "--store", store).status == 0
    with apsw.Connection(str(store)) as connection:
        rows = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
            " ORDER BY type <> 'table', type, tbl_name, name"
        ).fetchall()
    connection.close()
    return {"schema/sqlite.sql": "\n".join(f"{sql};\n" for (sql,) in rows)}


def of_postgres(url: str) -> dict[str, str]:
    """The schema of PostgreSQL, from its catalogs."""
    import psycopg  # noqa: PLC0415 - an extra; tests without PostgreSQL must load without it

    with psycopg.connect(url) as connection:
        return {
            "schema/postgres.sql": "\n".join([*_relations(connection), *_functions(connection)])
        }


def _relations(connection: psycopg.Connection) -> Iterator[str]:
    for oid, name, kind in connection.execute(RELATIONS).fetchall():
        lines = [f"{KINDS[kind]} {name}"]
        if kind != "S":
            lines += [f"  {line}" for line in _columns(connection, oid)]
        for query in (CONSTRAINTS, INDEXES, TRIGGERS):
            lines += [f"  {what}: {text}" for what, text in connection.execute(query, [oid])]
        yield "".join(f"{line}\n" for line in lines)


def _columns(connection: psycopg.Connection, oid: int) -> Iterator[str]:
    for name, kind, needed, identity, generated, default in connection.execute(COLUMNS, [oid]):
        words = [name, kind, "NOT NULL" if needed else ""]
        words += [
            f"IDENTITY {identity}" if identity else "",
            f"GENERATED {generated}" if generated else "",
        ]
        words.append(f"DEFAULT {default}" if default else "")
        yield " ".join(filter(None, words))


def _functions(connection: psycopg.Connection) -> Iterator[str]:
    for _, text in connection.execute(FUNCTIONS):
        yield f"{text.rstrip()};\n"
