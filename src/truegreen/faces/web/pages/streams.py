"""Live pages: each part of a page is rendered once, and the same bytes go to all who look at it.

A rendering goes out when the record has changed, at most once a second; between them a beat says
that the record was looked at and is still as shown. What can't be looked at is said to be stale,
never beaten over. Nobody queues: who is slow gets the newest rendering next, or is let go.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TypeVar
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from truegreen.errors import NotFound, TruegreenError, Unavailable
from truegreen.faces.times import instant
from truegreen.faces.web.answering import error_response
from truegreen.faces.web.house import House
from truegreen.faces.web.identity import identify
from truegreen.faces.web.live import Live
from truegreen.faces.web.pages.rendering import fragment, now
from truegreen.faces.web.routes import READERS, Visit, route
from truegreen.faces.web.seats import Crowded
from truegreen.model import Cell, Role
from truegreen.tuples import NamedTuple

Fragment = Callable[[House, Role, str], str]
"""Renders a part of a page for a role; the text is what follows the page's name in the address."""
F = TypeVar("F", bound=Fragment)
BEAT_SECONDS = 5.0
APART_SECONDS = 1.0
AGES_SECONDS = 20.0
"""«2 minutes ago» is not true for ever: so often a page is rendered again without any news."""
SEND_SECONDS = 10.0
RETRY_MS = 1000
_MEDIA = "text/event-stream"
_FRAGMENTS: dict[str, Fragment] = {}


def live(page: str) -> Callable[[F], F]:
    """The function renders what changes on a page: `/live/PAGE`, or `/live/PAGE/…` with a text."""

    def keep(function: F) -> F:
        _FRAGMENTS[page] = function
        return function

    return keep


class Sight(NamedTuple):
    """What is looked at, and as whom."""

    page: str
    role: Role
    subject: str = ""


class Frame(NamedTuple):
    """Bytes to be sent, and their number: another number is something new."""

    number: int = 0
    data: bytes = b""


class Broadcast:
    """One sight, rendered while somebody follows it."""

    def __init__(self, house: House, sight: Sight) -> None:
        self._house, self._sight = house, sight
        self._followers = 0
        self._numbers = 0
        self._rendering, self._pulse = Frame(), Frame()
        self._turn = asyncio.Event()
        self._news = asyncio.Event()
        self._head = -1
        self._stale = False
        self._rendered_at = float("-inf")
        self._beginning = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self.over = False

    async def begin(self) -> None:
        """Draw it for the first who comes; what will never be there is refused, and not begun."""
        async with self._beginning:
            if self._followers or self._is_fresh:
                return
            try:
                await self._draw()
            except Unavailable:
                return  # it is waited for, and said meanwhile
            except TruegreenError:
                self.over = True
                raise

    @property
    def forsaken(self) -> bool:
        """Whether nobody follows it any more, or ever came to."""
        awaited = self._followers or self._is_fresh or self._beginning.locked()
        return self.over or (self._rendering.number > 0 and not awaited)

    @property
    def _is_fresh(self) -> bool:
        return time.monotonic() - self._rendered_at < APART_SECONDS

    async def follow(self) -> AsyncGenerator[bytes]:
        """Every rendering that there is time for, and beats between them."""
        self._join()
        seen_rendering = seen_pulse = 0
        try:
            while not self.over:
                turn = self._turn
                if self._rendering.number != seen_rendering:
                    seen_rendering, seen_pulse = self._rendering.number, self._pulse.number
                    yield self._rendering.data
                elif self._pulse.number != seen_pulse:
                    seen_pulse = self._pulse.number
                    yield self._pulse.data
                else:
                    await turn.wait()
        finally:
            self._leave()

    def _join(self) -> None:
        self._followers += 1
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())

    def _leave(self) -> None:
        self._followers -= 1
        if not self._followers and self._keeper:
            self._keeper.cancel()
            self.over = True

    # -- keeping it true --------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Until everybody is let go; whoever waits for news is let go at once then."""
        listening = asyncio.create_task(self._listen())
        if keeper := asyncio.current_task():
            listening.add_done_callback(lambda _: keeper.cancel())
        try:
            if not self._is_fresh:
                await self._render()
            while True:
                await self._news_or_beat()
        finally:
            listening.cancel()
            self.over = True
            self._wake()

    async def _listen(self) -> None:
        """Ends when everybody is let go; a store that is out of reach is asked again."""
        while True:
            try:
                async for _ in self._house.live.events(None):
                    self._news.set()
            except TruegreenError:
                await asyncio.sleep(APART_SECONDS)
            else:
                return

    async def _news_or_beat(self) -> None:
        try:
            async with asyncio.timeout(APART_SECONDS if self._stale else BEAT_SECONDS):
                await self._news.wait()
        except TimeoutError:
            await self._beat()
        else:
            await self._render()

    async def _beat(self) -> None:
        """Look whether the record is still where it was; no beat is sent without a look."""
        try:
            head = await anyio.to_thread.run_sync(self._house.ledger.head)
        except TruegreenError as error:
            self._say_stale(error)
            return
        old = time.monotonic() - self._rendered_at >= AGES_SECONDS
        if old or self._stale or head != self._head:
            await self._render()
        else:
            self._pulse = self._framed("beat", instant(now()) or "")
            self._wake()

    async def _render(self) -> None:
        await asyncio.sleep(max(0.0, self._rendered_at + APART_SECONDS - time.monotonic()))
        self._news.clear()
        try:
            await self._draw()
        except TruegreenError as error:
            self._say_stale(error)

    async def _draw(self) -> None:
        self._head, text = await anyio.to_thread.run_sync(self._rendered)
        self._stale, self._rendered_at = False, time.monotonic()
        self._rendering = self._framed("", text)
        self._wake()

    def _rendered(self) -> tuple[int, str]:
        # The head is read first: what is written meanwhile is rendered at the next look.
        head = self._house.ledger.head()
        drawn = _FRAGMENTS[self._sight.page](self._house, self._sight.role, self._sight.subject)
        return head, f"{drawn}{live_head(self._house)}"

    def _say_stale(self, error: TruegreenError) -> None:
        self._stale = True
        self._pulse = self._framed("stale", error.code)
        self._wake()

    def _framed(self, event: str, data: str) -> Frame:
        self._numbers += 1
        return Frame(self._numbers, encoded(event, data, self._numbers))

    def _wake(self) -> None:
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()


