"""Live pages: one rendering for all who look, soon, and never a beat over what is not known."""

from __future__ import annotations

import asyncio
import http.client
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from typing import NoReturn, TypeVar

import pytest
from starlette.responses import Response, StreamingResponse

from tests.faces.web.conftest import Web
from tests.record.lives import OPERATOR, brought, opened
from truegreen.errors import StoreUnreachable
from truegreen.faces.deeds import Deeds
from truegreen.faces.web import lines, seats, serving
from truegreen.faces.web.house import House
from truegreen.faces.web.live import Live
from truegreen.faces.web.pages import streams
from truegreen.faces.web.pages.streams import Broadcast, Sight, encoded
from truegreen.faces.web.seats import Crowded, Seats
from truegreen.faces.web.serving import Serving, listening
from truegreen.faces.web.site import site
from truegreen.facts import Actor
from truegreen.model import Role, TaskStatus

T = TypeVar("T")
LOOKED = "looked-at"
INBOX = Sight("inbox", Role.OPERATOR)
TASKS = 13
"""One in each status, and the review of one."""
BEAT, STALE = b"event: beat\n", b"event: stale\n"


class Drawn:
    """A part of a page that counts how often it is rendered, and can be made large or broken."""

    def __init__(self) -> None:
        self.at: list[float] = []
        self.size = 10
        self.broken = False

    def __call__(self, house: House, role: Role, subject: str) -> str:
        self.at.append(time.monotonic())
        if self.broken:
            raise StoreUnreachable("the store is away")
        tasks = sum(count.tasks for count in house.ledger.counts())
        return f"{role} {subject} {tasks} tasks {'x' * self.size}"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """A live page of a test's own, and less patience."""
    made = Drawn()
    monkeypatch.setitem(streams._FRAGMENTS, LOOKED, made)
    monkeypatch.setattr(streams, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(streams, "APART_SECONDS", 0.3)
    return made


def looked(subject: str = "", role: Role = Role.OPERATOR) -> Sight:
    """What a test looks at."""
    return Sight(LOOKED, role, subject)


def lived(web: Web, act: Callable[[House], Awaitable[T]]) -> T:
    """Something that happens while the record is listened to."""

    async def inside() -> T:
        house = web.house._replace(live=Live(web.ledger))
        try:
            return await asyncio.wait_for(act(house), 20)
        finally:
            house.live.close()

    return asyncio.run(inside())


async def next_of(frames: AsyncIterator[bytes], *, rendering: bool = True) -> bytes:
    """The next rendering, or the next that is none."""
    async for frame in frames:
        if frame.startswith(b"retry:") is rendering:
            return frame
    raise AssertionError("the stream is over")


# --- the same for all, soon


@pytest.mark.criterion("L08")
def test_two_listeners_get_the_same_bytes_and_a_change_within_two_seconds(web: Web):
    async def act(house: House) -> None:
        made = streams.broadcast(house, INBOX)
        assert streams.broadcast(house, INBOX) is made
        async with aclosing(made.follow()) as one, aclosing(made.follow()) as other:
            first = await next_of(one)
            assert first is await next_of(other)
            task = await asyncio.to_thread(brought, web.ledger, TaskStatus.BLOCKED, title="comes")
            changed = time.monotonic()
            second = await next_of(one)
            assert time.monotonic() - changed < 2
            assert task[0].id.encode() in second
            assert second is await next_of(other)

    lived(web, act)


def test_many_changes_are_rendered_once_in_a_while_for_everybody(web: Web, drawn: Drawn):
    async def act(house: House) -> None:
        made = streams.broadcast(house, looked())
        listeners = [made.follow() for _ in range(20)]
        for each in listeners:
            await next_of(each)
        for _ in range(12):
            await asyncio.to_thread(opened, web.ledger)
            await asyncio.sleep(0.05)
        last = ""
        while f"{TASKS + 12} tasks" not in last:
            last = (await next_of(listeners[0])).decode()
        for each in listeners:
            await each.aclose()

    lived(web, act)
    apart = [after - before for before, after in zip(drawn.at, drawn.at[1:], strict=False)]
    assert min(apart) >= 0.29
    assert len(drawn.at) <= 7


def test_without_news_nothing_is_rendered_and_beats_say_that_somebody_looked(
    web: Web, drawn: Drawn
):
    async def act(house: House) -> None:
        async with aclosing(streams.broadcast(house, looked()).follow()) as frames:
            await next_of(frames)
            beats = [await next_of(frames, rendering=False) for _ in range(4)]
            assert all(beat.startswith(BEAT) for beat in beats)

    lived(web, act)
    assert len(drawn.at) == 1


def test_ages_do_not_stand_still(web: Web, drawn: Drawn, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "AGES_SECONDS", 0.3)

    async def act(house: House) -> None:
        async with aclosing(streams.broadcast(house, looked()).follow()) as frames:
            await next_of(frames)
            await next_of(frames)

    lived(web, act)
    assert len(drawn.at) == 2


def test_roles_and_subjects_are_looked_at_apart(web: Web, drawn: Drawn):
    async def act(house: House) -> None:
        sights = [looked("a"), looked("b"), looked("a", Role.VIEWER)]
        shown = []
        for sight in sights:
            async with aclosing(streams.broadcast(house, sight).follow()) as frames:
                shown.append((await next_of(frames)).decode())
        assert [each.partition("data: ")[2].split()[:2] for each in shown] == [
            ["operator", "a"],
            ["operator", "b"],
            ["viewer", "a"],
        ]

    lived(web, act)
    assert len(drawn.at) == 3


def test_nothing_is_rendered_for_nobody(web: Web, drawn: Drawn):
    async def act(house: House) -> None:
        made = streams.broadcast(house, looked())
        async with aclosing(made.follow()) as frames:
            await next_of(frames)
        await asyncio.to_thread(opened, web.ledger)
        await asyncio.sleep(0.6)
        assert made.over
        assert streams.broadcast(house, looked()) is not made
        assert house.live.listeners == 0

    lived(web, act)
    assert len(drawn.at) == 1


def test_everybody_is_let_go_when_the_house_closes(web: Web, drawn: Drawn):
    async def act(house: House) -> None:
        frames = streams.broadcast(house, looked()).follow()
        await next_of(frames)
        await next_of(frames, rendering=False)  # it listens by now
        house.live.close()
        assert all(not frame.startswith(b"retry:") for frame in [each async for each in frames])

    lived(web, act)
    assert drawn.at


# --- what can't be looked at is stale


@pytest.mark.criterion("L08")
@pytest.mark.parametrize("where", ["record", "rendering"])
def test_a_broken_store_is_stale_until_there_is_a_fresh_rendering(
    web: Web, drawn: Drawn, monkeypatch: pytest.MonkeyPatch, where: str
):
    away = [False]
    head = type(web.ledger).head

    def looked_at(ledger: object) -> int:
        if away[0]:
            raise StoreUnreachable("the store is away")
        return head(ledger)  # type: ignore[arg-type]

    monkeypatch.setattr(type(web.ledger), "head", looked_at)

    async def act(house: House) -> None:
        async with aclosing(streams.broadcast(house, looked()).follow()) as frames:
            first = await next_of(frames)
            away[0], drawn.broken = where == "record", where == "rendering"
            if drawn.broken:
                await asyncio.to_thread(opened, web.ledger)
            told = await next_of(frames, rendering=False)
            while told.startswith(BEAT):
                told = await next_of(frames, rendering=False)
            assert told.startswith(STALE + b"data: store_unreachable\n")
            assert (await next_of(frames, rendering=False)).startswith(STALE)
            away[0] = drawn.broken = False
            after = [await anext(frames)]
            while after[-1].startswith(STALE):
                after.append(await anext(frames))
            assert after[-1].startswith(b"retry:")  # and no beat before it
            assert after[-1] != first

    lived(web, act)


def test_a_store_that_is_away_from_the_beginning_is_stale_and_comes_back(
    web: Web, drawn: Drawn, monkeypatch: pytest.MonkeyPatch
):
    away = [True]
    for name in ("head", "latest_events"):
        verb = getattr(type(web.ledger), name)

        def asked(ledger: object, verb: Callable[..., T] = verb, **given: int) -> T:
            if away[0]:
                raise StoreUnreachable("the store is away")
            return verb(ledger, **given)

        monkeypatch.setattr(type(web.ledger), name, asked)

    async def act(house: House) -> None:
        async with aclosing(streams.broadcast(house, looked()).follow()) as frames:
            assert (await anext(frames)).startswith(STALE)
            away[0] = False
            await next_of(frames)
            await asyncio.sleep(0.8)  # it listens again, too
            await asyncio.to_thread(opened, web.ledger)
            assert f"{TASKS + 1} tasks".encode() in await next_of(frames)

    lived(web, act)
    assert drawn.at


def test_no_text_can_become_an_event_of_its_own():
    message = encoded("", "<p>\n\nevent: stale\r\ndata: x\rid: 9\n</p>", 7).decode()
    lines = message.split("\n")
    assert lines[:2] == ["retry: 1000", "id: 7"]
    assert lines[-2:] == ["", ""]
    assert all(line.startswith("data: ") for line in lines[2:-2])
    assert "\r" not in message


# --- over a real connection


@contextmanager
def served(web: Web) -> Iterator[House]:
    """The web face on a port of its own."""
    listener, address = listening("127.0.0.1", 0)
    deeds = Deeds(web.ledger, web.config)
    house = House(web.config, web.ledger, deeds, address, Live(web.ledger))
    server = Serving(site(house), listener, house.live.close)
    server.start()
    try:
        yield house
    finally:
        server.stop()


@contextmanager
def connected(house: House, secret: str, path: str) -> Iterator[http.client.HTTPResponse]:
    """A stream that somebody reads."""
    connection = http.client.HTTPConnection("127.0.0.1", house.address.port, timeout=10)
    cookie = f"truegreen_session_{house.address.port}={secret}"
    connection.request("GET", path, headers={"Cookie": cookie})
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def test_a_stream_ends_when_whoever_reads_it_may_not_any_more(web: Web, drawn: Drawn):
    secret = web.session(Role.VIEWER)
    with served(web) as house, connected(house, secret, f"/live/{LOOKED}/x") as stream:
        assert stream.status == 200
        assert stream.getheader("content-type", "").startswith("text/event-stream")
        assert f"viewer x {TASKS} tasks".encode() in b"".join(iter(stream.readline, b"\n"))
        web.ledger.log_out(secret)
        begun = time.monotonic()
        stream.read()  # to its end
        assert time.monotonic() - begun < 5
    assert drawn.at


@pytest.mark.criterion("L08")
def test_fifty_live_pages_are_let_go_at_once_when_the_server_stops(
    web: Web, drawn: Drawn, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(streams, "BEAT_SECONDS", 60.0)  # nothing else ends them
    monkeypatch.setattr(serving, "STOP_SECONDS", 10)
    monkeypatch.setattr(serving, "LAST_SECONDS", 12.0)
    secret = web.session()
    with ExitStack() as stack:
        with served(web) as house:
            paths = [f"/live/{LOOKED}/{number % 5}" for number in range(50)]
            opened = [stack.enter_context(connected(house, secret, path)) for path in paths]
            for stream in opened:
                while stream.readline() != b"\n":
                    continue
            begun = time.monotonic()
        assert time.monotonic() - begun < serving.STOP_SECONDS, "nobody was waited for"
        assert [stream.read() for stream in opened] == [b""] * 50  # to the end, none is cut
    assert len(drawn.at) == 5


@pytest.fixture
def cramped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for few: six listeners, and four of each."""
    monkeypatch.setattr(lines, "places", lambda: 12)
    monkeypatch.setattr(seats, "FEWEST_EACH", 4)


def told(house: House, secret: str, path: str) -> tuple[int, str | None, bytes]:
    """What a program is answered that does not stay."""
    line = http.client.HTTPConnection("127.0.0.1", house.address.port, timeout=10)
    line.request("GET", path, headers={"Authorization": f"Bearer {secret}"})
    answer = line.getresponse()
    lasts = "event-stream" in answer.getheader("content-type", "") or "follow" in path
    said = b"" if lasts and answer.status == 200 else answer.read()
    line.close()
    return answer.status, answer.getheader("retry-after"), said


@contextmanager
def listens(house: House, secret: str, path: str) -> Iterator[int]:
    """A program that stays, and how it was answered."""
    line = http.client.HTTPConnection("127.0.0.1", house.address.port, timeout=10)
    line.request("GET", path, headers={"Authorization": f"Bearer {secret}"})
    try:
        yield line.getresponse().status
    finally:
        line.close()


@pytest.mark.criterion("L08")
@pytest.mark.usefixtures("cramped", "drawn")
def test_one_who_listens_too_often_is_refused_and_keeps_nobody_out(web: Web):
    run = web.ledger.live_runs()[0].run.id
    lasting = ["/api/v1/events", f"/live/{LOOKED}", f"/api/v1/runs/{run}/log?follow=1"]
    viewer, lead = web.secret(Role.VIEWER), web.secret(Role.LEAD)
    with served(web) as house, ExitStack() as stack:
        sat = [stack.enter_context(listens(house, viewer, path)) for path in lasting]
        with listens(house, viewer, lasting[0]) as last:
            assert [*sat, last] == [200] * 4
            for path in lasting:
                status, after, said = told(house, viewer, path)
                assert (status, after) == (429, "1")
                assert b"viewer:vic listens 4 times already" in said
                assert told(house, lead, path)[0] == 200
            assert told(house, viewer, "/api/v1/healthz")[0] == 200
        assert eventually(lambda: told(house, viewer, lasting[0])[0] == 200), "a seat is free again"


@pytest.mark.criterion("L08")
@pytest.mark.usefixtures("cramped")
def test_all_who_listen_leave_half_of_the_places_to_those_who_ask(web: Web):
    names = [f"v{number}" for number in range(10)]
    tokens = [web.ledger.mint_token(Role.VIEWER, name, actor=OPERATOR)[1] for name in names]
    with served(web) as house, ExitStack() as stack:
        sat = [stack.enter_context(listens(house, token, "/api/v1/events")) for token in tokens]
        assert sat == [200] * 6 + [429] * 4
        assert told(house, tokens[9], "/api/v1/events")[2].count(b"6 listen already") == 1
        for token in tokens:
            assert told(house, token, "/api/v1/tasks")[0] == 200


def test_a_seat_is_left_also_if_the_answer_never_began():
    async def act() -> None:
        kept = Seats()
        for _ in range(lines.places()):
            answer = kept.kept(OPERATOR, Broken(never()))
            with pytest.raises(ConnectionError):
                await answer({"type": "http"}, nothing, nothing)

    asyncio.run(act())


class Broken(StreamingResponse):
    async def __call__(self, *_: object) -> None:
        raise ConnectionError("gone")


async def nothing(*_: object) -> NoReturn:
    raise AssertionError("nobody is told anything")


async def never() -> AsyncIterator[bytes]:
    yield b""


def eventually(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize(
    ("room", "each", "most"),
    [(16, 8, 8), (170, 63, 85), (682, 255, 341), (1024, 384, 512), (40, 16, 20)],
)
def test_how_many_may_listen_grows_with_the_places(
    room: int, each: int, most: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lines, "places", lambda: room)
    kept, sat = Seats(), []
    for number in range(3):
        with suppress(Crowded):
            for _ in range(room):
                kept.kept(Actor(Role.VIEWER, f"v{number}"), Response())
                sat.append(number)
    assert (sat.count(0), len(sat)) == (each, most)


def test_a_slow_listener_is_dropped_and_can_come_back(
    web: Web,
    drawn: Drawn,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a process without a test around it
    monkeypatch.setattr(streams, "SEND_SECONDS", 0.3)
    monkeypatch.setattr(streams, "AGES_SECONDS", 0.0)
    drawn.size = 6 << 20
    secret = web.session()
    with served(web) as house:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", house.address.port))
        host = house.address.url.removeprefix("http://")
        head = f"GET /live/{LOOKED} HTTP/1.1\r\nHost: {host}\r\n"
        cookie = f"truegreen_session_{house.address.port}={secret}"
        slow.sendall(f"{head}Cookie: {cookie}\r\n\r\n".encode())
        made = _broadcast_of(house)
        deadline = time.monotonic() + 10
        while not made.over and time.monotonic() < deadline:
            time.sleep(0.05)
        assert made.over, "nobody lets it go"
        slow.close()
        drawn.size = 10
        with connected(house, secret, f"/live/{LOOKED}") as stream:
            assert f"operator  {TASKS} tasks".encode() in b"".join(iter(stream.readline, b"\n"))
    assert capsys.readouterr().err == ""


def _broadcast_of(house: House) -> Broadcast:
    for _ in range(100):
        found = streams._BROADCASTS.get(house.live, {})
        if looked() in found:
            return found[looked()]
        time.sleep(0.05)
    raise AssertionError("nobody listens")


def test_strangers_and_unknown_pages_get_no_stream(web: Web):
    assert web.client().get("/live/inbox").status_code == 401
    assert web.browser().get("/live/nothing").status_code == 404
    assert web.browser().get("/live/nothing/tsk_1").status_code == 404
    head = web.browser().head("/live/inbox")
    assert (head.status_code, head.content) == (200, b"")


def test_every_live_page_renders_for_every_role_with_its_moment(web: Web):
    agent = web.ledger.register_agent("scribe", "sha256:9", actor=OPERATOR).id
    subjects = {"agent": agent, "task": web.tasks[TaskStatus.FAILED]}
    for page in streams._FRAGMENTS:
        for role in (Role.VIEWER, Role.LEAD, Role.OPERATOR):
            made = Broadcast(web.house, Sight(page, role, subjects.get(page, "")))
            _, text = made._rendered()
            assert 'id="live-head"' in text
            assert "data-rendered=" in text
            assert "<html" not in text


@pytest.mark.parametrize("path", ["/live/task/nope", "/live/agent/agt_nope", "/live/nothing"])
def test_what_does_not_exist_is_not_live(web: Web, path: str):
    answer = web.browser().get(path)
    assert answer.status_code == 404
    assert "text/event-stream" not in answer.headers["content-type"]
