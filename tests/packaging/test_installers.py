"""Ways to install truegreen, each gone for real: pipx, uvx, pip from the sdist, the container's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.packaging.conftest import NOT_SOURCE, ROOT, Built
from tests.packaging.test_defaults import handshake
from tests.packaging.test_papers import steps
from truegreen import __version__

PIPX = "pipx>=1.7"  # below, it installs no manual pages
NO_INDEX = re.compile(
    r"No matching distribution|Failed to fetch|Could not fetch|error sending request|dns error"
)
UV = Path(sys.executable).with_name("uv")


class Room:
    """A folder in which somebody installs it, with a home of its own."""

    def __init__(self, folder: Path, built: Built, cache: Path) -> None:
        self.folder, self.built, self.cache = folder, built, cache

    def does(self, *words: object, **changes: str) -> str:
        """A command to its end; what it says. Without a package registry the test is skipped."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=changes.pop("PWD", self.folder),
            env={**self._environ(), **changes},
            check=False,
            capture_output=True,
            text=True,
            timeout=280,
        )
        if done.returncode and NO_INDEX.search(done.stdout + done.stderr):
            missing("a package registry")
        assert done.returncode == 0, done
        return done.stdout

    def _environ(self) -> Mapping[str, str]:
        outside = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        trusted = {"UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "true"}
        return {
            **outside,
            **trusted,
            "HOME": str(self.folder),
            # What was downloaded once is there for the next; byte code is made of what is used.
            "UV_CACHE_DIR": f"{self.cache}/uv",
            "PIP_CACHE_DIR": f"{self.cache}/pip",
            "PIP_NO_COMPILE": "off",  # a flag that says no is set by a no
            "XDG_STATE_HOME": f"{self.folder}/s",
        }

    def venv(self, name: str) -> Path:
        """An environment with nothing in it; where its programs are."""
        self.does(UV, "venv", "-q", "--seed", "-p", sys.executable, self.folder / name)
        return self.folder / name / "bin"


def by_pipx(room: Room) -> Path:
    tools = room.venv("tools")
    room.does(UV, "pip", "install", "-q", "-p", tools / "python", PIPX)
    places = {"PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "PIPX_MAN_DIR": "man"}
    there = {name: str(room.folder / place) for name, place in places.items()}
    room.does(tools / "pipx", "install", "-q", room.built.wheel, **there)
    assert (room.folder / "man" / "man1" / "truegreen.1").is_file()
    return room.folder / "bin" / "truegreen"


def by_uvx(room: Room) -> Path:
    program = room.folder / "truegreen"
    program.write_text(f'#!/bin/sh\nexec {UV} tool run -q --from {room.built.wheel} truegreen "$@"')
    program.chmod(0o755)
    return program


def by_pip_from_the_sdist(room: Room) -> Path:
    programs = room.venv("plain")
    room.does(programs / "python", "-m", "pip", "install", "-q", room.built.sdist)
    return programs / "truegreen"


def by_the_container(room: Room) -> Path:
    """What the container file does before its second stage, in a folder instead of an image."""
    source, bin_ = room.folder / "source", room.folder / "bin"
    for folder in (source, bin_):
        folder.mkdir()
    (bin_ / "python").symlink_to(sys.executable)
    for step in steps():
        if step[0] == "COPY" and not step[1].startswith("--from"):
            for word in step[1:-1]:
                _copied(ROOT / word, source / word)
    (build,) = [step for step in steps() if step[0] == "RUN" and "/builder" in step]
    script = re.sub(r"(?<=[ =])/(?=[a-z])", f"{room.folder}/", " ".join(build[1:]))
    room.does("sh", "-c", script, PWD=str(source), PATH=f"{bin_}:{os.environ['PATH']}")
    place = room.folder / "opt" / "truegreen"
    assert ["COPY", "--from=build", "/opt/truegreen", "/opt/truegreen"] in steps()
    room.does(place / "bin" / "pip", "check")
    return place / "bin" / "truegreen"


def _copied(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*NOT_SOURCE))
    else:
        shutil.copy(source, target)


WAYS = [by_uvx, by_pip_from_the_sdist, by_the_container]


@pytest.fixture
def room(tmp_path: Path, built: Built, shared_tools: Path) -> Room:
    """A room of its own, and the downloads of all."""
    return Room(tmp_path, built, shared_tools.with_name("downloads"))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", WAYS)
def test_what_was_installed_takes_a_command_to_a_verdict(
    room: Room, way: Callable[[Room], Path]
) -> None:
    _takes_a_command_to_a_verdict(room, way(room))


def _takes_a_command_to_a_verdict(room: Room, program: Path) -> None:
    assert room.does(program, "--version") == f"truegreen {__version__}\n"
    assert "● succeeded" in room.does(
        program, "run", "--gate", "test -f made", "--", "touch", "made"
    )
    assert "task_create" in handshake(program), "the lead's tools need no extra"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_pipx_installed_takes_a_command_to_a_verdict_and_adds_postgres_as_it_is_told(
    room: Room,
) -> None:
    program = by_pipx(room)
    _takes_a_command_to_a_verdict(room, program)
    words = [str(program), "list", "--store", "postgresql://nobody@127.0.0.1:1/none"]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    (way,) = re.findall(r"pipx inject truegreen '[^']+'", done.stderr.splitlines()[0])
    assert done.returncode == 5, done
    path = f"{room.folder}/tools/bin:{os.environ['PATH']}"
    room.does("sh", "-c", way, PATH=path, PIPX_HOME=str(room.folder / "pipx"))
    again = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert again.returncode == 5, again
    assert "extra" not in again.stderr, "now it is the server that is not there"
