"""The incident: a completed worker that could not be stopped, woke three times, and acted.

First as it was, so that what follows is known to prevent something; then with terminate.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.lives import OPERATOR
from tests.stage import Clock, Stage, staged
from truegreen.errors import NotRunning, Terminated
from truegreen.facts import WakeCause, WakeState
from truegreen.model import AgentStatus, TaskStatus
from truegreen.record.rows import Task

PAUSES = (10, 12, 15)
"""Minutes between the times that the worker woke up."""


@pytest.fixture
def stage(store_url: str, tmp_path: Path, own_tools: None, shared_tools: Path) -> Iterator[Stage]:
    stage = staged(store_url, tmp_path)
    yield stage
    stage.ledger.close()


@pytest.fixture
def clock(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(stage.ledger, monkeypatch)


def completed(stage: Stage) -> tuple[Task, str]:
    """Step 1 and 2: a worker does its task, and is completed."""
    task = stage.add()
    assert stage.play() == [task.id]
    task = stage.ledger.task(task.id)
    agent = stage.agent_of(task)
    assert (task.status, stage.acts) == (TaskStatus.SUCCEEDED, ["acted"])
    assert stage.ledger.agent(agent).status is AgentStatus.COMPLETED
    return task, agent


def armed(stage: Stage, agent: str) -> list[str]:
    """What will wake it: two schedules, and a message in between."""
    at = (PAUSES[0], sum(PAUSES))
    wakes = [
        stage.ledger.arm(
            agent, "look again", actor=OPERATOR, cause=WakeCause.SCHEDULE, after_seconds=60.0 * m
        )
        for m in at
    ]
    return [wake.id for wake in wakes]


@pytest.mark.criterion("G27", "G04", "G11")
def test_without_terminate_a_completed_worker_wakes_three_times_and_acts(
    stage: Stage, clock: Clock
) -> None:
    task, agent = completed(stage)
    armed(stage, agent)
    # Step 3: it is to be stopped, and can't be.
    with pytest.raises(NotRunning, match=r"not running \(status: succeeded\)"):
        stage.ledger.ask_stop(task.id, actor=OPERATOR)
    assert stage.play() == []
    # Steps 4 to 6: it wakes up, and acts each time.
    for number, minutes in enumerate(PAUSES, 1):
        clock.minutes(minutes)
        if number == 2:
            stage.ledger.send(agent, "thank you", actor=OPERATOR, wake=True)
        assert len(stage.play()) == 1
        assert len(stage.acts) == 1 + number
    assert [w.state for w in stage.ledger.wakes(agent)] == [WakeState.FIRED] * 3
    assert stage.ledger.task(task.id) == task


@pytest.mark.criterion("G27", "G02", "G03", "G04", "G18", "G07")
def test_after_terminate_the_same_worker_never_acts_again(stage: Stage, clock: Clock) -> None:
    task, agent = completed(stage)
    wakes = armed(stage, agent)
    stage.ledger.send(agent, "later", actor=OPERATOR)
    # Step 7: terminate, which works on what is completed.
    assert stage.ledger.terminate(task.id, actor=OPERATOR).outcome == "clean"
    events = len(stage.ledger.house_events())
    for number, minutes in enumerate(PAUSES, 1):
        clock.minutes(minutes)
        if number == 2:
            with pytest.raises(Terminated):
                stage.ledger.send(agent, "thank you", actor=OPERATOR, wake=True)
            with pytest.raises(Terminated):
                stage.ledger.arm(agent, "wake up", actor=OPERATOR)
            with pytest.raises(Terminated):
                stage.ledger.wake(wakes[0])
        # Each time another scheduler, as after a restart.
        assert stage.play() == []
    assert stage.acts == ["acted"]
    assert [w.state for w in stage.ledger.wakes(agent)] == [WakeState.VOID] * 2
    assert len(stage.ledger.messages(agent)) == 1
    assert len(stage.ledger.house_events()) == events
    now = stage.ledger.task(task.id)
    assert (now.status, now.sealed_at is not None) == (TaskStatus.SUCCEEDED, True)
    assert [t.id for t in stage.ledger.page().tasks] == [task.id]


@pytest.mark.criterion("G07", "G08", "G27")
def test_terminate_between_the_wake_up_and_its_start_wins(stage: Stage, clock: Clock) -> None:
    _, agent = completed(stage)
    wake = armed(stage, agent)[0]
    clock.minutes(PAUSES[0])
    queued = stage.ledger.wake(wake)
    assert queued.status is TaskStatus.QUEUED
    stage.ledger.terminate_agent(agent, actor=OPERATOR)
    assert stage.play() == []
    assert stage.acts == ["acted"]
    assert stage.ledger.task(queued.id).status is TaskStatus.TERMINATED
