"""From documents to pages: one frame around all of them, and nothing that an agent wrote acts.

Every text that a template puts out is escaped, and cleaned of controls and directions first. What
only operators may see is masked for everybody else before a template gets it.
"""

from __future__ import annotations

import base64
import calendar
import functools
import hmac
import os
import time
from typing import Any, Literal, TypedDict

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from truegreen import __version__
from truegreen.faces import axes
from truegreen.faces.activity import Pace, activity_look
from truegreen.faces.clean import clean
from truegreen.faces.documents import encoded
from truegreen.faces.switch import freeze_words
from truegreen.faces.times import instant, local, span
from truegreen.faces.web.house import House
from truegreen.faces.web.identity import cookie_name, port_of, session_of
from truegreen.faces.web.pages import assets
from truegreen.faces.web.redacting import redacted, redacted_bytes
from truegreen.faces.web.routes import Visit
from truegreen.facts import Actor
from truegreen.model import CELLS, PALETTE, RUNS, Cell, Light, Role, RunStatus, TaskStatus
from truegreen.tuples import NamedTuple

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "templates")
SECTIONS = (
    ("overview", "/", "Overview"),
    ("tasks", "/tasks", "Tasks"),
    ("inbox", "/inbox", "Inbox"),
    ("agents", "/agents", "Agents"),
    ("routines", "/routines", "Routines"),
    ("audit", "/audit", "Audit"),
    ("settings", "/settings", "Settings"),
)
_MICRO = 1_000_000
_ID_TAIL = 6


class Toned(NamedTuple):
    """Glyph, word and the class of their colour: always together."""

    glyph: str
    word: str
    tone: str


_OUTCOMES: dict[str, Light] = {
    "passed": Light.GREEN,
    "confirmed": Light.GREEN,
    "failed": Light.RED,
    "contradicted": Light.RED,
    "critical": Light.RED,
    "high": Light.RED,
    "inconclusive": Light.AMBER,
    "unverifiable": Light.AMBER,
    "unknown": Light.AMBER,
    "skipped": Light.AMBER,
    "degraded": Light.AMBER,
    "normal": Light.AMBER,
    "spent": Light.AMBER,
    "overridden": Light.AMBER,
    "missing": Light.AMBER,
    "pending": Light.BLUE,
    "due": Light.BLUE,
}


def task_tone(status: str) -> Toned:
    """A task status as the pages show it."""
    look = PALETTE[TaskStatus(status)]
    return Toned(look.glyph, status, f"t-{status}")


def run_tone(status: str | None) -> Toned:
    """A run status as the pages show it."""
    look = axes.run_look(RunStatus(status) if status else None)
    light = RUNS[RunStatus(status)].light if status else Light.GREY
    return Toned(look.glyph, look.word, f"l-{light}")


def cell_tone(cell: str) -> Toned:
    """A cell of the matrix as the pages show it."""
    look = axes.cell_look(Cell(cell))
    return Toned(look.glyph, look.word, f"l-{CELLS[Cell(cell)].light}")


def light_tone(light: str, word: str) -> Toned:
    """Any word under one of the lights."""
    return Toned(axes.LIGHTS[Light(light)][0], word, f"l-{light}")


def outcome_tone(word: str) -> Toned:
    """An outcome or urgency; a word that nobody knows is grey, never green."""
    return light_tone(_OUTCOMES.get(word, Light.GREY), word)


def pace_tone(pace: str) -> Toned:
    """What is seen of an agent at work; being busy is no result, and never green."""
    look = activity_look(Pace(pace))
    light = next(light for light, (_, rgb) in axes.LIGHTS.items() if rgb == look.rgb)
    return Toned(look.glyph, look.word, f"l-{light}")


# --- times


def micro(at: int | str) -> int:
    """An instant in microseconds, from what documents carry."""
    if isinstance(at, int):
        return at
    whole, _, rest = at.rstrip("Z").partition(".")
    seconds = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
    return seconds * _MICRO + int(rest.ljust(6, "0")[:6] or 0)


def when(at: int | str | None) -> str:
    """An instant with its zone."""
    return "" if at is None else local(micro(at))


def iso(at: int | str) -> str:
    """An instant as machines read it."""
    return instant(at) or "" if isinstance(at, int) else at


def since(at: int | str) -> str:
    """How long ago something was: `4m12s`; of seconds only whole ones."""
    seconds = max(0.0, time.time() - micro(at) / _MICRO)
    return span(seconds) if seconds >= 60 else f"{seconds:.0f}s"  # noqa: PLR2004


def lines(text: str) -> list[str]:
    """A text line by line, each to be put out by itself."""
    return text.expandtabs().splitlines()


# --- the environment


def _put_out(value: Any) -> Any:
    """What a template says of a value: text without controls, nothing for nothing."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return clean(value)


def tail(identity: str) -> str:
    """The end of an id, which somebody types to confirm what can't be undone."""
    return identity[-_ID_TAIL:]


def _asset(name: str) -> str:
    """Where a file is served; nothing if there is none."""
    found = assets.assets().get(name)
    return found.href if found else ""


