"""Where the demo is played: a store and workspaces of its own, and the real supervisor.

A scene's task is opened, carried out and judged like any other; here it is only read
afterwards. Nothing is written into the record by hand.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from os import path as paths

import msgspec

from truegreen.app import ledger_of, place_of
from truegreen.config import Config
from truegreen.contract import Budget, Caps, ConfigFile, Contract, parse_duration
from truegreen.errors import FolderInUse, InvalidInput
from truegreen.faces.demo.nights import Night
from truegreen.faces.demo.scenes import Expected, Scene
from truegreen.faces.documents import claim_of
from truegreen.facts import Actor
from truegreen.model import Light, Move, Role, TaskStatus
from truegreen.record.folders import folder_key
from truegreen.record.ledger import Dossier, Ledger
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.holder import node
from truegreen.supervisor.watch import Watch
from truegreen.tuples import NamedTuple

PLAYER = paths.join(paths.dirname(paths.abspath(__file__)), "player.py")
PLAYWRIGHT = Actor(Role.SYSTEM, "demo")
"""Who opens what is only played."""
_CONTRADICTED = "contradicted"
_LOOK_SECONDS = 0.02
_REPOSITORY = {
    ".git/HEAD": "ref: refs/heads/main\n",
    ".git/objects/info/alternates": "",
    ".git/refs/heads/.keep": "",
}
"""An empty repository: without one, a workspace kept inside a repository would belong to it."""


class Played(NamedTuple):
    """A scene that was played, and what the record says about it."""

    scene: Scene
    dossier: Dossier
    asked: str
    """What it wanted an approval for, if it did."""
    overstepped: bool
    refused: str
    """Which task worked in its folder, so that it had to wait."""
    seconds: float

    @property
    def got(self) -> tuple[object, ...]:
        """How it ended, in the order of `Expected`."""
        task, runs = self.dossier.task, self.dossier.runs
        return (
            task.run_status,
            task.exit_reason,
            task.exit_detail,
            task.status,
            task.cell,
            len(runs),
            task.rescued,
            len(self.contradictions),
            self.overstepped,
            bool(self.refused),
        )

    @property
    def as_expected(self) -> bool:
        """Whether it ended as it must."""
        return self.got == tuple(self.scene.expected)

    @property
    def differences(self) -> dict[str, tuple[object, object]]:
        """What was expected and what came, where they differ."""
        pairs = zip(Expected._fields, self.scene.expected, self.got, strict=True)
        return {name: (wanted, came) for name, wanted, came in pairs if wanted != came}

    @property
    def title(self) -> str:
        """What its task is called."""
        return self.dossier.task.title

    @property
    def exit_code(self) -> int | None:
        """What the client's process said at the very end; none if it was ended by us."""
        return self.dossier.runs[-1].exit_code if self.dossier.runs else None

    @property
    def message(self) -> str:
        """What was said about the end of its latest run."""
        run = self.dossier.runs[-1] if self.dossier.runs else None
        facts = msgspec.json.decode(run.facts) if run and run.facts else {}
        return str(facts.get("message") or self.asked)

    @property
    def light(self) -> Light:
        """What exit codes alone show."""
        if self.exit_code is None:
            return Light.GREY
        return Light.RED if self.exit_code else Light.GREEN

    @property
    def is_done(self) -> bool:
        """What the checks say."""
        return self.dossier.task.status is TaskStatus.SUCCEEDED

    @property
    def claim(self) -> str:
        """What the agent said about its work in the end."""
        return self.dossier.claims[-1].reason if self.dossier.claims else ""

    @property
    def contradictions(self) -> list[str]:
        """What it said, beside what was observed, where the two differ."""
        runs = self.dossier.runs
        claim = claim_of(self.dossier, runs[-1] if runs else None)
        return [
            f'claimed "{statement["text"]}", observed {statement["observed"]}'
            for statement in (claim["statements"] if claim else ())
            if statement["outcome"] == _CONTRADICTED
        ]


