"""Tools over the life of a task: taken once, before its first agent, and used by every check."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.walk.conftest import Walk, shell
from truegreen.work import jail
from truegreen.work.toolchain.pinning import remove_tree

HONEST = "#!/bin/sh\necho honest; grep -qx right answer; exit\n"
FORGE = "printf '#!/bin/sh\\necho forged\\n' > node_modules/.bin/check"
GATE = ("--gate", "node_modules/.bin/check -v")


@pytest.fixture
def own_tools() -> None:
    """Nothing is shared here: it is looked at, or broken."""


@pytest.fixture
def project(git_walk: Walk) -> Walk:
    if not jail.probe().jail:
        missing("bubblewrap that works")
    (git_walk.folder / ".gitignore").write_text("node_modules/\n")
    program = git_walk.folder / "node_modules" / ".bin" / "check"
    program.parent.mkdir(parents=True)
    # Tests share their copies of tools, and one of them loses its own
    program.write_text(f"{HONEST}# {git_walk.folder}\n")
    program.chmod(0o755)
    return git_walk


def tools_of(walk: Walk, task: str, run: int = 0) -> dict[str, Any]:
    ledger = walk.ledger()
    try:
        facts = json.loads(ledger.dossier(task).runs[run].facts)
    finally:
        ledger.close()
    tools: dict[str, Any] = facts["ground"]["tools"]
    return tools


@pytest.mark.criterion("E08")
def test_every_attempt_is_checked_with_the_tools_from_before_the_first(project):
    done = project.run(*GATE, "--max-attempts", "2", *shell(f"{FORGE}; echo wrong > answer"))
    assert done.axes == ("exited", "failed")
    task = done.task["id"]
    found = [f for run in done.task["runs"] for f in run["verdict"]["findings"]]
    reasons = [f["reason"] for f in found if f["phase"] == "after"]
    assert len(reasons) == 2
    assert len(done.task["runs"]) == 2
    assert set(reasons) == {"honest"}
    assert tools_of(project, task, 0) == tools_of(project, task, 1)


def test_a_second_look_uses_the_same_tools(project):
    done = project.run(*GATE, *shell(f"{FORGE}; echo right > answer"))
    assert done.axes == ("exited", "succeeded")
    (project.folder / "answer").unlink()
    answer = project.tg("verify", done.task["id"], "--json")
    assert '"reason":"honest"' in answer.out
    assert '"reason":"forged"' not in answer.out


def test_a_copy_that_is_gone_is_said_and_nothing_passes(project):
    done = project.run(*GATE, *shell("echo right > answer"))
    task = done.task["id"]
    for pin in tools_of(project, task)["pins"]:
        remove_tree(os.path.dirname(pin["copy"]))
    answer = project.tg("verify", task, "--json")
    assert "is gone" in answer.out
    assert answer.status != 0


def test_a_gate_by_itself_runs_with_the_tools_of_now(project):
    Path(project.folder, "answer").write_text("right\n")
    Path(project.folder, "truegreen.toml").write_text(
        '[gates.check]\ncommand = ["node_modules/.bin/check"]\n'
    )
    answer = project.tg("gate", "check", "--json")
    assert answer.status == 0, answer
    assert "honest" in answer.out


def test_a_task_without_gates_takes_no_tools(project):
    done = project.run(*shell("true"))
    taken = tools_of(project, done.task["id"])
    assert not [name for name, value in taken.items() if value]
