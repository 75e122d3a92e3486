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
    Outcome,
    Phase,
    RunStatus,
    TaskStatus,
)

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


class VerdictPart(Part, frozen=True, kw_only=True):
    """What the checks concluded about a run, how far that reaches, and what it does not prove."""

    outcome: Outcome
    level: Level | None
    unproven: str
    reason: str
    at: datetime | None


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
    return [*_of_types(statement), *_of_digests(statement), *_of_green(statement)]


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
