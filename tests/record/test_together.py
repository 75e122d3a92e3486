"""Writers of one process share a commit: one flush, no answer before it, no refusal shared."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw
import pytest

from tests.record.lives import OPERATOR, contract
from tests.record.torture_disk import FailingDisk, RecordingDisk
from tests.record.torture_truth import check_truth
from truegreen.errors import Refused, TruegreenError, Unavailable
from truegreen.record import migrate, together
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

CROWD = 8


@contextmanager
def on(disk: apsw.VFS | None, path: Path) -> Iterator[Ledger]:
    """A ledger whose first pages are on the disk, and a table for what is none of its business."""
    store = SqliteStore(f"sqlite://{path}/truegreen.db", vfs=disk.name if disk else None)  # type: ignore[attr-defined]
    migrate.ensure(store)
    store.script(["CREATE TABLE scratch (n INTEGER CHECK (n > 0))"])
    ledger = Ledger(store)
    try:
        yield ledger
    finally:
        if isinstance(disk, FailingDisk):
            disk.mend()
        ledger.close()


def line_of(ledger: Ledger) -> together.Together[apsw.Connection]:
    assert isinstance(ledger.store, SqliteStore)
    return ledger.store._together


def crowded(ledger: Ledger, deeds: Sequence[Callable[[], object]]) -> list[BaseException | None]:
    """Deeds of as many threads, all of which wait for the same turn; what each was told."""
    line = line_of(ledger)
    told: list[BaseException | None] = [None] * len(deeds)

    def act(number: int) -> None:
        try:
            deeds[number]()
        except BaseException as error:  # noqa: BLE001 - that is what it was told
            told[number] = error

    threads = [threading.Thread(target=act, args=(n,), daemon=True) for n in range(len(deeds))]
    with line._turn:
        for thread in threads:
            thread.start()
        while line._behind < len(deeds):
            time.sleep(0.001)
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return told


def writer(ledger: Ledger, *numbers: int, fails: Exception | None = None) -> Callable[[], None]:
    """Writes numbers in one transaction, and may then be refused."""

    def write() -> None:
        assert isinstance(ledger.store, SqliteStore)
        with ledger.store._all_or_nothing() as connection:
            for number in numbers:
                connection.execute("INSERT INTO scratch VALUES (?)", (number,))
            if fails:
                raise fails

    return write


def written(ledger: Ledger) -> set[int]:
    assert isinstance(ledger.store, SqliteStore)
    with ledger.store._lent() as connection:
        return {n for (n,) in connection.execute("SELECT n FROM scratch")}


def opens(ledger: Ledger, title: str) -> Callable[[], None]:
    def verb() -> None:
        ledger.open(contract(title=title), actor=OPERATOR)

    return verb


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine must not break a group in two."""
    monkeypatch.setattr(together, "LONGEST_SECONDS", 60.0)
    monkeypatch.setattr(together, "_STALLED_SECONDS", 2.0)


@pytest.mark.parametrize(("count", "flushes"), [(1, 1), (CROWD, 1), (together.MOST + 1, 2)])
def test_a_crowd_takes_one_flush_and_nobody_is_answered_before_it(
    tmp_path: Path, count: int, flushes: int
):
    disk = RecordingDisk()
    with on(disk, tmp_path) as ledger:
        opens(ledger, "first")()
        disk.log.clear()

        def acknowledged(verb: Callable[[], None]) -> Callable[[], None]:
            def told() -> None:
                verb()
                disk.acknowledge()

            return told

        told = crowded(ledger, [acknowledged(opens(ledger, f"t{n}")) for n in range(count)])
        assert told == [None] * count
        kinds = [deed.kind for deed in disk.log if deed.kind in ("flush", "acknowledge")]
        assert kinds.count("flush") == flushes
        assert kinds.count("acknowledge") == count
        assert kinds[0] == "flush"
        if flushes == 1:
            assert kinds == ["flush"] + ["acknowledge"] * count
        assert sum(c.tasks for c in ledger.counts()) == count + 1
        check_truth(ledger)


