"""Signs of life: only while all is really well, seen when they don't get out, in nobody's way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.outlets.receiver import Receiver, Reply, settings
from tests.outlets.test_posting import OPS
from tests.record.lives import opened
from tests.stage import Clock, Stage, staged
from tests.table import each_row
from tests.walk.conftest import until
from truegreen.config import Config, _effective
from truegreen.contract import Alerts, Heartbeat, parse_duration
from truegreen.errors import InvalidInput, StoreUnreachable
from truegreen.outlets.metrics import exposition
from truegreen.outlets.posting import Posting, warnings
from truegreen.outlets.trust import reach_of
from truegreen.outlets.vigil import Heart, Watchman, kept_watch, missing, seen
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.scheduler import Scheduler, seats

DATABASES = ("sqlite",)

_MINUTE = 60_000_000


@pytest.fixture
def stage(sqlite_url: str, tmp_path: Path) -> Iterator[Stage]:
    made = staged(sqlite_url, tmp_path)
    yield made
    made.ledger.close()


@pytest.fixture
def lone(sqlite_url: str) -> Iterator[Ledger]:
    ledger = open_ledger(sqlite_url)
    yield ledger
    ledger.close()


def heart(ledger: Ledger, url: str = "", **more: Any) -> Heart:
    well = more.pop("well", list)
    said = more.pop("said", lambda _: None)
    terms = {"url": url, "allow_private": True, **more}
    return Heart(ledger, "up", well, Heartbeat(**terms), said=said)


@pytest.mark.criterion("K15")
def test_a_sign_of_life_goes_out_once_in_its_time(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    clock = Clock(ledger, monkeypatch)
    with Receiver() as receiver:
        made = heart(ledger, f"{receiver.url}/ping/key")
        for expected in (1, 1, 2):
            made.beat()
            assert len(receiver.asked) == expected
            clock.minutes(0.6)
        (asked, _) = receiver.asked
    assert (asked.method, asked.path, asked.body) == ("GET", "/ping/key", b"")
    (beat,) = ledger.beats()
    assert (beat.kind, beat.trouble, beat.unsent) == ("up", "", "")
    assert beat.pinged_at is not None


def test_figures_go_with_it_where_that_is_asked_for(lone: Ledger):
    opened(lone)
    with Receiver() as receiver:
        heart(lone, receiver.url, figures=True).beat()
        (asked,) = receiver.asked
    assert asked.method == "POST"
    assert asked.json["tasks"]["queued"] == 1
    assert (asked.json["kind"], asked.json["inbox"], asked.json["posts_waiting"]) == ("up", 0, 0)


@pytest.mark.criterion("K15")
def test_nothing_goes_out_while_anything_is_wrong(lone: Ledger):
    trouble = ["seat 2 is dead"]
    said: list[str] = []
    with Receiver() as receiver:
        made = heart(lone, receiver.url, well=lambda: trouble, said=said.append)
        made.beat()
        made.beat()
        assert receiver.asked == []
        assert said == ["! not well, so no sign of life goes out: seat 2 is dead"]
        assert [words for words in missing(lone) if "is not well: seat 2 is dead" in words]
        trouble.clear()
        made.beat()
        assert len(receiver.asked) == 1
    assert missing(lone) == []


@pytest.mark.criterion("K15")
def test_nothing_goes_out_while_the_record_takes_no_write(
    lone: Ledger, monkeypatch: pytest.MonkeyPatch
):
    def gone(*_: object, **__: object) -> Any:
        raise StoreUnreachable("the store is gone")

    with Receiver() as receiver:
        made = heart(lone, receiver.url)
        with monkeypatch.context() as patch:
            patch.setattr(lone, "beat", gone)
            with pytest.raises(StoreUnreachable):
                made.beat()
        assert receiver.asked == []
        made.beat()
        assert len(receiver.asked) == 1


@pytest.mark.criterion("K15")
def test_a_loop_that_hangs_is_not_well(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(seats, "TURN_SECONDS", 0.3)
    hang, free = threading.Event(), threading.Event()

    def chore() -> None:
        if hang.is_set():
            free.wait(20)

    made = Scheduler(stage.ledger, stage.place, chores=(chore,))
    monkeypatch.setattr("truegreen.scheduler._HOUSE_SECONDS", 0.0)
    monkeypatch.setattr("truegreen.scheduler._IDLE_SECONDS", 0.05)
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        time.sleep(0.5)
        assert made.faults() == []
        hang.set()
        until(lambda: any("has not come round for" in words for words in made.faults()))
        hang.clear()
        free.set()
        until(lambda: made.faults() == [])
    finally:
        free.set()
        made.stop()
        thread.join(10)
    made.close()


def test_a_dead_seat_is_not_well(stage: Stage):
    made = Scheduler(stage.ledger, stage.place)
    seat = made._seats[0]
    seat.take(lambda: None)
    seat.close()
    assert made.faults() == ["seat 1 is dead"]
    seat.free = True
    made.close()


def test_a_thread_of_an_outlet_that_died_is_not_well(lone: Ledger, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("truegreen.outlets.posting.OutletDesk.work", lambda _: None)
    config = settings(OPS)
    post = Posting(lone, config, load=lambda: config)
    post.start()
    until(lambda: post.faults() == ["the thread outlet-ops is dead"])
    post.stop()
    assert post.faults() == [], "what was stopped is not dead"


@pytest.mark.criterion("K15")
def test_a_sign_that_does_not_get_out_is_seen_and_stops_nothing(lone: Ledger):
    said: list[str] = []
    with Receiver(lambda _: Reply(500)) as receiver:
        made = heart(lone, receiver.url, said=said.append)
        beat = made.beat()
        made.beat()
        assert len(receiver.asked) == 2, "it is tried again at the next beat"
    assert (beat.unsent, beat.pinged_at) == ("it answered 500", None)
    (words,) = warnings(lone, settings(""))
    assert words.startswith("the heartbeat of truegreen up on ")
    assert words.endswith(" does not get out: it answered 500")
    assert said == ["! the sign of life did not get out: it answered 500"]


def test_a_command_gets_it_as_well_and_its_failure_counts(lone: Ledger, tmp_path: Path):
    note = tmp_path / "note"
    script = f"cat > {note}; test ! -e {tmp_path}/fail"
    made = heart(lone, command=("sh", "-c", script), figures=True)
    assert made.beat().unsent == ""
    assert '"kind":"up"' in note.read_text()
    (tmp_path / "fail").touch()
    again = heart(lone, command=("sh", "-c", script))
    assert again.beat().unsent == "exit 1"


@pytest.mark.criterion("K15")
def test_who_ended_is_told_from_who_is_missing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    clock = Clock(ledger, monkeypatch)
    config = settings("")
    with kept_watch(ledger, config, "scheduler", list, lambda _: None):
        until(lambda: bool(ledger.beats()))
    ledger.beat("b/2", kind="worker", host="b")
    now = ledger.beats()[0].at
    assert missing(ledger, now + _MINUTE) == []
    assert missing(ledger, now + 180 * _MINUTE) == [
        "truegreen worker on b was last seen 3 h ago and has not ended"
    ]
    clock.minutes(180)
    ledger.beat("b/3", kind="worker", host="b")
    assert missing(ledger, ledger.beats()[0].at) == [], "it was started anew"
    assert any("truegreen scheduler on" in words and "ended 3 h ago" in words
               for words in seen(ledger, ledger.beats()[0].at))  # fmt: skip


def test_metrics_say_when_whoever_looks_for_work_was_last_seen(lone: Ledger):
    lone.beat("b/2", kind="worker", host="b")
    text = exposition(lone).decode()
    (line,) = [
        line for line in text.splitlines() if line.startswith("truegreen_scheduler_seen_seconds{")
    ]
    assert line.startswith('truegreen_scheduler_seen_seconds{host="b",kind="worker"} ')
    assert 0 <= float(line.rpartition(" ")[2]) < 60
    assert "truegreen_queue_age_seconds 0.0" in text
    assert "truegreen_pending_age_seconds 0.0" in text
    assert "truegreen_unknown_ratio NaN" in text


def test_what_lasts_too_long_is_looked_for_once_in_a_while(lone: Ledger):
    said: list[str] = []
    watch = Watchman(lone, Alerts(queue_depth=1), said.append)
    for _ in range(2):
        opened(lone)
    watch()
    assert ["queue depth: 2 are queued; the limit is 1" in words for words in said] == [True]
    for waiting in lone.inbox():
        assert waiting.item.cell == "queue_depth"
    opened(lone)
    watch()
    assert len(said) == 1


@each_row(
    ("text", "words"),
    [
        ("", "a heartbeat has a url, a command, or both"),
        ('url = "ftp://x"', "expected an address that starts with https://"),
        ('url = "https://x"\nevery = "1s"', "expected 5s or more"),
    ],
)
def test_a_heartbeat_leads_somewhere_and_not_too_often(text: str, words: str):
    with pytest.raises(InvalidInput, match=words):
        settings(f"[heartbeat]\n{text}")


@pytest.mark.criterion("O03")
def test_a_heartbeat_is_trusted_like_any_other_outlet_and_its_key_is_not_shown():
    text = '[heartbeat]\nurl = "https://hc.example/secret-key"\ncommand = ["page", "--key", "k"]\n'
    config: Config = settings(text)
    shown = reach_of(config.contents)["heartbeat"].shown
    assert "https://hc.example/***" in shown
    assert "secret-key" not in shown
    assert "secret-key" not in str(_effective(config.contents))
    other = settings(text.replace("secret-key", "other"))
    assert reach_of(other.contents)["heartbeat"].digest != (
        reach_of(config.contents)["heartbeat"].digest
    )


def test_a_heartbeat_goes_to_no_private_address_unless_it_may(lone: Ledger):
    with Receiver() as receiver:
        made = Heart(lone, "up", list, Heartbeat(url=receiver.url, every=parse_duration("1m")))
        assert "allow_private = true" in made.beat().unsent
        assert receiver.asked == []
