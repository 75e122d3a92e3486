"""From findings to an outcome: what carries green, what is stale, what a person may decide."""

from __future__ import annotations

import itertools
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.record.lives import (
    BASE,
    LEAD,
    OPERATOR,
    TREE,
    S,
    agent_of,
    brought,
    declared,
    ended,
    finding,
    judged,
    started,
    verdict,
)
from truegreen.contract import Budget
from truegreen.errors import (
    Forbidden,
    IllegalMove,
    InvalidInput,
    KeyReused,
    Refused,
    Stale,
    Terminated,
)
from truegreen.facts import SYSTEM, Actor
from truegreen.model import (
    CELLS,
    DETAILS,
    RESCUABLE,
    Cell,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    Light,
    Move,
    Note,
    Outcome,
    Phase,
    Role,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start

if TYPE_CHECKING:
    from collections.abc import Callable

    from truegreen.facts import Ticket
    from truegreen.record.rows import Event, Task

DATABASES = ("sqlite",)

D, F = ExitDetail, FindingOutcome


def last(ledger: Ledger, task: str) -> Event:
    return ledger.events(task)[-1].event


def under_check(ledger: Ledger, detail: ExitDetail = D.COMPLETED, **terms: Any) -> Ticket:
    ticket = started(ledger, **terms)
    ledger.end_run(ticket, ended(detail))
    return ticket


# -- findings ----------------------------------------------------------------------------------


@pytest.mark.criterion("E20", "C04")
def test_findings_are_kept_word_for_word_with_their_event(ledger: Ledger) -> None:
    ticket = under_check(ledger)
    given = finding(
        ledger,
        ticket,
        F.FAILED,
        kind="pytest",
        reason="3 failed of 212",
        judge="sha256:j",
        judged="sha256:d",
        level=Level.A3,
        before=F.FAILED,
        score=0.5,
        counts={"passed": 209, "failed": 3},
        evidence={"log": "…"},
        isolation="jail",
        duration_us=3_100_000,
        binding=False,
    )
    judge = Actor(Role.JUDGE, "tests", ticket.run, ticket.fence)
    (finding_id,) = ledger.record(ticket, [given], actor=judge)
    (kept,) = ledger.dossier(ticket.task).findings
    assert (kept.id, kept.check_name, kept.kind) == (finding_id, "tests", "pytest")
    assert (kept.outcome, kept.before, kept.level, kept.score) == (F.FAILED, F.FAILED, "A3", 0.5)
    assert (kept.reason, kept.judge, kept.judged) == ("3 failed of 212", "sha256:j", "sha256:d")
    assert (kept.digest, kept.phase, kept.isolation) == (TREE, Phase.AFTER, "jail")
    assert (kept.duration_us, bool(kept.binding)) == (3_100_000, False)
    assert json.loads(kept.counts) == {"passed": 209, "failed": 3}
    event = last(ledger, ticket.task)
    assert (event.event, event.actor, event.run_id) == (Note.FINDINGS, "judge:tests", ticket.run)
    assert json.loads(event.data) == {"findings": [finding_id], "outcomes": {"tests": "failed"}}
    assert ledger.task(ticket.task).status is S.PENDING_EVAL


@pytest.mark.criterion("F13", "J23", "E09")
@pytest.mark.parametrize(
    ("phase", "digest", "fresh"),
    [
        (Phase.AFTER, TREE, True),
        (Phase.REVIEW, TREE, True),
        (Phase.BASELINE, BASE, True),
        (Phase.AFTER, BASE, False),
        (Phase.BASELINE, TREE, False),
        (Phase.AFTER, "tree:later", False),
    ],
)
def test_a_finding_counts_for_the_tree_it_was_made_on(
    ledger: Ledger, phase: Phase, digest: str, fresh: bool
) -> None:
    ticket = under_check(ledger)
    before = ledger.task(ticket.task)
    given = finding(ledger, ticket, F.PASSED, phase=phase, digest=digest)
    if fresh:
        ledger.record(ticket, [given])
        assert len(ledger.dossier(ticket.task).findings) == 1
        return
    with pytest.raises(Stale) as caught:
        ledger.record(ticket, [finding(ledger, ticket, F.PASSED), given])
    assert caught.value.details["stale"] == "digest"
    assert ledger.task(ticket.task) == before
    assert ledger.dossier(ticket.task).findings == []
    (kept,) = ledger.dossier(ticket.task).refusals
    assert (kept.verb, kept.code) == ("record", "stale")
    assert digest in kept.evidence


@pytest.mark.criterion("F13")
def test_an_answer_about_another_contract_is_refused(ledger: Ledger) -> None:
    ticket = under_check(ledger)
    with pytest.raises(Stale) as caught:
        ledger.record(ticket, [finding(ledger, ticket, F.PASSED, contract_digest="sha256:x")])
    assert caught.value.details["stale"] == "contract"
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED)])
    with pytest.raises(Stale):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, contract_digest="sha256:x"))
    with pytest.raises(Stale) as caught:
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, digest="tree:later"))
    assert caught.value.details["stale"] == "digest"
    assert ledger.task(ticket.task).status is S.PENDING_EVAL