def test_a_commit_is_not_put_off_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(together, "LONGEST_SECONDS", 0.0)
    disk = RecordingDisk()
    with on(disk, tmp_path) as ledger:
        writer(ledger, 1)()
        disk.log.clear()
        assert crowded(ledger, [writer(ledger, n + 2) for n in range(CROWD)]) == [None] * CROWD
        assert [deed.kind for deed in disk.log].count("flush") == CROWD


@pytest.mark.parametrize("refused", [{0}, {3}, {7}, {1, 2, 6}, set(range(8))])
def test_a_refused_writer_takes_only_its_own_writes_back(tmp_path: Path, refused: set[int]):
    with on(None, tmp_path) as ledger:
        told = crowded(
            ledger,
            [
                writer(ledger, n + 1, n + 101, fails=Refused("no") if n in refused else None)
                for n in range(CROWD)
            ],
        )
        assert {n for n, error in enumerate(told) if error} == refused
        assert all(isinstance(told[n], Refused) for n in refused)
        kept = set(range(CROWD)) - refused
        assert written(ledger) == {n + 1 for n in kept} | {n + 101 for n in kept}


def test_what_the_store_refuses_hurts_nobody_else(tmp_path: Path):
    with on(None, tmp_path) as ledger:
        deeds = [writer(ledger, n, -1) if n % 2 else writer(ledger, n) for n in range(1, CROWD + 1)]
        told = crowded(ledger, deeds)
        assert [isinstance(error, TruegreenError) for error in told] == [True, False] * 4
        assert written(ledger) == {2, 4, 6, 8}
        writer(ledger, 99)()
        assert 99 in written(ledger)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("error", [apsw.FullError("full"), apsw.IOError("broken")])
def test_whoever_was_told_of_success_is_on_the_disk_whatever_fails(
    tmp_path: Path, error: apsw.Error, once: bool
):
    """The n-th call to the disk fails: the first ones, the last ones with the flush, others."""
    calls = fates(tmp_path / "whole", 10**9, error, once=once)[1]
    failures = 0
    for call in (1, 2, calls // 2, *range(calls - 3, calls + 1)):
        told, _ = fates(tmp_path / str(call), call, error, once=once)
        failures += any(told)
        assert all(isinstance(each, Unavailable) for each in told if each)
        again = open_ledger(f"sqlite://{tmp_path}/{call}/truegreen.db")
        titles = {task.title for task in again.page().tasks}
        assert {f"t{n}" for n, error in enumerate(told) if error is None} <= titles
        assert {"first", "afterwards"} <= titles
        check_truth(again)
        again.close()
    assert failures


def fates(
    folder: Path, call: int, error: apsw.Error, *, once: bool
) -> tuple[list[BaseException | None], int]:
    """What a crowd is told when a call fails, and how many calls there were."""
    folder.mkdir()
    disk = FailingDisk()
    with on(disk, folder) as ledger:
        opens(ledger, "first")()
        disk.break_at(call, error, once=once)
        told = crowded(ledger, [opens(ledger, f"t{n}") for n in range(CROWD)])
        calls = call - disk._left
        disk.mend()
        opens(ledger, "afterwards")()
    return told, calls


def test_who_was_left_with_the_commit_and_went_away_is_replaced(tmp_path: Path):
    with on(None, tmp_path) as ledger:
        line_of(ledger)._count(1)  # somebody who never comes
        writer(ledger, 1)()
        assert written(ledger) == {1}
        line_of(ledger)._count(-1)


def test_an_interrupted_writer_leaves_the_commit_of_the_others_done(tmp_path: Path):
    with on(None, tmp_path) as ledger:
        deeds: list[Callable[[], object]] = [writer(ledger, n) for n in range(1, CROWD + 1)]
        deeds.append(writer(ledger, 50, fails=KeyboardInterrupt()))  # type: ignore[arg-type]
        told = crowded(ledger, deeds)
        assert [type(error) for error in told if error] == [KeyboardInterrupt]
        assert written(ledger) == set(range(1, CROWD + 1))


def test_a_forked_child_does_not_wait_for_the_turn_of_a_thread_it_has_not(tmp_path: Path):
    with on(None, tmp_path) as ledger:
        with line_of(ledger)._turn:
            child = os.fork()
            if not child:
                threading.Timer(20, os._exit, (1,)).start()
                writer(ledger, 1)()
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        writer(ledger, 2)()
        assert written(ledger) == {1, 2}
