"""Something waits for a person: one way to write that down, whoever found it.

What somebody put off is that one thing. Others are put off with it only if somebody put off all of
their topic; what is critical, and a question, never is.
"""

from __future__ import annotations

from truegreen.model import InboxState, Severity
from truegreen.record.ids import new_id
from truegreen.record.rows import Task
from truegreen.record.store import Tx
from truegreen.tuples import NamedTuple


class Call(NamedTuple):
    """What somebody has to look at: the same cause again only counts."""

    cause: str
    topic: str
    kind: str
    severity: Severity
    reason: str
    command: str
    asks: bool = False
    """Whether somebody waits for an answer to this very question."""
    title: str = ""
    """What it is called; else as its task."""

    @property
    def wakes(self) -> bool:
        """Whether it is shown whatever was put off before it."""
        return self.asks or self.severity is Severity.CRITICAL


def bring_up(tx: Tx, task: Task, run_key: int | None, call: Call) -> None:
    """Put it into the inbox, or count it once more there."""
    until = _put_off_until(tx, call)
    tx.run(
        "open_inbox_item",
        id=new_id("inb", tx.now),
        cause=call.cause,
        topic=call.topic,
        cell=call.kind,
        severity=call.severity,
        task_key=task.key,
        run_key=run_key,
        title=call.title or task.title,
        reason=call.reason,
        next=f"truegreen {call.command}",
        state=InboxState.SNOOZED if until else InboxState.OPEN,
        snoozed_until=until,
        wakes=int(call.wakes),
        now=tx.now,
    )


def _put_off_until(tx: Tx, call: Call) -> int | None:
    """Until when somebody put off everything with this topic."""
    if call.wakes:
        return None
    row = tx.one("topic_put_off", topic=call.topic, now=tx.now)
    return row[0] if row else None
