"""The agent's side: what a playing attack can reach, with hands of its own.

Runs inside of the agent's process, with the standard library and nothing of truegreen.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from tests.attacks.shapes import SHAPES

IMPORTABLE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
BACKGROUND_SECONDS = 6


class Work:
    """A workspace with an agent in it."""

    def __init__(self, shape: str) -> None:
        self.root = Path.cwd()
        self.home = Path.home()
        self.shape = SHAPES[shape]
        self.top = self._top()

    def _top(self) -> Path:
        """The top of the repository; the agent may have been put further down."""
        above = [self.root, *self.root.parents]
        return next((folder for folder in above if (folder / ".git").exists()), self.root)

    @property
    def user_site(self) -> Path:
        """Where Python looks for this user's packages."""
        return Path(sysconfig.get_path("purelib", f"{os.name}_user"))

    @property
    def site(self) -> Path:
        """The packages of the tool chain that gates use: in the workspace, or beside it."""
        inside = self.root / ".venv" / IMPORTABLE
        return inside if inside.exists() else self.tools / IMPORTABLE

    @property
    def tools(self) -> Path:
        """The tool chain's folder, as PATH shows it."""
        return next(
            Path(entry).parent
            for entry in os.environ["PATH"].split(os.pathsep)
            if Path(entry, "pytest").exists()
        )

    def write(self, path: str | Path, text: str, mode: int = 0o644) -> None:
        """Write a file of the workspace, or one anywhere; a link is replaced."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_text(text)
        place.chmod(mode)

    def append(self, path: str | Path, text: str) -> None:
        """Write at the end."""
        place = self.root / path
        self.write(path, (place.read_text() if place.exists() else "") + text)

    def edit(self, path: str | Path, old: str, new: str) -> None:
        """Replace a text that has to be there."""
        text = (self.root / path).read_text()
        assert old in text, f"{path} has no {old!r}"
        self.write(path, text.replace(old, new))

    def fix(self) -> None:
        """Do the work."""
        for path, text in self.shape.fixed.items():
            self.write(self.root / path, text)

    def git(self, *words: str, data: str = "") -> str:
        """Git in the agent's own repository, with whatever it has set up there."""
        mine = ["-c", "user.name=agent", "-c", "user.email=agent@example.org"]
        done = subprocess.run(
            ["git", *mine, *words],
            cwd=self.top,
            check=True,
            capture_output=True,
            input=data.encode(),
        )
        return done.stdout.decode().strip()

    def commit(self, message: str = "done") -> None:
        """Commit everything."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def product(self, text: str, *, before: bool = False) -> None:
        """Put code into the module under test."""
        place = self.root / self.shape.module
        code = place.read_text()
        self.write(place, text + "\n" + code if before else code + "\n" + text)

    def detach(self, job: Callable[[], object], seconds: float = BACKGROUND_SECONDS) -> None:
        """Leave a process behind that does something again and again, and then goes away."""
        if os.fork():
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        os.closerange(3, 256)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # it is gone, or not there yet: look again
                job()
            time.sleep(0.01)
        os._exit(0)
