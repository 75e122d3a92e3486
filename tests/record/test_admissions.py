"""A failure that the agent itself reported: derived from the record, on both databases."""

from __future__ import annotations

import msgspec
import pytest

from tests.record.lives import declared, ended, judged, started
from truegreen.contract import Budget
from truegreen.errors import InvalidInput
from truegreen.facts import Claim, Ticket
from truegreen.model import (
    Cell,
    ClaimKind,
    ExitDetail,
    Outcome,
    RunStatus,
    Severity,
    TaskStatus,
)
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.lists import Filter

DATABASES = ("sqlite",)

ONCE = Budget(attempts=1)
ADMITTED = "I could not complete the task."
DONE = Claim(kind=ClaimKind.DONE, reason="see below")


def admitted(ledger: Ledger, detail: ExitDetail = ExitDetail.COMPLETED, **more: str) -> Ticket:
    """A run whose agent admitted in its last words that the work is not done."""
    ticket = started(ledger, budget=ONCE, **more)
    claim = DONE if detail is ExitDetail.COMPLETED else None
    ledger.end_run(ticket, ended(detail, admission=ADMITTED), claim=claim)
    return ticket


def cells(ledger: Ledger, ticket: Ticket) -> tuple[Cell | None, Cell | None]:
    return ledger.task(ticket.task).cell, ledger.run(ticket.run)[0].cell


def test_an_admission_makes_a_failed_verdict_a_reported_failure(ledger: Ledger) -> None:
    ticket = admitted(ledger, title="nightly")
    task = judged(ledger, ticket, Outcome.FAILED)
    assert (task.status, task.verdict) == (TaskStatus.FAILED, Outcome.FAILED)
    assert cells(ledger, ticket) == (Cell.REPORTED_FAILURE, Cell.REPORTED_FAILURE)
    assert ledger.run(ticket.run)[0].admission == ADMITTED
    (waiting,) = ledger.inbox()
    assert (waiting.item.cell, waiting.item.severity) == (Cell.REPORTED_FAILURE, Severity.HIGH)
    assert waiting.item.topic.startswith("reported_failure: gate tests")
    (event,) = [e.event for e in ledger.events(ticket.task) if e.event.event == "declare"]
    assert msgspec.json.decode(event.data)["admission"] == ADMITTED


def test_without_a_word_of_failure_it_stays_silent(ledger: Ledger) -> None:
    ticket = started(ledger, budget=ONCE)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    assert cells(ledger, ticket) == (Cell.SILENT_FAILURE, Cell.SILENT_FAILURE)
    assert ledger.run(ticket.run)[0].admission == ""


def test_an_agent_that_declares_failure_has_reported_it(ledger: Ledger) -> None:
    ticket = started(ledger, budget=ONCE)
    ledger.end_run(ticket, ended(), claim=Claim(kind=ClaimKind.FAILED, reason="no access"))
    task = ledger.task(ticket.task)
    assert (task.status, task.exit_detail) == (TaskStatus.FAILED, ExitDetail.DECLARED_FAILURE)
    assert cells(ledger, ticket) == (Cell.REPORTED_FAILURE, Cell.REPORTED_FAILURE)
    (waiting,) = ledger.inbox()
    assert waiting.item.severity is Severity.HIGH


def test_a_failure_that_is_settled_later_is_a_reported_one_too(ledger: Ledger) -> None:
    ticket = started(ledger, budget=ONCE)
    claim = Claim(kind=ClaimKind.FAILED, reason="no access")
    ledger.end_run(ticket, ended(), claim=claim, move=False)
    ledger.settle(ticket)
    assert cells(ledger, ticket) == (Cell.REPORTED_FAILURE, Cell.REPORTED_FAILURE)


def test_an_admission_without_a_claim_counts(ledger: Ledger) -> None:
    ticket = admitted(ledger, ExitDetail.UNCLAIMED)
    assert ledger.run(ticket.run)[0].status is RunStatus.EXITED
    judged(ledger, ticket, Outcome.FAILED)
    assert cells(ledger, ticket)[0] is Cell.REPORTED_FAILURE


@pytest.mark.parametrize(
    ("outcome", "cell"),
    [(Outcome.INCONCLUSIVE, Cell.UNDECIDED), (Outcome.UNKNOWN, Cell.UNVERIFIED)],
)
def test_an_admission_changes_no_other_verdict(
    ledger: Ledger, outcome: Outcome, cell: Cell
) -> None:
    ticket = admitted(ledger)
    assert judged(ledger, ticket, outcome).status is TaskStatus.NEEDS_REVIEW
    assert cells(ledger, ticket) == (cell, cell)


def test_an_admission_of_a_crashed_run_changes_nothing(ledger: Ledger) -> None:
    ticket = admitted(ledger, ExitDetail.AGENT_ERROR)
    judged(ledger, ticket, Outcome.FAILED)
    assert cells(ledger, ticket)[0] is Cell.FAILED


def test_the_next_attempt_is_judged_by_its_own_words(ledger: Ledger) -> None:
    ticket = started(ledger, budget=Budget(attempts=2))
    ledger.end_run(ticket, ended(admission=ADMITTED), claim=DONE)
    judged(ledger, ticket, Outcome.FAILED)
    again = started(ledger, ticket.task)
    declared(ledger, again)
    judged(ledger, again, Outcome.FAILED)
    assert ledger.run(ticket.run)[0].cell is Cell.REPORTED_FAILURE
    assert cells(ledger, again) == (Cell.SILENT_FAILURE, Cell.SILENT_FAILURE)


def test_lists_know_the_cell_and_silent_failures_come_first(ledger: Ledger) -> None:
    silent = started(ledger, budget=ONCE)
    declared(ledger, silent)
    judged(ledger, silent, Outcome.FAILED)
    ticket = admitted(ledger)
    judged(ledger, ticket, Outcome.FAILED)
    assert [task.id for task in ledger.page(Filter()).tasks] == [silent.task, ticket.task]
    found = ledger.page(Filter(cell=Cell.REPORTED_FAILURE)).tasks
    assert [task.id for task in found] == [ticket.task]
    counts = {count.cell: count.tasks for count in ledger.counts() if count.cell}
    assert counts == {Cell.SILENT_FAILURE: 1, Cell.REPORTED_FAILURE: 1}


def test_an_admission_has_a_bound(ledger: Ledger) -> None:
    ticket = started(ledger)
    with pytest.raises(InvalidInput, match="admission"):
        ledger.end_run(ticket, ended(admission="x" * 100_000), claim=DONE)
