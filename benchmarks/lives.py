"""A whole task life through the ledger, and the same rows written raw: open, start, end, find, judge."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from truegreen.contract import Contract, Qa, contract_digest
from truegreen.facts import SYSTEM, Actor, Claim, Exit, Finding, Verdict
from truegreen.model import (
    ClaimKind,
    EndedBy,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    Outcome,
    Role,
    RunStatus,
)
from truegreen.record.ids import new_id
from truegreen.record.ledger import Ledger, Start

OPERATOR = Actor(Role.OPERATOR, "bench")
CONTRACT = Contract(title="fix the parser", goal="make the tests pass", qa=Qa(roles=()))
DIGEST = contract_digest(CONTRACT)
TRANSITIONS = 5
_EXIT = Exit(
    status=RunStatus.EXITED,
    reason=ExitReason.DONE,
    detail=ExitDetail.COMPLETED,
    ended_by=EndedBy.AGENT,
    code=0,
    digest="after",
)
_CLAIM = Claim(kind=ClaimKind.DONE, reason="all tests pass")
_FINDING = Finding(
    check="tests",
    kind="run",
    outcome=FindingOutcome.PASSED,
    reason="212 passed",
    digest="after",
    contract_digest=DIGEST,
    judge="truegreen",
)
_VERDICT = Verdict(
    outcome=Outcome.PASSED,
    reason="gate tests: 212 passed",
    digest="after",
    contract_digest=DIGEST,
    level=Level.A2,
)


def life(ledger: Ledger) -> str:
    """One task from open to green, five acknowledged transitions."""
    task = ledger.open(CONTRACT, actor=OPERATOR)
    ticket = ledger.start(task.id, Start("bench", base_digest="before"))
    ledger.end_run(ticket, _EXIT, claim=_CLAIM)
    ledger.record(ticket, [_FINDING])
    ledger.judge(ticket, _VERDICT)
    return task.id


class Execute(Protocol):
    """Runs a named statement."""

    def __call__(self, query: str, /, **values: object) -> object:
        """Nobody looks at the answer."""


class RawLife:
    """The same rows in the same five transactions, by prepared statements and nothing else.

    No reads, no decisions, no hashing: what the database alone costs, with our triggers in it.
    """

    def __init__(self, transaction: Callable[[], AbstractContextManager[Execute]]) -> None:
        self._transaction = transaction
        self._keys = itertools.count(1)

    def __call__(self) -> str:
        """One life."""
        key = next(self._keys)
        now = 1_700_000_000_000_000
        task, run = new_id("tsk", now), new_id("run", now)
        row = {
            "key": key,
            "mode": "autonomous",
            "rescued": 0,
            "overridden": 0,
            "sealed_at": None,
            "attempts": 0,
            "attempts_max": 3,
            "deferrals": 0,
            "qa_rounds": 0,
            "not_before": 0,
            "agent_key": None,
            "acceptance": None,
            "settled_at": None,
            "to_head": b"0" * 32,
            "now": now,
            "exit_reason": None,
            "exit_detail": None,
        }
        with self._transaction() as run_sql:
            self._event(run_sql, key, 1, "open", None, None, None, 0)
            run_sql(
                "insert_task",
                key=key,
                id=task,
                title=CONTRACT.title,
                goal=CONTRACT.goal,
                role="",
                mode="autonomous",
                head=b"0" * 32,
                attempts_max=3,
                deferrals_max=3,
                qa_rounds_max=2,
                priority=0,
                parent_key=None,
                qa_of_key=None,
                created_by="operator:bench",
                contract=CONTRACT.text(),
                contract_digest=DIGEST,
                now=now,
            )
        with self._transaction() as run_sql:
            self._event(run_sql, key, 2, "start", "queued", "running", run, 1)
            row |= {"run_status": "starting", "cell": None, "verdict": "unknown", "attempt": 1}
            self._task(run_sql, row, 1, ("queued", "running"), (0, 1))
            run_sql(
                "insert_run",
                id=run,
                task_key=key,
                attempt=1,
                fence=1,
                agent_key=None,
                isolation="",
                base_digest="before",
                facts="{}",
                now=now,
            )
            run_sql(
                "insert_lease", run=run, token="t", holder="bench", boot="", expires_at=now
            )
        with self._transaction() as run_sql:
            run_sql(
                "insert_claim",
                task_key=key,
                run_key=key,
                kind="done",
                reason="all tests pass",
                statements="[]",
                extra="{}",
                source="cli",
                now=now,
            )
            self._event(run_sql, key, 3, "declare", "running", "pending_eval", run, 1)
            row |= {"run_status": "exited", "cell": "awaiting_verdict", "verdict": "pending"}
            row |= {"exit_reason": "done", "exit_detail": "completed"}
            self._task(run_sql, row, 2, ("running", "pending_eval"), (1, 1))
            run_sql(
                "end_run",
                key=key,
                status="exited",
                exit_reason="done",
                exit_detail="completed",
                exit_code=0,
                signal=None,
                ended_by="agent",
                verdict="pending",
                cell="awaiting_verdict",
                digest="after",
                usage="{}",
                now=now,
            )
        with self._transaction() as run_sql:
            run_sql(
                "insert_finding",
                id=new_id("fnd", now),
                task_key=key,
                run_key=key,
                phase="after",
                check_name="tests",
                kind="run",
                outcome="passed",
                before=None,
                level="A1",
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
                now=now,
            )
            self._event(run_sql, key, 4, "findings", None, None, run, 1)
            run_sql(
                "note_task",
                key=key,
                status="pending_eval",
                fence=1,
                revision=3,
                to_head=b"0" * 32,
                now=now,
            )
        with self._transaction() as run_sql:
            self._event(run_sql, key, 5, "accept", "pending_eval", "succeeded", run, 1)
            row |= {"cell": "true_green", "verdict": "passed", "acceptance": "{}"}
            row |= {"settled_at": now}
            self._task(run_sql, row, 4, ("pending_eval", "succeeded"), (1, 1))
            run_sql(
                "judge_run",
                key=key,
                verdict="passed",
                level="A2",
                reason="gate tests: 212 passed",
                cell="true_green",
                now=now,
            )
            run_sql("drop_lease", run_key=key)
        return task

    @staticmethod
    def _event(
        run_sql: Execute,
        key: int,
        revision: int,
        event: str,
        source: str | None,
        target: str | None,
        run: str | None,
        fence: int,
    ) -> None:
        run_sql(
            "insert_event",
            id=new_id("evt", 1_700_000_000_000_000),
            task_key=key,
            run_id=run,
            revision=revision,
            at=1_700_000_000_000_000,
            level="info",
            event=event,
            from_status=source,
            to_status=target,
            actor=str(SYSTEM),
            reason="",
            fence=fence,
            idempotency_key=None,
            data="{}",
            hash=b"0" * 32,
        )

    @staticmethod
    def _task(
        run_sql: Execute, row: dict[str, Any], revision: int, edge: tuple[str, str], fence: tuple[int, int]
    ) -> None:
        run_sql(
            "write_task",
            **row,
            revision=revision,
            status=edge[0],
            to_status=edge[1],
            fence=fence[0],
            to_fence=fence[1],
        )
