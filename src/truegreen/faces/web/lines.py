"""Connections before they are requests: how many there may be, how long they may keep us waiting.

Nobody is known here. When all places are taken, whoever has kept us waiting longest gives way; who
is being answered never does.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    from uvicorn.protocols.http.flow_control import FlowControl

HEAD_SECONDS = 10.0
"""So long a request may take to say what it is."""
BODY_SECONDS = 30.0
"""So long it may take to bring what it announced; a second more for each `BODY_PACE`."""
BODY_PACE = 1 << 16
LARGEST_HEAD = 1 << 16
MOST = 1024
_FEWEST = 16
_SHARE = Fraction(2, 3)
"""Of the handles that the process may have: the store, the runs and the threads need the rest."""
BOND = "bond"
"""Under which name requests find what is known about their connection."""
_TOO_LATE, _TOO_LARGE, _FULL = (
    f"HTTP/1.1 {words}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
    for words in (
        "408 Request Timeout",
        "431 Request Header Fields Too Large",
        "503 Service Unavailable\r\nRetry-After: 1",
    )
)


class Bond:
    """What has been found out about a connection, for all of its requests."""

    outside = False
    """Whether whoever holds its other end is known to be no process of a run."""


class Wait(NamedTuple):
    """Since when somebody keeps us waiting; who is at a request goes after those who are not."""

    at_work: bool
    since: float


def places() -> int:
    """How many connections there may be at a time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(_FEWEST, min(MOST, int(soft * _SHARE)))


class Line(asyncio.Protocol):
    """What holds for every connection, whichever parser reads it; the parser comes behind it."""

    connections: set[Any]
    transport: asyncio.Transport
    flow: FlowControl
    cycle: Any
    """The latest request, and its answer."""
    app_state: dict[str, Any]
    timeout_keep_alive_task: asyncio.TimerHandle | None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.app_state = {**self.app_state, BOND: Bond()}
        self._most = places()
        self._head = self._body = 0
        self._since = self._stuck = self._closing = time.monotonic()
        self._turned_away = False

    @property
    def owes(self) -> bool:
        """Whether a body was announced that has not come."""
        raise NotImplementedError

    @property
    def answering(self) -> bool:
        """Whether a request is at work."""
        return self.cycle is not None and not self.cycle.response_complete

    # -- as it comes ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there; where there is no place left, one of those who only wait goes."""
        if len(self.connections) >= self._most and not make_room(self.connections):
            self._turned_away = True
            self.transport = cast("asyncio.Transport", transport)
            self._bid_farewell(_FULL)
            return
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        if not self._turned_away:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """More of it came: of a body, or of what goes before one."""
        if self._turned_away or self.transport.is_closing():
            return
        before = self.cycle
        if self.owes:
            self._body += len(data)
        else:
            self._since = self._since if self._head else time.monotonic()
            self._head += len(data)
        super().data_received(data)
        if self.cycle is not before:
            self._head = self._body = 0
            self._since = time.monotonic()
        elif self._head > LARGEST_HEAD and not self.transport.is_closing():
            self._bid_farewell(b"" if self.answering else _TOO_LARGE)

    def pause_writing(self) -> None:
        """Nobody reads what was sent."""
        self._stuck = time.monotonic()
        super().pause_writing()

    # -- as it does not come ----------------------------------------------------------------------

    def wait(self) -> Wait | None:
        """Since when we wait for them; None while they wait for us."""
        if self.owes:
            return None if self.flow.read_paused else Wait(self.answering, self._since)
        if not self.answering:
            return Wait(at_work=False, since=self._since)
        return Wait(at_work=True, since=self._stuck) if self.flow.write_paused else None

    def look(self, now: float) -> None:
        """Let go of whoever takes too long."""
        if self.transport.is_closing():
            if now - self._closing > HEAD_SECONDS:
                self.transport.abort()  # nobody reads the last words
            return
        self._closing = now
        late = now - self._since
        if self.owes and not self.flow.read_paused:
            if late > BODY_SECONDS + self._body / BODY_PACE:
                self.transport.abort()
        elif self._dawdles and late > HEAD_SECONDS:
            self._bid_farewell(_TOO_LATE if self._head else b"")

    @property
    def _dawdles(self) -> bool:
        """Whether a head is on its way; between requests the server's own clock runs."""
        return not self.answering and bool(self._head or self.timeout_keep_alive_task is None)

    def _bid_farewell(self, words: bytes) -> None:
        self.transport.write(words)
        self.transport.close()


def make_room(lines: set[Any]) -> bool:
    """Cut off who has kept us waiting longest; says whether there was anybody."""
    waiting = [(wait, id(line), line) for line in lines if (wait := line.wait())]
    if not waiting:
        return False
    line = min(waiting)[2]
    lines.discard(line)
    line.transport.abort()
    return True


def look_after(lines: Iterable[Any]) -> None:
    """A look at all of them."""
    now = time.monotonic()
    for line in list(lines):
        line.look(now)


@cache
def line_class() -> type[asyncio.Protocol]:
    """A connection with the quickest parser that is installed."""
    return _quick() if find_spec("httptools") else _plain()


def _quick() -> type[asyncio.Protocol]:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # noqa: PLC0415 - an extra

    class Quick(Line, HttpToolsProtocol):
        _owes = False

        @property
        def owes(self) -> bool:
            return self._owes

        def on_headers_complete(self) -> None:
            self._owes = True
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._owes = False
            super().on_message_complete()

    return Quick


def _plain() -> type[asyncio.Protocol]:
    import h11  # noqa: PLC0415 - where nothing quicker is
    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415 - as above

    class Plain(Line, H11Protocol):
        @property
        def owes(self) -> bool:
            return self.conn.their_state is h11.SEND_BODY

    return Plain
