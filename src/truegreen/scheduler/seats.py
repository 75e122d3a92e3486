"""Seats, and whoever follows what happens in them.

A seat is a thread that carries out one task at a time; what it carries out is decided elsewhere.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from queue import SimpleQueue

from truegreen.model import TaskStatus
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.watch import Watch
from truegreen.tuples import NamedTuple

TURN_SECONDS = 60.0
"""A loop that has not come round for so long hangs, or can't reach what it needs."""


class Carried(NamedTuple):
    """What became of a task that was given a seat."""

    task: str
    status: TaskStatus | None
    error: str = ""
    """Why it was not carried on."""
    refused: bool = False
    """The record did not let it start: others were quicker, or it may not start any more."""
    unheard: str = ""
    """What went wrong with whoever was told."""


class Audience:
    """Whoever follows a scheduler; a face shows what it likes. Seats speak at the same time."""

    def watch(self, task: str) -> Watch:  # noqa: ARG002 - for those who show it
        """Who watches the walk of one task."""
        return Watch()

    def said(self, words: str) -> None:
        """Something that the scheduler did besides."""

    def ended(self, carried: Carried) -> None:
        """A seat is free again."""


class Seat:
    """A thread that carries out one task at a time, and lives as long as the scheduler.

    Agents die with the thread that started them, so it must not end before they do.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.free = True
        self.supervisor: Supervisor | None = None

    def take(self, job: Callable[[], None]) -> None:
        """Do this next; the job frees the seat itself."""
        self.free = False
        if self._thread is None:
            name = f"seat-{self.number}"
            self._thread = threading.Thread(target=self._sit, name=name, daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def close(self) -> None:
        """Let the thread end, after what it is at."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()

    @property
    def dead(self) -> bool:
        """Whether nobody sits here any more."""
        return self._thread is not None and not self._thread.is_alive()

    def _sit(self) -> None:
        while job := self._jobs.get():
            job()


def faults_of(turned: float, seats: Iterable[Seat]) -> list[str]:
    """What is wrong with a loop that came round last at this time, and with its seats."""
    late = time.monotonic() - turned
    words = [f"its loop has not come round for {late:.0f} s"] if late > TURN_SECONDS else []
    return words + [f"seat {seat.number} is dead" for seat in seats if seat.dead]
