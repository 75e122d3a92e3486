"""What lasts too long, or what there is too much of: brought up once, closed when it is over."""

from __future__ import annotations

from typing import Any

import pytest

from tests.outlets.receiver import settings
from tests.outlets.test_posting import Way
from tests.record.lives import OPERATOR, brought, declared, ended, opened, started
from tests.stage import Clock
from truegreen.contract import Alerts, Budget, Notify
from truegreen.errors import Forbidden
from truegreen.facts import Actor
from truegreen.model import ExitDetail, InboxState, Role, TaskStatus
from truegreen.outlets.notify import Notifier
from truegreen.outlets.posting import Posting
from truegreen.record.ledger import Ledger

LIMITS = Alerts(queue_depth=4, unknown_of=4, unknown_share=0.5)


@pytest.fixture
def clock(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(ledger, monkeypatch)


def raised(ledger: Ledger, limits: Alerts = LIMITS) -> list[str]:
    return [alert.kind for alert in ledger.raise_alerts(limits)]


def waiting(ledger: Ledger, kind: str) -> list[Any]:
    return [each.item for each in ledger.inbox() if each.item.cell == kind]


def ends_unknown(ledger: Ledger) -> None:
    ticket = started(ledger, budget=Budget(attempts=1))
    ledger.end_run(ticket, ended(ExitDetail.UNCLASSIFIED))


@pytest.mark.criterion("B20")
def test_a_task_that_is_blocked_for_too_long_is_brought_up_once(ledger: Ledger, clock: Clock):
    task, _ = brought(ledger, TaskStatus.BLOCKED)
    clock.minutes(24 * 60 - 1)
    assert raised(ledger) == []
    clock.minutes(2)
    assert raised(ledger) == ["blocked_long"]
    assert raised(ledger) == []
    (item,) = waiting(ledger, "blocked_long")
    assert item.reason == "blocked for 1d1m; the limit is 1d"
    assert (item.next, item.times) == (f"truegreen unblock {task.id}", 1)
    assert ledger.task(task.id).updated_at == task.updated_at, "to look is no sign of life"


@pytest.mark.criterion("B20")
def test_it_is_closed_by_itself_when_the_task_goes_on(ledger: Ledger, clock: Clock):
    task, _ = brought(ledger, TaskStatus.BLOCKED)
    clock.minutes(24 * 60 + 1)
    raised(ledger)
    ledger.unblock(task.id, reason="it may", actor=OPERATOR)
    assert raised(ledger) == []
    assert waiting(ledger, "blocked_long") == []


@pytest.mark.criterion("L13")
def test_what_a_person_closed_is_quiet_for_a_day_and_then_comes_again(ledger: Ledger, clock: Clock):
    brought(ledger, TaskStatus.BLOCKED)
    clock.minutes(24 * 60 + 1)
    raised(ledger)
    (item,) = waiting(ledger, "blocked_long")
    ledger.resolve(item.id, outcome="I know", actor=OPERATOR)
    clock.minutes(23 * 60)
    assert raised(ledger) == []
    clock.minutes(61)
    assert raised(ledger) == ["blocked_long"]


@pytest.mark.criterion("L13")
def test_what_a_person_closed_is_news_again_when_it_was_over_in_between(ledger: Ledger):
    alerts = Alerts(queue_depth=1)
    tasks = [opened(ledger).id for _ in range(2)]
    assert raised(ledger, alerts) == ["queue_depth"]
    (item,) = waiting(ledger, "queue_depth")
    ledger.resolve(item.id, outcome="I know", actor=OPERATOR)
    assert raised(ledger, alerts) == [], "it lasts, and somebody knows"
    for task in tasks:
        ledger.cancel(task, actor=OPERATOR)
    assert raised(ledger, alerts) == []
    for _ in range(2):
        opened(ledger)
    assert raised(ledger, alerts) == ["queue_depth"]


@pytest.mark.criterion("F11")
@pytest.mark.parametrize(
    "status", [TaskStatus.PENDING_EVAL, TaskStatus.FAILED_PENDING_EVAL, TaskStatus.PENDING_QA]
)
def test_checks_that_do_not_come_to_an_end_are_brought_up(
    ledger: Ledger, clock: Clock, status: TaskStatus
):
    task, _ = brought(ledger, status)
    clock.minutes(59)
    assert "pending_long" not in raised(ledger)
    clock.minutes(2)
    assert "pending_long" in raised(ledger)
    (item,) = waiting(ledger, "pending_long")
    assert item.reason.startswith(f"{status} for 1h1m without a sign of its checks")
    assert item.task_key == task.key
    assert ledger.ages().pending == task.updated_at


@pytest.mark.criterion("K15")
def test_what_is_ready_and_nobody_starts_is_brought_up_once_for_the_queue(
    ledger: Ledger, clock: Clock
):
    first = opened(ledger)
    opened(ledger)
    clock.minutes(59)
    assert raised(ledger) == []
    clock.minutes(2)
    assert raised(ledger) == ["queue_age"]
    (item,) = waiting(ledger, "queue_age")
    assert (item.title, item.next) == ("the queue", f"truegreen why {first.id}")
    assert "2 are queued" in item.reason
    clock.minutes(60)
    assert raised(ledger) == []
    ledger.cancel(first.id, actor=OPERATOR)
    assert waiting(ledger, "queue_age"), "one task that goes is not the end of it"


@pytest.mark.criterion("K15")
def test_what_is_held_back_on_purpose_does_not_wait_for_a_seat(ledger: Ledger, clock: Clock):
    needed = opened(ledger)
    opened(ledger, depends_on=(needed.id,))
    started(ledger, needed.id)
    clock.minutes(600)
    assert "queue_age" not in raised(ledger)
    opened(ledger, labels=("gpu",))
    clock.minutes(61)
    assert "queue_age" in raised(ledger), "what nobody has the labels for waits as well"


def test_a_frozen_queue_waits_for_nobody(ledger: Ledger, clock: Clock):
    opened(ledger)
    ledger.freeze(reason="the weekend", actor=OPERATOR)
    clock.minutes(600)
    assert raised(ledger) == []


@pytest.mark.criterion("K15")
def test_a_queue_that_is_too_deep_is_told_once_however_it_wavers(ledger: Ledger):
    tasks = [opened(ledger) for _ in range(5)]
    assert raised(ledger) == ["queue_depth"]
    ledger.cancel(tasks.pop(0).id, actor=OPERATOR)
    assert raised(ledger) == []
    assert waiting(ledger, "queue_depth"), "at the limit it is not over"
    tasks.append(opened(ledger))
    assert raised(ledger) == []
    for task in tasks[:2]:
        ledger.cancel(task.id, actor=OPERATOR)
    assert raised(ledger) == []
    assert waiting(ledger, "queue_depth") == []
    tasks += [opened(ledger) for _ in range(2)]
    assert raised(ledger) == ["queue_depth"], "after its end it is another one"


@pytest.mark.criterion("B12")
def test_too_many_runs_that_ended_for_an_unknown_reason_are_brought_up(
    ledger: Ledger, clock: Clock
):
    for _ in range(3):
        ends_unknown(ledger)
    assert raised(ledger) == [], "three are not enough to speak of a share"
    declared(ledger, started(ledger))
    assert raised(ledger) == ["unknown_share"]
    (item,) = waiting(ledger, "unknown_share")
    assert "3 of the latest 4 runs ended for an unknown reason (75%)" in item.reason
    assert item.next == "truegreen list --exit-reason unknown"
    clock.minutes(24 * 60 + 1)
    assert "unknown_share" not in raised(ledger)
    assert waiting(ledger, "unknown_share") == [], "what was yesterday is over"


@pytest.mark.criterion("L12")
def test_alerts_are_news_and_so_is_their_end(ledger: Ledger, clock: Clock):
    way = Way()
    entry = Notify(webhook="https://hooks.example")
    post = Posting(ledger, settings(""), outlets=[Notifier("ops", entry, way)])
    tasks = [opened(ledger) for _ in range(5)]
    post.once()
    raised(ledger)
    raised(ledger)
    post.once()
    (event,) = way.got
    assert event["type"] == "dev.truegreen.task.queue_depth"
    assert event["data"]["text"] == "queue depth: the queue"
    assert event["data"]["reason"] == "5 are queued; the limit is 4"
    for task in tasks[:3]:
        ledger.cancel(task.id, actor=OPERATOR)
    raised(ledger)
    post.once()
    assert [each["type"] for each in way.got[1:]] == ["dev.truegreen.inbox.resolved"]
    assert way.got[1]["dedupekey"] == event["dedupekey"]
    assert way.got[1]["subject"] == event["subject"]
    assert {each.item.state for each in ledger.inbox_all()} == {InboxState.RESOLVED}
    assert clock.ahead == 0


def test_nobody_but_the_system_raises_alerts(ledger: Ledger):
    with pytest.raises(Forbidden):
        ledger.raise_alerts(LIMITS, actor=Actor(Role.VIEWER, "eve"))


# --- who is there


@pytest.mark.criterion("K15")
def test_who_looks_for_work_is_seen_and_an_end_is_told_from_a_death(ledger: Ledger, clock: Clock):
    first = ledger.beat("a/1", kind="up", host="a")
    clock.minutes(1)
    again = ledger.beat("a/1", kind="up", host="a", trouble="it hangs", unsent="no answer")
    assert (again.began_at, again.trouble, again.unsent) == (first.at, "it hangs", "no answer")
    assert again.at > first.at
    ledger.beat("b/2", kind="scheduler", host="b")
    ledger.end_beat("a/1")
    assert {each.name: each.ended_at is not None for each in ledger.beats()} == {
        "a/1": True,
        "b/2": False,
    }
    clock.minutes(60 * 24 * 31)
    ledger.beat("c/3", kind="worker", host="c")
    assert [each.name for each in ledger.beats()] == ["c/3"]
