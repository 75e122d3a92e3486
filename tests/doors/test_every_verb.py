"""Every verb at the door of a run, found by reading the door, against a run that is terminated."""

from __future__ import annotations

import ast
import inspect
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import OPERATOR, started
from truegreen.contract import parse_duration
from truegreen.doors import run_door
from truegreen.doors.hooking import Behind
from truegreen.doors.line import ask
from truegreen.doors.run_door import RunDoor
from truegreen.facts import SYSTEM
from truegreen.model import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from truegreen.record.ledger import Ledger

QUESTIONS: dict[str, dict[str, Any]] = {
    "declare": {"kind": "done", "reason": "all done"},
    "checkpoint": {"action": "push"},
    "task": {},
    "announce": {"topic": "built"},
    "attach": {"name": "report.txt", "file": "report.txt"},
}
PAYLOADS = {
    "hook": b'{"tool_name": "Bash", "tool_input": {"command": "git push"}}',
    "guard": b"git\0push",
    "credential": b"protocol=https\nhost=github.com\n",
}
WORDS = {"hook": "claude-code PreToolUse"}
SECRET = "the operator's own"  # noqa: S105 - of nobody


def verbs_in_the_source() -> tuple[set[str], set[str]]:
    """The verbs that come as JSON, and those that come as frames."""
    tree = ast.parse(inspect.getsource(run_door))
    lines: set[str] = set()
    frames: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "verbs":
            assert isinstance(node.value, ast.Dict)
            lines |= {str(each.value) for each in node.value.keys if isinstance(each, ast.Constant)}
        if isinstance(node, ast.Compare) and ast.unparse(node.left).endswith("frame.verb"):
            words = [each.value for each in node.comparators if isinstance(each, ast.Constant)]
            frames |= {str(word) for word in words}
    return lines, frames


class Agent:
    """Whoever is at the door."""

    def __init__(self, path: str, token: str) -> None:
        self._path, self._token = path, token

    def says(self, verb: str) -> dict[str, Any]:
        return ask(self._path, {"token": self._token, "verb": verb, **QUESTIONS[verb]}, timeout=20)

    def frames(self, verb: str) -> tuple[int, str]:
        """The exit status that the answer asks for, and all that it says."""
        payload = PAYLOADS[verb]
        head = f"\x01{verb} {len(payload)} {len(payload)} {self._token} {WORDS.get(verb, 'x')}\n"
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(20)
            line.connect(self._path)
            line.sendall(head.encode() + payload)
            answer = b"".join(iter(lambda: line.recv(65536), b"")).decode()
        first, _, rest = answer.partition("\n")
        return int(first.split()[0]), rest


@pytest.fixture
def door(ledger: Ledger, tmp_path: Path) -> Iterator[tuple[Agent, Callable[[], object]]]:
    """An agent at the door of its run, and how that is terminated."""
    ticket = started(ledger)
    _, token = ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)
    opened = RunDoor(
        ledger,
        ticket,
        str(tmp_path / "door"),
        patience=parse_duration("1h"),
        digest=lambda: "tree:left",
        last_seconds=0.1,
        behind=Behind(lend=lambda *_: ("ana", SECRET), hosts=("github.com",)),
    )
    agent = Agent(str(tmp_path / "door"), token)
    yield agent, lambda: ledger.terminate(ticket.task, actor=OPERATOR)
    opened.close()


def test_every_verb_of_the_door_is_tried_here() -> None:
    lines, frames = verbs_in_the_source()
    assert lines == set(QUESTIONS)
    assert frames == set(PAYLOADS)


@pytest.mark.criterion("G20", "G03")
@pytest.mark.parametrize("verb", QUESTIONS)
def test_a_terminated_run_says_and_asks_nothing_any_more(
    ledger: Ledger, door: tuple[Agent, Callable[[], object]], verb: str
) -> None:
    agent, terminate = door
    assert "error" not in agent.says("task")
    terminate()
    task = ledger.page().tasks[0]
    answer = agent.says(verb)
    assert answer["error"]["code"] == "terminated", answer
    assert ledger.page().tasks[0].revision == task.revision


@pytest.mark.criterion("G20", "G24")
@pytest.mark.parametrize("verb", PAYLOADS)
def test_a_terminated_run_uses_no_tool_guard_or_password_any_more(
    door: tuple[Agent, Callable[[], object]], verb: str
) -> None:
    agent, terminate = door
    code, said = agent.frames(verb)
    assert (code, "terminated" in said) == (0, False), said
    terminate()
    code, said = agent.frames(verb)
    assert "terminated" in said
    assert SECRET not in said
    refused = code != 0 or "quit=1" in said or _denies(said)
    assert refused, said


def _denies(said: str) -> bool:
    """Whether a hook's answer forbids what would happen."""
    decision = json.loads(said[: said.rindex("}") + 1])
    return bool(decision["hookSpecificOutput"]["permissionDecision"] == "deny")
