"""The doors of one run: open while its agent is there, and what it gets to come through them.

Which doors there are is settled here; what each lets through is said by the door itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from truegreen.doors.hooking import Gone
from truegreen.doors.run_door import RunDoor
from truegreen.doors.store_room import shelves
from truegreen.facts import Usage
from truegreen.supervisor.errand import Errand
from truegreen.supervisor.hooked import Hooked
from truegreen.supervisor.place import RunPlace

if TYPE_CHECKING:
    from truegreen.supervisor.metered import Metered


class Doorway:
    """Opens the doors of a run and closes them all."""

    def __init__(
        self, errand: Errand, files: RunPlace, secret: str, at_stop: Callable[[Gone], str]
    ) -> None:
        """`secret` is the token of the run's agent; `at_stop` says what it is sent back with."""
        prepared = errand.prepared
        self._hooked = Hooked(errand, files, secret)
        with ExitStack() as doors:
            door = RunDoor(
                errand.ledger,
                errand.ticket,
                files.door,
                patience=prepared.contract.approval_within,
                digest=lambda: prepared.workspace.digest(base=prepared.base),
                tell=errand.watch.warn,
                behind=self._hooked.behind(at_stop),
                artifacts=shelves(errand.place.state_dir),
            )
            doors.callback(door.close)
            self._hooking = door.hooking
            if post := self._hooked.post(door.hooked):
                doors.callback(post.close)
            self.gateway = _metered(errand, secret) if prepared.contract.gateway.enabled else None
            if self.gateway:
                doors.callback(self.gateway.close)
            self._doors = doors.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._doors.close()

    def dressed(
        self, argv: tuple[str, ...], env: dict[str, str]
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The command and the environment of an agent that is to come through these doors."""
        argv, env = self._hooked.dressed(argv, env)
        return self.gateway.dressed(argv, env) if self.gateway else (argv, env)

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """What must not show in the agent's output, because a door knows it."""
        return (*self._hooked.secrets, *(self.gateway.secrets if self.gateway else ()))

    @property
    def checking(self) -> bool:
        """Whether the agent waits while its work is looked at."""
        return self._hooking.checking > 0

    def spent(self, told: Usage) -> Usage:
        """What the agent has used: as a door counts it, else as its client told."""
        return self.gateway.spent(told) if self.gateway else told

    def facts(self, told: Usage) -> dict[str, Any]:
        """What was seen at the doors, for the record of the run."""
        seen = self._hooked.facts(self._hooking.heard, worked=told.turns > 0)
        return {**seen, **(self.gateway.facts(told) if self.gateway else {})}


def _metered(errand: Errand, secret: str) -> Metered:
    from truegreen.supervisor.metered import Metered  # noqa: PLC0415 - few agents think through it

    return Metered(errand, secret)
