"""The QA chain: no role in the QA set becomes green without another agent's structured verdict."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.record.lives import (
    BASE,
    OPERATOR,
    S,
    agent_of,
    brought,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
    verdict,
)
from tests.record.raw_sql import raw_sql
from truegreen.contract import AgentDefinition, Budget, QaTerms, read_contract
from truegreen.errors import Forbidden, InvalidInput, KeyReused, Refused, Stale
from truegreen.facts import Actor, Finding, Ticket
from truegreen.model import (
    CELLS,
    Cell,
    ExitDetail,
    FindingOutcome,
    Light,
    Move,
    Outcome,
    Phase,
    Role,
    TaskStatus,
)
from truegreen.record import doctor
from truegreen.record.ledger import Ledger, Start
from truegreen.record.ledger.terms import QA_VERDICT
from truegreen.record.rows import Task

DATABASES = ("sqlite",)

D, F = ExitDetail, FindingOutcome
PROOF = {"evidence": [{"command": "pytest -q", "exit_code": 0}]}


REVIEWER = AgentDefinition(command=("review", "it"), adapter="codex", network=False)


def coder(**terms: Any) -> dict[str, Any]:
    qa = QaTerms(roles=("coder",), agent="reviewer", definition=REVIEWER)
    return {"role": "coder", "qa": qa, **terms}


def reviews(ledger: Ledger, task: Task) -> list[Task]:
    found = ledger.page(limit=1000).tasks
    return [each for each in found if each.qa_of_key == task.key]


def chained(ledger: Ledger, agent: str | None = None, **terms: Any) -> tuple[Task, Ticket]:
    """A task in pending_qa and the ticket of its run."""
    ticket = started(ledger, agent_id=agent, **coder(**terms))
    declared(ledger, ticket)
    return judged(ledger, ticket, Outcome.PASSED), ticket


def opinion(ledger: Ledger, ticket: Ticket, outcome: FindingOutcome, **more: Any) -> Finding:
    """What a QA agent says about the run of the original task."""
    more.setdefault("evidence", PROOF)
    return finding(ledger, ticket, outcome, check="qa", kind="qa", reason="I looked", **more)


def under_review(ledger: Ledger, task: Task, agent: str | None = None) -> Ticket:
    """The QA task's run."""
    (qa,) = [each for each in reviews(ledger, task) if each.settled_at is None]
    return ledger.start(qa.id, Start("qa", agent=agent, base_digest=BASE))


@pytest.mark.criterion("J01", "J06", "C04")
@pytest.mark.parametrize("detail", [D.COMPLETED, D.NOOP, D.UNCLAIMED, D.TURN_CAP])
def test_passing_the_checks_opens_one_review_in_the_same_transaction(
    ledger: Ledger, detail: ExitDetail
) -> None:
    ticket = started(ledger, **coder(title="fix it", goal="all"))
    ledger.end_run(ticket, ended(detail))
    task = judged(ledger, ticket, Outcome.PASSED)
    assert (task.status, task.acceptance, task.rescued) == (S.PENDING_QA, None, False)
    (qa,) = reviews(ledger, task)
    assert (qa.title, qa.role, qa.status) == ("QA Review: fix it", "qa", S.QUEUED)
    assert (qa.parent_key, qa.qa_of_key, qa.created_at) == (task.key, task.key, task.updated_at)
    terms = read_contract(ledger.dossier(qa.id).contract)
    assert (terms.agent, terms.goal) == ("reviewer", "all")
    assert terms.definition() == REVIEWER
    event = ledger.events(task.id)[-1].event
    assert (event.event, event.to_status) == (Move.CHAIN, S.PENDING_QA)
    assert json.loads(event.data)["qa"] == qa.id


@pytest.mark.criterion("J06", "L07")
def test_a_task_that_waits_for_qa_is_not_green_anywhere(ledger: Ledger) -> None:
    task, ticket = chained(ledger)
    assert task.verdict is not Outcome.PASSED
    assert task.cell is not None
    assert CELLS[task.cell].light is not Light.GREEN
    run = ledger.run(ticket.run)[0]
    assert (run.verdict, run.cell) == (task.verdict, task.cell)
    assert all(count.cell is not Cell.TRUE_GREEN for count in ledger.counts())
    assert all(ended.cell is not Cell.TRUE_GREEN for ended in ledger.ended_since(0))


