"""Verbs about a whole task before and between its runs: open it, unblock it, try it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truegreen.contract import Contract, contract_digest
from truegreen.contract.reading import checked_word
from truegreen.errors import InvalidInput, KeyReused, Refused
from truegreen.facts import Actor
from truegreen.model import Mode, Move, Note, Outcome, TaskStatus
from truegreen.record.chain import GENESIS
from truegreen.record.folders import folder_key, node
from truegreen.record.ids import new_id
from truegreen.record.ledger.conditions import latest_of
from truegreen.record.ledger.desk import (
    Entry,
    Link,
)
from truegreen.record.ledger.dispatch import Dispatch
from truegreen.record.ledger.inputs import to_json, typed
from truegreen.record.lifecycle import TARGETS, decide
from truegreen.record.rows import Task, read
from truegreen.record.store import Hit, Tx

MOST_ATTEMPTS = 100


class Tasks(Dispatch):
    """A task outside its runs."""

    def open(
        self,
        contract: Contract,
        *,
        actor: Actor,
        key: str | None = None,
        parent: str | None = None,
        holder: str = "",
    ) -> Task:
        """Create a queued task with a frozen contract; a `holder` will carry it out itself."""
        self._may(actor, "open")
        self._said("", actor)

        def act(tx: Tx) -> Callable[[], Task]:
            before = self._done_before(tx, key, (Note.OPEN,))
            if before:
                first = _same(self._task(tx, before), contract)
                return lambda: first
            above = self._task(tx, parent).key if parent else None
            if above is not None:
                self._own(tx, actor, "task_in_tree", above)
            task_id, hit = self._open(tx, contract, Entry(actor, key=key), parent_key=above)
            if holder:
                self._reserve(tx, task_id, holder)
            return lambda: read(Task, hit.row)

        return self._do(act)

    def _open(
        self,
        tx: Tx,
        contract: Contract,
        entry: Entry,
        *,
        parent_key: int | None = None,
        qa_of_key: int | None = None,
    ) -> tuple[str, Hit]:
        task_key = (tx.one("next_task_key") or (0,))[0]
        task_id = new_id("tsk", tx.now)
        digest, waits = contract_digest(contract), contract.waits()
        link = Link(task_key, task_id, 1, GENESIS, 0)
        entry = entry._replace(data={**entry.data, "contract": digest})
        head = self._event(tx, link, Note.OPEN, entry, (None, None))
        hit = tx.hit(
            "insert_task",
            key=task_key,
            id=task_id,
            title=contract.title,
            goal=contract.goal,
            role=contract.role,
            mode=contract.mode,
            head=head,
            attempts_max=contract.budget.attempts,
            deferrals_max=contract.budget.deferrals,
            qa_rounds_max=contract.budget.qa_rounds,
            priority=contract.priority,
            parent_key=parent_key,
            qa_of_key=qa_of_key,
            created_by=str(entry.actor),
            contract=contract.text(),
            contract_digest=digest,
            proof_mode=contract.proof,
            not_before=latest_of(waits, tx.now),
            now=tx.now,
        )
        tx.hints = True
        tx.run(
            "insert_demand",
            task_key=task_key,
            labels=to_json(contract.labels),
            lane=contract.lane or None,
            definition=contract.definition().definition_digest(),
            client=contract.client,
            agent=contract.agent,
            host=contract.host or None,
            **_folder(contract, is_review=qa_of_key is not None),
        )
        if waits:
            task = self._task(tx, task_id)
            self._wait_from_the_start(tx, task, waits, contract.cwd, entry.actor)
        return task_id, hit

    def unblock(
        self,
        task_id: str,
        *,
        actor: Actor,
        reason: str,
        mode: Mode | None = None,
        more_attempts: int = 0,
        key: str | None = None,
    ) -> Task:
        """Let a blocked task run again, in another mode if asked. It pays an attempt.

        A budget that is spent gets the one attempt that this needs, in the actor's name.
        """
        return self._requeued(
            task_id, Move.UNBLOCK, Entry(actor, reason, key=key), mode, more_attempts
        )

    def retry(
        self,
        task_id: str,
        *,
        actor: Actor,
        reason: str,
        more_attempts: int = 0,
        key: str | None = None,
    ) -> Task:
        """Another attempt by a person's wish; after an outcome it reopens the task."""
        return self._requeued(
            task_id, Move.RETRY, Entry(actor, reason, key=key), None, more_attempts
        )

    def _requeued(
        self, task_id: str, move: Move, entry: Entry, mode: Mode | None, more: int
    ) -> Task:
        self._may(entry.actor, "recover")
        if mode is not None:
            checked_word(mode, "mode", Mode)
        typed(more, int)
        self._needed(entry.reason, entry.actor)

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            moves = (Move.RETRY, Move.REOPEN) if move is Move.RETRY else (move,)
            if self._done_before(tx, entry.key, moves, task_id):
                return lambda: task
            wanted = next((m for m in moves if (task.status, m) in TARGETS), move)
            done = self._again(tx, task, wanted, entry, mode, more)
            return lambda: done

        return self._do(act)

    def _again(
        self, tx: Tx, task: Task, wanted: Move, entry: Entry, mode: Mode | None, more: int
    ) -> Task:
        """Back into the queue by somebody's wish."""
        decide(task.status, wanted, sealed=task.sealed_at is not None)
        if task.status is TaskStatus.RUNNING:
            raise Refused(f"{task.id} has a live run; stop it first", status=task.status)
        if wanted is not Move.REOPEN and more >= 0:
            more = max(more, _lacking(task))
        changes = reset(task, more) if wanted is Move.REOPEN else _paid(task, more)
        if wanted is Move.RETRY:
            changes |= self._left(tx, task)
        data: dict[str, Any] = {
            "mode": mode or task.mode,
            "attempts": [changes["attempts"], changes["attempts_max"]],
        }
        if more:
            data["more_attempts"] = more
        if task.acceptance:
            data["acceptance"] = task.acceptance
        said = entry._replace(data=data)
        self._move(tx, task, wanted, said, mode=mode or task.mode, not_before=0, **changes)
        self._nobody_needed(tx, task, f"{wanted} by {entry.actor}: {entry.reason}")
        self._ask_first(tx, task)
        return self._task(tx, task.id)

    def _left(self, tx: Tx, task: Task) -> dict[str, Any]:
        """Nobody owns the run that a task is sent away from, and nobody will judge it."""
        run = self._work(tx, "latest_locked", key=task.key).run
        tx.run("drop_lease", run_key=run.key)
        if run.verdict is not Outcome.PENDING or run.exit_reason is None:
            return {}
        cell = self._unjudged(tx, run, run.exit_reason)
        return {"verdict": Outcome.UNKNOWN, "cell": cell}


