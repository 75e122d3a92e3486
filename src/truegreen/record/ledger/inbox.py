"""Verbs about what waits for a person: take it, put it off, deal with it."""

from __future__ import annotations

from collections.abc import Callable

from truegreen.errors import InvalidInput, NotFound, Stale
from truegreen.facts import Actor
from truegreen.model import InboxState, Note
from truegreen.record.ledger.desk import (
    Desk,
    Entry,
)
from truegreen.record.ledger.inputs import typed
from truegreen.record.rows import InboxItem, Task, read
from truegreen.record.store import Tx

LONGEST_SNOOZE = 30 * 86400.0


class Inbox(Desk):
    """One inbox for people."""

    def ack(self, item_id: str, *, actor: Actor) -> InboxItem:
        """Somebody looks into it."""
        return self._handled(item_id, InboxState.ACKED, Entry(actor))

    def snooze(self, item_id: str, *, seconds: float, actor: Actor) -> InboxItem:
        """Put it off; it comes back by itself."""
        if not 0 < typed(seconds, float) <= LONGEST_SNOOZE:
            raise InvalidInput("snooze for more than nothing and at most 30 days")
        return self._handled(item_id, InboxState.SNOOZED, Entry(actor), seconds=seconds)

    def resolve(self, item_id: str, *, outcome: str, actor: Actor) -> InboxItem:
        """It is dealt with, and this is how."""
        return self._handled(
            item_id, InboxState.RESOLVED, Entry(actor, self._needed(outcome, actor))
        )

    def _handled(
        self, item_id: str, state: InboxState, entry: Entry, *, seconds: float = 0
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
            hit = tx.hit(
                "write_inbox_item",
                key=item.key,
                state=state,
                owner=str(entry.actor),
                snoozed_until=tx.now + int(seconds * 1e6) if seconds else None,
                outcome=entry.reason if state is InboxState.RESOLVED else None,
                now=tx.now,
            )
            if task:
                data = {"item": item_id, "state": state}
                self._note(tx, read(Task, task), Note.INBOX, entry._replace(data=data))
            return lambda: read(InboxItem, hit.row)

        return self._do(act)
