"""A task life (open, start, end, find, judge) through the ledger, and the same rows written raw."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from truegreen.contract import Contract, Gate, GateKind, QaTerms, contract_digest
from truegreen.facts import SYSTEM, Actor, Claim, Exit, Finding, Proof, Verdict
from truegreen.model import (
    ClaimKind,
    EndedBy,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    Outcome,
    ProofStatus,
    Role,
    RunStatus,
)
from truegreen.record.ids import new_id
from truegreen.record.ledger import Ledger, Start

OPERATOR = Actor(Role.OPERATOR, "bench")
CONTRACT = Contract(
    title="fix the parser",
    goal="make the tests pass",
    gates=(Gate(name="tests", kind=GateKind.RUN, command=("pytest", "-q")),),
    qa=QaTerms(roles=()),
)
DIGEST = contract_digest(CONTRACT)
DEFINITION = CONTRACT.definition().definition_digest()
START = Start("bench", base_digest="before")
TRANSITIONS = 5
EXIT = Exit(
    status=RunStatus.EXITED,
    reason=ExitReason.DONE,
    detail=ExitDetail.COMPLETED,
    ended_by=EndedBy.AGENT,
    code=0,
    digest="after",
)
CLAIM = Claim(kind=ClaimKind.DONE, reason="all tests pass")
FINDING = Finding(
    check="tests",
    kind="run",
    outcome=FindingOutcome.PASSED,
    before=FindingOutcome.FAILED,
    reason="212 passed",
    digest="after",
    contract_digest=DIGEST,
    judge="truegreen",
    level=Level.A2,
)
VERDICT = Verdict(
    outcome=Outcome.PASSED,
    reason="gate tests: 212 passed",
    digest="after",
    contract_digest=DIGEST,
    level=Level.A2,
    proof=Proof(ProofStatus.SHOWN, ("gate:tests",)),
)


def steps(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """One task from open to green: the verb and the task after each acknowledged transition."""
    task = ledger.open(CONTRACT, actor=OPERATOR)
    yield "open", task.id
    ticket = ledger.start(task.id, START)
    yield "start", task.id
    ledger.end_run(ticket, EXIT, claim=CLAIM)
    yield "end_run", task.id
    ledger.record(ticket, [FINDING])
    yield "record", task.id
    ledger.judge(ticket, VERDICT)
    yield "judge", task.id


def life(ledger: Ledger) -> None:
    """One whole life."""
    for _ in steps(ledger):
        pass


class Execute(Protocol):
    """Runs a named statement."""

    def __call__(self, query: str, /, **values: object) -> object:
        """Nobody looks at the answer."""


class _Edge(NamedTuple):
    """An event: its place in the chain, and where it leads from and to."""

    revision: int
    event: str
    source: str | None = None
    target: str | None = None
    fence: int = 1


_NOW = 1_700_000_000_000_000
_HEAD = b"0" * 32
_BORN: dict[str, Any] = {
    "mode": "autonomous",
    "silent": 0,
    "rescued": 0,
    "overridden": 0,
    "falsified": 0,
    "checked": 0,
    "proof": None,
    "noop": 0,
    "sealed_at": None,
    "attempt": 1,
    "attempts": 0,
    "attempts_max": 3,
    "deferrals": 0,
    "qa_rounds": 0,
    "not_before": 0,
    "agent_key": None,
    "acceptance": None,
    "settled_at": None,
    "exit_reason": None,
    "exit_detail": None,
    "verdict": "unknown",
    "cell": None,
    "run_status": "starting",
    "to_head": _HEAD,
    "now": _NOW,
}
_ENDED = {
    "run_status": "exited",
    "cell": "awaiting_verdict",
    "verdict": "pending",
    "exit_reason": "done",
    "exit_detail": "completed",
}
_GREEN = {
    "cell": "true_green",
    "verdict": "passed",
    "checked": 1,
    "acceptance": "{}",
    "proof": "shown",
    "settled_at": _NOW,
}


class RawLife:
    """The same rows in the same five transactions, by prepared statements and nothing else.

    No reads, no decisions, no hashing: what the database alone costs, with our triggers in it.
    Only for a store that nobody has written to: keys are counted, not asked for.
    """

    def __init__(self, transaction: Callable[[], AbstractContextManager[Execute]]) -> None:
        self._transaction = transaction
        self._keys = itertools.count(1)

    def __call__(self) -> None:
        """One life."""
        key = next(self._keys)
        run = new_id("run", _NOW)
        for step in (self._open, self._start, self._end, self._find, self._judge):
            with self._transaction() as sql:
                step(sql, key, run)

    def _open(self, sql: Execute, key: int, _run: str) -> None:
        self._event(sql, key, None, _Edge(1, "open", fence=0))
        sql(
            "insert_task",
            key=key,
            id=new_id("tsk", _NOW),
            title=CONTRACT.title,
            goal=CONTRACT.goal,
            role="",
            mode="autonomous",
            head=_HEAD,
            attempts_max=3,
            deferrals_max=3,
            qa_rounds_max=2,
            priority=0,
            not_before=0,
            parent_key=None,
            qa_of_key=None,
            created_by="operator:bench",
            contract=CONTRACT.text(),
            contract_digest=DIGEST,
            proof_mode="required",
            now=_NOW,
        )
        sql(
            "insert_demand",
            task_key=key,
            labels="[]",
            lane=None,
            definition=DEFINITION,
            client=CONTRACT.adapter,
            agent="",
            host=None,
            folder_host=None,
            folder=None,
        )

    def _start(self, sql: Execute, key: int, run: str) -> None:
        edge = _Edge(2, "start", "queued", "running")
        self._event(sql, key, run, edge)
        self._task(sql, key, edge, 0, _BORN)
        sql(
            "insert_run",
            id=run,
            task_key=key,
            attempt=1,
            fence=1,
            agent_key=None,
            isolation="",
            base_digest="before",
            facts="{}",
            cost_granted=10_000,
            tokens_granted=1,
            folder_host="",
            folder="",
            now=_NOW,
        )
        sql(
            "insert_lease",
            run=run,
            token="t",  # noqa: S106 - no secret
            holder="bench",
            boot="",
            expires_at=_NOW,
            lasts=60_000_000,
            folder_host="",
            folder="",
        )

    def _end(self, sql: Execute, key: int, run: str) -> None:
        sql(
            "insert_claim",
            task_key=key,
            run_key=key,
            kind="done",
            reason="all tests pass",
            statements="[]",
            extra="{}",
            source="cli",
            now=_NOW,
        )
        edge = _Edge(3, "declare", "running", "pending_eval")
        self._event(sql, key, run, edge)
        self._task(sql, key, edge, 1, _BORN | _ENDED)
        sql(
            "end_run",
            key=key,
            status="exited",
            exit_reason="done",
            exit_detail="completed",
            exit_code=0,
            signal=None,
            ended_by="agent",
            admission="",
            verdict="pending",
            reason="",
            cell="awaiting_verdict",
            digest="after",
            usage="{}",
            cost=0,
            tokens=0,
            facts="{}",
            processes="unknown",
            now=_NOW,
        )

    def _find(self, sql: Execute, key: int, run: str) -> None:
        sql(
            "insert_finding",
            id=new_id("fnd", _NOW),
            task_key=key,
            run_key=key,
            phase="after",
            check_name="tests",
            kind="run",
            outcome="passed",
            before="failed",
            level="A2",
            score=None,
            counts="{}",
            reason="212 passed",
            evidence="{}",
            digest="after",
            contract_digest=DIGEST,
            judge="truegreen",
            judged="",
            isolation="none",
            duration_us=0,
            binding=1,
            now=_NOW,
        )
        self._event(sql, key, run, _Edge(4, "findings"))
        guard = {"status": "pending_eval", "fence": 1, "revision": 3}
        sql("note_task", key=key, **guard, to_head=_HEAD, now=_NOW)

    def _judge(self, sql: Execute, key: int, run: str) -> None:
        edge = _Edge(5, "accept", "pending_eval", "succeeded")
        self._event(sql, key, run, edge)
        self._task(sql, key, edge, 1, _BORN | _ENDED | _GREEN)
        sql(
            "judge_run",
            key=key,
            verdict="passed",
            level="A2",
            required_level="A2",
            proof='{"status":"shown","by":["gate:tests"],"reason":""}',
            reason="gate tests: 212 passed",
            cell="true_green",
            standing="checked",
            now=_NOW,
        )
        sql("drop_lease", run_key=key)

    @staticmethod
    def _event(sql: Execute, key: int, run: str | None, edge: _Edge) -> None:
        sql(
            "insert_event",
            id=new_id("evt", _NOW),
            task_key=key,
            run_id=run,
            revision=edge.revision,
            at=_NOW,
            level="info",
            event=edge.event,
            from_status=edge.source,
            to_status=edge.target,
            actor=str(SYSTEM),
            reason="",
            fence=edge.fence,
            idempotency_key=None,
            data="{}",
            hash=_HEAD,
        )

    @staticmethod
    def _task(sql: Execute, key: int, edge: _Edge, fence: int, row: dict[str, Any]) -> None:
        sql(
            "write_task",
            **row,
            key=key,
            revision=edge.revision - 1,
            status=edge.source,
            to_status=edge.target,
            fence=fence,
            to_fence=edge.fence,
        )