@pytest.mark.criterion("E28")
def test_nothing_is_found_about_a_tree_that_is_still_worked_at(ledger: Ledger) -> None:
    ticket = started(ledger)
    with pytest.raises(Stale):
        ledger.record(ticket, [finding(ledger, ticket, F.PASSED)])
    with pytest.raises(Refused):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
    ledger.record(ticket, [finding(ledger, ticket, F.FAILED, phase=Phase.BASELINE, digest=BASE)])
    assert ledger.task(ticket.task).status is S.RUNNING


@pytest.mark.criterion("F17", "O01")
def test_a_judge_speaks_about_its_own_run_only(ledger: Ledger) -> None:
    ticket, other = under_check(ledger), under_check(ledger)
    stranger = Actor(Role.JUDGE, "tests", other.run, other.fence)
    with pytest.raises((Forbidden, Stale)):
        ledger.record(ticket, [finding(ledger, ticket, F.PASSED)], actor=stranger)
    with pytest.raises(Forbidden):
        ledger.record(ticket, [finding(ledger, ticket, F.PASSED)], actor=agent_of(ticket))
    own = Actor(Role.JUDGE, "tests", ticket.run, ticket.fence)
    with pytest.raises(Forbidden):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED), actor=own)
    assert ledger.dossier(ticket.task).findings == []


@pytest.mark.criterion("F16", "O09")
def test_nobody_judges_its_own_work(ledger: Ledger) -> None:
    ticket = under_check(ledger)
    own = finding(ledger, ticket, F.PASSED, judge="sha256:d", judged="sha256:d")
    with pytest.raises(Forbidden, match="own work"):
        ledger.record(ticket, [own])
    assert ledger.dossier(ticket.task).findings == []


# -- what carries green ------------------------------------------------------------------------

CARRIED: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "one check passed": ([{"outcome": F.PASSED}], True),
    "nothing was checked": ([], False),
    "only a baseline": ([{"outcome": F.PASSED, "phase": Phase.BASELINE, "digest": BASE}], False),
    "only a shadow": ([{"outcome": F.PASSED, "binding": False}], False),
    "a red gate": ([{"outcome": F.FAILED}], False),
    "a skipped gate": ([{"outcome": F.SKIPPED}], False),
    "no usable answer": ([{"outcome": F.INCONCLUSIVE}], False),
    "one red of two": ([{"outcome": F.PASSED}, {"check": "lint", "outcome": F.FAILED}], False),
    "one skipped of two": ([{"outcome": F.PASSED}, {"check": "lint", "outcome": F.SKIPPED}], False),
    "flaky, green last": ([{"outcome": F.FAILED}, {"outcome": F.PASSED}], False),
    "flaky, red last": ([{"outcome": F.PASSED}, {"outcome": F.FAILED}], False),
    "flaky, several times": ([{"outcome": o} for o in (F.PASSED, F.FAILED, F.PASSED)], False),
    "flaky after no answer": (
        [{"outcome": o} for o in (F.FAILED, F.INCONCLUSIVE, F.PASSED)],
        False,
    ),
    "an answer at last": ([{"outcome": F.INCONCLUSIVE}, {"outcome": F.PASSED}], True),
    "a red shadow beside": (
        [{"outcome": F.PASSED}, {"check": "idea", "outcome": F.FAILED, "binding": False}],
        True,
    ),
    "red before": (
        [
            {"outcome": F.FAILED, "phase": Phase.BASELINE, "digest": BASE},
            {"outcome": F.PASSED},
        ],
        True,
    ),
}


