"""Waiting for something that goes on elsewhere. Whoever waits also ends what the dead left undone.

A run whose supervisor was killed would never end by itself, so looking alone is not enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from truegreen.app import put_right
from truegreen.record.ledger import Ledger

_LOOK_SECONDS = 0.1
_RECOVER_SECONDS = 1.0


class Lookout:
    """Looks again and again, until something is so."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._next = 0.0

    def until(self, is_over: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait for it; says whether it came to be in time."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not is_over():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self.recover()
            time.sleep(_LOOK_SECONDS)
        return True

    def recover(self) -> None:
        """End what the dead left undone; once in a while is enough."""
        if time.monotonic() < self._next:
            return
        put_right(self._ledger)
        self._next = time.monotonic() + _RECOVER_SECONDS
