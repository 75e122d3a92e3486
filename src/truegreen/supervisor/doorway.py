"""The doors of one run: open while its agent is there, and what the agent gets to come through them.

Which doors there are is settled here; what each lets through is said by the door itself.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from truegreen.doors.run_door import RunDoor
from truegreen.facts import Usage
from truegreen.supervisor.errand import Errand
from truegreen.supervisor.place import RunPlace


class Doorway:
    """Opens the doors of a run and closes them all."""

    def __init__(self, errand: Errand, files: RunPlace) -> None:
        prepared = errand.prepared
        self._door = RunDoor(
            errand.ledger,
            errand.ticket,
            files.door,
            patience=prepared.contract.approval_within,
            digest=lambda: prepared.workspace.digest(base=prepared.base),
            tell=errand.watch.warn,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._door.close()

    def dressed(
        self, argv: tuple[str, ...], env: dict[str, str]
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The command and the environment of an agent that is to come through these doors."""
        return argv, env

    @property
    def spent(self) -> Usage | None:
        """What the agent has used, where a door counts it; else only the client's word is known."""
        return None

    @property
    def facts(self) -> dict[str, Any]:
        """What was seen at the doors, for the record of the run."""
        return {}
