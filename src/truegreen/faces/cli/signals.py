"""What the keys and signals of a terminal mean while something runs: once gently, twice at once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible(stop: Callable[..., None]) -> Iterator[None]:
    """Ask to stop at the first signal, and end it at once at the second."""
    asked = False

    def heard(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            sys.stderr.write("\nstopping; once more kills it at once\n")
        stop(at_once=asked)
        asked = True

    before = {number: signal.signal(number, heard) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