@pytest.mark.criterion("A10", "C17", "C18", "E13", "E17", "E23", "E27", "F19", "F20")
def test_a_pass_needs_findings_that_carry_it(ledger: Ledger) -> None:
    for (case, (found, carried)), detail in itertools.product(
        CARRIED.items(), (D.COMPLETED, D.UNCLAIMED)
    ):
        ticket = under_check(ledger, detail)
        # One after another, as flaky checks are.
        ids = [ledger.record(ticket, [finding(ledger, ticket, **each)])[0] for each in found]
        before = ledger.task(ticket.task)
        if not carried:
            with pytest.raises(Refused, match="carry"):
                ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
            assert ledger.task(ticket.task) == before, case
            continue
        task = ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
        assert task.status is S.SUCCEEDED, case
        assert task.acceptance is not None
        assert json.loads(task.acceptance) == {
            "by": str(SYSTEM),
            "level": "A2",
            "digest": TREE,
            "contract": task.contract_digest,
            "findings": [
                found_id
                for found_id, each in zip(ids, found, strict=True)
                if each.get("phase") is not Phase.BASELINE
            ],
        }


@pytest.mark.criterion("E22", "F14", "J23")
def test_a_pass_of_an_earlier_attempt_carries_nothing(ledger: Ledger) -> None:
    ticket = under_check(ledger)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED)])
    judged(ledger, ticket, Outcome.FAILED)
    second = started(ledger, ticket.task)
    again = ledger.task(ticket.task)
    assert (again.verdict, again.cell) == (Outcome.UNKNOWN, None)
    declared(ledger, second)
    with pytest.raises(Refused, match="not passed: tests"):
        ledger.judge(second, verdict(ledger, second, Outcome.PASSED))
    assert ledger.task(ticket.task).status is S.PENDING_EVAL


# -- verdicts ----------------------------------------------------------------------------------

