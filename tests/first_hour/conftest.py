"""Somebody's first hour: a home with nothing in it, Python and git on the PATH, and a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import struct
import sys
import termios
from pathlib import Path

import pytest

from tests.faces.conftest import ESCAPES, Answer
from tests.forking import SCRIPT, Forge, settings

ON_PATH = ("python3", "git", "sh", "true", "false", "grep")
"""What every machine has, and git; no bubblewrap, no agent, no pytest."""


class Newcomer:
    """A person who has just installed truegreen."""

    def __init__(self, room: Path, forge: Forge) -> None:
        self.home, self.project, self.bin = room / "hour", room / "project", room / "bin"
        for folder in (self.home, self.project, self.bin):
            folder.mkdir()
        self._forge = forge
        self.has("truegreen", SCRIPT)
        for name in ON_PATH:
            self.has(name, Path(shutil.which(name) or sys.executable))

    def has(self, name: str, program: Path) -> None:
        """Put a program on the PATH."""
        (self.bin / name).symlink_to(program)

    def environ(self, **changes: str) -> dict[str, str]:
        """Nothing is set but what a login sets."""
        plain = {"HOME": str(self.home), "PATH": str(self.bin), "TERM": "xterm-256color"}
        return {**settings(os.environ), **plain, **changes}

    def types(self, *words: str, **changes: str) -> Answer:
        """A command to its end; never a traceback."""
        done = self._forge.run(words, self.environ(**changes), self.project, 50)
        answer = Answer(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in answer.out + answer.err
        return answer

    def on_terminal(self, *words: str, **changes: str) -> Answer:
        """The same on a terminal; what it shows, without colours."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        done = self._forge.run(
            words, self.environ(COLUMNS="160", **changes), self.project, 600, (ours, theirs)
        )
        shown = ESCAPES.sub("", done.stdout.decode().replace("\r\n", "\n"))
        return Answer(done.returncode, shown, done.stderr.decode())


@pytest.fixture
def newcomer(
    tmp_path: Path, forge: Forge, shared_tools: Path, monkeypatch: pytest.MonkeyPatch
) -> Newcomer:
    """A newcomer; what is copied once per machine is copied already."""
    made = Newcomer(tmp_path, forge)
    state = made.home / ".local" / "state" / "truegreen"
    state.mkdir(mode=0o700, parents=True)
    (state / "tools").symlink_to(shared_tools)
    return made
