"""What should not be: QA that did not check, chains that broke, green that nothing carries.

It looks again at what the record decided, by the same rules, and rewrites nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from truegreen.evidence import evidence_in
from truegreen.model import ExitReason, FindingOutcome, TaskStatus
from truegreen.outlets.audit.looking import DECIDED, QA, Look
from truegreen.outlets.audit.report import Case, Cases, Qa, Rate
from truegreen.outlets.audit.tallying import Listing
from truegreen.record.ledger.audits import AuditedFinding
from truegreen.record.ledger.terms import Terms
from truegreen.record.ledger.verdicts import WITHOUT_EVIDENCE
from truegreen.record.rows import Task

QUICKEST_US = 2_000_000
"""No agent reads a change and tries it in less."""
_OVER = (
    *(TaskStatus.FAILED, TaskStatus.NEEDS_REVIEW, TaskStatus.BLOCKED),
    *(TaskStatus.CANCELED, TaskStatus.TERMINATED),
)


class Doubts:
    """QA, chains and promotions, run by run."""

    def __init__(self) -> None:
        self._chained = self._complete = 0
        self._without_evidence, self._same, self._quick = Listing(), Listing(), Listing()
        self._missing, self._without_fix, self._promotions = Listing(), Listing(), Listing()

    def take(self, look: Look) -> None:
        """One more run."""
        reviews = look.of_kind(QA)
        for review in reviews:
            self._take_review(look, review)
        self._take_chain(look, reviews)
        if look.row.run.latest and look.row.run.status is TaskStatus.SUCCEEDED:
            why = unfounded(look)
            if why:
                self._promotions.add(look, why)

    def _take_review(self, look: Look, review: AuditedFinding) -> None:
        passed = review.outcome is FindingOutcome.PASSED
        bare = passed and not evidence_in(review.shown.get("evidence"))
        if bare or review.shown.get(WITHOUT_EVIDENCE):
            self._without_evidence.add(look, f"{review.judge} passed it and shows nothing")
        if _is_author(look, review):
            self._same.add(look, f"{review.judge} reviewed its own work")
        if review.judge.startswith("qa:") and review.duration_us < QUICKEST_US:
            seconds = review.duration_us / 1e6
            self._quick.add(look, f"{review.judge} took {seconds:.1f} s")

    def _take_chain(self, look: Look, reviews: list[AuditedFinding]) -> None:
        run = look.row.run
        if not run.latest:
            return
        green = run.status is TaskStatus.SUCCEEDED
        due = green and bool(run.role) and run.role in run.terms.qa.roles
        if not (reviews or due or run.status is TaskStatus.PENDING_QA):
            return
        self._chained += 1
        last = reviews[-1].outcome if reviews else None
        self._complete += last in DECIDED
        if green and due and last is not FindingOutcome.PASSED and not run.overridden:
            self._missing.add(look, "green without the QA that its role needs")
        if last is FindingOutcome.FAILED and run.status in _OVER:
            self._without_fix.add(look, f"QA failed it, and it is {run.status}")

    def qa(self, unattended: Iterable[Task]) -> Qa:
        """Whether QA really checked; `unattended` are tasks whose review nobody carries on."""
        waiting = Listing()
        for task in unattended:
            why = "waits for QA, and no review of it is open"
            waiting.put(Case(task=task.id, title=task.title, why=why, at=task.updated_at))
        return Qa(
            chains=Rate(self._complete, self._chained),
            without_evidence=self._without_evidence.cases(),
            same_identity=self._same.cases(),
            too_quick=self._quick.cases(),
            missing=self._missing.cases(),
            unattended=waiting.cases(),
            without_fix=self._without_fix.cases(),
        )

    def promotions(self) -> Cases:
        """Green that its findings don't carry."""
        return self._promotions.cases()


def _is_author(look: Look, review: AuditedFinding) -> bool:
    """Whether the reviewer is the author, by its definition or by its conversation."""
    run = look.row.run
    marked = review.judge.rpartition("@")[2]
    own = run.definition.rpartition(":")[2]
    told = review.shown.get("identity")
    session = str(told.get("session", "")) if isinstance(told, dict) else ""
    same = "@" in review.judge and bool(own) and own.startswith(marked)
    return same or review.judge == review.judged or bool(session and session == run.session)


def unfounded(look: Look) -> str:
    """Why a green task's findings don't carry it; empty where they do."""
    run = look.row.run
    mine = [f for f in look.checks if f.digest == run.digest and f.kind != QA]
    if look.by_person:
        red = [f.check for f in mine if f.outcome is FindingOutcome.FAILED]
        return f"{red[0]} failed, and no override says so" if red and not run.overridden else ""
    if run.qa_of_key is not None:
        return ""
    terms = run.terms
    required = _required(terms)
    if not required:
        return "nothing had to pass, and nobody accepted it"
    rescue = run.exit_reason is not ExitReason.DONE
    troubles = [_trouble(name, mine, terms, rescue=rescue) for name in required]
    return next(filter(None, troubles), "")


def _required(terms: Terms) -> list[str]:
    gates = [gate.name for gate in terms.gates if gate.required]
    return gates + [e.name for e in terms.evaluators if e.required and not e.shadow]


def _trouble(name: str, found: list[AuditedFinding], terms: Terms, *, rescue: bool) -> str:
    mine = [f for f in found if f.check == name]
    if not mine:
        return f"{name} was never asked about what it left"
    if any(f.outcome is FindingOutcome.FAILED for f in mine):
        return f"{name} failed"
    last = mine[-1]
    if last.outcome is not FindingOutcome.PASSED:
        return f"{name} is {last.outcome}"
    needed = terms.threshold(name, rescue=rescue)
    if needed is not None and (last.score is None or last.score < needed):
        score = "no score" if last.score is None else f"{last.score:.4f}"
        return f"{name} passed it with {score}, below {needed:.2f}"
    return ""
