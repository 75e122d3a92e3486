"""Short ways to bring a task anywhere, through the ledger's own verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truegreen.contract import AgentDefinition, Budget, Contract, Gate, GateKind, QaTerms
from truegreen.facts import Actor, Claim, Exit, Finding, Proof, Ticket, Verdict
from truegreen.model import (
    PARENT,
    ClaimKind,
    EndedBy,
    ExitDetail,
    FindingOutcome,
    Level,
    Mode,
    Outcome,
    Phase,
    ProofStatus,
    Role,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start

if TYPE_CHECKING:
    from collections.abc import Callable

    from truegreen.record.rows import Task

OPERATOR = Actor(Role.OPERATOR, "ana")
LEAD = Actor(Role.LEAD, "lead")
GATE = Gate(name="tests", kind=GateKind.RUN, command=("pytest",))
BASE, TREE = "tree:base", "tree:left"
PROVEN = Proof(ProofStatus.SHOWN, ("gate:tests",), "tests: failed before, passes now")
S = TaskStatus
REVIEWED = QaTerms(
    roles=("coder",), agent="reviewer", definition=AgentDefinition(command=("review", "it"))
)


def contract(**terms: Any) -> Contract:
    """A contract with one gate, and without QA unless asked for."""
    terms.setdefault("title", "fix the parser")
    if "evaluators" not in terms:
        terms.setdefault("gates", (GATE,))
    terms.setdefault("qa", QaTerms(roles=()))
    return Contract(**terms)


def ended(detail: ExitDetail = ExitDetail.COMPLETED, **more: Any) -> Exit:
    """An exit of this kind, with the run status that goes with it."""
    crash = {
        ExitDetail.AGENT_ERROR,
        ExitDetail.SIGNALED,
        ExitDetail.OOM,
        ExitDetail.LAUNCH_FAILED,
        ExitDetail.PROVIDER_ERROR,
        ExitDetail.RATE_LIMITED,
        ExitDetail.AUTH_INVALID,
        ExitDetail.DISK_FULL,
        ExitDetail.CONFIG_INVALID,
        ExitDetail.ZERO_OUTPUT,
        ExitDetail.SUPERVISOR_CRASHED,
        ExitDetail.SUPERVISOR_RESTARTED,
    }
    status = RunStatus.EXITED
    if detail in crash:
        status = RunStatus.CRASHED
    elif detail is ExitDetail.PROCESS_LOST:
        status = RunStatus.LOST
    elif detail.value.endswith("_cap"):
        status = RunStatus.CAPPED
    elif PARENT[detail].value == "user_cancelled":
        status = RunStatus.STOPPED
    more.setdefault("status", status)
    more.setdefault("ended_by", EndedBy.AGENT)
    more.setdefault("digest", TREE)
    return Exit(reason=PARENT[detail], detail=detail, **more)


def opened(ledger: Ledger, **terms: Any) -> Task:
    """A queued task."""
    return ledger.open(contract(**terms), actor=OPERATOR)


def started(ledger: Ledger, task: str | None = None, **terms: Any) -> Ticket:
    """A running task."""
    agent = terms.pop("agent_id", None)
    return ledger.start(
        task or opened(ledger, **terms).id, Start("test", base_digest=BASE, agent=agent)
    )


def finding(ledger: Ledger, ticket: Ticket, outcome: FindingOutcome, **more: Any) -> Finding:
    """A finding about what the run left; a gate that passes failed before the agent started."""
    more.setdefault("contract_digest", ledger.task(ticket.task).contract_digest)
    more.setdefault("digest", TREE)
    of_gate = more.get("kind", "run") == "run" and more.get("phase") is not Phase.BASELINE
    if outcome is FindingOutcome.PASSED and of_gate:
        more.setdefault("before", FindingOutcome.FAILED)
    level = more.pop("level", Level.A3)
    return Finding(
        **{"check": "tests", "kind": "run", "reason": "3 of 3", "judge": "truegreen", **more},
        outcome=outcome,
        level=level,
    )


def verdict(ledger: Ledger, ticket: Ticket, outcome: Outcome, **more: Any) -> Verdict:
    """A verdict about what the run left."""
    more.setdefault("contract_digest", ledger.task(ticket.task).contract_digest)
    more.setdefault("digest", TREE)
    more.setdefault("reason", f"gate tests: {outcome}")
    if outcome is Outcome.PASSED:
        more.setdefault("proof", PROVEN)
    return Verdict(outcome=outcome, level=Level.A2, **more)


def judged(ledger: Ledger, ticket: Ticket, outcome: Outcome) -> Task:
    """Record a finding that carries the verdict, and conclude."""
    found = {
        Outcome.PASSED: FindingOutcome.PASSED,
        Outcome.FAILED: FindingOutcome.FAILED,
        Outcome.INCONCLUSIVE: FindingOutcome.INCONCLUSIVE,
    }.get(outcome)
    if found:
        ledger.record(ticket, [finding(ledger, ticket, found)])
    return ledger.judge(ticket, verdict(ledger, ticket, outcome))


def declared(ledger: Ledger, ticket: Ticket) -> Task:
    """The run ends well, the agent says it is done."""
    return ledger.end_run(ticket, ended(), claim=Claim(kind=ClaimKind.DONE, reason="all done"))


_TERMS: dict[TaskStatus, dict[str, Any]] = {
    S.AWAITING_APPROVAL: {"mode": Mode.ASSISTED},
    S.PENDING_QA: {"role": "coder", "qa": REVIEWED},
    S.FAILED: {"budget": Budget(attempts=1)},
}
_OUTCOMES = {
    S.SUCCEEDED: Outcome.PASSED,
    S.PENDING_QA: Outcome.PASSED,
    S.FAILED: Outcome.FAILED,
    S.NEEDS_REVIEW: Outcome.INCONCLUSIVE,
}


def _take(ledger: Ledger, ticket: Ticket, status: TaskStatus) -> None:
    """Bring a running task into a status."""
    ways: dict[TaskStatus, Callable[[], object]] = {
        S.RUNNING: lambda: None,
        S.AWAITING_APPROVAL: lambda: ledger.checkpoint(ticket, "push", actor=agent_of(ticket)),
        S.BLOCKED: lambda: ledger.end_run(ticket, ended(ExitDetail.REFUSED)),
        S.FAILED_PENDING_EVAL: lambda: ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED)),
        S.CANCELED: lambda: ledger.cancel(ticket.task, actor=OPERATOR),
        S.TERMINATED: lambda: ledger.terminate(ticket.task, actor=OPERATOR),
    }
    ways.get(status, lambda: declared(ledger, ticket))()
    if status in _OUTCOMES:
        judged(ledger, ticket, _OUTCOMES[status])


def brought(ledger: Ledger, status: TaskStatus, **terms: Any) -> tuple[Task, Ticket | None]:
    """A fresh task in any status, by verbs alone, with the ticket of its latest run."""
    if status is S.QUEUED:
        return opened(ledger, **terms), None
    ticket = started(ledger, **_TERMS.get(status, {}), **terms)
    _take(ledger, ticket, status)
    now = ledger.task(ticket.task)
    assert now.status is status, f"wanted {status}, got {now.status}"
    return now, ticket


def agent_of(ticket: Ticket) -> Actor:
    """The agent that speaks for a run."""
    return Actor(Role.AGENT, "agent", ticket.run, ticket.fence)
