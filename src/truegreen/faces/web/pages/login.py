"""The way in and out for people: a link that is used once opens a session in one browser.

The secret of a session is in a cookie that no script can read and no other site can send.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from truegreen.errors import Unauthenticated
from truegreen.faces.web.identity import check_outsider, cookie_name, port_of, session_of
from truegreen.faces.web.pages.rendering import KEPT, fragment, is_secure, stranger
from truegreen.faces.web.routes import PUBLIC, READERS, Visit, route
from truegreen.record.ledger.entrance import SESSION_SECONDS

_LONGEST_CODE = 200
_PURPOSES = ("sec-purpose", "purpose", "x-purpose", "x-moz")
_LATER = 503
"""What came too early is kept by no browser, and asked for again when somebody wants it."""


@route("GET", "/login/{code}", PUBLIC, media="text/html")
def log_in(visit: Visit, code: str) -> Response:
    """Open a session with a link that was printed; the link is worth nothing afterwards."""
    if visit.request.method != "GET":  # somebody who previews a link must not use it up
        return Response(media_type="text/html")
    if _is_early(visit.request):
        return Response(status_code=_LATER, media_type="text/html")
    check_outsider(visit.house.ledger, visit.request.scope)
    if len(code) > _LONGEST_CODE:
        raise Unauthenticated("this is no login link")
    token, secret = visit.house.ledger.log_in(code)
    given = {"who": f"{token.role}:{token.name}", "until": token.expires_at}
    response = HTMLResponse(fragment("welcome.html", frame=stranger(leads_on=False), **given))
    secure = is_secure(visit.house)
    name = cookie_name(port_of(visit.request.scope))
    response.set_cookie(name, secret, int(SESSION_SECONDS), secure=secure, **KEPT)
    return response


def _is_early(request: Request) -> bool:
    """Whether a program looks before anybody has asked: it must not use a link up."""
    said = " ".join(request.headers.get(name, "") for name in _PURPOSES).lower()
    return any(word in said for word in ("prefetch", "prerender", "preview"))


@route("POST", "/logout", READERS, media="text/html")
def log_out(visit: Visit) -> Response:
    """End the session, here and in the store."""
    secret = session_of(visit.request)
    if secret:
        visit.house.ledger.log_out(secret)
    response = HTMLResponse(fragment("gone.html", frame=stranger(leads_on=False)))
    name = cookie_name(port_of(visit.request.scope))
    response.delete_cookie(name, secure=is_secure(visit.house), **KEPT)
    return response


@route("GET", "/login", PUBLIC, media="text/html")
def how_to_log_in(visit: Visit) -> Response:  # noqa: ARG001 - it is the same for everybody
    """How to get a link."""
    words = "This dashboard shows what agents did, to people who are known."
    return HTMLResponse(fragment("login.html", frame=stranger(leads_on=False), message=words))
