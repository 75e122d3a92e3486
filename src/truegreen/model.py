"""The words of truegreen: statuses, reasons, outcomes, cells and colours, as data.

One word, one thing. Database constraints, CLI choices, schemas, docs and diagrams are generated
from this module or compared with it by a test. It knows no clock, no file and no database.
"""

from __future__ import annotations

from truegreen.enums import StrEnum
from truegreen.tuples import NamedTuple


class Light(StrEnum):
    """What the run axis looks like from afar."""

    GREY = "grey"
    BLUE = "blue"
    GREEN = "green"
    AMBER = "amber"
    RED = "red"


class RunStatus(StrEnum):
    """How far the harness got with one run."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    EXITED = "exited"
    CRASHED = "crashed"
    CAPPED = "capped"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    LOST = "lost"
    MISSED = "missed"


class RunLook(NamedTuple):
    """A run status as people see it."""

    light: Light
    ended: bool
    meaning: str


RUNS: dict[RunStatus, RunLook] = {
    RunStatus.STARTING: RunLook(Light.GREY, False, "reserved, process not yet seen"),
    RunStatus.RUNNING: RunLook(Light.BLUE, False, "process alive, lease held"),
    RunStatus.PAUSED: RunLook(Light.BLUE, False, "alive, waiting for an approval"),
    RunStatus.EXITED: RunLook(Light.GREEN, True, "ended by itself, no cap, no provider error"),
    RunStatus.CRASHED: RunLook(
        Light.RED, True, "non-zero exit, signal, launch or provider failure"
    ),
    RunStatus.CAPPED: RunLook(Light.AMBER, True, "a cap stopped it"),
    RunStatus.STOPPED: RunLook(Light.GREY, True, "a principal stopped it"),
    RunStatus.TERMINATED: RunLook(Light.GREY, True, "a principal terminated it"),
    RunStatus.LOST: RunLook(Light.RED, True, "lease expired and the process can't be found"),
    RunStatus.MISSED: RunLook(Light.RED, True, "a scheduled occurrence never started"),
}


class ExitReason(StrEnum):
    """Why a run ended; NULL exactly while it has not."""

    DONE = "done"
    MAX_ITERATIONS = "max_iterations"
    BLOCKED = "blocked"
    FATAL_ERROR = "fatal_error"
    USER_CANCELLED = "user_cancelled"
    UNKNOWN = "unknown"


class ExitDetail(StrEnum):
    """The closed second level; each detail has one parent reason (see DETAILS)."""

    COMPLETED = "completed"
    DECLARED_FAILURE = "declared_failure"
    NOOP = "noop"
    TURN_CAP = "turn_cap"
    TIME_CAP = "time_cap"
    IDLE_CAP = "idle_cap"
    COST_CAP = "cost_cap"
    TOKEN_CAP = "token_cap"  # noqa: S105 - a cap on model tokens, not a secret
    CONTEXT_CAP = "context_cap"
    REENTRY_CAP = "reentry_cap"
    APPROVAL_CHECKPOINT = "approval_checkpoint"
    APPROVAL_EXPIRED = "approval_expired"
    PERMISSION_DENIED = "permission_denied"
    EGRESS_DENIED = "egress_denied"
    CONNECTOR_MISSING = "connector_missing"
    REFUSED = "refused"
    INPUT_NEEDED = "input_needed"
    AGENT_ERROR = "agent_error"
    LAUNCH_FAILED = "launch_failed"
    SIGNALED = "signaled"
    OOM = "oom"
    PROCESS_LOST = "process_lost"
    ZERO_OUTPUT = "zero_output"
    PROVIDER_ERROR = "provider_error"
    RATE_LIMITED = "rate_limited"
    AUTH_INVALID = "auth_invalid"
    DISK_FULL = "disk_full"
    CONFIG_INVALID = "config_invalid"
    SUPERVISOR_CRASHED = "supervisor_crashed"
    SUPERVISOR_RESTARTED = "supervisor_restarted"
    STOPPED = "stopped"
    CANCELED = "canceled"
    TERMINATED = "terminated"
    SUPERSEDED = "superseded"
    UNCLAIMED = "unclaimed"
    UNCLASSIFIED = "unclassified"


DETAILS: dict[ExitReason, tuple[ExitDetail, ...]] = {
    ExitReason.DONE: (ExitDetail.COMPLETED, ExitDetail.DECLARED_FAILURE, ExitDetail.NOOP),
    ExitReason.MAX_ITERATIONS: (
        ExitDetail.TURN_CAP,
        ExitDetail.TIME_CAP,
        ExitDetail.IDLE_CAP,
        ExitDetail.COST_CAP,
        ExitDetail.TOKEN_CAP,
        ExitDetail.CONTEXT_CAP,
        ExitDetail.REENTRY_CAP,
    ),
    ExitReason.BLOCKED: (
        ExitDetail.APPROVAL_CHECKPOINT,
        ExitDetail.APPROVAL_EXPIRED,
        ExitDetail.PERMISSION_DENIED,
        ExitDetail.EGRESS_DENIED,
        ExitDetail.CONNECTOR_MISSING,
        ExitDetail.REFUSED,
        ExitDetail.INPUT_NEEDED,
    ),
    ExitReason.FATAL_ERROR: (
        ExitDetail.AGENT_ERROR,
        ExitDetail.LAUNCH_FAILED,
        ExitDetail.SIGNALED,
        ExitDetail.OOM,
        ExitDetail.PROCESS_LOST,
        ExitDetail.ZERO_OUTPUT,
        ExitDetail.PROVIDER_ERROR,
        ExitDetail.RATE_LIMITED,
        ExitDetail.AUTH_INVALID,
        ExitDetail.DISK_FULL,
        ExitDetail.CONFIG_INVALID,
        ExitDetail.SUPERVISOR_CRASHED,
        ExitDetail.SUPERVISOR_RESTARTED,
    ),
    ExitReason.USER_CANCELLED: (
        ExitDetail.STOPPED,
        ExitDetail.CANCELED,
        ExitDetail.TERMINATED,
        ExitDetail.SUPERSEDED,
    ),
    ExitReason.UNKNOWN: (ExitDetail.UNCLAIMED, ExitDetail.UNCLASSIFIED),
}

PARENT = {detail: reason for reason, details in DETAILS.items() for detail in details}

ENDS: dict[ExitReason, tuple[RunStatus, ...]] = {
    ExitReason.DONE: (RunStatus.EXITED,),
    ExitReason.MAX_ITERATIONS: (RunStatus.CAPPED,),
    ExitReason.BLOCKED: (RunStatus.EXITED, RunStatus.CRASHED, RunStatus.STOPPED, RunStatus.LOST),
    ExitReason.FATAL_ERROR: (RunStatus.CRASHED, RunStatus.LOST, RunStatus.MISSED),
    ExitReason.USER_CANCELLED: (RunStatus.STOPPED, RunStatus.TERMINATED),
    ExitReason.UNKNOWN: (RunStatus.EXITED, RunStatus.CRASHED, RunStatus.MISSED),
}
"""How a run may have ended for each reason: a cap is never green, a crash never done."""

HINDERED = frozenset(
    {
        ExitDetail.PERMISSION_DENIED,
        ExitDetail.EGRESS_DENIED,
        ExitDetail.CONNECTOR_MISSING,
        ExitDetail.INPUT_NEEDED,
    }
)
"""Blocked exits whose work may have been finished another way: the gates decide."""

RESCUABLE = HINDERED | {
    ExitDetail.UNCLAIMED,
    ExitDetail.AGENT_ERROR,
    *DETAILS[ExitReason.MAX_ITERATIONS],
}
"""Exits without a crash: checks may still find the work done."""

NO_BLIND_RETRY = frozenset(
    {
        *(ExitDetail.AUTH_INVALID, ExitDetail.DISK_FULL, ExitDetail.CONFIG_INVALID),
        ExitDetail.LAUNCH_FAILED,
        *(ExitDetail.TURN_CAP, ExitDetail.TIME_CAP, ExitDetail.COST_CAP, ExitDetail.TOKEN_CAP),
    }
)
"""Failures that the same attempt would only repeat; a task's caps hold over all its attempts."""


