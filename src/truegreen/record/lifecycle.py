"""The edge table and the pure decisions over it: what follows from an exit, a verdict, a review.

Nothing here reads a clock or a store. The database's triggers, the docs' tables and the diagram are
generated from EDGES, so a rule is written once.
"""

from __future__ import annotations

from truegreen.enums import StrEnum
from truegreen.errors import IllegalMove, InvalidInput, Terminated
from truegreen.model import (
    HINDERED,
    NO_BLIND_RETRY,
    RESCUABLE,
    AgentStatus,
    ExitDetail,
    ExitReason,
    Move,
    Outcome,
    Role,
    TaskStatus,
)
from truegreen.tuples import NamedTuple

S = TaskStatus


class Edge(NamedTuple):
    """One event: where it may come from, where it leads, whether truegreen takes it by itself."""

    move: Move
    sources: tuple[TaskStatus, ...]
    target: TaskStatus
    automatic: bool
    by: str


_CHECKED = (S.PENDING_EVAL, S.FAILED_PENDING_EVAL, S.PENDING_QA)
_UNPROVEN = (S.RUNNING, *_CHECKED, S.NEEDS_REVIEW)

_WORK: tuple[Edge, ...] = (
    Edge(Move.START, (S.QUEUED,), S.RUNNING, True, "supervisor, under a new fence and lease"),
    Edge(Move.DECLARE, (S.RUNNING,), S.PENDING_EVAL, True, "run ended, claim done or noop"),
    Edge(
        Move.FALL_SILENT,
        (S.RUNNING,),
        S.FAILED_PENDING_EVAL,
        True,
        "run ended without a claim, at a cap, or hindered",
    ),
    Edge(
        Move.PAUSE, (S.RUNNING,), S.AWAITING_APPROVAL, True, "checkpoint, assisted or interactive"
    ),
    Edge(Move.RESUME, (S.AWAITING_APPROVAL,), S.RUNNING, False, "approval by a person"),
    Edge(
        Move.BLOCK,
        (S.RUNNING, S.AWAITING_APPROVAL, S.FAILED_PENDING_EVAL),
        S.BLOCKED,
        True,
        "checkpoint when autonomous; blocked exit; approval expired or denied",
    ),
    Edge(Move.RETRY, _UNPROVEN, S.QUEUED, True, "failure with budget left"),
    Edge(Move.FAIL, _UNPROVEN, S.FAILED, True, "failure, budget spent"),
    Edge(
        Move.REVIEW, _CHECKED, S.NEEDS_REVIEW, True, "verdict inconclusive, borderline, unverified"
    ),
    Edge(
        Move.CHAIN,
        (S.PENDING_EVAL, S.FAILED_PENDING_EVAL),
        S.PENDING_QA,
        True,
        "verdict passed so far, the role is in the QA set",
    ),
    Edge(
        Move.ACCEPT,
        (*_CHECKED, S.NEEDS_REVIEW),
        S.SUCCEEDED,
        True,
        "the only way to green: verdict passed, or a person's review",
    ),
    Edge(Move.UNBLOCK, (S.BLOCKED,), S.QUEUED, False, "a principal other than the blocked agent"),
    Edge(
        Move.REOPEN,
        (S.FAILED, S.CANCELED, S.SUCCEEDED),
        S.QUEUED,
        False,
        "operator with a reason; a budget reset is audited",
    ),
)

_MOVING = frozenset(source for edge in _WORK if edge.automatic for source in edge.sources)
_ENDABLE = tuple(status for status in S if status in _MOVING or status is S.BLOCKED)

EDGES: tuple[Edge, ...] = (
    *_WORK,
    Edge(Move.CANCEL, _ENDABLE, S.CANCELED, False, "operator, lead"),
    Edge(Move.TERMINATE, _ENDABLE, S.TERMINATED, False, "operator, lead"),
)

TARGETS: dict[tuple[TaskStatus, Move], TaskStatus] = {
    (source, edge.move): edge.target for edge in EDGES for source in edge.sources
}
SETTLED = frozenset(S) - _MOVING
"""Nothing automatic leads out."""
UNDER_WAY = frozenset(S) - SETTLED - {S.NEEDS_REVIEW}
"""Somebody or something works at it, or will; who only waits for a judgement holds nothing up."""
FINAL = frozenset(S) - {source for source, _ in TARGETS}
"""Nothing leads out at all."""


