"""The rows of the store as values; a row's fields are its SELECT list, so neither can drift."""

from typing import Any, TypeVar

import msgspec

from truegreen.facts import (
    AgentKind,
    Claim,
    Finding,
    JobState,
    JobWord,
    Processes,
    Statement,
    WakeCause,
    WakeState,
)
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
    ProofMode,
    ProofStatus,
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
    checked: bool
    """Some check gave an answer about what its latest run left; a person's yes is none."""
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
    proof: ProofStatus | None
    proof_mode: ProofMode
    noop: bool
    """It succeeded because there was nothing to do."""
    created_at: int
    updated_at: int
    settled_at: int | None

    @property
    def is_unverified(self) -> bool:
        """Whether its run ended well, or somebody called it done, and no check gave an answer."""
        return self.cell is Cell.UNVERIFIED or (self.verdict is Outcome.PASSED and not self.checked)

    @property
    def is_legacy(self) -> bool:
        """Whether it is over and nobody knows why: a row from before reasons were asked for."""
        return self.exit_reason is None and self.settled_at is not None


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
    admission: str
    """The sentence with which the agent admitted that the work is not done; empty without one."""
    agent_key: int | None
    isolation: str
    verdict: Outcome
    level: Level | None
    required_level: Level | None
    proof: str
    verdict_reason: str
    cell: Cell | None
    base_digest: str
    digest: str
    usage: str
    facts: str
    processes: Processes
    created_at: int
    seen_at: int | None
    ended_at: int | None
    judged_at: int | None

    @property
    def is_legacy(self) -> bool:
        """Whether it has ended and nobody knows why, as with a task."""
        return self.exit_reason is None and self.ended_at is not None


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


class Job(Record, frozen=True, array_like=True):
    """A task in the hands of an engine, as the store has it."""

    key: int
    id: str
    task_key: int
    attempt: int
    engine: str
    handle: str
    """What the engine calls it; empty until it has answered."""
    state: JobState
    holder: str
    """The supervisor that the job has started, and that took the task."""
    word: JobWord
    said: str
    gone_at: int | None
    created_at: int
    looked_at: int | None
    updated_at: int

    @property
    def reserves(self) -> str:
        """The name under which a task is reserved for it."""
        return f"{FOR_ENGINES}{self.engine}/{self.id}"


FOR_ENGINES = "engine/"


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
    topic: str = ""
    """What it has in common with others."""
    whole_topic: bool = False
    """Whether it is put off together with whatever else has its topic, or will have it."""


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
    kind: str = "key"
    """A key, a login code that is used once, or a browser's session."""


class Artifact(Record, frozen=True, array_like=True):
    """Something that an agent handed in, by its content's digest."""

    name: str
    sha256: str
    size: int
    at: int


class Post(Record, frozen=True, array_like=True):
    """Something that an outlet owes somebody outside."""

    key: int
    id: str
    outlet: str
    subject: str
    task_id: str | None
    body: str
    state: str
    tries: int
    due_at: int
    error: str
    created_at: int
    updated_at: int


class Beat(Record, frozen=True, array_like=True):
    """Somebody who looks for work: when it was last seen, and how well it was."""

    name: str
    kind: str
    host: str
    began_at: int
    at: int
    ended_at: int | None
    trouble: str
    """What is not as it should be; it does not say that it is well meanwhile."""
    pinged_at: int | None
    unsent: str
    """Why its last sign of life did not get out."""


class Breaker(Record, frozen=True, array_like=True):
    """Something that holds tasks back since the same failure came again and again."""

    key: int
    id: str
    kind: str
    subject: str
    signature: str
    name: str
    trips: int
    tried: int
    opened_at: int
    open_until: int
    closed_at: int | None
    closed_by: str
    reason: str


class LimitRow(Record, frozen=True, array_like=True):
    """What all may spend together, as a settings file has it; money in millionths of a dollar."""

    key: int
    id: str
    file: str
    hours: int
    agent: str
    label: str
    """As it stands in a list of labels, quotes and all; empty where any will do."""
    cost: int | None
    tokens: int | None
    runs: int | None


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
    active_at: int | None = None
    """When its agent was last seen to do something, by the store's clock."""
    lasts: int = 60_000_000
    """For how many microseconds it is given without a renewal."""
    folder_host: str = ""
    folder: str = ""
    """Where its run may write, with a slash at the end; empty for a folder of its own."""


class RoutineRow(Record, frozen=True, array_like=True):
    """A routine as it was last taken from trusted settings, and how far it has come."""

    key: int
    name: str
    kind: str
    settings: str
    contract: str
    digest: str
    source: str
    paused_by: str
    paused_at: int | None
    next_at: int | None
    generation: int
    iteration: int
    failures: int
    task_key: int | None
    ended: str | None
    ended_at: int | None
    gone_at: int | None
    revision: int
    created_at: int
    updated_at: int


class OccurrenceRow(Record, frozen=True, array_like=True):
    """One time that a routine was due; a missed one may stand for several."""

    key: int
    routine_key: int
    slot: str
    generation: int
    first_at: int
    due_at: int
    times: int
    state: str
    cause: str
    task_key: int | None
    actor: str
    at: int
    updated_at: int


class Worker(Record, frozen=True, array_like=True):
    """Somebody who offers seats."""

    key: int
    name: str
    holder: str
    labels: str
    seats: int
    version: str
    started_at: int
    seen_at: int
    busy: int
    draining: int
