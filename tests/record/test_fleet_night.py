"""The night of 319 retries over a whole fleet: forty tasks whose provider refuses them all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.record.lives import OPERATOR, S, contract, ended, judged
from tests.record.timing import SECOND, Clock
from truegreen.contract import Breakers, BreakerTerms, Budget, Duration, OutageTerms
from truegreen.model import ExitDetail, Outcome
from truegreen.record.ledger import Filter, Ledger, Start, open_ledger
from truegreen.record.ledger.breaking import Kind, Terms, pause_of, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TASKS, WORKERS, SEATS = 40, 3, 2
NIGHT = 10 * 3600 * SECOND


def probes_in(length: int, terms: Terms) -> int:
    """How many tasks try in vain while a breaker stays open for so long."""
    tries, at = 0, 0
    while (at := at + pause_of(terms, tries)) <= length:
        tries += 1
    return tries


def most_runs(length: int, terms: Terms) -> int:
    """What a fleet can start in vain at most: what is under way when it opens, and the probes.

    Whoever has but one seat lets four tasks use up their attempts before the fifth opens it.
    """
    wave = max(WORKERS * SEATS, (terms.after - 1) * Budget().attempts + 1)
    return wave + probes_in(length, terms)


def fleet_of(ledger: Ledger) -> list[str]:
    """Forty tasks of two definitions that think with the same provider."""
    terms = [contract(command=(f"agent-{n % 2}",), adapter="codex") for n in range(TASKS)]
    return [ledger.open(each, actor=OPERATOR).id for each in terms]


def refused(ledgers: list[Ledger], pass_: Callable[[], bool]) -> int:
    """Every seat of every worker takes what it can get, until time is up; says how many runs."""
    runs = 0
    while pass_():
        taken = [
            (each, ticket)
            for each in ledgers
            for ticket in each.claim_next(Start("x"), limit=SEATS)
        ]
        for each, ticket in taken:
            each.end_run(ticket, ended(ExitDetail.PROVIDER_ERROR, message="overloaded"))
        runs += len(taken)
    return runs


def worked(ledgers: list[Ledger], pass_: Callable[[], bool]) -> None:
    """The provider is back."""
    while pass_():
        for each in ledgers:
            for ticket in each.claim_next(Start("x", base_digest="tree:base"), limit=SEATS):
                each.end_run(ticket, ended())
                judged(each, ticket, Outcome.PASSED)


@pytest.mark.criterion("I03", "H12", "I10", "I13", "I14")
def test_a_night_of_refusals_starts_a_handful_of_runs_and_the_morning_finishes_all(
    tmp_path: Path,
):
    clock = Clock()
    url = f"sqlite://{tmp_path}/night.db"
    ledgers = [open_ledger(url, clock=clock) for _ in range(WORKERS)]
    tasks = fleet_of(ledgers[0])
    dusk = clock.now

    def until(instant: int) -> Callable[[], bool]:
        def passed() -> bool:
            clock.pass_(10)
            return clock.now < instant

        return passed

    runs = refused(ledgers, until(dusk + NIGHT))
    terms = terms_of(Breakers())[Kind.PROVIDER]
    assert runs == WORKERS * SEATS + probes_in(NIGHT, terms) == 20
    assert runs <= most_runs(NIGHT, terms) == 27
    assert [each.item.cell for each in ledgers[0].inbox()] == ["breaker"]
    found = [ledgers[0].task(each) for each in tasks]
    assert {each.status for each in found} == {S.QUEUED}
    assert max(each.attempts for each in found) == 1  # all took turns; nobody's budget is burnt
    worked(ledgers, until(clock.now + int(terms.most) + 600 * SECOND))
    assert {ledgers[0].task(each).status for each in tasks} == {S.SUCCEEDED}
    assert ledgers[0].inbox() == []
    for each in ledgers:
        each.close()


@pytest.mark.criterion("I03", "H12")
def test_a_short_night_on_a_server_ends_alike(postgres_url: str):
    """A server tells its own time: seconds for minutes."""
    second = Duration(SECOND)
    short = BreakerTerms(pause=second, most=Duration(2 * SECOND))
    ledgers = [open_ledger(postgres_url) for _ in range(WORKERS)]
    terms = Breakers(provider=short, fleet=OutageTerms(pause=second))
    ledgers[0].keep_terms("test", terms, ())
    tasks = fleet_of(ledgers[0])

    def during(seconds: float) -> Callable[[], bool]:
        end = time.monotonic() + seconds

        def passed() -> bool:
            time.sleep(0.05)
            return time.monotonic() < end

        return passed

    runs = refused(ledgers, during(6))
    assert runs <= most_runs(6 * SECOND, terms_of(terms)[Kind.PROVIDER])
    assert [each.item.cell for each in ledgers[0].inbox()] == ["breaker"]
    morning = during(60)
    worked(ledgers, lambda: morning() and bool(ledgers[0].page(Filter((S.QUEUED,))).tasks))
    assert {ledgers[0].task(each).status for each in tasks} == {S.SUCCEEDED}
    assert ledgers[0].inbox() == []
    for each in ledgers:
        each.close()


def test_without_breakers_the_same_night_would_burn_every_budget(tmp_path: Path):
    """The control: what the breakers stand against."""
    clock = Clock()
    ledger = open_ledger(f"sqlite://{tmp_path}/night.db", clock=clock)
    tasks = fleet_of(ledger)
    runs = 0
    for _ in range(TASKS * Budget().attempts * 2):
        clock.pass_(10)
        for each in ledger.breakers():
            if each.breaker.closed_at is None:
                ledger.close_breaker(each.breaker.id, actor=OPERATOR, reason="control")
        for ticket in ledger.claim_next(Start("x"), limit=SEATS):
            ledger.end_run(ticket, ended(ExitDetail.PROVIDER_ERROR))
            runs += 1
    assert runs == TASKS * Budget().attempts == 120
    assert {ledger.task(each).status for each in tasks} == {S.FAILED}
    ledger.close()
