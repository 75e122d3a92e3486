"""What people decide: a review of what checks could not decide, bound to what was looked at.

It overrules nothing without saying so: the event names the checks that were red and the QA that was
not waited for, and the task wears a badge for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truegreen.errors import NotFound, Refused
from truegreen.facts import Actor, Finding, Proof, Verdict
from truegreen.model import (
    FindingOutcome,
    Level,
    Move,
    Outcome,
    Phase,
    ProofStatus,
    TaskStatus,
)
from truegreen.record.ledger.answers import check_answered, question_of, weighed
from truegreen.record.ledger.desk import Entry, Work
from truegreen.record.ledger.inputs import REASON_LIMIT
from truegreen.record.ledger.tasks import reset
from truegreen.record.ledger.terms import budget_of
from truegreen.record.ledger.verdicts import UNDER_CHECK, Verdicts, is_answer, judged_of, proof_of
from truegreen.record.lifecycle import Step, after_rejection, decide
from truegreen.record.rows import FindingRow, Task, read
from truegreen.record.store import Hit, Tx

_REJECTIONS = (Move.RETRY, Move.FAIL, Move.BLOCK, Move.REOPEN)


class Reviews(Verdicts):
    """A person's word, which overrides nothing without leaving a badge."""

    def review(
        self,
        task_id: str,
        *,
        accept: bool,
        actor: Actor,
        reason: str,
        question: str | None = None,
        digest: str | None = None,
        key: str | None = None,
    ) -> Task:
        """A person decides what checks could not; bound to what they looked at."""
        self._may(actor, "review")
        reason = self._needed(reason, actor)

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            answers = (Move.ACCEPT,) if accept else _REJECTIONS
            if self._done_before(tx, key, answers, task_id):
                return lambda: task
            if task.sealed_at is None:
                check_answered(task, question_of(tx, task), question, digest)
            if accept and task.status in UNDER_CHECK:
                raise Refused(f"{task.id} is under check; wait for the verdict (or reject it)")
            overturns = not accept and task.status is TaskStatus.SUCCEEDED
            move = Move.REOPEN if overturns else Move.ACCEPT
            decide(task.status, move, sealed=task.sealed_at is not None)
            work = self._work(tx, "latest_locked", key=task.key)
            outcome = FindingOutcome.PASSED if accept else FindingOutcome.FAILED
            self._find(tx, work, _opinion(work, outcome, reason, actor))
            found = [read(FindingRow, r) for r in tx.all("findings_of_run", run_key=work.run.key)]
            entry = Entry(actor, reason, run=work.run.id, key=key)
            if overturns:
                hit = self._overturned(tx, work.task, entry)
            else:
                hit = self._reviewed(tx, work, entry, found, accept=accept)
            return lambda: read(Task, hit.row)

        return self._do(act)

    def _overturned(self, tx: Tx, task: Task, entry: Entry) -> Hit:
        """Green work turned out wrong: its verdict stays as it was given, and is called false."""
        data = {"acceptance": task.acceptance, "falsified": True}
        return self._move(
            tx, task, Move.REOPEN, entry._replace(data=data), not_before=0, **reset(task)
        )

    def _reviewed(
        self, tx: Tx, work: Work, entry: Entry, found: list[FindingRow], *, accept: bool
    ) -> Hit:
        verdict = Verdict(
            outcome=Outcome.PASSED if accept else Outcome.FAILED,
            reason=f"{entry.actor}: {entry.reason}"[:REASON_LIMIT],
            digest=work.run.digest,
            contract_digest=work.task.contract_digest,
            level=work.run.level or Level.A1 if any(map(is_answer, found)) else Level.A0,
            require=work.terms.require,
            proof=Proof(ProofStatus.SHOWN, (f"person:{entry.actor.name}",), entry.reason)
            if accept
            else proof_of(work.run),
        )
        self._nobody_needed(tx, work.task, verdict.reason)
        self._call_off(
            tx, work.task, Entry(entry.actor, f"{work.task.id} was reviewed by a person")
        )
        if not accept:
            step = after_rejection(judged_of(work, found), work.policy, budget_of(work.task))
            return self._conclude(tx, work, step, verdict, entry, found)
        overruled = _overruled(work, found)
        overridden = work.task.overridden or bool(overruled)
        said = weighed(tx, work.task, entry._replace(data=overruled))
        step = Step(Move.ACCEPT)
        return self._conclude(tx, work, step, verdict, said, found, overridden=overridden)

    def reviews_of(self, task_id: str) -> list[Task]:
        """The QA reviews of a task, oldest first."""
        with self._store.snapshot() as tx:
            row = tx.one("task", id=task_id)
            if row is None:
                raise NotFound(f"no task {task_id}")
            return [read(Task, each) for each in tx.all("answers_by_qa", key=row[0])]


def _overruled(work: Work, found: list[FindingRow]) -> dict[str, Any]:
    """What a person's yes goes against: checks that were red, and QA that was not waited for."""
    red = {
        f.check_name
        for f in found
        if f.binding and f.outcome is FindingOutcome.FAILED and f.phase is not Phase.BASELINE
    }
    skipped = {"skipped_qa": True} if work.policy.chained else {}
    return {**({"red": sorted(red)} if red else {}), **skipped}


def _opinion(work: Work, outcome: FindingOutcome, reason: str, actor: Actor) -> Finding:
    return Finding(
        check="review",
        kind="person",
        outcome=outcome,
        reason=reason,
        digest=work.run.digest,
        contract_digest=work.task.contract_digest,
        judge=str(actor),
        phase=Phase.REVIEW,
    )
