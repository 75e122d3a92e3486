"""What the keys and signals of a terminal mean while something runs: once gently, twice at once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Heard:
    """The first signal that came, if any did."""

    number = 0

    @property
    def by_key(self) -> bool:
        """Whether somebody at the terminal interrupted it."""
        return self.number == signal.SIGINT


class Ending:
    """Everything that a signal ends; what begins after the signal ends at once as well."""

    def __init__(self) -> None:
        self._parts: list[Callable[..., None]] = []
        self._asked = False

    def add(self, stop: Callable[..., None]) -> None:
        """From now on, this is ended, too."""
        self._parts.append(stop)
        if self._asked:
            stop()

    def stop(self, *, at_once: bool = False) -> None:
        """End it all; safe in a signal handler as far as the parts are."""
        self._asked = True
        for part in tuple(self._parts):
            part(at_once=at_once)


@contextmanager
def interruptible(stop: Callable[..., None]) -> Iterator[Heard]:
    """Ask to stop at the first signal, and end it at once at the second."""
    told = Heard()

    def heard(number: int, _frame: FrameType | None) -> None:
        asked = bool(told.number)
        if not asked:
            sys.stderr.write("\nstopping; once more kills it at once\n")
        stop(at_once=asked)
        told.number = told.number or number

    before = {number: signal.signal(number, heard) for number in _SIGNALS}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
