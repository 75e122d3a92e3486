"""What waits for a person over HTTP: the inbox, and how it is dealt with."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from truegreen.contract import parse_duration
from truegreen.enums import StrEnum
from truegreen.faces.documents import Document, inbox_document
from truegreen.faces.triage import next_item, together
from truegreen.faces.web import outer_shapes as shapes
from truegreen.faces.web.api.taking import Age, Id, Limit, Taken
from truegreen.faces.web.routes import API, OPERATORS, READERS, Visit, route
from truegreen.model import InboxState
from truegreen.record.ledger.inbox import LONGEST_SNOOZE
from truegreen.record.ledger.reads import PAGE, Waiting

_ITEM = f"{API}/inbox/{{item}}"


class Which(StrEnum):
    """Which part of the inbox."""

    WAITING = "waiting"
    UNREAD = "unread"
    ACKED = "acked"
    SNOOZED = "snoozed"


class InboxQuery(Taken, frozen=True):
    """What to list: what waits now, or all that ever waited about one task."""

    state: Which | None = None
    task: Id | None = None
    limit: Limit = PAGE
    after: Id | None = None


class Snooze(Taken, frozen=True):
    """For how long: `for` as the command line says it, or `seconds`; and for what.

    With `whole_topic` all with its topic is meant, also what still comes.
    """

    seconds: Annotated[float, Meta(gt=0, le=LONGEST_SNOOZE)] | None = None
    span: Age | None = field(default=None, name="for")
    whole_topic: bool = False

    def __post_init__(self) -> None:
        """There is one time, however it is said."""
        if (self.seconds is None) == (self.span is None):
            raise ValueError("say for how long, once: as for, such as 4h, or as seconds")

    @property
    def length(self) -> float:
        """In seconds; what is too long is the record's to refuse."""
        return self.seconds or parse_duration(self.span, "for") / 1e6


class Resolution(Taken, frozen=True):
    """How it was dealt with."""

    outcome: Annotated[str, Meta(min_length=1, max_length=8000)]


@route("GET", f"{API}/inbox", READERS, query=InboxQuery, answers=shapes.Inbox)
def inbox(visit: Visit, query: InboxQuery) -> Document:
    """What waits for a person, most urgent first."""
    listed = _listed(visit, query)
    found = [each for each in listed if _fits(each, query.state)]
    more = query.task is None and query.state is not Which.SNOOZED
    return {
        "inbox": [inbox_document(each) for each in found],
        "after": next_item(listed, query.limit) if more else None,
    }


def _listed(visit: Visit, query: InboxQuery) -> list[Waiting]:
    ledger = visit.house.ledger
    if query.task is not None:
        task = ledger.task(ledger.find("tsk", query.task))
        return ledger.inbox_of(task.key, limit=query.limit)
    if query.state is Which.SNOOZED:
        return ledger.put_off(limit=query.limit)
    after = query.after and ledger.find("inb", query.after)
    return ledger.inbox(limit=query.limit, after=after)


def _fits(waiting: Waiting, state: Which | None) -> bool:
    is_acked = waiting.item.state is InboxState.ACKED
    if state is Which.UNREAD:
        return not is_acked
    return is_acked if state is Which.ACKED else True


@route("POST", f"{_ITEM}/ack", OPERATORS, answers=shapes.Item)
def ack(visit: Visit, item: str) -> Document:
    """Somebody looks into it."""
    return visit.house.deeds.ack(item, actor=visit.actor)


@route("POST", f"{_ITEM}/snooze", OPERATORS, body=Snooze, answers=shapes.Item)
def snooze(visit: Visit, item: str, body: Snooze) -> Document:
    """Put it off; it comes back by itself. `snooze_covers` says what is put off with it."""
    house = visit.house
    whole_id = house.ledger.find("inb", item)

    def put_off(each: str) -> Document:
        whole = body.whole_topic
        return house.deeds.snooze(each, seconds=body.length, actor=visit.actor, whole_topic=whole)

    return together(house.ledger, whole_id, put_off)[0] if body.whole_topic else put_off(whole_id)


@route("POST", f"{_ITEM}/resolve", OPERATORS, body=Resolution, answers=shapes.Item)
def resolve(visit: Visit, item: str, body: Resolution) -> Document:
    """It is dealt with, and this is how."""
    if visit.again:
        known = visit.house.ledger.inbox_item(visit.house.ledger.find("inb", item))
        if known.item.state is InboxState.RESOLVED and known.item.outcome == body.outcome:
            return inbox_document(known)
    return visit.house.deeds.resolve(item, outcome=body.outcome, actor=visit.actor)
