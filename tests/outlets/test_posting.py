"""What is owed is written down, sent in order, tried again, and in nobody's way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.outlets.receiver import Receiver, settings
from tests.record.lives import (
    OPERATOR,
    brought,
    declared,
    ended,
    judged,
    opened,
    started,
)
from tests.stage import Clock
from tests.walk.conftest import until
from truegreen.config import Config, load_config
from truegreen.contract import Budget, Notify, outlet_names
from truegreen.errors import Forbidden
from truegreen.facts import SYSTEM
from truegreen.model import ExitDetail, Outcome, TaskStatus
from truegreen.outlets import posting as posting_room
from truegreen.outlets.following import Following
from truegreen.outlets.news import News
from truegreen.outlets.notify import Notifier
from truegreen.outlets.posting import (
    MOST_TRIES,
    Look,
    Posting,
    next_wait,
    outlets_of,
    warnings,
)
from truegreen.outlets.sending import ARRIVED, Sent
from truegreen.outlets.trust import settle, trust
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.ledger.telling import Owed

DATABASES = ("sqlite",)

EVERY = ("silent_failure", "cap_hit", "outage", "blocked", "needs_review", "failed", "zombie")


class Way:
    """Keeps what it was given, and does as it is told."""

    where = "nowhere"

    def __init__(self, behave: Callable[[dict[str, Any]], Sent] = lambda _: ARRIVED) -> None:
        self.got: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.behave = behave

    def deliver(self, post_id: str, body: str, event: dict[str, Any]) -> Sent:
        assert msgspec.json.decode(body) == event
        self.got.append(event)
        self.ids.append(post_id)
        return self.behave(event)

    @property
    def statuses(self) -> list[str]:
        return [event["data"]["task_status"] for event in self.got]


def posting(
    ledger: Ledger, way: Way, on: tuple[str, ...] = EVERY, name: str = "ops", **more: Any
) -> Posting:
    """An outlet that has read everything so far."""
    notice = Notify(command=("true",), on=on)
    outlet = Notifier(name, notice, way)
    made = Posting(ledger, settings(""), outlets=[outlet], **more)
    made.once()
    return made


def failing(ledger: Ledger, **terms: Any) -> str:
    """A silent failure."""
    ticket = started(ledger, budget=Budget(attempts=1), **terms)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    return ticket.task


@pytest.mark.criterion("L12")
def test_news_is_sent_with_both_axes_and_the_way_on(ledger: Ledger):
    way = Way()
    post = posting(ledger, way)
    task = failing(ledger)
    assert post.once() == {"ops": Look(owed=1, sent=1)}
    (event,) = way.got
    data = event["data"]
    assert (event["specversion"], event["subject"]) == ("1.0", task)
    assert (event["type"], event["cell"]) == ("dev.truegreen.task.failed", "silent_failure")
    assert (data["task_status"], data["run_status"]) == ("failed", "exited")
    assert data["next"] == f"truegreen show {task}"
    assert data["reason"] == "gate tests: failed"
    assert ledger.posts()[0].state == "sent"


def test_what_happened_before_an_outlet_was_set_up_is_not_sent(ledger: Ledger):
    failing(ledger)
    way = Way()
    post = posting(ledger, way)
    post.once()
    assert way.got == []
    failing(ledger, title="another")
    post.once()
    assert len(way.got) == 1


def test_an_outlet_of_an_empty_store_misses_nothing(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    way = Way()
    posting(ledger, way)
    failing(ledger)
    posting(ledger, way)  # another process, which finds how far the first had read
    assert way.statuses == ["failed"]
    ledger.close()


@pytest.mark.criterion("L12", "L13")
def test_a_failure_that_comes_again_in_one_night_is_told_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(ledger, monkeypatch)
    way = Way()
    post = posting(ledger, way)
    for _ in range(3):
        failing(ledger)
        post.once()
    assert [event["data"]["times"] for event in way.got] == [1]
    failing(ledger, title="something else")
    post.once()
    assert len(way.got) == 2
    clock.minutes(24 * 60)
    failing(ledger)
    post.once()
    assert [event["data"]["times"] for event in way.got] == [1, 1, 4]


@pytest.mark.criterion("L13")
def test_what_somebody_put_off_is_not_told(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    clock = Clock(ledger, monkeypatch)
    way = Way()
    post = posting(ledger, way)
    task, ticket = brought(ledger, TaskStatus.NEEDS_REVIEW)
    assert ticket
    (waiting,) = ledger.inbox()
    ledger.snooze(waiting.item.id, seconds=3600 * 24 * 3, actor=OPERATOR)
    post.once()
    assert [event["data"]["task"] for event in way.got] == []
    clock.minutes(1)
    assert ledger.task(task.id).status is TaskStatus.NEEDS_REVIEW


def test_a_run_that_is_tried_again_is_no_news_and_the_last_is(ledger: Ledger):
    way = Way()
    post = posting(ledger, way)
    task = opened(ledger, budget=Budget(attempts=2))
    for _ in range(2):
        ticket = started(ledger, task.id)
        declared(ledger, ticket)
        judged(ledger, ticket, Outcome.FAILED)
    assert ledger.task(task.id).status is TaskStatus.FAILED
    post.once()
    assert [event["data"]["attempt"] for event in way.got] == [2]


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        (("succeeded",), ["succeeded"]),
        (("true_green",), ["succeeded"]),
        (("running", "succeeded"), ["running", "succeeded"]),
        (("silent_failure",), []),
    ],
)
def test_only_what_is_wanted_is_told(sqlite_url: str, on: tuple[str, ...], expected: list[str]):
    ledger = open_ledger(sqlite_url)
    way = Way()
    post = posting(ledger, way, on)
    brought(ledger, TaskStatus.SUCCEEDED)
    post.once()
    assert way.statuses == expected
    ledger.close()


def test_a_zombie_is_told(ledger: Ledger):
    way = Way()
    _, ticket = brought(ledger, TaskStatus.TERMINATED)
    assert ticket
    post = posting(ledger, way)
    for _ in range(2):
        ledger.trip(ticket.run, kind="push", detail="origin main")
    post.once()
    assert [event["type"] for event in way.got] == ["dev.truegreen.task.zombie"]


@pytest.mark.criterion("L12")
def test_what_did_not_arrive_is_tried_again_under_the_same_id(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(ledger, monkeypatch)
    way = Way(lambda _: Sent("connection refused") if len(way.got) < 3 else ARRIVED)
    post = posting(ledger, way)
    failing(ledger)
    assert post.once() == {"ops": Look(owed=1, failed=1)}
    assert (ledger.posts()[0].error, ledger.posts()[0].state) == ("connection refused", "waiting")
    assert post.once() == {"ops": Look()}
    for _ in range(2):
        clock.minutes(1)
        post.once()
    assert ledger.posts()[0].state == "sent"
    assert len(way.ids) == 3
    assert len(set(way.ids)) == 1


@pytest.mark.criterion("L12")
def test_after_ten_tries_it_is_given_up_seen_and_can_be_tried_again(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
):
    ledger = open_ledger(sqlite_url)
    clock = Clock(ledger, monkeypatch)
    said: list[str] = []
    way = Way(lambda _: Sent("no"))
    post = posting(ledger, way, report=said.append)
    failing(ledger)
    for _ in range(MOST_TRIES + 3):
        post.once()
        clock.minutes(90)
    assert len(way.got) == MOST_TRIES
    assert ledger.posts_counted() == [("ops", "given_up", 1)]
    assert [f"gave up {ledger.posts()[0].id} after 10 tries" in words for words in said] == [True]
    config = settings('[[notify]]\nname = "ops"\ncommand = ["page"]')
    assert warnings(ledger, config) == [
        "1 message was given up by the outlet ops: truegreen outlets",
    ]
    way.behave = lambda _: ARRIVED
    ledger.post_again(ledger.posts()[0].id, actor=OPERATOR)
    post.once()
    assert warnings(ledger, config) == []
    ledger.close()


@pytest.mark.criterion("L12")
def test_what_is_left_of_an_outlet_that_is_gone_is_counted_until_somebody_drops_it(ledger: Ledger):
    owed = [Owed(subject, "body") for subject in ("evt_1", "evt_2", "evt_3")]
    ledger.owe("ops", owed, (1, 1))
    (post,) = ledger.take_posts("ops", limit=1)
    ledger.unposted(post.id, "no", again_in=None)
    ledger.owe("github", [Owed("evt_1", "", "tsk_1", unsaid="not committed")], (1, 1))
    (left,) = warnings(ledger, settings(""))
    assert left.startswith(
        "3 messages are left of the outlet ops, which truegreen.toml has no more"
    )
    assert "truegreen outlets drop ops" in left
    with pytest.raises(Forbidden):
        ledger.drop_posts("ops", actor=SYSTEM)
    assert ledger.drop_posts("ops", actor=OPERATOR) == 3
    assert warnings(ledger, settings("")) == []
    assert ledger.take_posts("ops") == []
    assert {post.error for post in ledger.posts() if post.outlet == "ops"} == {
        f"dropped by {OPERATOR}"
    }


@pytest.mark.criterion("L13")
def test_what_is_like_something_put_off_is_told_all_the_same(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(ledger, monkeypatch)

    def capped(title: str) -> str:
        ticket = started(ledger, title=title, budget=Budget(attempts=1))
        ledger.end_run(ticket, ended(ExitDetail.TURN_CAP))
        judged(ledger, ticket, Outcome.FAILED)
        return ticket.task

    way = Way()
    post = posting(ledger, way)
    first = capped("tidy the docs")
    post.once()
    (item,) = ledger.inbox()
    ledger.snooze(item.item.id, seconds=3 * 86400, actor=OPERATOR)
    clock.minutes(24 * 60)
    capped("tidy the docs")
    other = capped("pay everybody")
    post.once()
    assert [event["data"]["task"] for event in way.got] == [first, other]
    (item,) = ledger.inbox()
    ledger.snooze(item.item.id, seconds=86400, actor=OPERATOR, whole_topic=True)
    capped("something else at the same cap")
    post.once()
    assert [event["data"]["task"] for event in way.got] == [first, other]


@pytest.mark.criterion("L12")
def test_news_leads_to_where_the_pages_are_and_the_settings_come_first():
    notice = '[[notify]]\ncommand = ["page"]\n'
    ledger: Any = None
    links = {
        text: outlets_of(ledger, settings(text), {}, link="http://127.0.0.1:8321")[0]
        for text in (notice, f'{notice}[web]\nurl = "https://green.example"\n')
    }
    assert [getattr(each, "_link", "") for each in links.values()] == [
        "http://127.0.0.1:8321",
        "https://green.example",
    ]


def test_lasting_trouble_is_given_up_at_once(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    post = posting(ledger, Way(lambda _: Sent("gone", lasting=True)))
    failing(ledger)
    assert post.once() == {"ops": Look(owed=1, failed=1, given_up=1)}
    ledger.close()


@pytest.mark.criterion("L12")
def test_news_of_one_task_arrives_in_its_order(sqlite_url: str, monkeypatch: pytest.MonkeyPatch):
    ledger = open_ledger(sqlite_url)
    clock = Clock(ledger, monkeypatch)
    way = Way(lambda _: Sent("not now") if len(way.got) == 1 else ARRIVED)
    post = posting(ledger, way, ("running", "succeeded", "queued"))
    brought(ledger, TaskStatus.SUCCEEDED)
    post.once()
    assert way.statuses == ["running"]
    clock.minutes(1)
    post.once()
    assert way.statuses == ["running", "running", "succeeded"]
    ledger.close()


def test_waits_grow_from_a_second_to_an_hour_and_then_end():
    waits = [next_wait(tries, Sent("no")) for tries in range(1, MOST_TRIES + 1)]
    assert waits[-1] is None
    first, *_, last = [wait for wait in waits if wait is not None]
    assert 0.8 <= first <= 1.2
    assert 2880 <= last <= 3600
    assert next_wait(1, Sent("slow down", wait=120)) == 120
    assert next_wait(1, Sent("never", lasting=True)) is None


class Odd:
    """An outlet that breaks wherever it can."""

    name, where = "odd", "nowhere"

    def owes(self, news: News) -> Owed | None:
        if news.status is TaskStatus.RUNNING:
            raise ValueError("no idea what that is")
        return Owed(news.event.id, "{}", news.task_id) if news.status else None

    def send(self, post_id: str, body: str) -> Sent:
        raise RuntimeError(f"{post_id} fell over {body}")

    def test(self, at: int) -> Sent:
        return Sent(str(at))


@pytest.mark.criterion("L12")
def test_an_outlet_that_breaks_harms_nobody_else_and_says_so(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    said: list[str] = []
    way = Way()
    good = Notifier("ops", Notify(command=("true",), on=EVERY), way)
    post = Posting(ledger, settings(""), outlets=[Odd(), good], report=said.append)
    post.once()
    failing(ledger)
    looks = post.once()
    assert looks["ops"].sent == 1
    assert looks["odd"].failed == 1
    assert "outlet odd: no idea what that is" in said
    assert any("fell over" in post.error for post in ledger.posts() if post.outlet == "odd")
    ledger.close()


def test_it_works_by_itself_until_it_is_stopped(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    arrived = threading.Event()

    def behave(_: dict[str, Any]) -> Sent:
        arrived.set()
        return ARRIVED

    way = Way(behave)
    post = posting(ledger, way)
    others = threading.enumerate()
    threading.Thread(target=post.run, daemon=True).start()
    failing(ledger)
    assert arrived.wait(10)
    mine = [each for each in threading.enumerate() if each not in others]
    begun = time.monotonic()
    post.stop(20)
    assert time.monotonic() - begun < 20, "nobody had to be left behind"
    assert any(each.name == "outlet-ops" for each in mine)
    assert not any(each.is_alive() for each in mine if each.name == "outlet-ops")
    ledger.close()


def test_a_slow_outlet_holds_up_neither_a_faster_one_nor_the_end(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    free, arrived = threading.Event(), threading.Event()

    def stuck(_: dict[str, Any]) -> Sent:
        free.wait(20)
        return ARRIVED

    def quick(_: dict[str, Any]) -> Sent:
        arrived.set()
        return ARRIVED

    notice = Notify(command=("true",), on=EVERY)
    outlets = [Notifier("slow", notice, Way(stuck)), Notifier("quick", notice, Way(quick))]
    post = Posting(ledger, settings(""), outlets=list(outlets))
    post.once()
    failing(ledger)
    post.start()
    assert arrived.wait(10)
    begun = time.monotonic()
    post.stop(0.2)
    assert time.monotonic() - begun < 10, "half of what the slow one takes"
    free.set()
    for thread in threading.enumerate():
        if thread.name.startswith("outlet-"):
            thread.join(10)
    ledger.close()


def test_a_crash_in_the_middle_of_a_try_loses_nothing(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
):
    ledger = open_ledger(sqlite_url)
    clock = Clock(ledger, monkeypatch)
    way = Way()
    post = posting(ledger, way)
    failing(ledger)

    def die(_: dict[str, Any]) -> Sent:
        raise KeyboardInterrupt

    way.behave = die
    with pytest.raises(KeyboardInterrupt):
        post.once()
    way.behave = lambda _: ARRIVED
    clock.minutes(5)
    posting(ledger, way)
    assert len(way.ids) == 2
    assert len(set(way.ids)) == 1
    ledger.close()


@pytest.mark.parametrize(
    "detail", [ExitDetail.TURN_CAP, ExitDetail.OOM, ExitDetail.REFUSED], ids=str
)
def test_every_routed_cell_is_told_by_default(sqlite_url: str, detail: ExitDetail):
    ledger = open_ledger(sqlite_url)
    way = Way()
    notifier = Notifier("ops", Notify(command=("true",)), way)
    post = Posting(ledger, settings(""), outlets=[notifier])
    post.once()
    ticket = started(ledger, budget=Budget(attempts=1))
    ledger.end_run(ticket, ended(detail))
    if detail is ExitDetail.TURN_CAP:
        judged(ledger, ticket, Outcome.FAILED)
    post.once()
    expected = {"turn_cap": "cap_hit", "oom": "outage", "refused": "blocked"}[detail]
    assert [event["cell"] for event in way.got] == [expected]
    ledger.close()


def test_settings_become_outlets_by_name():
    with Receiver() as receiver:
        text = f"""
        [[notify]]
        webhook = "{receiver.url}/hook?key=1"
        allow_private = true
        [[notify]]
        name = "pager"
        command = ["page", "--key", "1"]
        """
        ledger: Any = None
        shown = {each.name: each.where for each in outlets_of(ledger, settings(text), {})}
        unnamed, pager = outlet_names(settings(text).contents.notify)
    assert shown == {unnamed: f"{receiver.url}/…", pager: "page"}
    assert (unnamed.partition("-")[0], pager) == ("webhook", "pager")


# --- settings that change while it runs


OPS = '[[notify]]\nname = "ops"\ncommand = ["true"]\n'
MORE = '[[notify]]\nname = "more"\ncommand = ["true"]\n'


class Written:
    """A settings file, whoever writes it, and something that follows it."""

    def __init__(self, ledger: Ledger, folder: Path) -> None:
        self.ledger, self.file = ledger, folder / "truegreen.toml"
        self.environ = {"HOME": str(folder), "TRUEGREEN_STORE": str(folder / "s.db")}
        self.said: list[str] = []
        self.file.write_text(OPS)
        self.following = Following(ledger, settle(ledger, self.load()), self.load, self.said.append)

    def load(self) -> Config:
        return load_config(self.environ, str(self.file.parent))

    @property
    def used(self) -> list[str]:
        return list(self.following.used())

    def write(self, text: str) -> None:
        """While nothing runs."""
        time.sleep(0.12)
        self.file.write_text(text)
        time.sleep(0.12)

    @contextmanager
    def run(self, *, same: bool) -> Iterator[None]:
        """An agent works; whether the file was the same when it had gone."""
        ticket = started(self.ledger)
        time.sleep(0.12)
        yield
        time.sleep(0.12)
        facts = {"settings": {str(self.file): same}}
        self.ledger.end_run(ticket, ended(ExitDetail.OOM, facts=facts))


@pytest.fixture
def written(sqlite_url: str, tmp_path: Path) -> Iterator[Written]:
    ledger = open_ledger(sqlite_url)
    yield Written(ledger, tmp_path)
    ledger.close()


def test_what_a_person_adds_is_used_without_a_restart(written: Written):
    assert written.used == ["ops"]
    written.file.write_text(OPS + MORE)
    assert written.used == ["ops", "more"]
    assert written.said[0].endswith(
        "is trusted to reach out as it does now: notify.ops, notify.more"
    )
    written.file.write_text(MORE)
    assert written.used == ["more"]
    assert "restart" not in str(written.said)


@pytest.mark.criterion("O03")
def test_what_an_agent_adds_or_takes_away_changes_nothing_until_it_is_trusted(written: Written):
    with written.run(same=False):
        written.file.write_text(MORE)
        assert written.used == ["ops"]
    assert written.used == ["ops"], "and an agent silences nobody"
    (said,) = written.said
    assert "could have written it; not used yet: ops, more: truegreen outlets trust" in said
    trust(written.ledger, written.load(), actor=OPERATOR)
    assert written.used == ["more"]


@pytest.mark.criterion("O03")
def test_what_an_agent_shows_for_a_moment_is_not_used_when_its_run_saw_no_change(written: Written):
    """It is judged by what the file says after its run was looked at."""
    with written.run(same=True):
        written.file.write_text(MORE)
        evil = written.load()
        written.file.write_text(OPS)
    texts = [evil, written.load()]
    written.following = Following(
        written.ledger, written.load(), lambda: texts.pop(0) if texts else written.load(), print
    )
    assert written.used == ["ops"]
    assert written.used == ["ops"]


@pytest.mark.criterion("O03")
def test_what_was_loaded_and_never_pinned_is_not_used(written: Written):
    with written.run(same=True):
        written.file.write_text(OPS + MORE + "[web]\nurl = 'https://evil.example'\n")
        evil = written.load()
        written.file.write_text("[")
    following = Following(written.ledger, evil, written.load, written.said.append)
    assert {name: each.url for name, each in following.used().items()} == {"ops": ""}
    trust(written.ledger, evil, actor=OPERATOR)
    assert following.used()["more"].url == "https://evil.example"


def test_a_file_that_is_gone_or_broken_ends_no_outlet_and_is_said_once(written: Written):
    for break_it in (lambda: written.file.write_text("["), written.file.unlink):
        break_it()
        assert (written.used, written.used) == (["ops"], ["ops"])
        assert written.said.pop().endswith("; outlets stay as they are")
        assert written.said == []


def test_what_is_read_once_needs_a_restart_and_that_is_said_once(written: Written):
    written.file.write_text(OPS + "[web]\nport = 9000\n")
    assert (written.used, written.used) == (["ops"], ["ops"])
    restart = f"{written.file} changed: restart to use it; its outlets and routines need no restart"
    assert written.said.count(restart) == 1


def test_an_outlet_that_begins_later_is_told_what_happened_since_the_last_look(
    written: Written, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(posting_room, "_FOLLOW_SECONDS", 0.05)
    news = written.file.parent / "news.txt"
    command = f'[[notify]]\nname = "more"\ncommand = ["sh", "-c", "cat >> {news}"]\n'
    post = Posting(written.ledger, written.load(), load=written.load)
    written.write(command)  # after the last look
    failing(written.ledger, title="after")
    post.start()
    try:
        until(lambda: news.exists() and "after" in news.read_text())
        written.write(OPS)
        until(lambda: "outlet-more" not in outlets_at_work())
        assert "outlet-ops" in outlets_at_work()
    finally:
        post.stop()
    assert outlets_at_work() == set(), "nor whoever looks after them"


def outlets_at_work() -> set[str]:
    return {each.name for each in threading.enumerate() if each.name.startswith("outlet")}
