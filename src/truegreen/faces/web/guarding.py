"""Before anybody is asked who they are: which host they call, whence, how much they bring.

It holds for every path and transport, static files and unknown paths included.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truegreen.errors import Forbidden, InvalidInput, TruegreenError
from truegreen.faces.documents import Document, encoded, error_document
from truegreen.faces.web.lines import LARGEST_HEAD
from truegreen.faces.web.routes import is_for_programs

LARGEST_BODY = 1 << 20
LARGEST_UPLOAD = 17 << 20
UPLOADS = "/artifacts"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without one, plain forms say they come from nowhere
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_TOO_LARGE, _MISDIRECTED, _HEAD_TOO_LARGE = 413, 421, 431
_OWN_SITES = ("same-origin", "none")
_READS = ("GET", "HEAD")
_SCHEMES = ("http", "https")
_MOST_DIGITS = 18
_WRONG_HOST = "this server goes by another name; [web] hosts in truegreen.toml lists further ones"
_ELSEWHERE = "requests from other sites are refused"


class Guard:
    """Turns away whoever calls another host, comes from another site, or brings too much."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(f"{way}://{host}" for host in self._hosts for way in _SCHEMES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or answer at once."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here speaks WebSocket
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self._refusal(scope)
        if refused:
            await refused(scope, receive, _with_headers(send))
            return
        await self._app(scope, _bounded(receive, _limit(scope)), _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return said(Forbidden(_WRONG_HOST), _MISDIRECTED)
        if self._comes_from_elsewhere(scope, headers):
            return said(Forbidden(_ELSEWHERE))
        if _head_size(scope) > LARGEST_HEAD:
            return said(InvalidInput("the request's head is too large"), _HEAD_TOO_LARGE)
        length = headers.get("content-length", "0")
        if not _is_number(length) or int(length) > _limit(scope):
            return said(TooLarge("the request's body is too large"))
        return None

    def _comes_from_elsewhere(self, scope: Scope, headers: Headers) -> bool:
        origins = headers.getlist("origin")
        if any(origin.lower() not in self._origins for origin in origins):
            return True
        sites = headers.getlist("sec-fetch-site")
        return any(site not in _OWN_SITES for site in sites) and not _opens_a_page(scope, headers)


def _opens_a_page(scope: Scope, headers: Headers) -> bool:
    """Whether somebody followed a link to here; no session comes with that."""
    navigates = headers.get("sec-fetch-mode") == "navigate" and scope["method"] in _READS
    return navigates and not is_for_programs(scope["path"])


def _head_size(scope: Scope) -> int:
    fields = sum(len(name) + len(value) for name, value in scope["headers"])
    return fields + len(scope.get("raw_path") or b"") + len(scope["query_string"])


def _is_number(length: str) -> bool:
    return length.isascii() and length.isdigit() and len(length) <= _MOST_DIGITS


def _limit(scope: Scope) -> int:
    return LARGEST_UPLOAD if str(scope["path"]).endswith(UPLOADS) else LARGEST_BODY


class TooLarge(InvalidInput):
    """More came than was announced or is taken."""

    http_status = _TOO_LARGE


def _bounded(receive: Receive, limit: int) -> Receive:
    """A body without an announced length is counted while it comes."""
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise TooLarge("the request's body is too large")
        return message

    return counted


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending


def said(error: TruegreenError, status: int = 0) -> Response:
    """An error as programs read it: four words, always the same ones."""
    told = error_document(error)["error"]
    body: Document = {name: told[name] for name in ("code", "message", "allowed")}
    body["docs"] = f"/help#error-{error.code}"
    return Response(encoded({"error": body}), status or error.http_status, media_type=_JSON)


_JSON = "application/json"
