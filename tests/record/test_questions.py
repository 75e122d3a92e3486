"""An answer is for the question that was looked at: its event and its tree, and for no other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.record.lives import OPERATOR, TREE, S, agent_of, brought, declared, judged, started
from truegreen.contract import Budget
from truegreen.errors import IllegalMove, NotFound, Refused, Stale, Terminated
from truegreen.facts import Ticket
from truegreen.model import Mode, Outcome, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.ledger.answers import Asks, Question

DATABASES = ("sqlite",)

Answer = Callable[..., Any]
ANSWERS = ("approve", "deny")


def asked(ledger: Ledger, *actions: str, digest: str = TREE) -> tuple[Ticket, list[Question]]:
    """A run that has asked one thing after the other; all but the last were approved."""
    ticket = started(ledger, mode=Mode.ASSISTED)
    found: list[Question] = []
    for action in actions:
        if found:
            ledger.approve(ticket.task, actor=OPERATOR, question=found[-1].id)
        ledger.checkpoint(ticket, action, actor=agent_of(ticket), digest=digest)
        question = ledger.question(ticket.task)
        assert question
        found.append(question)
    return ticket, found


def undecided(ledger: Ledger, task: str | None = None) -> str:
    """A task whose checks could not decide."""
    ticket = started(ledger, task, budget=Budget(attempts=3))
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.INCONCLUSIVE)
    return ticket.task


def open_question(ledger: Ledger, task: str) -> Question:
    found = ledger.answerable(task)
    assert found
    return found


# --- approvals


@pytest.mark.criterion("D08")
@pytest.mark.parametrize("verb", ANSWERS)
@pytest.mark.parametrize("action", ["drop the database", "print the version"])
def test_the_next_question_on_the_same_tree_is_another_one(
    ledger: Ledger, verb: str, action: str
) -> None:
    ticket, (first, second) = asked(ledger, "print the version", action)
    assert first.digest == second.digest
    before = ledger.task(ticket.task)
    answer: Answer = getattr(ledger, verb)
    with pytest.raises(Stale, match="another question is open now; look again") as caught:
        answer(ticket.task, actor=OPERATOR, reason="ok", question=first.id, digest=TREE)
    details = caught.value.details
    assert (details["stale"], details["current"]) == ("question", second.id)
    assert ledger.task(ticket.task) == before
    answer(ticket.task, actor=OPERATOR, reason="ok", question=second.id, digest=TREE)


@pytest.mark.criterion("D08")
@pytest.mark.parametrize("verb", ANSWERS)
def test_the_right_question_with_another_tree_is_refused(ledger: Ledger, verb: str) -> None:
    ticket, (question,) = asked(ledger, "deploy")
    answer: Answer = getattr(ledger, verb)
    with pytest.raises(Stale) as caught:
        answer(ticket.task, actor=OPERATOR, reason="x", question=question.id, digest="")
    assert caught.value.details["stale"] == "digest"
    assert ledger.task(ticket.task).status is S.AWAITING_APPROVAL


@pytest.mark.parametrize("verb", ANSWERS)
def test_what_was_answered_is_answered_once(ledger: Ledger, verb: str) -> None:
    ticket, (question,) = asked(ledger, "deploy")
    ledger.approve(ticket.task, actor=OPERATOR, question=question.id, key="one")
    before = ledger.task(ticket.task)
    answer: Answer = getattr(ledger, verb)
    with pytest.raises(Stale, match=f"this was answered: {ticket.task} is running now"):
        answer(ticket.task, actor=OPERATOR, reason="x", question=question.id)
    again = ledger.approve(ticket.task, actor=OPERATOR, question=question.id, key="one")
    assert again == ledger.task(ticket.task) == before
    assert (ledger.was_done("one"), ledger.was_done("two"), ledger.was_done(None)) == (
        True,
        False,
        False,
    )


@pytest.mark.parametrize("verb", ANSWERS)
def test_a_sealed_task_says_so_whatever_the_question(ledger: Ledger, verb: str) -> None:
    ticket, (question,) = asked(ledger, "deploy")
    ledger.terminate(ticket.task, actor=OPERATOR)
    answer: Answer = getattr(ledger, verb)
    for given in (question.id, "evt_other"):
        with pytest.raises(Terminated):
            answer(ticket.task, actor=OPERATOR, reason="x", question=given)


@pytest.mark.criterion("D08", "D12")
def test_of_two_answers_at_once_one_counts_and_the_other_is_told(store_url: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        ledgers = [open_ledger(store_url) for _ in range(2)]
        try:
            for _ in range(5):
                _race(ledgers, pool)
        finally:
            for ledger in ledgers:
                ledger.close()


def _race(ledgers: list[Ledger], pool: ThreadPoolExecutor) -> None:
    ticket, (question,) = asked(ledgers[0], "deploy")

    def answer(which: int) -> Refused | None:
        act: Answer = getattr(ledgers[which], ANSWERS[which])
        try:
            act(ticket.task, actor=OPERATOR, reason="x", question=question.id, digest=TREE)
        except Refused as refused:
            return refused
        return None

    said = list(pool.map(answer, range(2)))
    (lost,) = [each for each in said if each is not None]
    assert isinstance(lost, Stale)
    assert lost.details["stale"] == "question"
    status = ledgers[0].task(ticket.task).status
    assert status is (S.RUNNING if said[0] is None else S.BLOCKED)


# --- reviews


@pytest.mark.criterion("D08", "F13")
@pytest.mark.parametrize("accept", [True, False])
def test_a_review_of_one_attempt_is_none_of_the_next(ledger: Ledger, *, accept: bool) -> None:
    task = undecided(ledger)
    first = open_question(ledger, task)
    ledger.retry(task, actor=OPERATOR, reason="again")
    undecided(ledger, task)
    second = open_question(ledger, task)
    assert first.digest == second.digest  # the tree alone would not tell them apart
    before = ledger.task(task)
    with pytest.raises(Stale, match="another question is open now"):
        ledger.review(task, accept=accept, actor=OPERATOR, reason="x", question=first.id)
    assert ledger.task(task) == before
    ledger.review(
        task, accept=accept, actor=OPERATOR, reason="x", question=second.id, digest=second.digest
    )
    assert ledger.task(task).status is (S.SUCCEEDED if accept else S.QUEUED)


def test_a_review_that_came_too_late_says_that_it_was_answered(ledger: Ledger) -> None:
    task = undecided(ledger)
    question = open_question(ledger, task)
    ledger.review(task, accept=False, actor=OPERATOR, reason="no", question=question.id)
    with pytest.raises(Stale, match="this was answered"):
        ledger.review(task, accept=True, actor=OPERATOR, reason="x", question=question.id)
    with pytest.raises(IllegalMove):
        ledger.review(task, accept=True, actor=OPERATOR, reason="x")


def test_a_sealed_task_is_reviewed_by_nobody(ledger: Ledger) -> None:
    task = undecided(ledger)
    ledger.terminate(task, actor=OPERATOR)
    with pytest.raises(Terminated):
        ledger.review(task, accept=True, actor=OPERATOR, reason="x", question="evt_any")


def test_what_was_accepted_is_overturned_only_as_it_was_accepted(ledger: Ledger) -> None:
    task = undecided(ledger)
    ledger.review(task, accept=True, actor=OPERATOR, reason="fine")
    first = open_question(ledger, task)
    assert first.kind is Asks.OVERTURN
    ledger.review(task, accept=False, actor=OPERATOR, reason="no", question=first.id)
    undecided(ledger, task)
    ledger.review(task, accept=True, actor=OPERATOR, reason="fine now")
    with pytest.raises(Stale):
        ledger.review(task, accept=False, actor=OPERATOR, reason="no", question=first.id)
    assert ledger.task(task).status is S.SUCCEEDED


# --- what is shown


def test_a_task_shows_what_can_be_answered_where_it_stands(ledger: Ledger) -> None:
    kinds: dict[TaskStatus, Asks | None] = {}
    for status in TaskStatus:
        task, _ = brought(ledger, status)
        found = ledger.dossier(task.id).question
        assert found == ledger.answerable(task.id)
        arrived = [t.event for t in ledger.events(task.id) if t.event.to_status is status]
        assert not found or (found.id, found.at) == (arrived[-1].id, arrived[-1].at)
        kinds[status] = found.kind if found else None
    assert {status: kind for status, kind in kinds.items() if kind} == {
        S.AWAITING_APPROVAL: Asks.APPROVAL,
        S.PENDING_EVAL: Asks.REVIEW,
        S.FAILED_PENDING_EVAL: Asks.REVIEW,
        S.PENDING_QA: Asks.REVIEW,
        S.NEEDS_REVIEW: Asks.REVIEW,
        S.SUCCEEDED: Asks.OVERTURN,
    }
    with pytest.raises(NotFound):
        ledger.answerable("tsk_nowhere")


@pytest.mark.criterion("L03")
def test_what_waits_shows_its_question_until_it_is_answered(ledger: Ledger) -> None:
    ticket, (question,) = asked(ledger, "deploy")
    (waiting,) = ledger.inbox()
    assert waiting.question == question
    assert ledger.inbox_of(waiting.item.task_key) == [waiting]
    ledger.approve(ticket.task, actor=OPERATOR)
    ledger.checkpoint(ticket, "deploy", actor=agent_of(ticket), digest=TREE)
    old, new = ledger.inbox_item(waiting.item.id), ledger.inbox()[0]
    assert (old.question, new.question) == (None, ledger.question(ticket.task))
    assert new.item.id != old.item.id


def test_what_waits_about_an_earlier_run_has_no_question_of_a_later_one(ledger: Ledger) -> None:
    tickets = [started(ledger, budget=Budget(attempts=1)) for _ in range(2)]
    for ticket in tickets:  # a failure that others share stays open when one of them moves on
        declared(ledger, ticket)
        judged(ledger, ticket, Outcome.FAILED)
    (failure,), task = ledger.inbox(), tickets[-1].task
    ledger.retry(task, actor=OPERATOR, reason="again", more_attempts=1)
    undecided(ledger, task)
    found = {each.item.id: each for each in ledger.inbox() if each.task == task}
    assert found.pop(failure.item.id).question is None
    (review,) = found.values()
    assert review.question == ledger.answerable(task)
