"""MCP over HTTP: with a token or not at all, at this host and from nowhere else."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.faces.conftest import SCRIPT
from tests.faces.mcp.conftest import Office
from tests.faces.mcp.talking import HELLO
from tests.faces.mcp.test_agents import ARGUMENTS, until
from tests.faces.mcp.test_tools import LEADING, OWN, READING
from tests.faces.web.test_outsiders import Asked, asked
from tests.record.lives import LEAD, OPERATOR, contract, opened, started
from truegreen.faces.deeds import Deeds
from truegreen.faces.mcp.crowd import WAITS_EACH
from truegreen.faces.mcp.http import PATH, alone
from truegreen.faces.web.house import Address, House
from truegreen.faces.web.live import Live
from truegreen.faces.web.serving import Serving, listening, serving_of
from truegreen.model import Mode, Role
from truegreen.record.ledger.entrance import SESSION
from truegreen.work.tree import mark_of

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
CALL = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"task_list","arguments":{%b}}}'
)


class Site:
    """The entrance on a port of its own."""

    def __init__(self, office: Office, address: Address) -> None:
        self.office, self.address = office, address
        self.url = f"{address.url}{PATH}"

    def post(
        self, message: dict[str, Any] | bytes, token: str = "", **headers: str
    ) -> httpx2.Response:
        """One request by hand."""
        sent = {**ACCEPT, **({"Authorization": f"Bearer {token}"} if token else {})}
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.post(self.url, content=body, headers={**sent, **given}, timeout=20)

    def call(self, token: str, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Use a tool, with no word before it."""
        params = {"name": name, "arguments": arguments}
        answer = self.post(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, token
        )
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = parsed(answer)["result"]["structuredContent"]
        return document

    def tools(self, token: str) -> set[str]:
        """What is offered."""
        return {tool["name"] for tool in parsed(self.post(LIST, token))["result"]["tools"]}


def parsed(answer: httpx2.Response) -> dict[str, Any]:
    """The answer, whether it came as a stream or whole."""
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    found: dict[str, Any] = json.loads(lines[-1][6:] if lines else answer.text)
    return found


@pytest.fixture
def site(office: Office) -> Iterator[Site]:
    listener, address = listening("127.0.0.1", 0)
    serving = Serving(alone(office.ledger, office.config, address), listener)
    serving.start()
    yield Site(office, address)
    serving.stop()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdks_own_client_lists_calls_and_hears_progress(site: Site, mode: str) -> None:
    token = site.office.key(Role.LEAD, "planner")
    task = opened(site.office.ledger).id
    site.office.ledger.enlist("h/1", "here")
    heard: list[str] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async def talk() -> tuple[set[str], Any]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            wire = streamable_http_client(site.url, http_client=http)
            async with Client(wire, mode=mode) as client:
                offered = {tool.name for tool in (await client.list_tools()).tools}
                waiting = {"task": task, "wait_seconds": 1}
                shown = await client.call_tool("task_run", waiting, progress_callback=listen)
        return offered, shown.structured_content

    offered, shown = anyio.run(talk)
    assert offered == LEADING
    assert shown["id"] == task
    assert "not settled" in heard[0]


def test_a_request_needs_no_word_before_it_and_leaves_no_session(site: Site) -> None:
    token = site.office.key(Role.VIEWER)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    answer = site.post(hello, token)
    assert parsed(answer)["result"]["serverInfo"]["name"] == "truegreen"
    assert "mcp-session-id" not in answer.headers
    assert site.tools(token) == READING


@pytest.mark.criterion("O01")
def test_tools_appear_by_the_tokens_role(site: Site) -> None:
    keys = {role: site.office.key(role) for role in (Role.VIEWER, Role.LEAD, Role.OPERATOR)}
    _, _, agent = site.office.agent()
    offered = {role: site.tools(key) for role, key in keys.items()}
    assert offered == {Role.VIEWER: READING, Role.LEAD: LEADING, Role.OPERATOR: LEADING}
    assert site.tools(agent) == OWN
    made = site.call(keys[Role.LEAD], "task_create", command=["true"])
    assert made["created_by"] == "lead:lead"
    assert (
        site.call(keys[Role.VIEWER], "task_stop", task=made["id"])["error"]["code"] == "forbidden"
    )


