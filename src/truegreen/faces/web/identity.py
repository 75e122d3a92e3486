"""Who asks: a program by its token, a browser by its session. Anybody else is nobody.

Who asks for something to be changed is looked at, too: no process of a run acts for a person, with
whatever secret it has found.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import Scope

from truegreen.app import check_peer
from truegreen.errors import Forbidden, Unauthenticated
from truegreen.faces.web.lines import BOND, Bond
from truegreen.facts import Actor
from truegreen.model import Role
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.entrance import SESSION

COOKIE = "truegreen_session"
_BEARER = "bearer "
_LONGEST = 200
_SAFE = ("GET", "HEAD", "OPTIONS")
_FOR_PEOPLE = (Role.LEAD, Role.OPERATOR)


def cookie_name(port: int, name: str = COOKIE) -> str:
    """What a cookie is called: browsers send it to every port of a host, and keep one of a name."""
    return f"{name}_{port}"


def session_of(request: Request) -> str | None:
    """The secret of a browser's session."""
    return request.cookies.get(cookie_name(port_of(request.scope)))


def port_of(scope: Scope) -> int:
    """The port that the request came in at."""
    return int((scope.get("server") or ("", 0))[1] or 0)


def identify(ledger: Ledger, request: Request) -> Actor:
    """Who asks; a token in the header goes before a cookie. Blocks: call it in a thread."""
    actor = _known(ledger, request)
    if request.method not in _SAFE:
        check_outsider(ledger, request.scope, actor)
    return actor


def _known(ledger: Ledger, request: Request) -> Actor:
    given = request.headers.getlist("authorization")
    if given:
        if len(given) > 1 or not given[0].lower().startswith(_BEARER) or len(given[0]) > _LONGEST:
            raise Unauthenticated("send your token as: Authorization: Bearer tg_…")
        return ledger.authenticate(given[0][len(_BEARER) :].strip())
    secret = session_of(request)
    if secret is None or len(secret) > _LONGEST:
        raise Unauthenticated("log in with the link that truegreen printed, or send a token")
    actor = ledger.authenticate(secret, kind=SESSION)
    if request.method not in _SAFE:
        _check_same_origin(request)
    return actor


def check_outsider(ledger: Ledger, scope: Scope, actor: Actor | None = None) -> None:
    """Refuse a process of a run that would act for a person; an agent acts for itself.

    A connection is looked at once: nobody else can get hold of its other end later.
    """
    bond: Bond | None = scope.get("state", {}).get(BOND)
    if bond is None or bond.outside or (actor and actor.role not in _FOR_PEOPLE):
        return
    if scope.get("client") and scope.get("server"):
        check_peer(ledger, tuple(scope["client"][:2]), tuple(scope["server"][:2]))
    bond.outside = True


def _check_same_origin(request: Request) -> None:
    """A browser that changes something says where from; the guard has compared it with us."""
    if request.headers.get("origin") is None and (
        request.headers.get("sec-fetch-site") != "same-origin"
    ):
        raise Forbidden("a session changes things from its own pages only; programs use a token")