def allowed(status: TaskStatus) -> tuple[Move, ...]:
    """The moves that lead out of a status."""
    return tuple(move for source, move in TARGETS if source is status)


def decide(status: TaskStatus, move: Move, *, sealed: bool = False) -> TaskStatus:
    """Where a move leads, or a refusal that names status, move and what is allowed."""
    if sealed:
        message = f"{move} is refused: the task is sealed for ever (status: {status})"
        raise Terminated(message, status=status, event=move)
    target = TARGETS.get((status, move))
    if target is None:
        moves = allowed(status)
        message = f"{move} is refused from {status}{_instead(moves)}"
        raise IllegalMove(message, allowed=moves, status=status, event=move)
    return target


def _instead(moves: tuple[Move, ...]) -> str:
    if moves == (Move.REOPEN,):
        return ": the task is over already; allowed: reopen (a retry queues it again)"
    return f"; allowed: {', '.join(moves)}" if moves else "; nothing leads out of it"


AGENT_EDGES: dict[AgentStatus, frozenset[AgentStatus]] = {
    AgentStatus.PENDING: frozenset(AgentStatus) - {AgentStatus.PENDING},
    AgentStatus.IN_PROGRESS: frozenset(
        {AgentStatus.COMPLETED, AgentStatus.ERROR, AgentStatus.TERMINATED}
    ),
    AgentStatus.COMPLETED: frozenset({AgentStatus.IN_PROGRESS, AgentStatus.TERMINATED}),
    AgentStatus.ERROR: frozenset({AgentStatus.IN_PROGRESS, AgentStatus.TERMINATED}),
    AgentStatus.TERMINATED: frozenset(),
}


class Charge(StrEnum):
    """Which counter of the budget pays."""

    ATTEMPTS = "attempts"
    DEFERRALS = "deferrals"
    QA_ROUNDS = "qa_rounds"


class Budget(NamedTuple):
    """The counters of a task with their limits."""

    attempts: int
    attempts_max: int
    deferrals: int
    deferrals_max: int
    qa_rounds: int
    qa_rounds_max: int


class Policy(NamedTuple):
    """What the frozen contract says about failures."""

    rescue: frozenset[str]
    retry: frozenset[str]
    chained: bool


class Step(NamedTuple):
    """A move and the counters that it charges."""

    move: Move
    charges: tuple[Charge, ...] = ()


def after_exit(
    reason: ExitReason,
    detail: ExitDetail,
    policy: Policy,
    budget: Budget,
    *,
    passing: bool = False,
) -> Step:
    """What an ended run leads to, before any check."""
    if reason is ExitReason.USER_CANCELLED:
        return Step(Move.CANCEL)
    if reason is ExitReason.DONE and detail is not ExitDetail.DECLARED_FAILURE:
        return Step(Move.DECLARE)
    if detail in RESCUABLE and detail in policy.rescue:
        return Step(Move.FALL_SILENT)
    if reason is ExitReason.BLOCKED:
        return Step(Move.BLOCK)
    launch_passes = passing and detail is ExitDetail.LAUNCH_FAILED
    if launch_passes or detail in (ExitDetail.RATE_LIMITED, ExitDetail.SUPERVISOR_RESTARTED):
        return _defer(detail, budget)
    return after_failure(reason, detail, policy, budget)


def after_failure(reason: ExitReason, detail: ExitDetail, policy: Policy, budget: Budget) -> Step:
    """Another attempt while the budget lasts and the policy wants it; the last one is final."""
    by_reason = reason in policy.retry and detail not in NO_BLIND_RETRY
    wanted = detail in policy.retry or by_reason
    left = budget.attempts + 1 < budget.attempts_max
    return Step(Move.RETRY if wanted and left else Move.FAIL, (Charge.ATTEMPTS,))


def _defer(detail: ExitDetail, budget: Budget) -> Step:
    if budget.deferrals < budget.deferrals_max:
        return Step(Move.RETRY, (Charge.DEFERRALS,))
    # An agent that can signal its supervisor must not run for ever: then a restart is an attempt.
    restarted = detail is ExitDetail.SUPERVISOR_RESTARTED
    left = budget.attempts + 1 < budget.attempts_max
    return Step(Move.RETRY if restarted and left else Move.FAIL, (Charge.ATTEMPTS,))


