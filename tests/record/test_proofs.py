"""The ledger accepts a success only with a proof that its own findings carry."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.record.lives import BASE, ended, finding, started, verdict
from truegreen.errors import Refused
from truegreen.facts import Proof, Ticket
from truegreen.model import (
    ExitDetail,
    FindingOutcome,
    Level,
    NoopPolicy,
    Outcome,
    ProofMode,
    ProofStatus,
    TaskStatus,
)
from truegreen.record.ledger import Ledger

DATABASES = ("sqlite",)

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
SHOWN, WAIVED, MISSING = ProofStatus.SHOWN, ProofStatus.WAIVED, ProofStatus.MISSING


def checked(
    ledger: Ledger,
    before: FindingOutcome | None = FAILED,
    detail: ExitDetail = ExitDetail.COMPLETED,
    digest: str = "tree:left",
    **terms: Any,
) -> Ticket:
    """An ended run whose one gate passed."""
    ticket = started(ledger, **terms)
    ledger.end_run(ticket, ended(detail, digest=digest))
    ledger.record(ticket, [finding(ledger, ticket, PASSED, before=before, digest=digest)])
    return ticket


@pytest.mark.criterion("E31")
@pytest.mark.parametrize(
    ("proof", "why"),
    [
        (Proof(MISSING), "nothing shows"),
        (Proof(MISSING, ("gate:tests",)), "nothing shows"),
        (Proof(SHOWN, ()), "nothing shows"),
        (Proof(SHOWN, ("gate:other",)), "no finding proves it by gate:other"),
        (Proof(SHOWN, ("evaluator:tests",)), "no finding proves it by evaluator:tests"),
        (Proof(SHOWN, ("gate:tests", "review:qa")), "no finding proves it by review:qa"),
        (Proof(WAIVED, ("regression",)), "waives none"),
        (Proof(WAIVED, ("noop",)), "waives none"),
    ],
)
def test_a_proof_that_the_findings_do_not_carry_is_refused(
    ledger: Ledger, proof: Proof, why: str
) -> None:
    ticket = checked(ledger)
    with pytest.raises(Refused, match=why):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, proof=proof))
    assert ledger.task(ticket.task).status is TaskStatus.PENDING_EVAL
    assert ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED)).proof is SHOWN


@pytest.mark.parametrize("before", [None, PASSED, FindingOutcome.INCONCLUSIVE])
def test_a_gate_that_did_not_fail_before_is_no_proof(
    ledger: Ledger, before: FindingOutcome | None
) -> None:
    ticket = checked(ledger, before)
    with pytest.raises(Refused, match="no finding proves it by gate:tests"):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))


def test_a_level_below_what_the_contract_requires_is_refused(ledger: Ledger) -> None:
    ticket = checked(ledger, require=Level.A3)
    with pytest.raises(Refused, match="requires level A3, not A2"):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
    enough = msgspec.structs.replace(verdict(ledger, ticket, Outcome.PASSED), level=Level.A3)
    assert ledger.judge(ticket, enough).status is TaskStatus.SUCCEEDED


def test_only_the_contract_waives_a_proof(ledger: Ledger) -> None:
    ticket = checked(ledger, PASSED, proof=ProofMode.REGRESSION)
    waived = verdict(ledger, ticket, Outcome.PASSED, proof=Proof(WAIVED, ("regression",)))
    task = ledger.judge(ticket, waived)
    assert (task.status, task.proof, task.noop) == (TaskStatus.SUCCEEDED, WAIVED, False)


@pytest.mark.parametrize(
    ("detail", "digest", "policy", "accepted"),
    [
        (ExitDetail.NOOP, BASE, NoopPolicy.ACCEPT, True),
        (ExitDetail.NOOP, BASE, NoopPolicy.REVIEW, False),
        (ExitDetail.NOOP, "tree:left", NoopPolicy.ACCEPT, False),
        (ExitDetail.COMPLETED, BASE, NoopPolicy.ACCEPT, False),
    ],
)
def test_a_noop_waives_only_declared_unchanged_and_accepted(
    ledger: Ledger, detail: ExitDetail, digest: str, policy: NoopPolicy, accepted: bool
) -> None:
    ticket = checked(ledger, PASSED, detail, digest, noop=policy)
    nothing = Proof(WAIVED, ("noop",))
    given = verdict(ledger, ticket, Outcome.PASSED, digest=digest, proof=nothing)
    if not accepted:
        with pytest.raises(Refused, match="waives none"):
            ledger.judge(ticket, given)
        return
    task = ledger.judge(ticket, given)
    assert (task.status, task.noop) == (TaskStatus.SUCCEEDED, True)