def test_a_long_title_still_fits(ledger: Ledger) -> None:
    task, _ = chained(ledger, title="ü" * 500)
    (qa,) = reviews(ledger, task)
    assert qa.title == ("QA Review: " + "ü" * 500)[:500]


@pytest.mark.criterion("J01", "C11")
def test_a_repeated_or_simultaneous_verdict_opens_no_second_review(ledger: Ledger) -> None:
    ticket = started(ledger, **coder())
    declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED)])
    passed = verdict(ledger, ticket, Outcome.PASSED)

    def judge(_: int) -> object:
        try:
            return ledger.judge(ticket, passed)
        except Refused as error:
            return error

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(judge, range(8)))
    assert sum(isinstance(answer, Task) for answer in answers) == 1
    assert len(reviews(ledger, ledger.task(ticket.task))) == 1


@pytest.mark.criterion("J02")
@pytest.mark.parametrize("detail", [D.COMPLETED, D.NOOP, D.UNCLAIMED, D.AGENT_ERROR, D.COST_CAP])
def test_no_way_into_green_goes_round_qa(ledger: Ledger, detail: ExitDetail) -> None:
    ticket = started(ledger, **coder())
    ledger.end_run(ticket, ended(detail))
    passed = verdict(ledger, ticket, Outcome.PASSED)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED), opinion(ledger, ticket, F.PASSED)])
    with pytest.raises(Refused, match="under check"):
        ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="skip it")
    task = ledger.judge(ticket, passed)
    assert task.status is S.PENDING_QA
    with pytest.raises(Refused):
        ledger.judge(ticket, passed)
    with pytest.raises(Stale):
        ledger.settle(ticket)
    mine = started(ledger)
    with pytest.raises(InvalidInput, match="not a QA review"):
        ledger.record_qa(mine, opinion(ledger, ticket, F.PASSED))
    with pytest.raises((InvalidInput, Stale)):
        ledger.record_qa(ticket, opinion(ledger, ticket, F.PASSED))
    assert ledger.task(task.id) == task


def settled(ledger: Ledger, review: Ticket) -> Task:
    """The QA run ends, and the host says that its verdict was given."""
    declared(ledger, review)
    ledger.record(review, [finding(ledger, review, F.PASSED, check=QA_VERDICT, kind="qa")])
    return ledger.judge(review, verdict(ledger, review, Outcome.PASSED))


@pytest.mark.criterion("J05", "J02")
def test_a_finished_qa_job_is_no_verdict(ledger: Ledger) -> None:
    task, ticket = chained(ledger)
    review = under_review(ledger, task)
    with pytest.raises(Refused, match="gave no QA verdict"):
        settled(ledger, review)
    silent = ledger.judge(review, verdict(ledger, review, Outcome.UNKNOWN))
    assert (silent.status, silent.cell) == (S.NEEDS_REVIEW, Cell.UNVERIFIED)
    assert [waiting.task for waiting in ledger.inbox()] == [review.task]
    assert ledger.task(task.id) == task
    with pytest.raises(Stale):
        ledger.record_qa(review, opinion(ledger, ticket, F.PASSED))
    assert ledger.task(task.id) == task


@pytest.mark.criterion("J05")
@pytest.mark.parametrize(
    ("outcome", "status", "waiting"),
    [
        (F.PASSED, S.SUCCEEDED, 0),
        (F.FAILED, S.QUEUED, 0),
        (F.INCONCLUSIVE, S.NEEDS_REVIEW, 1),
    ],
)
def test_a_review_that_gave_its_verdict_has_done_its_job_and_waits_for_nobody(
    ledger: Ledger, outcome: FindingOutcome, status: TaskStatus, waiting: int
) -> None:
    task, ticket = chained(ledger)
    review = under_review(ledger, task)
    ledger.record_qa(review, opinion(ledger, ticket, outcome))
    done = settled(ledger, review)
    assert (done.status, done.cell) == (S.SUCCEEDED, Cell.TRUE_GREEN)
    assert ledger.task(task.id).status is status
    assert [each.task for each in ledger.inbox()] == [task.id] * waiting
    assert doctor.examine(ledger) == []


