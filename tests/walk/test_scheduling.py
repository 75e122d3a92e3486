"""The installed scheduler: what it prints, how it is ended, and what it leaves to others."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faces.conftest import SCRIPT
from tests.record.lives import OPERATOR, brought, opened
from tests.walk.conftest import Walk, shell, until
from truegreen.config import Config
from truegreen.faces.cli import root
from truegreen.faces.cli import run as running
from truegreen.faces.cli.frame import Frame
from truegreen.faces.cli.scheduling import Told
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
    after = ("--depends-on", first, "--gate", "test -f more.txt", "--max-attempts", "1")
    other = added(walk, "touch more.txt", "--title", "waits", *after)
    done = walk.tg("scheduler", "--once")
    assert (done.status, done.out) == (0, "carried out 1: 1 succeeded\n")
    assert all(re.match(r"\d\d:\d\d:\d\d  ", line) for line in done.err.splitlines())
    lines = [line[10:] for line in done.err.splitlines()]
    assert lines[0] == f"{first}  starts attempt 1 of 3  good"
    assert lines[-2].startswith(f"{first}  run   ● exited  done · completed")
    assert lines[-1].startswith(f"{first}  task  ● succeeded  A2")
    second = walk.tg("scheduler", "--once", "--json").json()
    assert second["held_back"] == {"counts": {}, "tasks": []}
    assert second["counts"] == {"succeeded": 1}
    assert [task["id"] for task in second["tasks"]] == [other]


def noted(walk: Walk, command: str) -> None:
    text = f'[[notify]]\nname = "ops"\ncommand = ["sh", "-c", "{command}"]\n'
    (walk.folder / "truegreen.toml").write_text(text)


@pytest.mark.criterion("L12")
def test_one_look_sends_the_news_of_its_own_night_also_the_first_time(walk: Walk) -> None:
    news = walk.folder.parent / "news.txt"
    noted(walk, f"cat >> {news}")
    task = added(walk, "true", "--max-attempts", "1")
    done = walk.tg("scheduler", "--once", "--json")
    assert done.status == 0
    assert done.json()["outlets"] == [{"name": "ops", "sent": 1, "failed": 0, "given_up": 0}]
    (line,) = news.read_text().splitlines()
    assert (json.loads(line)["subject"], json.loads(line)["cell"]) == (task, "silent_failure")


def test_news_that_does_not_get_through_is_said_at_the_end_of_one_look(walk: Walk) -> None:
    noted(walk, "exit 3")
    added(walk, "true", "--max-attempts", "1")
    done = walk.tg("scheduler", "--once")
    assert (done.status, done.out) == (0, "carried out 1: 1 failed\n")
    words = "! outlet ops: 0 sent, 1 did not get through; see truegreen outlets"
    assert done.err.count(words) == 1


def test_a_scheduler_sends_news_while_it_looks_for_work(walk: Walk) -> None:
    news = walk.folder.parent / "news.txt"
    noted(walk, f"cat > {news}")
    with scheduler(walk):
        task = added(walk, "true", "--max-attempts", "1")
        until(lambda: news.exists() and news.read_text().endswith("}\n"))
    assert json.loads(news.read_text())["subject"] == task


@pytest.mark.criterion("K07")
def test_what_somebody_runs_here_and_now_is_not_taken_from_them(walk: Walk) -> None:
    with scheduler(walk, "--json") as process:
        ready = added(walk, "echo x >> out.txt")
        ledger = walk.ledger()
        until(lambda: ledger.task(ready).status is TaskStatus.SUCCEEDED)
        for name in "abc":
            got = walk.run("--gate", f"test -s {name}", *shell(f"echo x >> {name}"))
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

    def look(_frame: Frame, _config: Config, ledger: Ledger, task: str, **_: bool) -> int:
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


def test_nobody_is_said_to_be_about_to_carry_out_what_a_killed_scheduler_had(walk: Walk) -> None:
    with scheduler(walk) as process:
        task = added(walk, "echo x > out.txt; sleep 60")
        until((walk.folder / "out.txt").exists)
        process.kill()
        process.communicate()
    (line,) = [each for each in walk.tg("list").out.splitlines() if each.startswith(task)]
    assert "somebody is about to carry it out" not in line
    assert "its lease ran out and its process is gone" in line
    assert walk.ledger().reservations("") == []


def test_nobody_inside_of_a_run_starts_a_scheduler(walk: Walk) -> None:
    got = walk.run("--gate", "test -s out.txt", *shell(f"{SCRIPT} scheduler --once 2> out.txt"))
    assert "an agent can declare and ask" in (walk.folder / "out.txt").read_text()
    assert got.status in (0, 1)


def test_it_says_how_many_could_not_start(walk: Walk, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = walk.ledger()
    failed = brought(ledger, TaskStatus.FAILED)[0]
    waiting = opened(ledger, depends_on=(failed.id,))
    told = Told(ledger, quiet=False)
    held = {
        "task": waiting.id,
        "hold": "depends_on",
        "reason": f"it waits for {failed.id} (failed)",
        "next": [f'truegreen waive {waiting.id} --needs {failed.id} --reason "done by hand"'],
    }
    expected = {"counts": {"depends_on": 1}, "tasks": [held]}
    assert told.left() == {"held_back": expected, "frozen": False}
    words = f"1 held back (depends_on): {waiting.id}  it waits for {failed.id} (failed)"
    assert words in capsys.readouterr().err


def test_lines_that_nobody_reads_stop_no_work(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = os.pipe()
    os.close(out)
    with os.fdopen(into, "w") as closed:
        monkeypatch.setattr(sys, "stderr", closed)
        told = Told(walk.ledger(), quiet=False)
        for words in ("first", "second"):
            told.said(words)


@pytest.mark.criterion("G22")
def test_a_frozen_store_is_refused_before_anything_is_made(
    walk: Walk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(walk.folder)
    ledger = walk.ledger()
    failed, queued = brought(ledger, TaskStatus.FAILED)[0], opened(ledger)
    blocked = brought(ledger, TaskStatus.BLOCKED)[0]
    before = ledger.page().tasks
    agents = ledger.agents()
    ledger.freeze(actor=OPERATOR, reason="a leak")
    for words in (
        ["run", "--gate", "true", *shell("true")],
        ["run", "--no-wait", "--gate", "true", *shell("true")],
        ["attempt", queued.id],
        ["retry", failed.id, "--reason", "once more", "--now"],
        ["unblock", blocked.id, "--now"],
    ):
        assert root.run([words[0], "--json", *words[1:]]) == 2
        error = json.loads(capsys.readouterr().out)["error"]
        assert (error["code"], error["allowed"]) == ("frozen", ["thaw"])
        assert "truegreen thaw --reason" in error["message"]
    assert (ledger.page().tasks, ledger.agents()) == (before, agents)


@pytest.mark.parametrize("most", [1, 2])
def test_a_machine_carries_out_no_more_than_it_was_said_to(walk: Walk, most: int) -> None:
    alone = "mkdir ../here || touch ../together; sleep 1.5; rmdir ../here; echo x >> out.txt"
    for name in "ab":
        (walk.folder / name).mkdir()
        beside = ("--isolation", "none", "--require", "A0", "--cwd", str(walk.folder / name))
        added(walk, alone, *beside)
    done = walk.tg("scheduler", "--once", "--seats", "2", "--most-here", str(most), "--json")
    assert done.json()["counts"] == {"succeeded": 2}
    assert (walk.folder / "together").exists() is (most > 1)


def test_what_bounds_a_machine_bounds_no_engine(walk: Walk) -> None:
    refused = walk.tg("scheduler", "--once", "--most-here", "1", "--executor", "slurm", "--json")
    assert "[engine] most" in str(refused.error("invalid_input")["message"])