class Stage:
    """A folder with a store, logs and workspaces in it."""

    def __init__(self, folder: str) -> None:
        state = paths.join(folder, "truegreen")
        os.makedirs(state, mode=0o700)
        self.folder = folder
        self.file = paths.join(state, "truegreen.db")
        self._back = 0
        """By how many microseconds the clock of the store is behind."""
        self.config = Config(
            store=f"sqlite://{self.file}",
            state_dir=state,
            file=None,
            contents=ConfigFile(),
            sources={},
        )

    @contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """The ledger of the demo's own store."""
        ledger = ledger_of(self.config, self._clock)
        try:
            yield ledger
        finally:
            ledger.close()

    def _clock(self) -> int:
        return time.time_ns() // 1000 - self._back

    def supervisor(self, ledger: Ledger, watch: Watch) -> Supervisor:
        """The supervisor that any task has."""
        return Supervisor(ledger, place_of(self.config), watch)

    def play(
        self, scene: Scene, ledger: Ledger, supervisor: Supervisor, night: Night | None = None
    ) -> Played:
        """Open the scene's task, have it carried out, and see what became of it."""
        now, begun = time.time(), time.monotonic()
        place = paths.join(self.folder, "workspaces", night.name if night else scene.name)
        contract = _contract(scene, place, night.title(now) if night else scene.title)
        self._back = int((now - night.begins(now)) * 1e6) if night else 0
        refused = ""
        try:
            with self._neighbour(scene, contract, ledger):
                task = ledger.open(contract, actor=PLAYWRIGHT)
                try:
                    supervisor.carry(task.id, patient=bool(scene.neighbour))
                except FolderInUse as busy:
                    refused = busy.message
                    supervisor.carry(task.id, patient=True, waits=True)
        finally:
            self._back = 0
        blocks = [told.event for told in ledger.events(task.id) if told.event.event == Move.BLOCK]
        forbidden = paths.join(place, scene.forbidden)
        return Played(
            scene,
            ledger.dossier(task.id),
            asked=blocks[-1].reason if blocks else "",
            overstepped=bool(scene.forbidden) and paths.lexists(forbidden),
            refused=refused,
            seconds=time.monotonic() - begun,
        )

    @contextmanager
    def _neighbour(self, scene: Scene, contract: Contract, ledger: Ledger) -> Iterator[None]:
        """Another task at work in the same folder, if the scene has one."""
        if not scene.neighbour:
            yield
            return
        import threading  # noqa: PLC0415 - one scene needs it

        command = (*contract.command, "neighbour")
        terms = msgspec.structs.replace(contract, title=scene.neighbour, command=command)
        other = ledger.open(terms, actor=PLAYWRIGHT)
        supervisor = self.supervisor(ledger, Watch())
        thread = threading.Thread(target=supervisor.carry, args=(other.id,), name="neighbour")
        thread.start()
        folder = folder_key(contract.cwd)
        try:
            while thread.is_alive() and not ledger.in_folder(node(), folder):
                time.sleep(_LOOK_SECONDS)
            yield
        except BaseException:
            supervisor.stop(at_once=True)
            raise
        finally:
            thread.join()


def _contract(scene: Scene, workspace: str, title: str) -> Contract:
    """The scene's task, in a workspace that is made here."""
    for name, text in {**_REPOSITORY, **scene.files}.items():
        path = paths.join(workspace, name)
        os.makedirs(paths.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return Contract(
        title=title,
        goal=scene.goal,
        adapter=scene.adapter,
        command=(sys.executable, PLAYER, scene.name, *scene.words),
        cwd=workspace,
        gates=(scene.gate,),
        budget=Budget(attempts=scene.attempts),
        caps=Caps(time=parse_duration("1m"), idle=parse_duration("1m")),
    )


@contextmanager
def stage(keep: str | None) -> Iterator[Stage]:
    """A stage that is deleted afterwards, or kept in a given folder."""
    if keep is not None:
        yield Stage(_own_folder(keep))
        return
    import tempfile  # noqa: PLC0415 - only here

    with tempfile.TemporaryDirectory(prefix="truegreen-demo-") as folder:
        yield Stage(folder)


def _own_folder(name: str) -> str:
    """An empty folder, made where it does not exist."""
    folder = paths.abspath(name)
    try:
        os.makedirs(folder, exist_ok=True)
        taken = bool(os.listdir(folder))
    except OSError as error:
        raise InvalidInput(f"--keep: {folder}: {error.strerror}", path="keep") from None
    if taken:
        raise InvalidInput(f"--keep: {folder} is not empty", path="keep")
    return folder