@pytest.mark.criterion("E13", "J05")
def test_a_review_is_green_by_its_verdict_and_by_no_other_check(ledger: Ledger) -> None:
    task, ticket = chained(ledger)
    review = under_review(ledger, task)
    ledger.record_qa(review, opinion(ledger, ticket, F.PASSED))
    declared(ledger, review)
    with pytest.raises(Refused, match=f"not passed: {QA_VERDICT}"):
        judged(ledger, review, Outcome.PASSED)
    assert ledger.task(review.task).status is S.PENDING_EVAL


@pytest.mark.criterion("J12")
@pytest.mark.parametrize("detail", [D.SIGNALED, D.REFUSED, D.TIME_CAP, D.UNCLAIMED])
def test_a_dead_reviewer_leaves_the_task_waiting(ledger: Ledger, detail: ExitDetail) -> None:
    task, _ = chained(ledger)
    review = under_review(ledger, task)
    ledger.end_run(review, ended(detail))
    assert ledger.task(task.id) == task


@pytest.mark.criterion("J04", "J10", "C17")
def test_a_qa_pass_with_evidence_makes_it_green(ledger: Ledger) -> None:
    author = ledger.register_agent("coder", "sha256:a", actor=OPERATOR).id
    reviewer = ledger.register_agent("reviewer", "sha256:b", actor=OPERATOR).id
    task, ticket = chained(ledger, agent=author)
    review = under_review(ledger, task, agent=reviewer)
    judge = Actor(Role.JUDGE, "qa", review.run, review.fence)
    done = ledger.record_qa(review, opinion(ledger, ticket, F.PASSED), actor=judge)
    assert done == ledger.task(task.id)
    assert (done.status, done.verdict, done.cell) == (S.SUCCEEDED, "passed", Cell.TRUE_GREEN)
    assert not done.overridden
    found = ledger.dossier(task.id).findings
    assert [f.check_name for f in found] == ["tests", "qa"]
    assert done.acceptance is not None
    assert json.loads(done.acceptance)["findings"] == [f.id for f in found]
    event = ledger.events(task.id)[-1].event
    assert (event.event, event.actor, event.run_id) == (Move.ACCEPT, "judge:qa", ticket.run)
    assert ledger.task(review.task).status is S.RUNNING


@pytest.mark.criterion("J10", "J05")
@pytest.mark.parametrize(
    ("outcome", "evidence"),
    [
        (F.PASSED, {}),
        (F.PASSED, {"evidence": [{"command": "", "saw": ""}]}),
        (F.PASSED, {"evidence": ["x"]}),
        (F.PASSED, {"evidence": [{"command": "pytest -q"}, {"saw": "all is well"}]}),
        (F.PASSED, {"evidence": {"command": "pytest -q", "saw": "1 passed"}}),
        (F.PASSED, {"unrecorded": [{"command": "pytest -q", "saw": "1 passed"}]}),
        (F.INCONCLUSIVE, PROOF),
        (F.SKIPPED, PROOF),
    ],
)
def test_qa_without_evidence_or_answer_is_undecided(
    ledger: Ledger, outcome: FindingOutcome, evidence: dict[str, Any]
) -> None:
    task, ticket = chained(ledger)
    review = under_review(ledger, task)
    done = ledger.record_qa(review, opinion(ledger, ticket, outcome, evidence=evidence))
    assert (done.status, done.verdict) == (S.NEEDS_REVIEW, Outcome.INCONCLUSIVE)
    assert ledger.dossier(task.id).findings[-1].outcome is not F.PASSED


@pytest.mark.criterion("J02", "J10")
@pytest.mark.parametrize(
    "more", [{"binding": False}, {"phase": Phase.BASELINE, "digest": BASE}, {"digest": "tree:x"}]
)
def test_an_opinion_that_binds_nothing_is_no_pass(ledger: Ledger, more: dict[str, Any]) -> None:
    task, ticket = chained(ledger)
    review = under_review(ledger, task)
    with pytest.raises(Refused):
        ledger.record_qa(review, opinion(ledger, ticket, F.PASSED, **more))
    assert ledger.task(task.id) == task


