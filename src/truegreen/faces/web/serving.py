"""The server around the web face: one process, loopback by default, and an end that does not wait.

Open streams are let go first; what still answers after a moment is cut.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
from collections.abc import Callable
from importlib.util import find_spec

import anyio.to_thread
import uvicorn
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from truegreen.contract.web import Web
from truegreen.errors import InvalidInput, Unavailable
from truegreen.faces.web.house import LOOPBACK, Address, House
from truegreen.faces.web.lines import LARGEST_HEAD, line_class, look_after
from truegreen.faces.web.site import site

STOP_SECONDS = 1
"""So long a request may take to its end once the server is to stop."""
LAST_SECONDS = 1.8
"""So long all of the server may take: whoever is still busy in a thread then is left behind."""
_BACKLOG = 512
_START_SECONDS = 30.0
_TICKS = 5
"""Every so many tenths of a second the connections are looked at."""


def listening(host: str, port: int) -> tuple[socket.socket, Address]:
    """A socket that is open already, so that its port is known before anything is said."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except socket.gaierror:
        made.close()
        raise InvalidInput(f"--host: this machine knows no {host}", path="host") from None
    except OSError as error:
        made.close()
        message = f"{host}:{port} can't be listened on: {error.strerror}; --port 0 takes a free one"
        raise Unavailable(message, allowed=("--port 0",)) from None
    made.listen(_BACKLOG)
    return made, Address(host, made.getsockname()[1])


def addressed(listened: Address, web: Web) -> Address:
    """Under which names requests may come: those of the interface, and those that were set."""
    plain = [name for name in web.names if ":" not in name]
    names = (*web.names, *(f"{name}:{listened.port}" for name in plain))
    everywhere = listened.host in ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
    return listened._replace(host=LOOPBACK[0] if everywhere else listened.host, names=names)


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine gets there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _nothing() -> None:
    """What there is to do where nothing is."""


class Serving:
    """A server in a thread of its own, for whoever has other things to do meanwhile."""

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        let_go: Callable[[], None] = _nothing,
        mourned: Callable[[], None] = _nothing,
    ) -> None:
        """`let_go` ends the streams; `mourned` is told when the server ends unasked."""
        logging.getLogger("uvicorn").addHandler(logging.NullHandler())  # it logs; faces speak
        config = uvicorn.Config(
            app,
            http=line_class(),
            h11_max_incomplete_event_size=LARGEST_HEAD * 4,  # a line counts its head itself
            lifespan="on",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
            timeout_keep_alive=30,
            proxy_headers=False,
        )
        self._server = _Server(config, let_go)
        self._listener, self._mourned = listener, mourned
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)

    def start(self) -> None:
        """Answer requests from now on."""
        self._thread.start()
        if not self._server.answers.wait(_START_SECONDS) or not self._server.started:
            raise Unavailable("the web server does not start")

    def ask_to_stop(self, *, at_once: bool = False) -> None:
        """Answer no more requests that come; waits for nothing. Safe in a signal handler."""
        self._server.should_exit = True
        self._server.force_exit = self._server.force_exit or at_once

    def stop(self) -> bool:
        """Answer no more; says whether every request came to its end, or could be cut."""
        self.ask_to_stop()
        self._thread.join(LAST_SECONDS)
        self._listener.close()
        return not self.alive

    @property
    def alive(self) -> bool:
        """Whether it still answers."""
        return self._thread.is_alive()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        finally:
            self._server.answers.set()
            if not self._server.should_exit:
                self._mourned()


class _Server(uvicorn.Server):
    """Says when it answers, and lets streams go before it waits for them."""

    def __init__(self, config: uvicorn.Config, let_go: Callable[[], None]) -> None:
        super().__init__(config)
        self.answers = threading.Event()
        self._let_go = let_go

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS == 0:
            look_after(self.server_state.connections)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._let_go()
        await super().shutdown(sockets)


def serving_of(
    house: House, listener: socket.socket, mourned: Callable[[], None] = _nothing
) -> Serving:
    """The web face of a house, on a socket that listens already; with MCP where it is installed."""
    app = site(house)
    if find_spec("mcp"):
        app.router.routes.append(Route("/mcp", Mcp(house)))
    return Serving(app, listener, house.live.close, mourned)


class Mcp:
    """MCP behind the guard of the web face; its library loads with the first request for it."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if self._app is None:
            self._app = await anyio.to_thread.run_sync(self._mounted)
        await self._app(scope, receive, send)

    def _mounted(self) -> ASGIApp:
        from truegreen.faces.mcp.http import mounted  # noqa: PLC0415 - an extra, and it loads slowly

        return mounted(self._house)
