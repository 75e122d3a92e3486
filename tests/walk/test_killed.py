"""kill -9 of `truegreen run` at random points: nothing acts on, nothing turns green, one ending."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.walk.conftest import Walk, shell, until
from truegreen.model import RunStatus, TaskStatus
from truegreen.record.ledger import Ledger

KILLS = int(os.environ.get("TRUEGREEN_KILLS", "50"))
AT_ONCE = 5
BEAT = "while :; do echo >> {}; sleep 0.05; done"
SLOW_GATE = ("--gate", "sh -c 'sleep 0.4; exit 1'")
_LIVE = (RunStatus.STARTING, RunStatus.RUNNING, RunStatus.PAUSED)


def shoot(walk: Walk, number: int, chance: random.Random, isolation: str) -> Path:
    """Start a run, and kill its supervisor at some moment of its life."""
    folder = walk.folder.parent / f"shot-{number}"
    folder.mkdir()
    marker = folder / "beat"
    # Every other agent is soon done, so that the shot falls among the checks.
    agent = BEAT.format(marker) if number % 2 else f"echo {number} > {marker}"
    options = ("--cwd", folder, "--isolation", isolation, "--max-attempts", "1", *SLOW_GATE)
    with walk.start(*options, *shell(agent)) as started:
        # At any moment: before there is a task, while it is prepared, while it works or is checked.
        word = chance.choice([b"", b"tsk_", b"started", b"started"])
        assert started.stderr
        while word and word not in started.stderr.readline() and started.poll() is None:
            pass
        time.sleep(chance.uniform(0, 0.7))
        started.kill()
    return marker


def sizes(markers: list[Path]) -> list[int]:
    return [marker.stat().st_size if marker.exists() else 0 for marker in markers]


@pytest.mark.slow
@pytest.mark.timeout(60 + 5 * KILLS)
@pytest.mark.criterion("H08", "M03", "M05", "G25", "H11")
@pytest.mark.parametrize("isolation", ["jail", "reaper"])
def test_a_killed_supervisor_leaves_no_acting_agent_and_nothing_green(
    walk: Walk, isolation: str
) -> None:
    chance = random.Random(f"{isolation}-{KILLS}")  # noqa: S311 - a load, no secret
    markers: list[Path] = []
    for number in range(KILLS // AT_ONCE):
        markers += _salvo(walk, number * AT_ONCE, chance, isolation)
    time.sleep(1)
    before = sizes(markers)
    time.sleep(0.3)
    assert sizes(markers) == before, "an agent acts on after its supervisor's death"
    recovered = walk.tg("attempt", "tsk_nobody")
    assert recovered.status == 2
    ledger = walk.ledger()
    tasks = ledger.page(limit=1000).tasks
    assert len(tasks) >= KILLS // 4, "most of them got as far as a task"
    for task in tasks:
        check(ledger, task.id)


def _salvo(walk: Walk, first: int, chance: random.Random, isolation: str) -> list[Path]:
    markers: list[Path] = []

    def one(number: int, seed: float) -> None:
        markers.append(shoot(walk, number, random.Random(seed), isolation))  # noqa: S311

    shots = [
        threading.Thread(target=one, args=(first + n, chance.random())) for n in range(AT_ONCE)
    ]
    for shot in shots:
        shot.start()
    for shot in shots:
        shot.join()
    return markers


def check(ledger: Ledger, task_id: str) -> None:
    """One ending per run, nothing live, nothing green."""
    dossier = ledger.dossier(task_id)
    assert dossier.task.status is not TaskStatus.SUCCEEDED
    assert not any(run.status in _LIVE for run in dossier.runs), dossier.runs
    left = Counter(
        told.event.run_id
        for told in ledger.events(task_id)
        if told.event.from_status == "running" and told.event.to_status is not None
    )
    assert all(left[run.id] == 1 for run in dossier.runs), left


@pytest.mark.criterion("H08")
def test_a_run_whose_supervisor_died_is_lost_at_the_next_start(walk: Walk) -> None:
    marker = walk.folder / "beat"
    started = walk.start("--gate", "true", "--max-attempts", "1", *shell(BEAT.format(marker)))
    until(marker.exists)
    started.kill()
    started.communicate()
    walk.run("--gate", "true", *shell("true"))
    ledger = walk.ledger()
    lost = next(t for t in ledger.page().tasks if t.exit_detail == "supervisor_crashed")
    assert (lost.status, lost.run_status, lost.cell) == ("failed", "lost", "outage")


@pytest.mark.criterion("H08", "M03")
def test_checks_that_were_cut_short_leave_it_to_a_person_who_can_have_them_run_again(
    walk: Walk,
) -> None:
    started = walk.start("--gate", "test -f out.txt && sleep 30", *shell("touch out.txt"))
    ledger = walk.ledger()
    until(lambda: ledger.page().tasks and ledger.page().tasks[0].status == "pending_eval")
    task = ledger.page().tasks[0].id
    started.kill()
    started.communicate()
    answer = walk.tg("show", "--json", task)
    assert answer.json()["task_status"] == "needs_review"
    assert "died while checks were under way" in answer.json()["verdict"]["reason"]


def test_an_undecided_task_is_decided_by_a_second_look(walk: Walk) -> None:
    """What stood in the way was the gate, and somebody has mended that."""
    busy = walk.bin / "busy"
    busy.touch()
    (walk.folder / "truegreen.toml").write_text(
        '[defaults]\nbudget = { check_errors = 0 }\n[gates.check]\ntimeout = "2s"\n'
        f'command = ["sh", "-c", "test -f out.txt && {{ test ! -f {busy} || sleep 30; }}"]\n'
    )
    got = walk.run("--gate", "check", *shell("touch out.txt"))
    assert (got.status, got.task["task_status"]) == (5, "needs_review")
    busy.unlink()
    answer = walk.tg("verify", "--json", got.task["id"])
    assert (answer.status, answer.json()["task_status"]) == (0, "succeeded")
    assert walk.ledger().inbox() == []
    told = walk.tg("verify", "--json", got.task["id"]).json()
    assert (told["again"]["outcome"], told["task_status"]) == ("passed", "succeeded")


def test_a_second_look_that_finds_a_check_well_again_is_no_outage(walk: Walk) -> None:
    """The gate answers by now; what is missing is proof, and that is a person's."""
    busy = walk.bin / "busy"
    (walk.folder / "truegreen.toml").write_text(
        '[defaults]\nbudget = { check_errors = 0 }\n[gates.check]\ntimeout = "2s"\n'
        f'command = ["sh", "-c", "test ! -f {busy} || sleep 30"]\n'
    )
    words = ("--gate", "check", "--isolation", "reaper")
    got = walk.run(*words, *shell(f"touch out.txt {busy}"))
    assert (got.status, got.task["task_status"]) == (5, "needs_review")
    busy.unlink()
    answer = walk.tg("verify", "--json", got.task["id"])
    assert (answer.status, answer.json()["task_status"]) == (3, "needs_review")


def test_a_gate_can_be_asked_by_itself(walk: Walk) -> None:
    (walk.folder / "truegreen.toml").write_text("[gates.there]\nkind = 'exists'\npaths = ['x']\n")
    assert walk.tg("gate", "there").status == 1
    (walk.folder / "x").write_text("here\n")
    answer = walk.tg("gate", "there", "--json")
    assert (answer.status, answer.json()["outcome"]) == (0, "passed")
    assert walk.tg("gate", "ther").status == 2
    assert walk.tg("gate", "exit 77").status in (5, 77)
