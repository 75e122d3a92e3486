"""One exchange: a request goes on to its provider, and the answer comes back as it is said.

Nothing is held back: what the provider sends is passed on at once and only looked at. A client that
hangs up in the midst of an answer does not make it free: the rest is read and counted all the same.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from truegreen.doors.gateway.apis import REDACTED, Api, Route, Upstream, passed_on, refusal
from truegreen.doors.gateway.meter import Meter
from truegreen.doors.gateway.metering import Counted, Gauge
from truegreen.doors.loopback import say
from truegreen.doors.wire import (
    CONTINUE,
    LAST_CHUNK,
    Headers,
    Request,
    chunk,
    hang_up,
    head,
)
from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    import httpx2

_OK = 200
_CHAT, _RESPONSES = "/v1/chat/completions", ("/v1/responses", "/v1/responses/compact")
_REDIRECTS = range(300, 400)
_ERROR_BYTES = 1024 * 1024
_DRAIN_SECONDS = 60.0
_SNIFFED = 65536
_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]{1,200})"')
_IN_PATH = re.compile(r"/models/([^/:]+):")


class Exchange:
    """A request under way; anybody may cut it."""

    def __init__(self, client: httpx2.Client, line: socket.socket, meter: Meter) -> None:
        self._client, self._line, self._meter = client, line, meter
        self._cut = threading.Event()
        self._far: socket.socket | None = None
        self._count: _Count | None = None
        self._ready = bytearray()
        """What the client has not been told yet."""
        self._hears = True

    def cut(self) -> None:
        """Nothing more goes to the client, and the provider is hung up on."""
        self._cut.set()
        hang_up(self._line)
        if self._far is not None:
            hang_up(self._far)
        elif self._count is not None:
            self._count.settle()  # who is asked answers, whether anybody listens or not

    def forward(self, asked: Asked) -> bool:
        """Pass a request on, and its answer back; says whether the connection can be used again."""
        import httpx2  # noqa: PLC0415 - it takes a while to load, and few runs have a gateway

        outgoing = _Outgoing(asked.request, self._line)
        count = _Count(self._meter if asked.route.asks else None, asked.route, outgoing)
        try:
            content, sieve = outgoing.content(asked.route)
            self._count = count
            with self._client.stream(
                asked.request.method,
                asked.upstream.url(asked.request.path, asked.query),
                headers=outgoing.headers(asked.upstream),
                content=content,
            ) as response:
                self._far = response.extensions["network_stream"].get_extra_info("socket")
                return self._answered(asked, count, response, sieve)
        except _Unwelcome as error:
            return self._refused(asked, 400, error.code, str(error))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            count.settle()
            if self._cut.is_set():
                return False
            why = f"the provider can't be reached ({str(error) or type(error).__name__})"
            return self._refused(asked, 502, "upstream_unreachable", why)

    def _answered(
        self, asked: Asked, count: _Count, response: httpx2.Response, sieve: Sieve | None
    ) -> bool:
        if response.status_code != _OK:
            count.forget()
        if response.status_code in _REDIRECTS:
            return self._refused(asked, 502, "upstream_redirects", "the provider sent a redirect")
        if response.status_code != _OK:
            return self._failed(asked, response)
        told = response.headers
        streamed = "text/event-stream" in told.get("content-type", "")
        coding = told.get("content-encoding", "")
        count.listen(Gauge(asked.route.api.tally(), streamed=streamed, coding=coding))
        shown = passed_on(told, asked.upstream.key)
        try:
            return self._copied(response, shown, count, sieve if streamed else None)
        finally:
            count.settle()

    def _copied(
        self, response: httpx2.Response, headers: Headers, count: _Count, sieve: Sieve | None
    ) -> bool:
        """Pass all of it on as it comes; says whether the client heard it to the end."""
        import httpx2  # noqa: PLC0415 - see above

        sized = "" if sieve else response.headers.get("content-length", "")
        extra = ("content-length", sized) if sized else ("transfer-encoding", "chunked")
        self._hears = self._says(head(response.status_code, [*headers, extra]))
        patience = 0.0
        try:
            with _before_each_read(response.extensions["network_stream"], self._pass_on):
                for data in response.iter_raw():
                    count.feed(data, sized)
                    shown = sieve.through(data) if sieve else data
                    if shown:
                        self._ready += shown if sized else chunk(shown)
                    if not self._hears:
                        patience = patience or time.monotonic() + _DRAIN_SECONDS
                    if self._cut.is_set() or (patience and time.monotonic() > patience):
                        return False
        except (httpx2.HTTPError, OSError):
            self._pass_on()
            return False  # broken off: the client must not take it for the end
        if sieve and (rest := sieve.rest()):
            self._ready += chunk(rest)
        count.settle()
        self._ready += b"" if sized else LAST_CHUNK
        self._pass_on()
        return self._hears

    def _pass_on(self) -> None:
        """What came together goes on together, before anybody waits for more."""
        if self._hears and self._ready:
            self._hears = self._says(bytes(self._ready))
        self._ready.clear()

    def _failed(self, asked: Asked, response: httpx2.Response) -> bool:
        """An answer that is no success: in one piece, and never with the real key in it."""
        key, body = asked.upstream.key, bytearray()
        for data in response.iter_bytes():
            body += data
            if len(body) > _ERROR_BYTES:
                break
        shown = bytes(body[:_ERROR_BYTES]).replace(key.encode(), REDACTED.encode())
        passed = passed_on(response.headers, key)
        kept = [pair for pair in passed if pair[0].lower() != "content-encoding"]
        told = head(response.status_code, [*kept, ("content-length", str(len(shown)))])
        return self._says(told + shown) and len(body) <= _ERROR_BYTES

    def _refused(self, asked: Asked, status: int, code: str, why: str) -> bool:
        return answer(self._line, asked.route.api, status, code, why)

    def _says(self, data: bytes) -> bool:
        try:
            self._line.sendall(data)
        except OSError:
            return False
        return not self._cut.is_set()


@contextmanager
def _before_each_read(stream: Any, tell: Callable[[], None]) -> Iterator[None]:
    """Tell somebody whenever a stream is about to wait for its other side.

    One read brings many events, and the library gives them out one by one; a write for each would
    cost more than all the rest.
    """
    read = stream.read

    def told(size: int, timeout: float | None = None) -> bytes:
        tell()
        return bytes(read(size, timeout))

    stream.read = told
    try:
        yield
    finally:
        stream.read = read


class Asked(NamedTuple):
    """A request that may go on, and where it goes."""

    request: Request
    query: str
    route: Route
    upstream: Upstream


class _Unwelcome(Exception):
    """A request that asks for what nobody could count."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class _Count:
    """What an answer uses: in the meter before its end is passed on, so that nobody is faster.

    A request that has gone out whole counts, whether its answer is heard or not.
    """

    def __init__(self, meter: Meter | None, route: Route, outgoing: _Outgoing) -> None:
        """Without a meter it costs nothing."""
        self._meter, self._outgoing = meter, outgoing
        self._gauge = Gauge(route.api.tally(), streamed=False, coding="")
        self._known: Counted | None = None
        self._fed = 0
        self._heard = False
        self._lock = threading.RLock()

    def listen(self, gauge: Gauge) -> None:
        """An answer begins."""
        with self._lock:
            self._gauge, self._heard = gauge, True

    def forget(self) -> None:
        """The provider did not do it."""
        with self._lock:
            if self._meter is not None and self._known is not None:
                self._meter.drop(self._known)
            self._meter = None

    def feed(self, data: bytes, sized: str) -> None:
        """The next bytes of the answer; `sized` is how many there are, if that was said."""
        with self._lock:
            if self._meter is None:
                return
            self._gauge.feed(data)
            self._fed += len(data)
            if sized and self._fed >= int(sized):
                self.settle()
            elif self._gauge.is_told:
                self._write_down(self._meter)

    def settle(self) -> None:
        """Nothing more comes: what is known by now is all."""
        with self._lock:
            if self._meter is not None and (self._heard or self._outgoing.is_out):
                self._gauge.end()
                self._write_down(self._meter)

    def _write_down(self, meter: Meter) -> None:
        counted = self._gauge.counted(self._outgoing.size)
        if not counted.model:
            counted = msgspec.structs.replace(counted, model=self._outgoing.model)
        if counted != self._known:
            meter.add(counted, instead=self._known)
            self._known = counted


