"""What an agent wrote, over HTTP: the bytes as they are kept, in parts, and as they come."""

from __future__ import annotations

import http.client
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faces.web.conftest import Web, served
from tests.record.lives import OPERATOR, ended, started
from truegreen.app import place_of
from truegreen.faces.web import serving
from truegreen.faces.web.api import lasting, logs, masking
from truegreen.faces.web.house import Address
from truegreen.faces.web.live import Live
from truegreen.faces.web.routes import API
from truegreen.facts import Ticket
from truegreen.model import Role

HOSTILE = b"<script>alert(1)</script>\x00\xff\xfe\x1b[2J \xe2\x80\xae\n"


def written(web: Web, data: bytes, name: str = "stdout.log", **more: Any) -> Ticket:
    """A live run that wrote something."""
    ticket = started(web.ledger, **more)
    folder = Path(place_of(web.config).run_dir(ticket.run))
    folder.mkdir(parents=True)
    (folder / name).write_bytes(data)
    return ticket


SESSION = "5f1c9d3e-0b7a-4c1e-9d55-aa10b2c3d4e5"
SPOKEN = b'{"session_id":"%s"}\nhello\n' % SESSION.encode()
HIDDEN = b'{"session_id":"[redacted]"}\nhello\n'


def conversing(web: Web, data: bytes, session: str | None = SESSION) -> Ticket:
    """A live run of an agent, whose conversation the record may know by its name."""
    agent = web.ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session=session)
    return written(web, data, agent_id=agent.id)


def url(ticket: Ticket, query: str = "") -> str:
    return f"{API}/runs/{ticket.run}/log{query}"


