"""The installed scheduler: what it prints, how it is ended, and what it leaves to others."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faces.conftest import SCRIPT
from tests.walk.conftest import Walk, shell, until
from truegreen.config import Config
from truegreen.faces.cli import root
from truegreen.faces.cli import run as running
from truegreen.faces.cli.frame import Frame
from truegreen.model import ExitDetail, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.supervisor.holder import holder_name


@contextmanager
def scheduler(walk: Walk, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A scheduler that works while the test goes on, and is gone afterwards."""
    process = subprocess.Popen(
        [SCRIPT, "scheduler", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=walk.environ(),
        cwd=walk.folder,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def added(walk: Walk, command: str, *words: str) -> str:
    answer = walk.tg("add", "--json", "--gate", "test -s out.txt", *words, *shell(command))
    task: str = answer.json()["id"]
    return task


def test_it_says_what_starts_and_how_it_ended_on_both_axes(walk: Walk) -> None:
    first = added(walk, "echo x >> out.txt", "--title", "good")
    other = added(walk, "true", "--title", "waits", "--depends-on", first, "--max-attempts", "1")
    done = walk.tg("scheduler", "--once")
    assert (done.status, done.out) == (0, "carried out 1: 1 succeeded\n")
    lines = done.err.splitlines()
    assert lines[0] == f"{first}  starts  good"
    assert lines[-2].startswith(f"{first}  run   ● exited  done · completed")
    assert lines[-1].startswith(f"{first}  task  ● succeeded  A2")
    second = walk.tg("scheduler", "--once", "--json").json()
    assert second["counts"] == {"succeeded": 1}
    assert [task["id"] for task in second["tasks"]] == [other]


@pytest.mark.criterion("K07")
def test_what_somebody_runs_here_and_now_is_not_taken_from_them(walk: Walk) -> None:
    with scheduler(walk, "--json") as process:
        ready = added(walk, "echo x >> out.txt")
        ledger = walk.ledger()
        until(lambda: ledger.task(ready).status is TaskStatus.SUCCEEDED)
        for _ in range(3):
            got = walk.run("--gate", "test -s out.txt", *shell("echo x >> out.txt"))
            assert (got.status, len(got.task["runs"])) == (0, 1)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    summary = json.loads(out)
    assert [task["id"] for task in summary["tasks"]] == [ready]
    assert summary["refused"] == []


def test_a_task_that_is_run_here_is_reserved_from_its_first_moment(
    walk: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[tuple[str, str]]] = []

    def look(_frame: Frame, _config: Config, ledger: Ledger, task: str) -> int:
        seen.append(ledger.reservations(""))
        assert [name for name, _ in seen[0]] == [task]
        return 0

    monkeypatch.chdir(walk.folder)
    monkeypatch.setattr(running, "carry_out", look)
    assert root.run(["run", "--json", "--gate", "true", *shell("true")]) == 0
    assert [holder for _, holder in seen[0]] == [holder_name()]


@pytest.mark.criterion("H08", "G18")
def test_the_next_scheduler_goes_on_where_a_killed_one_left_off(walk: Walk) -> None:
    command = "if test -s out.txt; then echo y >> out.txt; else echo x > out.txt; sleep 60; fi"
    with scheduler(walk) as process:
        task = added(walk, command)
        until((walk.folder / "out.txt").exists)
        process.kill()
        process.communicate()
    done = walk.tg("scheduler", "--once", "--json").json()
    assert done["counts"] == {"succeeded": 1}
    dossier = walk.ledger().dossier(task)
    details = [run.exit_detail for run in dossier.runs]
    assert details == [ExitDetail.SUPERVISOR_CRASHED, ExitDetail.COMPLETED]
    assert (walk.folder / "out.txt").read_text() == "x\ny\n"


def test_nobody_inside_of_a_run_starts_a_scheduler(walk: Walk) -> None:
    got = walk.run("--gate", "test -s out.txt", *shell(f"{SCRIPT} scheduler --once 2> out.txt"))
    assert "an agent can declare and ask" in (walk.folder / "out.txt").read_text()
    assert got.status in (0, 1)