CONCLUSIONS: list[tuple[ExitDetail, Outcome, int, TaskStatus, Cell, bool]] = [
    # exit, verdict, attempts, status, cell, rescued
    (D.COMPLETED, Outcome.PASSED, 3, S.SUCCEEDED, Cell.TRUE_GREEN, False),
    (D.NOOP, Outcome.PASSED, 3, S.SUCCEEDED, Cell.TRUE_GREEN, False),
    (D.COMPLETED, Outcome.FAILED, 3, S.QUEUED, Cell.SILENT_FAILURE, False),
    (D.COMPLETED, Outcome.FAILED, 1, S.FAILED, Cell.SILENT_FAILURE, False),
    (D.COMPLETED, Outcome.INCONCLUSIVE, 3, S.NEEDS_REVIEW, Cell.UNDECIDED, False),
    (D.COMPLETED, Outcome.UNKNOWN, 3, S.NEEDS_REVIEW, Cell.UNVERIFIED, False),
    (D.UNCLAIMED, Outcome.PASSED, 3, S.SUCCEEDED, Cell.TRUE_GREEN, True),
    (D.UNCLAIMED, Outcome.FAILED, 1, S.FAILED, Cell.SILENT_FAILURE, False),
    (D.AGENT_ERROR, Outcome.PASSED, 3, S.SUCCEEDED, Cell.RESCUED, True),
    (D.AGENT_ERROR, Outcome.FAILED, 3, S.QUEUED, Cell.FAILED, False),
    (D.AGENT_ERROR, Outcome.FAILED, 1, S.FAILED, Cell.FAILED, False),
    (D.AGENT_ERROR, Outcome.INCONCLUSIVE, 3, S.NEEDS_REVIEW, Cell.UNDECIDED, False),
    (D.AGENT_ERROR, Outcome.UNKNOWN, 3, S.NEEDS_REVIEW, Cell.OUTAGE, False),
    (D.TURN_CAP, Outcome.PASSED, 3, S.SUCCEEDED, Cell.FINISHED_AT_THE_CAP, True),
    (D.TURN_CAP, Outcome.FAILED, 3, S.FAILED, Cell.CAP_HIT, False),
    (D.IDLE_CAP, Outcome.FAILED, 3, S.QUEUED, Cell.CAP_HIT, False),
    (D.EGRESS_DENIED, Outcome.PASSED, 3, S.SUCCEEDED, Cell.TRUE_GREEN, True),
    (D.EGRESS_DENIED, Outcome.FAILED, 3, S.BLOCKED, Cell.BLOCKED, False),
    (D.CONNECTOR_MISSING, Outcome.FAILED, 3, S.BLOCKED, Cell.BLOCKED, False),
    (D.PERMISSION_DENIED, Outcome.FAILED, 3, S.BLOCKED, Cell.BLOCKED, False),
    (D.INPUT_NEEDED, Outcome.INCONCLUSIVE, 3, S.NEEDS_REVIEW, Cell.BLOCKED, False),
]


@pytest.mark.criterion("A03", "A04", "A11", "A12", "A20", "C16", "F01", "F02", "F03", "F05", "F26")
def test_every_verdict_leads_where_the_model_says(ledger: Ledger) -> None:
    for detail, outcome, attempts, status, cell, rescued in CONCLUSIONS:
        ticket = under_check(ledger, detail, budget=Budget(attempts=attempts))
        ended_run = ledger.run(ticket.run)[0]
        source = ledger.task(ticket.task).status
        task = judged(ledger, ticket, outcome)
        case = (detail, outcome, attempts)
        assert task == ledger.task(ticket.task), case
        assert (task.status, task.cell, task.verdict) == (status, cell, outcome), case
        assert task.rescued is rescued, case
        assert not task.overridden
        run = ledger.run(ticket.run)[0]
        assert (run.verdict, run.cell, run.level) == (outcome, cell, "A2"), case
        assert run.verdict_reason == f"gate tests: {outcome}"
        assert run.judged_at == task.updated_at
        assert (run.status, run.ended_at, run.exit_detail, run.usage) == (
            ended_run.status,
            ended_run.ended_at,
            ended_run.exit_detail,
            ended_run.usage,
        )
        event = last(ledger, ticket.task)
        assert (event.from_status, event.to_status) == (source, status), case
        assert (event.reason, event.run_id) == (f"gate tests: {outcome}", ticket.run)
        data = json.loads(event.data)
        assert (data["verdict"], data["digest"]) == (outcome, TREE)
        assert ("charged" in data) == (task.attempts == 1)
        assert (task.settled_at is not None) == (status in (S.SUCCEEDED, S.FAILED, S.BLOCKED))
        with pytest.raises((Stale, IllegalMove)):
            ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))


