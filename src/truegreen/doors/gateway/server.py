"""The gateway's server: one loopback port, a thread for each connection, the fence at each request.

A key is known by the record alone: who was revoked, fenced off or sealed is refused with the next
request, and what is under way for it is cut. Whatever can't be looked up does not go through.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from truegreen.contract import Caps, ModelPrice
from truegreen.doors.gateway.apis import Route, Upstream, key_of, route_of
from truegreen.doors.gateway.forwarding import Asked, Exchange, answer
from truegreen.doors.gateway.meter import Meter
from truegreen.doors.loopback import Loopback, say
from truegreen.doors.wire import Malformed, Request
from truegreen.errors import Refused, Terminated, TruegreenError, Unauthenticated, Unavailable
from truegreen.facts import Ticket
from truegreen.model import Role
from truegreen.record.ledger import Ledger
from truegreen.work.judges.exchange import proxy_for, trusted

if TYPE_CHECKING:
    import httpx2

_SEATS = 256
_ANSWER_SECONDS = 900.0
_CONNECT_SECONDS = 15.0
_LOOK_SECONDS = 0.1
_SETTLE_SECONDS = 3.0
_GRACE_SECONDS = 2.0
"""How long the process of a run that was just fenced off may still knock: it is being killed."""
_TRIP_SECONDS = 60.0
_TOLD = 300


class _No(Exception):
    """A request that does not go through."""

    def __init__(self, status: int, code: str, why: str) -> None:
        super().__init__(why)
        self.status, self.code, self.why = status, code, why


class Session:
    """A run that thinks through the gateway."""

    def __init__(self, ticket: Ticket, meter: Meter) -> None:
        self.ticket, self.meter = ticket, meter
        self.capped = ""
        """The cap that the run has asked beyond."""
        self.fenced_at = 0.0
        self._lock = threading.Condition()
        self._under_way: set[Exchange] = set()

    @property
    def busy(self) -> bool:
        """Whether something is under way for it."""
        with self._lock:
            return bool(self._under_way)

    def enter(self, exchange: Exchange) -> None:
        """An exchange begins; none does for a run that is fenced off."""
        with self._lock:
            if self.fenced_at:
                raise _No(403, "terminated", _DEAD)
            self._under_way.add(exchange)

    def leave(self, exchange: Exchange) -> None:
        """An exchange is over and counted."""
        with self._lock:
            self._under_way.discard(exchange)
            self._lock.notify_all()

    def fence(self) -> None:
        """Cut all that is under way; nothing begins any more."""
        with self._lock:
            self.fenced_at = self.fenced_at or time.monotonic()
            exchanges = tuple(self._under_way)
        for exchange in exchanges:
            exchange.cut()

    def settle(self) -> None:
        """The agent is gone: wait a moment for what it left under way, then cut it."""
        with self._lock:
            self._lock.wait_for(lambda: not self._under_way, timeout=_SETTLE_SECONDS)
        self.fence()
        with self._lock:
            self._lock.wait_for(lambda: not self._under_way, timeout=_SETTLE_SECONDS)


def _check_plain(request: Request, route: Route) -> None:
    """What is counted has to be readable: nobody knows what a packed request asks for."""
    coding = request.header("content-encoding").strip().lower()
    if route.asks and coding not in ("", "identity"):
        why = f"this gateway takes no request with content-encoding {coding}: send it unpacked"
        raise _No(415, "packed", why)


def _refused(line: socket.socket, error: Malformed) -> None:
    answer(line, None, error.status, "malformed", error.why)


_DEAD = "terminated: the run that this key belongs to is over, and never thinks again"


class Gateway:
    """Listens on a port of its own until it is closed."""

    def __init__(
        self, ledger: Ledger, upstreams: Mapping[str, Upstream], environ: Mapping[str, str]
    ) -> None:
        self._ledger, self._upstreams, self._environ = ledger, upstreams, environ
        self._sessions: dict[str, Session] = {}
        self._tripped: dict[str, float] = {}
        self._lock = threading.Lock()
        self._busy, self._closed = threading.Event(), threading.Event()
        self._clients: dict[str, httpx2.Client] = {}
        self._ready = threading.Event()
        self._loopback = Loopback("gateway", _SEATS, self._answered, _refused)
        for work in (self._warm, self._watch):
            threading.Thread(target=work, name=f"gateway{work.__name__}", daemon=True).start()

    @property
    def port(self) -> int:
        """Where agents find it on this machine."""
        return self._loopback.port

    @property
    def url(self) -> str:
        """The same as an address."""
        return self._loopback.url

    def admit(self, ticket: Ticket, caps: Caps, prices: Mapping[str, ModelPrice]) -> Session:
        """Let a run think here, as long as its caps and its fence allow."""
        session = Session(ticket, Meter(caps, prices))
        with self._lock:
            self._sessions[ticket.run] = session
        return session

    def dismiss(self, session: Session) -> None:
        """A run is over: its counts stay, its key is worth nothing here any more."""
        session.settle()
        with self._lock:
            self._sessions.pop(session.ticket.run, None)

    def close(self) -> None:
        """Nobody comes in any more, and whatever is under way is cut."""
        self._closed.set()
        self._busy.set()
        with self._lock:
            sessions = tuple(self._sessions.values())
        for session in sessions:
            session.fence()
        self._loopback.close()
        self._ready.wait(_SETTLE_SECONDS)
        for client in self._clients.values():
            client.close()

    # -- its threads ------------------------------------------------------------------------------

    def _warm(self) -> None:
        """Load the HTTP library while the agent starts, and make a client for each provider."""
        import httpx2  # noqa: PLC0415 - it takes a while to load, and few runs have a gateway

        try:
            for name, upstream in self._upstreams.items():
                self._clients[name] = httpx2.Client(
                    trust_env=False,
                    verify=trusted(self._environ) or True,
                    proxy=proxy_for(upstream.target, self._environ) or None,
                    timeout=httpx2.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
                    limits=httpx2.Limits(max_connections=_SEATS, max_keepalive_connections=32),
                    follow_redirects=False,
                    http1=True,
                    http2=False,
                )
        finally:
            self._ready.set()

    def _watch(self) -> None:
        """Look whether those may go on who have something under way; the others are looked at."""
        while not self._closed.is_set():
            self._busy.wait()
            self._busy.clear()
            while (busy := self._busy_ones()) and not self._closed.wait(_LOOK_SECONDS):
                for session in busy:
                    if not self._may_go_on(session.ticket):
                        session.fence()

    def _busy_ones(self) -> list[Session]:
        with self._lock:
            sessions = tuple(self._sessions.values())
        return [session for session in sessions if session.busy]

    def _may_go_on(self, ticket: Ticket) -> bool:
        try:
            standing = self._ledger.standing(ticket)
        except Unavailable:
            return True  # its lease runs out, and its pulse ends it
        except Refused:
            return False
        return standing.mine and not standing.ended

    # -- one request ------------------------------------------------------------------------------

    def _answered(self, line: socket.socket, request: Request) -> bool:
        if self._closed.is_set():
            return False
        if request.method == "HEAD" and request.path == "/":
            return say(line, 200, b"")  # clients look whether anybody is there
        route = route_of(request)
        if route is None:
            request.body.skip()
            return answer(line, None, 404, "unknown_path", f"no {request.path} at this gateway")
        key, query = key_of(request)
        try:
            session = self._admitted(key, request)
            _check_plain(request, route)
            self._check_caps(session, route)
            upstream = self._upstream(route)
            return self._forwarded(line, session, Asked(request, query, route, upstream))
        except _No as no:
            request.body.skip()
            return answer(line, route.api, no.status, no.code, no.why)

    def _forwarded(self, line: socket.socket, session: Session, asked: Asked) -> bool:
        self._ready.wait()
        exchange = Exchange(self._clients[asked.upstream.api.name], line, session.meter)
        session.enter(exchange)
        self._busy.set()
        try:
            return exchange.forward(asked)
        finally:
            session.leave(exchange)

    # -- who may ----------------------------------------------------------------------------------

    def _upstream(self, route: Route) -> Upstream:
        upstream = self._upstreams.get(route.api.name)
        if upstream is None:
            why = f"this gateway has no key for {route.api.name}"
            raise _No(403, "no_provider_key", why)
        return upstream

    def _check_caps(self, session: Session, route: Route) -> None:
        """What costs something needs something left of the caps."""
        cap = session.meter.spent_cap if route.asks else ""
        if cap:
            session.capped = cap
            session.meter.refuse()
            raise _No(403, f"{cap}_cap", f"the task has used up its cap on {cap}")

    def _admitted(self, key: str, request: Request) -> Session:
        """The run that a key belongs to, if it is alive and at home here."""
        if not key:
            raise _No(401, "no_key", "this gateway wants the key of a run")
        try:
            actor = self._ledger.authenticate(key)
        except (Terminated, Unauthenticated) as error:
            run = error.details.get("run")
            if not isinstance(run, str):
                raise _No(401, "unknown_key", "no run has this key") from None
            self._trip(run, request)
            raise _No(403, "terminated", _DEAD) from None
        except TruegreenError as error:
            why = f"the record can't be read, so nobody thinks: {error.message}"
            raise _No(503, "record_unavailable", why) from None
        with self._lock:
            session = self._sessions.get(actor.run or "")
        mine = session is not None and session.ticket.fence == actor.fence
        if actor.role is not Role.AGENT or session is None or not mine:
            raise _No(403, "not_here", "this key belongs to nobody who thinks through this gateway")
        return session

    def _trip(self, run: str, request: Request) -> None:
        """A dead key was shown: a person has to know, unless its process is just being killed."""
        now = time.monotonic()
        with self._lock:
            session = self._sessions.get(run)
        if session is not None:
            session.meter.refuse()
            session.fence()
            if now - session.fenced_at < _GRACE_SECONDS:
                return
        with self._lock:
            if now - self._tripped.get(run, -_TRIP_SECONDS) < _TRIP_SECONDS:
                return
            self._tripped[run] = now
        who = request.header("user-agent") or "nobody who says a name"
        detail = f"{request.method} {request.path} with its dead key, from {who}"[:_TOLD]
        with suppress(Refused, Unavailable):  # the refusal stands, whoever hears of it
            self._ledger.trip(run, kind="gateway", detail=detail)
