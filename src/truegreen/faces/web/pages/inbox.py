"""The inbox as a page: what waits for people, by cause, and everything that can be done about it.

What lands here and how urgent it is, the record says; many alarms with one cause stand together.
Each thing can be dealt with on the spot, alone or with all others of its cause.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from starlette.responses import Response

from truegreen.errors import InvalidInput, Stale
from truegreen.faces.deeds import Deeds
from truegreen.faces.documents import Document, inbox_document
from truegreen.faces.grouping import (
    Group,
    groups,
    owner_of,
    times_words,
    unread_age,
    unread_words,
)
from truegreen.faces.web.binding import once, seen_on_page
from truegreen.faces.web.house import House
from truegreen.faces.web.pages.rendering import acts, back, fragment, now, page, shown_to
from truegreen.faces.web.pages.streams import live
from truegreen.faces.web.routes import OPERATORS, READERS, Visit, route
from truegreen.facts import Actor
from truegreen.model import InboxState, Role
from truegreen.outlets.audit.people import people_of
from truegreen.outlets.posting import warnings
from truegreen.record.ledger.answers import COUNTED_SECONDS
from truegreen.record.ledger.audits import Answered
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE, Waiting
from truegreen.tuples import NamedTuple

_HERE = "/inbox"
_HTML = "text/html"
_DAY = 86_400_000_000
_MORNING = 8
_SHOWN_OFF = 20
FEW_ANSWERS = 3
"""From so many answers on somebody may be saying yes without looking; one is only an answer."""


class Choice(NamedTuple):
    """Something that can be done about a task right here."""

    verb: str
    label: str
    tone: str = ""


_CHOICES: dict[str, tuple[Choice, ...]] = {
    "approve": (Choice("approve", "Approve", "primary"), Choice("reject", "Reject", "danger")),
    "review": (Choice("accept", "Accept the work", "primary"), Choice("send_back", "Reject it")),
    "unblock": (Choice("unblock", "Unblock", "primary"),),
    "retry": (Choice("retry", "Retry"),),
}


def choices(cell: str, suggested: str) -> tuple[Choice, ...]:
    """What leads on, by the command that the record suggests."""
    verb = (suggested.split() or [""])[1:2]
    if cell == "pending_qa":
        return _CHOICES["review"]
    if verb == ["show"] and cell != "zombie":
        return _CHOICES["retry"]  # a failure is looked at first, and then tried again
    return _CHOICES.get(verb[0], ()) if verb else ()


def offered(waiting: Waiting) -> tuple[Choice, ...]:
    """What leads on; an answer only where its question is still open."""
    found = choices(waiting.item.cell, waiting.item.next)
    return tuple(each for each in found if waiting.question or each.verb not in _ANSWERS)


_ANSWERS = ("approve", "reject", "accept", "send_back")


# --- what is shown


@route("GET", _HERE, READERS, media=_HTML)
def inbox(visit: Visit) -> Response:
    """What waits for people, most urgent first."""
    return page(visit, "inbox.html", section="inbox", **view(visit.house, visit.actor.role))


@live("inbox")
def fragment_inbox(house: House, role: Role, _subject: str = "") -> str:
    """The part of the page that changes."""
    return fragment("inbox_live.html", **view(house, role))


def view(house: House, role: Role) -> Document:
    """Everything that the page shows to a role."""
    ledger, moment = house.ledger, now()
    waiting = ledger.inbox(limit=PAGE)
    piles = ledger.piles()
    oldest = [pile.oldest_unread_at for pile in piles if pile.oldest_unread_at]
    shown = {
        "groups": [_group(group, moment) for group in groups(waiting, moment)],
        "put_off": [_item(each, moment) for each in ledger.put_off(limit=_SHOWN_OFF)],
        "stamps": stamps(list(ledger.answered(moment - _DAY))),
    }
    return {
        **shown_to(role, shown),
        "warnings": warnings(ledger, house.config),
        "total": sum(pile.items for pile in piles),
        "unread": sum(pile.unread for pile in piles),
        "oldest_unread": min(oldest, default=None),
        "piles": [pile._asdict() for pile in piles],
        "left": max(0, sum(pile.items for pile in piles) - len(waiting)),
        "may": acts(Actor(role, "")),
        "rendered": moment,
    }


def _group(group: Group, moment: int) -> Document:
    what, place = group.placed
    return {
        "words": group.words,
        "what": what,
        "place": place,
        "alike": group.alike,
        "severity": group.severity,
        "times": group.times,
        "oldest": group.oldest,
        "unread": unread_words(group.unread_age),
        "owners": list(group.owners),
        "items": [_item(each, moment) for each in group.items],
        "ids": " ".join(each.item.id for each in group.items),
    }


def _item(waiting: Waiting, moment: int) -> Document:
    item = waiting.item
    return {
        **inbox_document(waiting),
        "owner_name": owner_of(item),
        "again": times_words(item.times),
        "unread": unread_words(unread_age(item, moment)),
        "choices": [choice._asdict() for choice in offered(waiting)],
        "form_key": f"{item.id}.{item.times}",
        "shown_here": item.next == f"truegreen show {waiting.task}",
    }


def stamps(answers: list[Answered]) -> list[Document]:
    """Who said yes today: how often, how soon, and how many times within one minute."""
    moments: dict[str, list[int]] = {}
    for answer in answers:
        moments.setdefault(answer.actor.partition(":")[2], []).append(answer.at)
    return [
        {
            "name": person.name,
            "answers": person.answers,
            "median_s": person.median_seconds,
            "hasty": person.hasty,
            "mass": person.mass,
            "warns": bool(person.mass or person.hasty) and person.answers >= FEW_ANSWERS,
            "per_minute": busiest_minute(moments[person.name]),
        }
        for person in people_of(answers)
    ]


def busiest_minute(moments: list[int]) -> int:
    """The most answers that anybody could see within one minute."""
    ordered = sorted(moments)
    most = first = 0
    for last, moment in enumerate(ordered):
        while moment - ordered[first] >= COUNTED_SECONDS * 1e6:
            first += 1
        most = max(most, last - first + 1)
    return most


# --- what is done


class Triage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a form about one thing, or about all of a cause, says."""

    items: str
    """Ids, separated by spaces."""
    reason: str = ""
    until: Literal["1h", "4h", "tomorrow"] = "1h"
    whole: Literal["", "topic"] = ""
    """Whether what still comes with their topic is put off with them."""
    verb: str = ""
    question: str | None = None
    digest: str | None = None
    """What is answered, where something is."""
    key: str = ""