class TaskStatus(StrEnum):
    """What is known about the work, and what happens next."""

    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    PENDING_EVAL = "pending_eval"
    FAILED_PENDING_EVAL = "failed_pending_eval"
    PENDING_QA = "pending_qa"
    NEEDS_REVIEW = "needs_review"
    BLOCKED = "blocked"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    TERMINATED = "terminated"

    @classmethod
    def _missing_(cls, value: object) -> TaskStatus | None:
        from truegreen.spelling import own_word  # noqa: PLC0415 - only a strange word needs it

        return next((status for status in cls if status.value == own_word(value)), None)


class TaskLook(NamedTuple):
    """A task status as people see it: word, glyph and colour always together."""

    glyph: str
    rgb: tuple[int, int, int]
    meaning: str


PALETTE: dict[TaskStatus, TaskLook] = {
    TaskStatus.QUEUED: TaskLook("○", (150, 150, 160), "waits for a run"),
    TaskStatus.RUNNING: TaskLook("◐", (60, 160, 220), "a run is under way"),
    TaskStatus.AWAITING_APPROVAL: TaskLook("⏸", (90, 120, 230), "paused at a checkpoint"),
    TaskStatus.PENDING_EVAL: TaskLook("◔", (150, 220, 60), "declared done; checks are under way"),
    TaskStatus.FAILED_PENDING_EVAL: TaskLook(
        "◕", (240, 140, 40), "ended without a declaration or at a cap; checks may rescue it"
    ),
    TaskStatus.PENDING_QA: TaskLook("◑", (60, 200, 190), "checks passed; another agent reviews it"),
    TaskStatus.NEEDS_REVIEW: TaskLook("✋", (200, 90, 220), "undecided; a person decides"),
    TaskStatus.BLOCKED: TaskLook("⛔", (170, 60, 140), "can't go on without somebody"),
    TaskStatus.SUCCEEDED: TaskLook("●", (40, 190, 90), "the verdict passed"),
    TaskStatus.FAILED: TaskLook("✗", (220, 50, 50), "the verdict failed or the budget is spent"),
    TaskStatus.CANCELED: TaskLook("⊘", (120, 120, 120), "a person called it off"),
    TaskStatus.TERMINATED: TaskLook("▣", (40, 40, 48), "sealed for ever before it had an outcome"),
}