class Judged(NamedTuple):
    """What a verdict is about: the task's status, how its run ended, and whether work was seen."""

    status: TaskStatus
    reason: ExitReason
    detail: ExitDetail
    work_seen: bool


def after_verdict(outcome: Outcome, judged: Judged, policy: Policy, budget: Budget) -> Step:
    """What a verdict leads to. Nothing rounds up."""
    if outcome is Outcome.PENDING:
        message = "a pending verdict decides nothing"
        raise InvalidInput(message, allowed=tuple(o for o in Outcome if o is not Outcome.PENDING))
    if outcome is Outcome.PASSED:
        return _after_pass(judged, policy)
    if outcome is Outcome.FAILED:
        return after_rejection(judged, policy, budget)
    return Step(Move.BLOCK if _stays_hindered(outcome, judged) else Move.REVIEW)


def _stays_hindered(outcome: Outcome, judged: Judged) -> bool:
    """Whether nothing speaks against what hindered a run: no check was asked, or no work seen."""
    unproven = outcome is Outcome.UNKNOWN or not judged.work_seen
    return unproven and judged.status is S.FAILED_PENDING_EVAL and judged.detail in HINDERED


def _after_pass(judged: Judged, policy: Policy) -> Step:
    waits = judged.status is S.NEEDS_REVIEW
    silent = judged.status is S.FAILED_PENDING_EVAL or (
        waits and judged.reason is not ExitReason.DONE
    )
    if (silent and not judged.work_seen) or (waits and policy.chained):
        return Step(Move.BLOCK if _stays_hindered(Outcome.PASSED, judged) else Move.REVIEW)
    if policy.chained and (silent or judged.status is S.PENDING_EVAL):
        return Step(Move.CHAIN)
    return Step(Move.ACCEPT)


def after_rejection(judged: Judged, policy: Policy, budget: Budget) -> Step:
    """What a red verdict, a failed QA or a person's rejection leads to."""
    if judged.status is S.FAILED_PENDING_EVAL and judged.detail in HINDERED:
        return Step(Move.BLOCK)
    step = after_failure(judged.reason, judged.detail, policy, budget)
    if judged.status is not S.PENDING_QA:
        return step
    spent = budget.qa_rounds + 1 >= budget.qa_rounds_max
    rounds = (Charge.QA_ROUNDS,) if budget.qa_rounds < budget.qa_rounds_max else ()
    return Step(Move.FAIL if spent else step.move, (*step.charges, *rounds))


VERB_ROLES: dict[str, frozenset[Role]] = {
    "open": frozenset({Role.LEAD, Role.OPERATOR, Role.SYSTEM}),
    "start": frozenset({Role.OPERATOR, Role.SYSTEM}),
    "supervise": frozenset({Role.SYSTEM}),
    "declare": frozenset({Role.AGENT, Role.SYSTEM}),
    "find": frozenset({Role.JUDGE, Role.SYSTEM}),
    "judge": frozenset({Role.SYSTEM}),
    "pause": frozenset({Role.AGENT, Role.SYSTEM}),
    "block": frozenset({Role.AGENT, Role.SYSTEM}),
    "approve": frozenset({Role.OPERATOR}),
    "deny": frozenset({Role.OPERATOR, Role.SYSTEM}),
    "review": frozenset({Role.OPERATOR}),
    "recover": frozenset({Role.OPERATOR}),
    "end": frozenset({Role.LEAD, Role.OPERATOR}),
    "message": frozenset({Role.AGENT, Role.LEAD, Role.OPERATOR, Role.SYSTEM}),
    "read": frozenset({Role.AGENT, Role.SYSTEM}),
    "wake": frozenset({Role.LEAD, Role.OPERATOR, Role.SYSTEM}),
    "switch": frozenset({Role.OPERATOR}),
    "register": frozenset({Role.LEAD, Role.OPERATOR, Role.SYSTEM}),
    "mint": frozenset({Role.OPERATOR, Role.SYSTEM}),
    "triage": frozenset({Role.OPERATOR}),
}
"""Who may use which group of the ledger's verbs; everybody else is refused."""