def _folder(contract: Contract, *, is_review: bool) -> dict[str, str | None]:
    """Where a task will work; nothing where it gets a checkout or a copy of its own."""
    source = contract.source
    apart = contract.worktree or (source is not None and source.apart) or is_review
    if apart or not contract.cwd:
        return {"folder_host": None, "folder": None}
    home = contract.host or (source.host if source else "") or node()
    return {"folder_host": home, "folder": folder_key(contract.cwd)}


def _same(first: Task, contract: Contract) -> Task:
    """The task that a key made, if it made it from this contract."""
    if first.contract_digest != contract_digest(contract):
        raise KeyReused(f"the idempotency key was used for another contract: {first.id}")
    return first


def reset(task: Task, more: int = 0) -> dict[str, Any]:
    """A reopened task starts with a whole budget and without an outcome; badges stay.

    Who reopens proven work says that its verdict was wrong.
    """
    return {
        "attempts": 0,
        "deferrals": 0,
        "qa_rounds": 0,
        "attempts_max": _granted(task, more),
        "verdict": Outcome.UNKNOWN,
        "cell": None,
        "acceptance": None,
        "proof": None,
        "falsified": task.falsified or task.status is TaskStatus.SUCCEEDED,
    }


def _granted(task: Task, more: int) -> int:
    """The limit of a task's attempts with some more of them; it stays finite."""
    limit = task.attempts_max + more
    if more < 0 or limit > MOST_ATTEMPTS:
        raise InvalidInput(f"attempts must stay between 1 and {MOST_ATTEMPTS}")
    return limit


def _lacking(task: Task) -> int:
    """The attempt that a person grants by asking for one beyond the budget; the event names it."""
    return max(0, task.attempts + 2 - task.attempts_max)


def _paid(task: Task, more: int) -> dict[str, Any]:
    """One attempt is charged; with what was granted at least one is left to start."""
    return {"attempts": task.attempts + 1, "attempts_max": _granted(task, more)}
