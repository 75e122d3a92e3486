"""A zombie that no kill can reach acts after terminate: a person is told what it did, and for whom.

At isolation `none` a process that left its group and wiped its environment belongs to nobody. It is
the worst that can be left of a run, and stays on this machine until the test lets it act.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.walk.conftest import Walk, until
from truegreen.doors import hook

ZOMBIE = """
import os, subprocess, sys, time
if os.fork():
    time.sleep(60)
os.setsid()
if os.fork():
    os._exit(0)
wiped = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
os.execve(sys.executable, [sys.executable, "-c", sys.argv[1]], wiped)
"""
ACT = """
import os, subprocess, time
open("zombie.pid", "w").write(str(os.getpid()))
deadline = time.monotonic() + 30
while not os.path.exists("../act") and time.monotonic() < deadline:
    time.sleep(0.02)
who = ["-c", "user.name=Zombie", "-c", "user.email=zombie@example.org"]
subprocess.run(["git", *who, "commit", "-q", "--allow-empty", "-m", "merged by the dead"])
subprocess.run(["git", "push", "-q", "origin", "HEAD:main"])
open("../acted", "w").close()
"""


def state() -> Path:
    """The state directory of the test."""
    return Path(os.environ["XDG_STATE_HOME"]) / "truegreen"


@pytest.fixture
def zombie(git_walk: Walk) -> Iterator[tuple[Walk, str]]:
    """A terminated task of which something lives on; its id."""
    walk = git_walk
    remote = walk.folder.parent / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(remote)], check=True)
    subprocess.run(["git", "remote", "add", "origin", str(remote)], cwd=walk.folder, check=True)
    agent = [sys.executable, "-c", ZOMBIE, ACT]
    with walk.start("--isolation", "none", "--json", "--", *agent) as running:
        until((walk.folder / "zombie.pid").exists)
        with closing(walk.ledger()) as ledger:
            (task,) = ledger.page().tasks
        answer = walk.tg("terminate", task.id, "--json")
        running.communicate(timeout=30)
    assert answer.json()["unconfirmed"], answer  # it says itself that it can't know
    assert os.listdir(state() / "watched")  # from the fence on, not from the next look on
    yield walk, task.id
    (walk.folder.parent / "act").touch()
    until((walk.folder.parent / "acted").exists)


def act(walk: Walk) -> str:
    """Let the zombie do what it lives for; says what it committed."""
    (walk.folder.parent / "act").touch()
    until((walk.folder.parent / "acted").exists)
    head = ["git", "rev-parse", "HEAD"]
    return subprocess.run(
        head, cwd=walk.folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.criterion("G24")
def test_a_commit_and_a_push_of_a_zombie_are_a_critical_item(zombie: tuple[Walk, str]):
    walk, task = zombie
    assert walk.tg("inbox", "--json").json()["inbox"] == []

    commit = act(walk)

    (item,) = walk.tg("inbox", "--json").json()["inbox"]
    with closing(walk.ledger()) as ledger:
        (run,) = ledger.dossier(task).runs
        told = [told.event.reason for told in ledger.events(task)]
        meters = ledger.meters()
    assert (item["severity"], item["task"], item["times"]) == ("critical", task, 2)
    assert f"push after the fence, by {run.id}: origin/main" in item["reason"]
    assert commit[:12] in item["reason"]
    (words,) = [words for words in told if words.startswith("commit after the fence")]
    assert f"{run.id}: on main: {commit[:12]} by Zombie <zombie@example.org>" in words
    assert (meters["zombie_tripped", "commit"], meters["zombie_tripped", "push"]) == (1, 1)


@pytest.mark.criterion("G24")
def test_whoever_runs_something_next_is_warned_until_somebody_deals_with_it(
    zombie: tuple[Walk, str],
):
    walk, _ = zombie
    act(walk)

    answer = walk.tg("run", "--gate", "test -f made", "--", "touch", "made")

    assert "is fenced off, and somebody acted for it: truegreen inbox" in answer.err
    assert "critical" in walk.tg("inbox").out
    (item,) = walk.tg("inbox", "--json").json()["inbox"]
    done = walk.tg("resolve", item["id"][:-2], "--outcome", "found and killed it", "--json")
    assert (done.json()["item"], done.json()["state"]) == (item["id"], "resolved")
    assert walk.tg("inbox").out == "nothing waits for anybody\n"


@pytest.mark.criterion("G24")
def test_a_hook_that_a_zombie_calls_is_told_too(zombie: tuple[Walk, str], tmp_path: Path):
    """It still has the environment of its run; the door of the run is gone."""
    walk, task = zombie
    with closing(walk.ledger()) as ledger:
        (run,) = ledger.dossier(task).runs
    called = subprocess.run(
        [sys.executable, "-I", "-S", hook.__file__, "claude-code", "PreToolUse", str(state())],
        input=json.dumps({"session_id": "any", "tool_name": "Bash"}).encode(),
        env={
            "TRUEGREEN_RUN": run.id,
            "TRUEGREEN_SOCKET": str(tmp_path / "door"),
            "TRUEGREEN_TOKEN_FILE": str(tmp_path / "token"),
        },
        capture_output=True,
        check=False,
    )
    assert called.returncode == 2, called
    assert "hooks refused 1 calls for fenced runs" in walk.tg("doctor").out
    (item,) = walk.tg("inbox", "--json").json()["inbox"]
    assert f"hook after the fence, by {run.id}: claude-code PreToolUse" in item["reason"]
    assert "hooks refused" not in walk.tg("doctor").out
