"""Breakers and limits where agents really run: what is held back goes on by itself later."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.stage import ACTS, Clock, Heard, Stage, staged
from truegreen.contract import Breakers, Budget, Caps, Limit, Per
from truegreen.model import TaskStatus
from truegreen.record.holds import Hold
from truegreen.record.ledger.limits import Leeway
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.prepared import within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

S = TaskStatus
BREAKS = f"test -e mended || kill -9 $$; echo acted >> {ACTS}"
TASKS = 8


@pytest.fixture
def stage(sqlite_url: str, tmp_path: Path, own_tools: None) -> Iterator[Stage]:
    """A stage with default settings."""
    stage = staged(sqlite_url, tmp_path)
    yield stage
    stage.ledger.close()


@pytest.mark.criterion("I10", "I14", "C20")
def test_an_agent_that_breaks_each_time_is_stopped_and_goes_on_by_itself_once_it_is_mended(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(stage.ledger, monkeypatch)
    tasks = [stage.add(BREAKS, budget=Budget(attempts=3)).id for _ in range(TASKS)]
    scheduler = stage.scheduler(seats=3)
    scheduler.once()
    [found] = stage.ledger.breakers()
    runs = [len(stage.ledger.dossier(task).runs) for task in tasks]
    assert (found.breaker.kind, found.state) == ("agent", "open")
    assert sum(runs) <= 4 * 3 + 3  # four use up their attempts, three are under way
    waiting = [task for task in tasks if stage.ledger.task(task).status is S.QUEUED]
    untouched = [task for task, number in zip(tasks, runs, strict=True) if not number]
    assert untouched
    assert {stage.ledger.task(task).attempts for task in untouched} == {0}
    (stage.folder / "mended").touch()
    scheduler.once()
    assert stage.acts == []  # the pause is not over
    clock.minutes(1.1)
    deadline = time.monotonic() + 60
    while any(stage.ledger.task(task).status is S.QUEUED for task in waiting):
        assert time.monotonic() < deadline
        with closing(stage.scheduler()) as another:
            another.once()
        clock.minutes(0.5)
    scheduler.close()
    assert {stage.ledger.task(task).status for task in waiting} == {S.SUCCEEDED}
    assert [each.state for each in stage.ledger.breakers()] == ["closed"]


@pytest.mark.criterion("I11", "I14")
def test_what_a_run_may_spend_is_cut_to_what_is_left_and_set_aside(stage: Stage) -> None:
    stage.ledger.keep_terms("f", Breakers(), [Limit(per=Per.DAY, cost_usd=3.0)])
    folders = [stage.folder / name for name in "ab"]  # a folder has one task at a time
    for folder in folders:
        folder.mkdir()
    work = f"sleep 3; echo acted >> {ACTS}"
    tasks = [stage.add(work, cwd=str(folder)).id for folder in folders]
    scheduler = stage.scheduler(Heard())
    assert scheduler.dispatch() == tasks  # both are free, and either may begin first
    deadline = time.monotonic() + 20
    while not (begun := [task for task in tasks if stage.ledger.task(task).status is S.RUNNING]):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    [first], [second] = begun, [task for task in tasks if task not in begun]
    assert stage.ledger.limits()[0].set_aside == 3_000_000
    assert stage.ledger.why(second).hold in (Hold.SPENT, Hold.RESERVED)
    before = stage.ledger.task(second)
    assert Supervisor(stage.ledger, stage.place).carry(second) == before
    scheduler.drain()
    assert stage.ledger.task(first).status is S.SUCCEEDED
    scheduler.close()
    with closing(stage.scheduler()) as another:
        another.once()  # what the first did not need is free again
    assert stage.ledger.task(second).status is S.SUCCEEDED


def test_caps_are_cut_by_limits_and_never_raised() -> None:
    caps = Caps(cost_usd=5.0, tokens=100)
    assert within(caps, Leeway(None, None)) == caps
    assert within(caps, Leeway(50.0, 1000)) == caps
    cut = within(caps, Leeway(2.0, 10))
    assert (cut.cost_usd, cut.tokens, cut.turns) == (2.0, 10, caps.turns)
    least = within(caps, Leeway(0.0, 0))
    assert (least.cost_usd, least.tokens) == (0.01, 1)