def answer(line: socket.socket, api: Api | None, status: int, code: str, why: str) -> bool:
    """Say no in the provider's words; says whether it was heard."""
    return say(line, status, refusal(api, status, code, why), [("x-truegreen", code)])


class _Outgoing:
    """The body of a request on its way, and what can be learned from it."""

    def __init__(self, request: Request, line: socket.socket) -> None:
        self._request, self._line = request, line
        found = _IN_PATH.search(request.path)
        self.model = found[1] if found else ""
        self._instead: bytes | None = None
        self.is_out = False
        """Whether all of it has gone to the provider."""

    @property
    def size(self) -> int:
        """How many bytes have gone."""
        return self._request.body.taken

    def content(self, route: Route) -> tuple[Iterable[bytes] | bytes | None, Sieve | None]:
        """The body as it comes in; a chat that is streamed is made to say what it used."""
        body, path = self._request.body, self._request.path
        if body.length == 0:
            return None, None
        if body.wanted:
            self._line.sendall(CONTINUE)
        if not route.asks or path not in (_CHAT, *_RESPONSES):
            return self._sending(self._passing()), None
        whole = b"".join(self._passing())
        if path in _RESPONSES:
            self._instead = in_front(whole)
            return self._sending([self._instead]), None
        self._instead = with_usage(whole)
        sieve = Sieve() if self._instead else None
        return self._sending([self._instead or whole]), sieve

    def headers(self, upstream: Upstream) -> Headers:
        """The head that goes with it."""
        headers = upstream.headers(self._request)
        if self._instead is None:
            return headers
        rest = [pair for pair in headers if pair[0] != "content-length"]
        return [*rest, ("content-length", str(len(self._instead)))]

    def _sending(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Whoever asks for a part has sent the one before it."""
        yield from parts
        self.is_out = True

    def _passing(self) -> Iterator[bytes]:
        for part in self._request.body:
            if not self.model and self._request.body.taken <= _SNIFFED:
                found = _MODEL.search(part)
                self.model = found[1].decode("utf-8", "replace") if found else ""
            yield part


def in_front(body: bytes) -> bytes:
    """A request for a response, each key once; one that is to be worked on later is refused."""
    try:
        asked = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _Unwelcome("malformed", "a request for a response is an object of JSON") from None
    if bytes(asked.get("background", b"null")).strip() not in (b"null", b"false"):
        why = "background: nobody could count a response that is made later; ask without it"
        raise _Unwelcome("background", why)
    return msgspec.json.encode(asked)


def with_usage(body: bytes) -> bytes | None:
    """A streamed chat that asks for its counts; nothing where it does already, or is none."""
    try:
        asked = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        if bytes(asked.get("stream", b"")) != b"true":
            return None
        options: Any = msgspec.json.decode(asked.get("stream_options", b"{}"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    options = options if isinstance(options, dict) else {}
    if options.get("include_usage") is True:
        return None
    return msgspec.json.encode({**asked, "stream_options": {**options, "include_usage": True}})


class Sieve:
    """Takes the one event out of a stream that only the gateway asked for."""

    def __init__(self) -> None:
        self._held = b""

    def through(self, data: bytes) -> bytes:
        """All events that are whole, but for that one."""
        self._held += data
        *events, self._held = self._held.replace(b"\r\n", b"\n").split(b"\n\n")
        return b"".join(each + b"\n\n" for each in events if not _only_counts(each))

    def rest(self) -> bytes:
        """What came after the last whole event."""
        return self._held


def _only_counts(event: bytes) -> bool:
    if b'"usage"' not in event or not event.startswith(b"data:"):
        return False
    try:
        found = msgspec.json.decode(event[5:])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return isinstance(found, dict) and found.get("choices") == [] and bool(found.get("usage"))