@pytest.mark.criterion("F04", "E31")
@pytest.mark.parametrize("detail", [D.UNCLAIMED, D.AGENT_ERROR, D.TIME_CAP])
def test_without_a_sign_of_work_a_green_gate_rescues_nothing(
    ledger: Ledger, detail: ExitDetail
) -> None:
    def left_alone(**gate: Any) -> Task:
        ticket = started(ledger)
        ledger.end_run(ticket, ended(detail, digest=BASE))
        ledger.record(ticket, [finding(ledger, ticket, F.PASSED, digest=BASE, **gate)])
        return ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, digest=BASE))

    task = left_alone(before=None)
    assert (task.status, task.rescued) == (S.NEEDS_REVIEW, False)
    assert task.cell is not None
    assert CELLS[task.cell].light is not Light.GREEN, "nobody has accepted it"
    assert task.verdict is not Outcome.PASSED
    run = ledger.dossier(task.id).runs[0]
    assert (run.verdict, run.cell) == (task.verdict, task.cell)
    assert left_alone(before=F.FAILED).status is S.SUCCEEDED


@pytest.mark.criterion("F01")
def test_a_pending_verdict_decides_nothing(ledger: Ledger) -> None:
    ticket = under_check(ledger)
    before = ledger.task(ticket.task)
    with pytest.raises(InvalidInput):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PENDING))
    assert ledger.task(ticket.task) == before


@pytest.mark.criterion("F11")
@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.INCONCLUSIVE, Outcome.FAILED])
def test_a_run_that_left_no_digest_is_not_stuck_under_check(
    ledger: Ledger, outcome: Outcome
) -> None:
    ticket = started(ledger, budget=Budget(attempts=1))
    ledger.end_run(ticket, ended(D.UNCLAIMED, digest=""))
    task = ledger.judge(ticket, verdict(ledger, ticket, outcome, digest=""))
    assert task.status is (S.FAILED if outcome is Outcome.FAILED else S.NEEDS_REVIEW)


def test_without_a_digest_nothing_is_green(ledger: Ledger) -> None:
    ticket = started(ledger)
    ledger.end_run(ticket, ended(digest=""))
    with pytest.raises(InvalidInput, match="digest"):
        ledger.record(ticket, [finding(ledger, ticket, F.PASSED, digest="")])
    with pytest.raises(Refused):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, digest=""))
    assert ledger.task(ticket.task).status is S.PENDING_EVAL


@pytest.mark.criterion("C11")
def test_a_verdict_under_a_key_is_given_once(ledger: Ledger) -> None:
    ticket = under_check(ledger)
    ledger.record(ticket, [finding(ledger, ticket, F.FAILED)])
    failed = verdict(ledger, ticket, Outcome.FAILED)
    task = ledger.judge(ticket, failed, key="v")
    assert last(ledger, ticket.task).idempotency_key == "v"
    assert ledger.judge(ticket, failed, key="v") == task
    second = started(ledger, ticket.task)
    declared(ledger, second)
    with pytest.raises(KeyReused):
        ledger.judge(second, verdict(ledger, second, Outcome.FAILED), key="v")
    assert ledger.task(ticket.task).status is S.PENDING_EVAL


# -- a person's review -------------------------------------------------------------------------


@pytest.mark.criterion("C17", "O03", "A20")
def test_a_person_accepts_what_checks_could_not_decide(ledger: Ledger) -> None:
    _, ticket = brought(ledger, S.NEEDS_REVIEW)
    assert ticket
    task = ledger.review(
        ticket.task, accept=True, actor=OPERATOR, reason="I read it", digest=TREE, key="rv"
    )
    assert task == ledger.task(ticket.task)
    assert (task.status, task.verdict, task.overridden) == (S.SUCCEEDED, Outcome.PASSED, False)
    opinion = ledger.dossier(ticket.task).findings[-1]
    assert (opinion.judge, opinion.phase, opinion.kind) == ("operator:ana", "review", "person")
    assert (opinion.outcome, opinion.reason, opinion.digest) == (F.PASSED, "I read it", TREE)
    assert task.acceptance is not None
    acceptance = json.loads(task.acceptance)
    assert (acceptance["by"], acceptance["digest"]) == ("operator:ana", TREE)
    assert opinion.id in acceptance["findings"]
    event = last(ledger, ticket.task)
    assert (event.event, event.actor, event.reason) == (Move.ACCEPT, "operator:ana", "I read it")
    assert (event.run_id, event.idempotency_key) == (ticket.run, "rv")
    again = ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="I read it", key="rv")
    assert again == task