@pytest.mark.criterion("L16")
def test_output_comes_as_it_is_kept_and_never_as_a_page(web: Web):
    answer = web.client(Role.VIEWER).get(url(written(web, HOSTILE)))
    assert (answer.status_code, answer.content) == (200, HOSTILE)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize(
    ("asked", "status", "expected", "told"),
    [
        ("bytes=0-0", 206, b"0", "bytes 0-0/10"),
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=8-100", 206, b"89", "bytes 8-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-100", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=99-100", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
        ("bytes=4-2", 200, b"0123456789", None),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("bytes=x", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=" + "9" * 40 + "-", 200, b"0123456789", None),
    ],
)
def test_a_part_is_what_was_asked_for(
    web: Web, asked: str, status: int, expected: bytes | None, told: str | None
):
    ticket = written(web, b"0123456789")
    answer = web.client(Role.VIEWER).get(url(ticket), headers={"Range": asked})
    assert answer.status_code == status
    assert answer.headers.get("content-range") == told
    if expected is None:
        assert answer.json()["error"]["code"] == "invalid_input"
    else:
        assert answer.content == expected
        assert int(answer.headers["content-length"]) == len(expected)


def test_a_part_of_another_version_is_all_of_this_one(web: Web):
    ticket = written(web, b"0123456789")
    client = web.client(Role.VIEWER)
    tag = client.get(url(ticket)).headers["etag"]
    part = client.get(url(ticket), headers={"Range": "bytes=1-2", "If-Range": tag})
    assert part.content == b"12"
    Path(place_of(web.config).run_dir(ticket.run), "stdout.log").write_bytes(b"other words")
    whole = client.get(url(ticket), headers={"Range": "bytes=1-2", "If-Range": tag})
    assert (whole.status_code, whole.content) == (200, b"other words")
    again = client.get(url(ticket), headers={"If-None-Match": whole.headers["etag"]})
    assert again.status_code == 304


def test_standard_error_is_a_file_of_its_own(web: Web):
    ticket = written(web, b"oops\n", "stderr.log")
    client = web.client(Role.VIEWER)
    assert client.get(url(ticket, "?stderr=1")).content == b"oops\n"
    missing = client.get(url(ticket))
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    assert web.config.state_dir not in missing.text


@pytest.mark.criterion("O08")
def test_what_lies_in_the_place_of_the_output_is_not_followed(web: Web, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("do not read")
    ticket = written(web, b"")
    path = Path(place_of(web.config).run_dir(ticket.run), "stdout.log")
    client = web.client(Role.OPERATOR)
    path.unlink()
    path.symlink_to(secret)
    assert client.get(url(ticket)).status_code == 404
    path.unlink()
    os.mkfifo(path)
    assert client.get(url(ticket)).status_code == 404
    path.unlink()
    path.mkdir()
    assert client.get(url(ticket)).status_code == 404


def test_a_head_of_a_log_says_how_much_there_is_and_sends_none(web: Web):
    ticket = written(web, b"0123456789")
    client = web.client(Role.VIEWER)
    assert client.head(url(ticket)).headers["content-length"] == "10"
    assert client.head(url(ticket, "?follow=1")).status_code == 200


def test_following_ends_with_the_run_and_misses_nothing(web: Web, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.02)
    ticket = written(web, b"first\n")
    path = Path(place_of(web.config).run_dir(ticket.run), "stdout.log")
    with served(web) as address, _line(web, address, url(ticket, "?follow=1")) as answer:
        assert answer.readline() == b"first\n"
        with path.open("ab") as file:
            file.write(b"second\n")
        assert answer.readline() == b"second\n"
        with path.open("ab") as file:
            file.write(b"last")
        web.ledger.end_run(ticket, ended())
        assert answer.read() == b"last"


def test_following_begins_where_it_is_told_and_waits_for_the_first_word(
    web: Web, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.02)
    ticket = started(web.ledger)
    folder = Path(place_of(web.config).run_dir(ticket.run))

    def work() -> None:
        folder.mkdir(parents=True)
        (folder / "stdout.log").write_bytes(b"0123456789")
        web.ledger.end_run(ticket, ended())

    with served(web) as address:
        later = threading.Timer(0.1, work)
        later.start()
        with _line(web, address, url(ticket, "?follow=1&offset=4")) as answer:
            assert answer.read() == b"456789"
        later.join()


def test_following_ends_when_the_reader_may_not_read_any_more(
    web: Web, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(lasting, "ASK_SECONDS", 0.05)
    ticket = written(web, b"first\n")
    token, secret = web.ledger.mint_token(Role.VIEWER, "guest", actor=OPERATOR)
    with served(web) as address, _line(web, address, url(ticket, "?follow=1"), secret) as answer:
        assert answer.readline() == b"first\n"
        web.ledger.revoke_token(token.id, actor=OPERATOR)
        assert answer.read() == b""


def test_a_long_backlog_ends_as_soon_as_the_reader_may_not_read(
    web: Web, monkeypatch: pytest.MonkeyPatch
):
    """Who reads slowly is in the middle of it when the token is revoked."""
    monkeypatch.setattr(lasting, "ASK_SECONDS", 0.05)
    size = 64 << 20
    ticket = written(web, b"")
    os.truncate(Path(place_of(web.config).run_dir(ticket.run)) / "stdout.log", size)
    token, secret = web.ledger.mint_token(Role.OPERATOR, "guest", actor=OPERATOR)
    with served(web) as address, _line(web, address, url(ticket, "?follow=1"), secret) as answer:
        answer.read(1000)
        web.ledger.revoke_token(token.id, actor=OPERATOR)
        time.sleep(0.1)
        assert len(answer.read()) < size // 2


def test_a_follower_is_let_go_at_once_when_the_server_stops(
    web: Web, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(serving, "STOP_SECONDS", 30)
    monkeypatch.setattr(serving, "LAST_SECONDS", 30)
    ticket = written(web, b"first\n")
    listener, address = serving.listening("127.0.0.1", 0)
    house = web.house._replace(address=address, live=Live(web.ledger))
    made = serving.serving_of(house, listener)
    made.start()
    with _line(web, address, url(ticket, "?follow=1")) as answer:
        assert answer.readline() == b"first\n"
        begun = time.monotonic()
        assert made.stop()
        assert answer.read() == b""
        assert time.monotonic() - begun < 10


def _line(web: Web, address: Address, path: str, secret: str = "") -> http.client.HTTPResponse:
    line = http.client.HTTPConnection(address.host, address.port, timeout=10)
    secret = secret or web.secret(Role.VIEWER)
    line.request("GET", path, headers={"Authorization": f"Bearer {secret}", "Connection": "close"})
    answer = line.getresponse()
    assert answer.status == 200
    return answer


def test_an_ended_runs_output_lies_where_the_record_says(web: Web, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "stdout.log").write_bytes(b"kept")
    ticket = started(web.ledger)
    web.ledger.end_run(ticket, ended(facts={"log": str(elsewhere / "stdout.log")}))
    assert web.client(Role.VIEWER).get(url(ticket)).content == b"kept"


# --- for those who may only look


@pytest.mark.criterion("O01")
def test_only_an_operator_is_told_what_a_conversation_is_called(web: Web):
    ticket = conversing(web, SPOKEN)
    web.ledger.converse(ticket, session="its-second-name")
    path = Path(place_of(web.config).run_dir(ticket.run), "stdout.log")
    path.write_bytes(SPOKEN + b"again: its-second-name\n")
    path.with_name("stderr.log").write_bytes(b"resume " + SESSION.encode())
    assert web.client(Role.OPERATOR).get(url(ticket)).content == path.read_bytes()
    hidden = HIDDEN + b"again: [redacted]\n"
    for role in (Role.VIEWER, Role.LEAD):
        client = web.client(role)
        answer = client.get(url(ticket))
        assert answer.content == hidden
        assert int(answer.headers["content-length"]) == len(answer.content)
        assert client.get(url(ticket, "?stderr=1")).content == b"resume [redacted]"
    web.ledger.end_run(ticket, ended())
    assert web.client(Role.VIEWER).get(url(ticket, "?follow=1")).content == hidden


@pytest.mark.criterion("O01")
def test_no_part_of_the_output_shows_a_part_of_a_name(web: Web):
    """It is masked whole and cut then: a name can't be had piece by piece."""
    ticket = conversing(web, SPOKEN)
    client = web.client(Role.VIEWER)
    for start in range(0, len(HIDDEN), 3):
        part = client.get(url(ticket), headers={"Range": f"bytes={start}-{start + 3}"})
        assert (part.status_code, part.content) == (206, HIDDEN[start : start + 4])
        assert part.headers["content-range"].endswith(f"/{len(HIDDEN)}")
    beyond = client.get(url(ticket), headers={"Range": f"bytes={len(HIDDEN)}-"})
    assert beyond.status_code == 416
    assert beyond.headers["content-range"] == f"bytes */{len(HIDDEN)}"
    web.ledger.end_run(ticket, ended())
    for offset in range(0, len(HIDDEN) + 3, 3):
        found = client.get(url(ticket, f"?follow=1&offset={offset}")).content
        assert found == HIDDEN[offset:]


@pytest.mark.criterion("O01")
def test_a_name_is_masked_across_the_borders_of_pieces(web: Web, monkeypatch: pytest.MonkeyPatch):
    secret = b"tg_operator_" + b"x" * 43
    end = SESSION[:9].encode()  # what could go on, and does not
    ticket = conversing(web, SPOKEN + secret + b"\n" + SPOKEN + end)
    web.ledger.end_run(ticket, ended())
    client = web.client(Role.VIEWER)
    for size in (1, 7, 40):
        monkeypatch.setattr(logs, "_CHUNK", size)
        monkeypatch.setattr(masking, "_CHUNK", size)
        for query in ("", "?follow=1"):
            found = client.get(url(ticket, query)).content
            assert found == HIDDEN + b"[redacted]\n" + HIDDEN + end


@pytest.mark.criterion("O01")
@pytest.mark.parametrize("query", ["", "?follow=1"])
def test_a_name_that_the_record_has_a_moment_later_is_waited_for(
    web: Web, monkeypatch: pytest.MonkeyPatch, query: str
):
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(masking, "NAME_SECONDS", 10.0)
    ticket = conversing(web, SPOKEN, session=None)

    def told() -> None:
        web.ledger.converse(ticket, session=SESSION)
        web.ledger.end_run(ticket, ended())

    later = threading.Timer(0.3, told)
    later.start()
    assert web.client(Role.VIEWER).get(url(ticket, query)).content == HIDDEN
    later.join()


def test_a_run_without_a_name_is_waited_for_no_longer_than_that(
    web: Web, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(masking, "NAME_SECONDS", 0.05)
    ticket = conversing(web, b"no name\n", session=None)
    assert web.client(Role.VIEWER).get(url(ticket)).content == b"no name\n"


def test_what_a_reader_has_is_another_thing_once_a_name_is_known(
    web: Web, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(masking, "NAME_SECONDS", 0.0)
    ticket = conversing(web, SPOKEN, session=None)
    client = web.client(Role.VIEWER)
    before = client.get(url(ticket))
    assert before.content == SPOKEN
    web.ledger.converse(ticket, session=SESSION)
    known = {"If-None-Match": before.headers["etag"]}
    after = client.get(url(ticket), headers=known)
    assert (after.status_code, after.content) == (200, HIDDEN)
    assert client.get(url(ticket), headers={"If-None-Match": after.headers["etag"]}).content == b""
    part = client.get(
        url(ticket), headers={"Range": "bytes=0-3", "If-Range": known["If-None-Match"]}
    )
    assert (part.status_code, part.content) == (200, HIDDEN)
    operator = web.client(Role.OPERATOR).get(
        url(ticket), headers={"If-None-Match": after.headers["etag"]}
    )
    assert (operator.status_code, operator.content) == (200, SPOKEN)
