"""Where bytes lie that agents hand in: one layout for all ways in, and no more than fits."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.record.lives import OPERATOR, agent_of, opened, started
from truegreen.doors import speaking, store_room
from truegreen.doors.store_room import hand_in, handed_in, receiving, room_for, shelves
from truegreen.errors import (
    BudgetSpent,
    DiskFull,
    InvalidInput,
    NotFound,
    Stale,
    StoreUnreachable,
    Terminated,
    Unavailable,
)
from truegreen.facts import Ticket
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.rows import Artifact

DATABASES = ("sqlite",)


class Room:
    """A live run, and the shelf for what it hands in."""

    def __init__(self, ledger: Ledger, folder: Path) -> None:
        self.ledger, self.shelf = ledger, shelves(str(folder))
        self.ticket: Ticket = started(ledger)

    def give(self, name: str, *chunks: bytes) -> str:
        """Hand something in; says its digest."""
        actor = agent_of(self.ticket)
        given = (self.ledger, self.shelf, self.ticket, name, chunks)
        return hand_in(*given, actor=actor).sha256

    @property
    def kept(self) -> list[Path]:
        """Every file on the shelf."""
        return sorted(each for each in Path(self.shelf).rglob("*") if not each.is_dir())


@pytest.fixture
def room(sqlite_url: str, tmp_path: Path) -> Iterator[Room]:
    """A store room of one's own."""
    ledger = open_ledger(sqlite_url)
    yield Room(ledger, tmp_path)
    ledger.close()


@pytest.mark.criterion("O08")
def test_whichever_way_it_came_it_lies_in_the_same_place_for_the_owner_alone(room: Room):
    digest = room.give("a", b"one ", b"two")
    (file,) = room.kept
    assert file == Path(room.shelf, room.ticket.run, digest)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    actor = agent_of(room.ticket)
    said = speaking.hand_in(room.ledger, room.ticket, room.shelf, "b", b"three", actor=actor)
    other = said["artifact"]["sha256"]
    assert {each.name for each in room.kept} == {digest, other}
    artifact, found = handed_in(room.ledger, room.shelf, room.ticket.run, other)
    with found:
        assert (artifact.name, found.read()) == ("b", b"three")


def test_the_same_again_takes_no_room_even_where_there_is_none(
    room: Room, monkeypatch: pytest.MonkeyPatch
):
    digest = room.give("a", b"one")
    monkeypatch.setattr(store_room, "MOST_ARTIFACTS", 1)
    monkeypatch.setattr(store_room, "MOST_BYTES", 3)
    assert room.give("a", b"one") == digest
    with pytest.raises(BudgetSpent):
        room.give("b", b"one")
    monkeypatch.setattr(store_room, "MOST_ARTIFACTS", 2)
    with pytest.raises(BudgetSpent):
        room.give("b", b"x")
    assert [each.name for each in room.kept] == [digest]


@pytest.mark.parametrize("other", [b"two", b"on", b"one more"])
def test_other_bytes_under_a_name_that_was_used_never_take_its_place(room: Room, other: bytes):
    digest = room.give("a", b"one")
    with pytest.raises(InvalidInput, match="other contents"):
        room.give("a", other)
    assert [each.name for each in room.kept] == [digest]
    assert room.kept[0].read_bytes() == b"one"


def test_nothing_is_read_on_once_it_is_more_than_was_handed_in_under_that_name(room: Room):
    room.give("a", b"one")
    left = iter([b"one", b"!", b"never read"])
    with pytest.raises(InvalidInput, match="other contents"):
        hand_in(room.ledger, room.shelf, room.ticket, "a", left, actor=agent_of(room.ticket))
    assert list(left) == [b"never read"]


def test_nothing_is_read_on_once_all_together_is_too_much(
    room: Room, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store_room, "MOST_BYTES", 10)
    room.give("a", b"12345678")
    left = iter([b"9", b"0", b"1", b"never read"])
    actor = agent_of(room.ticket)
    with pytest.raises(BudgetSpent):
        hand_in(room.ledger, room.shelf, room.ticket, "b", left, actor=actor)
    assert list(left) == [b"never read"]
    assert len(room.kept) == 1