@pytest.mark.criterion("E19", "L06")
def test_accepting_against_a_red_check_is_an_override_for_ever(ledger: Ledger) -> None:
    ticket = under_check(ledger)
    ledger.record(ticket, [finding(ledger, ticket, F.FAILED)])
    with pytest.raises(Refused, match="red, not undecided"):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE))
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED, reason="the second time")])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE))
    task = ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="known to flap")
    assert (task.status, task.overridden) == (S.SUCCEEDED, True)
    assert ledger.retry(task.id, actor=OPERATOR, reason="again").overridden
    second = started(ledger, task.id)
    declared(ledger, second)
    assert judged(ledger, second, Outcome.PASSED).overridden


@pytest.mark.criterion("F26")
def test_accepting_an_undeclared_run_leaves_the_badge_rescued(ledger: Ledger) -> None:
    ticket = under_check(ledger, D.UNCLAIMED)
    judged(ledger, ticket, Outcome.INCONCLUSIVE)
    task = ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="it is all there")
    assert (task.status, task.rescued) == (S.SUCCEEDED, True)


@pytest.mark.criterion("F28")
@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("source", [S.NEEDS_REVIEW, S.PENDING_EVAL, S.FAILED_PENDING_EVAL])
def test_a_rejection_is_a_failure_like_any_other(
    ledger: Ledger, source: TaskStatus, attempts: int
) -> None:
    detail = D.UNCLAIMED if source is S.FAILED_PENDING_EVAL else D.COMPLETED
    ticket = under_check(ledger, detail, budget=Budget(attempts=attempts))
    if source is S.NEEDS_REVIEW:
        judged(ledger, ticket, Outcome.INCONCLUSIVE)
    task = ledger.review(ticket.task, accept=False, actor=OPERATOR, reason="no")
    assert task.status is (S.FAILED if attempts == 1 else S.QUEUED)
    assert (task.attempts, task.verdict) == (1, Outcome.FAILED)
    if source is not S.NEEDS_REVIEW:
        with pytest.raises(Stale):
            ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))


@pytest.mark.criterion("D08")
@pytest.mark.parametrize("accept", [True, False])
def test_a_review_is_bound_to_what_was_looked_at(ledger: Ledger, accept: bool) -> None:
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    with pytest.raises(Stale) as caught:
        ledger.review(
            task.id, accept=accept, actor=OPERATOR, reason="fine", digest="tree:yesterday"
        )
    assert (caught.value.details["stale"], caught.value.details["current"]) == ("digest", TREE)
    assert ledger.task(task.id) == task
    assert len(ledger.dossier(task.id).findings) == 1


def test_there_is_nothing_to_accept_elsewhere(ledger: Ledger) -> None:
    for status in TaskStatus:
        if status in (S.NEEDS_REVIEW, S.PENDING_QA):
            continue
        task, _ = brought(ledger, status)
        for accept in (True, False):
            if not accept and status in (S.PENDING_EVAL, S.FAILED_PENDING_EVAL, S.SUCCEEDED):
                continue
            with pytest.raises(Terminated if status is S.TERMINATED else Refused):
                ledger.review(task.id, accept=accept, actor=OPERATOR, reason="because")
            assert ledger.task(task.id) == task


@pytest.mark.criterion("D09", "O01")
def test_nobody_but_a_person_reviews(ledger: Ledger) -> None:
    for role in (role for role in Role if role is not Role.OPERATOR):
        task, ticket = brought(ledger, S.NEEDS_REVIEW)
        assert ticket
        for accept in (True, False):
            actor = Actor(role, "x", ticket.run, ticket.fence)
            with pytest.raises(Forbidden):
                ledger.review(task.id, accept=accept, actor=actor, reason="fine")
        with pytest.raises(InvalidInput, match="reason is needed"):
            ledger.review(task.id, accept=True, actor=OPERATOR, reason="")
        assert ledger.task(task.id) == task


