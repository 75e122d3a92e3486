"""The words around terminate: what is refused, what is asked, and what is said first."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable

import pytest

from tests.faces.conftest import SCRIPT, Furnished, Run
from tests.record.lives import OPERATOR
from truegreen.faces.cli.paper import Paper
from truegreen.faces.cli.terminate import _draw_ended
from truegreen.model import TaskStatus
from truegreen.record.ledger import open_ledger
from truegreen.record.ledger.fencing import Lost
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
    assert all(name.startswith(several) for name in body["allowed"])
    assert len(body["allowed"]) <= 8
    assert all(name in body["message"] for name in body["allowed"])


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
    assert first == f"{task} keeps its verdict (succeeded); sealed for ever"
    assert second.startswith("  nothing was running; no processes killed here")
    assert tg("show", task, "--json").json()["task_status"] == "succeeded"
    (row,) = [line for line in tg("list").out.splitlines() if line.startswith(task)]
    assert "  sealed · " in row
    again = tg("terminate", task)
    words = f"{task} was terminated already; nothing changed (status: succeeded)\n"
    assert (again.status, again.out) == (0, words)


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
    assert (process.returncode, out) == (2, b"")
    assert b"for ever. Go on?" in err
    assert b"truegreen: nothing was ended" in err
    ledger = open_ledger(furnished.url)
    assert ledger.task(furnished.tasks[S.QUEUED]).status is S.QUEUED
    assert ledger.frozen() is None
    ledger.close()


@pytest.mark.criterion("G15")
def test_what_is_left_is_named_with_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    far = Elsewhere(run="run_2", task="tsk_1", holder="beta/1/b/2/3", ended=False)
    ended = Ended(
        task="tsk_1",
        agents=("agt_1", "agt_0"),
        retired=("agt_1",),
        lost=Lost(messages=1, wakes=2),
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
    assert "1 agent retired; 2 wake-ups called off; 1 unread message never to be read" in lines[1]
    assert "is terminated in the record, and not all of it has ended" in lines[0]
    assert "  still alive, out of reach: 4711" in lines
    assert "  run_2 on beta: fenced off, its end is not confirmed" in lines
    assert any("run_1" in line and "can't prove" in line for line in lines)
    assert lines[-1] == "  look again: truegreen terminate tsk_1"


@pytest.mark.criterion("G22")
def test_a_freeze_that_stays_is_said_with_who_and_since_when_and_so_is_its_end(
    tg: Run, furnished: Furnished
) -> None:
    kept = tg("terminate", "--all", "--yes", "--freeze", "--reason", "enough").out.splitlines()[-1]
    assert kept.startswith("  frozen since ")
    assert "terminate --all --freeze: enough; nothing starts until: truegreen thaw" in kept
    again = tg("terminate", "--all", "--yes", "--json").json()
    assert (again["frozen"], again["freeze"]["reason"]) == (
        True,
        "terminate --all --freeze: enough",
    )
    frozen = tg("freeze", "--reason", "mine").out
    assert "was frozen already; nothing changed" in frozen
    first, second = tg("thaw", "--reason", "all clear").out.splitlines()
    assert first == "the store is thawed: runs may start"
    assert second.startswith("  had been frozen by operator:")
    assert " since " in second
    assert "nothing changed" in tg("thaw", "--reason", "again").out
    assert tg("terminate", "--all", "--yes").out.splitlines()[-1] == "  thawed: runs may start"


@pytest.mark.criterion("G22")
def test_a_rehearsal_counts_and_marks_who_is_terminated_already(
    tg: Run, furnished: Furnished
) -> None:
    ledger = open_ledger(furnished.url)
    above = ledger.register_agent("lead", "sha256:1", actor=OPERATOR)
    below = ledger.register_agent("below", "sha256:2", actor=OPERATOR, parent=above.id)
    ledger.terminate_agent(below.id, actor=OPERATOR)
    ledger.close()
    lines = tg("terminate", above.id, "--dry-run").out.splitlines()
    assert lines[0] == "would end no tasks and 1 agent for ever; nothing was changed"
    assert f"  {below.id}  agent below, terminated already" in lines
    assert tg("terminate", above.id, "--json").json()["retired"] == [above.id]