class Move(StrEnum):
    """An event that moves a task along an edge (record/lifecycle.py has the table)."""

    START = "start"
    DECLARE = "declare"
    FALL_SILENT = "fall_silent"
    PAUSE = "pause"
    RESUME = "resume"
    BLOCK = "block"
    RETRY = "retry"
    FAIL = "fail"
    REVIEW = "review"
    CHAIN = "chain"
    ACCEPT = "accept"
    UNBLOCK = "unblock"
    REOPEN = "reopen"
    CANCEL = "cancel"
    TERMINATE = "terminate"


class Note(StrEnum):
    """An event that is written down and moves nothing."""

    OPEN = "open"
    SEEN = "seen"
    CLAIM = "claim"
    FINDINGS = "findings"
    END = "end"
    CHARGE = "charge"
    ADOPT = "adopt"
    SEAL = "seal"
    MODE = "mode"
    AGENT = "agent"
    MESSAGE = "message"
    TOKEN = "token"  # noqa: S105 - the name of an event
    INBOX = "inbox"


class EventLevel(StrEnum):
    """How loud an event is."""

    INFO = "info"
    WARN = "warn"


class ClaimKind(StrEnum):
    """What an agent may say about its work. It is never believed, only started from."""

    DONE = "done"
    FAILED = "failed"
    BLOCKED = "blocked"
    NOOP = "noop"


