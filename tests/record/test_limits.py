"""Limits over everybody: what all may spend together, per day or hour, agent and label."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import OPERATOR, S, contract, declared, ended, finding, judged, started
from tests.record.timing import SECOND, Clock
from tests.table import each_row
from truegreen.contract import Breakers, Limit, Per
from truegreen.errors import Held, InvalidInput
from truegreen.facts import Usage
from truegreen.model import ExitDetail, FindingOutcome, Outcome
from truegreen.record.holds import Hold
from truegreen.record.ledger import Ledger, Start, open_ledger

if TYPE_CHECKING:
    from truegreen.facts import Ticket
    from truegreen.record.rows import Task

DAY = 86400
HERE = "/settings/truegreen.toml"


def limited(ledger: Ledger, *limits: Limit) -> None:
    ledger.keep_terms(HERE, Breakers(), limits)


def task(ledger: Ledger, who: str = "coder", **terms: Any) -> Task:
    return ledger.open(contract(agent=who, command=(who,), **terms), actor=OPERATOR)


def spend(ledger: Ledger, ticket: Ticket, usd: float, tokens: int = 0) -> Task:
    """A run that ends well and has cost so much."""
    usage = Usage(cost_usd=usd, tokens=tokens)
    ledger.end_run(ticket, ended(usage=usage))
    return judged(ledger, ticket, Outcome.PASSED)


def spent(ledger: Ledger, usd: float, who: str = "coder", tokens: int = 0, **terms: Any) -> Task:
    return spend(ledger, started(ledger, task(ledger, who, **terms).id), usd, tokens)


def held(ledger: Ledger, task_id: str) -> Hold | None:
    return ledger.why(task_id).hold


@pytest.mark.criterion("I11", "I14")
@pytest.mark.parametrize(
    "limit",
    [
        Limit(per=Per.DAY, cost_usd=2.0),
        Limit(per=Per.HOUR, tokens=2000),
        Limit(per=Per.DAY, runs=2),
        Limit(per=Per.DAY, agent="coder", cost_usd=2.0),
        Limit(per=Per.DAY, label="night", cost_usd=2.0),
        Limit(per=Per.HOUR, agent="coder", label="night", runs=2),
    ],
    ids=["dollars", "tokens", "runs", "agent", "label", "agent and label"],
)
def test_what_is_spent_holds_back_what_the_limit_is_about(ledger: Ledger, limit: Limit):
    limited(ledger, limit)
    waiting = task(ledger, labels=("night", "x"))
    others = [task(ledger, "writer"), task(ledger, labels=("nights",))]
    for _ in range(2):
        assert held(ledger, waiting.id) is None
        spent(ledger, 1.0, tokens=1000, labels=("night",))
    before = ledger.task(waiting.id)
    assert held(ledger, waiting.id) is Hold.SPENT
    with pytest.raises(Held):
        started(ledger, waiting.id)
    assert ledger.task(waiting.id) == before
    about = [not limit.agent and not limit.label, not limit.label]
    assert [held(ledger, each.id) is Hold.SPENT for each in others] == about


@pytest.mark.criterion("I11")
def test_a_new_day_and_a_new_hour_begin_anew(timed: Ledger, clock: Clock):
    clock.now -= clock.now % (DAY * SECOND) - 36_000 * SECOND  # ten in the morning
    limited(timed, Limit(per=Per.DAY, cost_usd=1.0), Limit(per=Per.HOUR, runs=1))
    waiting = task(timed)
    spent(timed, 0.5)
    why = timed.why(waiting.id)
    assert why.limit is not None
    assert (why.limit.full, why.limit.until % (3600 * SECOND)) == ("runs", 0)
    clock.now = why.limit.until
    assert held(timed, waiting.id) is None
    spent(timed, 0.5)
    clock.pass_(3600)
    why = timed.why(waiting.id)
    assert why.limit is not None
    assert (why.hold, why.limit.full) == (Hold.SPENT, "cost_usd")
    clock.now = why.limit.until
    assert clock.now % (DAY * SECOND) == 0
    assert held(timed, waiting.id) is None


@pytest.mark.criterion("I11")
def test_what_evaluators_used_counts_and_what_they_used_at_stops_counts_once(ledger: Ledger):
    limited(ledger, Limit(per=Per.DAY, cost_usd=5.0, tokens=1000))
    ticket = started(ledger, task(ledger).id)
    asked = {"asked": {"judge": {"tokens": 10, "cost_usd": 0.25}}}
    ledger.end_run(ticket, ended(usage=Usage(cost_usd=1.0, tokens=100), facts=asked))
    evidence = {
        "usage": {"tokens": 30, "cost_usd": 0.75},
        "at_stops": {"tokens": 10, "cost_usd": 0.25},
    }
    answer = finding(
        ledger,
        ticket,
        FindingOutcome.PASSED,
        check="judge",
        kind="evaluator",
        judge="judge:x",
        evidence=evidence,
    )
    ledger.record(ticket, [answer])
    [used] = ledger.limits()
    assert (used.cost, used.tokens, used.runs) == (1_750_000, 130, 1)


def test_what_a_terminated_run_used_counts_once_it_is_known(ledger: Ledger):
    limited(ledger, Limit(per=Per.DAY, cost_usd=5.0))
    ticket = started(ledger, task(ledger).id)
    ledger.terminate(ticket.task, actor=OPERATOR)
    assert ledger.limits()[0].cost == 0
    for _ in range(2):
        ledger.tell(ticket, {"usage": {"cost_usd": 1.5, "tokens": 5}})
        assert ledger.limits()[0].cost == 1_500_000


def test_a_run_gets_no_more_than_limits_leave(ledger: Ledger):
    limited(ledger, Limit(per=Per.DAY, cost_usd=5.0), Limit(per=Per.HOUR, tokens=1000))
    waiting = task(ledger)
    spent(ledger, 2.0, tokens=100)
    assert ledger.leeway(waiting.id) == (3.0, 900)
    under_way = task(ledger)
    ledger.start(under_way.id, Start("x", cost_usd=1.0, tokens=500))
    assert ledger.leeway(waiting.id) == (2.0, 400)
    with pytest.raises(Held):
        ledger.start(waiting.id, Start("x", cost_usd=2.5, tokens=1))
    ledger.start(waiting.id, Start("x", cost_usd=2.0, tokens=1))
    [day, hour] = ledger.limits()
    assert (day.set_aside, day.full, hour.full) == (3_000_000, "cost_usd", "")


def test_without_a_limit_nothing_is_cut(ledger: Ledger):
    assert ledger.leeway(task(ledger).id) == (None, None)


RACERS = 8


@pytest.mark.criterion("I11", "I15")
def test_of_many_who_want_the_last_dollar_one_gets_it(ledger: Ledger, store_url: str):
    limited(ledger, Limit(per=Per.DAY, cost_usd=3.0))
    spent(ledger, 2.0)
    tasks = [task(ledger) for _ in range(RACERS)]
    barrier = threading.Barrier(RACERS)
    ledgers = [open_ledger(store_url) for _ in range(RACERS)]

    def race(mine: Ledger, wanted: str) -> bool:
        barrier.wait()
        try:
            mine.start(wanted, Start("racer", cost_usd=1.0))
        except Held:
            return False
        return True

    with ThreadPoolExecutor(RACERS) as pool:
        won = list(pool.map(race, ledgers, [each.id for each in tasks]))
    for each in ledgers:
        each.close()
    assert sum(won) == 1
    states = [ledger.task(each.id) for each in tasks]
    assert [each.status for each in states].count(S.RUNNING) == 1
    assert {each.attempts for each in states} == {0}


def test_a_batch_stops_where_the_limit_is_full(ledger: Ledger):
    limited(ledger, Limit(per=Per.HOUR, runs=3))
    for _ in range(6):
        task(ledger)
    assert len(ledger.claim_next(Start("x"), limit=6)) == 3
    assert ledger.claim_next(Start("x"), limit=6) == []


def test_a_batch_takes_one_of_each_lane(ledger: Ledger):
    for lane in ("a", "a", "b"):
        task(ledger, lane=lane)
    assert len(ledger.claim_next(Start("x"), limit=6)) == 2


@pytest.mark.criterion("I17", "I20")
def test_a_limit_that_holds_tasks_back_is_said_once_until_there_is_room(
    timed: Ledger, clock: Clock
):
    limited(timed, Limit(per=Per.HOUR, runs=2))
    for _ in range(2):
        spent(timed, 0.1)
    assert timed.say_spent() == []  # nobody waits for it
    task(timed)
    assert len(timed.say_spent()) == 1
    assert timed.say_spent() == []
    [item] = [each.item for each in timed.inbox()]
    assert (item.cell, item.next) == ("limit", "truegreen limits")
    assert "2 of 2 runs" in item.reason
    clock.pass_(3600)
    timed.say_spent()
    assert timed.inbox() == []


def test_a_file_says_what_holds_and_takes_it_back(ledger: Ledger):
    limited(ledger, Limit(per=Per.DAY, cost_usd=5.0), Limit(per=Per.DAY, label="x", runs=1))
    ledger.keep_terms("/other.toml", Breakers(), [Limit(per=Per.DAY, runs=7)])
    first = ledger.limits()
    limited(ledger, Limit(per=Per.DAY, cost_usd=6.0))
    now = ledger.limits()
    assert [(each.row.file, each.row.cost, each.row.runs) for each in now] == [
        (HERE, 6_000_000, None),
        ("/other.toml", None, 7),
    ]
    assert now[0].row.id == first[0].row.id
    events = len(ledger.house_events())
    limited(ledger, Limit(per=Per.DAY, cost_usd=6.0))
    assert len(ledger.house_events()) == events  # nothing changed, nothing is said


@each_row(
    "bad",
    [
        {"per": "day"},
        {"per": "week", "runs": 1},
        {"per": "day", "runs": 0},
        {"per": "day", "cost_usd": 0},
        {"per": "day", "cost_usd": float("nan")},
        {"per": "day", "tokens": -1},
        {"per": "day", "runs": 1, "agent": "no name"},
    ],
)
def test_a_limit_that_limits_nothing_is_refused(bad: dict[str, Any]):
    with pytest.raises(InvalidInput):
        Limit(**bad)


def test_a_crash_costs_what_it_used(ledger: Ledger):
    limited(ledger, Limit(per=Per.DAY, cost_usd=5.0))
    ticket = started(ledger, task(ledger).id)
    ledger.end_run(ticket, ended(ExitDetail.SIGNALED, usage=Usage(cost_usd=1.0)))
    declared(ledger, started(ledger, ticket.task))
    assert ledger.limits()[0].cost == 1_000_000
