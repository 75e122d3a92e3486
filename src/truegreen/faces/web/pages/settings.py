"""The settings as a page: what is in force, who has keys, what leaves the house, the kill switch.

A secret is shown once, to whoever made it, and never again. Keys and posts are for operators only;
everybody may see what is set, masked as `truegreen config` masks it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec
from starlette.responses import Response

from truegreen.config import redacted_url
from truegreen.contract import canonical, parse_duration
from truegreen.errors import InvalidInput, TruegreenError
from truegreen.faces.documents import Document, token_document
from truegreen.faces.switch import freeze_document
from truegreen.faces.web.house import House
from truegreen.faces.web.pages.rendering import acts, back, now, page, shown_to
from truegreen.faces.web.routes import OPERATORS, READERS, Visit, route
from truegreen.model import Role
from truegreen.outlets.following import doubts, unused
from truegreen.outlets.posting import warnings as unsent
from truegreen.outlets.trust import Standing, look
from truegreen.record import migrate
from truegreen.record.ledger.entrance import SESSION
from truegreen.record.ledger.outbox import POSTED
from truegreen.record.rows import Post, Token

_HERE = "/settings"
_HTML = "text/html"
_KEY = "key"
_SHOWN_POSTS = 50
_SECTIONS = ("defaults", "tasks", "agents", "gates", "evaluators", "qa", "routines", "notify")


@route("GET", _HERE, READERS, media=_HTML)
def settings(visit: Visit) -> Response:
    """What is in force, who has keys, and what leaves the house."""
    return page(visit, "settings.html", section="settings", **view(visit))


def view(visit: Visit, **more: object) -> Document:
    """Everything that the page shows; keys and posts to operators only."""
    house, may = visit.house, acts(visit.actor)
    described, role = house.config.describe(), visit.actor.role
    standing = look(house.ledger, house.config)
    return {
        "may": may,
        "config": shown_to(role, grouped(described["settings"])),
        "warnings": shown_to(role, [*described["warnings"], *doubts(standing)]),
        "health": health(house),
        "freeze": freeze_document(house.ledger.frozen()),
        "tokens": [],
        "sessions": [],
        "outlets": [],
        "given_up": [],
        "silent": [],
        "unsent": [],
        "secret": None,
        "roles": [Role.VIEWER, Role.LEAD, Role.OPERATOR],
        **(_for_operators(house, standing) if may else {}),
        **more,
    }


def grouped(described: Document) -> list[Document]:
    """Settings by the section of the file that they belong to, in the order of the file."""
    groups: dict[str, list[Document]] = {"where": []}
    for key, entry in described.items():
        section = key.partition(".")[0]
        row = {"key": key, "value": said(entry["value"]), "source": entry["source"]}
        groups.setdefault(section if section in _SECTIONS else "where", []).append(row)
    return [{"name": name, "rows": rows} for name, rows in groups.items() if rows]


def said(value: object) -> str:
    """A setting as one line."""
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return ", ".join(value) or "none"
    return "-" if value is None else canonical(value)


def health(house: House) -> Document:
    """The quick part of the doctor: the schema, its triggers and indexes, and the connection."""
    found: Document = {"store": redacted_url(house.config.store), "ailments": []}
    try:
        state = migrate.inspect(house.ledger.store)
        found["settings"] = house.ledger.store.settings()
    except TruegreenError as error:
        return {**found, "settings": {}, "schema": None, "ailments": [error.message]}
    behind = [] if state.version == state.newest else ["the schema is not this program's"]
    return {
        **found,
        "schema": {"version": state.version, "newest": state.newest},
        "ailments": [*state.problems, *behind],
    }


def _for_operators(house: House, standing: Standing) -> Document:
    ledger, moment = house.ledger, now()
    tokens = ledger.tokens()
    given_up = [post for post in ledger.posts(limit=1000) if post.state == "given_up"]
    return {
        "tokens": [_token(token, moment) for token in tokens if _is_key(token)],
        "sessions": [_token(t, moment) for t in tokens if t.kind == SESSION and _lives(t, moment)],
        "outlets": outlets(ledger.posts_counted(), ledger.meters(), unused(standing)),
        "given_up": [_post(post) for post in given_up[:_SHOWN_POSTS]],
        "silent": [_post(post) for _, post in sorted(ledger.last_unsaid().items())],
        "unsent": unsent(ledger, house.config),
    }


def _is_key(token: Token) -> bool:
    """Keys of runs come and go by themselves."""
    return token.kind == _KEY and token.run_key is None


def _lives(token: Token, moment: int) -> bool:
    ended = token.expires_at is not None and token.expires_at <= moment
    return token.revoked_at is None and not ended


def _token(token: Token, moment: int) -> Document:
    return {**token_document(token, moment), "lives": _lives(token, moment)}


def outlets(
    counted: list[tuple[str, str, int]],
    meters: dict[tuple[str, str], int],
    idle: Collection[str] = (),
) -> list[Document]:
    """How many posts of each outlet wait, were given up, not said, and arrived in all.

    Those that nobody has trusted yet are there, and not used.
    """
    sent = [
        (label.partition("|")[2], "sent", number)
        for (meter, label), number in meters.items()
        if meter == POSTED and label.startswith("sent|")
    ]
    nothing = {"waiting": 0, "sent": 0, "given_up": 0, "unsaid": 0}
    names = {*idle, *(outlet for outlet, *_ in (*counted, *sent))}
    found = {name: {"name": name, "is_used": name not in idle, **nothing} for name in names}
    for outlet, state, number in (*counted, *sent):
        found[outlet][state] = number
    return [found[name] for name in sorted(found)]


def _post(post: Post) -> Document:
    return {
        "id": post.id,
        "outlet": post.outlet,
        "subject": post.subject,
        "task": post.task_id,
        "tries": post.tries,
        "error": post.error,
        "at": post.updated_at,
    }


# --- what is done


class NewToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key that somebody wants."""

    role: Literal["viewer", "lead", "operator"]
    name: str = ""
    ttl: str = ""
    """`12h`, `30d`; nothing is without an end."""


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why, for the history."""

    reason: str = ""


@route("POST", f"{_HERE}/tokens", OPERATORS, body=NewToken, media=_HTML)
def create_token(visit: Visit, body: NewToken) -> Response:
    """A new key; its secret is on this page and nowhere else."""
    name = body.name.strip()
    if not name:
        raise InvalidInput("say who the token is for: its name is empty", path="name")
    seconds = parse_duration(body.ttl, "ttl") / 1e6 if body.ttl else None
    ledger = visit.house.ledger
    token, secret = ledger.mint_token(Role(body.role), name, actor=visit.actor, seconds=seconds)
    made = {"secret": secret, "token": token_document(token, now())}
    return page(visit, "settings.html", section="settings", status=201, **view(visit, secret=made))


@route("POST", f"{_HERE}/tokens/{{token}}/revoke", OPERATORS, body=Reason, media=_HTML)
def revoke_token(visit: Visit, token: str, body: Reason) -> Response:
    """A key, or a browser's session, opens nothing from now on."""
    ledger = visit.house.ledger
    done = ledger.revoke_token(ledger.find("tok", token), actor=visit.actor, reason=body.reason)
    return back(visit, _HERE, f"{done.name or done.id} opens nothing any more")


@route("POST", f"{_HERE}/posts/{{post}}/again", OPERATORS, body=Reason, media=_HTML)
def post_again(visit: Visit, post: str, body: Reason) -> Response:  # noqa: ARG001 - no reason kept
    """Try once more to send what was given up."""
    again = visit.house.ledger.post_again(post, actor=visit.actor)
    return back(visit, _HERE, f"{again.outlet} tries it again")


@route("POST", f"{_HERE}/freeze", OPERATORS, body=Reason, media=_HTML)
def freeze(visit: Visit, body: Reason) -> Response:
    """Nothing starts any more, in the whole store; what runs goes on."""
    visit.house.ledger.freeze(actor=visit.actor, reason=body.reason)
    return back(visit, _HERE, "Frozen: nothing starts until somebody thaws it")


@route("POST", f"{_HERE}/thaw", OPERATORS, body=Reason, media=_HTML)
def thaw(visit: Visit, body: Reason) -> Response:
    """Runs may start again."""
    held = visit.house.ledger.thaw(actor=visit.actor, reason=body.reason)
    return back(visit, _HERE, "Thawed: runs may start again" if held else "It was not frozen")