@pytest.mark.criterion("L17")
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT", "OPTIONS", "HEAD"])
def test_nobody_without_a_token_gets_anything(site: Site, method: str) -> None:
    ledger = site.office.ledger
    _, code = ledger.mint_login(Role.OPERATOR, "ana", actor=OPERATOR)
    _, session = ledger.log_in(code)
    revoked = site.office.key(Role.LEAD, "gone")
    token = next(t for t in ledger.tokens() if t.name == "gone")
    ledger.revoke_token(token.id, actor=OPERATOR)
    assert ledger.authenticate(session, kind=SESSION).role is Role.OPERATOR
    for headers in (
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer tg_operator_guess"},
        {"Authorization": f"Bearer {'x' * 5000}"},
        {"Authorization": "Basic b3BlcmF0b3I6"},
        {"Authorization": f"Bearer {revoked}"},
        {"Authorization": f"Bearer {session}"},
        {"Cookie": f"truegreen_session_8787={session}"},
    ):
        answer = httpx2.request(method, site.url, headers={**ACCEPT, **headers}, content=b"{}")
        assert answer.status_code == 401, headers
        assert answer.headers["www-authenticate"] == "Bearer"
        if method != "HEAD":
            assert answer.json()["error"]["code"] == "unauthenticated"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"])
def test_there_is_nothing_to_listen_to_and_no_session_to_end(site: Site, method: str) -> None:
    headers = {**ACCEPT, "Authorization": f"Bearer {site.office.key(Role.VIEWER)}"}
    answer = httpx2.request(method, site.url, headers=headers)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.criterion("L17")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:{port}"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
    ],
)
def test_a_foreign_host_or_origin_is_turned_away_with_any_token(
    site: Site, headers: dict[str, str], status: int
) -> None:
    token = site.office.key(Role.OPERATOR)
    given = {name: value.format(port=site.address.port) for name, value in headers.items()}
    answer = site.post(LIST, token, **given)
    assert answer.status_code == status
    assert "tools" not in answer.text


@pytest.mark.criterion("G02")
def test_a_terminated_agents_token_is_refused_by_every_tool_as_a_result(site: Site) -> None:
    _, ticket, token = site.office.agent()
    site.office.ledger.terminate(ticket.task, actor=OPERATOR)
    assert site.tools(token) == OWN
    for name, arguments in ARGUMENTS.items():
        assert site.call(token, name, **arguments)["error"]["code"] == "terminated", name
    for name in sorted(LEADING):
        assert site.call(token, name)["error"]["code"] == "terminated", name


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        b"[]",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/judge","params":{}}',
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
        CALL % b'"search":"\\ud800"',
        CALL % b'"search":"\\u0000"',
        CALL % b'"limit":1e999',
    ],
    ids=range(11),
)
def test_what_is_no_request_is_refused_and_breaks_nothing(site: Site, body: bytes) -> None:
    token = site.office.key(Role.VIEWER)
    answer = site.post(body, token)
    assert answer.status_code < 500, answer.text
    assert site.tools(token) == READING


def test_too_much_is_not_even_read(site: Site) -> None:
    answer = site.post(b" " * (5 << 20), site.office.key(Role.VIEWER))
    assert answer.status_code == 413


def test_too_much_that_nobody_announced_is_refused_in_the_same_words(site: Site) -> None:
    known = {**ACCEPT, "Authorization": f"Bearer {site.office.key(Role.VIEWER)}"}
    pieces = (b" " * (1 << 16) for _ in range(40))
    answer = httpx2.post(site.url, content=pieces, headers=known, timeout=20)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "invalid_input")


# -- a crowd ---------------------------------------------------------------------------------------


