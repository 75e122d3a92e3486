"""The shape of every document that the API answers with, for its description and its tests.

Nothing is built from these: documents come from the rooms that make them for every face. A test
reads real answers into these shapes, and refuses a key too many or too few.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from truegreen.contract.waits import WaitKind
from truegreen.facts import AgentKind
from truegreen.model import (
    AgentStatus,
    Cell,
    EndedBy,
    EventLevel,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    Mode,
    Outcome,
    Phase,
    ProofStatus,
    RunStatus,
    TaskStatus,
)
from truegreen.record.holds import Hold
from truegreen.record.ledger.answers import Asks

Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Pair = Annotated[list[int], Meta(min_length=2, max_length=2, description="used, of so many")]


class Shape(Struct, frozen=True, forbid_unknown_fields=True):
    """A document with these keys, and no others."""


class Error(Shape, frozen=True):
    """What went wrong, and what would be accepted instead."""

    code: str
    message: str
    allowed: list[str]
    docs: str


class Refusal(Shape, frozen=True):
    """The body of everything that is refused."""

    error: Error


class Health(Shape, frozen=True):
    """The server lives."""

    status: str


# --- tasks


class Verdict(Shape, frozen=True):
    """What checks found, in short."""

    outcome: Outcome
    level: Level | None
    reason: str


class Activity(Shape, frozen=True):
    """What is seen of a run under way, beside its status."""

    pace: str
    run: str
    active_at: Instant | None


class Counters(Shape, frozen=True):
    """What is left of a task's budget."""

    attempts: Pair
    qa_rounds: Pair
    deferrals: Pair


class Head(Shape, frozen=True):
    """A task's two axes, and what belongs to them."""

    id: str
    title: str
    task_status: TaskStatus
    run_status: RunStatus | None
    cell: Cell | None
    exit_reason: ExitReason | None
    exit_detail: ExitDetail | None
    rescued: bool
    sealed_at: Instant | None
    role: str
    run_mode: Mode
    badges: list[str]
    fence: int
    attempt: int
    priority: int
    contract_digest: str


class Need(Shape, frozen=True):
    """A task that is waited for."""

    task: str
    status: TaskStatus | None


class Condition(Shape, frozen=True):
    """Something else that a task waits for, or has waited for."""

    id: str
    kind: WaitKind
    what: str
    by: str
    since: Instant
    met_at: Instant | None
    met_by: str | None
    fact: Annotated[dict[str, Any], Meta(description="what is known of how it came")]


class Announced(Shape, frozen=True):
    """What was said, and the tasks that had waited for it."""

    topic: str
    tasks: list[str]


class Freeze(Shape, frozen=True):
    """Who has frozen the store: nothing starts."""

    by: str
    reason: str
    since: Instant


class Brief(Head, frozen=True):
    """A task as it stands in a list."""

    budget: Counters
    verdict: Verdict
    activity: Activity | None
    created_at: Instant
    updated_at: Instant
    waits_for: list[Need]
    hold: Hold | None


class TaskPage(Shape, frozen=True):
    """Some tasks, and where the next ones begin."""

    tasks: list[Brief]
    after: str | None
    silent_failures: int
    total: int
    frozen: Freeze | None


class Budget(Counters, frozen=True):
    """What is left of a task's budget, and of its latest run's."""

    reentries: Pair
    check_errors: Pair


class Statement(Shape, frozen=True):
    """One checkable sentence of a claim, and what was observed."""

    text: str
    kind: str
    outcome: str
    observed: str


class Claim(Shape, frozen=True):
    """What the agent says about its work; it decides nothing."""

    kind: str
    reason: str
    statements: list[Statement]
    extra: dict[str, Any]
    source: str
    at: Instant


class Finding(Shape, frozen=True):
    """One check's answer."""

    id: str
    check: str
    kind: str
    phase: Phase
    outcome: FindingOutcome
    before: FindingOutcome | None
    level: Level
    score: float | None
    counts: dict[str, int]
    reason: str
    evidence: dict[str, Any]
    digest: str
    judge: str
    judged: str
    isolation: str
    binding: bool
    unproven: str
    duration_s: float
    at: Instant


class Proof(Shape, frozen=True):
    """What shows that the work made the difference: which checks, or why nothing does."""

    status: ProofStatus
    by: list[str]
    reason: str


