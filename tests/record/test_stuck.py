"""A writer that was frozen half-way does not keep its locks for ever; nobody else is cut off."""

from __future__ import annotations

import threading
import time

import pytest

from tests.record.lives import OPERATOR, opened
from truegreen.errors import TruegreenError
from truegreen.record.ledger import open_ledger


@pytest.mark.criterion("H03")
def test_a_frozen_writer_is_cut_off_and_others_go_on(postgres_url: str) -> None:
    ledger, frozen = open_ledger(postgres_url), open_ledger(postgres_url)
    task = opened(ledger)
    locked, over = threading.Event(), threading.Event()
    ended: list[str] = []

    def freeze() -> None:
        try:
            with frozen.store.transaction() as tx:
                tx.one("task_locked", id=task.id)
                locked.set()
                over.wait(20)
                tx.one("task_locked", id=task.id)
        except TruegreenError as error:
            ended.append(str(error))

    thread = threading.Thread(target=freeze)
    thread.start()
    locked.wait(10)
    assert ledger.free_locks(30) == 0, "it has not been at it for long"
    time.sleep(0.2)
    assert ledger.free_locks(0.1) == 1
    before = time.monotonic()
    ledger.cancel(task.id, actor=OPERATOR, reason="no")
    assert time.monotonic() - before < 5
    over.set()
    thread.join()
    assert ended
    frozen.close()
    ledger.close()


def test_whoever_only_reads_is_left_alone(postgres_url: str) -> None:
    ledger, reader = open_ledger(postgres_url), open_ledger(postgres_url)
    task = opened(ledger)
    with reader.store.snapshot() as tx:
        assert tx.one("task", id=task.id)
        time.sleep(0.2)
        assert ledger.free_locks(0.1) == 0
        assert tx.one("task", id=task.id)
    reader.close()
    ledger.close()
