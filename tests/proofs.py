"""Tasks whose verdicts differ in the three answers: checks, level, proof."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.record.lives import BASE, OPERATOR, declared, ended, finding, judged, started, verdict
from truegreen.facts import Claim, Proof, Ticket
from truegreen.model import (
    ClaimKind,
    ExitDetail,
    FindingOutcome,
    Level,
    NoopPolicy,
    Outcome,
    Phase,
    ProofMode,
    ProofStatus,
)
from truegreen.record.ledger import Ledger

F, D = FindingOutcome, ExitDetail
COUNTED: dict[str, Any] = {
    "transition": "fail_to_pass",
    "transitions": {"pass_to_pass": 209, "fail_to_pass": 3},
}
"""What a gate that counts its tests says about them."""
EDITED: dict[str, Any] = {
    "tampered": ["changed tests/test_calc.py"],
    "tampering": "restore",
    "tampered_diff": (
        "--- a/tests/test_calc.py\n+++ b/tests/test_calc.py\n@@ -1,2 +1,2 @@\n"
        " def test_add():\n-    assert add(2, 3) == 5\n+    assert add(2, 3) == 4\n"
    ),
}
"""What a gate says that found its protected tests edited."""


def baseline(ledger: Ledger, ticket: Ticket, outcome: FindingOutcome) -> None:
    before = finding(ledger, ticket, outcome, digest=BASE, phase=Phase.BASELINE, binding=False)
    ledger.record(ticket, [before])


def proven(ledger: Ledger) -> str:
    """A task whose gate failed on the base, which the record has, and passes now."""
    ticket = started(ledger)
    baseline(ledger, ticket, F.FAILED)
    declared(ledger, ticket)
    return judged(ledger, ticket, Outcome.PASSED).id


def regression_only(ledger: Ledger) -> str:
    return regression(ledger, started(ledger, proof=ProofMode.REGRESSION))


def regression(ledger: Ledger, ticket: Ticket, *, ended_already: bool = False) -> str:
    """A task that asks only that nothing broke, and nothing did."""
    if not ended_already:
        declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED, before=F.PASSED)])
    waived = Proof(ProofStatus.WAIVED, ("regression",), "only that nothing broke")
    return ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, proof=waived)).id


def noop(ledger: Ledger) -> str:
    ticket = started(ledger, noop=NoopPolicy.ACCEPT)
    ledger.end_run(ticket, ended(D.NOOP, digest=BASE), claim=Claim(kind=ClaimKind.NOOP))
    passed = finding(ledger, ticket, F.PASSED, before=F.PASSED, digest=BASE)
    ledger.record(ticket, [passed])
    waived = Proof(ProofStatus.WAIVED, ("noop",), "nothing to do")
    given = verdict(ledger, ticket, Outcome.PASSED, proof=waived, digest=BASE)
    return ledger.judge(ticket, given).id


def accepted_by_person(ledger: Ledger) -> str:
    """Every check passed at too low a level, and a person looked at it."""
    ticket = started(ledger, require=Level.A3)
    declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED, level=Level.A2)])
    weak = verdict(
        ledger,
        ticket,
        Outcome.INCONCLUSIVE,
        reason="weak_evidence: level A2, and A3 is required",
        require=Level.A3,
    )
    ledger.judge(ticket, weak)
    return ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="read it").id


def counted(
    ledger: Ledger, ticket: Ticket | None = None, *, ended_already: bool = False, **evidence: Any
) -> str:
    """A task whose gate counted which tests turned from failing to passing."""
    ticket = ticket or started(ledger)
    if not ended_already:
        declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED, evidence={**COUNTED, **evidence})])
    shown = Proof(ProofStatus.SHOWN, ("gate:tests",), "tests: 3 fail-to-pass, 209 pass-to-pass")
    return ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, proof=shown)).id


def weak(ledger: Ledger, ticket: Ticket | None = None, *, ended_already: bool = False) -> str:
    """Every check passed, at a level below the required one."""
    ticket = ticket or started(ledger)
    if not ended_already:
        declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED, level=Level.A1)])
    given = verdict(
        ledger,
        ticket,
        Outcome.INCONCLUSIVE,
        reason="weak_evidence: level A1, and A2 is required: the agent wrote the check",
        proof=Proof(ProofStatus.SHOWN, ("gate:tests",), "tests: failed before, passes now"),
    )
    return ledger.judge(ticket, replace(given, level=Level.A1)).id


def unproven(ledger: Ledger, ticket: Ticket | None = None, *, ended_already: bool = False) -> str:
    """Every check passed, and each of them did so before the agent started."""
    ticket = ticket or started(ledger)
    if not ended_already:
        declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED, before=F.PASSED)])
    why = "tests passed before the agent started, too. Name a check that fails without the work"
    given = verdict(
        ledger,
        ticket,
        Outcome.INCONCLUSIVE,
        reason=f"unproven: {why}",
        proof=Proof(ProofStatus.MISSING, (), why),
    )
    return ledger.judge(ticket, given).id
