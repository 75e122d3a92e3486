"""One ceiling over all budgets: the worst that agents, checks and reviewers can do together."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import NamedTuple

import pytest

from tests.record.lives import REVIEWED, S, declared, ended, judged, opened, started
from truegreen.contract import Budget as Budgets
from truegreen.errors import BudgetSpent
from truegreen.model import PARENT, RESCUABLE, ExitDetail, ExitReason, Move, Outcome
from truegreen.record.ledger import Ledger
from truegreen.record.lifecycle import Budget, Judged, Policy, Step, after_exit, after_verdict

ALL = Policy(frozenset(map(str, RESCUABLE)), frozenset(map(str, (*ExitReason, *ExitDetail))), True)
"""Everything is rescued, retried and reviewed that a contract can ask for."""


class Spent(NamedTuple):
    """What a task has set in motion."""

    runs: int
    reviews: int


def ceiling(budget: Budget) -> Spent:
    """Each run is paid for by an attempt or a deferral; each review that fails by an attempt too.

    The last review may pass, and then it is the end.
    """
    return Spent(
        budget.attempts_max + budget.deferrals_max,
        min(budget.qa_rounds_max, budget.attempts_max) or 1,
    )


def paid(budget: Budget, step: Step) -> Budget:
    return budget._replace(**{each.value: getattr(budget, each) + 1 for each in step.charges})


@cache
def worst(budget: Budget) -> Spent:
    """The most that can come of a queued task, over every way in which its run can end."""
    most = Spent(1, 0)
    for detail in ExitDetail:
        step = after_exit(PARENT[detail], detail, ALL, budget)
        if step.move is Move.RETRY:
            most = _more(most, worst(paid(budget, step)))
        elif step.move in (Move.DECLARE, Move.FALL_SILENT):
            status = S.PENDING_EVAL if step.move is Move.DECLARE else S.FAILED_PENDING_EVAL
            most = _more(most, _after_checks(budget, Judged(status, PARENT[detail], detail, True)))
    return most


def _more(one: Spent, later: Spent) -> Spent:
    return Spent(max(one.runs, 1 + later.runs), max(one.reviews, later.reviews))


def _after_checks(budget: Budget, judged_: Judged, reviews: int = 0) -> Spent:
    """What may follow a run's checks; a reviewer is asked, and may send the task back."""
    most = Spent(0, reviews)
    for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE):
        step = after_verdict(outcome, judged_, ALL, budget)
        found = Spent(0, reviews)
        if step.move is Move.RETRY:
            later = worst(paid(budget, step))
            found = Spent(later.runs, later.reviews + reviews)
        elif step.move is Move.CHAIN:
            found = _after_checks(budget, judged_._replace(status=S.PENDING_QA), reviews + 1)
        most = Spent(max(most.runs, found.runs), max(most.reviews, found.reviews))
    return most


@pytest.mark.criterion("I12")
def test_no_way_through_the_edges_costs_more_than_the_ceiling():
    """Every ending of every run, every verdict, every review, for budgets of many sizes."""
    for attempts, deferrals, rounds in product((1, 2, 3), (0, 1, 3), (1, 2, 3)):
        budget = Budget(0, attempts, 0, deferrals, 0, rounds)
        assert worst(budget) == ceiling(budget), budget


@pytest.mark.criterion("I12")
def test_the_defaults_come_to_numbers_that_are_published():
    default = Budgets()
    most = ceiling(Budget(0, default.attempts, 0, default.deferrals, 0, default.qa_rounds))
    assert most == (6, 2)
    stints = most.runs * (1 + default.reentries)
    asked = most.runs * (1 + default.check_errors)
    reviewing = most.reviews * most.runs  # a review is a task with the same budget
    assert (stints, asked, reviewing) == (36, 18, 12)


@pytest.mark.criterion("I12")
def test_the_ledger_lets_nobody_through_the_ceiling(ledger: Ledger):
    """The worst way, walked: every deferral, then every attempt, each run with every re-entry."""
    task = opened(ledger, role="coder", qa=REVIEWED)
    runs = reentries = 0
    while ledger.task(task.id).status is S.QUEUED:
        ticket = started(ledger, task.id)
        runs += 1
        while True:
            try:
                ledger.charge(ticket, "reentries", limit=10**6)
            except BudgetSpent:
                break
            reentries += 1
        if ledger.task(task.id).deferrals < Budgets().deferrals:
            ledger.end_run(ticket, ended(ExitDetail.RATE_LIMITED))
        else:
            declared(ledger, ticket)
            judged(ledger, ticket, Outcome.FAILED)
    assert (runs, reentries, ledger.task(task.id).status) == (6, 30, S.FAILED)