class Outcome(StrEnum):
    """A verdict: what independent checks found."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    UNKNOWN = "unknown"
    PENDING = "pending"


class Standing(StrEnum):
    """What the verdict of a run rests on: an answer of checks, or none; or it turned out wrong."""

    UNCHECKED = "unchecked"
    CHECKED = "checked"
    FALSIFIED = "falsified"


class FindingOutcome(StrEnum):
    """One check's answer about one run on one tree."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    SKIPPED = "skipped"


class Phase(StrEnum):
    """When a check ran."""

    BASELINE = "baseline"
    AFTER = "after"
    REVIEW = "review"


class Level(StrEnum):
    """How much a verdict proves."""

    A0 = "A0"
    A1 = "A1"
    A2 = "A2"
    A3 = "A3"
    A4 = "A4"


class ProofMode(StrEnum):
    """What a task must show before it may succeed."""

    REQUIRED = "required"
    REGRESSION = "regression"
    """Green only means that nothing broke."""


class NoopPolicy(StrEnum):
    """What becomes of a run that declares that there was nothing to do."""

    REVIEW = "review"
    ACCEPT = "accept"


class ProofStatus(StrEnum):
    """Whether a verdict shows that the work made the difference."""

    SHOWN = "shown"
    MISSING = "missing"
    WAIVED = "waived"


class Mode(StrEnum):
    """What happens at an approval checkpoint: two modes pause, one blocks."""

    INTERACTIVE = "interactive"
    ASSISTED = "assisted"
    AUTONOMOUS = "autonomous"


class AgentStatus(StrEnum):
    """The third lifecycle: a conversation that outlives its runs."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    ERROR = "error"
    TERMINATED = "terminated"


class Disposition(StrEnum):
    """What became of a message."""

    DELIVERED = "delivered"
    QUEUED = "queued_for_resume"
    DUPLICATE = "duplicate"


class Role(StrEnum):
    """Who acts. `system` is truegreen itself and has no token."""

    AGENT = "agent"
    JUDGE = "judge"
    LEAD = "lead"
    OPERATOR = "operator"
    VIEWER = "viewer"
    SYSTEM = "system"


class EndedBy(StrEnum):
    """Who ended a run. There is no default: whoever ends it says so."""

    AGENT = "agent"
    CAP = "cap"
    OPERATOR = "operator"
    LEAD = "lead"
    SUPERVISOR = "supervisor"
    MACHINE = "machine"


class InboxState(StrEnum):
    """How far a person got with an inbox item."""

    OPEN = "open"
    ACKED = "acked"
    SNOOZED = "snoozed"
    RESOLVED = "resolved"


class Severity(StrEnum):
    """How urgent an inbox item is."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"


class Cell(StrEnum):
    """Where an ended run stands in the matrix."""

    TRUE_GREEN = "true_green"
    SILENT_FAILURE = "silent_failure"
    REPORTED_FAILURE = "reported_failure"
    UNDECIDED = "undecided"
    UNVERIFIED = "unverified"
    AWAITING_VERDICT = "awaiting_verdict"
    RESCUED = "rescued"
    FAILED = "failed"
    OUTAGE = "outage"
    RESCUE_UNDER_WAY = "rescue_under_way"
    FINISHED_AT_THE_CAP = "finished_at_the_cap"
    CAP_HIT = "cap_hit"
    KEPT = "kept"
    STOPPED = "stopped"
    BLOCKED = "blocked"


class CellLook(NamedTuple):
    """A cell as people see it; `route` is the urgency in the inbox, or none."""

    title: str
    light: Light
    route: Severity | None
    sentence: str


