"""The end of a QA review: it is done when its verdict is given, whatever that was.

It says nothing about the work itself; the task that was reviewed has its own verdict.
"""

from __future__ import annotations

import msgspec

from truegreen.contract import read_contract
from truegreen.facts import Finding, Ticket, Verdict
from truegreen.model import FindingOutcome, Level, Outcome, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.terms import QA_VERDICT
from truegreen.record.rows import Task
from truegreen.work.gates.output import one_line

_REASON_CHARACTERS = 1000


def close_review(ledger: Ledger, ticket: Ticket, *, given: bool, reason: str) -> Task:
    """Write down whether a review's run gave its verdict; without one it is tried again."""
    review = ledger.dossier(ticket.task)
    terms, digest = review.task.contract_digest, review.runs[-1].digest
    reason = one_line(reason, _REASON_CHARACTERS)
    finding = Finding(
        check=QA_VERDICT,
        kind="qa",
        outcome=FindingOutcome.PASSED if given else FindingOutcome.FAILED,
        reason=reason,
        digest=digest,
        contract_digest=terms,
        judge="truegreen:qa",
        judged=read_contract(review.contract).agent,
        level=Level.A1,
    )
    ledger.record(ticket, [finding])
    verdict = Verdict(
        outcome=Outcome.PASSED if given else Outcome.FAILED,
        reason=reason,
        digest=digest,
        contract_digest=terms,
        level=Level.A1,
    )
    return ledger.judge(ticket, verdict)


def close_abandoned(ledger: Ledger, ticket: Ticket) -> Task:
    """Close a review whose supervisor died, before or after the verdict was given."""
    original = ledger.dossier(ledger.reviewed(ticket.task))
    told = [msgspec.json.decode(row.evidence).get("review") for row in original.findings]
    given = ticket.task in told and original.task.status is not TaskStatus.PENDING_QA
    words = "gave its verdict, then" if given else "gave no verdict:"
    return close_review(ledger, ticket, given=given, reason=f"{words} its supervisor died")
