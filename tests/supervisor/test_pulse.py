"""The pulse of a run beside the one who records its end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stage import ACTS, Stage, staged
from truegreen.app import place_of
from truegreen.config import load_config
from truegreen.contract import Gate, GateKind
from truegreen.model import TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.supervisor.pulse import LEASE_SECONDS

DATABASES = ("sqlite",)

SLOW = Gate(name="slow", kind=GateKind.RUN, command=("sh", "-c", f"sleep 1; test -s {ACTS}"))


@pytest.fixture
def stage(sqlite_url: str, tmp_path: Path, own_tools: None) -> Iterator[Stage]:
    stage = staged(sqlite_url, tmp_path)
    yield stage
    stage.ledger.close()


def test_a_pulse_does_not_take_our_own_end_of_a_run_for_somebody_else_s(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Ledger.end_run

    def slowly(self: Ledger, *given: Any, **more: Any) -> Any:
        task = recorded(self, *given, **more)
        time.sleep(0.7)  # a busy machine: the pulse looks several times before we go on
        return task

    monkeypatch.setattr(Ledger, "end_run", slowly)
    task = stage.add(gates=(SLOW,))
    assert stage.play() == [task.id]
    dossier = stage.ledger.dossier(task.id)
    assert dossier.task.status is TaskStatus.SUCCEEDED, dossier.findings


def test_no_variable_of_the_environment_changes_the_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUEGREEN_SHORT_LEASE", "0.5")
    config = load_config(os.environ, str(tmp_path), store=f"sqlite://{tmp_path}/truegreen.db")
    assert place_of(config).lease == LEASE_SECONDS
