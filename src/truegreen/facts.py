"""What the two wings hand to each other: exits, claims, findings, verdicts, and who acts.

Plain frozen values. `work` makes them, `record` writes them down; neither room knows the other.
"""

from typing import Any

import msgspec

from truegreen.enums import StrEnum
from truegreen.model import (
    ClaimKind,
    EndedBy,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    Outcome,
    Phase,
    ProofStatus,
    Role,
    RunStatus,
)


class Actor(msgspec.Struct, frozen=True):
    """Who acts: a role, a name, and for the agent of a run the run and fence that it speaks for."""

    role: Role
    name: str
    run: str | None = None
    fence: int | None = None

    def __str__(self) -> str:
        """As it stands in events: `operator:ana`."""
        return f"{self.role}:{self.name}"


SYSTEM = Actor(Role.SYSTEM, "truegreen")
EXIT = "exit"
"""The source of a claim without words: an exit code stands for it."""
OUTPUT = "output"
"""The source of a claim whose words are the last lines that a plain command printed."""
LAST_WORDS = "last_words"
"""The fact of a crashed run that holds the last lines that its agent printed."""
NOT_STARTED = "not_started"
"""The fact of a run whose agent was not started: what was asked for can't be shown that way."""


BASE_LOST = "base_lost"
"""The fact of a run that could not start: the files from before the first attempt are gone."""


class Ticket(msgspec.Struct, frozen=True):
    """What a started run carries; every write about it shows it."""

    task: str
    run: str
    fence: int
    lease: str


class AgentKind(StrEnum):
    """What an agent is: a conversation of its own, or something that lives inside of one."""

    AGENT = "agent"
    CONVERSATION = "conversation"
    """A further name that an agent's own stream gave itself."""
    SUBAGENT = "subagent"
    BACKGROUND = "background"
    WAKEUP = "wakeup"
    CRON = "cron"


class Child(msgspec.Struct, frozen=True):
    """What a client started inside of its own conversation, under the client's name for it."""

    kind: AgentKind
    session: str
    name: str = ""
    over: bool = False
    """Whether the client says that it has ended; it may be woken again all the same."""
    word: str = ""
    """How it ended, in the client's own word; empty where it said none."""


class WakeCause(StrEnum):
    """Why an agent is woken."""

    RESUME = "resume"
    MESSAGE = "message"
    SCHEDULE = "schedule"


class WakeState(StrEnum):
    """How far a wake-up has come; it is used once, or never."""

    ARMED = "armed"
    READY = "ready"
    FIRED = "fired"
    VOID = "void"


class JobState(StrEnum):
    """How far a job has come, by the record alone; its task is taken from it once, or never."""

    PLACED = "placed"
    TAKEN = "taken"
    LOST = "lost"
    OVER = "over"


class JobWord(StrEnum):
    """What an engine says of a job. It is shown, and never believed."""

    QUEUED = "queued"
    RUNNING = "running"
    GONE = "gone"
    UNKNOWN = "unknown"


class Processes(StrEnum):
    """Whether the processes of a run are gone, as far as its supervisor reported it."""

    UNKNOWN = "unknown"
    """No supervisor has reported it."""
    GONE = "gone"
    UNCONFIRMED = "unconfirmed"
    """The run ended, and its supervisor cannot see whether a process was left."""
    ALIVE = "alive"
    """Processes of the run were seen after its end and could not be killed."""


class Usage(msgspec.Struct, frozen=True):
    """What a run consumed."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How the harness saw a run end."""

    status: RunStatus
    reason: ExitReason
    detail: ExitDetail
    ended_by: EndedBy
    code: int | None = None
    signal: int | None = None
    digest: str = ""
    usage: Usage = Usage()
    not_before: int = 0
    held_for: float = 0.0
    """Seconds from now by the store's clock, for those who can't trust their own."""
    passing: bool = False
    """Whether what kept it from being launched may pass by itself: the task is put off."""
    message: str = ""
    admission: str = ""
    """The sentence with which the agent admitted that the work is not done; empty without one."""
    session: str | None = None
    processes: Processes = Processes.UNKNOWN
    facts: dict[str, Any] = {}

    def due(self, now: int) -> int:
        """When its task may start again, by the store's clock."""
        return now + int(self.held_for * 1e6) if self.held_for else self.not_before


class Statement(msgspec.Struct, frozen=True):
    """One checkable sentence of a claim, and what was observed."""

    text: str
    kind: str = ""
    outcome: str = "unverifiable"
    observed: str = ""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent says about its work."""

    kind: ClaimKind
    reason: str = ""
    statements: tuple[Statement, ...] = ()
    extra: dict[str, Any] = {}
    source: str = "cli"

    @property
    def speaks(self) -> bool:
        """Whether there are words of an agent in it; an exit code has none."""
        return self.source != EXIT or bool(self.statements)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check's answer about one run on one tree. Only binding findings decide."""

    check: str
    kind: str
    outcome: FindingOutcome
    reason: str
    digest: str
    contract_digest: str
    judge: str
    judged: str = ""
    phase: Phase = Phase.AFTER
    level: Level = Level.A1
    before: FindingOutcome | None = None
    score: float | None = None
    counts: dict[str, int] = {}
    evidence: dict[str, Any] = {}
    isolation: str = "none"
    duration_us: int = 0
    binding: bool = True


class Proof(msgspec.Struct, frozen=True):
    """What shows that the work made the difference: which checks, or why nothing does."""

    status: ProofStatus = ProofStatus.MISSING
    by: tuple[str, ...] = ()
    """Such as `gate:tests`, `evaluator:reviewer`, `review:qa`, `person:ana`."""
    reason: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The conclusion from a run's findings, and the three answers that it rests on."""

    outcome: Outcome
    reason: str
    digest: str
    contract_digest: str
    level: Level = Level.A0
    require: Level = Level.A2
    proof: Proof = Proof()
