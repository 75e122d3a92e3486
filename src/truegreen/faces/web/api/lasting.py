"""What takes its time: it goes on only as long as whoever began it could begin it now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from truegreen.errors import TruegreenError, Unavailable
from truegreen.faces.web.identity import identify
from truegreen.faces.web.routes import Visit

ASK_SECONDS = 5.0
"""So often it is asked."""


class Welcome:
    """Whether who began something may go on with it; asked again every few seconds."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._asked = anyio.current_time()

    async def lasts(self) -> bool:
        """Not if a token was revoked, a run is over, or the server lets everybody go."""
        if self._visit.house.live.closed:
            return False
        if anyio.current_time() - self._asked < ASK_SECONDS:
            return True
        self._asked = anyio.current_time()
        return await anyio.to_thread.run_sync(may_go_on, self._visit)


@asynccontextmanager
async def while_welcome(visit: Visit) -> AsyncIterator[None]:
    """What is done inside is cut off when they are not welcome any more, also while they dawdle."""
    welcome = Welcome(visit)
    with anyio.CancelScope() as scope:
        watching = asyncio.create_task(_watch(welcome, scope))
        try:
            yield
        finally:
            watching.cancel()
    if scope.cancelled_caught:
        await anyio.to_thread.run_sync(identify, visit.house.ledger, visit.request)  # says why
        raise Unavailable("the server ends")


async def _watch(welcome: Welcome, scope: anyio.CancelScope) -> None:
    lasts = True
    while lasts:
        await asyncio.sleep(ASK_SECONDS)
        lasts = await welcome.lasts()
    scope.cancel()


def may_go_on(visit: Visit) -> bool:
    """Whether who began to read could begin now: a token may be revoked meanwhile."""
    try:
        return identify(visit.house.ledger, visit.request) == visit.actor
    except TruegreenError:
        return False
