"""What outlets owe: written down once, taken by one, tried again, never forgotten."""

from __future__ import annotations

import pytest

from tests.record.lives import OPERATOR, opened
from tests.stage import Clock
from truegreen.errors import Forbidden, InvalidInput, NotFound, Stale
from truegreen.facts import Actor
from truegreen.model import Role
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.telling import Owed


def owed(ledger: Ledger, *subjects: str, reached: tuple[int, int] = (0, 1)) -> None:
    ledger.owe("hook", [Owed(subject, "{}") for subject in subjects], reached)


def test_an_outlet_that_is_new_has_read_nothing(ledger: Ledger):
    assert ledger.reached("hook") == (0, 0)
    owed(ledger, reached=(3, 7))
    assert (ledger.reached("hook"), ledger.reached("other")) == ((3, 7), (0, 0))


@pytest.mark.criterion("L12")
def test_the_same_subject_is_owed_once(ledger: Ledger):
    owed(ledger, "a", "a", "b")
    owed(ledger, "a")
    assert [post.subject for post in ledger.take_posts()] == ["a", "b"]
    assert ledger.posts_counted() == [("hook", "waiting", 2)]


def test_what_somebody_took_nobody_else_gets_meanwhile(ledger: Ledger):
    owed(ledger, "a")
    assert len(ledger.take_posts()) == 1
    assert ledger.take_posts() == []


def test_what_nobody_finished_is_taken_again(ledger: Ledger):
    owed(ledger, "a")
    assert len(ledger.take_posts(seconds=0)) == 1
    assert len(ledger.take_posts()) == 1


@pytest.mark.criterion("L12")
def test_a_post_that_failed_is_tried_again_and_one_that_arrived_is_not(ledger: Ledger):
    owed(ledger, "a", "b")
    first, second = ledger.take_posts(seconds=0)
    ledger.posted(first.id)
    failed = ledger.unposted(second.id, "connection refused", again_in=0.0)
    assert (failed.tries, failed.error, failed.state) == (1, "connection refused", "waiting")
    assert [post.id for post in ledger.take_posts()] == [second.id]
    with pytest.raises(Stale):
        ledger.posted(first.id)


def test_a_post_waits_for_its_time(ledger: Ledger):
    owed(ledger, "a")
    (post,) = ledger.take_posts()
    ledger.unposted(post.id, "not now", again_in=3600)
    assert ledger.take_posts() == []


@pytest.mark.criterion("L12")
def test_what_was_given_up_is_seen_and_tried_again_when_somebody_says_so(ledger: Ledger):
    owed(ledger, "a")
    (post,) = ledger.take_posts()
    ledger.unposted(post.id, "gone", again_in=None)
    assert ledger.posts_counted() == [("hook", "given_up", 1)]
    assert ledger.take_posts() == []
    with pytest.raises(Forbidden):
        ledger.post_again(post.id, actor=Actor(Role.VIEWER, "vera"))
    assert ledger.post_again(post.id, actor=OPERATOR).tries == 0
    assert [each.id for each in ledger.take_posts()] == [post.id]
    with pytest.raises(NotFound):
        ledger.post_again(post.id, actor=OPERATOR)


def test_posts_are_listed_newest_first_page_by_page(ledger: Ledger):
    owed(ledger, "a", "b", "c")
    newest = ledger.posts(limit=2)
    assert [post.subject for post in newest] == ["c", "b"]
    assert [post.subject for post in ledger.posts(before=newest[-1].key)] == ["a"]
    with pytest.raises(InvalidInput):
        ledger.posts(before=-1)


def test_a_body_that_is_too_long_is_refused_and_the_outlet_has_read_nothing(ledger: Ledger):
    with pytest.raises(InvalidInput):
        ledger.owe("hook", [Owed("a", "x" * ((1 << 20) + 1))], (9, 9))
    assert ledger.reached("hook") == (0, 0)
    assert ledger.posts() == []


