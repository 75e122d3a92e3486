"""The routines as a page: what runs when, how its latest run and task stand, what was missed."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from truegreen.faces.documents import Document
from truegreen.faces.recurring import ACTIVE, ROLLUPS, UNSEEN, act, documents
from truegreen.faces.web.house import House
from truegreen.faces.web.pages.rendering import back, fragment, now, page, shown_to
from truegreen.faces.web.pages.streams import live
from truegreen.faces.web.routes import OPERATORS, READERS, Visit, route
from truegreen.model import Role
from truegreen.record.recurrence import Fate

_LOOKS = {
    Fate.FIRED: ("grey", "fired"),
    Fate.SKIPPED: ("grey", "skipped"),
    Fate.MISSED: ("red", "missed"),
    Fate.WAITING: ("blue", "waiting"),
}
_ROLLUPS = {"green": "green", "red": "red", "unknown": "grey"}
_WORDS = {"run": "Queued", "pause": "Paused", "resume": "Resumed"}


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the forms bring."""

    reason: str = ""


@route("GET", "/routines", READERS, media="text/html")
def routines(visit: Visit) -> Response:
    """What is to run when."""
    shown = view(visit.house, visit.actor.role)
    return page(visit, "routines.html", section="routines", **shown)


@live("routines")
def fragment_routines(house: House, role: Role, _subject: str = "") -> str:
    """The part of the page that changes."""
    return fragment("routines_live.html", **view(house, role))


def _deed(verb: str) -> None:
    def done(visit: Visit, routine: str, body: Form) -> Response:
        house = visit.house
        act(house.ledger, house.config, routine, verb, actor=visit.actor, reason=body.reason)
        return back(visit, "/routines", f"{_WORDS[verb]}: {routine}.")

    done.__doc__ = f"{_WORDS[verb]} by hand."
    done.__name__ = f"{verb}_routine"
    route("POST", f"/routines/{{routine}}/{verb}", OPERATORS, body=Form, media="text/html")(done)


for _verb in _WORDS:
    _deed(_verb)


def view(house: House, role: Role) -> Document:
    """Every routine that was taken over, and those that only the file names yet."""
    rows = [_row(each) for each in documents(house.ledger, house.config)]
    return {
        "routines": shown_to(role, rows),
        "file": house.config.file,
        "templates": list(house.config.contents.tasks),
        "acts": role is Role.OPERATOR,
        "rendered": now(),
    }


def _row(each: Document) -> Document:
    strip = [{**one, "look": _LOOKS[one["state"]]} for one in reversed(each["occurrences"])]
    light, words = _ROLLUPS[each["rollup"]], ROLLUPS[each["rollup"]]
    active = each["state"] in (ACTIVE, UNSEEN)
    return {**each, "strip": strip, "rollup_look": (light, words), "can_pause": active}
