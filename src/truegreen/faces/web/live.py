"""Who listens: the history is read once for all of them, and each gets what is new, once.

Each listener knows how far it has come. What is new is kept for a while for everybody; whoever is
slower than that reads the history itself, and misses nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from itertools import takewhile

import anyio.to_thread

from truegreen.errors import TruegreenError
from truegreen.faces.web.seats import Seats
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.reads import Told

Reach = tuple[int, int]
LOOK_SECONDS = 0.25
_PATIENCE_SECONDS = 2.0
"""After so long without news a listener looks whether anybody still reads."""
_KEPT = 1000


class Live:
    """Reads the feed while anybody listens."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._reader: asyncio.Task[None] | None = None
        self._kept: deque[Told] = deque(maxlen=_KEPT)
        self._since: Reach = (0, 0)
        """Whatever came after this, as far as was read, is among what is kept."""
        self._reached: Reach = (0, 0)
        self._news = asyncio.Event()
        self.seats = Seats()
        """For all whose requests last."""
        self.closed = False
        """Whether everybody was let go."""
        self.listeners = 0
        """How many listen now."""
        self.unreachable = False
        """Whether the store could not be read at the last look."""

    async def events(self, after: Reach | None) -> AsyncIterator[Told]:
        """What is new after an event, or after now; ends when everybody is let go."""
        reached = after if after is not None else await self.newest()
        self.listeners += 1
        try:
            while not self.closed:
                self._see_to_the_reader()
                news = self._news
                batch = await self._after(reached)
                for told in batch:
                    reached = reach_of(told)
                    yield told
                if not batch:
                    await _waited(news)
        finally:
            self.listeners -= 1

    async def newest(self) -> Reach:
        """Where the feed ends now: nothing that commits later comes before it."""
        return await anyio.to_thread.run_sync(self._newest)

    async def _after(self, reached: Reach) -> list[Told]:
        if reached >= self._since:
            # From the end: what is new is little, what is kept is much, and many ask for it.
            fresh = takewhile(lambda told: reach_of(told) > reached, reversed(self._kept))
            return [*fresh][::-1]
        return await anyio.to_thread.run_sync(self._ledger.feed, reached)

    def _see_to_the_reader(self) -> None:
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read())

    def _newest(self) -> Reach:
        latest = self._ledger.latest_events(limit=1)
        reached = (0, 0) if not latest else (latest[0].event.xact, latest[0].event.key - 1)
        while batch := self._ledger.feed(reached):
            reached = reach_of(batch[-1])
        return reached

    async def _read(self) -> None:
        """Look again and again as long as anybody listens; a store out of reach is waited for."""
        begun = False
        while self.listeners and not self.closed:
            try:
                await (self._look() if begun else self._begin())
                begun, self.unreachable = True, False
            except TruegreenError:
                self.unreachable = True
            await asyncio.sleep(LOOK_SECONDS)

    async def _begin(self) -> None:
        self._reached = self._since = await self.newest()
        self._kept.clear()
        self._tell()

    async def _look(self) -> None:
        batch = await anyio.to_thread.run_sync(self._ledger.feed, self._reached)
        if batch:
            self._reached = reach_of(batch[-1])
            self._keep(batch)

    def _keep(self, batch: list[Told]) -> None:
        for told in batch:
            if len(self._kept) == _KEPT:
                self._since = reach_of(self._kept[0])
            self._kept.append(told)
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def close(self) -> None:
        """Let everybody go."""
        self.closed = True
        self._tell()
        if self._reader:
            self._reader.cancel()


async def _waited(news: asyncio.Event) -> None:
    """Until something is new, or for a while."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await news.wait()
    except TimeoutError:
        return


def reach_of(told: Told) -> Reach:
    """Where an event stands in the feed."""
    return told.event.xact, told.event.key
