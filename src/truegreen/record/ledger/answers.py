"""What somebody can answer, and how answers are weighed: rubber stamps flagged, a row refused.

A question is the event since which a task waits, with the tree that it is about: an answer to
another one is no answer. Nothing here decides about a task. It is all read in the transaction that
writes the answer, or shows the question.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from truegreen.enums import StrEnum
from truegreen.errors import Refused, Stale
from truegreen.model import EventLevel, InboxState, Move, TaskStatus
from truegreen.record.conditions import Condition
from truegreen.record.ledger.desk import Entry
from truegreen.record.lifecycle import TARGETS
from truegreen.record.rows import Event, InboxItem, Task, read
from truegreen.record.store import Row, Tx
from truegreen.tuples import NamedTuple

COUNTED_SECONDS = 60.0
"""A person's answers are counted over this time."""
FLAGGED_FROM = 6
"""So many within that time are flagged in the history, this one included."""
REFUSED_FROM = 21
"""So many are refused: nobody looks at a piece of work in three seconds."""
HASTY_SECONDS = 2.0
"""An answer that comes sooner after its question is flagged too."""


_EVENT_FIELDS = len(Event.__struct_fields__)


class Asks(StrEnum):
    """What kind of word leads on."""

    APPROVAL = "approval"
    REVIEW = "review"
    OVERTURN = "overturn"
    """Nobody is waited for; who rejects what was accepted answers its acceptance."""


class Question(NamedTuple):
    """What can be answered: to do this, or what to think of that, with the tree as it was then."""

    action: str
    digest: str
    at: int
    id: str = ""
    """The event since which it is open, or the condition that it is: the same words again are
    another question."""
    kind: Asks = Asks.APPROVAL


def _asks(status: TaskStatus) -> Asks | None:
    if status is TaskStatus.AWAITING_APPROVAL:
        return Asks.APPROVAL
    if status is TaskStatus.SUCCEEDED:
        return Asks.OVERTURN
    return Asks.REVIEW if (status, Move.ACCEPT) in TARGETS else None


class Open(NamedTuple):
    """A question, and the run that it is about."""

    question: Question
    run_key: int | None


def questions(tx: Tx, task_keys: Iterable[int]) -> dict[int, Open]:
    """What can be answered about some tasks, by their keys."""
    listed = sorted(set(task_keys))
    rows = tx.all("answers_questions", keys=f"[{','.join(map(str, listed))}]") if listed else []
    found = {row[-4]: _opened(row) for row in rows}
    opened = {key: each for key, each in found.items() if each is not None}
    return before_start(tx, listed) | opened


def before_start(tx: Tx, task_keys: list[int]) -> dict[int, Open]:
    """What has to be answered before some queued tasks start, the first question of each."""
    listed = f"[{','.join(map(str, task_keys))}]"
    rows = tx.all("asked_before_start", keys=listed) if task_keys else []
    asked = [read(Condition, row) for row in reversed(rows)]
    return {c.task_key: Open(Question(c.what, "", c.created_at, c.id), None) for c in asked}


def _opened(row: Row) -> Open | None:
    status, run_key, left = row[-3:]
    kind = _asks(TaskStatus(status))
    if kind is None:
        return None
    event = read(Event, row[:_EVENT_FIELDS])
    data = msgspec.json.decode(event.data)
    asks = kind is Asks.APPROVAL
    action, digest = (data.get("action", ""), data.get("digest", "")) if asks else ("", left)
    return Open(Question(action, digest, event.at, event.id, kind), run_key)


def open_for(item: InboxItem, asked: Open | None) -> Question | None:
    """What can be answered about an inbox item; nothing where its task has moved on."""
    if asked is None or asked.run_key != item.run_key or item.state is InboxState.RESOLVED:
        return None
    if item.run_key is None and item.cell != TaskStatus.AWAITING_APPROVAL:
        return None  # its task waits for something else besides
    return asked.question if asked.question.kind is not Asks.OVERTURN else None


def question_of(tx: Tx, task: Task) -> Question | None:
    """What can be answered about a task."""
    if task.status is TaskStatus.QUEUED:
        waits = before_start(tx, [task.key]).get(task.key)
        return waits.question if waits else None
    if task.sealed_at is not None or _asks(task.status) is None:
        return None
    found = questions(tx, [task.key]).get(task.key)
    return found.question if found else None


def check_answered(
    task: Task, asked: Question | None, question: str | None, digest: str | None
) -> None:
    """Who looked at another question, or at another tree, has not answered this one."""
    current = asked.id if asked else None
    if question is not None and question != current:
        now = "another question is open now" if asked else f"{task.id} is {task.status} now"
        raise Stale(f"this was answered: {now}; look again", stale="question", current=current)
    seen = asked.digest if asked else ""
    if asked and digest is not None and digest != seen:
        message = f"the work moved on: you looked at {digest or 'no tree'}, it is {seen or 'none'}"
        raise Stale(message, stale="digest", current=seen)


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
    row = tx.one("answers_question", key=task.key, status=task.status)
    seconds = (tx.now - read(Event, row).at) / 1e6 if row else HASTY_SECONDS
    if seconds < HASTY_SECONDS:
        flags["hasty"] = round(seconds, 3)
    if not flags:
        return entry
    return entry._replace(data={**entry.data, **flags}, level=EventLevel.WARN)
