"""Who fell silent is suspected first and taken over later, by a clock that nobody else can move."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.record.lives import BASE, S, declared, opened
from truegreen.errors import Refused, Stale
from truegreen.faces.activity import Pace, activity_of
from truegreen.facts import Ticket
from truegreen.model import ExitDetail, RunStatus
from truegreen.record.ledger import Ledger, Start
from truegreen.supervisor.holder import host_name
from truegreen.supervisor.takeover import Lookout
from truegreen.work.process import Identity, Sweep

DATABASES = ("sqlite",)

AWAY = "elsewhere/1/boot/7/8"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The lookout's own clock, as a test moves it."""
    now = [1000.0]
    monkeypatch.setattr("truegreen.supervisor.takeover.time.clock_gettime", lambda _: now[0])
    return now


def begun(ledger: Ledger, holder: str = AWAY) -> Ticket:
    return ledger.start(opened(ledger).id, Start(holder, lease_seconds=30, base_digest=BASE))


@pytest.mark.criterion("H02", "H04")
def test_silence_is_suspect_first_and_a_loss_only_later(ledger: Ledger, clock: list[float]) -> None:
    ticket, lookout = begun(ledger), Lookout(ledger)
    assert lookout.look() == []
    clock[0] += 29.9
    assert lookout.look() == []
    clock[0] += 1
    (words,) = lookout.look()
    assert "suspect" in words
    assert lookout.look() == [], "it is said once"
    assert ledger.task(ticket.task).status is S.RUNNING
    clock[0] += 3.9
    assert lookout.look() == []
    clock[0] += 1
    (words,) = lookout.look()
    assert "taken over" in words
    run = ledger.run(ticket.run)[0]
    assert (run.status, run.exit_detail) == (RunStatus.LOST, ExitDetail.PROCESS_LOST)
    told = json.loads(run.facts)["taken_over"]
    assert (told["from"], told["death"]) == (AWAY, "by the bound of its guard")
    task = ledger.task(ticket.task)
    assert (task.status, task.attempts, task.fence) == (S.QUEUED, 1, ticket.fence + 1)
    assert lookout.look() == []


@pytest.mark.criterion("H02")
def test_whoever_renews_is_not_suspect(ledger: Ledger, clock: list[float]) -> None:
    ticket, lookout = begun(ledger), Lookout(ledger)
    for _ in range(5):
        lookout.look()
        clock[0] += 20
        time.sleep(0.002)
        ledger.heartbeat(ticket, lease_seconds=30)
    assert lookout.look() == []
    assert ledger.task(ticket.task).status is S.RUNNING


