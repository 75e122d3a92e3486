"""What a receipt says: an in-toto statement about a settled task, and whether it agrees.

The shapes here are public. A field may be added with a default; none is renamed. This room opens no
store and signs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from truegreen.contract import digest_of
from truegreen.facts import Statement as Said
from truegreen.model import (
    Cell,
    EndedBy,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    Mode,
    NoopPolicy,
    Outcome,
    Phase,
    ProofMode,
    ProofStatus,
    RunStatus,
    TaskStatus,
)
from truegreen.outlets.answers import PERSON, WEAK_ISOLATION, Check, answered, standing

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://truegreen.dev/verdict/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
TREE, COMMIT, CONTRACT = "tree", "commit", "contract"
"""The names of what a statement can be about."""


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Some of a statement; a key that nobody knows is refused."""


class Subject(Part, frozen=True, kw_only=True):
    """Something that the statement is about, by its digests."""

    name: str
    digest: dict[str, str]


class TaskPart(Part, frozen=True, kw_only=True):
    """The task, and what it wears for ever."""

    id: str
    title: str
    status: TaskStatus
    cell: Cell | None
    role: str
    mode: Mode
    rescued: bool
    overridden: bool
    falsified: bool
    badges: tuple[str, ...]
    attempt: int
    attempts: tuple[int, int]
    created_by: str
    created_at: datetime
    settled_at: datetime | None
    sealed_at: datetime | None
    proof_mode: ProofMode | None = None
    noop: bool = False
    qa_review: bool = False
    """Whether the task is itself a QA review: it is done when it has given its verdict."""


class ProofPart(Part, frozen=True, kw_only=True):
    """What shows that the work made the difference: which findings, or why nothing does."""

    status: ProofStatus
    by: tuple[str, ...]
    reason: str


class VerdictPart(Part, frozen=True, kw_only=True):
    """What the checks concluded about a run, how far that reaches, and what it does not prove.

    `checks`, `level` beside `require`, and `proof` are the three answers. Receipts from before they
    were recorded have neither `checks` nor `require` nor `proof`.
    """

    outcome: Outcome
    level: Level | None
    unproven: str
    reason: str
    at: datetime | None
    checks: Outcome | None = None
    require: Level | None = None
    proof: ProofPart | None = None


class FindingPart(Part, frozen=True, kw_only=True):
    """One check's answer; what it printed is not here, but its digest is."""

    id: str
    check: str
    kind: str
    phase: Phase
    outcome: FindingOutcome
    before: FindingOutcome | None
    level: Level
    unproven: str
    score: float | None
    counts: dict[str, int]
    reason: str
    digest: str
    contract_digest: str
    evidence: str
    judge: str
    judged: str
    isolation: str
    binding: bool
    duration_us: int
    at: datetime


class ClaimPart(Part, frozen=True, kw_only=True):
    """What the agent said about its work, beside what was observed."""

    kind: str
    reason: str
    statements: tuple[Said, ...]
    extra: str
    source: str
    at: datetime


class AgentPart(Part, frozen=True, kw_only=True):
    """Who did the work."""

    id: str
    name: str
    definition: str


class OutputPart(Part, frozen=True, kw_only=True):
    """What the agent printed, by its size and digest."""

    size: int
    sha256: str
    truncated: bool


class RunPart(Part, frozen=True, kw_only=True):
    """One attempt: how it ended, what was said, what was found, what was concluded."""

    id: str
    attempt: int
    run_status: RunStatus
    exit_reason: ExitReason | None
    exit_detail: ExitDetail | None
    exit_code: int | None
    signal: int | None
    ended_by: EndedBy | None
    isolation: str
    agent: AgentPart | None
    base_digest: str
    digest: str
    commit: str | None
    output: OutputPart | None
    cell: Cell | None
    claim: ClaimPart | None
    verdict: VerdictPart
    findings: tuple[FindingPart, ...]
    started_at: datetime
    ended_at: datetime | None


class Acceptance(Part, frozen=True, kw_only=True):
    """What green rests on."""

    by: str
    level: Level
    digest: str
    contract: str
    findings: tuple[str, ...]


class ReviewPart(Part, frozen=True, kw_only=True):
    """A review by another agent: its task, and the verdict that ended the wait for it, and whose.

    How that task itself ended is no verdict about this one.
    """

    task: str
    verdict: Outcome | None
    by: str
    reason: str


class RefusalPart(Part, frozen=True, kw_only=True):
    """A late or conflicting write that was refused."""

    run: str
    verb: str
    code: str
    actor: str
    message: str
    evidence: str
    times: int
    first_at: datetime
    last_at: datetime


class ContractPart(Part, frozen=True, kw_only=True):
    """The terms that the task was frozen with: the digest is that of the text, byte for byte."""

    digest: str
    text: str


class HistoryPart(Part, frozen=True, kw_only=True):
    """Where the task's chain of events stood; `store` is the id of the store's first event."""

    store: str | None
    revision: int
    head: str
    unsigned: int


