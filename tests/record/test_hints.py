"""Whoever listens is told that something was queued; nothing hangs on it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.record.lives import OPERATOR, brought, opened
from truegreen.model import TaskStatus
from truegreen.record.hints import folder_of
from truegreen.record.ledger import Ledger, open_ledger


def until(true: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)


@contextmanager
def listening(ledger: Ledger) -> Iterator[list[float]]:
    heard: list[float] = []
    over = threading.Event()
    beat = lambda: heard.append(time.monotonic())  # noqa: E731 - one line
    thread = threading.Thread(target=lambda: ledger.listen(beat, over), daemon=True)
    thread.start()
    time.sleep(0.3)
    heard.clear()
    yield heard
    over.set()
    thread.join(10)
    assert not thread.is_alive()


def test_a_new_task_is_heard_of_at_once(store_url: str, ledger: Ledger) -> None:
    other = open_ledger(store_url)
    with listening(other) as heard:
        before = time.monotonic()
        opened(ledger)
        until(lambda: heard)
        assert heard[0] - before < 0.5
    other.close()


def test_a_task_that_goes_back_into_the_queue_is_heard_of(ledger: Ledger) -> None:
    task, _ = brought(ledger, TaskStatus.FAILED)
    with listening(ledger) as heard:
        ledger.retry(task.id, actor=OPERATOR, reason="once more")
        until(lambda: heard)


def test_what_queues_nothing_tells_nobody(ledger: Ledger) -> None:
    task = opened(ledger)
    with listening(ledger) as heard:
        ledger.cancel(task.id, actor=OPERATOR, reason="no")
        time.sleep(0.2)
        assert heard == []


def test_a_socket_that_nobody_has_any_more_is_taken_away(sqlite_url: str, tmp_path: Path) -> None:
    with_long_name = f"sqlite://{tmp_path}/{'x' * 100}.db"
    ledger = open_ledger(with_long_name)
    with listening(ledger) as heard:
        folder = folder_of(with_long_name.removeprefix("sqlite://"))
        (listener,) = os.listdir(folder)
        os.symlink("/nowhere", f"{folder}/dead")
        opened(ledger)
        until(lambda: heard)
    assert listener not in os.listdir(folder)
    ledger.close()
