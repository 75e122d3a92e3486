"""Verbs about who offers seats: people see the fleet, and nothing hangs on it.

Who owns a run is a lease's business. A worker that is not listed may work all the same, and one
that is listed may be dead: how long ago it was seen is all that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from truegreen.contract import checked
from truegreen.enums import StrEnum
from truegreen.facts import SYSTEM, Actor
from truegreen.record.ledger.desk import Desk
from truegreen.record.ledger.inputs import to_json
from truegreen.record.ledger.reads import bounded
from truegreen.record.rows import Worker, read
from truegreen.record.store import Tx
from truegreen.tuples import NamedTuple

SEEN_SECONDS = 10.0
"""How often a worker says that it is there."""
STALE_SECONDS = 45.0
_FORGOTTEN_SECONDS = 24 * 3600.0


class WorkerState(StrEnum):
    """How a worker stands, as far as it was heard of."""

    READY = "ready"
    DRAINING = "draining"
    STALE = "stale"


class Listed(NamedTuple):
    """A worker as it is seen now."""

    worker: Worker
    state: WorkerState
    silent_seconds: float

    @property
    def labels(self) -> tuple[str, ...]:
        """What it offers."""
        return msgspec.json.decode(self.worker.labels, type=tuple[str, ...])


class Depth(NamedTuple):
    """How much waits, and since when the oldest that could start."""

    queued: int
    oldest_at: int | None


class Workers(Desk):
    """The fleet."""

    def enlist(
        self,
        holder: str,
        name: str,
        *,
        labels: Iterable[str] = (),
        seats: int = 1,
        version: str = "",
        busy: int = 0,
        draining: bool = False,
        actor: Actor = SYSTEM,
    ) -> None:
        """Say that somebody offers seats; said again and again, it is a sign of life."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], None]:
            tx.run("forget_workers", before=tx.now - int(_FORGOTTEN_SECONDS * 1e6))
            tx.run(
                "enlist_worker",
                name=checked(name, "name", 200),
                holder=checked(holder, "holder", 200),
                labels=to_json(sorted(labels)),
                seats=seats,
                version=version,
                busy=busy,
                draining=int(draining),
                now=tx.now,
            )
            return lambda: None

        self._do(act)

    def dismiss(self, holder: str, *, actor: Actor = SYSTEM) -> None:
        """Somebody offers no seats any more."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], None]:
            tx.run("dismiss_worker", holder=holder)
            return lambda: None

        self._do(act)

    def workers(self, *, limit: int = 1000) -> list[Listed]:
        """Who offers seats, and how long ago each was heard of."""
        with self._store.snapshot() as tx:
            found = [read(Worker, row) for row in tx.all("workers", n=bounded(limit))]
            return [_listed(each, tx.now) for each in found]

    def release_silent(self, *, actor: Actor = SYSTEM) -> int:
        """Free what workers were about to carry out that fell silent; a courtesy is not for ever.

        Says how many. Runs that have begun are not touched: these have leases.
        """
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], int]:
            before = tx.now - int(STALE_SECONDS * 1e6)
            freed = len(tx.all("release_silent", before=before))
            return lambda: freed

        return self._do(act)

    def depth(self) -> Depth:
        """How much is queued."""
        with self._store.snapshot() as tx:
            return Depth(*(tx.one("queue_depth", now=tx.now) or (0, None)))


def _listed(worker: Worker, now: int) -> Listed:
    silent = max(0.0, (now - worker.seen_at) / 1e6)
    state = WorkerState.DRAINING if worker.draining else WorkerState.READY
    return Listed(worker, WorkerState.STALE if silent > STALE_SECONDS else state, silent)
