"""The words around terminate: what is refused, what is asked, and what is said first."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable

import pytest

from tests.faces.conftest import SCRIPT, Furnished, Run
from truegreen.faces.cli.paper import Paper
from truegreen.faces.cli.terminate import _draw_ended
from truegreen.model import TaskStatus
from truegreen.record.ledger import open_ledger
from truegreen.supervisor.termination import Elsewhere, Ended

S = TaskStatus


@pytest.mark.criterion("G21")
def test_unknown_is_not_found_and_several_are_ambiguous(tg: Run, furnished: Furnished) -> None:
    tg("terminate", "tsk_zzz", "--json").error("not_found")
    tg("terminate", "nobody", "--json").error("not_found")
    first, *rest = furnished.tasks.values()
    several = next(
        first[:n] for n in range(22, 4, -1) if any(t.startswith(first[:n]) for t in rest)
    )
    body = tg("terminate", several, "--json").error("ambiguous_id")
    assert set(body["allowed"]) <= set(furnished.tasks.values())


@pytest.mark.parametrize(
    "words", [[], ["tsk_1", "--all"], ["tsk_1", "--yes"], ["tsk_1", "--freeze"], ["--all", "x"]]
)
def test_what_can_not_be_meant_is_refused(words: list[str], tg: Run, furnished: Furnished) -> None:
    answer = tg("terminate", *words)
    assert (answer.status, answer.out) == (2, "")
    assert "terminate" in answer.err


@pytest.mark.criterion("G01", "G06", "G09", "G14")
def test_what_matters_comes_first_in_two_lines(tg: Run, furnished: Furnished) -> None:
    task = furnished.tasks[S.SUCCEEDED]
    first, second = tg("terminate", task).out.splitlines()
    assert first == f"{task} is terminated for ever (status before: succeeded)"
    assert second.startswith("  nothing was running; no processes killed here")
    assert tg("show", task, "--json").json()["task_status"] == "succeeded"
    again = tg("terminate", task)
    assert (again.status, again.out.splitlines()[0]) == (
        0,
        f"{task} was already terminated (status before: succeeded)",
    )


@pytest.mark.criterion("G22")
def test_the_kill_switch_asks_on_a_terminal_and_a_no_changes_nothing(
    environ: Callable[..., dict[str, str]], furnished: Furnished
) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"n\n")
    with subprocess.Popen(
        [SCRIPT, "terminate", "--all"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ(),
    ) as process:
        out, err = process.communicate(timeout=50)
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, out) == (130, b"")
    assert b"for ever. Go on?" in err
    ledger = open_ledger(furnished.url)
    assert ledger.task(furnished.tasks[S.QUEUED]).status is S.QUEUED
    assert ledger.frozen() is None
    ledger.close()


@pytest.mark.criterion("G15")
def test_what_is_left_is_named_with_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    far = Elsewhere(run="run_2", task="tsk_1", holder="beta/1/b/2/3", ended=False)
    ended = Ended(
        task="tsk_1",
        agents=("agt_1",),
        outcome="interrupted",
        prior_status="running",
        already_terminated=False,
        survivors=(4711,),
        unconfirmed=("run_1",),
        elsewhere=(far,),
        troubles=("marks could not be written",),
        complete=False,
    )
    _draw_ended(Paper(), ended, "tsk_1")
    lines = capsys.readouterr().out.splitlines()
    assert "is terminated in the record, and not all of it has ended" in lines[0]
    assert "  still alive, out of reach: 4711" in lines
    assert "  run_2 on beta: fenced off, its end is not confirmed" in lines
    assert any("run_1" in line and "can't prove" in line for line in lines)
    assert lines[-1] == "  look again: truegreen terminate tsk_1"
