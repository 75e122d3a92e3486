"""The rows of the store as values; a row's fields are its SELECT list, so neither can drift."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from truegreen.facts import AgentKind, Claim, Finding, Statement, WakeCause, WakeState
from truegreen.model import (
    AgentStatus,
    Cell,
    ClaimKind,
    Disposition,
    EndedBy,
    EventLevel,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    InboxState,
    Level,
    Mode,
    Outcome,
    Phase,
    Role,
    RunStatus,
    Severity,
    TaskStatus,
)

R = TypeVar("R", bound="Record")


class Record(msgspec.Struct, frozen=True, array_like=True):
    """A row, read field by field in the order of its columns."""


def read(kind: type[R], row: tuple[Any, ...]) -> R:
    """A typed value from a row; an unknown word in the database is refused, not guessed."""
    return msgspec.convert(row, kind, strict=False)


def columns(kind: type[Record], table: str) -> str:
    """The SELECT list of a row."""
    return ", ".join(f"{table}.{field}" for field in kind.__struct_fields__)


class Task(Record, frozen=True, array_like=True):
    """A task as the store has it."""

    key: int
    id: str
    title: str
    role: str
    mode: Mode
    status: TaskStatus
    exit_reason: ExitReason | None
    exit_detail: ExitDetail | None
    run_status: RunStatus | None
    verdict: Outcome
    cell: Cell | None
    rescued: bool
    overridden: bool
    falsified: bool
    sealed_at: int | None
    fence: int
    revision: int
    head: bytes
    attempt: int
    attempts: int
    attempts_max: int
    deferrals: int
    deferrals_max: int
    qa_rounds: int
    qa_rounds_max: int
    priority: int
    not_before: int
    agent_key: int | None
    parent_key: int | None
    qa_of_key: int | None
    created_by: str
    contract_digest: str
    acceptance: str | None
    created_at: int
    updated_at: int
    settled_at: int | None


class Run(Record, frozen=True, array_like=True):
    """A run as the store has it."""

    key: int
    id: str
    task_key: int
    attempt: int
    fence: int
    status: RunStatus
    exit_reason: ExitReason | None
    exit_detail: ExitDetail | None
    exit_code: int | None
    signal: int | None
    ended_by: EndedBy | None
    agent_key: int | None
    isolation: str
    verdict: Outcome
    level: Level | None
    verdict_reason: str
    cell: Cell | None
    base_digest: str
    digest: str
    usage: str
    facts: str
    created_at: int
    seen_at: int | None
    ended_at: int | None
    judged_at: int | None


class FindingRow(Record, frozen=True, array_like=True):
    """A finding as the store has it."""

    id: str
    run_key: int
    phase: Phase
    check_name: str
    kind: str
    outcome: FindingOutcome
    before: FindingOutcome | None
    level: Level
    score: float | None
    counts: str
    reason: str
    evidence: str
    digest: str
    contract_digest: str
    judge: str
    judged: str
    isolation: str
    duration_us: int
    binding: bool
    at: int

    def finding(self) -> Finding:
        """What the check answered."""
        names = (name for name in Finding.__struct_fields__ if name in self.__struct_fields__)
        given = {name: getattr(self, name) for name in names}
        parsed = {name: msgspec.json.decode(given[name]) for name in ("counts", "evidence")}
        return Finding(**{**given, **parsed, "check": self.check_name})


class ClaimRow(Record, frozen=True, array_like=True):
    """A claim as the store has it."""

    run_key: int
    kind: str
    reason: str
    statements: str
    extra: str
    source: str
    at: int

    def claim(self) -> Claim:
        """What the agent said."""
        return Claim(
            kind=ClaimKind(self.kind),
            reason=self.reason,
            statements=msgspec.json.decode(self.statements, type=tuple[Statement, ...]),
            extra=msgspec.json.decode(self.extra),
            source=self.source,
        )


class Agent(Record, frozen=True, array_like=True):
    """An agent as the store has it."""

    key: int
    id: str
    name: str
    definition: str
    session: str | None
    parent_key: int | None
    registered_by: str
    status: AgentStatus
    terminated_at: int | None
    created_at: int
    updated_at: int
    kind: AgentKind = AgentKind.AGENT


class Event(Record, frozen=True, array_like=True):
    """An event as the store has it."""

    key: int
    id: str
    task_key: int | None
    run_id: str | None
    revision: int
    at: int
    level: EventLevel
    event: str
    from_status: TaskStatus | None
    to_status: TaskStatus | None
    actor: str
    reason: str
    fence: int
    idempotency_key: str | None
    data: str
    hash: bytes | None
    xact: int


class Message(Record, frozen=True, array_like=True):
    """A message as the store has it."""

    key: int
    id: str
    agent_key: int
    sender: str
    body: str
    disposition: Disposition
    idempotency_key: str | None
    at: int


class Wake(Record, frozen=True, array_like=True):
    """A wake-up as the store has it."""

    key: int
    id: str
    agent_key: int
    task_key: int | None
    cause: WakeCause
    body: str
    due_at: int
    state: WakeState
    why: str
    run_id: str
    armed_by: str
    created_at: int
    updated_at: int


class InboxItem(Record, frozen=True, array_like=True):
    """An inbox item as the store has it."""

    key: int
    id: str
    cause: str
    cell: str
    severity: Severity
    task_key: int
    run_key: int | None
    title: str
    reason: str
    next: str
    times: int
    state: InboxState
    owner: str
    snoozed_until: int | None
    outcome: str | None
    created_at: int
    updated_at: int


class Token(Record, frozen=True, array_like=True):
    """A token as the store has it: never the secret."""

    key: int
    id: str
    role: Role
    name: str
    task_key: int | None
    run_key: int | None
    fence: int | None
    created_at: int
    expires_at: int | None
    revoked_at: int | None


class Refusal(Record, frozen=True, array_like=True):
    """A late or conflicting write that was refused and kept."""

    run_id: str
    verb: str
    code: str
    actor: str
    message: str
    evidence: str
    times: int
    first_at: int
    last_at: int


class Lease(Record, frozen=True, array_like=True):
    """A supervisor's right to own a run."""

    run_key: int
    token: str
    holder: str
    boot: str
    expires_at: int
    process: str
    stop_asked: str = ""
