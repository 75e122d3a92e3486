"""A user's own SQLite, in a process of its own: the standard library's, whatever version it has.

Two SQLite libraries in one process would drop each other's file locks, so the tests talk to this
one over a pipe: a JSON line in (which client; a file to open, or statements that are kept or not,
or nothing more, which closes it), one out (rows or an error).
"""

from __future__ import annotations

import json
import sqlite3
import sys
from typing import Any


def shown(value: Any) -> Any:
    """A value as JSON; a blob as hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else value


def answer(connection: sqlite3.Connection, statements: list[str], *, keep: bool) -> dict[str, Any]:
    """Run statements in one transaction; keep it or roll it back."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        rows: list[Any] = []
        for statement in statements:
            rows = connection.execute(statement).fetchall()
        connection.execute("COMMIT" if keep else "ROLLBACK")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return {"error": str(error)}
    return {"rows": [[shown(value) for value in row] for row in rows]}


if __name__ == "__main__":
    clients: dict[str, sqlite3.Connection] = {}
    for line in sys.stdin:
        order = json.loads(line)
        name = order["client"]
        if "open" in order:
            clients[name] = sqlite3.connect(order["open"], isolation_level=None, timeout=10)
            said: dict[str, Any] = {}
        elif "sql" in order:
            said = answer(clients[name], order["sql"], keep=order["keep"])
        else:
            clients.pop(name).close()
            said = {}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
