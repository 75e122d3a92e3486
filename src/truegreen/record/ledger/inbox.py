"""Verbs about what waits for a person: take it, put it off, deal with it."""

from __future__ import annotations

from collections.abc import Callable

from truegreen.contract import ALERTS
from truegreen.errors import InvalidInput, NotFound, Refused, Stale
from truegreen.facts import Actor
from truegreen.model import InboxState, Note
from truegreen.record.ledger.answers import Asks, open_for, questions
from truegreen.record.ledger.desk import (
    Desk,
    Entry,
)
from truegreen.record.ledger.inputs import typed
from truegreen.record.rows import InboxItem, Task, read
from truegreen.record.store import Tx

LONGEST_SNOOZE = 30 * 86400.0
_QUIET = 86_400_000_000
"""For how long an alert that a person resolved is not raised again while its condition lasts."""


class Inbox(Desk):
    """One inbox for people."""

    def ack(self, item_id: str, *, actor: Actor) -> InboxItem:
        """Somebody looks into it."""
        return self._handled(item_id, InboxState.ACKED, Entry(actor))

    def snooze(
        self, item_id: str, *, seconds: float, actor: Actor, whole_topic: bool = False
    ) -> InboxItem:
        """Put it off, and what still comes with its topic if that is meant; it comes back."""
        if not 0 < typed(seconds, float) <= LONGEST_SNOOZE:
            raise InvalidInput("snooze for more than nothing and at most 30 days")
        return self._handled(
            item_id,
            InboxState.SNOOZED,
            Entry(actor),
            seconds=seconds,
            whole_topic=whole_topic,
        )

    def resolve(self, item_id: str, *, outcome: str, actor: Actor) -> InboxItem:
        """It is dealt with, and this is how; a question that a task waits for is answered."""
        return self._handled(
            item_id, InboxState.RESOLVED, Entry(actor, self._needed(outcome, actor))
        )

    def was_done(self, key: str | None) -> bool:
        """Whether something was done under this key already."""
        with self._store.snapshot() as tx:
            return bool(key) and tx.one("event_by_key", idempotency_key=key) is not None

    def _handled(
        self,
        item_id: str,
        state: InboxState,
        entry: Entry,
        *,
        seconds: float = 0,
        whole_topic: bool = False,
    ) -> InboxItem:
        self._may(entry.actor, "triage")
        self._said("", entry.actor)

        def act(tx: Tx) -> Callable[[], InboxItem]:
            row = tx.one("inbox_item_locked", id=item_id)
            if row is None:
                raise NotFound(f"no inbox item {item_id}", kind="inbox")
            item = read(InboxItem, row)
            if item.state is InboxState.RESOLVED:
                raise Stale(f"{item_id} is resolved already: {item.outcome}", stale="state")
            task = tx.one("task_locked_by_key", key=item.task_key)
            resolved = state is InboxState.RESOLVED
            if task and resolved:
                _check_unasked(tx, item, read(Task, task))
            hit = tx.hit(
                "write_inbox_item",
                key=item.key,
                state=state,
                owner=str(entry.actor),
                snoozed_until=tx.now + int(seconds * 1e6) if seconds else None,
                whole_topic=int(whole_topic),
                outcome=entry.reason if resolved else None,
                quiet_until=tx.now + _QUIET if resolved and item.cell in ALERTS else 0,
                now=tx.now,
            )
            if resolved:  # the next one with this topic is news, however soon it comes
                tx.run("end_cooling", topic=item.topic)
            if task:
                data = {"item": item_id, "state": state}
                self._note(tx, read(Task, task), Note.INBOX, entry._replace(data=data))
            return lambda: read(InboxItem, hit.row)

        return self._do(act)


def _check_unasked(tx: Tx, item: InboxItem, task: Task) -> None:
    """Refuse to close a question that a task waits for: nobody would see it again."""
    asked = open_for(item, questions(tx, [task.key]).get(task.key))
    if asked is None or asked.kind is not Asks.APPROVAL:
        return
    steps = (f"truegreen approve {task.id}", f"truegreen reject {task.id} --reason …")
    words = f"{item.id} is a question that {task.id} waits for, and an outcome is no answer to it"
    raise Refused(f"{words}: {' or '.join(steps)}", allowed=steps, status=task.status)
