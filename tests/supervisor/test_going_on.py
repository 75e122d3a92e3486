"""What an agent is told that goes on, and one that comes after it: nothing of it is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.lives import OPERATOR
from tests.stage import ACTS, Stage, staged
from tests.table import each_row
from truegreen.contract import Budget, Contract, Gate, GateKind
from truegreen.errors import Frozen
from truegreen.model import AgentStatus, ExitDetail, TaskStatus
from truegreen.record.rows import Task
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.roster import Retold, first_words
from truegreen.work.agents import adapter_of

S = TaskStatus
TOLD = "told.txt"
AGENT = f"echo acted >> {ACTS}; (echo ---; cat ${{TRUEGREEN_FEEDBACK:-/dev/null}}) >> {TOLD}"
# Of plain commands alone: for others every file of the environment is looked at.
THREE = Gate(
    name="three",
    kind=GateKind.RUN,
    command=("sh", "-c", f"test ! -e again || wc -l < {ACTS} | grep -q '[3-9]'"),
)


@pytest.fixture
def stage(sqlite_url: str, tmp_path: Path, own_tools: None) -> Iterator[Stage]:
    stage = staged(sqlite_url, tmp_path)
    yield stage
    stage.ledger.close()


def followed(stage: Stage, command: str = AGENT, words: str = "do more", **terms: object) -> Task:
    """A task that a wake-up made after one that succeeded; its first attempt is red."""
    budget = Budget(attempts=3, reentries=0)
    first = stage.add(command, gates=(THREE,), budget=budget, **terms)
    stage.play()
    assert stage.ledger.task(first.id).status is S.SUCCEEDED
    (stage.folder / "again").touch()
    agent = stage.agent_of(first)
    stage.ledger.send(agent, "mind the gap", actor=OPERATOR)
    wake = stage.ledger.arm(agent, words, actor=OPERATOR)
    return stage.ledger.wake(wake.id)


def told(stage: Stage) -> list[str]:
    return (stage.folder / TOLD).read_text().split("---\n")[1:]


def test_a_second_attempt_goes_on_in_the_conversation_that_was_woken(stage: Stage) -> None:
    task = followed(stage)
    stage.play()
    dossier = stage.ledger.dossier(task.id)
    assert dossier.task.status is S.SUCCEEDED
    assert [run.agent_key for run in dossier.runs] == [dossier.agents[0].key] * 2
    _, first, second = told(stage)
    assert first.startswith(f"You are resumed by {OPERATOR}:\ndo more")
    assert f"Message from {OPERATOR}:\nmind the gap" in first
    assert second.startswith("These checks failed")
    assert "mind the gap" not in second


def test_a_new_agent_hears_what_the_one_before_was_told(stage: Stage) -> None:
    crash = f"{AGENT}; test $(wc -l < {ACTS}) -ne 2"
    task = followed(stage, crash)
    stage.play()
    dossier = stage.ledger.dossier(task.id)
    assert dossier.task.status is S.SUCCEEDED
    assert len({run.agent_key for run in dossier.runs}) == 2
    assert dossier.agents[0].status is AgentStatus.ERROR
    last = told(stage)[-1]
    assert f"Message from {OPERATOR}:\ndo more" in last
    assert f"Message from {OPERATOR}:\nmind the gap" in last


def test_a_task_that_nobody_was_woken_for_tells_nobody_anything(stage: Stage) -> None:
    task = stage.add(AGENT, gates=(THREE,), budget=Budget(attempts=3, reentries=0))
    (stage.folder / "again").touch()
    stage.play()
    dossier = stage.ledger.dossier(task.id)
    assert len({run.agent_key for run in dossier.runs}) == 3
    assert "Message from" not in "".join(told(stage))


def test_what_was_not_heard_because_nothing_started_is_told_again(stage: Stage) -> None:
    task = followed(stage, resume=("./resumed",))
    agent = stage.ledger.agents()[0]
    stage.play()
    dossier = stage.ledger.dossier(task.id)
    assert dossier.runs[-1].exit_detail is ExitDetail.LAUNCH_FAILED
    assert stage.ledger.at_hand([agent])[agent.key].unread == 1
    program = stage.folder / "resumed"
    program.write_text(f"#!/bin/sh\n{AGENT}\n{AGENT}\n")
    program.chmod(0o755)
    stage.ledger.retry(task.id, actor=OPERATOR, reason="it is there now")
    stage.play()
    dossier = stage.ledger.dossier(task.id)
    assert dossier.task.status is S.SUCCEEDED
    assert {run.agent_key for run in dossier.runs} == {agent.key}
    assert "do more" in told(stage)[-1]
    assert "mind the gap" in told(stage)[-1]
    assert stage.ledger.at_hand([agent])[agent.key].unread == 0


def test_messages_that_do_not_fit_wait_for_the_next_time(stage: Stage) -> None:
    first = stage.add(AGENT, gates=(THREE,), budget=Budget(attempts=3, reentries=3))
    stage.play()
    agent = stage.agent_of(first)
    for letter in "abc":
        stage.ledger.send(agent, letter * 60_000, actor=OPERATOR)
    task = stage.ledger.wake(stage.ledger.arm(agent, "x" * 60_000, actor=OPERATOR).id)
    stage.play()
    assert stage.ledger.task(task.id).status is S.SUCCEEDED
    heard = told(stage)[1:]
    assert [[c for c in "xabc" if c * 60_000 in each] for each in heard] == [[c] for c in "xabc"]
    assert max(len(each) for each in heard) < 128 * 1024


CLAUDE = ("claude", "-p", "do it")


@each_row(
    ("command", "retold", "prompt", "file"),
    [
        (CLAUDE, Retold(), "do it", ""),
        (CLAUDE, Retold("Message from x:\n-y"), "do it\n\nMessage from x:\n-y", ""),
        (CLAUDE, Retold("Message from x:\n-y", instead=True), "Message from x:\n-y", ""),
        (("codex", "exec", "do it"), Retold("said", instead=True), "said", ""),
        (("claude", "-p", "{goal}"), Retold("said"), "the goal\n\nsaid", ""),
        (("claude", "-p", "{goal}"), Retold("said", instead=True), "said", ""),
        (("claude", "-p", "do it {feedback}"), Retold("said"), "do it said", "said"),
        (("sh", "-c", "do it"), Retold("said", instead=True), "do it", "said"),
    ],
)
def test_a_new_agent_is_asked_for_what_its_task_is_about(
    command: tuple[str, ...], retold: Retold, prompt: str, file: str
) -> None:
    adapter = adapter_of("command", command)
    contract = Contract(title="t", goal="the goal", command=command)
    argv, feedback = first_words(adapter, contract, retold, "")
    assert prompt in argv
    assert "do it" not in argv or "do it" in prompt
    assert feedback == file


def test_a_start_that_is_refused_leaves_no_agent_behind(stage: Stage) -> None:
    task = stage.add()
    stage.ledger.freeze(actor=OPERATOR, reason="stop")
    for start in (Supervisor.carry, Supervisor.attempt):
        with pytest.raises(Frozen):
            start(Supervisor(stage.ledger, stage.place), task.id)
    assert stage.ledger.agents() == []
    assert stage.ledger.reservations("") == []
