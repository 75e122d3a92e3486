"""What a task is called elsewhere: one table from our two axes down to everybody else's words.

Other systems have fewer words than we have, so something is always lost here; never that work is
undone. Nothing but `succeeded` maps to a success, and nothing maps to a word that others let pass
(`neutral`, `skipped`). Data alone: who sends it, and where, is the outlets' business.
"""

from __future__ import annotations

from collections.abc import Iterator

from truegreen.enums import StrEnum
from truegreen.model import Cell, FindingOutcome, TaskStatus
from truegreen.tuples import NamedTuple

EVENT_PREFIX = "dev.truegreen.task."


class Junit(StrEnum):
    """What a test case is in a JUnit report."""

    PASSED = "passed"
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


class Down(NamedTuple):
    """A task in other systems' words; an empty one is left out there."""

    exit: int
    check_status: str
    """GitHub check run: `status`."""
    conclusion: str
    """GitHub check run: `conclusion`, once it is completed."""
    commit_state: str
    """GitHub commit status: `state`."""
    a2a: str
    mcp: str
    otel_state: str
    """OpenTelemetry: `cicd.pipeline.run.state`."""
    otel_result: str
    """OpenTelemetry: `cicd.pipeline.result`; a failure is about the work, an error about us."""
    junit: Junit


S, C, J = TaskStatus, Cell, Junit

_BY_STATUS: dict[TaskStatus, Down] = {
    S.QUEUED: Down(75, "queued", "", "pending", "submitted", "working", "pending", "", J.ERROR),
    S.RUNNING: Down(
        3, "in_progress", "", "pending", "working", "working", "executing", "", J.ERROR
    ),
    S.AWAITING_APPROVAL: Down(
        3,
        "in_progress",
        "",
        "pending",
        "input-required",
        "input_required",
        "executing",
        "",
        J.ERROR,
    ),
    S.PENDING_EVAL: Down(
        3, "in_progress", "", "pending", "working", "working", "finalizing", "", J.ERROR
    ),
    S.FAILED_PENDING_EVAL: Down(
        3, "in_progress", "", "pending", "working", "working", "finalizing", "", J.ERROR
    ),
    S.PENDING_QA: Down(
        3, "in_progress", "", "pending", "working", "working", "finalizing", "", J.ERROR
    ),
    S.NEEDS_REVIEW: Down(
        3,
        *("completed", "action_required", "pending"),
        *("input-required", "input_required", "finalizing", ""),
        J.ERROR,
    ),
    S.BLOCKED: Down(
        3,
        *("completed", "action_required", "failure"),
        *("input-required", "input_required", "", "error"),
        J.ERROR,
    ),
    S.SUCCEEDED: Down(
        0, "completed", "success", "success", "completed", "completed", "", "success", J.PASSED
    ),
    S.FAILED: Down(
        1, "completed", "failure", "failure", "failed", "failed", "", "failure", J.FAILURE
    ),
    S.CANCELED: Down(
        6, "completed", "cancelled", "error", "canceled", "cancelled", "", "cancellation", J.ERROR
    ),
    S.TERMINATED: Down(
        6, "completed", "cancelled", "error", "canceled", "cancelled", "", "cancellation", J.ERROR
    ),
}
_CAP = {"exit": 4, "conclusion": "timed_out", "otel_result": "timeout"}
_OUTAGE = {"exit": 5, "commit_state": "error", "otel_result": "error", "junit": J.ERROR}
_BY_CELL: dict[tuple[TaskStatus, Cell], dict[str, object]] = {
    (S.FAILED, C.CAP_HIT): _CAP,
    (S.FAILED, C.OUTAGE): _OUTAGE,
    (S.NEEDS_REVIEW, C.CAP_HIT): {"exit": 4},
    (S.NEEDS_REVIEW, C.OUTAGE): {"exit": 5, "commit_state": "error"},
}
"""Where the cell says more than the status: at a cap, and when we were the reason."""

FINDINGS: dict[FindingOutcome, Junit] = {
    FindingOutcome.PASSED: J.PASSED,
    FindingOutcome.FAILED: J.FAILURE,
    FindingOutcome.INCONCLUSIVE: J.ERROR,
    FindingOutcome.SKIPPED: J.SKIPPED,
}
"""One check in a JUnit report; whether the task passed is a test case of its own."""


def down(status: TaskStatus, cell: Cell | None = None) -> Down:
    """What a task in this status and cell is called elsewhere."""
    special = _BY_CELL.get((status, cell), {}) if cell else {}
    return _BY_STATUS[status]._replace(**special)  # type: ignore[arg-type]


def event_type(status: TaskStatus) -> str:
    """The CloudEvents type of the news that a task has come to a status."""
    return f"{EVENT_PREFIX}{status}"


_HEADS = (
    *("status", "cell", "exit", "GitHub check", "commit status", "A2A", "MCP task"),
    *("OTel CI/CD", "CloudEvents type", "JUnit"),
)


def table() -> Iterator[str]:
    """The whole of it in Markdown, as the documentation has it."""
    yield f"| {' | '.join(_HEADS)} |"
    yield "|---" * len(_HEADS) + "|"
    for status in TaskStatus:
        yield _line(status, None)
        yield from (_line(*pair) for pair in _BY_CELL if pair[0] is status)


def _line(status: TaskStatus, cell: Cell | None) -> str:
    to = down(status, cell)
    words = (
        f"`{status}`",
        f"`{cell}`" if cell else "any other" if _is_split(status) else "any",
        str(to.exit),
        " · ".join(filter(None, (to.check_status, to.conclusion))),
        to.commit_state,
        to.a2a,
        to.mcp,
        to.otel_result or f"({to.otel_state})",
        f"`{event_type(status)}`",
        to.junit,
    )
    return f"| {' | '.join(words)} |"


def _is_split(status: TaskStatus) -> bool:
    return any(status is other for other, _ in _BY_CELL)
