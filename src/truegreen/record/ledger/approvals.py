"""Verbs at a checkpoint: a run asks, a person answers, silence never approves.

An answer is for the tree that was asked about. Whether that tree still stands there is seen by
whoever holds the workspace; here it is only written down. A queued task may ask before it starts.
"""

from __future__ import annotations

from collections.abc import Callable

from truegreen.contract import checked
from truegreen.errors import NotFound, NotRunning, Stale
from truegreen.facts import Actor, Exit, Ticket
from truegreen.model import (
    PARENT,
    EndedBy,
    EventLevel,
    ExitDetail,
    Mode,
    Move,
    Note,
    Role,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger.answers import (
    Asks,
    Question,
    check_answered,
    question_of,
    weighed,
)
from truegreen.record.ledger.conditions import Conditions, first_question
from truegreen.record.ledger.desk import (
    Entry,
    Work,
)
from truegreen.record.ledger.endings import Endings
from truegreen.record.ledger.inputs import REASON_LIMIT, WORD_LIMIT
from truegreen.record.ledger.runs import (
    Runs,
)
from truegreen.record.lifecycle import decide
from truegreen.record.rows import Task, read
from truegreen.record.store import Hit, Tx

_ASKED = (Move.PAUSE, Move.BLOCK)
CHANGED = "the work changed after it was asked for"
"""Why an approval is void, and the same question is asked again."""


class Approvals(Conditions, Endings, Runs):
    """What happens between «may I?» and the answer."""

    def checkpoint(
        self,
        ticket: Ticket,
        action: str,
        *,
        actor: Actor,
        digest: str = "",
        void: str = "",
        key: str | None = None,
    ) -> Task:
        """The agent needs an approval: assisted and interactive pause, autonomous ends blocked.

        `digest` is the tree that is asked about. `void` is the one that an approval was for which
        does not hold any more: then the question is a new one, and a warning.
        """
        self._may(actor, "supervise" if void else "pause")
        action = checked(action, "action", REASON_LIMIT)
        for tree in (digest, void):
            checked(tree, "digest", WORD_LIMIT)

        def act(tx: Tx) -> Callable[[], Task]:
            if self._done_before(tx, key, _ASKED, ticket.task, ticket.run):
                done = self._task(tx, ticket.task)
                return lambda: done
            work = self._live(tx, ticket, actor)
            entry = Entry(actor, action, run=ticket.run, data={"action": action}, key=key)
            if work.task.mode is Mode.AUTONOMOUS:
                hit = self._end_run(tx, work, _blocked(ExitDetail.APPROVAL_CHECKPOINT), entry)
            else:
                hit = self._pause(tx, work, _asked(entry, digest, void))
            return lambda: read(Task, hit.row)

        return self._witnessed("checkpoint", actor, ticket, act, {"action": action})

    def _pause(self, tx: Tx, work: Work, entry: Entry) -> Hit:
        hit = self._move(tx, work.task, Move.PAUSE, entry, run_status=RunStatus.PAUSED)
        tx.hit("see_run", key=work.run.key, to_status=RunStatus.PAUSED, now=tx.now)
        self._attend(tx, work, Move.PAUSE, None, entry.reason)
        return hit

    def question(self, task_id: str) -> Question | None:
        """What a task waits for an approval of; None if it waits for none."""
        asked = self.answerable(task_id)
        return asked if asked and asked.kind is Asks.APPROVAL else None

    def answerable(self, task_id: str) -> Question | None:
        """What somebody can answer about a task now: an approval, a review, or an acceptance."""
        with self._store.snapshot() as tx:
            row = tx.one("task", id=task_id)
            if row is None:
                raise NotFound(f"no task {task_id}")
            return question_of(tx, read(Task, row[:-1]))

    def approve(
        self,
        task_id: str,
        *,
        actor: Actor,
        reason: str = "",
        question: str | None = None,
        digest: str | None = None,
        key: str | None = None,
    ) -> Task:
        """A person lets a paused run go on: what it asked, with the tree that was asked about.

        `question` and `digest` are what the person looked at; for anything else it is refused.
        """
        self._may(actor, "approve")
        reason = self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            if self._done_before(tx, key, (Move.RESUME, Note.MESSAGE), task_id):
                return lambda: task
            asked = self._answered(tx, task, Move.RESUME, question, digest)
            if asked and task.status is TaskStatus.QUEUED:
                let = self._let_start(tx, task, asked, Entry(actor, reason, key=key))
                return lambda: let
            work = self._paused(tx, task)
            data = {"digest": asked.digest} if asked and asked.digest else {}
            entry = weighed(tx, task, Entry(actor, reason, run=work.run.id, data=data, key=key))
            hit = self._move(tx, task, Move.RESUME, entry, run_status=RunStatus.RUNNING)
            tx.hit("see_run", key=work.run.key, to_status=RunStatus.RUNNING, now=tx.now)
            self._nobody_needed(tx, task, f"approved by {actor}")
            return lambda: read(Task, hit.row)

        return self._do(act)

    def deny(
        self,
        task_id: str,
        *,
        actor: Actor,
        reason: str,
        question: str | None = None,
        digest: str | None = None,
        key: str | None = None,
    ) -> Task:
        """An approval was denied by a person, or expired: the run ends and the task is blocked.

        One that has not begun is called off, by a person alone.
        """
        self._may(actor, "deny")
        reason = self._needed(reason, actor)
        person = actor.role is not Role.SYSTEM
        detail = ExitDetail.APPROVAL_CHECKPOINT if person else ExitDetail.APPROVAL_EXPIRED
        by = EndedBy.OPERATOR if person else EndedBy.SUPERVISOR

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            if self._done_before(tx, key, (Move.BLOCK, Move.CANCEL), task_id):
                return lambda: task
            asked = self._answered(tx, task, Move.BLOCK, question, digest)
            if asked and task.status is TaskStatus.QUEUED:
                off = self._never_start(tx, task, asked, Entry(actor, reason, key=key))
                return lambda: off
            work = self._paused(tx, task)
            self._nobody_needed(tx, task, f"denied by {actor}: {reason}")
            hit = self._end_run(tx, work, _blocked(detail, by), Entry(actor, reason, key=key))
            return lambda: read(Task, hit.row)

        return self._do(act)

    @staticmethod
    def _answered(
        tx: Tx, task: Task, move: Move, question: str | None, digest: str | None
    ) -> Question | None:
        """The question that is answered, if it is the one that was looked at."""
        if task.sealed_at is not None:
            decide(task.status, move, sealed=True)
        asked = question_of(tx, task)
        check_answered(task, asked, question, digest)
        return asked

    def _let_start(self, tx: Tx, task: Task, asked: Question, entry: Entry) -> Task:
        """A person's yes to what a queued task waits for; its next question is asked now."""
        condition = first_question(tx, task.key)
        if condition is None or condition.id != asked.id:
            raise Stale(f"another question of {task.id} is open now", stale="question")
        said = weighed(tx, task, entry._replace(data={"question": asked.action}))
        self._nobody_needed(tx, task, f"approved by {entry.actor}")
        self._meet(tx, task, condition, said, {"reason": entry.reason})
        self._ask_first(tx, task)
        return self._task(tx, task.id)

    def _never_start(self, tx: Tx, task: Task, asked: Question, entry: Entry) -> Task:
        """A person's no before anything has begun: there is no run to block, so it is called off.

        It can be reopened, and asks again then.
        """
        self._may(entry.actor, "approve")
        data = {"denied": asked.action, "condition": asked.id, "prior_status": task.status}
        data |= self._call_off_wakes(tx, task, entry)
        self._end(tx, task, Move.CANCEL, entry._replace(data=data))
        return self._task(tx, task.id)

    def _paused(self, tx: Tx, task: Task) -> Work:
        if task.status is not TaskStatus.AWAITING_APPROVAL:
            message = f"{task.id} waits for no approval (status: {task.status})"
            raise NotRunning(message, status=task.status)
        return self._work(tx, "latest_locked", key=task.key)


def _asked(entry: Entry, digest: str, void: str) -> Entry:
    """The entry of a question: what for, about which tree, and which approval it takes back."""
    data = {**entry.data, **({"digest": digest} if digest else {})}
    if not void:
        return entry._replace(data=data)
    reason = f"{CHANGED}: {entry.reason}"[:REASON_LIMIT]
    return entry._replace(reason=reason, data={**data, "void": void}, level=EventLevel.WARN)


def _blocked(detail: ExitDetail, by: EndedBy = EndedBy.SUPERVISOR) -> Exit:
    return Exit(
        status=RunStatus.STOPPED,
        reason=PARENT[detail],
        detail=detail,
        ended_by=by,
    )