@pytest.mark.criterion("O08")
@pytest.mark.parametrize("name", ["", " ", "..", "a/b", "a\nb", "a\u202eb", "x" * 201])
def test_nothing_is_read_under_a_name_that_is_no_plain_name(room: Room, name: str):
    left = iter([b"never read"])
    with pytest.raises(InvalidInput):
        hand_in(room.ledger, room.shelf, room.ticket, name, left, actor=agent_of(room.ticket))
    assert list(left) == [b"never read"]
    assert not Path(room.shelf).exists()


@pytest.mark.criterion("M04")
@pytest.mark.parametrize(("number", "kind"), [(errno.EDQUOT, DiskFull), (errno.EIO, Unavailable)])
def test_trouble_with_the_disk_is_said_and_leaves_nothing(
    room: Room, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
):
    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(kind, match="can't be kept"):
        room.give("a", b"one")
    monkeypatch.undo()
    assert room.kept == []
    assert room.ledger.artifacts(room.ticket.run) == []


def test_bytes_are_on_the_disk_before_the_record_names_them(
    room: Room, monkeypatch: pytest.MonkeyPatch
):
    done: list[str] = []
    real_sync, real_attach = os.fsync, room.ledger.attach

    def fsync(handle: int) -> None:
        done.append("fsync")
        real_sync(handle)

    def attach(*given: Any, **more: Any) -> Artifact:
        done.append("record")
        return real_attach(*given, **more)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(room.ledger, "attach", attach)
    room.give("a", b"one")
    assert done[: done.index("record")] == ["fsync", "fsync"]  # the file, then its folder


def test_what_the_record_refuses_does_not_stay(room: Room):
    room.ledger.terminate(room.ticket.task, actor=OPERATOR)
    with pytest.raises(Terminated):
        room.give("a", b"one")
    assert room.kept == []


def test_what_the_record_may_know_stays_where_nobody_can_say(
    room: Room, monkeypatch: pytest.MonkeyPatch
):
    """The answer was lost: the record may name these bytes, and then somebody will ask for them."""

    def cut(*_: object, **__: object) -> None:
        monkeypatch.setattr(room.ledger, "artifacts", gone)
        raise StoreUnreachable("gone")

    def gone(_: str) -> None:
        raise StoreUnreachable("gone")

    monkeypatch.setattr(room.ledger, "attach", cut)
    with pytest.raises(StoreUnreachable):
        room.give("a", b"one")
    assert len(room.kept) == 1


@pytest.mark.criterion("O08")
@pytest.mark.parametrize("run", ["..", "../x", "run/x", "", "run_ü", "."])
def test_a_run_that_is_no_run_leads_nowhere(room: Room, run: str):
    with pytest.raises(InvalidInput), receiving(room.shelf, room_for(room.ledger, run, "a")):
        pass
    assert not Path(room.shelf).exists()


@pytest.mark.criterion("O08")
def test_what_lies_in_the_place_of_bytes_is_not_followed(room: Room, tmp_path: Path):
    digest = room.give("a", b"one")
    secret = tmp_path / "secret"
    secret.write_bytes(b"two")
    (file,) = room.kept
    file.unlink()
    file.symlink_to(secret)
    with pytest.raises(NotFound):
        handed_in(room.ledger, room.shelf, room.ticket.run, digest)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(Stale):
        handed_in(room.ledger, room.shelf, room.ticket.run, digest)
    for wrong in (hashlib.sha256(b"x").hexdigest(), "../secret", ""):
        with pytest.raises(NotFound):
            handed_in(room.ledger, room.shelf, room.ticket.run, wrong)


def test_a_task_without_a_run_has_handed_in_nothing(room: Room):
    with pytest.raises(NotFound):
        handed_in(room.ledger, room.shelf, opened(room.ledger).id, "0" * 64)
