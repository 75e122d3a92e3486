"""Who says yes, how often and how soon: what looks like a rubber stamp is flagged, a row refused.

Nothing here decides about a task. It weighs an approval or an acceptance before it is written down,
in the same transaction, so that the history shows which of them nobody can have thought about.
"""

from __future__ import annotations

from typing import Any

from truegreen.errors import Refused
from truegreen.model import EventLevel
from truegreen.record.ledger.desk import Entry
from truegreen.record.rows import Event, Task, read
from truegreen.record.store import Tx

COUNTED_SECONDS = 60.0
"""A person's answers are counted over this time."""
FLAGGED_FROM = 6
"""So many within that time are flagged in the history, this one included."""
REFUSED_FROM = 21
"""So many are refused: nobody looks at a piece of work in three seconds."""
HASTY_SECONDS = 2.0
"""An answer that comes sooner after its question is flagged too."""


def question_of(tx: Tx, task: Task) -> Event | None:
    """The event since which a task waits for somebody."""
    row = tx.one("answers_question", key=task.key, status=task.status)
    return read(Event, row) if row else None


def weighed(tx: Tx, task: Task, entry: Entry) -> Entry:
    """The entry of a yes: a warning with its flags, or a refusal if there were too many."""
    since = tx.now - int(COUNTED_SECONDS * 1e6)
    row = tx.one("answers_given", actor=str(entry.actor), since=since)
    number = (row[0] if row else 0) + 1
    if number >= REFUSED_FROM:
        message = (
            f"{entry.actor} has said yes {number - 1} times within a minute:"
            " approve fewer, look at more"
        )
        raise Refused(message, mass=number)
    flags: dict[str, Any] = {"mass": number} if number >= FLAGGED_FROM else {}
    question = question_of(tx, task)
    seconds = (tx.now - question.at) / 1e6 if question else HASTY_SECONDS
    if seconds < HASTY_SECONDS:
        flags["hasty"] = round(seconds, 3)
    if not flags:
        return entry
    return entry._replace(data={**entry.data, **flags}, level=EventLevel.WARN)