@pytest.mark.criterion("F19", "J02")
def test_a_check_that_turned_red_meanwhile_stops_a_qa_pass(ledger: Ledger) -> None:
    task, ticket = chained(ledger)
    judge = Actor(Role.JUDGE, "late", ticket.run, ticket.fence)
    try:
        ledger.record(ticket, [finding(ledger, ticket, F.FAILED)], actor=judge)
    except Refused:
        return  # a finding after the verdict may also be refused outright
    review = under_review(ledger, task)
    with pytest.raises(Refused, match="carry"):
        ledger.record_qa(review, opinion(ledger, ticket, F.PASSED))
    assert ledger.task(task.id).status is S.PENDING_QA


@pytest.mark.criterion("J04", "J08", "J11", "I18")
def test_a_qa_failure_sends_the_work_back_until_the_rounds_are_spent(ledger: Ledger) -> None:
    task, ticket = chained(ledger, budget=Budget(attempts=5, qa_rounds=2))
    review = under_review(ledger, task)
    back = ledger.record_qa(review, opinion(ledger, ticket, F.FAILED))
    assert (back.status, back.attempts, back.qa_rounds) == (S.QUEUED, 1, 1)
    data = json.loads(ledger.events(task.id)[-1].event.data)
    assert data["charged"] == ["attempts", "qa_rounds"]
    assert ledger.dossier(task.id).findings[-1].reason == "I looked"
    second = started(ledger, task.id)
    declared(ledger, second)
    # The first review is still under way when the second round begins.
    assert judged(ledger, second, Outcome.PASSED).status is S.PENDING_QA
    open_reviews = [qa for qa in reviews(ledger, task) if qa.settled_at is None]
    assert len(open_reviews) == 1
    assert open_reviews[0].id != review.task
    with pytest.raises(Refused):
        ledger.record_qa(review, opinion(ledger, second, F.PASSED))
    again = under_review(ledger, task)
    spent = ledger.record_qa(again, opinion(ledger, second, F.FAILED))
    assert (spent.status, spent.attempts, spent.qa_rounds) == (S.FAILED, 2, 2)
    assert [w.task for w in ledger.inbox()] == [task.id]


@pytest.mark.criterion("J07")
def test_qa_is_not_reviewed_and_fixes_are(ledger: Ledger) -> None:
    every = QaTerms(roles=("coder", "qa"))
    ticket = started(ledger, role="coder", qa=every)
    declared(ledger, ticket)
    task = judged(ledger, ticket, Outcome.PASSED)
    review = under_review(ledger, task)
    back = ledger.record_qa(review, opinion(ledger, ticket, F.FAILED))
    assert back.status is S.QUEUED
    assert settled(ledger, review).status is S.SUCCEEDED
    assert len(ledger.page().tasks) == 2
    fix = started(ledger, task.id)
    declared(ledger, fix)
    assert judged(ledger, fix, Outcome.PASSED).status is S.PENDING_QA
    assert len(reviews(ledger, task)) == 2


@pytest.mark.criterion("J03", "O09")
def test_the_author_is_no_reviewer(ledger: Ledger) -> None:
    author = ledger.register_agent("coder", "sha256:a", actor=OPERATOR).id
    task, ticket = chained(ledger, agent=author)
    review = under_review(ledger, task, agent=author)
    with pytest.raises(Forbidden, match="author"):
        ledger.record_qa(review, opinion(ledger, ticket, F.PASSED))
    assert ledger.task(task.id) == task


@pytest.mark.criterion("J03")
def test_the_authors_conversation_under_another_name_is_no_reviewer(ledger: Ledger) -> None:
    author = ledger.register_agent("coder", "sha256:a", session="s-1", actor=OPERATOR).id
    clone = ledger.register_agent("reviewer", "sha256:b", session="s-1", actor=OPERATOR).id
    task, ticket = chained(ledger, agent=author)
    review = under_review(ledger, task, agent=clone)
    with pytest.raises(Forbidden, match="author"):
        ledger.record_qa(review, opinion(ledger, ticket, F.PASSED))
    assert ledger.task(task.id) == task


