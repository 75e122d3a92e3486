"""Hooks by HTTP: the same answers as by a command, in the words that a client takes for a no."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.record.lives import OPERATOR, started
from truegreen.contract import parse_duration
from truegreen.doors.hook_post import HookPost
from truegreen.doors.hooking import Behind
from truegreen.doors.run_door import RunDoor
from truegreen.facts import SYSTEM, Ticket
from truegreen.model import Role
from truegreen.record.ledger import Ledger, open_ledger

DATABASES = ("sqlite",)

CLIENT = "claude-code"
CALL = {"tool_name": "Bash", "tool_input": {"command": "make check"}, "session_id": "s-1"}


class Poster:
    """A client whose hooks are addresses."""

    def __init__(self, ledger: Ledger, ticket: Ticket, post: HookPost) -> None:
        self.ledger, self.ticket = ledger, ticket
        self.address = urlsplit(post.address(CLIENT, ""))
        _, self.token = ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)
        self.line = http.client.HTTPConnection(str(self.address.netloc), timeout=20)

    def post(self, event: str, payload: object = CALL, **headers: str) -> Any:
        """What a successful answer holds; nothing where it is empty."""
        status, body = self.asked("POST", f"/{CLIENT}/{event}", json.dumps(payload), **headers)
        assert status == 200
        return json.loads(body) if body else None

    def asked(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, bytes]:
        given = {"Authorization": f"Bearer {self.token}", **headers}
        self.line.request(method, path, body, given)
        answer = self.line.getresponse()
        return answer.status, answer.read()


@pytest.fixture
def poster(tmp_path: Path) -> Iterator[Poster]:
    with closing(open_ledger(os.environ["TRUEGREEN_STORE"])) as ledger:
        ticket, stops = started(ledger), ["It is not done yet"]
        door = RunDoor(
            ledger,
            ticket,
            str(tmp_path / "door"),
            patience=parse_duration("1h"),
            digest=lambda: "tree:1",
            behind=Behind(at_stop=lambda _: stops.pop() if stops else ""),
        )
        post = HookPost(door.hooked)
        poster = Poster(ledger, ticket, post)
        yield poster
        poster.line.close()
        post.close()
        door.close()


def test_what_may_go_on_is_answered_with_nothing_again_and_again(poster: Poster) -> None:
    first = poster.line
    assert [poster.post(event) for event in ("SessionStart", "PreToolUse", "PostToolUse")] == [
        None
    ] * 3
    assert poster.line is first


@pytest.mark.criterion("G02")
def test_a_terminated_run_is_told_no_in_every_event_that_lets_something_happen(
    poster: Poster,
) -> None:
    poster.ledger.terminate(poster.ticket.task, actor=OPERATOR)
    tool = poster.post("PreToolUse")["hookSpecificOutput"]
    assert (tool["hookEventName"], tool["permissionDecision"]) == ("PreToolUse", "deny")
    assert "terminated" in tool["permissionDecisionReason"]
    prompt = poster.post("UserPromptSubmit")
    assert prompt["decision"] == "block"
    assert "terminated" in prompt["reason"]
    for event in ("SessionStart", "SubagentStart", "PostToolUse"):
        assert poster.post(event)["continue"] is False
    assert poster.post("Stop") is None  # to keep it from stopping would send it on


@pytest.mark.parametrize("said", ["", "Bearer tg_agent_x", "Basic eDp5"])
def test_who_shows_no_token_of_this_run_is_told_no(poster: Poster, said: str) -> None:
    told = poster.post("PreToolUse", Authorization=said)["hookSpecificOutput"]
    assert told["permissionDecision"] == "deny"


def test_an_agent_whose_work_is_not_done_is_sent_back(poster: Poster) -> None:
    assert poster.post("Stop") == {"decision": "block", "reason": "It is not done yet"}
    assert poster.post("Stop") is None


@pytest.mark.parametrize("payload", ["{", "[]", "7", "\ud800"])
def test_what_can_t_be_read_lets_nothing_happen(poster: Poster, payload: str) -> None:
    body = payload.encode("utf-8", "surrogatepass").decode("latin-1")
    status, answer = poster.asked("POST", f"/{CLIENT}/PreToolUse", body)
    assert status == 200
    assert json.loads(answer)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_body_that_breaks_off_lets_nothing_happen(poster: Poster) -> None:
    with socket.create_connection((poster.address.hostname, poster.address.port), 20) as line:
        host = f"Host: {poster.address.netloc}\r\nTransfer-Encoding: chunked\r\n"
        line.sendall(f"POST /{CLIENT}/PreToolUse HTTP/1.1\r\n{host}\r\nnonsense\r\n".encode())
        answer = b""
        while part := line.recv(4096):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"permissionDecision":"deny"' in answer


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/claude-code/Stop"), ("POST", "/"), ("POST", "/a/b/c")]
)
def test_there_is_nothing_else_here(poster: Poster, method: str, path: str) -> None:
    assert poster.asked(method, path)[0] == 404


def test_a_page_that_was_led_here_by_a_name_is_not_heard(poster: Poster) -> None:
    status, _ = poster.asked("POST", f"/{CLIENT}/Stop", "{}", Host="evil.example")
    assert status == 421


def test_nobody_is_heard_once_it_is_closed() -> None:
    post = HookPost(lambda *_: pytest.fail("asked"))
    address = urlsplit(post.address(CLIENT, "Stop"))
    post.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((address.hostname, address.port), 5)
