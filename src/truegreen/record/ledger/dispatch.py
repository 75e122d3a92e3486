"""Verbs about what is to be carried out next, and who is about to.

A reservation is a courtesy between supervisors: it keeps them from preparing the same task at once.
What counts is the start of the run, which looks at everything again in its own transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from truegreen.contract import checked
from truegreen.facts import SYSTEM, Actor
from truegreen.record.ledger.desk import Desk
from truegreen.record.ledger.inputs import microseconds
from truegreen.record.ledger.reads import bounded
from truegreen.record.store import Tx

RESERVED_SECONDS = 3600.0


class Due(NamedTuple):
    """A task that could start now, as it was seen; `chain` is the task that a review is about."""

    task: str
    revision: int
    chain: str | None


class Dispatch(Desk):
    """The queue, as those see it who carry it out."""

    def dispatchable(self, *, limit: int = 100) -> list[Due]:
        """Queued tasks that could start now and that nobody is about to, most urgent first."""
        with self._store.snapshot() as tx:
            rows = tx.all("dispatchable", now=tx.now, n=bounded(limit))
        return [Due(*row) for row in rows]

    def reserve(
        self,
        task_id: str,
        holder: str,
        *,
        seconds: float = RESERVED_SECONDS,
        take: bool = False,
        actor: Actor = SYSTEM,
    ) -> bool:
        """Say who is about to carry a task out; `take` does so whoever else has said it."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], bool]:
            done = self._reserve(tx, task_id, holder, seconds=seconds, take=take)
            return lambda: done

        return self._do(act)

    @staticmethod
    def _reserve(
        tx: Tx, task_id: str, holder: str, *, seconds: float = RESERVED_SECONDS, take: bool = True
    ) -> bool:
        row = tx.one(
            "reserve_task",
            task=task_id,
            holder=checked(holder, "holder", 200),
            expires_at=tx.now + microseconds(seconds),
            take=int(take),
            now=tx.now,
        )
        return row is not None

    def release(self, task_id: str, holder: str, *, actor: Actor = SYSTEM) -> None:
        """Whoever was about to carry a task out is not any more."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], None]:
            tx.run("release_task", task=task_id, holder=holder)
            return lambda: None

        self._do(act)

    def reservations(self, host: str) -> list[tuple[str, str]]:
        """Tasks that processes of one machine are about to carry out, each with its holder."""
        with self._store.snapshot() as tx:
            return [(row[0], row[1]) for row in tx.all("reservations_of_holders", host=host)]