def test_a_post_names_its_task(ledger: Ledger):
    task = opened(ledger)
    ledger.owe("hook", [Owed("a", "{}", task.id)], (0, 1))
    assert ledger.posts()[0].task_id == task.id


@pytest.mark.criterion("L12")
def test_news_of_one_task_goes_in_its_order_and_holds_up_no_other(ledger: Ledger):
    task, other = opened(ledger), opened(ledger)
    news = [Owed("a", "{}", task.id), Owed("b", "{}", task.id), Owed("c", "{}", other.id)]
    ledger.owe("hook", news, (0, 1))
    ledger.owe("mail", [Owed("a", "{}", task.id)], (0, 1))
    first, second = ledger.take_posts("hook", seconds=0)
    assert (first.subject, second.subject) == ("a", "c")
    ledger.unposted(first.id, "not now", again_in=3600)
    assert [post.subject for post in ledger.take_posts("hook", seconds=0)] == ["c"]
    assert [post.outlet for post in ledger.take_posts("mail")] == ["mail"]


def test_what_became_of_posts_is_counted_for_ever(ledger: Ledger):
    owed(ledger, "a")
    (post,) = ledger.take_posts(seconds=0)
    ledger.unposted(post.id, "not now", again_in=0)
    ledger.posted(post.id)
    meters = ledger.meters()
    assert (meters["posted", "failed|hook"], meters["posted", "sent|hook"]) == (1, 1)


@pytest.mark.criterion("L12")
def test_what_can_not_be_said_is_counted_with_its_reason_and_never_sent(ledger: Ledger):
    tasks = [opened(ledger).id for _ in range(2)]
    for number, task in enumerate(tasks):
        ledger.owe("hub", [Owed(f"evt_{number}", "", task, unsaid=f"why {number}")], (0, number))
    owed(ledger, "a")
    assert ledger.take_posts("hub") == []
    assert ledger.posts_counted() == [("hook", "waiting", 1), ("hub", "unsaid", 2)]
    assert {name: post.error for name, post in ledger.last_unsaid().items()} == {"hub": "why 1"}
    assert [[post.error for post in ledger.silences(task)] for task in tasks] == [
        ["why 0"],
        ["why 1"],
    ]
    with pytest.raises(NotFound):
        ledger.post_again(ledger.silences(tasks[0])[0].id, actor=OPERATOR)


def test_what_was_given_up_about_a_task_is_silence_and_what_waits_is_not(ledger: Ledger):
    task = opened(ledger).id
    ledger.owe("hook", [Owed(subject, "{}", task) for subject in ("a", "b")], (0, 1))
    (post,) = ledger.take_posts()
    ledger.unposted(post.id, "gone", again_in=None)
    assert [(each.subject, each.state) for each in ledger.silences(task)] == [("a", "given_up")]


def test_only_an_operator_drops_what_is_owed(ledger: Ledger):
    owed(ledger, "a", "b")
    with pytest.raises(Forbidden):
        ledger.drop_posts("hook", actor=Actor(Role.VIEWER, "eve"))
    assert ledger.drop_posts("other", actor=OPERATOR) == 0
    assert ledger.drop_posts("hook", actor=OPERATOR) == 2
    assert ledger.posts_counted() == [("hook", "unsaid", 2)]


def test_what_was_sent_or_not_said_is_forgotten_after_a_month_and_what_is_owed_never(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(ledger, monkeypatch)
    owed(ledger, "sent", "given up", "waits")
    sent, lost, _ = ledger.take_posts(seconds=0)
    ledger.posted(sent.id)
    ledger.unposted(lost.id, "gone", again_in=None)
    ledger.owe("hub", [Owed("old", "", unsaid="why")], (0, 1))
    clock.minutes(31 * 24 * 60)
    ledger.owe("hub", [Owed("new", "", unsaid="why")], (0, 2))
    assert {post.subject for post in ledger.posts()} == {"given up", "waits", "new"}