class Predicate(Part, frozen=True, kw_only=True):
    """All that is said about the subjects."""

    task: TaskPart
    verdict: VerdictPart
    contract: ContractPart
    runs: tuple[RunPart, ...]
    acceptance: Acceptance | None
    reviews: tuple[ReviewPart, ...]
    refusals: tuple[RefusalPart, ...]
    history: HistoryPart
    truegreen: str


class Statement(Part, frozen=True, kw_only=True):
    """The signed words."""

    type: str = msgspec.field(name="_type", default=STATEMENT_TYPE)
    subject: tuple[Subject, ...]
    predicate_type: str = msgspec.field(name="predicateType", default=PREDICATE_TYPE)
    predicate: Predicate

    @property
    def latest(self) -> RunPart | None:
        """The run that the verdict is about."""
        return self.predicate.runs[-1] if self.predicate.runs else None


def plain(statement: Statement) -> dict[str, Any]:
    """As dicts and lists, for whoever shows it."""
    document: dict[str, Any] = msgspec.to_builtins(statement)
    return document


def subjects_of(digest: str, commit: str | None, contract_digest: str) -> tuple[Subject, ...]:
    """What a statement is about: the tree, the commit that holds it, else the contract alone."""
    tree = re.fullmatch("tree:([0-9a-f]{40})", digest)
    if tree is None:
        known = contract_digest.removeprefix("sha256:")
        return (Subject(name=CONTRACT, digest={"sha256": known}),)
    about = [Subject(name=TREE, digest={"gitTree": tree[1]})]
    if commit:
        about.insert(0, Subject(name=COMMIT, digest={"gitCommit": commit}))
    return tuple(about)


def disagreements(statement: Statement) -> list[str]:
    """Where a statement contradicts itself: digests that should be one, findings that are none."""
    return [
        *_of_types(statement),
        *_of_digests(statement),
        *_of_green(statement),
        *_of_answers(statement),
    ]


def _of_types(statement: Statement) -> Iterator[str]:
    for name, found, known in (
        ("_type", statement.type, STATEMENT_TYPE),
        ("predicateType", statement.predicate_type, PREDICATE_TYPE),
    ):
        if found != known:
            yield f"{name} is {found!r}, not {known!r}"


def _of_digests(statement: Statement) -> Iterator[str]:
    predicate, run = statement.predicate, statement.latest
    frozen = predicate.contract.digest
    if digest_of(predicate.contract.text) != frozen:
        yield "the contract is not the one that its digest names"
    digest, commit = (run.digest, run.commit) if run else ("", None)
    if statement.subject != subjects_of(digest, commit, frozen):
        yield "the subject is not what the latest run left"
    for each in predicate.runs:
        for finding in each.findings:
            if finding.contract_digest != frozen:
                yield f"finding {finding.id} is about another contract"
            tree = each.base_digest if finding.phase is Phase.BASELINE else each.digest
            if finding.digest != tree:
                yield f"finding {finding.id} is about another tree than {each.id}"


def _of_green(statement: Statement) -> Iterator[str]:
    """Green names what it rests on, and that is here."""
    predicate, run = statement.predicate, statement.latest
    accepted = predicate.acceptance
    if run and predicate.verdict != run.verdict:
        yield "the verdict is not that of the latest run"
    if predicate.task.status is not TaskStatus.SUCCEEDED:
        return
    if accepted is None or run is None:
        yield "the task is called succeeded without an acceptance"
        return
    if (accepted.contract, accepted.digest) != (predicate.contract.digest, run.digest):
        yield "the acceptance is about another contract or another tree"
    if accepted.level != predicate.verdict.level:
        yield "the acceptance has another level than the verdict"
    here = {f.id: f for f in run.findings}
    missing = [name for name in accepted.findings if name not in here]
    if missing:
        yield f"the acceptance rests on findings that are not here: {', '.join(missing)}"
    passed = [f for f in run.findings if f.binding and f.outcome is FindingOutcome.PASSED]
    if not any(f.id in accepted.findings for f in passed):
        yield "the acceptance rests on no finding that passed"


# --- the three answers


REGRESSION, NOOP = "regression", "noop"
"""What a proof that the contract waives names instead of findings."""
_PROVES = {"evaluator": "evaluator", "qa": "review"}
_QA_ROLE = "qa"
_FRESH = ("exists", "json")
"""Kinds that ask for a new file: they may have passed on the base and count as failed there."""


def _of_answers(statement: Statement) -> Iterator[str]:
    """The three answers agree with the findings, with the contract and with the status."""
    predicate = statement.predicate
    terms = _terms(predicate.contract.text)
    for run in predicate.runs:
        yield from _of_baselines(run)
        yield from _of_proof(run)
    if any(run.verdict.proof for run in predicate.runs):
        yield from _of_terms(predicate, terms)
    if predicate.task.status is TaskStatus.SUCCEEDED and statement.latest:
        yield from _of_success(predicate.task, statement.latest, terms)


def _terms(text: str) -> dict[str, Any]:
    """The frozen terms; a text that is none has another digest, which is said elsewhere."""
    try:
        terms = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return terms if isinstance(terms, dict) else {}