def test_the_author_of_an_earlier_attempt_is_no_reviewer_either(ledger: Ledger) -> None:
    first = ledger.register_agent("coder", "sha256:a", actor=OPERATOR).id
    second = ledger.register_agent("coder", "sha256:b", actor=OPERATOR).id
    ticket = started(ledger, agent_id=first, **coder())
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    again = started(ledger, ticket.task, agent_id=second)
    declared(ledger, again)
    task = judged(ledger, again, Outcome.PASSED)
    review = under_review(ledger, task, agent=first)
    with pytest.raises(Forbidden, match="author"):
        ledger.record_qa(review, opinion(ledger, again, F.PASSED))


@pytest.mark.criterion("J22", "J02", "O01")
def test_roles_that_may_not_find_give_no_qa_verdict(ledger: Ledger) -> None:
    task, ticket = chained(ledger)
    review = under_review(ledger, task)
    for actor in (agent_of(review), OPERATOR, Actor(Role.LEAD, "x"), Actor(Role.VIEWER, "x")):
        with pytest.raises(Forbidden):
            ledger.record_qa(review, opinion(ledger, ticket, F.PASSED), actor=actor)
    assert ledger.task(task.id) == task


@pytest.mark.criterion("E19")
def test_a_person_who_does_not_wait_for_qa_overrides_it(ledger: Ledger) -> None:
    task, _ = chained(ledger)
    done = ledger.review(task.id, accept=True, actor=OPERATOR, reason="urgent")
    assert (done.status, done.overridden) == (S.SUCCEEDED, True)
    assert [qa.status for qa in reviews(ledger, task)] == [S.CANCELED]


def test_rejecting_and_retrying_from_qa_leads_to_a_fresh_review(ledger: Ledger) -> None:
    for verb in ("review", "retry"):
        task, _ = chained(ledger)
        if verb == "review":
            ledger.review(task.id, accept=False, actor=OPERATOR, reason="no")
        else:
            ledger.retry(task.id, actor=OPERATOR, reason="again")
        ticket, mended = started(ledger, task.id), "tree:mended"
        ledger.end_run(ticket, ended(digest=mended))
        ledger.record(ticket, [finding(ledger, ticket, F.PASSED, digest=mended)])
        done = ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, digest=mended))
        assert done.status is S.PENDING_QA
        assert [qa.status for qa in reviews(ledger, task)] == [S.QUEUED, S.CANCELED]


def test_canceling_a_task_calls_its_review_off(ledger: Ledger) -> None:
    task, _ = chained(ledger)
    review = under_review(ledger, task)
    ledger.cancel(task.id, actor=OPERATOR)
    assert ledger.task(review.task).status is S.CANCELED
    with pytest.raises(Stale):
        ledger.heartbeat(review)


def test_a_review_that_comes_too_late_changes_nothing(ledger: Ledger) -> None:
    task, ticket = chained(ledger)
    review = under_review(ledger, task)
    ledger.record_qa(review, opinion(ledger, ticket, F.PASSED))
    done = ledger.task(task.id)
    with pytest.raises(Stale):
        ledger.record_qa(review, opinion(ledger, ticket, F.FAILED))
    assert ledger.task(task.id) == done
    assert [r.verb for r in ledger.dossier(review.task).refusals] == ["record_qa"]


def test_other_roles_are_not_chained(ledger: Ledger) -> None:
    for role, roles in (("writer", ("coder",)), ("", ("coder",)), ("coder", ())):
        ticket = started(ledger, role=role, qa=QaTerms(roles=roles))
        declared(ledger, ticket)
        assert judged(ledger, ticket, Outcome.PASSED).status is S.SUCCEEDED
    assert len(ledger.page().tasks) == 3


@pytest.mark.criterion("J01")
@pytest.mark.parametrize("role", ["coder", "product"])
def test_by_default_coders_and_product_are_reviewed(ledger: Ledger, role: str) -> None:
    ticket = started(ledger, role=role, qa=QaTerms())
    declared(ledger, ticket)
    assert judged(ledger, ticket, Outcome.PASSED).status is S.PENDING_QA


