"""Decisions that nobody made in time: a task that waits for a person may not wait for ever."""

from __future__ import annotations

from collections.abc import Callable

from truegreen.contract import Contract, read_contract
from truegreen.facts import SYSTEM, Actor, Verdict
from truegreen.model import EventLevel, Level, Move, Outcome, TaskStatus
from truegreen.record.ledger.desk import Entry
from truegreen.record.ledger.verdicts import Verdicts
from truegreen.record.lifecycle import Step
from truegreen.record.rows import FindingRow, Task, read
from truegreen.record.store import Tx

_AT_ONCE = 1000


class Deadlines(Verdicts):
    """Who waits too long fails; nothing passes by time."""

    def expire_reviews(self, *, actor: Actor = SYSTEM) -> list[Task]:
        """Fail what nobody decided in the time that its contract gives people."""
        self._may(actor, "judge")
        with self._store.snapshot() as tx:
            rows, now = tx.all("undecided", n=_AT_ONCE), tx.now
        late = [task for task, since, text in rows if _is_late(since, read_contract(text), now)]
        return [self._expired(task, actor) for task in late]

    def _expired(self, task_id: str, actor: Actor) -> Task:
        def act(tx: Tx) -> Callable[[], Task]:
            work = self._work(tx, "latest_locked", key=self._task(tx, task_id).key)
            contract = read_contract(self._contract(tx, work.task))
            waits = work.task.status is TaskStatus.NEEDS_REVIEW
            if not waits or not _is_late(work.task.updated_at, contract, tx.now):
                return lambda: work.task
            found = [read(FindingRow, r) for r in tx.all("findings_of_run", run_key=work.run.key)]
            reason = f"nobody decided within {contract.review_within}"
            verdict = Verdict(
                outcome=Outcome.INCONCLUSIVE,
                reason=reason,
                digest=work.run.digest,
                contract_digest=work.task.contract_digest,
                level=work.run.level or Level.A0,
            )
            entry = Entry(actor, reason, run=work.run.id, level=EventLevel.WARN)
            step = Step(Move.FAIL, ())
            hit = self._conclude(tx, work, step, verdict, entry, found)
            return lambda: read(Task, hit.row)

        return self._do(act)


def _is_late(since: int, contract: Contract, now: int) -> bool:
    within = contract.review_within
    return within is not None and since + within <= now
