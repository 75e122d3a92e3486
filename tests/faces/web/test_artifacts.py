"""What agents hand in: taken within bounds, kept by digest, handed out to be saved."""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faces.web.conftest import Ask, Web, served
from tests.record.lives import OPERATOR
from tests.table import each_row
from tests.work.running import until
from truegreen.doors import store_room
from truegreen.doors.store_room import Incoming, handed_in, shelves
from truegreen.errors import BudgetSpent, InvalidInput
from truegreen.faces.web.api import lasting
from truegreen.faces.web.routes import API
from truegreen.facts import Ticket
from truegreen.model import Role
from truegreen.record.ledger.artifacts import LARGEST_ARTIFACT, MOST_ARTIFACTS


def kept(web: Web, ticket: Ticket) -> list[Path]:
    folder = Path(web.config.state_dir, "artifacts", ticket.run)
    return sorted(folder.iterdir()) if folder.exists() else []


def url(ticket: Ticket, name: str = "report.html") -> str:
    return f"{API}/runs/{ticket.run}/artifacts?name={name}"


def test_what_is_handed_in_is_handed_out_again_to_be_saved(web: Web):
    ticket, secret = web.agent()
    data = b"<script>alert(1)</script>\x00\xff"
    answer = web.client(secret).post(url(ticket, "r%C3%BC.html"), content=data)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["sha256"] == hashlib.sha256(data).hexdigest()
    assert (made["name"], made["size"]) == ("rü.html", len(data))
    viewer = web.client(Role.VIEWER)
    assert viewer.get(f"{API}/runs/{ticket.run}/artifacts").json() == {"artifacts": [made]}
    shown = viewer.get(f"{API}/runs/{ticket.run}/artifacts/{made['sha256']}")
    assert shown.content == data
    assert shown.headers["content-type"] == "application/octet-stream"
    assert shown.headers["content-disposition"] == "attachment; filename*=UTF-8''r%C3%BC.html"
    assert shown.headers["x-content-type-options"] == "nosniff"
    (file,) = kept(web, ticket)
    assert file.name == made["sha256"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_the_same_again_is_the_same_and_other_contents_are_refused(web: Web):
    ticket, secret = web.agent()
    agent = web.client(secret)
    first = agent.post(url(ticket), content=b"one")
    assert agent.post(url(ticket), content=b"one").json() == first.json()
    other = agent.post(url(ticket), content=b"two")
    assert (other.status_code, other.json()["error"]["code"]) == (422, "invalid_input")
    assert [file.name for file in kept(web, ticket)] == [first.json()["sha256"]]
    assert agent.post(url(ticket, "copy"), content=b"one").status_code == 201
    assert agent.post(url(ticket, "copy"), content=b"else").status_code == 422
    assert len(kept(web, ticket)) == 1


@pytest.mark.criterion("O08")
@each_row(
    "name", ["", "..", ".", "a/b", "..%2Fx", "%00", "a%0Ab", "x" * 201, "a%1B[2J", "%E2%80%AE"]
)
def test_a_name_that_is_no_plain_name_is_refused(web: Web, name: str):
    ticket, secret = web.agent()
    answer = web.client(secret).post(url(ticket, name), content=b"x")
    assert answer.status_code == 422
    assert kept(web, ticket) == []


def test_too_much_is_refused_and_nothing_of_it_stays(web: Web):
    ticket, secret = web.agent()
    pieces = [b"x" * (1 << 20)] * (LARGEST_ARTIFACT >> 20)
    asks = [
        Ask("POST", url(ticket), [web.known(secret)], [*pieces, b"x"]),
        Ask("POST", url(ticket), [web.known(secret), ("Content-Length", "99999999")], b"x"),
    ]
    assert [answer.status for answer in web.ask(asks)] == [422, 413]
    assert kept(web, ticket) == []


def test_nobody_reads_on_once_it_is_too_much(web: Web):
    ticket, secret = web.agent()
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        while read < LARGEST_ARTIFACT >> 18:  # four times as much
            read += 1
            yield b"x" * (1 << 20)

    speaker = web.ledger.authenticate(secret)
    with pytest.raises(InvalidInput, match="MiB"):
        store_room.hand_in(
            web.ledger, shelves(web.config.state_dir), ticket, "b", endless(), actor=speaker
        )
    assert read == (LARGEST_ARTIFACT >> 20) + 1
    assert kept(web, ticket) == []


def test_a_run_hands_in_so_many_and_no_more(web: Web, monkeypatch: pytest.MonkeyPatch):
    ticket, secret = web.agent()
    speaker = web.ledger.authenticate(secret)
    for number in range(MOST_ARTIFACTS):
        digest = hashlib.sha256(b"%d" % number).hexdigest()
        web.ledger.attach(ticket, f"a{number}", digest, 1, actor=speaker)
    answer = web.client(secret).post(url(ticket), content=b"x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "budget_spent")
    with pytest.raises(BudgetSpent):
        store_room.hand_in(
            web.ledger, shelves(web.config.state_dir), ticket, "b", [b"x"], actor=speaker
        )
    monkeypatch.setattr(store_room, "MOST_ARTIFACTS", 1000)  # two at once get past it
    with pytest.raises(BudgetSpent):
        store_room.hand_in(
            web.ledger, shelves(web.config.state_dir), ticket, "b", [b"x"], actor=speaker
        )
    assert kept(web, ticket) == []


def test_what_comes_in_at_the_same_time_counts_together(web: Web, monkeypatch: pytest.MonkeyPatch):
    """Otherwise many who never come to an end would fill the disk."""
    ticket, _ = web.agent()
    monkeypatch.setattr(store_room, "MOST_BYTES", 5 << 20)
    shelf = shelves(web.config.state_dir)
    with ExitStack() as stack:
        rooms = [store_room.Room(ticket.run, f"a{number}", 5 << 20, None) for number in range(2)]
        first, second = (stack.enter_context(store_room.receiving(shelf, room)) for room in rooms)
        for _ in range(3):
            first.feed(b"x" * (1 << 20))
            second.feed(b"x" * (1 << 20))
        with pytest.raises(BudgetSpent):
            first.feed(b"x" * (1 << 20))
    assert kept(web, ticket) == []


def test_only_a_few_come_in_at_a_time_and_what_was_forgotten_goes(web: Web):
    ticket, secret = web.agent()
    agent = web.client(secret)
    agent.post(url(ticket, "first"), content=b"first")
    folder = kept(web, ticket)[0].parent
    parts = [folder / f".{number}.part" for number in range(store_room.AT_ONCE)]
    for part in parts:
        part.write_bytes(b"x")
    answer = agent.post(url(ticket), content=b"x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    os.utime(parts[0], (0, 0))
    assert agent.post(url(ticket), content=b"x").status_code == 201
    assert not parts[0].exists()
    assert parts[1].exists(), "it may still be coming"


def test_what_was_handed_in_can_be_handed_in_again_when_all_is_full(
    web: Web, monkeypatch: pytest.MonkeyPatch
):
    ticket, secret = web.agent()
    ask = Ask("POST", url(ticket), [web.known(secret)], [b"x" * (1 << 20)] * 2)
    assert web.ask([ask])[0].status == 201
    monkeypatch.setattr(store_room, "MOST_BYTES", 2 << 20)
    assert web.ask([ask])[0].status == 201


def test_an_upload_that_dawdles_ends_with_its_run_and_leaves_nothing(
    web: Web, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lasting, "ASK_SECONDS", 0.05)
    ticket, secret = web.agent()
    with served(web) as address:
        line = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
        line.putrequest("POST", url(ticket))
        line.putheader("Authorization", f"Bearer {secret}")
        line.putheader("Content-Length", "1000")
        line.endheaders(b"half of it")
        until(lambda: kept(web, ticket))
        web.ledger.terminate(ticket.task, actor=OPERATOR)
        answer = line.getresponse()
        assert (answer.status, json.loads(answer.read())["error"]["code"]) == (410, "terminated")
        assert kept(web, ticket) == []
        line.close()


@pytest.mark.criterion("M04")
def test_a_full_disk_is_said_and_leaves_nothing(web: Web, monkeypatch: pytest.MonkeyPatch):
    ticket, secret = web.agent()

    def full(_self: Incoming, _chunk: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Incoming, "feed", full)
    answer = web.client(secret).post(url(ticket), content=b"x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "disk_full")
    assert kept(web, ticket) == []


def test_a_client_that_leaves_in_the_middle_leaves_nothing(web: Web):
    ticket, secret = web.agent()
    ask = Ask("POST", url(ticket), [web.known(secret), ("Content-Length", "10")], [])
    assert web.ask([ask])[0].status == 400
    assert kept(web, ticket) == []


def test_an_ended_run_hands_nothing_in(web: Web):
    ticket, secret = web.agent()
    speaker = web.ledger.authenticate(secret)
    web.ledger.terminate(ticket.task, actor=OPERATOR)
    answer = web.client(secret).post(url(ticket), content=b"x")
    assert answer.status_code == 410
    with pytest.raises(Exception, match="sealed"):
        store_room.hand_in(
            web.ledger, shelves(web.config.state_dir), ticket, "b", [b"x"], actor=speaker
        )
    assert kept(web, ticket) == []


def test_bytes_that_are_not_what_was_handed_in_are_not_handed_out(web: Web, tmp_path: Path):
    ticket, secret = web.agent()
    made = web.client(secret).post(url(ticket), content=b"right").json()
    path = f"{API}/runs/{ticket.run}/artifacts/{made['sha256']}"
    viewer = web.client(Role.VIEWER)
    (file,) = kept(web, ticket)
    file.write_bytes(b"wrong bytes")
    assert viewer.get(path).status_code == 409
    file.unlink()
    file.symlink_to("/etc/passwd")
    assert viewer.get(path).status_code == 404
    file.unlink()
    os.mkfifo(file)
    assert viewer.get(path).status_code == 409
    for digest in ("0" * 64, "x", "..%2F..", made["sha256"].upper()):
        assert viewer.get(f"{API}/runs/{ticket.run}/artifacts/{digest}").status_code == 404


def test_what_the_record_does_not_know_is_not_handed_out(web: Web):
    ticket, secret = web.agent()
    web.client(secret).post(url(ticket), content=b"known")
    (file,) = kept(web, ticket)
    digest = hashlib.sha256(b"other").hexdigest()
    file.with_name(digest).write_bytes(b"other")
    answer = web.client(Role.VIEWER).get(f"{API}/runs/{ticket.run}/artifacts/{digest}")
    assert answer.status_code == 404


def test_one_run_does_not_see_what_another_handed_in(web: Web):
    mine, secret = web.agent()
    other, _ = web.agent()
    made = web.client(secret).post(url(mine), content=b"mine").json()
    answer = web.client(Role.VIEWER).get(f"{API}/runs/{other.run}/artifacts/{made['sha256']}")
    assert answer.status_code == 404
    artifact, file = handed_in(web.ledger, shelves(web.config.state_dir), mine.run, made["sha256"])
    with file:
        assert (artifact.name, file.read()) == ("report.html", b"mine")
