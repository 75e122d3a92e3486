"""The gateway's fence: who thinks through it, who does not, and what nobody gets past it."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.doors.gateway.conftest import PATHS, REAL, SHOWN, Thinker, key_for, thinking
from tests.doors.gateway.provider import (
    CHAT_EVENTS,
    GENERATED,
    MESSAGE,
    MESSAGE_EVENTS,
    RESPONSE,
    Answer,
    Provider,
    event,
    streamed,
    whole,
)
from tests.doors.test_run_door import reachable
from tests.postgres_server import PostgresServer
from tests.record.lives import OPERATOR, ended, started
from truegreen.contract import Caps, ModelPrice
from truegreen.doors import loopback, wire
from truegreen.doors.gateway import server as serving
from truegreen.doors.gateway.forwarding import Exchange
from truegreen.facts import SYSTEM
from truegreen.model import Role
from truegreen.record.ledger import Ledger, open_ledger

DATABASES = ("sqlite",)

BUDGET_S = 0.25
"""How soon what is under way for a terminated run is cut."""
LOADED_S = 2.0
"""The same on a machine that does something else as well."""
ANSWERS: dict[str, dict[str, Any]] = {"anthropic": MESSAGE, "openai": RESPONSE, "gemini": GENERATED}
each_api = pytest.mark.parametrize("api", PATHS)


def until(true: Any, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# --- what goes through


@each_api
@pytest.mark.criterion("I11", "O05")
def test_the_provider_sees_the_real_key_and_never_the_runs(local: Thinker, api: str):
    local.provider.answer = whole(ANSWERS[api])
    answer = local.ask(api, model="m", hello="there")
    assert answer.status_code == 200
    assert answer.json() == ANSWERS[api]
    (asked,) = local.provider.asked
    assert asked.path == PATHS[api]
    assert json.loads(asked.body) == {"model": "m", "hello": "there"}
    assert REAL in str(asked.headers)
    assert local.key not in str(asked)
    assert local.tokens == 3251


def test_what_concerns_the_connection_alone_stays_here(local: Thinker):
    headers = {
        **SHOWN["anthropic"](local.key),
        "cookie": "c=1",
        "forwarded": "for=1.2.3.4",
        "accept-encoding": "gzip, br",
        "anthropic-beta": "tools-1",
        "user-agent": "a-client/1.0",
    }
    local.http.post("/v1/messages?beta=true", headers=headers, json={})
    (asked,) = local.provider.asked
    assert asked.path == "/v1/messages?beta=true"
    assert asked.headers["anthropic-beta"] == "tools-1"
    assert asked.headers["user-agent"] == "a-client/1.0"
    assert asked.headers["accept-encoding"] == "identity"
    assert not {"cookie", "forwarded"} & asked.headers.keys()


def test_a_key_in_the_address_is_taken_out_of_it(local: Thinker):
    local.provider.answer = whole(GENERATED)
    answer = local.http.post(f"{PATHS['gemini']}?alt=sse&key={local.key}", json={})
    assert answer.status_code == 200
    assert local.provider.asked[0].path == f"{PATHS['gemini']}?alt=sse"


def test_a_bearer_token_of_anthropic_goes_on_as_one(sqlite_url: str, provider: Provider):
    ledger = open_ledger(sqlite_url)
    with thinking(ledger, provider, ANTHROPIC_API_KEY="", ANTHROPIC_AUTH_TOKEN=REAL) as thinker:
        assert thinker.ask().status_code == 200
    assert provider.asked[0].headers["authorization"] == f"Bearer {REAL}"
    assert "x-api-key" not in provider.asked[0].headers
    ledger.close()


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/models"])
def test_what_costs_nothing_is_not_counted(local: Thinker, path: str):
    local.provider.answer = whole({"input_tokens": 10})
    method = "GET" if path == "/v1/models" else "POST"
    answer = local.http.request(method, path, headers=SHOWN["anthropic"](local.key))
    assert answer.status_code == 200
    assert local.session.meter.told() == {"requests": 0}


def test_a_chunked_request_goes_on_chunk_by_chunk(local: Thinker):
    parts = [b'{"model": "m", ', b'"more": "', b"x" * 100_000, b'"}']
    answer = local.http.post(
        "/v1/messages", headers=SHOWN["anthropic"](local.key), content=iter(parts)
    )
    assert answer.status_code == 200
    assert local.provider.asked[0].body == b"".join(parts)


def test_a_client_that_waits_to_be_told_is_told_to_go_on(local: Thinker):
    head = (
        f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{local.gateway.port}\r\n"
        f"x-api-key: {local.key}\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", local.gateway.port), 10) as line:
        line.sendall(head.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 100 ")
        line.sendall(b"{}")
        assert line.recv(100).startswith(b"HTTP/1.1 200 ")


@pytest.mark.criterion("I11")
def test_nothing_of_a_stream_is_held_back(local: Thinker):
    go_on = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield event(MESSAGE_EVENTS[0])
        assert go_on.wait(10)
        yield from map(event, MESSAGE_EVENTS[1:])

    local.provider.answer = Answer(pieces=pieces, kind="text/event-stream")
    headers = SHOWN["anthropic"](local.key)
    with local.http.stream("POST", "/v1/messages", headers=headers, json={}) as answer:
        parts = answer.iter_raw()
        assert next(parts) == event(MESSAGE_EVENTS[0])
        go_on.set()  # only now does the provider say more
        assert b"".join(parts) == b"".join(map(event, MESSAGE_EVENTS[1:]))
    assert local.tokens == 3251


@pytest.mark.criterion("I11")
def test_events_that_come_together_go_on_in_one_write(
    local: Thinker, monkeypatch: pytest.MonkeyPatch
):
    first, *rest = map(event, MESSAGE_EVENTS)
    pieces = [first, *[event({"type": "ping"})] * 200, *rest]
    answer = Answer(pieces=lambda: iter(pieces), kind="text/event-stream", together=True)
    local.provider.answer = answer
    writes: list[bytes] = []
    says = Exchange._says

    def counted(exchange: Exchange, data: bytes) -> bool:
        writes.append(data)
        return says(exchange, data)

    monkeypatch.setattr(Exchange, "_says", counted)
    assert local.ask().content == b"".join(pieces)
    assert len(writes) <= 4  # its head, and as many as there were reads
    assert local.tokens == 3251


def test_a_client_that_says_nothing_is_hung_up_on(local: Thinker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loopback, "_IDLE_SECONDS", 1.0)
    with socket.create_connection(("127.0.0.1", local.gateway.port), 10) as line:
        assert line.recv(100) == b""


def test_a_packed_answer_is_passed_on_as_it_is_and_counted(local: Thinker):
    body = gzip.compress(json.dumps(MESSAGE).encode())
    local.provider.answer = Answer(body=body, headers={"Content-Encoding": "gzip"})
    assert local.ask().json() == MESSAGE
    assert local.tokens == 3251


def test_many_at_once_are_all_counted(local: Thinker):
    local.provider.answer = streamed(*MESSAGE_EVENTS)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: local.ask().status_code, range(100)))
    assert answers == [200] * 100
    assert local.tokens == 100 * 3251
    assert local.session.meter.told()["requests"] == 100


# --- counts that nobody gets round


def test_a_client_that_hangs_up_pays_for_the_rest(local: Thinker):
    heard = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield event(MESSAGE_EVENTS[0])
        assert heard.wait(10)
        for document in MESSAGE_EVENTS[1:]:
            yield event(document)
            time.sleep(0.02)  # so that each is a write of its own to a client that is gone

    local.provider.answer = Answer(pieces=pieces, kind="text/event-stream")
    headers = SHOWN["anthropic"](local.key)
    with local.http.stream("POST", "/v1/messages", headers=headers, json={}) as answer:
        next(answer.iter_raw())
    heard.set()
    until(lambda: local.tokens == 3251)
    assert "estimated" not in local.session.meter.told()


def test_an_answer_that_breaks_off_breaks_off_here_too_and_counts(local: Thinker):
    local.provider.answer = Answer(
        pieces=lambda: iter([event(MESSAGE_EVENTS[0]), b""]), kind="text/event-stream"
    )
    with pytest.raises(httpx2.RemoteProtocolError):
        local.ask()
    until(lambda: local.tokens == 3212)
    assert local.session.meter.told()["estimated"] == 1


def test_a_chat_is_made_to_tell_its_counts_and_the_client_does_not_notice(local: Thinker):
    local.provider.answer = streamed(*CHAT_EVENTS)
    asked = {"model": "gpt-7", "stream": True, "stream_options": {"other": 1}}
    headers = SHOWN["openai"](local.key)
    answer = local.http.post("/v1/chat/completions", headers=headers, json=asked)
    assert answer.content == b"".join(map(event, CHAT_EVENTS[:-1]))
    sent = json.loads(local.provider.asked[0].body)
    assert sent == {**asked, "stream_options": {"other": 1, "include_usage": True}}
    assert local.tokens == 3251


def test_a_chat_that_asks_for_its_counts_gets_them(local: Thinker):
    local.provider.answer = streamed(*CHAT_EVENTS)
    asked = {"model": "gpt-7", "stream": True, "stream_options": {"include_usage": True}}
    headers = SHOWN["openai"](local.key)
    answer = local.http.post("/v1/chat/completions", headers=headers, json=asked)
    assert answer.content == b"".join(map(event, CHAT_EVENTS))
    assert json.loads(local.provider.asked[0].body) == asked


@pytest.mark.criterion("I11")
@pytest.mark.parametrize(
    ("caps", "code"),
    [(Caps(tokens=3251), "tokens"), (Caps(cost_usd=0.03), "cost_usd")],
    ids=["tokens", "cost"],
)
def test_the_request_after_the_cap_never_reaches_the_provider(
    sqlite_url: str, provider: Provider, caps: Caps, code: str
):
    ledger = open_ledger(sqlite_url)
    prices = {"claude-opus": ModelPrice(input=10, output=10)}
    provider.answer = streamed(*MESSAGE_EVENTS)
    with thinking(ledger, provider, caps=caps, prices=prices) as thinker:
        assert thinker.ask().status_code == 200
        refused = thinker.ask()
        assert refused.status_code == 403
        assert refused.json()["error"]["message"] == f"the task has used up its cap on {code}"
        assert thinker.session.capped == code
        free = thinker.http.get("/v1/models", headers=SHOWN["anthropic"](thinker.key))
        assert free.status_code == 200
    assert [each.path for each in provider.asked] == ["/v1/messages", "/v1/models"]
    ledger.close()


def test_who_is_told_the_end_is_counted_already(sqlite_url: str, provider: Provider):
    """A client may ask again before the connection has said that the answer is over."""
    ledger = open_ledger(sqlite_url)
    last = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield from map(event, MESSAGE_EVENTS)
        assert last.wait(10)

    provider.answer = Answer(pieces=pieces, kind="text/event-stream")
    with thinking(ledger, provider, caps=Caps(tokens=3251)) as thinker:
        headers = SHOWN["anthropic"](thinker.key)
        with thinker.http.stream("POST", "/v1/messages", headers=headers, json={}) as answer:
            heard = b""
            for part in answer.iter_raw():
                heard += part
                if b"message_stop" in heard:
                    break
            assert thinker.ask().status_code == 403
            last.set()
    assert len(provider.asked) == 1
    ledger.close()


# --- who does not get through


@each_api
def test_an_unknown_key_is_refused_in_the_providers_words(local: Thinker, api: str):
    answer = local.ask(api, key="tga_nobody")
    assert answer.status_code == 401
    error = answer.json()["error"]
    assert error["message"] == "no run has this key"
    assert {
        "anthropic": lambda: (
            error["type"] == "authentication_error" and answer.json()["type"] == "error"
        ),
        "openai": lambda: error["code"] == "unknown_key",
        "gemini": lambda: (error["code"], error["status"]) == (401, "UNAUTHENTICATED"),
    }[api]()
    assert local.provider.asked == []


def test_without_a_key_nothing_goes_through(local: Thinker):
    answer = local.http.post("/v1/messages", json={})
    assert (answer.status_code, local.provider.asked) == (401, [])


@each_api
@pytest.mark.criterion("G20")
def test_a_terminated_run_never_thinks_again(thinker: Thinker, api: str):
    thinker.provider.answer = whole(ANSWERS[api])
    assert thinker.ask(api).status_code == 200
    thinker.ledger.terminate(thinker.ticket.task, actor=OPERATOR)
    answer = thinker.ask(api)
    assert answer.status_code == 403
    assert answer.json()["error"]["message"].startswith("terminated: ")
    assert len(thinker.provider.asked) == 1


@pytest.mark.criterion("G20")
def test_the_key_of_a_run_that_is_over_is_dead(local: Thinker):
    local.ledger.end_run(local.ticket, ended())
    assert local.ask().status_code == 403
    assert local.provider.asked == []


@pytest.mark.criterion("O01", "O05")
def test_a_key_is_good_for_its_own_run_alone(local: Thinker):
    other = started(local.ledger)
    assert local.ask(key=key_for(local.ledger, other)).status_code == 403
    _, operators = local.ledger.mint_token(Role.OPERATOR, "ana", actor=SYSTEM)
    assert local.ask(key=operators).status_code == 403
    assert local.ask(key=REAL).status_code == 401
    assert local.provider.asked == []


def test_while_the_record_can_not_be_read_nobody_thinks(
    postgres_server: PostgresServer, postgres_url: str, provider: Provider
):
    ledger = open_ledger(postgres_url)
    with thinking(ledger, provider) as thinker:
        reachable(postgres_server, postgres_url, yes=False)
        answer = thinker.ask()
        assert answer.status_code == 503
        assert provider.asked == []
        reachable(postgres_server, postgres_url, yes=True)
        until(lambda: thinker.ask().status_code == 200)
    ledger.close()


@pytest.mark.criterion("G20")
def test_what_is_under_way_for_a_terminated_run_is_cut(thinker: Thinker):
    over = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield event(MESSAGE_EVENTS[0])
        over.wait(20)

    thinker.provider.answer = Answer(pieces=pieces, kind="text/event-stream")
    headers = SHOWN["anthropic"](thinker.key)
    with thinker.http.stream("POST", "/v1/messages", headers=headers, json={}) as answer:
        parts = answer.iter_raw()
        next(parts)
        thinker.ledger.terminate(thinker.ticket.task, actor=OPERATOR)
        begun = time.monotonic()
        with pytest.raises(httpx2.HTTPError):
            next(parts)
        assert time.monotonic() - begun < LOADED_S
    over.set()
    until(lambda: thinker.tokens == 3212)


@pytest.mark.criterion("G20")
def test_who_waits_for_a_first_byte_is_cut_too_and_nothing_is_read_for_it(local: Thinker):
    go_on, over = threading.Event(), threading.Event()

    def pieces() -> Iterator[bytes]:
        while not over.wait(0.05):
            yield event(MESSAGE_EVENTS[1])

    local.provider.answer = Answer(
        pieces=pieces, kind="text/event-stream", before=lambda: go_on.wait(20)
    )
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(local.ask)
        until(lambda: local.provider.asked)
        local.ledger.terminate(local.ticket.task, actor=OPERATOR)
        with pytest.raises(httpx2.HTTPError):
            asking.result(LOADED_S)
    go_on.set()
    until(lambda: not local.session.busy, LOADED_S)
    over.set()


def test_nothing_begins_for_a_run_that_is_being_cut(local: Thinker):
    """Its key may have been looked up a moment before the record closed it."""
    local.session.fence()
    assert local.ask().status_code == 403
    assert local.provider.asked == []


# --- the tripwire


def trips(ledger: Ledger, task: str) -> list[str]:
    return [
        e.event.reason for e in ledger.events(task) if "after the fence" in (e.event.reason or "")
    ]


@pytest.mark.criterion("G24")
def test_a_zombie_that_thinks_is_told_to_a_person_once(thinker: Thinker):
    ledger, task = thinker.ledger, thinker.ticket.task
    ledger.terminate(task, actor=OPERATOR)
    thinker.gateway.dismiss(thinker.session)
    for _ in range(3):
        assert thinker.ask().status_code == 403
    (waiting,) = [each for each in ledger.inbox() if each.item.cause == f"zombie:{task}"]
    assert waiting.item.severity == "critical"
    (said,) = trips(ledger, task)
    assert "POST /v1/messages with its dead key" in said
    assert thinker.key not in said
    assert thinker.provider.asked == []


def test_a_process_that_is_just_being_killed_is_no_zombie(
    local: Thinker, monkeypatch: pytest.MonkeyPatch
):
    local.ledger.terminate(local.ticket.task, actor=OPERATOR)
    assert local.ask().status_code == 403
    assert trips(local.ledger, local.ticket.task) == []
    monkeypatch.setattr(serving, "_GRACE_SECONDS", 0.0)
    assert local.ask().status_code == 403
    assert len(trips(local.ledger, local.ticket.task)) == 1


# --- nobody gets anywhere else


ELSEWHERE = [
    *("/", "/v1", "/v1/files", "/v1/messages/batches", "/v1/messages/", "/v1/responses/resp_1"),
    *("//evil.example/v1/messages", "/v1/../v1/messages", "/v1/%6dessages", "/v1/messages%0d%0a"),
    *("/v1beta/models/../../x:generateContent", "/v1beta/models/a/b:generateContent"),
    *("/v1beta/models/gemini:predict", "/v1beta/cachedContents", "/v1/organization/usage"),
    *("/v1/messages;x", "/@evil.example/v1/messages", "/v1beta/models/..:generateContent"),
]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_a_path_that_is_none_of_the_apis_goes_nowhere(local: Thinker, path: str):
    request = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{local.gateway.port}\r\n"
        f"x-api-key: {local.key}\r\nContent-Length: 2\r\n\r\n{{}}"
    )
    assert local.raw(request.encode()).startswith(b"HTTP/1.1 404 ")
    assert local.provider.asked == []


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["POST http://evil.example/v1/messages HTTP/1.1", "Host: {host}"], 400),
        (["POST /v1/messages HTTP/1.0", "Host: {host}"], 400),
        (["POST /v1/messages", "Host: {host}"], 400),
        (["POST /v1/messages HTTP/1.1", "Host: evil.example"], 421),
        (["POST /v1/messages HTTP/1.1"], 421),
        (["POST /v1/messages HTTP/1.1", "Host: {host}", "Host: {host}"], 400),
        (["POST /v1/messages HTTP/1.1", "Host: {host}", "x-api-key : a"], 400),
        (["POST /v1/messages HTTP/1.1", "Host: {host}", "a: b", " folded"], 400),
        (["POST /v1/messages HTTP/1.1", "Host: {host}", "a: b\rc"], 400),
        (["POST /v1/messages HTTP/1.1", "Host: {host}", "Content-Length: +2"], 400),
        (
            [
                "POST /v1/messages HTTP/1.1",
                "Host: {host}",
                "Content-Length: 2",
                "Content-Length: 2",
            ],
            400,
        ),
        (
            [
                "POST /v1/messages HTTP/1.1",
                "Host: {host}",
                "Content-Length: 2",
                "Transfer-Encoding: chunked",
            ],
            400,
        ),
        (["POST /v1/messages HTTP/1.1", "Host: {host}", "Transfer-Encoding: gzip, chunked"], 400),
        (["POST /v1/messages HTTP/1.1", "Host: {host}", "Content-Length: 99999999999"], 413),
        (["POST /v1/messages HTTP/1.1", "Host: {host}", *["a: b"] * 200], 400),
        (["POST /v1/messages HTTP/1.1", "Host: {host}", "a: " + "b" * 40_000], 400),
    ],
)
def test_what_can_be_read_in_two_ways_is_not_read(local: Thinker, lines: list[str], status: int):
    host = f"127.0.0.1:{local.gateway.port}"
    text = "\r\n".join([*lines, f"authorization: Bearer {local.key}", "", "{}"])
    found = local.raw(text.replace("{host}", host).encode())
    assert found.startswith(b"HTTP/1.1 %d " % status), found[:100]
    assert local.provider.asked == []


def test_a_body_with_a_length_and_chunks_is_not_read(local: Thinker):
    request = (
        f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{local.gateway.port}\r\n"
        f"x-api-key: {local.key}\r\nContent-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n"
        "2\r\n{}\r\n0\r\n\r\n"
    )
    assert local.raw(request.encode()).startswith(b"HTTP/1.1 400 ")
    assert local.provider.asked == []


@pytest.mark.parametrize("sized", [True, False], ids=["sized", "chunked"])
def test_a_request_has_a_greatest_size(
    local: Thinker, monkeypatch: pytest.MonkeyPatch, sized: bool
):
    monkeypatch.setattr(wire, "BODY_BYTES", 1000)
    body = b'{"model": "' + b"x" * 2000 + b'"}'
    answer = local.http.post(
        "/v1/messages",
        headers=SHOWN["anthropic"](local.key),
        content=body if sized else iter([body[at : at + 600] for at in range(0, len(body), 600)]),
    )
    assert answer.status_code == 413
    assert all(len(each.body) < 1000 for each in local.provider.asked)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_neither_followed_nor_passed_on(local: Thinker, status: int):
    local.provider.answer = Answer(
        status=status, headers={"Location": "http://127.0.0.1:1/v1/messages"}
    )
    answer = local.ask()
    assert answer.status_code == 502
    assert "location" not in answer.headers
    assert len(local.provider.asked) == 1


@pytest.mark.criterion("O05")
def test_a_failure_of_the_provider_is_passed_on_without_the_real_key(local: Thinker):
    said = {"type": "error", "error": {"type": "rate_limit_error", "message": f"{REAL} is slow"}}
    local.provider.answer = Answer(
        body=json.dumps(said).encode(), status=429, headers={"retry-after": "7"}
    )
    answer = local.ask()
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert answer.json()["error"]["message"] == "[redacted] is slow"
    assert local.session.meter.told() == {"requests": 0}


def test_a_provider_that_is_down_is_said_to_be(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    with Provider(Answer()) as gone:
        pass
    with thinking(ledger, gone) as thinker:
        answer = thinker.ask()
        assert answer.status_code == 502
        assert "can't be reached" in answer.json()["error"]["message"]
    ledger.close()


def test_an_api_without_a_real_key_is_refused(sqlite_url: str, provider: Provider):
    ledger = open_ledger(sqlite_url)
    with thinking(ledger, provider, OPENAI_API_KEY="") as thinker:
        answer = thinker.ask("openai")
        assert answer.status_code == 403
        assert answer.json()["error"]["message"] == "this gateway has no key for openai"
        assert thinker.ask("anthropic").status_code == 200
    ledger.close()


def test_only_this_machine_can_reach_it(local: Thinker):
    assert local.gateway._loopback._listener.getsockname()[0] == "127.0.0.1"


def test_a_closed_gateway_answers_nobody_and_leaves_no_thread(sqlite_url: str, provider: Provider):
    ledger = open_ledger(sqlite_url)
    before = set(threading.enumerate())
    with thinking(ledger, provider) as thinker:
        assert thinker.ask().status_code == 200
        port = thinker.gateway.port
        until(lambda: len(threading.enumerate()) > len(before))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)
    until(lambda: not [t for t in set(threading.enumerate()) - before if "gateway" in t.name])
    ledger.close()
