"""Green needs every check that the frozen contract names, and the scores that it asks for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.record.lives import (
    OPERATOR,
    agent_of,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
    verdict,
)
from truegreen.contract import Duration, Evaluator, Gate, GateKind
from truegreen.errors import Forbidden, Refused, Terminated
from truegreen.facts import Claim, Proof, Ticket
from truegreen.model import (
    Cell,
    ClaimKind,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Outcome,
    ProofStatus,
    TaskStatus,
)
from truegreen.record.ledger import Ledger
from truegreen.record.rows import Task

DATABASES = ("sqlite",)

PASSED = FindingOutcome.PASSED
F, S = FindingOutcome, TaskStatus
GATES = (
    Gate(name="tests", kind=GateKind.RUN, command=("pytest",)),
    Gate(name="lint", kind=GateKind.RUN, command=("ruff",)),
    Gate(name="docs", kind=GateKind.RUN, command=("mkdocs",), required=False),
)
JUDGE = Evaluator(name="reviewer", command=("judge",), threshold=0.70, rescue_threshold=0.80)


def tried(ledger: Ledger, ticket: Ticket, *found: dict[str, Any]) -> TaskStatus:
    """Record findings and ask for a pass."""
    ledger.record(ticket, [finding(ledger, ticket, **each) for each in found])
    last = found[-1]
    by = f"{'evaluator' if last.get('kind') == 'evaluator' else 'gate'}:{last['check']}"
    proof = Proof(ProofStatus.SHOWN, (by,))
    return ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, proof=proof)).status


@pytest.mark.criterion("E23")
def test_a_pass_without_one_of_the_required_gates_is_refused(ledger: Ledger) -> None:
    ticket = started(ledger, gates=GATES)
    declared(ledger, ticket)
    with pytest.raises(Refused, match="lint"):
        tried(ledger, ticket, {"check": "tests", "outcome": PASSED})
    with pytest.raises(Refused, match="lint"):
        tried(ledger, ticket, {"check": "lint", "outcome": PASSED, "binding": False})
    assert ledger.task(ticket.task).status is TaskStatus.PENDING_EVAL
    assert tried(ledger, ticket, {"check": "lint", "outcome": PASSED}) is TaskStatus.SUCCEEDED


@pytest.mark.criterion("E13")
@pytest.mark.parametrize("gates", [(), GATES[2:]])
def test_a_contract_that_requires_no_check_is_never_green_by_a_check(
    ledger: Ledger, gates: tuple[Gate, ...]
) -> None:
    ticket = started(ledger, gates=gates)
    declared(ledger, ticket)
    with pytest.raises(Refused, match="the contract names none"):
        tried(ledger, ticket, {"check": "docs", "outcome": PASSED})
    unverified = ledger.judge(ticket, verdict(ledger, ticket, Outcome.UNKNOWN))
    assert (unverified.status, unverified.cell) == (TaskStatus.NEEDS_REVIEW, Cell.UNVERIFIED)


@pytest.mark.criterion("F06", "F12")
@pytest.mark.parametrize(
    ("score", "enough"),
    [(None, False), (0.0, False), (0.6999, False), (0.70, True), (1.0, True)],
)
def test_a_score_below_the_threshold_never_passes(
    ledger: Ledger, score: float | None, enough: bool
) -> None:
    ticket = started(ledger, evaluators=(JUDGE,))
    declared(ledger, ticket)
    given = {"check": "reviewer", "kind": "evaluator", "outcome": PASSED, "score": score}
    if enough:
        assert tried(ledger, ticket, given) is TaskStatus.SUCCEEDED
        return
    with pytest.raises(Refused, match="reviewer"):
        tried(ledger, ticket, given)


@pytest.mark.criterion("F07")
@pytest.mark.parametrize(("score", "enough"), [(0.75, False), (0.80, True)])
def test_a_rescue_needs_its_own_score(ledger: Ledger, score: float, enough: bool) -> None:
    ticket = started(ledger, evaluators=(JUDGE,))
    ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED))
    given = {"check": "reviewer", "kind": "evaluator", "outcome": PASSED, "score": score}
    if enough:
        assert tried(ledger, ticket, given) is TaskStatus.SUCCEEDED
        assert ledger.task(ticket.task).rescued
        return
    with pytest.raises(Refused, match="reviewer"):
        tried(ledger, ticket, given)


@pytest.mark.criterion("F33")
def test_a_shadow_evaluator_is_not_required(ledger: Ledger) -> None:
    shadow = Evaluator(name="shadow", command=("judge",), shadow=True)
    ticket = started(ledger, gates=GATES[:1], evaluators=(shadow,))
    declared(ledger, ticket)
    assert tried(ledger, ticket, {"check": "tests", "outcome": PASSED}) is TaskStatus.SUCCEEDED


@pytest.mark.criterion("A10")
@pytest.mark.parametrize("early", [True, False])
def test_an_agent_that_says_failed_is_believed(ledger: Ledger, early: bool) -> None:
    ticket = started(ledger, opened(ledger).id)
    claim = Claim(kind=ClaimKind.FAILED, reason="0 issues triaged", extra={"issues_triaged": 0})
    if early:
        ledger.declare(ticket, claim, actor=agent_of(ticket))
    task = ledger.end_run(ticket, ended(), claim=None if early else claim)
    assert (task.exit_reason, task.exit_detail) == (ExitReason.DONE, ExitDetail.DECLARED_FAILURE)
    assert (task.status, task.cell) == (TaskStatus.QUEUED, Cell.REPORTED_FAILURE)


@pytest.mark.criterion("M11")
def test_what_was_refused_about_no_task_can_be_read_too(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR)
    ledger.terminate_agent(agent.id, actor=OPERATOR)
    for _ in range(3):
        with pytest.raises(Terminated):
            ledger.send(agent.id, "wake up", actor=OPERATOR)
    (refusal,) = ledger.refusals()
    assert (refusal.verb, refusal.code, refusal.times) == ("send", "terminated", 3)


# -- independence, and what nobody decides ------------------------------------------------------


@pytest.mark.criterion("F13", "F16")
@pytest.mark.parametrize("identity", [{"session": "s-1"}, {"definition": "sha256:doer"}])
def test_an_answer_out_of_the_doers_own_mouth_is_refused(
    ledger: Ledger, identity: dict[str, str]
) -> None:
    agent = ledger.register_agent("coder", "sha256:doer", actor=OPERATOR)
    ticket = started(ledger, agent_id=agent.id, evaluators=(JUDGE,))
    ledger.end_run(ticket, ended(session="s-1"))
    mine = {"check": "reviewer", "kind": "evaluator", "score": 1.0}
    own = finding(ledger, ticket, F.PASSED, **mine, evidence={"identity": identity})
    with pytest.raises(Forbidden, match="is the doer itself"):
        ledger.record(ticket, [own])
    others = {"identity": {"session": "s-2", "definition": "sha256:judge"}}
    assert ledger.record(ticket, [finding(ledger, ticket, F.PASSED, **mine, evidence=others)])


@pytest.mark.criterion("F08")
def test_only_what_has_waited_too_long_by_its_own_terms_fails(ledger: Ledger) -> None:
    def undecided(**terms: Any) -> Task:
        ticket = started(ledger, **terms)
        declared(ledger, ticket)
        return judged(ledger, ticket, Outcome.INCONCLUSIVE)

    patient = undecided()
    late = undecided(review_within=Duration(1))
    early = undecided(review_within=Duration(3_600_000_000))
    (failed,) = ledger.expire_reviews()
    assert (failed.id, failed.status, failed.attempts) == (late.id, S.FAILED, late.attempts)
    event = ledger.events(late.id)[-1].event
    assert (event.event, event.level, event.actor) == ("fail", "warn", "system:truegreen")
    assert [ledger.task(t.id).status for t in (patient, early)] == [S.NEEDS_REVIEW] * 2
    assert ledger.expire_reviews() == []
    with pytest.raises(Forbidden):
        ledger.expire_reviews(actor=OPERATOR)
