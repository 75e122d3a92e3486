"""Everybody who calls at once: nobody takes the threads of the others, nobody waits in one.

A call has a thread while it does something. While it waits it has none, and is looked after now and
then. Who calls what is not known here.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio
import anyio.to_thread

from truegreen.errors import Unavailable
from truegreen.faces.documents import Document
from truegreen.faces.mcp.seats import Waiting

T = TypeVar("T")
Report = Callable[[str], Awaitable[None]]
"""Says to the client how far a call has come."""
THREADS, THREADS_EACH = 16, 4
WAITS, WAITS_EACH = 512, 16
_QUICK_LOOKS = 40
_QUICK_SECONDS, _SLOW_SECONDS = 0.25, 1.0
"""Most answers come soon; what takes longer than ten seconds may take a second more."""
_TOLD_SECONDS = 5.0


class Caller:
    """One of them, with all the calls that it makes at once."""

    def __init__(self, threads: anyio.CapacityLimiter) -> None:
        self._threads = threads
        self._own = anyio.CapacityLimiter(THREADS_EACH)
        self.calls = 0
        self.waits = 0

    async def do(self, work: Callable[[], T]) -> T:
        """Something in a thread, when it is this caller's turn."""
        async with self._own:
            return await anyio.to_thread.run_sync(work, limiter=self._threads)

    async def wait_for(self, waiting: Waiting, report: Report) -> Document:
        """What is not there yet; how long it takes is told now and then."""
        begun, told, looks = time.monotonic(), 0.0, 0
        try:
            while (found := await self.do(waiting.look)) is None:
                now = time.monotonic()
                if now >= told:
                    await report(f"{waiting.words} for {now - begun:.0f} s")
                    told = now + _TOLD_SECONDS
                looks += 1
                await anyio.sleep(_QUICK_SECONDS if looks <= _QUICK_LOOKS else _SLOW_SECONDS)
            return found
        finally:
            waiting.leave()


class Crowd:
    """All callers of one process."""

    def __init__(self) -> None:
        self._threads = anyio.CapacityLimiter(THREADS)
        self._callers: dict[str, Caller] = {}

    @contextmanager
    def caller(self, name: str) -> Iterator[Caller]:
        """Whoever goes by a name, for one call."""
        caller = self._callers.setdefault(name, Caller(self._threads))
        caller.calls += 1
        try:
            yield caller
        finally:
            caller.calls -= 1
            if not caller.calls:
                del self._callers[name]

    @contextmanager
    def patience(self, caller: Caller) -> Iterator[None]:
        """Room for a call that may wait; refused, before anything is done, where there is none."""
        if caller.waits >= WAITS_EACH:
            raise Unavailable(f"{caller.waits} calls of yours wait already: let one of them end")
        if sum(each.waits for each in self._callers.values()) >= WAITS:
            raise Unavailable("too many calls wait already: try again in a while")
        caller.waits += 1
        try:
            yield
        finally:
            caller.waits -= 1
