"""A person's no about a tree: the same gates on the same tree do not undo it, a person may."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.record.lives import (
    OPERATOR,
    REVIEWED,
    TREE,
    brought,
    declared,
    ended,
    finding,
    judged,
    started,
    verdict,
)
from tests.table import each_row
from truegreen.contract import Budget
from truegreen.errors import Refused
from truegreen.facts import Claim, Finding, Ticket
from truegreen.model import ClaimKind, FindingOutcome, Outcome, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.terms import QA_VERDICT
from truegreen.supervisor.examination import rejection

DATABASES = ("sqlite",)

S, F = TaskStatus, FindingOutcome
WHY = "ana rejected this very tree: it was wrong"


def rejected(ledger: Ledger, status: TaskStatus) -> str:
    """A task that a person said no to, queued again."""
    task, _ = brought(ledger, status, budget=Budget(attempts=5))
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="it was wrong")
    return task.id


def again(ledger: Ledger, task: str, digest: str = TREE) -> Ticket:
    """Another attempt, whose gate passes on what it left."""
    ticket = started(ledger, task)
    ledger.end_run(ticket, ended(digest=digest), claim=Claim(kind=ClaimKind.DONE, reason="done"))
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED, digest=digest)])
    return ticket


@pytest.mark.criterion("F28")
@pytest.mark.parametrize("status", [S.SUCCEEDED, S.NEEDS_REVIEW])
def test_checks_alone_make_no_green_of_a_tree_that_a_person_rejected(
    ledger: Ledger, status: TaskStatus
):
    ticket = again(ledger, rejected(ledger, status))
    with pytest.raises(Refused, match=WHY):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
    task = ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE, reason=WHY))
    assert (task.status, task.verdict) == (S.NEEDS_REVIEW, Outcome.INCONCLUSIVE)
    kept = [f.outcome for f in ledger.dossier(task.id).findings if f.kind == "run"]
    assert kept[-1] is F.PASSED, "what the gate found stays as it is"


def test_checking_it_again_while_it_waits_for_a_person_does_not_help_either(ledger: Ledger):
    ticket = again(ledger, rejected(ledger, S.SUCCEEDED))
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE))
    ticket = ledger.recheck(ticket.task, holder="test", actor=OPERATOR)
    with pytest.raises(Refused, match=WHY):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))


def test_a_person_may_still_accept_it(ledger: Ledger):
    ticket = again(ledger, rejected(ledger, S.SUCCEEDED))
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE))
    task = ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="I was wrong")
    assert (task.status, task.falsified) == (S.SUCCEEDED, True)


def test_another_tree_is_another_matter(ledger: Ledger):
    ticket = again(ledger, rejected(ledger, S.SUCCEEDED), "tree:mended")
    task = ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, digest="tree:mended"))
    assert task.status is S.SUCCEEDED


def test_a_tree_that_a_person_accepted_is_not_rejected(ledger: Ledger):
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    ledger.review(task.id, accept=True, actor=OPERATOR, reason="fine")
    ledger.retry(task.id, actor=OPERATOR, reason="once more")
    ticket = again(ledger, task.id)
    assert ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED)).status is S.SUCCEEDED


@each_row("other", [{"kind": "run"}, {"outcome": F.PASSED}, {"digest": "tree:else"}])
def test_the_supervisor_knows_a_persons_no_about_this_tree_and_nothing_else(other: dict[str, Any]):
    given: dict[str, Any] = {"kind": "person", "outcome": F.FAILED, "digest": TREE}
    made = partial(
        Finding, check="review", reason="it was wrong", contract_digest="", judge="operator:ana"
    )
    assert rejection([made(**given), made(**given | other)], TREE) == WHY
    assert rejection([made(**given | other)], TREE) == ""


def test_another_task_with_the_same_tree_is_another_matter(ledger: Ledger):
    rejected(ledger, S.SUCCEEDED)
    assert brought(ledger, S.SUCCEEDED)[0].status is S.SUCCEEDED


def test_a_gate_that_failed_in_an_earlier_run_is_no_person(ledger: Ledger):
    ticket = started(ledger, budget=Budget(attempts=5))
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    ticket = again(ledger, ticket.task)
    assert ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED)).status is S.SUCCEEDED


def test_no_qa_is_asked_about_a_tree_that_a_person_rejected(ledger: Ledger):
    task, _ = brought(ledger, S.NEEDS_REVIEW, role="coder", qa=REVIEWED)
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="it was wrong")
    ticket = again(ledger, task.id)
    with pytest.raises(Refused, match=WHY):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))


def test_a_qa_review_that_was_rejected_may_be_given_again_about_the_same_tree(ledger: Ledger):
    _, work = brought(ledger, S.PENDING_QA)
    assert work
    (review,) = [task for task in ledger.page().tasks if task.qa_of_key is not None]
    shown = {"evidence": [{"command": "make try", "saw": "it works"}]}
    opinion = finding(ledger, work, F.PASSED, check="qa", kind="qa", evidence=shown)
    for number in range(2):
        ticket = started(ledger, review.id)
        if not number:
            ledger.record_qa(ticket, opinion)
        declared(ledger, ticket)
        ledger.record(ticket, [finding(ledger, ticket, F.PASSED, check=QA_VERDICT, kind="qa")])
        done = ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
        assert done.status is S.SUCCEEDED
        ledger.review(review.id, accept=False, actor=OPERATOR, reason="look again")
