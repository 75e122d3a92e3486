"""What follows news that was told: how much more there was, who is told next, its end."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.outlets.receiver import settings
from tests.outlets.test_posting import Way, failing
from tests.record.lives import OPERATOR, brought, declared, ended, judged, opened, started
from tests.stage import Clock
from tests.table import each_row
from truegreen.contract import Breakers, Budget, Escalation, Limit, Notify, Per, parse_duration
from truegreen.errors import InvalidInput
from truegreen.model import ExitDetail, Outcome, TaskStatus
from truegreen.outlets import followups
from truegreen.outlets.cloudevents import body_lines, headline
from truegreen.outlets.notify import Notifier
from truegreen.outlets.posting import Posting
from truegreen.outlets.sending import ARRIVED, Sent
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.outbox import Announced

MORE, ESCALATED, RESOLVED = followups.MORE, followups.ESCALATED, followups.RESOLVED


def notifier(name: str, way: Way, **terms: Any) -> Notifier:
    for key in ("cooldown",):
        if key in terms:
            terms[key] = parse_duration(terms[key])
    given = {"webhook": "https://hooks.example", "resolved": False, **terms}
    return Notifier(name, Notify(**given), way, "https://green.example")


def posting(ledger: Ledger, *outlets: Notifier) -> Posting:
    """Outlets that have read everything so far."""
    made = Posting(ledger, settings(""), outlets=list(outlets))
    made.once()
    return made


def steps(*given: tuple[str, str]) -> tuple[Escalation, ...]:
    return tuple(Escalation(after=parse_duration(after), to=(to,)) for after, to in given)


def capped(ledger: Ledger, title: str) -> str:
    """A cap that was hit: high, not critical, and nobody is asked."""
    ticket = started(ledger, title=title, budget=Budget(attempts=1))
    ledger.end_run(ticket, ended(ExitDetail.TURN_CAP))
    judged(ledger, ticket, Outcome.FAILED)
    return ticket.task


def types(way: Way) -> list[str]:
    return [event["type"].rpartition(".")[2] for event in way.got]


@pytest.fixture
def clock(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(ledger, monkeypatch)


# --- cooldown


@pytest.mark.criterion("L13")
def test_more_of_one_topic_is_one_message_with_the_count_at_the_end(ledger: Ledger, clock: Clock):
    way = Way()
    post = posting(ledger, notifier("ops", way, cooldown="30m"))
    tasks = []
    for title in "abcde":
        tasks.append(capped(ledger, title))
        post.once()
        clock.minutes(1)
    assert types(way) == ["failed"]
    clock.minutes(24)
    post.once()
    assert types(way) == ["failed"], "not before its time"
    clock.minutes(2)
    post.once()
    assert types(way) == ["failed", "more"]
    data = way.got[-1]["data"]
    assert data["count"] == 4
    assert data["text"].startswith("4 more of cap_hit: turn_cap")
    assert [each["task"] for each in data["tasks"]] == tasks[1:]
    assert headline(way.got[-1]) == data["text"]
    assert sum(line.startswith("task ") for line in body_lines(way.got[-1])) == 4


@pytest.mark.criterion("L13")
def test_what_was_folded_begins_another_time_of_quiet_and_then_it_is_over(
    ledger: Ledger, clock: Clock
):
    way = Way()
    post = posting(ledger, notifier("ops", way, cooldown="30m"))
    capped(ledger, "a")
    capped(ledger, "b")
    post.once()
    clock.minutes(31)
    post.once()
    assert types(way) == ["failed", "more"]
    capped(ledger, "c")
    post.once()
    assert types(way) == ["failed", "more"], "one message in each time of quiet"
    clock.minutes(30)
    post.once()
    assert types(way) == ["failed", "more", "more"]
    clock.minutes(31)
    capped(ledger, "d")
    post.once()
    assert types(way) == ["failed", "more", "more", "failed"]


@pytest.mark.criterion("L13")
def test_what_is_critical_or_a_question_waits_for_nothing(ledger: Ledger, clock: Clock):
    way = Way()
    post = posting(ledger, notifier("ops", way, cooldown="30m"))
    for title in ("a", "b"):
        failing(ledger, title=title)
        brought(ledger, TaskStatus.NEEDS_REVIEW)
    post.once()
    assert sorted(types(way)) == ["failed", "failed", "needs_review", "needs_review"]
    assert clock.ahead == 0


def test_another_topic_and_another_outlet_do_not_wait(ledger: Ledger, clock: Clock):
    ways = Way(), Way()
    post = posting(ledger, notifier("ops", ways[0], cooldown="30m"), notifier("chat", ways[1]))
    capped(ledger, "a")
    ticket = started(ledger, title="b", budget=Budget(attempts=1))
    ledger.end_run(ticket, ended(ExitDetail.OOM))
    capped(ledger, "c")
    post.once()
    assert [len(way.got) for way in ways] == [2, 3]
    assert clock.ahead == 0


@pytest.mark.criterion("L13", "M12")
def test_two_readers_of_one_outlet_count_a_thing_once(ledger: Ledger, clock: Clock):
    way = Way()
    first = posting(ledger, notifier("ops", way, cooldown="30m"))
    second = posting(ledger, notifier("ops", way, cooldown="30m"))
    capped(ledger, "a")
    first.once()
    reached = ledger.reached("ops")
    capped(ledger, "b")
    first.once()
    ledger.owe("ops", [], reached)  # the second reads the same again
    second.once()
    clock.minutes(31)
    second.once()
    first.once()
    assert [event["data"].get("count") for event in way.got] == [None, 1]


def test_a_crash_before_the_end_of_the_quiet_loses_nothing(ledger: Ledger, clock: Clock):
    way = Way()
    post = posting(ledger, notifier("ops", way, cooldown="30m"))
    capped(ledger, "a")
    capped(ledger, "b")
    post.once()
    del post
    clock.minutes(31)
    posting(ledger, notifier("ops", way))  # restarted, without any cooldown by now
    assert types(way) == ["failed", "more"]


def test_a_message_of_many_is_short_and_its_count_whole():
    body = None
    event = {
        "specversion": "1.0",
        "source": "urn:truegreen",
        "time": "t",
        "datacontenttype": "x",
        "data": {
            "item": None,
            "task": "tsk_1",
            "title": "<b>@all",
            "task_status": "failed",
            "cell": "cap_hit",
            "url": "",
            "topic": "cap_hit: @all",
        },
    }
    for _ in range(300):
        body = followups.folded("pst_1", body, msgspec.json.encode(event).decode())
    made = msgspec.json.decode(body or "")
    assert (made["data"]["count"], len(made["data"]["tasks"])) == (300, 20)
    said = "\n".join([headline(made), *body_lines(made)])
    assert "@" not in said
    assert "<" not in said
    assert "and 280 more" in said


# --- escalation


@pytest.mark.criterion("L12", "L13")
def test_what_nobody_takes_is_told_to_others_step_by_step_and_once(ledger: Ledger, clock: Clock):
    ops, pager, boss = Way(), Way(), Way()
    entry = notifier("ops", ops, escalate=steps(("30m", "pager"), ("2h", "boss")))
    others = [notifier("pager", pager, on=()), notifier("boss", boss, on=())]
    post = posting(ledger, entry, *others)
    task = failing(ledger)
    post.once()
    clock.minutes(29)
    post.once()
    assert (types(pager), types(boss)) == ([], [])
    clock.minutes(2)
    for _ in range(3):
        post.once()
    assert (types(pager), types(boss)) == (["escalated"], [])
    (event,) = pager.got
    assert (event["subject"], event["data"]["step"], event["data"]["first_told"]) == (
        task,
        1,
        "ops",
    )
    assert event["data"]["text"].startswith("nobody has taken it for 31m")
    clock.minutes(100)
    for _ in range(3):
        post.once()
    clock.minutes(10_000)
    post.once()
    assert (types(pager), types(boss)) == (["escalated"], ["escalated"])
    assert types(ops) == ["failed"]


@pytest.mark.criterion("L12", "M12")
def test_several_schedulers_and_a_restart_escalate_once(ledger: Ledger, clock: Clock):
    pager = Way()

    def made() -> Posting:
        entry = notifier("ops", Way(), escalate=steps(("30m", "pager")))
        return posting(ledger, entry, notifier("pager", pager, on=()))

    first, second = made(), made()
    failing(ledger)
    first.once()
    clock.minutes(31)
    (told,) = ledger.told_untaken("ops")
    owed = followups.escalated(told, 1, "ops", "")
    assert ledger.escalate("ops", told, {"pager": owed})
    assert not ledger.escalate("ops", told, {"pager": owed}), "somebody was quicker"
    for each in (first, second, made()):
        each.once()
    assert types(pager) == ["escalated"]


@pytest.mark.criterion("L13")
@pytest.mark.parametrize("what", ["ack", "resolve"])
def test_what_somebody_took_is_not_escalated(ledger: Ledger, clock: Clock, what: str):
    pager = Way()
    entry = notifier("ops", Way(), escalate=steps(("30m", "pager")))
    post = posting(ledger, entry, notifier("pager", pager, on=()))
    failing(ledger)
    post.once()
    clock.minutes(29)
    (waiting,) = ledger.inbox()
    if what == "ack":
        ledger.ack(waiting.item.id, actor=OPERATOR)
    else:
        ledger.resolve(waiting.item.id, outcome="seen", actor=OPERATOR)
    clock.minutes(600)
    post.once()
    assert pager.got == []


@pytest.mark.criterion("L13")
@pytest.mark.parametrize("what", ["ack", "snooze", "resolve"])
def test_who_takes_it_while_somebody_is_about_to_escalate_wins(
    ledger: Ledger, clock: Clock, what: str
):
    entry = notifier("ops", Way(), escalate=steps(("30m", "pager")))
    post = posting(ledger, entry)
    brought(ledger, TaskStatus.NEEDS_REVIEW)
    post.once()
    clock.minutes(31)
    (told,) = ledger.told_untaken("ops")
    more: dict[str, Any] = {"snooze": {"seconds": 60}, "resolve": {"outcome": "seen"}}
    getattr(ledger, what)(told.item.id, actor=OPERATOR, **more.get(what, {}))
    assert not ledger.escalate("ops", told, {"pager": followups.escalated(told, 1, "ops", "")})
    assert [each.outlet for each in ledger.posts()] == ["ops"]


@pytest.mark.criterion("L12")
def test_the_end_of_what_was_never_told_can_not_be_owed(ledger: Ledger):
    brought(ledger, TaskStatus.NEEDS_REVIEW)
    (waiting,) = ledger.inbox()
    told = Announced(waiting.item, waiting.task, "")
    assert not ledger.close_told("ops", waiting.item.key, followups.resolved(told, ""))
    assert ledger.posts() == []


@pytest.mark.criterion("L13")
def test_a_snooze_pauses_an_escalation(ledger: Ledger, clock: Clock):
    pager = Way()
    entry = notifier("ops", Way(), escalate=steps(("30m", "pager")))
    post = posting(ledger, entry, notifier("pager", pager, on=()))
    brought(ledger, TaskStatus.NEEDS_REVIEW)
    post.once()
    clock.minutes(20)
    (waiting,) = ledger.inbox()
    ledger.snooze(waiting.item.id, seconds=3600, actor=OPERATOR)
    for _ in range(2):
        clock.minutes(40)
        post.once()
        assert pager.got == []
    clock.minutes(12)  # half an hour after it came back
    post.once()
    assert types(pager) == ["escalated"]


@pytest.mark.criterion("L13")
def test_what_comes_back_after_somebody_took_it_waits_anew(ledger: Ledger, clock: Clock):
    pager = Way()
    entry = notifier("ops", Way(), escalate=steps(("30m", "pager")))
    post = posting(ledger, entry, notifier("pager", pager, on=()))
    failing(ledger)
    post.once()
    (waiting,) = ledger.inbox()
    ledger.ack(waiting.item.id, actor=OPERATOR)
    clock.minutes(300)
    failing(ledger)  # critical: it wakes up, whoever took it
    post.once()
    assert pager.got == [], "not at once, for it waits since now"
    clock.minutes(31)
    post.once()
    assert types(pager) == ["escalated"]


def test_an_escalation_names_an_outlet_that_is_there_and_comes_later():
    def read(step: str, more: str = "") -> None:
        settings(f'[[notify]]\nname = "ops"\ncommand = ["a"]\nescalate = {step}\n{more}')

    pager = '[[notify]]\nname = "pager"\ncommand = ["b"]\n'
    read('{ after = "30m", to = ["pager"] }', pager)
    read('[{ after = "30m", to = ["pager"] }, { after = "1h", to = ["pager"] }]', pager)
    bad = [
        ('{ after = "30m", to = ["pagr"] }', 'did you mean "pager"'),
        ('{ after = "30m", to = ["ops"] }', "expected one of pager"),
        ('{ after = "30m", to = [] }', "names nobody"),
        ('[{ after = "1h", to = ["pager"] }, { after = "30m", to = ["pager"] }]', "comes later"),
    ]
    for step, words in bad:
        with pytest.raises(InvalidInput, match=words):
            read(step, pager)


# --- the end


@pytest.mark.criterion("L12")
def test_the_end_is_told_where_the_beginning_was_and_pairs_with_it(ledger: Ledger, clock: Clock):
    ops, chat, pager = Way(), Way(), Way()
    post = posting(
        ledger,
        notifier("ops", ops, resolved=True, escalate=steps(("30m", "pager"))),
        notifier("chat", chat, resolved=True, on=("zombie",)),
        notifier("pager", pager, resolved=True, on=()),
    )
    failing(ledger)
    post.once()
    clock.minutes(31)
    for _ in range(2):
        post.once()
    (waiting,) = ledger.inbox()
    ledger.resolve(waiting.item.id, outcome="the test was wrong", actor=OPERATOR)
    for _ in range(3):
        post.once()
    assert (types(ops), types(pager)) == (["failed", "resolved"], ["escalated", "resolved"])
    assert chat.got == [], "never for what was not told"
    for first, last in (ops.got, pager.got):
        assert (first["subject"], first["dedupekey"]) == (last["subject"], last["dedupekey"])
    data = ops.got[-1]["data"]
    assert (data["by"], data["outcome"]) == (str(OPERATOR), "the test was wrong")
    assert data["text"].startswith("resolved: silent failure: ")
    assert data["text"].endswith("the test was wrong")


@pytest.mark.criterion("L12")
def test_what_is_over_by_itself_is_told_as_the_systems_own(ledger: Ledger):
    way = Way()
    post = posting(ledger, notifier("ops", way, resolved=True))
    task, _ = brought(ledger, TaskStatus.BLOCKED)
    post.once()
    ledger.unblock(task.id, reason="it may", actor=OPERATOR)
    post.once()
    assert types(way) == ["blocked", "resolved"]
    assert way.got[-1]["data"]["by"] == "truegreen"
    assert "unblock" in way.got[-1]["data"]["outcome"]


@pytest.mark.criterion("L12")
def test_the_end_of_what_never_arrived_is_not_told(ledger: Ledger, clock: Clock):
    way = Way(lambda _: Sent("gone", lasting=True))
    post = posting(ledger, notifier("ops", way, resolved=True))
    failing(ledger)
    post.once()
    (waiting,) = ledger.inbox()
    ledger.resolve(waiting.item.id, outcome="seen", actor=OPERATOR)
    way.behave = lambda _: ARRIVED
    clock.minutes(10)
    post.once()
    assert types(way) == ["failed"]
    ledger.post_again(ledger.posts()[0].id, actor=OPERATOR)
    post.once()
    assert types(way) == ["failed", "failed", "resolved"], "and it is, once that has arrived"


def test_the_end_of_what_was_folded_comes_after_it(ledger: Ledger, clock: Clock):
    way = Way()
    post = posting(ledger, notifier("ops", way, resolved=True, cooldown="30m"))
    capped(ledger, "a")
    capped(ledger, "b")
    post.once()
    for waiting in ledger.inbox():
        ledger.resolve(waiting.item.id, outcome="seen", actor=OPERATOR)
    post.once()
    assert types(way) == ["failed", "resolved"]
    clock.minutes(31)
    post.once()
    assert types(way) == ["failed", "resolved", "more", "resolved"]


@each_row(
    ("entry", "told"),
    [
        ({"webhook": "https://x"}, True),
        ({"url": "slack://x"}, True),
        ({"command": ("page",)}, False),
        ({"command": ("page",), "resolved": True}, True),
        ({"webhook": "https://x", "resolved": False}, False),
    ],
)
def test_programs_and_chats_are_told_the_end_unless_settings_say_otherwise(
    entry: dict[str, Any], *, told: bool
):
    assert Notify(**entry).tells_resolved is told


def test_a_failure_of_the_same_cause_that_comes_after_the_end_is_another(
    ledger: Ledger, clock: Clock
):
    way = Way()
    post = posting(ledger, notifier("ops", way, resolved=True))
    for _ in range(2):
        failing(ledger)
        post.once()
        (waiting,) = ledger.inbox()
        ledger.resolve(waiting.item.id, outcome="seen", actor=OPERATOR)
        post.once()
        clock.minutes(24 * 60)
    assert types(way) == ["failed", "resolved"] * 2
    assert len({event["dedupekey"] for event in way.got}) == 2


@pytest.mark.criterion("L13")
@pytest.mark.parametrize("cooldown", [{}, {"cooldown": "30m"}])
@pytest.mark.parametrize("late", [False, True])
def test_a_cause_that_comes_back_after_it_was_resolved_is_news_again(
    ledger: Ledger, clock: Clock, cooldown: dict[str, str], *, late: bool
):
    """In the same night, and while its topic is quiet; however late an outlet reads the history."""
    way, pager = Way(), Way()
    ops = notifier("ops", way, escalate=steps(("30m", "pager")), **cooldown)
    post = posting(ledger, ops, notifier("pager", pager, on=()))
    first = capped(ledger, "report")
    post.once()
    (before,) = ledger.inbox()
    again = capped(ledger, "report")
    assert ledger.task(first).contract_digest == ledger.task(again).contract_digest
    post.once()
    assert types(way) == ["failed"], "once a night"
    ledger.resolve(before.item.id, outcome="the cap is higher now", actor=OPERATOR)
    clock.minutes(1)
    for _ in range(2):
        capped(ledger, "report")
        if not late:
            post.once()
    post.once()
    (after,) = ledger.inbox()
    assert (after.item.id != before.item.id, after.item.times) == (True, 2)
    assert types(way) == ["failed", "failed"]
    assert [event["dedupekey"] for event in way.got] == [before.item.id, after.item.id]
    clock.minutes(31)
    post.once()
    assert [event["dedupekey"] for event in pager.got] == [after.item.id]


def test_a_task_that_is_opened_owes_nothing(ledger: Ledger):
    way = Way()
    post = posting(ledger, notifier("ops", way, resolved=True))
    ticket = started(ledger, opened(ledger).id)
    declared(ledger, ticket)
    post.once()
    assert way.got == []


# --- what holds the fleet back


@pytest.mark.criterion("L12")
def test_a_breaker_and_a_limit_are_told_to_whoever_wants_them_and_so_is_their_end(
    ledger: Ledger, clock: Clock
):
    breakers, limits, usual, other = Way(), Way(), Way(), Way()
    post = posting(
        ledger,
        notifier("breakers", breakers, on=("breaker",), resolved=True),
        notifier("limits", limits, on=("limit",), resolved=True),
        notifier("usual", usual),
        notifier("other", other, on=("silent_failure",)),
    )
    ledger.keep_terms("f", Breakers(), [Limit(per=Per.HOUR, runs=1, label="night")])
    for ticket in [started(ledger, agent="coder", command=("coder",)) for _ in range(5)]:
        ledger.end_run(ticket, ended(ExitDetail.SIGNALED, message="it broke"))
    ticket = started(ledger, labels=("night",))
    opened(ledger, labels=("night",))
    assert ledger.say_spent()
    post.once()
    assert [event["data"]["cell_title"] for event in breakers.got] == ["breaker"]
    assert "agent coder starts nothing for now" in breakers.got[0]["data"]["reason"]
    assert breakers.got[0]["data"]["next"].startswith("truegreen breakers close brk_")
    assert [event["data"]["next"] for event in limits.got] == ["truegreen limits"]
    told = {event["data"]["cell_title"] for event in usual.got}
    assert {"breaker", "limit"} <= told
    assert other.got == []
    ledger.end_run(ticket, ended())
    clock.minutes(61)
    ledger.close_breaker(ledger.breakers()[0].breaker.id, actor=OPERATOR, reason="mended")
    ledger.say_spent()
    post.once()
    for way in (breakers, limits):
        assert len({event["dedupekey"] for event in way.got}) == 1
        assert types(way)[-1] == "resolved"
