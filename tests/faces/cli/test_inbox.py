"""`inbox`, `ack`, `snooze`, `resolve`: what waits for a person, by cause, and what became of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import Furnished, Run
from tests.faces.hostile import HOSTILE
from tests.record.lives import OPERATOR, brought, declared, ended, judged, opened, started
from tests.stage import Clock, staged
from truegreen.contract import Budget
from truegreen.model import ExitDetail, InboxState, Outcome, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger

D = ExitDetail
ONCE = Budget(attempts=1)


@pytest.fixture
def book(home_store: str) -> Iterator[Ledger]:
    """The ledger of the store that commands find by themselves."""
    ledger = open_ledger(home_store)
    yield ledger
    ledger.close()


def crashed(ledger: Ledger, title: str, detail: ExitDetail = D.OOM, message: str = "so") -> None:
    ticket = started(ledger, budget=ONCE, title=title)
    ledger.end_run(ticket, ended(detail, message=message))


def silent(ledger: Ledger, title: str) -> None:
    ticket = started(ledger, budget=ONCE, title=title)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)


def ids(ledger: Ledger) -> dict[str, str]:
    return {each.item.title: each.item.id for each in ledger.inbox_all()}


def states(ledger: Ledger) -> dict[str, str]:
    return {each.item.title: each.item.state for each in ledger.inbox_all()}


@pytest.mark.criterion("L03", "L13")
def test_an_item_says_how_often_how_long_and_what_next(tg: Run, book: Ledger) -> None:
    for _ in range(3):
        silent(book, "nightly triage")
    out = tg("inbox").out.splitlines()
    assert out[0].startswith(
        "✗ critical  nightly triage · silent failure · third time · unread for "
    )
    assert out[1].strip() == "gate tests: failed"
    assert out[2].split() == ["next", "truegreen", "show", book.inbox()[0].task]
    assert out[3].split()[:3] == ["done", "truegreen", "resolve"]


@pytest.mark.criterion("L13")
def test_items_with_one_cause_stand_together(tg: Run, book: Ledger) -> None:
    # They run at the same time: after so many outages nothing would be let start.
    titles = [*(f"task {number}" for number in range(7)), "another", "task 0"]
    *first, again = [started(book, budget=ONCE, title=title) for title in titles]
    for ticket, title in zip(first, titles, strict=False):
        detail = D.DISK_FULL if title == "another" else D.OOM
        book.end_run(ticket, ended(detail, message="so"))
    out = tg("inbox", "--group").out
    assert "outage: oom · 7 alike · unread for less than a minute" in out
    assert "and 2 more" in out
    assert f"truegreen ack {ids(book)['task 0']} --group" in out
    book.end_run(again, ended(D.OOM, message="so"))
    assert "outage: oom · 7 alike, 8 times in all · unread" in tg("inbox", "--group").out
    document = tg("inbox", "--group", "--json").json()
    sizes = {group["topic"]: len(group["items"]) for group in document["groups"]}
    assert sizes == {"outage: oom": 7, "outage: disk_full": 1, "breaker: oom: so (command)": 1}
    assert (document["put_off"], document["rubber_stamps"]) == (0, [])


@pytest.mark.criterion("L03")
def test_taking_an_item_names_its_owner(tg: Run, book: Ledger) -> None:
    crashed(book, "one")
    item = ids(book)["one"]
    answer = tg("ack", item[:-1])
    assert (answer.status, answer.out.split()[:3]) == (0, [item, "is", "yours,"])
    assert "looks into it · waits for less than a minute" in tg("inbox").out
    document = tg("ack", item, "--json").json()
    assert (document["item"], document["id"], document["state"]) == (item, item, "acked")
    assert document["owner"].startswith("operator:")


@pytest.mark.criterion("L13")
def test_taking_a_group_takes_all_its_members_and_nothing_else(tg: Run, book: Ledger) -> None:
    for title in ("first", "second", "third"):
        crashed(book, title)
    crashed(book, "another", D.DISK_FULL)
    document = tg("ack", ids(book)["second"], "--group", "--json").json()
    assert document["item"] == ids(book)["second"]
    assert len(document["items"]) == 3
    assert states(book) == {
        **dict.fromkeys(("first", "second", "third"), InboxState.ACKED),
        "another": InboxState.OPEN,
    }
    assert (
        len(tg("resolve", ids(book)["first"], "--outcome", "RAM", "--group").out.split("\n")) == 4
    )
    assert set(tg("inbox", "--json").json()["inbox"][0].items()) >= {("title", "another")}


@pytest.mark.criterion("L13")
def test_what_is_put_off_is_gone_counted_and_listed_with_its_return(tg: Run, book: Ledger) -> None:
    crashed(book, "one")
    item = ids(book)["one"]
    assert "comes back" in tg("snooze", item, "--for", "4h").out
    assert tg("inbox").out.splitlines() == [
        "nothing waits for anybody",
        "1 put off; see them: truegreen inbox --snoozed",
    ]
    assert tg("inbox", "--json").json()["inbox"] == []
    assert "put off by" in tg("inbox", "--snoozed").out
    (document,) = tg("inbox", "--snoozed", "--json").json()["inbox"]
    assert (document["id"], document["state"]) == (item, "snoozed")
    crashed(book, "two")
    assert [each.item.title for each in book.inbox()] == ["two"]


@pytest.mark.criterion("L13")
def test_a_snooze_says_what_it_covers_and_only_a_group_covers_what_comes(
    tg: Run, book: Ledger
) -> None:
    for title in ("one", "two"):
        crashed(book, title)
    one = ids(book)["one"]
    alone = tg("snooze", one, "--for", "4h")
    assert "«one»" in alone.out
    assert "only this is put off" in alone.out
    assert tg("snooze", one, "--for", "4h", "--json").json()["snooze_covers"] == "item"
    out = " ".join(tg("snooze", one, "--for", "4h", "--group").out.split())
    assert "«one»" in out
    assert "«two»" in out
    assert "put off: these 2 and whatever else comes as «outage: oom»" in out
    assert "questions come all the same" in out
    document = tg("snooze", one, "--for", "4h", "--group", "--json").json()
    assert [item["snooze_covers"] for item in document["items"]] == ["topic", "topic"]
    crashed(book, "three")
    assert tg("inbox", "--group", "--json").json()["put_off"] == 3
    assert "put off with its topic until" in tg("inbox", "--snoozed").out


def test_an_item_can_be_put_off_until_an_instant(tg: Run, book: Ledger) -> None:
    crashed(book, "one")
    there = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() + 7200))
    assert tg("snooze", ids(book)["one"], "--until", there).status == 0
    (put_off,) = book.put_off()
    assert abs((put_off.item.snoozed_until or 0) / 1e6 - time.time() - 7200) < 60


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "one of --for and --until"),
        (["--for", "1h", "--until", "2030-01-01"], "one of --for and --until"),
        (["--for", "soon"], "--for"),
        (["--for", "31d"], "30 days"),
        (["--until", "2020-01-01"], "is over"),
        (["--until", "tomorrow"], "is no time"),
    ],
)
def test_nothing_is_put_off_for_a_time_that_is_none(
    tg: Run, book: Ledger, words: list[str], said: str
) -> None:
    crashed(book, "one")
    answer = tg("snooze", ids(book)["one"], *words)
    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err
    assert states(book) == {"one": InboxState.OPEN}


def test_what_was_resolved_is_listed_with_its_outcome(tg: Run, book: Ledger) -> None:
    crashed(book, "old")
    tg("resolve", ids(book)["old"], "--outcome", "more memory")
    crashed(book, "new", D.DISK_FULL)
    assert tg("inbox", "--json").json()["inbox"][0]["title"] == "new"
    found = tg("inbox", "--all", "--json").json()["inbox"]
    assert [(each["title"], each["state"]) for each in found] == [
        ("new", "open"),
        ("old", "resolved"),
    ]
    assert "resolved: more memory" in tg("inbox", "--all").out
    assert tg("inbox", "--all", "--snoozed").status == 2
    again = tg("ack", ids(book)["old"], "--json")
    assert (again.status, again.json()["error"]["code"]) == (2, "stale")


def approvals(ledger: Ledger, times: int) -> None:
    for number in range(times):
        task, _ = brought(ledger, TaskStatus.AWAITING_APPROVAL, title=f"ask {number}")
        ledger.approve(task.id, actor=OPERATOR)


@pytest.mark.criterion("L13")
def test_who_approves_by_the_dozen_is_named_before_all_else(tg: Run, book: Ledger) -> None:
    approvals(book, 8)
    crashed(book, "one")
    first = tg("inbox").out.splitlines()[0]
    assert first.startswith(
        "◆ rubber stamps: ana said yes 8 times in a day, 3 of them by the dozen"
    )
    assert "8 faster than anybody reads" in first
    (person,) = tg("inbox", "--group", "--json").json()["rubber_stamps"]
    assert (person["name"], person["answers"], person["mass"], person["hasty"]) == ("ana", 8, 3, 8)


def test_an_inbox_with_one_yes_that_took_its_time_warns_of_nobody(
    tg: Run, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = book.store
    now = time.time_ns() // 1000 - 60_000_000
    monkeypatch.setattr(store, "clock", lambda: now)
    task, _ = brought(book, TaskStatus.AWAITING_APPROVAL)
    now += 30_000_000
    book.approve(task.id, actor=OPERATOR)
    assert "rubber" not in tg("inbox").out


@pytest.mark.criterion("L16")
def test_texts_of_agents_only_show(tg: Run, book: Ledger) -> None:
    for number, text in enumerate(HOSTILE):
        title = text if text.isprintable() and len(text) < 150 else "task"
        told = text.replace("\x00", "").encode("utf-8", "replace").decode()[:900]
        crashed(book, f"{title} {number}", D.REFUSED, told)
    for words in (["inbox"], ["inbox", "--group"], ["inbox", "--all"]):
        out = tg(*words, "--limit", "200").out
        assert all(line.isprintable() for line in out.splitlines())


@pytest.mark.usefixtures("furnished")
def test_an_agent_cannot_triage(tg: Run) -> None:
    item = tg("inbox", "--json").json()["inbox"][0]["id"]
    for words in (["ack", item], ["snooze", item, "--for", "1h"]):
        assert tg(*words, "--json", TRUEGREEN_RUN="run_1").error("forbidden")


def test_the_tab_key_offers_what_waits(tg: Run, book: Ledger, furnished: Furnished) -> None:
    known = {each.item.id for each in open_ledger(furnished.url).inbox()}
    typed = {"COMP_WORDS": "truegreen ack inb_", "COMP_CWORD": "2"}
    out = tg(_TRUEGREEN_COMPLETE="bash_complete", **typed).out
    assert {line.split(",")[1] for line in out.splitlines()} == known
    nowhere = {**typed, "TRUEGREEN_STORE": "sqlite:///nowhere/at/all.db"}
    assert tg(_TRUEGREEN_COMPLETE="bash_complete", **nowhere).out.strip() == ""


@pytest.mark.usefixtures("own_tools")
@pytest.mark.criterion("A22", "L13")
def test_three_nights_of_a_real_contract_are_one_item(
    tg: Run, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole walk three times: an agent that exits 0 over a gate that stays red."""
    stage = staged(sqlite_url, tmp_path)
    clock = Clock(stage.ledger, monkeypatch)
    clock.minutes(-2 * 24 * 60 - 1)
    for _ in range(3):
        stage.add("true", title="nightly", budget=ONCE)
        assert len(stage.play()) == 1
        clock.minutes(24 * 60)
    monkeypatch.setenv("TRUEGREEN_STORE", sqlite_url)
    (item,) = tg("inbox", "--json").json()["inbox"]
    assert (item["title"], item["times"], item["cell"]) == ("nightly", 3, "silent_failure")
    assert item["topic"] == f"silent_failure: gate acted in {stage.folder}"
    assert "nightly · silent failure · third time · unread for 2 d" in tg("inbox").out
    (group,) = tg("inbox", "--group", "--json").json()["groups"]
    assert (group["times"], len(group["items"])) == (3, 1)
    stage.ledger.close()


def test_an_empty_list_says_what_is_elsewhere(tg: Run, book: Ledger) -> None:
    store = os.environ["TRUEGREEN_STORE"]
    assert tg("inbox").out == f"nothing waits for anybody: no tasks yet in {store}\n"
    started(book)
    assert tg("inbox").out == "nothing waits for anybody\n"
    assert tg("inbox", "--snoozed").out == "nothing is put off\n"
    silent(book, "it lied")
    assert tg("inbox", "--snoozed").out == "nothing is put off; 1 waits\n"
    crashed(book, "it crashed")
    assert tg("inbox", "--snoozed", "--group").out == "nothing is put off; 2 wait\n"


def test_a_question_is_shown_with_its_answers_and_can_not_be_resolved(
    tg: Run, book: Ledger
) -> None:
    task = opened(book, wait_for=("human:deploy it?",)).id
    (item,) = [each.item.id for each in book.inbox() if each.task == task]
    shown = tg("inbox").out
    assert f"next  truegreen approve {task}\n" in shown
    assert f'or    truegreen reject {task} --reason "not now"\n' in shown
    assert f"truegreen resolve {item}" not in shown
    refused = tg("resolve", item, "--outcome", "yes")
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.endswith(f"next: truegreen approve {task}\n")
