"""What else is said of news that was told: how much more there was, that nobody takes it, its end.

Each is a CloudEvent of its own type with the subject and the `dedupekey` of what it follows, so
that whoever pairs messages can. It sends nothing, and reads no clock.
"""

from __future__ import annotations

from typing import Any

import msgspec

from truegreen.contract import Duration
from truegreen.model import CELLS, Cell
from truegreen.outlets.cloudevents import encoded, envelope
from truegreen.outlets.wording import pasteable, plain
from truegreen.record.ledger.outbox import Announced
from truegreen.record.ledger.telling import Owed

MORE = "dev.truegreen.inbox.more"
ESCALATED = "dev.truegreen.inbox.escalated"
RESOLVED = "dev.truegreen.inbox.resolved"
_NAMED = 20
"""So many tasks are named in one message; the others are only counted."""
_SECOND = 1_000_000


def folded(post_id: str, before: str | None, body: str) -> str:
    """What was said so far of a topic that cools down, and one more: the count is always whole."""
    event = msgspec.json.decode(body)
    data = event["data"]
    told: dict[str, Any] = (
        msgspec.json.decode(before)["data"] if before else {"count": 0, "tasks": []}
    )
    count = told["count"] + 1
    one = {name: data[name] for name in ("item", "task", "title", "task_status", "cell", "url")}
    topic = data["topic"] or data["cell"] or data["task_status"]
    said = {
        "text": f"{count} more of {plain(topic)}",
        "count": count,
        "topic": topic,
        "tasks": [*told["tasks"], one][:_NAMED],
        "next": "truegreen inbox --group",
        "url": event["source"] if event["source"].startswith("http") else "",
    }
    kept = ("specversion", "source", "time", "datacontenttype")
    head = {name: event[name] for name in kept}
    return encoded({**head, "id": post_id, "type": MORE, "subject": topic, "data": said})


def resolved(told: Announced, link: str) -> Owed:
    """The end of something that was told: by whom, and how."""
    who = told.closed_by or "truegreen"
    how = told.item.outcome or ""
    text = f"resolved: {_called(told)}, by {plain(who)}: {plain(how)}"
    event = _event(RESOLVED, told, link, told.item.updated_at, text)
    event["data"] |= {"by": who, "outcome": how, "state": "resolved", "next": ""}
    return Owed(f"resolved:{told.item.id}", encoded(event), told.subject or None)


def escalated(told: Announced, step: int, name: str, link: str) -> Owed:
    """That nobody has taken it: since when, and by which step this is told."""
    waits = Duration((told.now - told.since) // _SECOND * _SECOND)
    text = f"nobody has taken it for {waits or '0s'}: {_called(told)}"
    event = _event(ESCALATED, told, link, told.now, text)
    event["data"] |= {"step": step, "first_told": name, "waits_seconds": int(waits) // _SECOND}
    subject = f"escalated:{told.item.id}:{name}:{step}:{told.since}"
    event["id"] = subject
    return Owed(subject, encoded(event), told.subject or None)


def _event(kind: str, told: Announced, link: str, at: int, text: str) -> dict[str, Any]:
    item = told.item
    data = {
        "text": text,
        "item": item.id,
        "topic": item.topic,
        "task": told.task,
        "title": item.title,
        "cell": item.cell,
        "severity": item.severity,
        "reason": item.reason,
        "times": item.times,
        "state": item.state,
        "next": pasteable(item.next),
        "url": f"{link}/tasks/{told.task}" if link else "",
    }
    head = envelope(f"{kind.rpartition('.')[2]}:{item.id}:{at}", kind, link, at)
    return {**head, "subject": told.subject or told.task, "dedupekey": item.id, "data": data}


def _called(told: Announced) -> str:
    kind = told.item.cell
    title = CELLS[Cell(kind)].title if kind in set(Cell) else kind.replace("_", " ")
    return f"{title}: {plain(told.item.title)}"
