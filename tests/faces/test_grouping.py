"""What waits for people, by cause: how groups are made, ordered and told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.faces.hostile import HOSTILE
from tests.table import each_row
from truegreen.faces.grouping import (
    age_words,
    group_document,
    groups,
    ordinal,
    times_words,
    unread_age,
    unread_words,
)
from truegreen.model import InboxState, Severity
from truegreen.record.ledger.reads import Waiting
from truegreen.record.rows import InboxItem

HOUR = 3_600_000_000
NOW = 100 * HOUR


def item(key: int, topic: str = "outage: oom", **more: Any) -> Waiting:
    made = InboxItem(
        key=key,
        id=f"inb_{key}",
        cause=f"cause {key}",
        cell="outage",
        severity=Severity.HIGH,
        task_key=key,
        run_key=None,
        title=f"task {key}",
        reason="killed",
        next="",
        times=1,
        state=InboxState.OPEN,
        owner="",
        snoozed_until=None,
        outcome=None,
        created_at=NOW - key * HOUR,
        updated_at=NOW,
        topic=topic,
    )
    return Waiting(msgspec.structs.replace(made, **more), f"tsk_{key}")


@pytest.mark.criterion("L13")
@each_row(
    ("topic", "size", "words"),
    [
        ("outage: disk_full", 3, "3 with one cause"),
        ("outage: auth_invalid (codex)", 2, "2 with one cause"),
        ("silent_failure: gate tests in /srv/shop", 3, "3 alike"),
        ("cap_hit: turn_cap in /srv/shop", 2, "2 alike"),
        ("outage: disk_full", 1, ""),
    ],
)
def test_one_cause_is_said_only_where_one_thing_is_behind_all(
    topic: str, size: int, words: str
) -> None:
    (group,) = groups([item(n, topic) for n in range(size)], NOW)
    assert group.alike == words


@pytest.mark.criterion("L13")
def test_items_with_one_topic_are_one_group_that_counts_them_all() -> None:
    found = groups([item(1, times=3), item(2), item(3, "outage: disk_full")], NOW)
    assert [(g.topic, len(g.items), g.times) for g in found] == [
        ("outage: disk_full", 1, 1),
        ("outage: oom", 2, 4),
    ]
    assert found[1].oldest == NOW - 2 * HOUR


@pytest.mark.criterion("L02", "L13")
def test_the_most_urgent_group_comes_first_and_then_the_one_that_waits_longest() -> None:
    mixed = [
        item(9, "cap_hit: time_cap"),
        item(1, "silent_failure: gate tests", severity=Severity.CRITICAL),
        item(5, "undecided: gate tests", severity=Severity.NORMAL),
        item(7, "outage: oom"),
    ]
    assert [group.topic.partition(":")[0] for group in groups(mixed, NOW)] == [
        "silent_failure",
        "cap_hit",
        "outage",
        "undecided",
    ]


def test_a_group_is_as_urgent_as_its_most_urgent_item_which_stands_first() -> None:
    (group,) = groups([item(1), item(2), item(3, severity=Severity.CRITICAL)], NOW)
    assert group.severity is Severity.CRITICAL
    assert [each.item.key for each in group.items] == [3, 1, 2]


def test_items_without_a_topic_have_nothing_in_common() -> None:
    found = groups([item(1, ""), item(2, "")], NOW)
    assert [len(group.items) for group in found] == [1, 1]
    assert {group.topic for group in found} == {"outage: task 1", "outage: task 2"}


@pytest.mark.criterion("L13")
def test_unread_is_what_nobody_took_for_as_long_as_nobody_did() -> None:
    (group,) = groups([item(2), item(5, state=InboxState.ACKED)], NOW)
    assert group.unread_age == 2 * 3600
    (taken,) = groups([item(5, state=InboxState.ACKED, owner="operator:ana")], NOW)
    assert (taken.unread_age, taken.owners) == (None, ("ana",))


@pytest.mark.criterion("L13")
def test_what_was_put_off_is_unread_from_the_moment_it_comes_back() -> None:
    put_off = {"state": InboxState.SNOOZED, "owner": "operator:ana"}
    back = item(9, snoozed_until=NOW - HOUR, **put_off).item
    away = item(9, snoozed_until=NOW + 1, **put_off).item
    assert (unread_age(back, NOW), unread_age(away, NOW)) == (3600, None)


def test_an_age_is_never_negative_when_a_clock_was_set_back() -> None:
    assert unread_age(item(-3).item, NOW) == 0


@each_row(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (59.9, "less than a minute"),
        (60, "1 min"),
        (3599, "59 min"),
        (3 * 3600 + 1800, "3 h"),
        (86399, "23 h"),
        (86400 * 12, "12 d"),
    ],
)
def test_an_age_is_cut_and_never_rounded_up(seconds: float, words: str) -> None:
    assert age_words(seconds) == words
    assert unread_words(seconds) == f"unread for {words}"


def test_what_somebody_took_is_not_called_unread() -> None:
    assert unread_words(None) == ""


@each_row(
    ("times", "words"),
    [
        *((0, ""), (1, ""), (2, "second time"), (3, "third time"), (9, "ninth time")),
        *((10, "10th time"), (11, "11th time"), (12, "12th time"), (13, "13th time")),
        *((21, "21st time"), (22, "22nd time"), (103, "103rd time"), (111, "111th time")),
    ],
)
def test_how_often_is_said_as_people_say_it(times: int, words: str) -> None:
    assert times_words(times) == words
    if times > 1:
        assert ordinal(times) == words.removesuffix(" time")


@pytest.mark.criterion("L16")
@each_row("text", HOSTILE)
def test_a_cause_in_an_agents_words_only_shows(text: str) -> None:
    (group,) = groups([item(1, f"blocked: input_needed: {text}")], NOW)
    assert group.words.startswith("blocked: input_needed:")
    assert group.words.isprintable()


def test_a_group_as_a_document_names_its_items_and_how_long_each_is_unread() -> None:
    (group,) = groups([item(2), item(5, state=InboxState.ACKED, owner="operator:ana")], NOW)
    document = group_document(group, NOW)
    items = document.pop("items")
    assert document == {
        "topic": "outage: oom",
        "one_cause": False,
        "severity": "high",
        "times": 2,
        "oldest_at": "1970-01-04T23:00:00.000000Z",
        "unread_s": 7200.0,
        "owners": ["ana"],
    }
    assert [(each["id"], each["topic"], each["unread_s"]) for each in items] == [
        ("inb_2", "outage: oom", 7200.0),
        ("inb_5", "outage: oom", None),
    ]


def test_nothing_waits_in_no_group() -> None:
    assert groups([], NOW) == []
