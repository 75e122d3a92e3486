"""One run as the audit sees it: what checks answered, who accepted it, whether that stands."""

from __future__ import annotations

from truegreen.contract import GateKind
from truegreen.model import (
    OVER,
    Cell,
    ClaimKind,
    ExitReason,
    FindingOutcome,
    Outcome,
    Phase,
    TaskStatus,
)
from truegreen.record.ledger.audits import Audited, AuditedFinding
from truegreen.tuples import NamedTuple

CLAIM, EVALUATOR, PERSON, QA = "claim", "evaluator", "person", "qa"
GATES = frozenset(map(str, GateKind))
DECIDED = (FindingOutcome.PASSED, FindingOutcome.FAILED)


class Look(NamedTuple):
    """What can be said about a run from its row and its findings alone."""

    row: Audited
    checks: list[AuditedFinding]
    """What gates, evaluators and QA found about what it left, as far as it binds."""
    people: list[AuditedFinding]
    finished: bool
    """The task's work is over with this run."""
    said_done: bool
    """The agent declared that the work is done, or that there was none to do, and did not admit a
    failure in its last words."""
    checked: bool
    """Some check gave an answer."""
    red: bool
    """Some check found the work undone."""
    accepted: bool
    """It was called green, whatever became of that."""
    by_person: bool
    """It was a person who accepted it."""
    overturned: bool
    """It was accepted, and that turned out wrong."""

    @property
    def by_checks(self) -> bool:
        """Whether it was accepted because checks passed, and for no other reason."""
        return self.accepted and self.checked and not self.by_person

    @property
    def silent_exit(self) -> bool:
        """Whether it ended without a declaration."""
        return self.row.run.exit_reason is not ExitReason.DONE

    def of_kind(self, *kinds: str) -> list[AuditedFinding]:
        """What was found by checks of some kinds, about what the run left."""
        return [f for f in self.row.findings if f.kind in kinds and f.phase is not Phase.BASELINE]


def look_at(row: Audited) -> Look:
    """A run with its findings sorted."""
    run = row.run
    mine = [f for f in row.findings if f.phase is not Phase.BASELINE and f.binding]
    checks = [f for f in mine if f.kind not in (CLAIM, PERSON)]
    people = [f for f in mine if f.kind == PERSON]
    accepted = run.verdict is Outcome.PASSED
    stands = run.latest and run.status is TaskStatus.SUCCEEDED
    return Look(
        row,
        checks,
        people,
        finished=run.latest and run.cell in OVER,
        said_done=run.claim in (ClaimKind.DONE, ClaimKind.NOOP)
        and run.cell is not Cell.REPORTED_FAILURE,
        checked=any(f.outcome in DECIDED for f in checks),
        red=any(f.outcome is FindingOutcome.FAILED for f in checks),
        accepted=accepted,
        by_person=accepted and any(f.outcome is FindingOutcome.PASSED for f in people),
        overturned=accepted and run.falsified and not stands,
    )


def is_review(row: Audited) -> bool:
    """Whether the run is itself a QA review; those are looked at with what they reviewed."""
    return row.run.qa_of_key is not None
