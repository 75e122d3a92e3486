"""Files are looked at where a task would start: seldom, a few at a time, and holding nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.record.lives import OPERATOR, opened
from truegreen.errors import Held
from truegreen.model import TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.supervisor import awaiting
from truegreen.supervisor.awaiting import Files, until_met
from truegreen.supervisor.holder import node
from truegreen.supervisor.watch import Watch

DATABASES = ("sqlite",)


def waiting_for(ledger: Ledger, path: Path, **terms: str) -> str:
    return opened(ledger, wait_for=(f"file:{path}",), **terms).id


@pytest.mark.criterion("K13")
def test_a_file_is_seen_once_it_is_there(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    task, other = waiting_for(ledger, path), waiting_for(ledger, path, host="elsewhere")
    assert Files(ledger).look() == []
    path.write_text("1,2,3\n")
    os.utime(path, ns=(5_000, 5_000))
    assert Files(ledger).look() == [task]
    (met,) = ledger.conditions(task)
    assert met.facts() == {"host": node(), "size": 6, "changed_at": 5}
    path.unlink()
    assert ledger.why(task).hold is None
    assert ledger.conditions(other)[0].met_at is None


@pytest.mark.criterion("K13")
def test_files_are_looked_at_no_oftener_than_once_a_second(ledger: Ledger, tmp_path: Path) -> None:
    files = Files(ledger)
    files.look()
    task = waiting_for(ledger, tmp_path)
    assert files.look() == []
    assert Files(ledger).look() == [task]


def test_of_many_files_all_have_their_turn(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaiting, "AT_ONCE", 2)
    monkeypatch.setattr(awaiting, "LOOK_SECONDS", 0.0)
    for name in ("a", "b", "c"):
        waiting_for(ledger, tmp_path / name)
    last = waiting_for(ledger, tmp_path)
    files = Files(ledger)
    assert [files.look() for _ in range(2)] == [[], [last]]
    (tmp_path / "a").touch()
    assert len(files.look() + files.look()) == 1


def test_a_path_that_nobody_may_read_is_not_there_yet(ledger: Ledger, tmp_path: Path) -> None:
    waiting_for(ledger, tmp_path / ("x" * 300))
    assert Files(ledger).look() == []


@pytest.mark.criterion("K13")
def test_who_is_not_patient_is_told_what_has_not_happened(ledger: Ledger) -> None:
    task = opened(ledger, wait_for=("message:built", "human:go?"))
    with pytest.raises(Held, match=r"waits for human:go\?, message:built"):
        until_met(ledger, task.id, Watch(), patient=False, is_over=lambda: False)


def test_waiting_ends_with_who_waits_and_with_what_is_called_off(ledger: Ledger) -> None:
    task = opened(ledger, wait_for=("human",))
    assert not until_met(ledger, task.id, Watch(), patient=True, is_over=lambda: True)
    assert ledger.task(task.id).status is TaskStatus.QUEUED
    ledger.deny(task.id, actor=OPERATOR, reason="no")
    assert not until_met(ledger, task.id, Watch(), patient=True, is_over=lambda: False)


@pytest.mark.criterion("K13")
def test_a_time_is_waited_for_by_who_is_patient(ledger: Ledger) -> None:
    later = opened(ledger, wait_for=("time:2h",))
    assert not until_met(ledger, later.id, Watch(), patient=True, is_over=lambda: True)
    assert until_met(ledger, later.id, Watch(), patient=False, is_over=lambda: False)
    soon = opened(ledger, wait_for=("time:1s",))
    assert until_met(ledger, soon.id, Watch(), patient=True, is_over=lambda: False)
    assert ledger.now() >= soon.not_before
