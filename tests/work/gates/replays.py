"""Gates that passed once, recorded at the door of the process room and asked again with one fault.

All but the processes is real: rooms, copies, mutants, reports and judgements. The names that a gate
draws anew each time are written into what was recorded.
"""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from tests.work.gates.python_tests.suites import TESTS
from truegreen.contract import Gate, GateKind
from truegreen.facts import Finding
from truegreen.work import process, verify
from truegreen.work.gates.rooms import Site
from truegreen.work.process import Done, Ended, Launch, Output
from truegreen.work.workspace import mirror

SESSION, CONTROL = "session", "control"
_NAMES = re.compile(rb"(?:class |def )(\w+)\(")
_MAKING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
Tick = Callable[[], str | None] | None


class Take(NamedTuple):
    """How one process ended, what it wrote, and the names that were drawn for it."""

    ended: Ended
    report: bytes = b""
    names: tuple[bytes, ...] = ()


class Fault:
    """Nothing goes wrong; a subclass says what does. `hit` tells that it came to pass."""

    hit = False

    def __repr__(self) -> str:
        return f"{type(self).__name__} {vars(self)}"

    def tick(self) -> str | None:
        """As the supervisor's tick."""
        return None

    def end(self, role: str, ended: Ended, tick: Tick) -> Ended:  # noqa: ARG002 - for others
        """How the process ended."""
        return ended

    def write(self, role: str, place: str, data: bytes) -> None:  # noqa: ARG002 - for others
        """The report of the process."""
        put(place, data)

    def touch(self, what: str) -> None:
        """Before the gate makes or reads a file; OSError says that it can't."""

    def git(self, done: Done) -> Done:
        """What git answered."""
        return done


class Replay(NamedTuple):
    """A gate, what it is asked about, and what its processes did when it passed."""

    name: str
    gate: Gate
    site: Site
    pinned: dict[str, Any]
    takes: dict[str, Take]

    @property
    def reports(self) -> dict[str, bytes]:
        """What was written by whom, where it is read."""
        return {role: take.report for role, take in self.takes.items() if take.report}

    def ask(self, fault: Fault) -> Finding:
        """The gate once more, with this fault."""
        site = replace(self.site, tick=fault.tick)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(process, "run", self._played(fault))
            patch.setattr(mirror, "tool", _answering(fault))
            with touching(patch, fault):
                return verify.check_gate(self.gate, site, pinned=self.pinned)

    def _played(self, fault: Fault) -> Callable[..., Ended]:
        def run(launch: Launch, *, tick: Tick = None) -> Ended:
            role = role_of(launch)
            take = self.takes[role]
            place = report_of(launch, self.gate)
            if place:
                fault.write(role, place, _renamed(take, names_in(launch, place)))
            return fault.end(role, take.ended, tick)

        return run


def recorded(
    name: str, gate: Gate, site: Site, pinned: dict[str, Any] | None = None
) -> tuple[Replay, Finding]:
    """The gate for once with its real processes."""
    real, takes = process.run, dict[str, Take]()

    def run(launch: Launch, *, tick: Tick = None) -> Ended:
        place = report_of(launch, gate)
        ended = real(launch, tick=tick)
        report = b""
        if place:
            with open(place, "rb") as file:
                report = file.read()
        takes[role_of(launch)] = Take(ended, report, names_in(launch, place))
        return ended

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "run", run)
        found = verify.check_gate(gate, site, pinned=pinned or {})
    return Replay(name, gate, site, pinned or {}, takes), found


# --- what a launch is for


def spec_of(launch: Launch) -> dict[str, Any] | None:
    """What a session of pytest is told; None for other programs."""
    is_session = launch.stdin_bytes.startswith(b'{"args"')
    return msgspec.json.decode(launch.stdin_bytes) if is_session else None


def role_of(launch: Launch) -> str:
    """Which of a gate's processes it is: cases differ by what they are given, sessions by tests.

    Only the copy of the tests tells a session from its control.
    """
    spec = spec_of(launch)
    if spec is None:
        return launch.stdin_bytes.decode()
    with _fdopen(os.path.join(_outside(launch, f"{spec['tree']}/tests"), "test_core.py")) as file:
        return SESSION if file.read() == TESTS else CONTROL