def test_a_renewal_at_the_last_moment_wins(
    ledger: Ledger, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket, lookout = begun(ledger), Lookout(ledger)
    lookout.look()
    clock[0] += 40
    held = lookout._held()
    time.sleep(0.002)
    ledger.heartbeat(ticket, lease_seconds=30)
    monkeypatch.setattr(lookout, "_held", lambda: held)
    assert lookout.look() == []
    assert ledger.task(ticket.task).status is S.RUNNING


@pytest.mark.criterion("H07")
def test_a_clock_of_the_store_that_jumps_ahead_ends_nothing(
    ledger: Ledger, clock: list[float]
) -> None:
    """By the store's clock the lease ran out long ago; by our own it was just renewed."""
    ticket, lookout = begun(ledger), Lookout(ledger)
    with ledger.store.transaction() as tx:
        key = ledger.run(ticket.run)[0].key
        tx.run(
            "take_lease",
            run_key=key,
            token=ticket.lease,
            holder=AWAY,
            boot=tx.boot,
            expires_at=tx.lease_now - 3_600_000_000,
            lasts=30_000_000,
        )
    assert ledger.overdue()
    assert lookout.look() == []
    clock[0] += 29
    assert lookout.look() == []
    assert ledger.task(ticket.task).status is S.RUNNING


@pytest.mark.criterion("H07")
def test_a_clock_of_the_store_that_jumps_back_keeps_nothing_alive(
    ledger: Ledger, clock: list[float]
) -> None:
    """By the store's clock the lease has hours to go; nobody renews it all the same."""
    task = opened(ledger)
    ticket, lookout = begun(ledger, AWAY), Lookout(ledger)
    with ledger.store.transaction() as tx:
        tx.run(
            "take_lease",
            run_key=ledger.run(ticket.run)[0].key,
            token=ticket.lease,
            holder=AWAY,
            boot=tx.boot,
            expires_at=tx.lease_now + 3_600_000_000,
            lasts=30_000_000,
        )
    lookout.look()
    clock[0] += 36
    assert lookout.look()
    assert ledger.task(ticket.task).status is S.QUEUED
    assert ledger.task(task.id).status is S.QUEUED


@pytest.mark.criterion("H03")
def test_who_wakes_up_late_is_refused_everywhere_and_that_is_kept(
    ledger: Ledger, clock: list[float]
) -> None:
    ticket, lookout = begun(ledger), Lookout(ledger)
    lookout.look()
    clock[0] += 40
    assert lookout.look()
    for late in (
        lambda: ledger.heartbeat(ticket),
        lambda: ledger.seen(ticket),
        lambda: declared(ledger, ticket),
    ):
        with pytest.raises(Refused):
            late()
    assert ledger.dossier(ticket.task).refusals


@pytest.mark.criterion("H08")
def test_checks_that_were_under_way_elsewhere_leave_it_to_a_person(
    ledger: Ledger, clock: list[float]
) -> None:
    ticket, lookout = begun(ledger), Lookout(ledger)
    declared(ledger, ticket)
    assert ledger.task(ticket.task).status is S.PENDING_EVAL
    lookout.look()
    clock[0] += 40
    assert lookout.look()
    assert ledger.task(ticket.task).status is S.NEEDS_REVIEW


def test_what_still_lives_on_this_machine_is_killed_first(
    ledger: Ledger, clock: list[float]
) -> None:
    me = subprocess.Popen(["sleep", "60"])
    boot, pid, start = Identity.of(me.pid) or ("", 0, 0)
    ticket = begun(ledger, f"{host_name()}{boot}/{pid}/{start}")
    agent = subprocess.Popen(["sleep", "60"], env={**os.environ, "TRUEGREEN_RUN": ticket.run})
    environ = Path(f"/proc/{agent.pid}/environ")
    while ticket.run.encode() not in environ.read_bytes():
        time.sleep(0.01)  # the kernel shows none before a program has been put in place
    lookout = Lookout(ledger)
    lookout.look()
    clock[0] += 40
    try:
        assert lookout.look()
        assert agent.wait(5) == -9
        told = json.loads(ledger.run(ticket.run)[0].facts)["taken_over"]
        assert told["death"] == "seen"
    finally:
        for process in (me, agent):
            process.kill()
            process.wait()


def test_processes_that_can_t_be_killed_keep_their_run(
    ledger: Ledger, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = begun(ledger, f"{host_name()}b/1/1")
    lookout = Lookout(ledger)
    lookout.look()
    clock[0] += 40
    monkeypatch.setattr("truegreen.supervisor.takeover.sweep", lambda *_: Sweep((), (4711,)))
    (words,) = lookout.look()
    assert "can't be killed (4711)" in words
    assert ledger.task(ticket.task).status is S.RUNNING


def test_a_suspect_is_shown_as_one_and_its_status_stays(ledger: Ledger) -> None:
    ticket = ledger.start(opened(ledger).id, Start(AWAY, lease_seconds=-5, base_digest=BASE))
    (live,) = ledger.live_runs()
    seen = activity_of(live)
    assert seen.pace is Pace.SUSPECT
    assert seen.words.startswith("suspect, its lease ran out 5")
    assert ledger.task(ticket.task).status is S.RUNNING
    ledger.heartbeat(ticket, lease_seconds=30)
    assert activity_of(ledger.live_runs()[0]).pace is not Pace.SUSPECT


def test_a_lease_that_was_renewed_can_t_be_given_up(ledger: Ledger) -> None:
    ticket = begun(ledger)
    (left,) = ledger.owned("")
    time.sleep(0.002)
    ledger.heartbeat(ticket, lease_seconds=30)
    with pytest.raises(Stale):
        ledger.lose(left._replace(gone=True))