C, L, S = Cell, Light, Severity
CELLS: dict[Cell, CellLook] = {
    C.TRUE_GREEN: CellLook(
        "true green", L.GREEN, None, "The run ended well, and checks, or a person, found it done."
    ),
    C.SILENT_FAILURE: CellLook(
        "silent failure",
        L.RED,
        S.CRITICAL,
        "The run looks green, but the checks found the work undone.",
    ),
    C.REPORTED_FAILURE: CellLook(
        "reported failure",
        L.RED,
        S.HIGH,
        "The run ended well, the checks failed, and the agent itself said so.",
    ),
    C.UNDECIDED: CellLook(
        "undecided", L.AMBER, S.NORMAL, "The checks gave no usable answer, or do not show enough."
    ),
    C.UNVERIFIED: CellLook(
        "unverified", L.AMBER, S.NORMAL, "The run ended well and nothing checked the work."
    ),
    C.AWAITING_VERDICT: CellLook(
        "awaiting verdict", L.BLUE, None, "The run ended well; checks are under way."
    ),
    C.RESCUED: CellLook(
        "rescued", L.GREEN, None, "The run ended badly, yet the checks found the work done."
    ),
    C.FAILED: CellLook("failed", L.RED, S.NORMAL, "The run ended badly and the checks failed."),
    C.OUTAGE: CellLook(
        "infrastructure outage", L.RED, S.HIGH, "The run died before its work could be judged."
    ),
    C.RESCUE_UNDER_WAY: CellLook(
        "rescue under way", L.AMBER, None, "The run ended early; checks may find the work done."
    ),
    C.FINISHED_AT_THE_CAP: CellLook(
        "finished at the cap", L.GREEN, None, "A cap stopped the run, and the checks passed."
    ),
    C.CAP_HIT: CellLook(
        "cap hit", L.AMBER, S.HIGH, "A cap stopped the run before the work was done."
    ),
    C.KEPT: CellLook("kept", L.GREEN, None, "Stopped after its work had passed the checks."),
    C.STOPPED: CellLook("stopped", L.GREY, None, "Somebody ended it before an outcome."),
    C.BLOCKED: CellLook("blocked", L.AMBER, S.HIGH, "The agent could not go on without somebody."),
}

_ROWS: dict[Light, tuple[Cell, ...]] = {  # passed, failed, inconclusive, unknown, pending
    L.GREEN: (C.TRUE_GREEN, C.SILENT_FAILURE, C.UNDECIDED, C.UNVERIFIED, C.AWAITING_VERDICT),
    L.RED: (C.RESCUED, C.FAILED, C.UNDECIDED, C.OUTAGE, C.RESCUE_UNDER_WAY),
    L.AMBER: (C.FINISHED_AT_THE_CAP, C.CAP_HIT, C.CAP_HIT, C.CAP_HIT, C.RESCUE_UNDER_WAY),
    L.GREY: (C.KEPT, C.STOPPED, C.STOPPED, C.STOPPED, C.STOPPED),
}
MATRIX: dict[tuple[Light, Outcome], Cell] = {
    (light, outcome): cell
    for light, row in _ROWS.items()
    for outcome, cell in zip(Outcome, row, strict=True)
}

REPORTED = (L.GREEN, Outcome.FAILED)
"""The field of the matrix that a silent failure shares with a reported one."""

GREEN = frozenset(cell for (_, verdict), cell in MATRIX.items() if verdict is Outcome.PASSED)
"""Where work stands that was found done: by checks, or by a person alone."""
OVER = frozenset(Cell) - {Cell.AWAITING_VERDICT, Cell.RESCUE_UNDER_WAY}
"""Where work stands that has ended, whether or not anybody knows how good it is."""


ADMITTING = (ClaimKind.FAILED, ClaimKind.BLOCKED)
"""Claims with which an agent itself says that the work is not done."""


def is_reported(claim: str | None, admission: str) -> bool:
    """Whether an agent itself said that its work is not done: by its claim, or its last words."""
    return claim in ADMITTING or bool(admission)


def cell_of(
    status: RunStatus, reason: ExitReason, verdict: Outcome, *, reported: bool = False
) -> Cell:
    """The cell of an ended run; `reported` if its agent said that the work is not done."""
    if reason is ExitReason.BLOCKED and verdict not in (Outcome.PASSED, Outcome.PENDING):
        return Cell.BLOCKED
    cell = MATRIX[RUNS[status].light, verdict]
    return Cell.REPORTED_FAILURE if reported and cell is Cell.SILENT_FAILURE else cell
