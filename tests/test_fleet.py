"""Schedulers among others: labels, hosts, their share of a machine, cards, drains and hints."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stage import ACTS, Stage, staged
from truegreen.model import TaskStatus
from truegreen.record.holds import Hold
from truegreen.record.ledger.workers import WorkerState
from truegreen.scheduler import Carried, Scheduler
from truegreen.supervisor.holder import holder_name, node

S = TaskStatus


@pytest.fixture
def stage(store_url: str, tmp_path: Path, own_tools: None) -> Iterator[Stage]:
    stage = staged(store_url, tmp_path)
    yield stage
    stage.ledger.close()


def until(true: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)


def played(stage: Stage, **words: Any) -> list[str]:
    scheduler = Scheduler(stage.ledger, stage.place, **words)
    try:
        return scheduler.tick()
    finally:
        scheduler.close()


@pytest.mark.criterion("K10")
def test_a_task_waits_for_a_worker_with_all_its_labels(stage: Stage) -> None:
    task = stage.add(labels=("gpu", "linux"))
    assert played(stage) == []
    assert played(stage, labels=("gpu",)) == []
    assert stage.ledger.why(task.id, ("gpu",)).hold is Hold.LABELS
    assert played(stage, labels=("linux", "gpu", "more")) == [task.id]


def test_a_task_of_one_host_waits_for_that_host(stage: Stage) -> None:
    away, here = stage.add(host="away"), stage.add(host=node())
    assert played(stage) == [here.id]
    why = stage.ledger.why(away.id, ())
    assert (why.hold, why.host) == (Hold.HOST, "away")
    assert stage.ledger.why(away.id).hold is None, "somebody there could"


@pytest.mark.criterion("K14")
def test_the_share_of_a_machine_counts_all_its_processes(stage: Stage) -> None:
    go = stage.folder / "go"
    tasks = [
        stage.add(
            f"while ! test -e {go}; do sleep 0.02; done; echo x >> {ACTS}", cwd=stage.own(name)
        )
        for name in "123"
    ]
    first = Scheduler(stage.ledger, stage.place, seats=3, most_here=2)
    second = Scheduler(stage.ledger, stage.place, seats=3, most_here=2)
    assert len(first.tick()) == 2
    assert second.tick() == []
    assert stage.ledger.task(tasks[2].id).attempts == 0, "waiting costs nothing"
    go.touch()
    first.drain()
    assert second.dispatch() == [tasks[2].id]
    first.close()
    second.close()


def test_a_scheduler_has_a_card_while_it_runs(stage: Stage) -> None:
    scheduler = Scheduler(stage.ledger, stage.place, seats=3, labels=("gpu",))
    thread = threading.Thread(target=scheduler.run)
    thread.start()
    until(stage.ledger.workers)
    (card,) = stage.ledger.workers()
    assert (card.worker.name, card.worker.seats, card.labels) == (node(), 3, ("gpu",))
    assert (card.state, card.worker.holder) == (WorkerState.READY, holder_name())
    scheduler.rest()
    thread.join(20)
    scheduler.close()
    assert stage.ledger.workers() == []


def test_a_worker_that_fell_silent_is_stale_and_holds_nothing_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()
    stage.ledger.enlist("away/1/b/2/3", "away", seats=2, draining=True)
    stage.ledger.reserve(task.id, "away/1/b/2/3")
    (card,) = stage.ledger.workers()
    assert card.state is WorkerState.DRAINING
    assert played(stage) == []
    monkeypatch.setattr("truegreen.record.ledger.workers.STALE_SECONDS", -1.0)
    (card,) = stage.ledger.workers()
    assert card.state is WorkerState.STALE
    assert played(stage) == [task.id]


def test_a_rest_lets_an_attempt_end_and_begins_no_other(stage: Stage) -> None:
    task = stage.add("touch begun; while ! test -e go; do sleep 0.02; done; exit 1")
    scheduler = stage.scheduler(seats=1)
    scheduler.tick()
    until((stage.folder / "begun").exists)
    scheduler.rest()
    (stage.folder / "go").touch()
    scheduler.drain()
    scheduler.close()
    dossier = stage.ledger.dossier(task.id)
    assert (dossier.task.status, len(dossier.runs)) == (S.QUEUED, 1)
    assert scheduler.dispatch() == []


def running(scheduler: Scheduler) -> threading.Thread:
    thread = threading.Thread(target=scheduler.run)
    thread.start()
    return thread


@pytest.mark.parametrize("hints", [True, False])
def test_what_is_added_starts_at_once_by_a_hint_and_soon_without(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, hints: bool
) -> None:
    store = stage.ledger.store
    if hints:  # by itself it would not look before the test is over
        monkeypatch.setattr("truegreen.scheduler._BUSY_SECONDS", 600.0)
        monkeypatch.setattr("truegreen.scheduler._IDLE_SECONDS", 600.0)
    else:
        monkeypatch.setattr(type(store), "hint", lambda _: None)
    scheduler = stage.scheduler(seats=1)
    waits: list[float] = []
    hear = scheduler._hear

    def heard(seconds: float = 0.0) -> list[Carried]:
        waits.append(seconds)
        return hear(seconds)

    monkeypatch.setattr(scheduler, "_hear", heard)
    thread = running(scheduler)
    if hints:
        while len(waits) < 2:  # nobody listens yet
            store.hint()
            time.sleep(0.05)
    time.sleep(1)  # and nothing else is to be heard; or it is as idle as it gets
    task = stage.add()
    until(lambda: stage.ledger.task(task.id).status is S.SUCCEEDED)
    scheduler.rest()
    thread.join(20)
    scheduler.close()
    assert hints or max(waits) < 2.0
