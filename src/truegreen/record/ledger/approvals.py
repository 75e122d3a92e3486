"""Verbs at a checkpoint: a run asks, a person answers, silence never approves.

An answer is for the tree that was asked about. Whether that tree still stands there is seen by
whoever holds the workspace; here it is only written down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

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
    Role,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger.answers import question_of, weighed
from truegreen.record.ledger.desk import (
    Entry,
    Work,
)
from truegreen.record.ledger.inputs import REASON_LIMIT, WORD_LIMIT
from truegreen.record.ledger.runs import (
    Runs,
)
from truegreen.record.lifecycle import decide
from truegreen.record.rows import Event, Task, read
from truegreen.record.store import Hit, Tx

_ASKED = (Move.PAUSE, Move.BLOCK)
CHANGED = "the work changed after it was asked for"
"""Why an approval is void, and the same question is asked again."""


class Question(NamedTuple):
    """What a paused run waits for: to do this, with the tree as it was then."""

    action: str
    digest: str
    at: int


class Approvals(Runs):
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
        with self._store.snapshot() as tx:
            row = tx.one("task", id=task_id)
            if row is None:
                raise NotFound(f"no task {task_id}")
            task = read(Task, row[:-1])
            event = question_of(tx, task)
        waits = task.status is TaskStatus.AWAITING_APPROVAL
        return _question(event) if waits and event else None

    def approve(
        self,
        task_id: str,
        *,
        actor: Actor,
        reason: str = "",
        digest: str | None = None,
        key: str | None = None,
    ) -> Task:
        """A person lets a paused run go on, with the tree that was asked about and no other."""
        self._may(actor, "approve")
        reason = self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            if self._done_before(tx, key, (Move.RESUME,), task_id):
                return lambda: task
            work = self._paused(tx, task, Move.RESUME)
            asked = _same_tree(question_of(tx, task), digest)
            data = {"digest": asked} if asked else {}
            entry = weighed(tx, task, Entry(actor, reason, run=work.run.id, data=data, key=key))
            hit = self._move(tx, task, Move.RESUME, entry, run_status=RunStatus.RUNNING)
            tx.hit("see_run", key=work.run.key, to_status=RunStatus.RUNNING, now=tx.now)
            self._nobody_needed(tx, task, f"approved by {actor}")
            return lambda: read(Task, hit.row)

        return self._do(act)

    def deny(self, task_id: str, *, actor: Actor, reason: str, key: str | None = None) -> Task:
        """An approval was denied by a person, or expired: the run ends and the task is blocked."""
        self._may(actor, "deny")
        reason = self._needed(reason, actor)
        person = actor.role is not Role.SYSTEM
        detail = ExitDetail.APPROVAL_CHECKPOINT if person else ExitDetail.APPROVAL_EXPIRED
        by = EndedBy.OPERATOR if person else EndedBy.SUPERVISOR

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            if self._done_before(tx, key, (Move.BLOCK,), task_id):
                return lambda: task
            work = self._paused(tx, task, Move.BLOCK)
            self._nobody_needed(tx, task, f"denied by {actor}: {reason}")
            hit = self._end_run(tx, work, _blocked(detail, by), Entry(actor, reason, key=key))
            return lambda: read(Task, hit.row)

        return self._do(act)

    def _paused(self, tx: Tx, task: Task, move: Move) -> Work:
        if task.sealed_at is not None:
            decide(task.status, move, sealed=True)
        if task.status is not TaskStatus.AWAITING_APPROVAL:
            message = f"{task.id} waits for no approval (status: {task.status}); {move} is refused"
            raise NotRunning(message, status=task.status)
        return self._work(tx, "latest_locked", key=task.key)


def _asked(entry: Entry, digest: str, void: str) -> Entry:
    """The entry of a question: what for, about which tree, and which approval it takes back."""
    data = {**entry.data, **({"digest": digest} if digest else {})}
    if not void:
        return entry._replace(data=data)
    reason = f"{CHANGED}: {entry.reason}"[:REASON_LIMIT]
    return entry._replace(reason=reason, data={**data, "void": void}, level=EventLevel.WARN)


def _question(event: Event) -> Question:
    data = msgspec.json.decode(event.data)
    return Question(data.get("action", ""), data.get("digest", ""), event.at)


def _same_tree(event: Event | None, digest: str | None) -> str:
    """The tree that was asked about; a person who looked at another has not approved this one."""
    asked = _question(event).digest if event else ""
    if digest is not None and digest != asked:
        message = f"the question moved on: you looked at {digest}, it is about {asked or 'no tree'}"
        raise Stale(message, stale="digest", current=asked)
    return asked


def _blocked(detail: ExitDetail, by: EndedBy = EndedBy.SUPERVISOR) -> Exit:
    return Exit(
        status=RunStatus.STOPPED,
        reason=PARENT[detail],
        detail=detail,
        ended_by=by,
    )
