"""Active, slow, stuck: by the time since the last sign, beside the status and never in it."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import agent_of, opened, started
from tests.stage import staged
from tests.table import each_row
from truegreen.contract import Budget, Caps, parse_duration
from truegreen.contract.reading import minutes
from truegreen.faces.activity import Pace, activity_document, activity_look, activity_of, thresholds
from truegreen.faces.documents import page_document, whole
from truegreen.model import Mode, RunStatus
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.supervisor import pulse

if TYPE_CHECKING:
    from pathlib import Path

    from truegreen.record.ledger.overview import LiveRun

GREEN = (40, 190, 90)


def live(ledger: Ledger) -> LiveRun:
    (found,) = ledger.live_runs()
    return found


@each_row(
    ("cap", "slow", "stuck"),
    [
        (None, 120, 600),
        (15 * 60, 120, 450),
        (2 * 3600, 120, 600),
        (20 * 60, 120, 600),
        (60, 15, 30),
        (4, 1, 2),
    ],
)
def test_thresholds_lie_below_the_cap_that_would_end_the_run(
    cap: float | None, slow: float, stuck: float
) -> None:
    assert thresholds(cap) == (slow, stuck)


@pytest.mark.criterion("L18")
@pytest.mark.parametrize(
    ("idle", "pace"),
    [
        (0, Pace.ACTIVE),
        (119.9, Pace.ACTIVE),
        (120, Pace.SLOW),
        (449, Pace.SLOW),
        (450, Pace.STUCK),
        (10_000, Pace.STUCK),
    ],
)
def test_a_run_is_slow_and_then_stuck_as_time_goes_by(
    ledger: Ledger, idle: float, pace: Pace
) -> None:
    ticket = started(ledger)
    ledger.heartbeat(ticket, idle_seconds=0)
    seen = live(ledger)
    assert seen.active_at is not None
    found = activity_of(seen, seen.active_at + int(idle * 1e6))
    assert (found.pace, found.idle_seconds) == (pace, idle)
    assert found.words.startswith(pace)


@pytest.mark.criterion("L18")
def test_a_run_that_gave_no_sign_is_unknown_and_not_active(ledger: Ledger) -> None:
    ticket = started(ledger)
    assert activity_of(live(ledger)).pace is Pace.UNKNOWN
    ledger.heartbeat(ticket)
    found = activity_of(live(ledger))
    assert (found.pace, found.idle_seconds, found.words) == (
        Pace.UNKNOWN,
        None,
        "no sign seen yet",
    )


def test_a_heartbeat_without_a_sign_is_no_sign(ledger: Ledger) -> None:
    ticket = started(ledger)
    ledger.heartbeat(ticket, idle_seconds=300)
    first = live(ledger).active_at
    ledger.heartbeat(ticket)
    assert live(ledger).active_at == first
    assert activity_of(live(ledger)).pace is Pace.SLOW


def test_a_run_that_waits_for_a_person_is_not_called_stuck(ledger: Ledger) -> None:
    ticket = started(ledger, mode=Mode.ASSISTED)
    ledger.heartbeat(ticket, idle_seconds=100_000)
    ledger.checkpoint(ticket, "git push", actor=agent_of(ticket))
    found = activity_of(live(ledger))
    assert (found.pace, found.words) == (Pace.WAITING, "waits for an approval")


def test_a_clock_that_was_set_back_makes_nobody_idle(ledger: Ledger) -> None:
    ledger.heartbeat(started(ledger), idle_seconds=0)
    assert activity_of(live(ledger), 0).idle_seconds == 0


@pytest.mark.criterion("L18")
def test_the_store_tells_the_time_and_the_contract_the_cap(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(sqlite_url)
    now = 10**15
    store: Any = ledger.store
    monkeypatch.setattr(store, "clock", lambda: now)
    ticket = started(ledger, caps=Caps(idle=minutes(1)))
    ledger.heartbeat(ticket, idle_seconds=2)
    assert (live(ledger).idle_cap, live(ledger).looked_at) == (60_000_000, now)
    paces = []
    for _ in range(4):
        paces.append(activity_of(live(ledger)).pace)
        now += 13_000_000
    assert paces == [Pace.ACTIVE, Pace.SLOW, Pace.SLOW, Pace.STUCK]
    ledger.close()


@pytest.mark.criterion("L18")
def test_a_live_task_tells_its_activity_in_json_and_others_none(ledger: Ledger) -> None:
    ticket = started(ledger, title="at work")
    opened(ledger, title="queued")
    ledger.heartbeat(ticket, idle_seconds=300)
    page = ledger.page()
    document = page_document(page, {}, [], ledger.live(page.tasks))
    told = {each["title"]: each["activity"] for each in document["tasks"]}
    assert told["queued"] is None
    assert (told["at work"]["pace"], told["at work"]["run"]) == (Pace.SLOW, ticket.run)
    (brief,) = [each for each in document["tasks"] if each["title"] == "at work"]
    assert brief["run_status"] == "starting"
    shown = whole(ledger, ledger.dossier(ticket.task))
    assert shown["activity"]["active_at"] == told["at work"]["active_at"]
    (queued,) = [task for task in page.tasks if task.title == "queued"]
    assert whole(ledger, ledger.dossier(queued.id))["activity"] is None


def test_a_page_without_live_tasks_asks_the_store_nothing(ledger: Ledger) -> None:
    task = opened(ledger)
    ledger.close()
    assert ledger.live([task]) == {}


@pytest.mark.criterion("L07")
def test_no_pace_is_drawn_green_and_every_one_has_its_own_glyph() -> None:
    looks = [activity_look(pace) for pace in Pace]
    assert GREEN not in {look.rgb for look in looks}
    assert len({look.glyph for look in looks}) == len(looks)
    assert [look.word for look in looks] == list(Pace)


def test_a_document_says_when_the_last_sign_was(ledger: Ledger) -> None:
    ledger.heartbeat(started(ledger), idle_seconds=1)
    document = activity_document(live(ledger))
    assert set(document) == {"pace", "run", "active_at"}
    assert document["active_at"].endswith("Z")


@pytest.mark.usefixtures("own_tools")
@pytest.mark.criterion("L18")
def test_an_agent_that_computes_is_active_and_one_that_sleeps_is_stuck(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real run: silent at work for a second, then asleep; its status is the same all the time."""
    monkeypatch.setattr(pulse, "_RENEW_SECONDS", 0.2)
    stage = staged(sqlite_url, tmp_path)
    computing = f"{sys.executable} -Sc 'import time\nwhile time.process_time() < 0.9: pass'"
    idle = Caps(idle=parse_duration("3s"))
    os.mkfifo(stage.folder / "wake")
    task = stage.add(f"{computing}; read it < wake", caps=idle, budget=Budget(attempts=1))
    since: dict[Pace, float] = {}
    scheduler = threading.Thread(target=stage.play)
    scheduler.start()
    while scheduler.is_alive() and Pace.STUCK not in since:
        for found in stage.ledger.live([stage.ledger.task(task.id)]).values():
            if found.run.status is RunStatus.RUNNING:
                since.setdefault(activity_of(found).pace, time.monotonic())
        time.sleep(0.02)
    handle = os.open(stage.folder / "wake", os.O_RDWR)  # both ends: nobody has to read
    os.write(handle, b"up\n")
    scheduler.join()
    os.close(handle)
    assert list(since) == [Pace.ACTIVE, Pace.SLOW, Pace.STUCK]
    # It would be stuck after 1.5 s, had nobody seen that it computed for one.
    assert since[Pace.STUCK] - since[Pace.ACTIVE] > 2
    stage.ledger.close()