def encoded(event: str, data: str, number: int) -> bytes:
    """One message of a stream of events."""
    head = f"event: {event}\n" if event else f"retry: {RETRY_MS}\nid: {number}\n"
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"{head}{lines}\n".encode()


def live_head(house: House) -> str:
    """What the frame around a page counts, and the moment of the rendering."""
    ledger = house.ledger
    silent = sum(c.tasks for c in ledger.counts() if c.cell is Cell.SILENT_FAILURE)
    waiting = sum(pile.unread for pile in ledger.piles())
    return fragment("live_head.html", rendered=now(), silent=silent, waiting=waiting)


# --- the route


_BROADCASTS: WeakKeyDictionary[Live, dict[Sight, Broadcast]] = WeakKeyDictionary()


def broadcast(house: House, sight: Sight) -> Broadcast:
    """What is broadcast of a sight already, or a new one."""
    known = _BROADCASTS.setdefault(house.live, {})
    for gone in [each for each, made in known.items() if made.forsaken]:
        del known[gone]
    return known.setdefault(sight, Broadcast(house, sight))


class Stream(StreamingResponse):
    """A stream that lets go of whoever does not read it."""

    async def stream_response(self, send: Send) -> None:
        """Send what comes; the end of it, or of patience, is the end."""
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async for chunk in self.body_iterator:
            with anyio.move_on_after(SEND_SECONDS) as patience:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if patience.cancelled_caught:
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


@route("GET", "/live/{page}", READERS, media=_MEDIA)
async def live_page(visit: Visit, page: str) -> Response:
    """A page's changing part, again whenever it has changed."""
    return await _stream(visit, page, visit.request.url.query)


@route("GET", "/live/{page}/{subject}", READERS, media=_MEDIA)
async def live_subject(visit: Visit, page: str, subject: str) -> Response:
    """The changing part of a page about one thing."""
    return await _stream(visit, page, subject)


async def _stream(visit: Visit, page: str, subject: str) -> Response:
    if page not in _FRAGMENTS:
        raise NotFound(f"nothing is live under {page!r}", allowed=tuple(_FRAGMENTS))
    headers = {"X-Accel-Buffering": "no"}
    if visit.request.method == "HEAD":
        return Response(headers=headers, media_type=_MEDIA)
    sight = Sight(page, visit.actor.role, subject)
    made = broadcast(visit.house, sight)
    await made.begin()
    stream = Stream(_welcome_only(visit, made), headers=headers, media_type=_MEDIA)
    try:
        return visit.house.live.seats.kept(visit.actor, stream)
    except Crowded as error:
        return error_response(error)  # a program reads it, and comes back


async def _welcome_only(visit: Visit, made: Broadcast) -> AsyncIterator[bytes]:
    """What is broadcast, as long as whoever asked may still see it."""
    asked = time.monotonic()
    async with aclosing(made.follow()) as frames:
        async for frame in frames:
            if time.monotonic() - asked >= BEAT_SECONDS:
                if not await anyio.to_thread.run_sync(_is_welcome, visit):
                    return
                asked = time.monotonic()
            yield frame


def _is_welcome(visit: Visit) -> bool:
    try:
        return identify(visit.house.ledger, visit.request).role is visit.actor.role
    except Unavailable:
        return True  # nothing can be rendered meanwhile; that it is stale may be told
    except TruegreenError:
        return False