class Waiters:
    """Calls that wait, each on a line of its own, until they are hung up."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lines: list[socket.socket] = []

    def call(self, token: str, name: str, **arguments: Any) -> socket.socket:
        """Make a call and don't wait for what it answers."""
        params = {"name": name, "arguments": arguments, "_meta": {"progressToken": 1}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        address = self._site.address
        head = {
            **ACCEPT,
            "Host": f"127.0.0.1:{address.port}",
            "Authorization": f"Bearer {token}",
            "Content-Length": str(len(body)),
        }
        lines = [f"POST {PATH} HTTP/1.1", *(f"{key}: {value}" for key, value in head.items())]
        line = socket.create_connection(("127.0.0.1", address.port), timeout=10)
        line.sendall("\r\n".join([*lines, "", body]).encode())
        self._lines.append(line)
        return line

    def hang_up(self, keep: int = 0) -> None:
        """All of them, or all but a few."""
        while len(self._lines) > keep:
            self._lines.pop().close()


@pytest.fixture
def waiters(site: Site) -> Iterator[Waiters]:
    made = Waiters(site)
    yield made
    made.hang_up()


def heard(line: socket.socket, words: str) -> str:
    """What came on a line, as soon as these words are in it."""
    told = ""
    while words not in told:
        chunk = line.recv(65536)
        assert chunk, told
        told += chunk.decode()
    return told


def test_sixty_four_that_wait_keep_nobody_from_being_answered(site: Site, waiters: Waiters) -> None:
    """Each agent waits as often as it may; threads are for those who do something."""
    ledger, tokens = site.office.ledger, []
    for _ in range(4):
        _, ticket, token = site.office.agent(mode=Mode.ASSISTED)
        ledger.checkpoint(ticket, "push", actor=ledger.authenticate(token))
        tokens.append(token)
    lines = [waiters.call(token, "checkpoint", action="push") for token in tokens * 16]
    for line in lines:
        heard(line, "waiting for a person")
    lead, task = site.office.key(Role.LEAD, LEAD.name), ledger.open(contract(), actor=LEAD).id
    assert len(site.call(lead, "task_list")["tasks"]) == 5
    assert site.call(tokens[0], "my_task")["task_status"] == "awaiting_approval"
    assert site.call(lead, "task_terminate", task=task)["outcome"] == "clean"
    for line in lines:  # none of them made room: all wait still
        line.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            assert b'"result"' not in line.recv(65536)


def test_one_caller_waits_so_often_and_what_is_too_much_does_nothing(
    site: Site, waiters: Waiters
) -> None:
    lead, task = site.office.key(Role.LEAD, "planner"), opened(site.office.ledger).id
    site.office.ledger.enlist("h/1", "here")
    lines = [waiters.call(lead, "task_run", task=task) for _ in range(WAITS_EACH)]
    for line in lines:
        heard(line, "not settled")
    refused = site.call(lead, "task_run", command=["true"])["error"]
    assert (refused["code"], "wait already" in refused["message"]) == ("unavailable", True)
    assert len(site.call(lead, "task_list")["tasks"]) == 1
    other = site.office.key(Role.LEAD, "another")
    assert site.call(other, "task_run", task=task, wait_seconds=0)["id"] == task
    waiters.hang_up(keep=1)
    until(lambda: not _is_full(site, lead, task))


def _is_full(site: Site, token: str, task: str) -> bool:
    return "error" in site.call(token, "task_run", task=task, wait_seconds=0)


def test_a_token_that_died_while_it_waited_is_told_nothing(site: Site, waiters: Waiters) -> None:
    ledger = site.office.ledger
    lead, task = site.office.key(Role.LEAD, "planner"), opened(ledger).id
    ledger.enlist("h/1", "here")
    line = waiters.call(lead, "task_run", task=task)
    heard(line, "not settled")
    token = next(each for each in ledger.tokens() if each.name == "planner")
    ledger.revoke_token(token.id, actor=OPERATOR)
    ledger.cancel(task, actor=OPERATOR)
    told = heard(line, "structuredContent")
    assert '"unauthenticated"' in told
    assert '"task_status"' not in told


@pytest.mark.criterion("L17")
def test_the_web_face_has_the_same_entrance_behind_its_guard(office: Office) -> None:
    listener, address = listening("127.0.0.1", 0)
    deeds = Deeds(office.ledger, office.config)
    house = House(office.config, office.ledger, deeds, address, Live(office.ledger))
    serving = serving_of(house, listener)
    serving.start()
    try:
        site = Site(office, address)
        token = office.key(Role.LEAD, "planner")
        assert site.tools(token) == LEADING
        assert site.call(token, "task_create", command=["true"])["created_by"] == "lead:planner"
        assert site.post(LIST).status_code == 401
        assert site.post(LIST, token, Host="evil.example").status_code == 421
        assert site.post(LIST, token, Origin="https://evil.example").status_code == 403
    finally:
        serving.stop()


def test_the_command_serves_on_loopback_until_it_is_told_to_end(
    office: Office, environ: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    token = office.key(Role.VIEWER)
    with subprocess.Popen(
        [SCRIPT, "mcp", "--http", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ(),
        cwd=tmp_path,
    ) as process:
        assert process.stdout
        url = json.loads(process.stdout.readline())["url"]
        assert url.startswith("http://127.0.0.1:")
        headers = {**ACCEPT, "Authorization": f"Bearer {token}"}
        answer = httpx2.post(url, json=LIST, headers=headers)
        assert {t["name"] for t in parsed(answer)["result"]["tools"]} == READING
        begun = time.monotonic()
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(20) == 0
        assert time.monotonic() - begun < 5


@pytest.mark.criterion("O02")
def test_no_process_of_a_run_is_a_lead_or_an_operator_here(site: Site) -> None:
    ticket = started(site.office.ledger)
    heads = [
        {**ACCEPT, "Authorization": f"Bearer {site.office.key(role)}"}
        for role in (Role.LEAD, Role.OPERATOR)
    ]
    asks: list[Asked] = [("POST", PATH, LIST, head) for head in heads]
    inside = asked(site.address, mark_of(ticket.run), *asks)
    assert [status for status, _ in inside] == [403, 403]
    assert all(f"this is inside {ticket.run}" in body for _, body in inside)
    assert [status for status, _ in asked(site.address, 0, *asks)] == [200, 200]