def test_keys_do_not_open_a_second_chain(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.PENDING_QA)
    opened(ledger)
    with pytest.raises((KeyReused, Refused)):
        ledger.unblock(task.id, actor=OPERATOR, reason="x", key="k")
    assert len(reviews(ledger, task)) == 1


# -- chains that broke --------------------------------------------------------------------------


def flags(ledger: Ledger, task: Task) -> list[str]:
    return [each.item.reason for each in ledger.inbox() if each.task == task.id]


@pytest.mark.criterion("J12")
def test_a_task_whose_reviewer_is_not_set_waits_and_is_flagged(ledger: Ledger) -> None:
    task, _ = chained(ledger, qa=QaTerms(roles=("coder",)))
    assert task.status is S.PENDING_QA
    assert flags(ledger, task) == ["it waits for QA, and no reviewer is set: [qa] agent = …"]
    other, _ = chained(ledger)
    assert flags(ledger, other) == []


@pytest.mark.criterion("J12", "J09")
def test_a_dead_review_leaves_its_task_waiting_and_is_flagged_once(ledger: Ledger) -> None:
    task, _ = chained(ledger)
    (qa,) = reviews(ledger, task)
    ledger.cancel(qa.id, actor=OPERATOR, reason="no time")
    for _ in range(3):
        (seen,) = ledger.reconcile()
        assert seen.status is S.PENDING_QA
    (item,) = [each.item for each in ledger.inbox() if each.task == task.id]
    assert item.reason == f"its QA review {qa.id} is canceled"
    assert item.next == f"truegreen retry {qa.id} --reason …"
    assert len(reviews(ledger, task)) == 1
    ledger.retry(qa.id, actor=OPERATOR, reason="there is time again")
    assert ledger.reconcile() == []


@pytest.mark.criterion("J09")
def test_a_missing_review_is_found_and_opened(ledger: Ledger, store_url: str) -> None:
    task, _ = chained(ledger)
    assert ledger.reconcile() == []
    (qa,) = reviews(ledger, task)
    with raw_sql(store_url) as raw:
        drop = "DROP TRIGGER tasks_kept" + (" ON tasks" if raw.dialect == "postgres" else "")
        raw.do(drop, f"UPDATE tasks SET qa_of_key = NULL WHERE key = {qa.key}")
    assert [each.id for each in ledger.unattended()] == [task.id]
    (mended,) = ledger.reconcile()
    assert (mended.status, mended.revision) == (S.PENDING_QA, task.revision + 1)
    (qa,) = reviews(ledger, task)
    assert (qa.title, qa.status) == ("QA Review: fix the parser", S.QUEUED)
    assert ledger.reconcile() == []


@pytest.mark.criterion("J03")
def test_the_same_definition_under_another_name_is_no_reviewer(ledger: Ledger) -> None:
    author = ledger.register_agent("coder", "sha256:one", actor=OPERATOR)
    twin = ledger.register_agent("reviewer", "sha256:one", actor=OPERATOR)
    other = ledger.register_agent("reviewer", "sha256:two", actor=OPERATOR)
    task, ticket = chained(ledger, author.id)
    review = under_review(ledger, task, twin.id)
    with pytest.raises(Forbidden, match="must not be the author"):
        ledger.record_qa(review, opinion(ledger, ticket, F.PASSED))
    assert ledger.task(task.id).status is S.PENDING_QA
    task, ticket = chained(ledger, ledger.register_agent("c", "sha256:3", actor=OPERATOR).id)
    review = under_review(ledger, task, other.id)
    assert ledger.record_qa(review, opinion(ledger, ticket, F.PASSED)).status is S.SUCCEEDED


def test_a_sealed_review_is_not_said_to_be_tried_again(ledger: Ledger) -> None:
    task, _ = chained(ledger)
    (qa,) = reviews(ledger, task)
    ledger.terminate(qa.id, actor=OPERATOR)
    ledger.reconcile()
    (item,) = [each.item for each in ledger.inbox() if each.task == task.id]
    assert item.next == f"truegreen show {task.id}"
    assert item.reason == f"its QA review {qa.id} is terminated"
