"""How long the processes of a run may live unless their supervisor is heard of again.

Whoever holds a tree together is told a moment at which it kills it, and a later one whenever the
right to it was renewed. So nobody outlives a supervisor that is frozen, cut off or dead. It knows
moments of a clock of this machine, and nothing of leases.
"""

from __future__ import annotations

import os
import threading
import time

LAPSED = "its lease was not renewed in time"
"""How a tree is said to have ended that was not fed."""


class Lifeline:
    """The bound of everything that is started under one tag."""

    def __init__(self, tag: str, until: float, clock: int = time.CLOCK_BOOTTIME) -> None:
        """`clock` is the one that `until` is read from; a guard reads the same."""
        self.clock = clock
        self.until = until
        self._tag = tag
        self._pipes: set[int] = set()
        self._lock = threading.Lock()
        _held[tag] = self

    def now(self) -> float:
        """The clock that counts."""
        return time.clock_gettime(self.clock)

    def late(self) -> bool:
        """Whether nothing of it may live any more."""
        return self.now() >= self.until

    def feed(self, until: float) -> None:
        """They may live until then; told to all that hold a tree."""
        with self._lock:
            self.until = max(self.until, until)
            for pipe in self._pipes:
                self._tell(pipe)

    def attach(self, pipe: int) -> None:
        """From now on this guard is fed, too."""
        with self._lock:
            self._pipes.add(pipe)
            self._tell(pipe)

    def detach(self, pipe: int) -> None:
        """Before its pipe is closed: the number may soon be another file's."""
        with self._lock:
            self._pipes.discard(pipe)

    def close(self) -> None:
        """Nothing more is started under it."""
        if _held.get(self._tag) is self:
            del _held[self._tag]

    def _tell(self, pipe: int) -> None:
        try:
            os.write(pipe, b"\nF%d\n" % int(self.until * 1000))
        except (BrokenPipeError, BlockingIOError):
            return  # gone, or deaf: then it kills, which errs on the safe side


_held: dict[str, Lifeline] = {}


def lifeline_of(tag: str) -> Lifeline | None:
    """What bounds the processes of a tag, if anything does."""
    return _held.get(tag)


def is_late(tag: str) -> bool:
    """Whether nothing of a tag may be started any more."""
    bound = lifeline_of(tag)
    return bound is not None and bound.late()
