"""A scratch folder with a furnished store, and the installed command in it.

The furnished store has one task in every status, with fixed content and a stepping clock that began
some days ago: ages in the output are the same whenever it is furnished.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

import truegreen
from tests import in_process
from tests.faces.conftest import Answer, furnish
from tests.forking import SCRIPT, Forge
from tests.golden.normalise import Normaliser
from tests.postgres_server import roomiest
from tests.record.lives import OPERATOR, brought
from truegreen.model import TaskStatus
from truegreen.record.ledger import open_ledger

SECOND = 1_000_000
HOUR = 3600 * SECOND
AGE = (3 * 24 + 12) * HOUR
"""How old the furnished store is: far from every boundary between two ages as they are printed."""
WIDTH = 48
"""The length of the scratch folder's path: columns are as wide as the paths in them."""
PROGRAMS = ("cat", "echo", "git", "sh", "test", "touch", "true")
"""What commands find on their PATH: no client, no sandbox, and nothing else of this machine."""
KEPT = ("LANG", "LC_", "LD_", "PYTHON")
"""Variables that an interpreter reads at its start; the forked command has those of the tests."""
SETTINGS = """\
[defaults]
isolation = "none"

[agents.echo]
command = ["echo", "{goal}"]

[agents.reader]
adapter = "claude-code"
command = ["claude", "-p", "{goal}"]

[gates.clean]
command = ["true"]

[evaluators.careful]
command = ["true"]

[tasks.tidy]
agent = "echo"
goal = "tidy up"
gates = ["clean"]

[routines.nightly]
task = "tidy"
schedule = "0 2 * * *"

[routines.rounds]
task = "tidy"
repeat = { max_iterations = 3 }

[[limits]]
per = "day"
cost_usd = 5.0
"""


class Furnished(NamedTuple):
    """A furnished store to copy, and the tasks in it by status."""

    store: Path
    tasks: dict[str, str]


def furnished_at(folder: Path) -> Furnished:
    """Furnish a store in a folder."""
    store = folder / "furnished.db"
    ledger = open_ledger(f"sqlite://{store}", anchor=f"{store}.anchor", clock=_Clock())
    tasks = furnish(ledger)
    writer = ledger.register_agent("writer", "sha256:2", actor=OPERATOR, session="s-2")
    brought(ledger, TaskStatus.SUCCEEDED, title="write the guide", agent_id=writer.id)
    ledger.mark()
    ledger.close()
    _renew_leases(store)
    return Furnished(store, {str(status): task for status, task in tasks.items()})


class _Clock:
    """Steps one second at each look; begins ten minutes past an hour, so that no hour ends."""

    def __init__(self) -> None:
        now = time.time_ns() // 1000
        self._at = now - now % HOUR - AGE + 10 * 60 * SECOND

    def __call__(self) -> int:
        self._at += SECOND
        return self._at


def _renew_leases(store: Path) -> None:
    with apsw.Connection(str(store)) as connection:
        connection.execute(f"UPDATE leases SET expires_at = expires_at + {2 * AGE}")
    connection.close()


class Scratch:
    """A folder that every document is produced in, and the command."""

    def __init__(self, folder: Path, forge: Forge) -> None:
        self._forge = forge
        self.folder = folder
        self.home, self.work, self.store = folder / "home", folder / "work", folder / "store.db"
        self.furnished = furnished_at(folder)
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in PROGRAMS:
            (self.programs / name).symlink_to(shutil.which(name, path=os.defpath) or "/nowhere")
        (self.programs / "truegreen").symlink_to(SCRIPT)
        self.refresh()
        python = Path(sys.executable)
        places = {
            str(folder): "<scratch>",
            str(Path(truegreen.__file__).parent): "<package>",
            str(python): "<python>",
            str(python.resolve()): "<python>",
            str(python.parent): "<bin>",
        }
        listed = json.loads(self.tg("list", "--json").out)["tasks"]
        stable = {task["contract_digest"].removeprefix("sha256:") for task in listed}
        self.normalised = Normaliser(places, stable)

    def refresh(self, settings: str = SETTINGS) -> None:
        """Begin anew: a copy of the furnished store, an empty home, a folder with settings."""
        for folder in (self.home, self.work):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        for old in self.folder.glob(f"{self.store.name}*"):
            old.unlink()
        for end in ("", ".anchor"):
            shutil.copy(f"{self.furnished.store}{end}", f"{self.store}{end}")
        (self.work / "truegreen.toml").write_text(settings)

    def environ(self, **changes: str) -> dict[str, str]:
        """The whole environment of a command: nothing of the caller's own settings is in it."""
        kept = {name: text for name, text in os.environ.items() if name.startswith(KEPT)}
        return {
            **kept,
            "COLUMNS": "80",
            "HOME": str(self.home),
            "PATH": str(self.programs),
            "TMPDIR": str(self.folder),
            "TRUEGREEN_STORE": f"sqlite://{self.store}",
            "TZ": "UTC",
            **changes,
        }

    def tg(self, *words: str | Path, **changes: str) -> Answer:
        """Run the command to its end: in this process, where that makes no difference."""
        environ = self.environ(**changes)
        if in_process.can_be_called(words, environ):
            done = in_process.call(words, environ, self.work)
        else:
            done = self._forge.run(words, environ, self.work, 60)
        answer = Answer(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in answer.out + answer.err, answer
        return answer


@contextmanager
def scratch(forge: Forge) -> Iterator[Scratch]:
    """A scratch folder for a while."""
    with tempfile.TemporaryDirectory(prefix="golden-", dir=roomiest()) as made:
        folder = Path(made, "x" * (WIDTH - len(made) - 1))
        folder.mkdir()
        yield Scratch(folder, forge)


def pretty(document: Any) -> str:
    """A document of JSON to read and to compare, in the order in which it was given."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def told(command: str, answer: Answer) -> str:
    """What a command with --json left: its exit status, its document or documents, its errors."""
    body: dict[str, Any] = {"command": command, "exit": answer.status}
    documents = _documents(answer.out)
    if documents is None:
        body["text"] = answer.out.splitlines()
    else:
        body["stdout"] = documents[0] if len(documents) == 1 else documents
    if answer.err:
        body["stderr"] = answer.err.splitlines()
    return pretty(body)


def _documents(text: str) -> list[Any] | None:
    """The documents in lines of compact JSON; None for anything else, which is kept as it is."""
    try:
        found = [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return None
    compact = (json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in found)
    return found if "".join(f"{line}\n" for line in compact) == text else None


def shown(command: str, answer: Answer) -> str:
    """What a command left for people: its output, its errors, its exit status."""
    parts = [f"$ {command}\n", answer.out]
    if answer.err:
        parts += ["--- standard error\n", answer.err]
    parts.append(f"--- exit {answer.status}\n")
    return "".join(_whole_lines(part) for part in parts if part)


def _whole_lines(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n\\ no newline at the end\n"