@functools.cache
def environment() -> jinja2.Environment:
    """Where templates are found, and what they may call."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_put_out,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        when=when, iso=iso, since=since, span=span, lines=lines, tail=tail, number="{:,}".format
    )
    made.filters["percent"] = percent
    made.globals.update(
        asset=_asset,
        task_tone=task_tone,
        run_tone=run_tone,
        cell_tone=cell_tone,
        light_tone=light_tone,
        outcome_tone=outcome_tone,
        pace_tone=pace_tone,
        sections=SECTIONS,
        version=__version__,
        statuses=PALETTE,
        cells=CELLS,
        lights=axes.LIGHTS,
        wordless=axes.WORDLESS,
    )
    return made


def percent(count: int, of: int) -> str:
    """A share in per cent as everywhere: cut, never rounded up; a dash of nothing."""
    if not of:
        return "\N{EN DASH}"
    return "<1 %" if 0 < 100 * count < of else f"{100 * count // of} %"


def fragment(template: str, /, **given: object) -> str:
    """A part of a page."""
    return environment().get_template(template).render(**given)


# --- the frame


class Frame(NamedTuple):
    """What stands around every page."""

    section: str
    who: str
    """Who looks, or nothing where nobody is known."""
    acts: bool
    """Whether they may do more than look."""
    silent: int
    waiting: int
    """How much of the inbox nobody has looked at."""
    frozen: str
    now: int
    leads_on: bool = True
    """Whether the ways to other pages are shown."""
    said: str = ""
    """What became of the deed that led here."""

    @property
    def known(self) -> bool:
        """Whether somebody is logged in."""
        return bool(self.who)


def frame(house: House, actor: Actor, section: str) -> Frame:
    """The frame for somebody who looks at a section."""
    ledger = house.ledger
    counts = ledger.counts()
    held = ledger.frozen()
    return Frame(
        section=section,
        who=str(actor),
        acts=acts(actor),
        silent=sum(count.tasks for count in counts if count.cell is Cell.SILENT_FAILURE),
        waiting=sum(pile.unread for pile in ledger.piles()),
        frozen=freeze_words(held) if held else "",
        now=now(),
    )


def stranger(*, leads_on: bool) -> Frame:
    """The frame where it is not known who looks, or the store can't be asked."""
    return Frame("", "", False, 0, 0, "", now(), leads_on)


def now() -> int:
    """The moment of a rendering."""
    return time.time_ns() // 1000


def acts(actor: Actor) -> bool:
    """Whether somebody may do more than look; the record has the last word."""
    return actor.role is Role.OPERATOR


def shown_to(role: Role, document: Any) -> Any:
    """A document as this role may see it; nearly always there is nothing to mask."""
    if role is Role.OPERATOR or redacted_bytes(document) == encoded(document):
        return document
    return redacted(document)


def page(
    visit: Visit, template: str, /, *, section: str, status: int = 200, **given: object
) -> Response:
    """A whole page, as somebody sees it."""
    said = _said(visit.request)
    around = frame(visit.house, visit.actor, section)._replace(said=said)
    response = HTMLResponse(fragment(template, frame=around, **given), status)
    if said:
        response.delete_cookie(_said_name(visit.request), secure=is_secure(visit.house), **KEPT)
    return response


_SAID = "truegreen_said"
_LONGEST_SAID = 300
_SAID_SECONDS = 60


class Kept(TypedDict):
    """What holds for every cookie of ours: no script reads it, and no other site sends it."""

    path: str
    httponly: bool
    samesite: Literal["strict"]


KEPT: Kept = {"path": "/", "httponly": True, "samesite": "strict"}


def is_secure(house: House) -> bool:
    """Whether people come by TLS only, so that cookies must travel by nothing else."""
    return house.config.contents.web.url.startswith("https://")


def back(visit: Visit, path: str, words: str) -> Response:
    """After a deed: the page that shows it, and what became of it in one sentence."""
    response = RedirectResponse(path, 303)
    response.set_cookie(
        _said_name(visit.request),
        _sealed(visit.request, clean(words)[:_LONGEST_SAID]),
        _SAID_SECONDS,
        secure=is_secure(visit.house),
        **KEPT,
    )
    return response


_SEAL = os.urandom(32)
"""Others on this host can put cookies into a browser; none of them has this."""


def _said_name(request: Request) -> str:
    return cookie_name(port_of(request.scope), _SAID)


def _sealed(request: Request, words: str) -> str:
    """A sentence for this session, for now."""
    kept = base64.urlsafe_b64encode(f"{now()} {words}".encode()).decode()
    return f"{kept}.{_seal(request, kept)}"


def _seal(request: Request, kept: str) -> str:
    told = f"{session_of(request) or ''}\0{kept}".encode()
    return hmac.new(_SEAL, told, "sha256").hexdigest()


def _said(request: Request) -> str:
    """The sentence that a deed left; whatever else is in its place counts for nothing."""
    kept, _, seal = request.cookies.get(_said_name(request), "").partition(".")
    if not hmac.compare_digest(seal.encode(), _seal(request, kept).encode()):
        return ""
    at, _, words = base64.urlsafe_b64decode(kept).decode().partition(" ")
    return words if now() - int(at) < _SAID_SECONDS * _MICRO else ""
