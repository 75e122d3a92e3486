"""The installed command, a store with a task in every status, and a terminal to look at."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from tests import forking, in_process
from tests.forking import Forge
from tests.record.lives import OPERATOR, brought
from truegreen.model import TaskStatus
from truegreen.record.ledger import Ledger, open_ledger

SCRIPT = forking.SCRIPT
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Answer(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """The one document on standard output; anything else there is an error."""
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)

    def error(self, code: str) -> dict[str, Any]:
        """The error document with this code, and nothing else anywhere."""
        assert self.err == ""
        document = self.json()
        assert list(document) == ["error"]
        body: dict[str, Any] = document["error"]
        assert {"code", "message", "allowed"} <= body.keys()
        assert body["code"] == code, body
        return body


Run = Callable[..., Answer]


@pytest.fixture
def environ(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The environment of a command."""

    def make(**changes: str) -> dict[str, str]:
        home = str(tmp_path / "home")
        return {**os.environ, "TMPDIR": home, "TZ": "UTC", **changes}

    return make


@pytest.fixture
def script() -> Path:
    """The command, as it is installed."""
    return SCRIPT


@pytest.fixture
def tg(environ: Callable[..., dict[str, str]], tmp_path: Path, forge: Forge, script: Path) -> Run:
    """Run the command to its end: in this process, where that makes no difference."""

    def run(*words: str | bytes | Path, **changes: str) -> Answer:
        there = environ(**changes)
        if script == SCRIPT and in_process.can_be_called(words, there):
            done = in_process.call(words, there, tmp_path)
        else:  # the test's own limit holds
            done = forge.run(words, there, tmp_path, 600, script=script)
        answer = Answer(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in answer.out + answer.err
        return answer

    return run


@pytest.fixture
def called(environ: Callable[..., dict[str, str]], tmp_path: Path) -> Run:
    """Run any command in this process, where it refuses its words or shows its help."""

    def run(*words: str | bytes | Path, **changes: str) -> Answer:
        done = in_process.call(words, environ(**changes), tmp_path)
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def on_terminal(
    environ: Callable[..., dict[str, str]], tmp_path: Path, forge: Forge, script: Path
) -> Run:
    """Run the command on a terminal of so many columns; says what it wrote there."""

    def run(columns: int, *words: str, **changes: str) -> Answer:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        settings = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **changes}
        settings.setdefault("COLUMNS", str(columns))
        # No limit but the test's own: a demo takes as long as it takes.
        done = forge.run(words, environ(**settings), tmp_path, 600, (ours, theirs), script)
        out, err = done.stdout.decode().replace("\r\n", "\n"), done.stderr.decode()
        return Answer(done.returncode, out, err)

    return run


class Furnished(NamedTuple):
    """A store with one task in every status."""

    url: str
    tasks: dict[TaskStatus, str]

    @property
    def path(self) -> Path:
        return Path(self.url.removeprefix("sqlite://"))


def furnish(ledger: Ledger) -> dict[TaskStatus, str]:
    """Bring a task into every status."""
    ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session="s-1")
    return {status: brought(ledger, status)[0].id for status in TaskStatus}


@pytest.fixture(scope="session")
def furnished_once(tmp_path_factory: pytest.TempPathFactory) -> Furnished:
    """The furnished store that tests get copies of."""
    path = tmp_path_factory.mktemp("furnished") / "store.db"
    ledger = open_ledger(f"sqlite://{path}", anchor=f"{path}.anchor")
    tasks = furnish(ledger)
    ledger.mark()
    ledger.close()
    _prolong_leases(path)
    return Furnished(f"sqlite://{path}", tasks)


@pytest.fixture(scope="session")
def furnished_template(
    tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Furnished:
    """The furnished SQLite store that tests on each database get copies of."""
    path = tmp_path_factory.mktemp("furnished") / "template.db"
    shutil.copy(sqlite_template, path)
    ledger = open_ledger(f"sqlite://{path}")
    tasks = furnish(ledger)
    ledger.close()
    _prolong_leases(path)
    return Furnished(f"sqlite://{path}", tasks)


def _prolong_leases(path: Path) -> None:
    """Let leases last a day longer: a test may copy the store long after it was furnished."""
    store = apsw.Connection(str(path))
    store.execute("UPDATE leases SET expires_at = expires_at + 86400000000")
    store.close()


@pytest.fixture
def furnished(
    furnished_once: Furnished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Furnished:
    """A store of one's own with a task in every status; commands find it by themselves."""
    path = tmp_path / "store.db"
    for end in ("", ".anchor"):
        shutil.copy(f"{furnished_once.path}{end}", f"{path}{end}")
    monkeypatch.setenv("TRUEGREEN_STORE", f"sqlite://{path}")
    return Furnished(f"sqlite://{path}", furnished_once.tasks)


@pytest.fixture
def furnished_anywhere(
    store_url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Furnished:
    """The same on each database: a copy on SQLite, furnished anew on PostgreSQL."""
    if store_url.startswith("sqlite:"):
        template: Furnished = request.getfixturevalue("furnished_template")
        shutil.copyfile(template.path, store_url.removeprefix("sqlite://"))
        tasks = template.tasks
    else:
        ledger = open_ledger(store_url)
        tasks = furnish(ledger)
        ledger.close()
    monkeypatch.setenv("TRUEGREEN_STORE", store_url)
    return Furnished(store_url, tasks)