def _of_baselines(run: RunPart) -> Iterator[str]:
    """What a finding says of the time before the agent is what was found then."""
    for finding in run.findings:
        known = [
            each.outcome
            for each in run.findings
            if each.phase is Phase.BASELINE and each.check == finding.check
        ]
        asked = finding.phase is not Phase.BASELINE and finding.kind not in _FRESH
        if asked and known and finding.before and finding.before not in known:
            yield (
                f"finding {finding.id} says that {finding.check} {finding.before} before the agent,"
                f" and the baseline says {known[-1]}"
            )


def _of_proof(run: RunPart) -> Iterator[str]:
    verdict, proof = run.verdict, run.verdict.proof
    if proof is None:
        if verdict.checks or verdict.require:
            yield f"the verdict of {run.id} has only some of the three answers"
        return
    if verdict.require is None or verdict.checks is None:
        yield f"the verdict of {run.id} has only some of the three answers"
    by_person = any(finding.kind == "person" for finding in run.findings)
    outcomes = [check.outcome for check in checks_in(run)]
    said = answered(verdict.outcome, verdict.reason, outcomes, by_person=by_person)
    if verdict.checks not in (None, said):
        yield f"the findings of {run.id} say that its checks are {said}, not {verdict.checks}"
    if proof.status is ProofStatus.SHOWN:
        known = _supported(run)
        wrong = [name for name in proof.by if name not in known]
        if wrong or not proof.by:
            yield f"no finding of {run.id} proves it by {', '.join(wrong) or 'anything'}"
    elif proof.status is ProofStatus.WAIVED:
        if proof.by not in ((REGRESSION,), (NOOP,)):
            yield f"the proof of {run.id} is waived by {', '.join(proof.by) or 'nothing'}"
    elif proof.by:
        yield f"the proof of {run.id} is missing and names {', '.join(proof.by)}"


def checks_in(run: RunPart) -> list[Check]:
    """How each check of a run stands."""
    return standing(
        Check(finding.check, finding.kind, finding.outcome)
        for finding in run.findings
        if finding.binding and finding.phase is not Phase.BASELINE
    )


def _supported(run: RunPart) -> set[str]:
    """What the findings of a run can prove: fail-to-pass, an evaluator, a review, a person."""
    known = set()
    for finding in run.findings:
        passed = finding.outcome is FindingOutcome.PASSED and finding.binding
        if not passed or finding.phase is Phase.BASELINE or finding.kind == "claim":
            continue
        if finding.kind == "person":
            known.add(f"{PERSON}{finding.judge.partition(':')[2]}")
        elif finding.kind in _PROVES:
            known.add(f"{_PROVES[finding.kind]}:{finding.check}")
        elif finding.before is FindingOutcome.FAILED:
            known.add(f"gate:{finding.check}")
    return known


def _of_terms(predicate: Predicate, terms: dict[str, Any]) -> Iterator[str]:
    """The answers were asked for as the contract says, and the badges say the same."""
    task = predicate.task
    if task.proof_mode != terms.get("proof", task.proof_mode or ProofMode.REQUIRED):
        yield "the proof mode is not that of the contract"
    for run in predicate.runs:
        if run.verdict.require and run.verdict.require != terms.get("require", run.verdict.require):
            yield f"the level that {run.id} requires is not that of the contract"
    for badge, worn in (
        ("regression_only", task.proof_mode is ProofMode.REGRESSION),
        ("noop", task.noop),
        ("degraded", predicate.runs[-1].isolation in WEAK_ISOLATION),
    ):
        if (badge in task.badges) != worn:
            yield f"the badge {badge} is {'missing' if worn else 'there without a cause'}"


def _of_success(task: TaskPart, run: RunPart, terms: dict[str, Any]) -> Iterator[str]:
    """A task that succeeded has the level that it needs, and a proof or the leave to do without."""
    verdict, proof = run.verdict, run.verdict.proof
    if verdict.outcome is not Outcome.PASSED:
        yield f"the task is called succeeded with the verdict {verdict.outcome}"
    if proof is None or verdict.require is None:
        if "proof" in terms:  # older contracts know no such word, and their receipts no answer
            yield "the task is called succeeded, and the three answers are not here"
        return
    if task.qa_review and terms.get("role") == _QA_ROLE:
        return
    by_person = any(name.startswith(PERSON) for name in proof.by)
    if not by_person and (verdict.level is None or verdict.level < verdict.require):
        yield f"level {verdict.level} is below the level {verdict.require} that is required"
    if proof.status is ProofStatus.MISSING:
        yield "the task is called succeeded without a proof"
    elif proof.status is ProofStatus.WAIVED and not _may_waive(task, run, terms):
        yield f"the contract does not waive the proof by {', '.join(proof.by)}"


def _may_waive(task: TaskPart, run: RunPart, terms: dict[str, Any]) -> bool:
    proof = run.verdict.proof
    if proof and proof.by == (REGRESSION,):
        return task.proof_mode is ProofMode.REGRESSION
    unchanged = run.digest == run.base_digest and run.exit_detail is ExitDetail.NOOP
    return task.noop and unchanged and terms.get("noop") == NoopPolicy.ACCEPT