@pytest.mark.criterion("C11")
def test_a_review_key_belongs_to_one_answer(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    other, _ = brought(ledger, S.NEEDS_REVIEW)
    done = ledger.review(task.id, accept=True, actor=OPERATOR, reason="yes", key="k")
    with pytest.raises(KeyReused):
        ledger.review(other.id, accept=True, actor=OPERATOR, reason="yes", key="k")
    with pytest.raises(KeyReused):
        ledger.review(task.id, accept=False, actor=OPERATOR, reason="no", key="k")
    assert (ledger.task(task.id), ledger.task(other.id)) == (done, other)


@pytest.mark.criterion("A19")
def test_a_crash_after_success_changes_nothing(ledger: Ledger) -> None:
    task, ticket = brought(ledger, S.SUCCEEDED)
    assert ticket
    with pytest.raises(Stale):
        ledger.end_run(ticket, ended(D.SIGNALED, signal=11))
    assert ledger.task(task.id) == task
    assert ledger.claim_next(Start("test")) == []
    (kept,) = ledger.dossier(task.id).refusals
    assert json.loads(kept.evidence)["status"] == RunStatus.CRASHED


def test_a_lead_sees_no_other_way_to_green(ledger: Ledger) -> None:
    task, ticket = brought(ledger, S.PENDING_EVAL)
    assert ticket
    for role in (Role.LEAD, Role.AGENT, Role.JUDGE, Role.VIEWER, Role.OPERATOR):
        actor = Actor(role, "x", ticket.run, ticket.fence)
        with pytest.raises(Forbidden):
            ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED), actor=actor)
    with pytest.raises(Refused, match="under check"):
        ledger.review(task.id, accept=True, actor=OPERATOR, reason="skip it")
    assert ledger.task(task.id) == task
    assert LEAD.role is Role.LEAD


def test_a_verdict_is_worth_no_more_than_the_least_of_its_gates(ledger: Ledger) -> None:
    ticket = under_check(ledger, require=Level.A1)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED, level=Level.A1)])
    with pytest.raises(Refused, match="carry level A1, not A2"):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
    low = msgspec.structs.replace(verdict(ledger, ticket, Outcome.PASSED), level=Level.A1)
    assert ledger.judge(ticket, low).status is TaskStatus.SUCCEEDED


@pytest.mark.criterion("F39")
@pytest.mark.parametrize(
    "detail",
    sorted(
        {*DETAILS[ExitReason.FATAL_ERROR]} - RESCUABLE - {D.RATE_LIMITED, D.SUPERVISOR_RESTARTED}
    ),
)
def test_nobody_but_a_person_calls_the_work_of_a_dead_agent_done(
    ledger: Ledger, detail: ExitDetail
) -> None:
    ticket = under_check(ledger, detail, budget=Budget(attempts=1))
    dead = ledger.task(ticket.task)
    assert dead.status is S.FAILED
    judge = Actor(Role.JUDGE, "triage", ticket.run, ticket.fence)
    praise = finding(ledger, ticket, F.PASSED, kind="evaluator", score=1.0)
    ledger.record(ticket, [praise], actor=judge)  # a recommendation, kept and shown
    tries: list[Callable[[], object]] = [
        lambda: ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED)),
        *(
            partial(ledger.review, ticket.task, accept=True, actor=who, reason="it looks done")
            for who in (judge, LEAD, agent_of(ticket))
        ),
    ]
    for attempt in tries:
        with pytest.raises(Refused):
            attempt()
    after = ledger.task(ticket.task)
    assert (after.status, after.verdict, after.cell) == (S.FAILED, dead.verdict, dead.cell)
