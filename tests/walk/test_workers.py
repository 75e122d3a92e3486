"""Workers on many hosts and one PostgreSQL: frozen, killed and drained, and never two at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import short_lease
from tests.conftest import missing
from tests.postgres_server import PostgresServer
from tests.stage import ACTS, staged
from truegreen.contract import Budget, Contract, Gate, GateKind, Isolation, QaTerms
from truegreen.facts import Actor
from truegreen.model import ExitDetail, Role, RunStatus, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.supervisor.corridor import Supervisor

LEASE = 3.0
ME = Actor(Role.OPERATOR, "me")
BEAT = 'while :; do echo "$TRUEGREEN_RUN $(date +%s%N)" >> {}; sleep 0.02; done'


def until(true: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.02)


class Fleet:
    """A store, and workers on hosts of any name."""

    def __init__(self, url: str, folder: Path, lease: float = LEASE) -> None:
        self.url, self.folder, self.lease = url, folder, lease
        self.work = folder / "work"
        self.work.mkdir()
        self.started: list[subprocess.Popen[bytes]] = []

    def ledger(self) -> Ledger:
        return open_ledger(self.url)

    def add(self, command: str, **terms: Any) -> str:
        given: dict[str, Any] = {
            "title": "work",
            "command": ("sh", "-c", command),
            "cwd": str(self.work),
            "gates": (Gate(name="made", kind=GateKind.RUN, command=("test", "-e", "made")),),
            "qa": QaTerms(roles=()),
            "budget": Budget(attempts=3),
            **terms,
        }
        with closing(self.ledger()) as ledger:
            return ledger.open(Contract(**given), actor=ME).id

    def worker(self, *words: str, host: str = "") -> subprocess.Popen[bytes]:
        """Another worker, on a host that calls itself so."""
        environ = os.environ | {"TRUEGREEN_STORE": self.url}
        command = [*short_lease.command(self.lease), "worker", *words]
        if host:
            command = ["unshare", "-u", "sh", "-c", f'hostname {host}; exec "$@"', "sh", *command]
        log = (self.folder / "workers.log").open("ab")
        with log:
            made = subprocess.Popen(
                command,
                cwd=self.work,
                env=environ,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self.started.append(made)
        return made

    def log(self) -> str:
        return (self.folder / "workers.log").read_text()


@contextmanager
def closing(ledger: Ledger) -> Iterator[Ledger]:
    try:
        yield ledger
    finally:
        ledger.close()


@pytest.fixture
def fleet(postgres_url: str, tmp_path: Path, own_tools: None) -> Iterator[Fleet]:
    fleet = Fleet(postgres_url, tmp_path)
    yield fleet
    for process in fleet.started:
        process.kill()
        process.wait()


def _fails(words: list[str]) -> bool:
    return subprocess.run(words, check=False, capture_output=True).returncode != 0


@pytest.fixture
def hosts() -> None:
    probe = ["unshare", "-u", "hostname", "elsewhere"]
    if not shutil.which("unshare") or _fails(probe):
        missing("a namespace of names, by which hosts are told apart,")


def beats(file: Path) -> dict[str, tuple[int, int]]:
    """When each run wrote first and last."""
    found: dict[str, tuple[int, int]] = {}
    for line in file.read_text().splitlines():
        run, _, at = line.partition(" ")
        if at.isdigit():
            first = found.get(run, (int(at), 0))[0]
            found[run] = (first, int(at))
    return found


def status(fleet: Fleet, task: str) -> TaskStatus:
    with closing(fleet.ledger()) as ledger:
        return ledger.task(task).status


@pytest.mark.criterion("H02", "H03", "H04")
@pytest.mark.parametrize("isolation", [Isolation.AUTO, Isolation.NONE])
@pytest.mark.slow
def test_a_worker_that_is_frozen_past_its_lease_is_taken_over_and_never_two_live_at_once(
    fleet: Fleet, hosts: None, isolation: Isolation
) -> None:
    beat = fleet.work / "beat"
    task = fleet.add(BEAT.format(beat), isolation=isolation)
    frozen = fleet.worker("--seats", "1", host="a")
    until(beat.exists)
    frozen.send_signal(signal.SIGSTOP)
    fleet.worker("--seats", "1", host="b")
    until(lambda: len(beats(beat)) > 1)
    frozen.send_signal(signal.SIGCONT)
    with closing(fleet.ledger()) as ledger:
        lost, second = ledger.dossier(task).runs[:2]
        assert (lost.status, lost.exit_detail) == (RunStatus.LOST, ExitDetail.PROCESS_LOST)
        told = json.loads(lost.facts)["taken_over"]
        assert (told["death"], told["from"][:2]) == ("by the bound of its guard", "a/")
        assert ledger.task(task).attempts == 1, "it is paid for"
        first_span, second_span = beats(beat)[lost.id], beats(beat)[second.id]
        assert first_span[1] < second_span[0], "both were alive at once"
        time.sleep(1.5)  # whatever the one that woke up might do, it does now
        assert beats(beat)[lost.id] == first_span, "it acted after it was taken over"
        assert ledger.run(lost.id)[0].status is RunStatus.LOST
        assert ledger.run(second.id)[0].exit_reason is None
        assert status(fleet, task) is TaskStatus.RUNNING
    assert frozen.poll() is None, "it lives on, and looks for other work"


@pytest.mark.criterion("H08", "H09")
def test_a_killed_worker_leaves_nobody_and_the_next_one_goes_on_at_once(fleet: Fleet) -> None:
    beat = fleet.work / "beat"
    task = fleet.add(BEAT.format(beat))
    first = fleet.worker("--seats", "1")
    until(beat.exists)
    first.kill()
    first.wait()
    fleet.worker("--seats", "1")
    until(lambda: len(beats(beat)) > 1, 20)
    with closing(fleet.ledger()) as ledger:
        lost = ledger.dossier(task).runs[0]
        assert (lost.status, lost.exit_detail) == ("lost", "supervisor_crashed")
        spans = beats(beat)
        assert spans.pop(lost.id)[1] < next(iter(spans.values()))[0]


@pytest.mark.criterion("K07", "H08")
def test_sigterm_drains_a_worker_its_runs_end_and_nothing_more_starts(fleet: Fleet) -> None:
    first = fleet.add("touch begun; while ! test -e go; do sleep 0.05; done; touch made")
    worker = fleet.worker("--seats", "1")
    until((fleet.work / "begun").exists)
    second = fleet.add("touch other")
    worker.send_signal(signal.SIGTERM)
    with closing(fleet.ledger()) as ledger:
        until(lambda: "starts nothing more; 1 under way" in fleet.log())
        (fleet.work / "go").touch()
        assert worker.wait(30) == 0
        assert ledger.task(first).status is TaskStatus.SUCCEEDED
        assert ledger.task(second).status is TaskStatus.QUEUED
        assert ledger.workers() == []


def test_a_second_signal_ends_runs_and_queues_them_again(fleet: Fleet) -> None:
    task = fleet.add("touch begun; sleep 60")
    worker = fleet.worker("--seats", "1")
    until((fleet.work / "begun").exists)
    worker.send_signal(signal.SIGTERM)
    until(lambda: "starts nothing more" in fleet.log())
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert status(fleet, task) is TaskStatus.QUEUED


def test_a_drain_that_takes_too_long_ends_what_is_under_way(fleet: Fleet) -> None:
    task = fleet.add("touch begun; sleep 60")
    worker = fleet.worker("--seats", "1", "--drain-for", "1s")
    until((fleet.work / "begun").exists)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert status(fleet, task) is TaskStatus.QUEUED


@pytest.mark.criterion("H07", "H02")
def test_runs_survive_a_short_outage_of_the_store(
    own_postgres_server: PostgresServer, tmp_path: Path, own_tools: None
) -> None:
    url = own_postgres_server.url(own_postgres_server.create_database())
    fleet = Fleet(url, tmp_path, lease=20.0)  # a server that starts on a busy machine takes seconds
    try:
        beat = fleet.work / "beat"
        task = fleet.add(BEAT.format(beat))
        fleet.worker("--seats", "1")
        until(beat.exists)
        own_postgres_server.restart()  # as a crash
        lease, written = _lease_ends(url), beat.stat().st_size
        until(lambda: _lease_ends(url) > lease)
        until(lambda: beat.stat().st_size > written)
        assert len(beats(beat)) == 1
        with closing(fleet.ledger()) as ledger:
            assert ledger.task(task).status is TaskStatus.RUNNING
    finally:
        for process in fleet.started:
            process.kill()
            process.wait()


@pytest.mark.criterion("H07", "H02")
def test_an_agent_that_ends_while_the_store_is_away_is_written_down_and_judged_once_it_is_back(
    own_postgres_server: PostgresServer, tmp_path: Path, own_tools: None
) -> None:
    stage = staged(own_postgres_server.url(own_postgres_server.create_database()), tmp_path)
    here, gone = stage.folder / "here", stage.folder / "gone"
    waits = f"touch {here}; until test -e {gone}; do sleep 0.05; done; echo acted >> {ACTS}"
    task = stage.add(waits, budget=Budget(attempts=1)).id
    supervisor = Supervisor(stage.ledger, stage.place._replace(lease=60.0))
    carrying = threading.Thread(target=supervisor.carry, args=[task])
    carrying.start()
    until(here.exists)
    own_postgres_server.stop()
    gone.touch()
    until(lambda: stage.acts)
    time.sleep(1)  # its end is known by now, and nobody is there to be told
    own_postgres_server.start()
    carrying.join(60)
    with closing(stage.ledger):
        assert stage.ledger.task(task).status is TaskStatus.SUCCEEDED


def _lease_ends(url: str) -> int:
    with psycopg.connect(url) as connection:
        ((ends,),) = connection.execute("SELECT expires_at FROM leases").fetchall()
    return int(ends)


@pytest.mark.criterion("H02", "H03")
def test_a_store_that_is_away_for_longer_than_the_lease_ends_runs_and_turns_nothing_green(
    own_postgres_server: PostgresServer, tmp_path: Path, own_tools: None
) -> None:
    fleet = Fleet(own_postgres_server.url(own_postgres_server.create_database()), tmp_path)
    server = _processes_of(own_postgres_server)
    try:
        beat = fleet.work / "beat"
        task = fleet.add(BEAT.format(beat), budget=Budget(attempts=1))
        fleet.worker("--seats", "1")
        until(beat.exists)
        server = _processes_of(own_postgres_server)
        for pid in server:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(LEASE + 1)
        written = beat.stat().st_size
        time.sleep(0.3)
        assert beat.stat().st_size == written, "it lives longer than its lease"
        for pid in server:
            os.kill(pid, signal.SIGCONT)
        until(lambda: status(fleet, task) is TaskStatus.FAILED)
        with closing(fleet.ledger()) as ledger:
            (run,) = ledger.dossier(task).runs
        assert run.exit_reason == "fatal_error"
    finally:
        for pid in server:
            os.kill(pid, signal.SIGCONT)
        for process in fleet.started:
            process.kill()
            process.wait()


def _processes_of(server: PostgresServer) -> list[int]:
    main = (server.home / "data" / "postmaster.pid").read_text().split()[0]
    children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    return [int(main), *map(int, children)]
