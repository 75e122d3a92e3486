"""The stream of events: what is new, from where a listener stopped, as long as it may listen."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from tests.faces.web.conftest import Web, served
from tests.record.lives import OPERATOR, opened
from tests.table import each_row
from truegreen.faces.web.api import streams
from truegreen.faces.web.house import Address
from truegreen.faces.web.routes import API
from truegreen.model import Role, TaskStatus


class Heard(NamedTuple):
    """One event, as a browser would see it."""

    id: str
    event: str
    data: dict[str, Any]


class Listener:
    """Somebody who listens."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer
        self.comments = 0

    def next(self) -> Heard | None:
        """The next event; None when the stream has ended."""
        fields: dict[str, str] = {}
        while line := self.answer.readline():
            text = line.decode().rstrip("\r\n")
            if text.startswith(":"):
                self.comments += 1
            elif text:
                name, _, value = text.partition(": ")
                fields[name] = value
            elif "data" in fields:
                return Heard(fields["id"], fields["event"], json.loads(fields["data"]))
        return None


@contextmanager
def listening(web: Web, address: Address, query: str = "", **headers: str) -> Iterator[Listener]:
    line = http.client.HTTPConnection(address.host, address.port, timeout=10)
    headers.setdefault("Authorization", f"Bearer {web.secret(Role.OPERATOR)}")
    line.request("GET", f"{API}/events{query}", headers=headers)
    answer = line.getresponse()
    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (
        200,
        "text/event-stream",
    )
    try:
        yield Listener(answer)
    finally:
        line.close()


@pytest.fixture
def address(web: Web) -> Iterator[Address]:
    web.secret(Role.OPERATOR), web.secret(Role.VIEWER)  # these are events, too
    with served(web) as address:
        yield address


def opened_until_heard(web: Web, listener: Listener) -> Heard:
    """Listening begins a moment after the answer does: something happens until it is heard."""
    over = threading.Event()

    def act() -> None:
        while not over.wait(0.05):
            opened(web.ledger, title="hello")

    acting = threading.Thread(target=act)
    acting.start()
    try:
        heard = listener.next()
    finally:
        over.set()
        acting.join()
    assert heard is not None
    return heard


@pytest.mark.criterion("L08")
def test_what_happens_is_told_with_its_place_in_the_history(web: Web, address: Address):
    last = web.ledger.feed()[-1].event
    after = f"{last.xact}.{last.key}"
    with listening(web, address, f"?after={after}") as listener:
        task = opened(web.ledger, title="hello").id
        heard = listener.next()
    assert heard is not None
    assert (heard.event, heard.data["task"], heard.data["event"]) == ("open", task, "open")
    newest = web.ledger.feed()[-1].event
    assert heard.id == f"{newest.xact}.{newest.key}"


def test_who_comes_back_misses_nothing_and_hears_nothing_twice(web: Web, address: Address):
    told = [f"{each.event.xact}.{each.event.key}" for each in web.ledger.feed()]
    with listening(web, address, **{"Last-Event-ID": told[4]}) as listener:
        heard = [listener.next() for _ in range(3)]
    assert [each.id for each in heard if each] == told[5:8]
    with listening(web, address, **{"Last-Event-ID": told[-3]}) as listener:
        opened(web.ledger)
        heard = [listener.next() for _ in range(3)]
    assert [each.id for each in heard[:2] if each] == told[-2:]
    assert heard[2] is not None
    assert heard[2].data["event"] == "open"


def test_without_a_beginning_only_the_new_is_told(web: Web, address: Address):
    with listening(web, address) as listener:
        heard = opened_until_heard(web, listener)
    assert heard.data["event"] == "open"


def test_one_task_can_be_listened_to_alone(web: Web, address: Address):
    task = web.tasks[TaskStatus.SUCCEEDED]
    count = len(web.ledger.events(task))
    with listening(web, address, f"?task={task}&after=0.0") as listener:
        heard = [listener.next() for _ in range(count)]
    assert {each.data["task"] for each in heard if each} == {task}


def test_a_viewer_hears_no_secret(web: Web, address: Address):
    secret = "ghp_" + "a1B2" * 9
    last = web.ledger.feed()[-1].event
    bearer = {"Authorization": f"Bearer {web.secret(Role.VIEWER)}"}
    with listening(web, address, f"?after={last.xact}.{last.key}", **bearer) as listener:
        web.ledger.cancel(web.tasks[TaskStatus.QUEUED], actor=OPERATOR, reason=secret)
        heard = listener.next()
        while heard and heard.event != "cancel":
            heard = listener.next()
    assert heard is not None
    assert heard.data["reason"] == "[redacted]"


def test_comments_keep_the_line_open(web: Web, address: Address, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "PING_SECONDS", 1)
    with listening(web, address) as listener:
        line = listener.answer.readline()
    assert line.startswith(b": ping")


def test_a_listener_whose_token_is_revoked_hears_no_more(
    web: Web, address: Address, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(streams, "ASK_SECONDS", 0.05)
    token, secret = web.ledger.mint_token(Role.VIEWER, "guest", actor=OPERATOR)
    with listening(web, address, Authorization=f"Bearer {secret}") as listener:
        web.ledger.revoke_token(token.id, actor=OPERATOR, reason="gone")
        heard = listener.next()
        assert heard is None or heard.event == "token"
        assert listener.answer.read() == b"" or heard is None


def test_a_busy_stream_ends_for_the_revoked_as_well(
    web: Web, address: Address, monkeypatch: pytest.MonkeyPatch
):
    """The question is asked by the clock, not in a pause that never comes."""
    monkeypatch.setattr(streams, "ASK_SECONDS", 0.3)
    token, secret = web.ledger.mint_token(Role.VIEWER, "guest", actor=OPERATOR)
    with listening(web, address, Authorization=f"Bearer {secret}") as listener:
        web.ledger.revoke_token(token.id, actor=OPERATOR)
        heard = 0
        for _ in range(40):
            opened(web.ledger)
            if listener.next() is None:
                break
            heard += 1
        assert heard < 39


@each_row("wrong", ["x", "1", "1.", "-1.2", "1.2.3", "9" * 30 + ".1", "1.2\u0663"])
def test_a_place_that_is_none_is_refused(web: Web, wrong: str):
    client = web.client(Role.VIEWER)
    headers = {b"Last-Event-ID": wrong.encode()}
    assert client.get(f"{API}/events", headers=headers).status_code == 422
    assert client.get(f"{API}/events?after={wrong}").status_code == 422


def test_a_head_of_the_stream_does_not_begin_it(web: Web):
    answer = web.client(Role.VIEWER).head(f"{API}/events")
    assert (answer.status_code, answer.content) == (200, b"")
    missing = web.client(Role.VIEWER).get(f"{API}/events?task=tsk_0")
    assert missing.status_code == 404


def test_the_stream_ends_with_the_server(web: Web):
    with served(web) as address, listening(web, address) as listener:
        opened_until_heard(web, listener)
        line = listener
    assert line.answer.closed or line.next() is None


def test_an_event_beyond_the_end_is_of_another_history_and_refused(web: Web, address: Address):
    line = http.client.HTTPConnection(address.host, address.port, timeout=10)
    headers = {
        "Authorization": f"Bearer {web.secret(Role.OPERATOR)}",
        "Last-Event-ID": "9.99999999",
    }
    line.request("GET", f"{API}/events", headers=headers)
    answer = line.getresponse()
    assert (answer.status, json.loads(answer.read())["error"]["code"]) == (409, "stale")
    line.close()
