"""A run in a repository, fenced off: the scene of whoever acts for it afterwards."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.lives import OPERATOR, contract
from truegreen.facts import Ticket
from truegreen.model import Severity
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.ledger.reads import Waiting
from truegreen.supervisor import tripwire
from truegreen.supervisor.ground import Ground
from truegreen.supervisor.place import Place

ANN = ("Ann", "ann@example.org")
BOT = ("Bot", "bot@example.org")
SESSION = "11111111-1111-4111-8111-111111111111"


class Repository:
    """A repository that people and agents commit to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, who: tuple[str, str] = ANN) -> str:
        identity = ["-c", f"user.name={who[0]}", "-c", f"user.email={who[1]}"]
        return subprocess.run(
            ["git", *identity, *words],
            cwd=self.folder,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ).stdout.strip()

    def commit(self, subject: str, who: tuple[str, str] = ANN) -> str:
        self.git("commit", "-q", "--allow-empty", "-m", subject, who=who)
        return self.git("rev-parse", "HEAD")


class Scene:
    """A record, a place, and a repository in which a run was fenced off."""

    def __init__(self, ledger: Ledger, tmp_path: Path) -> None:
        self.ledger = ledger
        self.place = Place(str(tmp_path / "state"), (), {})
        self.repository = Repository(tmp_path / "work")
        self.remote = tmp_path / "remote.git"
        self.first = self.repository.commit("first")
        self.ticket = self.started()

    def started(self, task: str | None = None) -> Ticket:
        task = task or self.ledger.open(contract(), actor=OPERATOR).id
        agent = self.ledger.register_agent("worker", "sha256:0", actor=OPERATOR, session=SESSION)
        ticket = self.ledger.start(task, Start("host", 60.0, agent.id))
        top = str(self.repository.folder)
        remotes = {"origin": str(self.remote)}
        files = self.place.make(ticket)
        tripwire.note_start(files.folder, ticket, Ground(top, "", "", remotes))
        return ticket

    def fence(self) -> None:
        self.ledger.terminate(self.ticket.task, actor=OPERATOR, reason="enough")
        tripwire.note_fence(self.place.state_dir, [self.ticket.run])

    def look(self) -> list[str]:
        tripwire_rests_not(self.place)
        return tripwire.watch_grounds(self.ledger, self.place)

    @property
    def alarm(self) -> Waiting | None:
        (*items,) = [w for w in self.ledger.inbox() if w.item.cell == "zombie"]
        assert len(items) <= 1
        return items[0] if items else None

    @property
    def reason(self) -> str:
        assert self.alarm is not None
        assert self.alarm.item.severity is Severity.CRITICAL
        assert self.alarm.task == self.ticket.task
        assert self.ticket.run in self.alarm.item.reason
        return self.alarm.item.reason

    def leave_word(self, number: int = 1, **changes: str) -> Path:
        folder = Path(self.place.state_dir) / "tripped"
        folder.mkdir(parents=True, exist_ok=True)
        word = {
            "client": "claude-code",
            "event": "PreToolUse",
            "run": "",
            "session": SESSION,
            "payload": '{"tool_name":"Bash"}',
            **changes,
        }
        path = folder / f"{number}-1.json"
        path.write_text(json.dumps(word))
        return path


def tripwire_rests_not(place: Place) -> None:
    """Tests look again at once."""
    for path in (Path(place.state_dir) / "watched").glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "rests_until": 0.0}))


@pytest.fixture
def scene(sqlite_url: str, tmp_path: Path) -> Iterator[Scene]:
    ledger = open_ledger(sqlite_url)
    yield Scene(ledger, tmp_path)
    ledger.close()
