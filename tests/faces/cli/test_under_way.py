"""Commands about a run that is really under way: a supervisor, an agent, and somebody else."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faces.conftest import SCRIPT, Run

Environ = Callable[..., dict[str, str]]
# Says who it is, leaves a child that wants no parent, and would go on for a long time.
BUSY = "echo $$; (setsid sleep 600 &) ; echo begun; exec sleep 600"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@contextmanager
def under_way(environ: Environ, work: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    """A `truegreen run` with an agent that goes on until somebody ends it."""
    with subprocess.Popen(
        [SCRIPT, "run", "--cwd", work, "--gate", "test -f made", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environ(),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def the_task(tg: Run) -> str:
    """The one task, as soon as its agent is at work."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        tasks = tg("list", "--json").json()["tasks"]
        if tasks and tasks[0]["run_status"] == "running":
            answer = tg("log", tasks[0]["id"])
            if "begun" in answer.out:
                return str(tasks[0]["id"])
    pytest.fail(f"no agent is at work: {tg('list')}")


def of_run(run: str) -> list[int]:
    """The processes that carry a run's tag."""
    tag = f"TRUEGREEN_RUN={run}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                environment = Path("/proc", entry, "environ").read_bytes()
            except OSError:
                continue
            if tag in environment.split(b"\0"):
                found.append(int(entry))
    return found


def run_of(tg: Run, task: str) -> str:
    return str(tg("show", task, "--json").json()["runs"][-1]["id"])


@pytest.mark.criterion("G11")
def test_stop_ends_a_real_run_and_says_how(environ: Environ, tg: Run, work: Path):
    with under_way(environ, work, BUSY) as process:
        task = the_task(tg)
        run = run_of(tg, task)
        assert len(of_run(run)) >= 2
        answer = tg("stop", task, "--reason", "enough", "--json")
        assert answer.status == 0
        assert of_run(run) == []
        out, _ = process.communicate(timeout=30)
    document = answer.json()
    assert (document["run_status"], document["exit_detail"]) == ("stopped", "stopped")
    assert document["runs"][-1]["ended_by"] == "operator"
    assert document["task_status"] == "canceled"
    assert process.returncode == 6
    assert "\nrun   ○ stopped" in out


@pytest.mark.criterion("G09", "G15")
def test_force_kills_the_whole_tree_at_once_and_for_ever(environ: Environ, tg: Run, work: Path):
    with under_way(environ, work, f"trap '' TERM; {BUSY}") as process:
        task = the_task(tg)
        run = run_of(tg, task)
        document = tg("stop", task, "--force", "--json").json()
        assert of_run(run) == []
        assert (document["outcome"], document["survivors"]) == ("interrupted", [])
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 6, out
    shown = tg("show", task, "--json").json()
    assert (shown["task_status"], shown["exit_detail"]) == ("terminated", "terminated")
    assert [e["event"] for e in shown["events"]].count("terminate") == 1


@pytest.mark.criterion("H08")
def test_a_supervisor_that_is_killed_does_not_hang_who_waits(environ: Environ, tg: Run, work: Path):
    with under_way(environ, work, BUSY) as process:
        task = the_task(tg)
        run = run_of(tg, task)
        with subprocess.Popen(
            [SCRIPT, "wait", task, "--timeout", "40"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environ(),
        ) as waiting:
            assert waiting.stderr
            assert "running" in waiting.stderr.readline()
            process.send_signal(signal.SIGKILL)
            out, err = waiting.communicate(timeout=50)
        assert of_run(run) == []
    assert waiting.returncode == 5
    assert out.splitlines()[0].startswith("run   ✗ lost        fatal_error · supervisor_crashed")
    assert f"next: truegreen retry {task}" in err


def test_follow_shows_a_run_in_the_background_from_its_first_word_to_its_last(
    environ: Environ, tg: Run, work: Path
):
    script = "for n in 1 2 3; do echo $n; sleep 0.2; done; touch made"
    words = ("--cwd", work, "--no-wait", "--gate", "test -f made", "--", "sh", "-c", script)
    task = tg("run", *words).out.strip()
    answer = tg("log", task, "--follow")
    assert (answer.status, answer.out, answer.err) == (0, "1\n2\n3\n", "")
    assert tg("wait", task, "--timeout", "40").status == 0


def test_a_run_in_the_background_is_not_carried_out_by_what_lies_in_its_folder(
    tg: Run, work: Path, tmp_path: Path
):
    for folder in {work, tmp_path}:
        (folder / "truegreen.py").write_text("open('hijacked', 'w').close()\n")
    task = tg(
        "run", "--cwd", work, "--no-wait", "--gate", "test -e made", "--", "touch", "made"
    ).out.strip()
    assert tg("wait", task, "--timeout", "40").status == 0
    assert not any((folder / "hijacked").exists() for folder in (work, tmp_path))


def test_retry_now_carries_the_task_out(tg: Run, work: Path):
    words = ("--cwd", work, "--max-attempts", "1", "--gate", "test -f made")
    first = tg("--json", "run", *words, "--", "sh", "-c", "test -f ready && touch made")
    assert first.status in {1, 3}, first
    (work / "ready").touch()
    answer = tg("retry", first.json()["id"], "--reason", "it is ready now", "--now", "--json")
    assert answer.status == 0
    assert answer.json()["task_status"] == "succeeded"
    assert len(answer.json()["runs"]) == 2


def test_what_was_added_is_carried_out_when_somebody_attempts_it(tg: Run, work: Path):
    words = ("--cwd", work, "--gate", "test -f made", "--title", "later", "--", "touch", "made")
    added = tg("--json", "add", *words).json()
    assert (added["task_status"], added["title"]) == ("queued", "later")
    assert not (work / "made").exists()
    answer = tg("attempt", added["id"], "--json")
    assert (answer.status, answer.json()["task_status"]) == (0, "succeeded")
    assert tg("attempt", added["id"]).status == 2, "what is settled is not attempted again"
