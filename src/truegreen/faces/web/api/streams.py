"""The history as it grows, as Server-Sent Events: who comes back says what it has seen.

Each event has its place in the history for an id. A comment now and then keeps the line open.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Annotated

import anyio
import anyio.to_thread
from msgspec import Meta
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from truegreen.errors import InvalidInput, Stale
from truegreen.faces.documents import encoded, event_document
from truegreen.faces.web.api.lasting import may_go_on
from truegreen.faces.web.api.taking import Id, Taken
from truegreen.faces.web.live import Reach, reach_of
from truegreen.faces.web.redacting import redacted_bytes
from truegreen.faces.web.routes import API, READERS, Visit, route
from truegreen.model import Role
from truegreen.record.ledger.reads import Told

PING_SECONDS = 15
ASK_SECONDS = 5.0
"""So often it is asked whether the listener may still listen."""
_ID = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")
_SSE = "text/event-stream"


class StreamQuery(Taken, frozen=True):
    """Which events; without a beginning, those that are to come."""

    task: Id | None = None
    after: Annotated[str, Meta(pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$")] | None = None


@route("GET", f"{API}/events", READERS, query=StreamQuery, media=_SSE)
async def events(visit: Visit, query: StreamQuery) -> Response:
    """All events as they are written; Last-Event-ID goes on where a listener stopped."""
    after = _after(visit.request, query)
    task = None
    if query.task is not None:
        task = await anyio.to_thread.run_sync(visit.house.ledger.find, "tsk", query.task)
    if visit.request.method == "HEAD":
        return Response(media_type=_SSE)
    if after is not None and after > await visit.house.live.newest():
        raise Stale("this history does not reach so far: another store? begin anew", stale="event")
    told = _told(visit, after, task)
    made = EventSourceResponse(told, ping=PING_SECONDS, headers={"Cache-Control": "no-store"})
    return visit.house.live.seats.kept(visit.actor, made)


def _after(request: Request, query: StreamQuery) -> Reach | None:
    given = request.headers.get("last-event-id") or query.after
    if given is None:
        return None
    found = _ID.fullmatch(given)
    if found is None:
        raise InvalidInput("Last-Event-ID: expected the id of an event of this stream")
    return int(found[1]), int(found[2])


async def _told(visit: Visit, after: Reach | None, task: str | None) -> AsyncIterator[object]:
    """What is told to one listener, as long as it may listen."""
    feed = visit.house.live.events(after)
    asked = anyio.current_time()
    upcoming: asyncio.Future[Told] | None = None
    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(feed))
            await asyncio.wait({upcoming}, timeout=ASK_SECONDS)
            if anyio.current_time() - asked >= ASK_SECONDS:
                asked = anyio.current_time()
                if not await anyio.to_thread.run_sync(may_go_on, visit):
                    return
            if not upcoming.done():
                continue
            told = upcoming.result()
            upcoming = None
            if task in (None, told.task):
                yield _event(visit, told)
    except StopAsyncIteration:
        return  # the server lets everybody go
    finally:
        if upcoming:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)


def _event(visit: Visit, told: Told) -> ServerSentEvent:
    body = _body(told, visit.actor.role is Role.OPERATOR)
    xact, key = reach_of(told)
    return ServerSentEvent(body, event=told.event.event, id=f"{xact}.{key}")


@lru_cache(maxsize=256)
def _body(told: Told, whole: bool) -> str:  # noqa: FBT001 - an answer is kept by its arguments
    """Written once for all who listen: the whole of it, or without what is not for everybody."""
    document = event_document(told)
    body = encoded(document) if whole else redacted_bytes(document)
    return body.decode().rstrip("\n")
