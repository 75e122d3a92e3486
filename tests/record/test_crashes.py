"""Kill -9 of those who write, and of the server: what was acknowledged stays, all or nothing."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import S
from tests.record.torture_truth import check_story, check_truth, has_reached, stories
from tests.record.torture_verbs import living
from tests.record.torture_writer import Acknowledged, Nursery
from tests.repeat import repeated
from truegreen.errors import Unavailable
from truegreen.facts import Verdict
from truegreen.model import FindingOutcome, Outcome, RunStatus
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from tests.postgres_server import PostgresServer

KILLS = {"sqlite": repeated(16), "postgresql": repeated(10)}


def recovered(ledger: Ledger) -> None:
    """What a supervisor does after a restart: whoever is silent is lost, or its checks go on."""
    while late := ledger.overdue():
        for overdue in late:
            if overdue.status is S.RUNNING:
                ledger.lose(overdue)
                continue
            ticket = ledger.adopt(overdue, holder="restart")
            digest = ledger.task(overdue.task).contract_digest
            run, _ = ledger.run(overdue.run)
            found = [f.outcome for f in ledger.dossier(overdue.task).findings]
            red = FindingOutcome.FAILED in found
            ledger.judge(
                ticket,
                Verdict(
                    outcome=Outcome.FAILED if red else Outcome.UNKNOWN,
                    reason="the checks died with their supervisor",
                    digest=run.digest,
                    contract_digest=digest,
                ),
            )


def check_converged(ledger: Ledger, green_before: set[str]) -> None:
    """After recovery no run is left open, and restarting has made nothing green."""
    recovered(ledger)
    for story in stories(ledger):
        check_story(story)
        assert story.task.status not in (S.RUNNING, S.PENDING_EVAL, S.FAILED_PENDING_EVAL)
        assert [run for run in story.runs if run.exit_reason is None] == []
        for run in story.runs:
            assert run.verdict is not Outcome.PASSED or story.task.id in green_before
            assert run.status is not RunStatus.LOST or run.verdict is Outcome.UNKNOWN
    assert {s.task.id for s in stories(ledger) if s.task.status is S.SUCCEEDED} == green_before
    check_truth(ledger)


@pytest.mark.criterion("M03", "M04", "M05", "M07")
def test_killed_writers_lose_nothing_that_was_acknowledged(store_url: str, tmp_path: Path) -> None:
    dice = random.Random(7)  # noqa: S311 - no secret
    ledger = open_ledger(store_url)
    acknowledged: list[Acknowledged] = []
    with Nursery(store_url) as nursery:
        for kill in range(KILLS[store_url.split(":", 1)[0]] // 2):
            writers = [nursery.writer(tmp_path / f"{kill}.{n}") for n in range(2)]
            for writer in writers:
                writer.wait_for_note()
            time.sleep(dice.uniform(0, 0.06))
            new = [note for writer in writers for note in writer.kill()]
            if kill % 3 == 0:  # whoever opens it next recovers it; at times that is us
                ledger.close()
                ledger = open_ledger(store_url)
            assert has_reached(ledger, new) == []
            check_truth(ledger, {task for task, _, _ in new})
            acknowledged += new
    assert len(acknowledged) > KILLS[store_url.split(":", 1)[0]]
    assert has_reached(ledger, acknowledged) == []
    ledger.close()
    ledger = open_ledger(store_url)
    green = {s.task.id for s in stories(ledger) if s.task.status is S.SUCCEEDED}
    assert {task for task, _, status in acknowledged if status == "succeeded"} <= green
    check_converged(ledger, green)
    ledger.close()


def descendants(pid: int) -> list[int]:
    """The children of a process; the server's children have none."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in listed.split()]


def kill_all(server: PostgresServer) -> None:
    """SIGKILL for the whole server, as the kernel does when memory is short."""
    status = (server.home / "data" / "postmaster.pid").read_text(encoding="utf-8")
    postmaster = int(status.split()[0])
    os.kill(postmaster, signal.SIGSTOP)  # or it starts new ones meanwhile
    doomed = [*descendants(postmaster), postmaster]
    for pid in doomed:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in doomed):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    # It still says «ready», and whoever starts the server anew would believe it.
    (server.home / "data" / "postmaster.pid").unlink()


def alive(pid: int) -> bool:
    """Whether a process still runs; one that nobody has buried yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.criterion("M03", "M04")
def test_a_crashed_postgres_server_loses_nothing_that_was_acknowledged(
    own_postgres_server: PostgresServer,
) -> None:
    url = own_postgres_server.url(own_postgres_server.create_database())
    ledger = open_ledger(url)
    acknowledged: list[Acknowledged] = []
    unexpected: list[BaseException] = []
    over = threading.Event()

    def write(start: int) -> None:
        number = start
        while not over.is_set():
            number += 4
            try:
                acknowledged.extend(
                    (task.id, task.revision, task.status.value) for task in living(ledger, number)
                )
            except Unavailable:
                time.sleep(0.02)
            except BaseException as error:  # noqa: BLE001 - looked at by the test's thread
                unexpected.append(error)
                return

    writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(4):
            before = len(acknowledged)
            deadline = time.monotonic() + 20
            while len(acknowledged) < before + 40 and time.monotonic() < deadline:
                time.sleep(0.02)
            kill_all(own_postgres_server)
            own_postgres_server.restart()
    finally:
        over.set()
        for writer in writers:
            writer.join()
    assert unexpected == []
    assert len(acknowledged) > 120
    assert has_reached(ledger, acknowledged) == []
    check_converged(ledger, {s.task.id for s in stories(ledger) if s.task.status is S.SUCCEEDED})
    ledger.close()


def test_verbs_and_reads_go_on_after_a_restart_however_many_connections_it_cut(
    own_postgres_server: PostgresServer,
) -> None:
    url = own_postgres_server.url(own_postgres_server.create_database())
    ledger = open_ledger(url)
    barrier = threading.Barrier(12)

    def read() -> None:
        store: Any = ledger.store
        with store._lent():
            barrier.wait(10)

    for round_ in range(2):
        readers = [threading.Thread(target=read) for _ in range(12)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        own_postgres_server.restart()
        if round_:
            assert ledger.counts()
        else:
            assert [task.revision for task in living(ledger, 0)] == [1, 3, 4, 6]
    ledger.close()
