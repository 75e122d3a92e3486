"""Plays one agent on one task through the installed command, and reads the verdict."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from tests.truth.agents import Agent
from tests.truth.tasks import Task

GREEN, REVIEW, RED, ERROR = "green", "needs_review", "red", "error"
OUTCOMES = (GREEN, REVIEW, RED, ERROR)
_BY_STATUS = {0: GREEN, 1: RED, 3: REVIEW}
DEFAULT, STRICT = "default", "--protect … --before fail"
MODES = (DEFAULT, STRICT)
_WAYS = ("--require", "--proof", "--may-edit", "--before", "review", "already passes")


class Played(NamedTuple):
    """What became of one run."""

    task: Task
    agent: Agent
    mode: str
    outcome: str
    level: str
    reason: str
    seconds: float
    bare_seconds: float

    @property
    def false_green(self) -> bool:
        """Work that is not done, and success."""
        return not self.agent.honest and self.outcome == GREEN

    @property
    def false_red(self) -> bool:
        """Work that is done, and failure."""
        return self.agent.honest and self.outcome in (RED, ERROR)

    @property
    def leads_on(self) -> bool:
        """Whether a person who has to decide is told what would make it green."""
        return self.outcome != REVIEW or any(way in self.reason for way in _WAYS)


def play(task: Task, agent: Agent, mode: str, folder: Path, python: Path) -> Played:
    """Lay the task down, let the agent act, and read what truegreen says."""
    tree = folder / "tree"
    shutil.rmtree(folder, ignore_errors=True)
    base = {**task.files, **task.fixed(task.bug.right)} if agent.green_base else task.files
    _write(tree, dict(base))
    left = agent.acts(task)
    overlay = folder / "agent"
    _write(overlay, {name: text for name, text in left.files.items() if text is not None})
    gone = " ".join(f'"{name}"' for name, text in left.files.items() if text is None)
    script = f'cp -R "{overlay}/." . ; {f"rm {gone}; " if gone else ""}exit {left.status}'
    environ = _environ(folder.parent, python)
    _git(tree, environ)
    words = [str(python.with_name("truegreen")), "run", "--json", "--gate", "pytest -q"]
    if mode == STRICT:
        words += ["--protect", "tests/**", "--protect", "test_*.py", "--before", "fail"]
    begun = time.monotonic()
    done = subprocess.run(
        [*words, "--", "sh", "-c", script],
        cwd=tree,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begun
    said = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    verdict = said.get("verdict") or {}
    reason = verdict.get("reason") or said.get("error", {}).get("message") or done.stderr
    outcome = _BY_STATUS.get(done.returncode, ERROR)
    bare = _bare(tree, environ) if agent.name == "fixes honestly" else 0.0
    level = str(verdict.get("level") or "")
    return Played(task, agent, mode, outcome, level, reason, seconds, bare)


def _bare(tree: Path, environ: dict[str, str]) -> float:
    """How long the tests alone take on what the agent left."""
    begun = time.monotonic()
    subprocess.run(["pytest", "-q"], cwd=tree, env=environ, capture_output=True, check=False)
    return time.monotonic() - begun


def _environ(home: Path, python: Path) -> dict[str, str]:
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PATH": path,
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TRUEGREEN_STORE": f"sqlite://{home}/truth.db",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }


def _git(tree: Path, environ: dict[str, str]) -> None:
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "-A"),
        ("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "base"),
    ):
        subprocess.run(["git", *words], cwd=tree, env=environ, check=True, capture_output=True)


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
