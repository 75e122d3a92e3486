"""A zombie that no kill can reach acts after terminate: a person is told what it did, and for whom.

At isolation `none` a process that left its group and wiped its environment belongs to nobody. It is
the worst that can be left of a run, and stays on this machine until the test lets it act.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.faces.conftest import SCRIPT
from tests.walk.conftest import Walk, until
from truegreen.doors import hook
from truegreen.errors import Terminated
from truegreen.faces.mcp.seats import DoorSeat

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
    assert b"is terminated; it never acts again" in called.stderr
    assert "calls refused for terminated runs: 1" in walk.tg("doctor").out
    (item,) = walk.tg("inbox", "--json").json()["inbox"]
    assert f"hook after the fence, by {run.id}: claude-code PreToolUse" in item["reason"]
    assert "calls refused" not in walk.tg("doctor").out


# -- a run that had ended before it was terminated -------------------------------------------------

CALLS: dict[str, tuple[tuple[str, ...], bytes, int]] = {
    "hook": (("hook", "PreToolUse"), b'{"session_id": "any", "tool_name": "Bash"}', 2),
    "guard": (("guard", "--", "touch", "../pushed"), b"", 2),
    "credential": (("credential", "get"), b"protocol=https\nhost=example.org\n\n", 0),
    "done": (("done", "--reason", "all of it"), b"", 2),
    "checkpoint": (("checkpoint", "deploy"), b"", 2),
    "announce": (("announce", "built"), b"", 2),
}
KINDS = {"done": "door", "checkpoint": "door", "announce": "door"}


def ended_run(walk: Walk, *words: str) -> tuple[str, str, dict[str, str]]:
    """A task whose run has ended; its run, and the environment that its agent had."""
    outcome = walk.run(*words, "--", "sh", "-c", "env -0 > environment")
    text = (walk.folder / "environment").read_text()
    environ = dict(each.split("=", 1) for each in text.split("\0") if each)
    assert environ["TRUEGREEN_RUN"] == outcome.latest["id"]
    return outcome.task["id"], outcome.latest["id"], environ


def call(walk: Walk, name: str, environ: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """What a process answers that still has the environment of its run."""
    words, given, _ = CALLS[name]
    return subprocess.run(
        [SCRIPT, *words],
        input=given,
        cwd=walk.folder,
        env=environ,
        capture_output=True,
        check=False,
        timeout=50,
    )


@pytest.mark.criterion("G24")
@pytest.mark.parametrize("isolation", ["none", "auto"])
def test_who_acts_for_a_run_that_ended_before_it_was_terminated_is_refused_and_told(
    walk: Walk, isolation: str
):
    task, run, environ = ended_run(walk, "--isolation", isolation)
    for name in CALLS:
        before = call(walk, name, environ)
        assert b"the supervisor of this run does not answer" in before.stderr, name
    assert walk.tg("terminate", task, "--json").json()["task"] == task
    assert walk.tg("inbox", "--json").json()["inbox"] == []  # only who is terminated trips it

    tripped: Counter[str] = Counter()
    for times, name in enumerate(CALLS, 1):
        answer = call(walk, name, environ)

        assert b"terminated" in answer.stderr, answer
        assert run.encode() in answer.stderr, answer
        assert b"does not answer" not in answer.stderr, answer
        assert answer.returncode == CALLS[name][2], answer
        assert answer.stdout == (b"quit=1\n" if name == "credential" else b"")
        assert not (walk.folder.parent / "pushed").exists()
        (item,) = walk.tg("inbox", "--json").json()["inbox"]
        assert (item["severity"], item["task"], item["times"]) == ("critical", task, times), name
        kind = KINDS.get(name, name)
        tripped[kind] += 1
        assert f"{kind} after the fence, by {run}" in item["reason"]
        with closing(walk.ledger()) as ledger:
            assert ledger.meters()["zombie_tripped", kind] == tripped[kind]


def test_an_mcp_server_of_a_terminated_run_says_so_also_without_its_token(walk: Walk):
    task, run, environ = ended_run(walk, "--isolation", "none")
    assert walk.tg("terminate", task, "--json").json()["task"] == task
    token_file = environ["TRUEGREEN_TOKEN_FILE"]
    for times in (1, 2):
        with pytest.raises(Terminated, match=f"{run} is terminated"):
            DoorSeat(environ["TRUEGREEN_SOCKET"], token_file).task()
        (item,) = walk.tg("inbox", "--json").json()["inbox"]
        assert (item["task"], item["times"]) == (task, times)
        token_file = str(walk.folder / "no-token")
