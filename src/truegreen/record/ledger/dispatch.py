"""Verbs about what is to be carried out next, and who is about to.

A reservation is a courtesy between supervisors: it keeps them from preparing the same task at once.
What counts is the start of the run, which looks at everything again in its own transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from truegreen.contract import checked
from truegreen.facts import SYSTEM, Actor
from truegreen.model import TaskStatus
from truegreen.record.ledger.desk import Desk
from truegreen.record.ledger.inputs import microseconds
from truegreen.record.ledger.reads import Need, bounded, unmet
from truegreen.record.rows import Task
from truegreen.record.store import Tx

RESERVED_SECONDS = 3600.0


class Due(NamedTuple):
    """A task that could start now, as it was seen; `chain` is the task that a review is about."""

    task: str
    revision: int
    chain: str | None


class HeldBack(NamedTuple):
    """How many queued tasks could not start now, and when the first of them may."""

    later: int
    first_at: int | None
    needing: int
    """Their time has come; what they depend on has not succeeded."""


class Dispatch(Desk):
    """The queue, as those see it who carry it out."""

    def dispatchable(self, *, limit: int = 100) -> list[Due]:
        """Queued tasks that could start now and that nobody is about to, most urgent first."""
        with self._store.snapshot() as tx:
            rows = tx.all("dispatchable", now=tx.now, n=bounded(limit))
        return [Due(*row) for row in rows]

    def held_back(self) -> HeldBack:
        """Queued tasks whose time has not come, and those that wait for others."""
        with self._store.snapshot() as tx:
            row = tx.one("held_back", now=tx.now)
        return HeldBack(*(row or (0, None, 0)))

    def needs(self, tasks: Iterable[Task]) -> dict[int, list[Need]]:
        """What queued tasks wait for, by their keys."""
        queued = [task for task in tasks if task.status is TaskStatus.QUEUED]
        with self._store.snapshot() as tx:
            found = {task.key: unmet(tx, task) for task in queued}
        return {key: needs for key, needs in found.items() if needs}

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