def report_of(launch: Launch, gate: Gate) -> str:
    """Where the gate will look for a report, on our side of a jail; empty if nowhere."""
    if gate.kind is GateKind.JUNIT:
        return launch.env["REPORT"]
    if gate.kind in (GateKind.TAP, GateKind.HELD_OUT):
        return launch.stdout_path
    spec = spec_of(launch)
    if spec is None:
        return ""
    word = next(word for word in spec["args"] if word.startswith("--junitxml="))
    return _outside(launch, word.partition("=")[2])


def _outside(launch: Launch, path: str) -> str:
    """A path in a folder that a jail shows, on our side of it."""
    folder, name = os.path.split(path)
    shown = (each.source for each in launch.jail.placed if each.at == folder)
    return os.path.join(next(shown, folder), name)


def names_in(launch: Launch, place: str) -> tuple[bytes, ...]:
    """What nobody could know: the canary's file, its class and its tests."""
    spec = spec_of(launch)
    if not spec or not spec["canary"]:
        return ()
    name = os.path.basename(spec["canary"])
    with _fdopen(os.path.join(os.path.dirname(place), name), "rb") as file:
        return (name.removesuffix(".py").encode(), *_NAMES.findall(file.read()))


def _renamed(take: Take, names: tuple[bytes, ...]) -> bytes:
    data = take.report
    for old, new in zip(take.names, names, strict=True):
        data = data.replace(old, new)
    return data


# --- the other doors


_put_open = os.open


def put(place: str, data: bytes) -> None:
    """Write a file past all faults, whatever is there."""
    clear(place)
    handle = _put_open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with _fdopen(handle, "wb") as file:
        file.write(data)


def clear(place: str) -> None:
    """Nothing is there any more; a process opens its output anew."""
    if os.path.isdir(place) and not os.path.islink(place):
        os.rmdir(place)
    elif os.path.lexists(place):
        os.unlink(place)


_fdopen = builtins.open
_answers: dict[tuple[str, ...], Done] = {}


def _answering(fault: Fault) -> Callable[..., Done]:
    """Git's answers about trees that nobody changes any more: the real ones, asked once."""

    def tool(argv: list[str], *, cwd: str, **more: Any) -> Done:
        key = (cwd, *argv)
        if key not in _answers:
            _answers[key] = process.tool(argv, cwd=cwd, **more)
        return fault.git(_answers[key])

    return tool


@contextmanager
def touching(patch: pytest.MonkeyPatch, fault: Fault) -> Iterator[None]:
    """Tell a fault before any file is made or read."""
    opens, makes, writes, changes = os.open, os.mkdir, os.write, os.chmod

    def open_(path: Any, flags: int, *more: Any, **others: Any) -> int:
        fault.touch("make" if flags & _MAKING else "read")
        return opens(path, flags, *more, **others)

    def mkdir(path: Any, *more: Any, **others: Any) -> None:
        # What is there already can't be made, and nobody minds.
        if others.get("dir_fd") is not None or not os.path.lexists(path):
            fault.touch("make")
        makes(path, *more, **others)

    def write(handle: int, data: Any) -> int:
        fault.touch("make")
        return writes(handle, data)

    def chmod(*words: Any, **others: Any) -> None:
        fault.touch("make")
        changes(*words, **others)

    def file(path: Any, mode: str = "r", *more: Any, **others: Any) -> Any:
        fault.touch("read" if mode.startswith("r") else "make")
        return _fdopen(path, mode, *more, **others)

    for name, door in (("open", open_), ("mkdir", mkdir), ("write", write), ("chmod", chmod)):
        patch.setattr(os, name, door)
    patch.setattr(builtins, "open", file)
    yield


def output(text: bytes) -> Output:
    """A finished stream of these words."""
    return Output(size=len(text), stored=len(text), head=text, tail=text)
