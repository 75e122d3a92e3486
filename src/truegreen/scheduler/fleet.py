"""One scheduler among others: its card in the list of workers, and its share of a machine.

A thread says again and again that it is there; nothing that matters hangs on that.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import path as paths

from truegreen import __version__
from truegreen.errors import TruegreenError
from truegreen.record.holds import HOST_LABEL
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.workers import SEEN_SECONDS
from truegreen.supervisor.holder import holder_name, host_name, node
from truegreen.tuples import NamedTuple

_LOCK = "most-here.lock"
_AGAIN_SECONDS = 2.0


def offered(labels: tuple[str, ...]) -> tuple[str, ...]:
    """What a worker here offers: its labels, and that it is this host and no other."""
    return (*labels, f"{HOST_LABEL}{node()}")


class Card(NamedTuple):
    """What a worker says of itself."""

    labels: tuple[str, ...]
    seats: int
    now: Callable[[], tuple[int, bool]]
    """How many of its seats are taken, and whether it starts nothing more."""


@contextmanager
def present(ledger: Ledger, card: Card) -> Iterator[None]:
    """On the list of workers meanwhile."""
    over = threading.Event()

    def say() -> None:
        busy, draining = card.now()
        words = {"labels": card.labels, "seats": card.seats, "version": __version__}
        ledger.enlist(holder_name(), node(), busy=busy, draining=draining, **words)  # type: ignore[arg-type]

    def again() -> None:
        while not over.wait(SEEN_SECONDS):
            with suppress(TruegreenError, OSError):  # whoever looks sees that it is silent
                say()

    with suppress(TruegreenError, OSError):
        say()
    thread = threading.Thread(target=again, name="present", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(TruegreenError, OSError):
            ledger.dismiss(holder_name())


@contextmanager
def hearing(ledger: Ledger, heard: Callable[[], None]) -> Iterator[None]:
    """Hints that something was queued, meanwhile; whoever gets none looks by itself."""
    over = threading.Event()

    def attend() -> None:
        while not over.is_set():
            with suppress(TruegreenError, OSError):
                ledger.listen(heard, over)
            over.wait(_AGAIN_SECONDS)

    threading.Thread(target=attend, name="hints", daemon=True).start()
    try:
        yield
    finally:
        over.set()


@contextmanager
def counted(ledger: Ledger, state_dir: str, most: int) -> Iterator[int]:
    """How many more tasks this machine may take, by all its processes, until this is left.

    One process at a time counts and takes.
    """
    os.makedirs(state_dir, mode=0o700, exist_ok=True)
    with open(paths.join(state_dir, _LOCK), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        here = host_name()
        taken = {left.task for left in ledger.owned(here)}
        taken |= {task for task, _ in ledger.reservations(here)}
        yield max(0, most - len(taken))
