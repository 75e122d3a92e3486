"""Writes about several tasks that travel together: one statement for all of a kind.

A statement costs PostgreSQL more than the row that it writes, for it reads every CHECK anew. Rows,
events and triggers are the same as one by one, and nothing is read that was not written before.
"""

from __future__ import annotations

from typing import Any

from truegreen.errors import Stale
from truegreen.record.ledger.inputs import to_json
from truegreen.record.store import Hit, Row, Tx

_MANY = {"insert_event": "insert_events", "write_task": "write_tasks", "end_run": "end_runs"}
"""Each before what follows from it."""
_AFTERWARDS = ("write_agent", "settle_inside", "open_inbox_item", "count_call")
"""Writes that nothing is read of in between."""
_ASIDE = ("topic_put_off",)
"""Reads of what none of these writes changes."""


class Gathered:
    """A transaction whose writes wait for each other."""

    def __init__(self, tx: Tx, demanded: dict[int, Row]) -> None:
        """`demanded` is who does each of the tasks."""
        self._tx, self._demanded = tx, demanded
        self._rows: dict[str, list[dict[str, Any]]] = {query: [] for query in _MANY}
        self._freed: list[int] = []
        self._later: list[tuple[str, dict[str, Any]]] = []
        self.now, self.lease_now, self.boot = tx.now, tx.lease_now, tx.boot
        self.events = tx.events
        self.hints = tx.hints

    def one(self, query: str, /, **values: Any) -> Row | None:
        """The first row of a named query."""
        if query == "demanded":
            return self._demanded.get(values["task_key"])
        return self._settled(query).one(query, **values)

    def all(self, query: str, /, **values: Any) -> list[Row]:
        """Every row of a named query."""
        return self._settled(query).all(query, **values)

    def run(self, query: str, /, **values: Any) -> None:
        """A named write, sooner or later."""
        if query == "drop_lease":
            self._freed.append(values["run_key"])
        elif query in _AFTERWARDS:
            self._later.append((query, values))
        elif query in _MANY and values.get("task_key") is not None:
            self._rows[query].append(values)
        else:
            self._settled(query).run(query, **values)

    def hit(self, query: str, /, **values: Any) -> Hit:
        """A guarded write; of one that waits, no row is known."""
        if query not in _MANY:
            return self._settled(query).hit(query, **values)
        self._rows[query].append(values)
        return Hit()

    def flush(self) -> None:
        """Write what waits."""
        for query, many in _MANY.items():
            rows, self._rows[query] = self._rows[query], []
            if rows and len(self._tx.all(many, rows=to_json(list(map(_plain, rows))))) < len(rows):
                message = f"{many} met fewer rows than {len(rows)}: what it names is no longer true"
                raise Stale(message, query=many)
        if self._freed:
            self._tx.run("drop_leases", keys=to_json(self._freed))
        for query, values in self._later:
            self._tx.run(query, **values)
        self._freed, self._later = [], []
        self._tx.hints = self._tx.hints or self.hints

    def _settled(self, query: str) -> Tx:
        if query not in _ASIDE:
            self.flush()
        return self._tx


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """As JSON has it: a hash in hexadecimal digits."""
    return {name: each.hex() if isinstance(each, bytes) else each for name, each in values.items()}