class Found(Shape, frozen=True):
    """What checks found about a run, in full."""

    outcome: Outcome
    level: Level | None
    checks: Outcome
    require: Level
    proof: Proof
    unproven: str
    reason: str
    digest: str
    findings: list[Finding]


class RunShown(Shape, frozen=True):
    """One attempt, as part of its task."""

    id: str
    attempt: int
    run_status: RunStatus
    exit_reason: ExitReason | None
    exit_detail: ExitDetail | None
    exit_code: int | None
    signal: int | None
    ended_by: EndedBy | None
    admission: str
    agent: str | None
    isolation: str
    usage: dict[str, Any]
    facts: dict[str, Any]
    cell: Cell | None
    claim: Claim | None
    verdict: Found | None
    fence: int
    base_digest: str
    created_at: Instant
    seen_at: Instant | None
    ended_at: Instant | None
    judged_at: Instant | None


class Run(RunShown, frozen=True):
    """One attempt."""

    task: str


class Agent(Shape, frozen=True):
    """A conversation that outlives its runs."""

    id: str
    kind: AgentKind
    name: str
    status: AgentStatus
    definition: str
    session: str | None
    terminated_at: Instant | None
    created_at: Instant
    updated_at: Instant


class Kept(Shape, frozen=True):
    """A late or conflicting write that was refused and kept as evidence."""

    run: str
    verb: str
    code: str
    actor: str
    message: str
    evidence: str
    times: int
    first_at: Instant
    last_at: Instant


class Event(Shape, frozen=True, rename={"from_": "from"}):
    """One line of the history."""

    id: str
    task: str | None
    run: str | None
    revision: int
    at: Instant
    level: EventLevel
    event: str
    from_: TaskStatus | None
    to: TaskStatus | None
    actor: str
    reason: str
    fence: int
    idempotency_key: str | None
    data: dict[str, Any]
    hash: str | None


class EventPage(Shape, frozen=True):
    """Some of a task's events, oldest first, and the revision to go on from."""

    events: list[Event]
    after: int | None


class Unsent(Shape, frozen=True):
    """Something that an outlet could not say about a task, or gave up."""

    outlet: str
    state: Literal["unsaid", "given_up"]
    why: str
    at: Instant


class Asked(Shape, frozen=True):
    """What can be answered about a task; an answer names it, so that it is for nothing else."""

    id: str
    kind: Asks
    action: Annotated[str, Meta(description="what an approval is asked for")]
    digest: Annotated[str, Meta(description="the tree that it is about; empty where it is none")]
    asked_at: Instant


class Task(Head, frozen=True):
    """Everything about one task."""

    goal: str
    waits_for: list[Need]
    conditions: list[Condition]
    budget: Budget
    claim: Claim | None
    verdict: Found | None
    layers: dict[str, dict[str, Any]]
    activity: Activity | None
    question: Asked | None
    runs: list[RunShown]
    agents: list[Agent]
    refusals: list[Kept]
    unsent: list[Unsent]
    events: list[Event]
    next: list[str]
    created_by: str
    created_at: Instant
    updated_at: Instant
    settled_at: Instant | None


class Termination(Shape, frozen=True):
    """What was ended for ever; in a rehearsal, what would be."""

    task: str | None
    agents: list[str]
    outcome: str
    prior_status: str
    already_terminated: bool
    fence: int
    runs: list[str]
    tasks: list[str]
    killed: list[int] | None = None
    survivors: list[int] | None = None
    complete: bool | None = None
    unconfirmed: list[str] | None = None
    elsewhere: list[dict[str, Any]] | None = None
    sealed: list[str] | None = None
    troubles: list[str] | None = None
    retired: list[str] | None = None
    inside: list[str] | None = None
    lost: Annotated[list[int], Meta(description="unread messages, wake-ups")] | None = None
    dry_run: bool = False
    would: dict[str, Any] | None = None


# --- the agent's own


class Standing(Shape, frozen=True):
    """How the task of a run stands now."""

    task: str
    run: str
    task_status: TaskStatus
    title: str


class Declared(Standing, frozen=True):
    """What was written down of the agent's word."""

    claim: str


class Checkpoint(Standing, frozen=True):
    """What became of a question; null as long as nobody has answered."""

    approved: bool | None


class Artifact(Shape, frozen=True):
    """Something that an agent handed in."""

    name: str
    sha256: str
    size: int
    at: Instant


class Artifacts(Shape, frozen=True):
    """What a run handed in, oldest first."""

    artifacts: list[Artifact]
