"""MCP over HTTP: each request brings its token and is answered for itself; no session is kept.

Which host was called and from where is the web guard's to look at: it stands before this.
"""

from __future__ import annotations

from functools import partial

import anyio.to_thread
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truegreen.config import Config
from truegreen.errors import Terminated, TruegreenError, Unauthenticated
from truegreen.faces.documents import encoded, error_document
from truegreen.faces.mcp.crowd import Crowd
from truegreen.faces.mcp.server import server_for
from truegreen.faces.mcp.visitors import Far, Outside, Refusing, Visitor
from truegreen.faces.web.guarding import Guard
from truegreen.faces.web.house import Address, House
from truegreen.faces.web.identity import check_outsider
from truegreen.model import Role
from truegreen.record.ledger import Ledger

PATH = "/mcp"
_BEARER = "bearer "
_LONGEST = 200
_NO_METHOD, _UNKNOWN = 405, 401


def mounted(house: House) -> ASGIApp:
    """What answers at `/mcp` of the web face; the guard of that face stands before it."""
    return Entrance(house.ledger, house.config)


def alone(ledger: Ledger, config: Config, address: Address) -> Starlette:
    """The same as an application of its own, behind a guard of its own."""
    return Starlette(
        routes=[Route(PATH, Entrance(ledger, config))],
        middleware=[Middleware(Guard, hosts=address.hosts)],
    )


class Entrance:
    """Knows who asks, and hands the request to a server that is theirs."""

    def __init__(self, ledger: Ledger, config: Config) -> None:
        self._ledger, self._config = ledger, config
        self._crowd: Crowd | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, to its end."""
        headers = Headers(scope=scope)
        try:
            visitor = await anyio.to_thread.run_sync(self._visitor, headers, scope)
            if scope["method"] != "POST":  # nothing is told unasked, there is no session to end
                refused = Response(status_code=_NO_METHOD, headers={"Allow": "POST"})
                await refused(scope, receive, send)
                return
            receive = await _brought(scope, receive)
        except ClientDisconnect:
            return
        except TruegreenError as error:
            await _said(error)(scope, receive, send)
            return
        self._crowd = self._crowd or Crowd()  # here, where the loop is that it belongs to
        server = server_for(visitor, self._crowd, _token(headers))
        manager = StreamableHTTPSessionManager(server, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    def _visitor(self, headers: Headers, scope: Scope) -> Visitor:
        token = _token(headers)
        try:
            actor = self._ledger.authenticate(token)
        except Terminated as refusal:
            return Refusing(refusal)
        if actor.role in (Role.AGENT, Role.JUDGE):
            return Far(self._ledger, self._config, actor.role, token)
        check_outsider(self._ledger, scope, actor)
        who = partial(self._ledger.authenticate, token)  # at each call, and when waiting is over
        return Outside(self._ledger, self._config, actor.role, who)


async def _brought(scope: Scope, receive: Receive) -> Receive:
    """All that a request brings, once it is here: what is too much is refused before the SDK."""
    body = await Request(scope, receive).body()
    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return given.pop() if given else await receive()

    return again


def _token(headers: Headers) -> str:
    """A token in the header and nowhere else: a browser's cookie would speak for any page."""
    given = headers.get("authorization", "")
    if not given.lower().startswith(_BEARER) or len(given) > _LONGEST:
        raise Unauthenticated("send your token as: Authorization: Bearer tg_…")
    return given[len(_BEARER) :].strip()


def _said(error: TruegreenError) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if error.http_status == _UNKNOWN else {}
    body = encoded(error_document(error))
    return Response(body, error.http_status, headers, "application/json")
