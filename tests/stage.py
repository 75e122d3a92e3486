"""A workspace, a record and a scheduler in one process, and a clock that tests move."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.record.lives import OPERATOR
from truegreen.contract import Budget, Contract, Gate, GateKind, QaTerms
from truegreen.model import ProofMode
from truegreen.record import postgres
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.rows import Task
from truegreen.scheduler import Audience, Carried, Scheduler
from truegreen.supervisor.place import Place

ACTS = "acts.txt"
ACTED = Gate(name="acted", kind=GateKind.RUN, command=("test", "-s", ACTS))
PROGRAM = str(Path(sys.executable).with_name("truegreen"))


class Heard(Audience):
    """An audience that remembers."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.carried: list[Carried] = []

    def said(self, words: str) -> None:
        self.words.append(words)

    def ended(self, carried: Carried) -> None:
        self.carried.append(carried)


class Stage(NamedTuple):
    """Where a test plays."""

    ledger: Ledger
    place: Place
    folder: Path

    @property
    def acts(self) -> list[str]:
        """What agents did, line by line."""
        file = self.folder / ACTS
        return file.read_text().splitlines() if file.exists() else []

    def own(self, name: str) -> str:
        """A folder beside others: tasks of one folder take turns."""
        folder = self.folder / name
        folder.mkdir()
        return str(folder)

    def add(self, command: str = f"echo acted >> {ACTS}", **terms: Any) -> Task:
        """A queued task of a line of shell."""
        given: dict[str, Any] = {
            "title": "work",
            "command": ("sh", "-c", command),
            "cwd": str(self.folder),
            "gates": (ACTED,),
            "qa": QaTerms(roles=()),
            "budget": Budget(attempts=2),
            # What these tests are about is what starts when, and not what a proof is.
            "proof": ProofMode.REGRESSION,
            **terms,
        }
        return self.ledger.open(Contract(**given), actor=OPERATOR)

    def scheduler(self, audience: Audience | None = None, *, seats: int = 2) -> Scheduler:
        """Another scheduler on the same record."""
        return Scheduler(self.ledger, self.place, audience, seats=seats)

    def play(self) -> list[str]:
        """One look of a scheduler that has just been started, to the end; says what it started."""
        scheduler = self.scheduler()
        try:
            return scheduler.tick()
        finally:
            scheduler.close()

    def agent_of(self, task: Task) -> str:
        """The agent that worked at a task last."""
        dossier = self.ledger.dossier(task.id)
        return next(a.id for a in dossier.agents if a.key == dossier.runs[-1].agent_key)


def staged(url: str, tmp_path: Path) -> Stage:
    """A stage on one database; the pinned tools are those of the state directory."""
    folder = tmp_path / "work"
    folder.mkdir()
    state = Path(os.environ["XDG_STATE_HOME"]) / "truegreen"
    place = Place(str(state), (str(state),), os.environ, PROGRAM, str(state / "held"))
    return Stage(open_ledger(url), place, folder)


class Clock:
    """The store's clock, ahead of the real one by as much as a test says."""

    def __init__(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0
        store: Any = ledger.store
        if store.dialect == "sqlite":
            real = store.clock
            monkeypatch.setattr(store, "clock", lambda: real() + self.ahead)
        else:
            self._patch, self._now = monkeypatch, postgres._NOW
        self._dialect = store.dialect

    def minutes(self, number: float) -> None:
        """So many minutes go by."""
        self.ahead += int(number * 60e6)
        if self._dialect != "sqlite":
            self._patch.setattr(postgres, "_NOW", f"{self._now} + {self.ahead}")
