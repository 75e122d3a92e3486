"""Drives a real client the way the product does: its adapter, its environment, its process runner.

Only the model is not real. A test says what the model answers and when somebody interferes; what it
gets back is what the host saw, how the adapter reads it, and what the model was asked.
"""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tests.realclient.endpoint import Endpoint, Step
from truegreen.contract import Caps, Isolation
from truegreen.facts import Exit
from truegreen.model import ExitDetail, ExitReason
from truegreen.work.agents import ADAPTERS, Ending, Live, Reader, Reading
from truegreen.work.environment import agent_environment
from truegreen.work.exits import Declared, exit_of
from truegreen.work.jail import Profile
from truegreen.work.process import Ended, Launch, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.realclient.clients import Client

GOAL = "write hello into out.txt"
# A run takes one to three seconds; a machine under load may need much longer.
PATIENCE_S = 30.0
# Ten lines a second, for as long as a test can last; no `$(…)`, which Gemini CLI refuses.
ENDLESS = "timeout 60 sh -c 'while sleep 0.1; do echo on >> grows.txt; done'"

SETTLED_S = 0.5


class Scene(NamedTuple):
    """What somebody who watches a run can see of it."""

    client: Client
    workspace: Path
    endpoint: Endpoint
    reader: Reader
    tag: str

    @property
    def live(self) -> Live:
        """How far the client says it has come."""
        return self.reader.live

    def has(self, name: str) -> bool:
        """Whether a file with content lies in the workspace."""
        path = self.workspace / name
        return path.exists() and path.stat().st_size > 0


class Drive(NamedTuple):
    """A run that is over."""

    ended: Ended
    reading: Reading
    exit: Exit
    live: Live
    endpoint: Endpoint
    workspace: Path
    tag: str
    stdout: Path

    @property
    def why(self) -> tuple[ExitReason, ExitDetail]:
        """As the record would hold it."""
        return self.exit.reason, self.exit.detail

    @property
    def events(self) -> list[dict[str, Any]]:
        """What the client printed."""
        return [json.loads(line) for line in self.stdout.read_text().splitlines()]

    def kinds(self, word: str) -> list[dict[str, Any]]:
        """The events of one type."""
        return [event for event in self.events if event["type"] == word]


def drive(
    client: Client,
    folder: Path,
    script: Sequence[Step],
    *,
    flags: Sequence[str] | None = None,
    files: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    connectors: tuple[str, ...] = (),
    isolation: Isolation = Isolation.AUTO,
    watch: Callable[[Scene], str | None] = lambda _: None,
    time_s: float = PATIENCE_S,
) -> Drive:
    """Run a client to its end against a script, under the real runner."""
    adapter = ADAPTERS[client.name]
    command = (*client.command, *(client.free if flags is None else flags))
    argv = adapter.argv(command, goal=GOAL)
    expects = adapter.expects(argv)
    reader = adapter.reader(
        msgspec.structs.replace(expects, connectors=(*expects.connectors, *connectors))
    )
    workspace, home = folder / "workspace", folder / "home"
    workspace.mkdir()
    tag = f"run-{uuid.uuid4().hex}"
    with Endpoint(script) as endpoint:
        scene = Scene(client, workspace, endpoint, reader, tag)
        environ = client.surroundings(str(home), endpoint.url, files or {})
        env, secrets = agent_environment(
            {**environ, **(environment or {})}, adapter.passes, adapter.env()
        )
        launch = Launch(
            argv=tuple(argv),
            cwd=str(workspace),
            env=env,
            isolation=isolation,
            jail=Profile(),
            tag=tag,
            stdout_path=str(folder / "stdout"),
            stderr_path=str(folder / "stderr"),
            secrets=secrets,
            time_s=time_s,
        )
        ended = run(launch, line=reader.feed, tick=lambda: watch(scene), tick_s=0.05)
    reading = reader.read(
        Ending(
            code=ended.code,
            signal=ended.signal,
            stopped=ended.stopped,
            stderr=ended.stderr.tail,
            survivors=len(ended.survivors),
            swept=len(ended.swept),
        )
    )
    seen = exit_of(ended, reading, Declared(claim=reading.claim), Caps())
    return Drive(ended, reading, seen, reader.live, endpoint, workspace, tag, folder / "stdout")


def carriers(tag: str) -> dict[int, str]:
    """Every live process that was started in a run: its id and its program."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                if tag.encode() in environ.read():
                    found[int(pid)] = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue  # it ended while it was looked at
    return found


class Send:
    """Somebody who sends the client itself a signal, once a file of its tool is there."""

    def __init__(self, number: signal.Signals, name: str) -> None:
        self.number, self.name, self.sent = number, name, False

    def __call__(self, scene: Scene) -> str | None:
        if not self.sent and scene.has(self.name):
            self.sent = True
            program = os.path.realpath(scene.client.package.path)
            (pid,) = (pid for pid, exe in carriers(scene.tag).items() if exe == program)
            os.kill(pid, self.number)
        return None


def is_still(path: Path) -> bool:
    """Whether nobody writes to a file any more that was written to ten times a second."""
    size = path.stat().st_size
    time.sleep(SETTLED_S)
    return path.stat().st_size == size
