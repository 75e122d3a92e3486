"""Whence they come, what they call, how much they bring: every route, before anybody is known."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.faces.web.conftest import HERE, HOST, Ask, Reply, Web, served
from tests.faces.web.test_roles import filled, parts_of
from tests.record.lives import opened, started
from tests.table import each_row
from truegreen.faces.web.guarding import HEADERS, LARGEST_BODY, LARGEST_UPLOAD
from truegreen.faces.web.lines import LARGEST_HEAD
from truegreen.faces.web.routes import API, ROUTES, Nothing, Route
from truegreen.model import Role, TaskStatus

Headers = list[tuple[str, str]]
JSON = ("Content-Type", "application/json")
ELSEWHERE: dict[str, tuple[int, Headers]] = {
    "another host": (421, [("Host", "evil.example")]),
    "another host on our port": (421, [("Host", "evil.example:8787")]),
    "a name that was rebound to us": (421, [("Host", "127.0.0.1.evil.example:8787")]),
    "our address, another port": (421, [("Host", "127.0.0.1:8788")]),
    "our address without a port": (421, [("Host", "127.0.0.1")]),
    "a user in the host": (421, [("Host", f"evil.example@{HOST}")]),
    "two hosts": (421, [("Host", HOST), ("Host", "evil.example")]),
    "the same host twice": (421, [("Host", HOST), ("Host", HOST)]),
    "an empty host": (421, [("Host", "")]),
    "another host, forwarded": (421, [("Host", "evil.example"), ("X-Forwarded-Host", HOST)]),
    "another origin": (403, [("Origin", "http://evil.example")]),
    "an origin on another port": (403, [("Origin", "http://127.0.0.1:3000")]),
    "no origin at all": (403, [("Origin", "null")]),
    "an origin that begins like ours": (403, [("Origin", f"{HERE}.evil.example")]),
    "two origins": (403, [("Origin", HERE), ("Origin", "http://evil.example")]),
    "another site": (403, [("Sec-Fetch-Site", "cross-site")]),
    "a sibling site": (403, [("Sec-Fetch-Site", "same-site")]),
    "a word for a site": (403, [("Sec-Fetch-Site", "Same-Origin ,none")]),
}


@pytest.mark.criterion("L17")
@pytest.mark.parametrize("whence", ELSEWHERE)
def test_who_comes_from_elsewhere_is_refused_on_every_route(web: Web, whence: str):
    status, headers = ELSEWHERE[whence]
    known = [web.known(Role.OPERATOR)]
    parts = parts_of(web, started(web.ledger))
    unknown = [Ask("GET", path, [*known, *headers]) for path in ("/", "/nothing", f"{API}/x")]
    asks = [Ask(each.method, filled(each, parts), [*known, *headers]) for each in ROUTES]
    for ask, answer in zip([*asks, *unknown], web.ask([*asks, *unknown]), strict=True):
        assert answer.status == status, ask
        assert answer.code == "forbidden"
        assert HEADERS.items() <= titled(answer).items()


def titled(answer: Reply) -> dict[str, str]:
    return {name: answer.headers.get(name.lower(), "") for name in HEADERS}


def test_a_link_from_elsewhere_opens_a_page_and_never_the_api(web: Web):
    link = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]
    known = web.known(Role.OPERATOR)
    page, api, form = web.ask(
        [
            Ask("GET", "/nothing", [known, *link]),
            Ask("GET", f"{API}/tasks", [known, *link]),
            Ask("POST", "/nothing", [known, *link]),
        ]
    )
    assert (page.status, api.status, form.status) == (404, 403, 403)


def test_our_own_names_and_pages_are_welcome(web: Web):
    known = web.known(Role.VIEWER)
    for host in ("127.0.0.1:8787", "localhost:8787", "LOCALHOST:8787", "[::1]:8787"):
        headers = [known, ("Host", host), ("Origin", f"http://{host}")]
        (answer,) = web.ask([Ask("GET", f"{API}/tasks", headers)])
        assert answer.status == 200, host


def test_every_answer_carries_the_headers_that_keep_browsers_in(web: Web):
    asks = [
        Ask("GET", f"{API}/tasks", [web.known(Role.VIEWER)]),
        Ask("GET", f"{API}/tasks"),
        Ask("GET", "/nothing", [web.known(Role.VIEWER)]),
        Ask("PUT", f"{API}/tasks", [web.known(Role.VIEWER)]),
        Ask("GET", f"{API}/healthz"),
    ]
    for ask, answer in zip(asks, web.ask(asks), strict=True):
        assert titled(answer) == HEADERS, ask
        assert "cache-control" in answer.headers
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_nothing_here_speaks_websocket(web: Web):
    client = web.client(Role.OPERATOR)
    for path in (f"{API}/events", "/", f"{API}/healthz"):
        with pytest.raises(Exception, match=r"1008|") as refused, client.websocket_connect(path):
            pass
        assert "Disconnect" in type(refused.value).__name__


# --- over a real line


@contextmanager
def line(web: Web) -> Iterator[Callable[[bytes], bytes]]:
    """What comes back for raw bytes, over a real socket."""
    with served(web) as address:

        def said(request: bytes) -> bytes:
            with socket.create_connection((address.host, address.port), timeout=5) as line:
                line.sendall(request.replace(b"PORT", str(address.port).encode()))
                return b"".join(iter(lambda: line.recv(65536), b""))

        yield said


def test_raw_requests_find_no_way_around(web: Web):
    token = f"Authorization: Bearer {web.secret(Role.OPERATOR)}\r\n".encode()
    here = b"Host: 127.0.0.1:PORT\r\n"
    end = b"Connection: close\r\n\r\n"
    with line(web) as said:
        fine = said(b"GET /api/v1/healthz HTTP/1.1\r\n" + here + end)
        assert fine.startswith(b"HTTP/1.1 200")
        assert b"server:" not in fine.lower()
        for path in (b"http://evil.example/api/v1/tasks", b"/api/v1/tasks"):
            request = b"GET %b HTTP/1.1\r\nHost: evil.example\r\n" % path
            assert said(request + token + end).startswith(b"HTTP/1.1 421")
        absolute = b"GET http://evil.example/api/v1/tasks HTTP/1.1\r\n" + here + end
        assert re.match(rb"HTTP/1.1 4\d\d", said(absolute))
        doubled = b"GET /api/v1/tasks HTTP/1.1\r\n" + here + b"Host: evil.example\r\n" + token
        assert re.match(rb"HTTP/1.1 4\d\d", said(doubled + end))
        nameless = b"GET /api/v1/tasks HTTP/1.0\r\n" + token + end
        assert re.match(rb"HTTP/1.[01] 4\d\d", said(nameless))
        folded = b"GET /api/v1/tasks HTTP/1.1\r\n" + here + b"X: a\r\n Host: evil\r\n" + token
        assert b"evil" not in said(folded + end)
        split = b"POST /api/v1/tasks HTTP/1.1\r\n" + here + token
        both = split + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n" + end + b"0\r\n\r\n"
        assert re.match(rb"HTTP/1.1 4\d\d", said(both))
        assert said(b"GET / HTTP/9.9\r\n" + here + end)[:12] in (b"HTTP/1.1 400", b"")


# --- how much, and what


BAD_BODIES: dict[str, tuple[tuple[int, ...], bytes]] = {
    "no JSON": ((400,), b"{"),
    "no UTF-8": ((400, 422), b'{"reason": "\xff\xfe"}'),
    "half a character": ((400, 422), b'{"reason": "\\ud800"}'),
    "a list": ((422,), b"[]"),
    "a word": ((422,), b'"reason"'),
    "null": ((422,), b"null"),
    "an unknown key": ((422,), b'{"no such key": 1}'),
    "not a number": ((400, 422), b'{"reason": NaN}'),
    "a tail": ((400, 422), b"{} {}"),
    "a huge number": ((400, 422), b'{"reason": %d}' % (10**400)),
    "deep": ((400, 422), b'{"reason": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "deep objects": ((400, 422), b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "too large": ((413,), b'{"reason": "' + b"x" * LARGEST_BODY + b'"}'),
}


def takers() -> list[Route]:
    return [
        each for each in ROUTES if each.is_api and each.body is not None and each.body is not bytes
    ]


@pytest.mark.parametrize("kind", BAD_BODIES)
def test_no_body_breaks_any_route(web: Web, kind: str):
    statuses, body = BAD_BODIES[kind]
    parts = {**parts_of(web, started(web.ledger)), "task": web.tasks[TaskStatus.TERMINATED]}
    routes = [each for each in takers() if Role.OPERATOR in each.roles]
    known = [web.known(Role.OPERATOR), JSON]
    asks = [Ask(each.method, filled(each, parts), known, body) for each in routes]
    asks += [each._replace(body=[body[:10], body[10:]]) for each in asks[:3]]  # no length said
    for ask, answer in zip(asks, web.ask(asks), strict=True):
        assert answer.status in statuses, (ask.path, answer)


@pytest.mark.parametrize("extra", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000, b"1e999"])
def test_nothing_that_an_agent_adds_to_its_word_breaks_it(web: Web, extra: bytes):
    ticket, secret = web.agent()
    body = b'{"kind": "done", "extra": {"a": ' + extra + b"}}"
    path = f"{API}/runs/{ticket.run}/declare"
    (answer,) = web.ask([Ask("POST", path, [web.known(secret), JSON], body)])
    assert answer.status in (400, 422), answer
    assert web.ledger.claim(ticket.run) is None


def test_a_body_of_another_kind_is_refused(web: Web):
    task = web.tasks[TaskStatus.QUEUED]
    for media in ("text/plain", "application/xml", "multipart/form-data; boundary=x", ""):
        headers = [web.known(Role.OPERATOR), *([("Content-Type", media)] if media else [])]
        (answer,) = web.ask([Ask("POST", f"{API}/tasks/{task}/cancel", headers, b"{}")])
        assert answer.status == 400, media
    assert web.ledger.task(task).status is TaskStatus.QUEUED


@pytest.mark.parametrize(
    "length", ["-1", "1e3", "0x10", "٣", " 5", "9" * 5000, str(LARGEST_UPLOAD + 1)]
)
def test_a_length_that_is_none_or_too_much_is_refused(web: Web, length: str):
    headers = [web.known(Role.OPERATOR), JSON]
    if length.isascii():
        headers.append(("Content-Length", length))
        (answer,) = web.ask([Ask("POST", f"{API}/tasks", headers, b"{}")])
        assert answer.status == 413


def test_a_body_that_says_less_than_it_brings_is_cut(web: Web):
    pieces = [b"x" * (1 << 16)] * 20
    (answer,) = web.ask([Ask("POST", f"{API}/tasks", [web.known(Role.OPERATOR), JSON], pieces)])
    assert (answer.status, answer.code) == (413, "invalid_input")


def test_a_route_that_takes_no_body_and_no_query_takes_none(web: Web):
    bare = [each for each in takers() if each.body is Nothing and Role.OPERATOR in each.roles]
    assert bare
    parts = parts_of(web, started(web.ledger))
    known = [web.known(Role.OPERATOR), JSON]
    for each in bare:
        path = filled(each, parts)
        body, query = web.ask(
            [Ask("POST", path, known, b'{"a":1}'), Ask("POST", f"{path}?a=1", known)]
        )
        assert (body.status, query.status) == (422, 422), each.path


QUERIES = (
    *("limit=0", "limit=1001", "limit=1e9", "limit=-1", "limit=" + "9" * 5000, "limit=x"),
    *("limit=1&limit=2", "status=green", "status=", "cell=%00", "after=0.x", "after=%F0%28"),
    *("nothing=1", "search=" + "x" * 20_000, "exit_reason=None", "role=a&role=b", "=", "&&a"),
)


@each_row("query", QUERIES)
def test_a_query_that_is_wrong_is_refused(web: Web, query: str):
    (answer,) = web.ask([Ask("GET", f"{API}/tasks?{query}", [web.known(Role.VIEWER)])])
    assert answer.status in (400, 422), (query[:40], answer)


def test_a_search_is_words_and_never_a_program(web: Web):
    for words in ("' OR 1=1 --", '"', "NEAR(", "*", "a AND", "%00", "ﷺ" * 100, "\U0001fae8"):
        (answer,) = web.ask([Ask("GET", f"{API}/tasks?search={words}", [web.known(Role.VIEWER)])])
        assert answer.status in (200, 422), words


# --- where they point


TRAVERSAL = (
    *("..", "../..", "..%2f..%2fetc%2fpasswd", "%2e%2e", "%2e%2e%2f", "..%5c..", "....//"),
    *("%00", "tsk_%00", "tsk_1%00.json", "/etc/passwd", "%2fetc%2fpasswd", "~root", "C:%5cx"),
    *("%c0%ae%c0%ae%c0%af", "%u002e", "%ff", "%F0%9F%92%A9", "\u202etxt", "x" * 20_000),
    *("'; DROP TABLE tasks;--", "<script>", "{task}", "%7B%7D", "*", "?", "#", "run_", "tsk_"),
    *("-1", "0", "true", "null", " ", "%0d%0aX:%20y", "\uff41", "tsk_" + "z" * 100),
)


@pytest.mark.criterion("O08")
def test_no_path_leads_out_and_none_breaks_anything(web: Web):
    parts = parts_of(web, started(web.ledger))
    known = [web.known(Role.OPERATOR), JSON]
    asks = []
    for each in ROUTES:
        for name in re.findall(r"\{(\w+)", each.path):
            if Role.OPERATOR in each.roles:
                asks += [
                    Ask(each.method, filled(each, {**parts, name: bad}), known) for bad in TRAVERSAL
                ]
    for ask, answer in zip(asks, web.ask(asks), strict=True):
        # An address that ends early may be another one, of something that may be looked at.
        early = any(mark in ask.path for mark in "?#") or "/.." in ask.path
        assert 400 <= answer.status < 500 or (early and answer.status == 200), (ask, answer)
        assert b"root:" not in answer.body
        assert b"Traceback" not in answer.body


def test_an_agents_own_routes_stand_the_same(web: Web):
    _, secret = web.agent()
    asks = [
        Ask(each.method, filled(each, {"run": bad, "task": bad}), [web.known(secret), JSON])
        for each in ROUTES
        if Role.AGENT in each.roles
        for bad in TRAVERSAL
    ]
    for ask, answer in zip(asks, web.ask(asks), strict=True):
        assert 400 <= answer.status < 500, ask


def test_a_client_that_leaves_in_the_middle_breaks_nothing(web: Web):
    (answer,) = web.ask([Ask("POST", f"{API}/tasks", [web.known(Role.OPERATOR), JSON], [])])
    assert answer.status == 400


def test_no_route_of_the_api_takes_a_form_for_json(web: Web):
    bodies = [r for r in ROUTES if r.is_api and r.body is not None and r.body is not bytes]
    taking = [r for r in bodies if Role.OPERATOR in r.roles]
    header = ("Authorization", f"Bearer {web.secret(Role.OPERATOR)}")
    form = ("Content-Type", "application/x-www-form-urlencoded")
    asks = [
        Ask(
            r.method, re.sub(r"\{\w+\}", "tsk_nowhere", r.path), (header, form), b'{"dry_run":true}'
        )
        for r in taking
    ]
    replies = web.ask(asks)
    assert {reply.status for reply in replies} == {400}
    assert len(replies) > 15


def test_a_field_of_a_form_that_nobody_knows_is_refused_even_when_it_is_empty(web: Web):
    task = opened(web.ledger)
    said = web.browser().post(f"/tasks/{task.id}/cancel", data={"reason": "", "dry_run": ""})
    assert said.status_code == 422
    assert web.ledger.task(task.id).status == "queued"


def test_a_head_that_is_too_large_is_refused_before_anybody_is_asked(web: Web):
    large = ("X-A", "a" * LARGEST_HEAD)
    asks = [
        Ask("GET", f"{API}/healthz", [large]),
        Ask("GET", f"{API}/tasks?search={'a' * LARGEST_HEAD}", [web.known(Role.VIEWER)]),
    ]
    assert [(answer.status, answer.code) for answer in web.ask(asks)] == [
        (431, "invalid_input")
    ] * 2