@route("POST", f"{_HERE}/ack", OPERATORS, body=Triage, media=_HTML)
def ack(visit: Visit, body: Triage) -> Response:
    """Somebody looks into it."""
    return _each(visit, body, "taken", lambda deeds, item: deeds.ack(item, actor=visit.actor))


@route("POST", f"{_HERE}/snooze", OPERATORS, body=Triage, media=_HTML)
def snooze(visit: Visit, body: Triage) -> Response:
    """Put it off; it comes back by itself."""
    seconds = seconds_until(body.until)

    def put_off(deeds: Deeds, item: str) -> Document:
        whole = body.whole == "topic"
        return deeds.snooze(item, seconds=seconds, actor=visit.actor, whole_topic=whole)

    more = ", and what else comes under their heading" if body.whole else ""
    return _each(visit, body, f"put off {_UNTIL[body.until]}{more}", put_off)


_UNTIL = {"1h": "for an hour", "4h": "for four hours", "tomorrow": "until tomorrow morning"}


@route("POST", f"{_HERE}/resolve", OPERATORS, body=Triage, media=_HTML)
def resolve(visit: Visit, body: Triage) -> Response:
    """It is dealt with, and the outcome says how."""

    def settle(deeds: Deeds, item: str) -> Document:
        known = inbox_document(visit.house.ledger.inbox_item(visit.house.ledger.find("inb", item)))
        if (known["outcome"], known["owner"]) == (body.reason, str(visit.actor)):
            return known  # the second click on one button
        return deeds.resolve(item, outcome=body.reason, actor=visit.actor)

    return _each(visit, body, "resolved", settle)


@route("POST", f"{_HERE}/act", OPERATORS, body=Triage, media=_HTML)
def act(visit: Visit, body: Triage) -> Response:
    """Do to a task what it waits for, without leaving the inbox."""
    item = body.items.strip()
    known = {choice.verb: choice for group in _CHOICES.values() for choice in group}
    if body.verb not in known:
        raise InvalidInput(f"nothing is called {body.verb!r} here", allowed=tuple(known))
    found = visit.house.ledger.inbox_item(visit.house.ledger.find("inb", item))
    document = _acted(visit, found, body)
    words = f"{known[body.verb].label}: {found.item.title or found.task}"
    return back(visit, _HERE, f"{words}; it became {document['task_status']}")


def _acted(visit: Visit, found: Waiting, body: Triage) -> Document:
    deeds, key = visit.house.deeds, once(visit, body)
    if found.item.state is InboxState.RESOLVED and not visit.house.ledger.was_done(key):
        message = f"this was answered ({found.item.outcome}); nothing was done now: look again"
        raise Stale(message, stale="state")
    given: dict[str, Any] = {"actor": visit.actor, "reason": body.reason, "key": key}
    if body.verb in _ANSWERS:
        given |= seen_on_page(body)
    if body.verb in ("accept", "send_back"):
        return deeds.review(found.task, accept=body.verb == "accept", **given)
    doing: Callable[..., Document] = getattr(deeds, body.verb)
    return doing(found.task, **given)


def _each(
    visit: Visit, body: Triage, words: str, deed: Callable[[Deeds, str], Document]
) -> Response:
    """Do it to each; what somebody else has dealt with meanwhile is left alone, and counted."""
    items = body.items.split()
    if not 0 < len(items) <= LONGEST_PAGE:
        raise InvalidInput("name what is meant: one inbox item, or several", path="items")
    done: list[Document] = []
    left: list[Stale] = []
    for item in items:
        try:
            done.append(deed(visit.house.deeds, item))
        except Stale as stale:
            left.append(stale)
    if not done:
        raise left[0]
    one = f"«{done[0]['title'] or done[0]['task']}» is"
    said = f"{f'{len(done)} things are' if done[1:] else one} {words}"
    more = f"; {len(left)} left alone, resolved before" if left else ""
    return back(visit, _HERE, f"{said}{more}")


def seconds_until(word: str) -> float:
    """How long something is put off; tomorrow is its morning, where this program runs."""
    if word != "tomorrow":
        return float(word.removesuffix("h")) * 3600
    here = time.localtime()
    morning = (here.tm_year, here.tm_mon, here.tm_mday + 1, _MORNING, 0, 0, 0, 0, -1)
    return time.mktime(morning) - time.time()
