"""Connections that nobody knows yet: none of them can starve or stop the server."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from truegreen.faces.web import lines
from truegreen.faces.web.serving import Serving, listening

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
PARSERS = ["_quick", "_plain"]


class Room:
    """A small server, and what waits in it."""

    def __init__(self) -> None:
        self.held = threading.Event()
        self.entered = threading.Event()
        self.port = 0
        self.left: list[str] = []

    def greet(self, _: Request) -> Response:
        return PlainTextResponse("here")

    def hold(self, _: Request) -> Response:
        self.entered.set()
        self.held.wait(10)
        return PlainTextResponse("held")

    async def take(self, request: Request) -> Response:
        try:
            return PlainTextResponse(str(len(await request.body())))
        finally:
            self.left.append("taken")

    async def turn_down(self, _: Request) -> Response:
        return PlainTextResponse("no", 401)

    def asked(self, path: str = "/") -> bytes:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            line.request("GET", path)
            return line.getresponse().read()
        finally:
            line.close()


@pytest.fixture(params=PARSERS)
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    """Behind either parser, with six places."""
    made = Room()
    monkeypatch.setattr("truegreen.faces.web.serving.line_class", getattr(lines, request.param))
    monkeypatch.setattr(lines, "places", lambda: 6)
    routes = [
        Route("/", made.greet),
        Route("/hold", made.hold),
        Route("/take", made.take, methods=["POST"]),
        Route("/down", made.turn_down, methods=["POST"]),
    ]
    listener, address = listening("127.0.0.1", 0)
    made.port = address.port
    serving = Serving(Starlette(routes=routes), listener)
    serving.start()
    yield made
    made.held.set()
    serving.stop()


@contextmanager
def opened(room: Room, number: int, words: bytes = HEAD) -> Iterator[list[socket.socket]]:
    """So many connections that say this and then nothing."""
    with ExitStack() as stack:
        made = []
        for _ in range(number):
            line = socket.create_connection(("127.0.0.1", room.port), timeout=10)
            made.append(stack.enter_context(line))
            line.sendall(words)
        yield made


def rest(line: socket.socket) -> bytes:
    """What still comes until it is closed."""
    heard = b""
    try:
        while more := line.recv(65536):
            heard += more
    except ConnectionResetError:
        pass
    return heard


@pytest.mark.parametrize("words", [b"", HEAD], ids=["silent", "half a head"])
def test_half_open_connections_never_keep_anybody_out(room: Room, words: bytes):
    with opened(room, 40, words) as crowd:
        assert room.asked() == b"here"
        assert rest(crowd[0]) == b"", "the one that waited longest gave way"
        assert room.asked() == b"here"


def test_who_is_being_answered_never_gives_way(room: Room):
    answers: list[bytes] = []
    busy = threading.Thread(target=lambda: answers.append(room.asked("/hold")))
    busy.start()
    assert room.entered.wait(10)
    with opened(room, 40):
        assert room.asked() == b"here"
    room.held.set()
    busy.join()
    assert answers == [b"held"]


def test_where_everybody_is_being_answered_the_next_is_told_to_come_again(room: Room):
    with opened(room, 6, b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n") as crowd:
        assert room.entered.wait(10)
        time.sleep(0.3)
        with socket.create_connection(("127.0.0.1", room.port), timeout=10) as late:
            assert rest(late).startswith(b"HTTP/1.1 503 ")
        room.held.set()
        assert all(line.recv(9) == b"HTTP/1.1 " for line in crowd)


@pytest.mark.parametrize("words", [b"", HEAD, b"\r\n"], ids=["silent", "half a head", "nothing"])
def test_who_does_not_say_what_they_want_is_let_go(
    room: Room, words: bytes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lines, "HEAD_SECONDS", 0.2)
    with opened(room, 1, words) as (line,):
        assert rest(line)[:11] == (b"HTTP/1.1 40" if words else b"")


def test_half_a_second_request_is_let_go_as_well(room: Room, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lines, "HEAD_SECONDS", 0.2)
    with opened(room, 1, HEAD + b"\r\n") as (line,):
        assert b"here" in line.recv(65536)
        line.sendall(HEAD)
        assert rest(line).startswith(b"HTTP/1.1 408 ")


def poured(line: socket.socket, piece: bytes) -> int:
    """How much of a stream without an end is taken."""
    sent = 0
    try:
        while sent < 50_000_000:
            line.sendall(piece)
            sent += len(piece)
    except OSError:
        return sent
    return sent


@pytest.mark.parametrize("piece", [b"X-A: " + b"a" * 60_000 + b"\r\n", b"a" * 60_000])
def test_a_head_without_an_end_is_cut_off(room: Room, piece: bytes):
    with opened(room, 1, HEAD) as (line,):
        sent = poured(line, piece)
        assert sent < 5_000_000
    assert room.asked() == b"here"


def test_a_head_without_an_end_is_told_so(room: Room):
    with opened(room, 1, HEAD + b"X-A: " + b"a" * (lines.LARGEST_HEAD + 1)) as (line,):
        assert b" 431 " in rest(line).splitlines()[0]


def test_a_body_that_does_not_come_is_not_waited_for(room: Room, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lines, "BODY_SECONDS", 0.2)
    words = b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"
    with opened(room, 1, words) as (line,):
        assert rest(line) == b""
    deadline = time.monotonic() + 5
    while not room.left and time.monotonic() < deadline:
        time.sleep(0.02)
    assert room.left == ["taken"], "and whoever waited for it knows"


def test_a_body_that_nobody_wanted_is_not_waited_for_either(
    room: Room, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lines, "BODY_SECONDS", 0.3)
    words = b"POST /down HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\nhalf"
    with opened(room, 1, words) as (line,):
        assert b" 401 " in line.recv(65536)
        assert rest(line) == b""


def test_a_large_body_that_comes_has_more_time(room: Room, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lines, "BODY_SECONDS", 0.1)
    monkeypatch.setattr(lines, "BODY_PACE", 10)
    words = b"POST /take HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    with opened(room, 1, words) as (line,):
        for seconds in (0.05, 0.8):
            time.sleep(seconds)
            line.sendall(b"a" * 50)
        assert line.recv(65536).endswith(b"100")


def test_the_places_leave_handles_for_everything_else(monkeypatch: pytest.MonkeyPatch):
    for soft, most in {256: 170, 1024: 682, 1 << 20: lines.MOST, 20: 16, -1: lines.MOST}.items():
        monkeypatch.setattr("resource.getrlimit", lambda _, soft=soft: (soft, soft))
        assert lines.places() == most
