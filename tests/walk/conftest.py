"""A workspace, the installed command in it, and agents that do what a test tells them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import in_process
from tests.faces.conftest import SCRIPT, Answer, environ, tg
from tests.forking import Forge
from truegreen.record.ledger import Ledger, open_ledger

__all__ = ["environ", "tg"]


class Outcome(NamedTuple):
    """What `truegreen run --json` said."""

    status: int
    task: dict[str, Any]

    @property
    def axes(self) -> tuple[str, str]:
        """Both axes, and nothing made from them."""
        return self.task["run_status"], self.task["task_status"]

    @property
    def exit(self) -> tuple[str, str]:
        """Reason and detail."""
        return self.task["exit_reason"], self.task["exit_detail"]

    @property
    def cell(self) -> str:
        cell: str = self.task["cell"]
        return cell

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What was found about the work; what was said before the agent is left out."""
        found = self.task["verdict"]["findings"]
        return [each for each in found if each["phase"] != "baseline"]

    @property
    def latest(self) -> dict[str, Any]:
        run: dict[str, Any] = self.task["runs"][-1]
        return run


class Walk:
    """A workspace with a store of its own."""

    def __init__(
        self, folder: Path, environ: Callable[..., dict[str, str]], forge: Forge, python: str = ""
    ) -> None:
        self.folder = folder
        self.forge = forge
        self.python = python
        self.bin = folder.parent / "bin"
        self.bin.mkdir()
        self._environ = environ
        self.store = os.environ["TRUEGREEN_STORE"]

    def environ(self, **changes: str) -> dict[str, str]:
        path = ":".join(filter(None, (str(self.bin), self.python, os.environ["PATH"])))
        return self._environ(**{"PATH": path, **changes})

    def tg(self, *words: str | Path, timeout: float = 50, **changes: str) -> Answer:
        """The command, in the workspace."""
        there = self.environ(**changes)
        if in_process.can_be_called(words, there):
            done = in_process.call(words, there, self.folder)
        else:
            done = self.forge.run(words, there, self.folder, timeout)
        answer = Answer(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "\nTraceback" not in f"\n{answer.err}", answer
        return answer

    def run(self, *words: str | Path, **changes: str) -> Outcome:
        """`truegreen run --json`."""
        answer = self.tg("run", "--json", *words, timeout=50, **changes)
        assert answer.err == "", answer.err
        return Outcome(answer.status, answer.json())

    def start(self, *words: str | Path, **changes: str) -> subprocess.Popen[bytes]:
        """`truegreen run` that goes on while the test does."""
        return self.beside("run", *words, **changes)

    def beside(self, *words: str | Path, **changes: str) -> subprocess.Popen[bytes]:
        """A command that goes on while the test does."""
        return self.forge.start(words, self.environ(**changes), self.folder)

    def ledger(self) -> Ledger:
        """The record, to look at."""
        return open_ledger(self.store)

    def client(self, name: str, *lines: dict[str, Any], code: int = 0, before: str = "") -> str:
        """A program called like a real client that plays this stream, after some Python."""
        text = "\n".join(json.dumps(line) for line in lines)
        body = f"import sys\n{before}\nprint({text!r}, flush=True)\nsys.exit({code})\n"
        path = self.bin / name
        path.write_text(f"#!{sys.executable}\n{body}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return name

    def claude(self, *lines: dict[str, Any], code: int = 0, before: str = "") -> list[str]:
        """The command line of a scripted Claude Code."""
        return ["--", self.client("claude", *lines, code=code, before=before), "-p", "do it"]


def init(**more: Any) -> dict[str, Any]:
    """The first line of a Claude Code stream."""
    return {
        "type": "system",
        "subtype": "init",
        "session_id": "11111111-1111-4111-8111-111111111111",
        "claude_code_version": "2.1.325",
        "model": "scripted",
        "permissionMode": "default",
        "tools": ["Bash"],
        "mcp_servers": [],
        **more,
    }


def said(text: str, number: int = 1, **more: Any) -> dict[str, Any]:
    """An assistant's turn that only speaks."""
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": _message(number, content), **more}


def called(command: str, number: int = 1) -> dict[str, Any]:
    """An assistant's turn that uses the shell."""
    tool = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash"}
    content = [{**tool, "input": {"command": command}}]
    return {"type": "assistant", "message": _message(number, content)}


def _message(number: int, content: list[dict[str, Any]]) -> dict[str, Any]:
    usage = {"input_tokens": 100, "output_tokens": 10}
    whose = {"id": f"msg_{number}", "role": "assistant", "model": "scripted"}
    return {**whose, "type": "message", "content": content, "stop_reason": None, "usage": usage}


def answered(text: str, number: int = 1, *, is_error: bool = False) -> dict[str, Any]:
    """What a tool gave back."""
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}
    content = [{**result, "is_error": is_error}]
    return {"type": "user", "message": {"role": "user", "content": content}}


def result(text: str, **more: Any) -> dict[str, Any]:
    """The last line of a Claude Code stream."""
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 2,
        "result": text,
        "session_id": "11111111-1111-4111-8111-111111111111",
        "stop_reason": "end_turn",
        "terminal_reason": "completed",
        "total_cost_usd": 0.04,
        "permission_denials": [],
        "usage": {"input_tokens": 100, "output_tokens": 10},
        **more,
    }


@pytest.fixture
def walk(
    tmp_path: Path,
    environ: Callable[..., dict[str, str]],
    forge: Forge,
    slim_python: str,
    own_tools: None,
    plain_store: Path,
) -> Walk:
    """An empty workspace without git, and a store without a task."""
    folder = tmp_path / "work"
    folder.mkdir()
    shutil.copy(plain_store, os.environ["TRUEGREEN_STORE"].removeprefix("sqlite://"))
    return Walk(folder, environ, forge, slim_python)


@pytest.fixture
def git_walk(walk: Walk) -> Walk:
    """A workspace that is a git repository with one commit."""
    (walk.folder / "README").write_text("hello\n")
    git = "git -c user.name=t -c user.email=t@example.org"
    commit = f"git init -q -b main . && git add -A && {git} commit -qm first"
    subprocess.run(["sh", "-c", commit], cwd=walk.folder, check=True)
    return walk


def until(true: Callable[[], object], seconds: float = 20) -> None:
    """Wait for a named condition."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


def python(code: str) -> list[str]:
    """An agent that is a few lines of Python."""
    return ["--", sys.executable, "-c", code]


def shell(text: str) -> list[str]:
    """An agent that is a line of shell."""
    return ["--", "sh", "-c", text]


def own(*words: str) -> str:
    """This program, as a shell inside a run calls it."""
    return shlex.join([str(SCRIPT), *words])
