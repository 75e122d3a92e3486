"""A stage whose work an engine places, quick enough for tests."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stage import Heard, Stage
from truegreen.contract.engines import Engine as Settings
from truegreen.engines import Engine, engine_of
from truegreen.model import TaskStatus
from truegreen.record.rows import Job
from truegreen.scheduler import Placing, Scheduler, placing


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine is asked often, and believed gone soon; nothing else is different."""
    monkeypatch.setattr(placing, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(placing, "_GONE_SECONDS", 0.5)


class Played:
    """A scheduler that hands its work to an engine, moved by the test."""

    def __init__(self, stage: Stage, settings: Settings, engine: Engine | None = None) -> None:
        self.stage, self.heard, self.settings = stage, Heard(), settings
        made = engine or engine_of(settings, os.environ)
        assert made
        self.engine: Engine = made
        placing = Placing(
            stage.ledger,
            self.engine,
            settings,
            stage.place,
            store=stage.ledger.store.url,
            said=self.heard.said,
        )
        self.scheduler = Scheduler(
            stage.ledger, stage.place, self.heard, labels=settings.labels, placing=placing
        )

    def until(self, true: Callable[[], object], seconds: float = 45) -> None:
        """Let the scheduler look until something is so."""
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, f"it did not come true: {self.heard.words}"
            self.scheduler.tick()
            time.sleep(0.1)

    def status(self, task: str) -> TaskStatus:
        return self.stage.ledger.task(task).status

    def until_status(self, task: str, status: TaskStatus) -> None:
        self.until(lambda: self.status(task) is status)

    def jobs(self, task: str) -> list[Job]:
        return self.stage.ledger.jobs_of(task)

    @property
    def idle(self) -> bool:
        return not self.stage.ledger.open_jobs(self.settings.called)


def agents_of(task: str) -> list[int]:
    """The living processes of a task's agents; inside of a jail they have other numbers."""
    mark, found = f"TRUEGREEN_TASK={task}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
