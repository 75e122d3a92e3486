"""One HTTP question to one address, bounded in time, size and hops; waits for a server on request.

Redirects are followed on the same host and port only. It judges nothing. What the standard library
needs for it loads when a probe is made: few gates probe, and start-up is measured.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from typing import TYPE_CHECKING

from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    from http.client import HTTPConnection

BODY_BYTES = 1024 * 1024
REFUSED = "refused the connection"
_REDIRECTS = 5
_MOVED = frozenset({301, 302, 303, 307, 308})
_PAUSE_S = 0.03
_LAST_PORT = 65535
_BOTH_WAYS = 2  # SHUT_RDWR


class Target(NamedTuple):
    """An address that was read and found sound."""

    scheme: str
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    @property
    def local(self) -> bool:
        """Whether the host is this machine by its very name."""
        return bool(re.fullmatch(r"localhost|::1|127(?:\.\d{1,3}){3}", self.host))

    def taken(self) -> bool:
        """Whether somebody answers there already."""
        import socket  # noqa: PLC0415 - see the top

        with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 2):
            return True
        return False


class Response(NamedTuple):
    """What came back; `elsewhere` is where it would have sent us, outside the host."""

    status: int
    body: bytes
    cut: bool
    elsewhere: str = ""


def free_port() -> int:
    """A port of this machine that nobody listens on at the moment."""
    import socket  # noqa: PLC0415 - see the top

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def target_of(url: str) -> Target | str:
    """The parts of an address, or what is wrong with it."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - see the top

    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        return f"{url!r} is no address: {error}"
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return f"{url!r} is no http or https address"
    if parts.username is not None or not 0 < port <= _LAST_PORT:
        return f"{url!r} holds a user name, or no usable port"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii() or not path.isprintable() or " " in path:
        return f"{url!r} holds characters that must be escaped"
    return Target(parts.scheme, parts.hostname, port, path)


class Probe(threading.Thread):
    """Asks in a thread of its own, so that a server that drips bytes can't hold anybody up."""

    def __init__(self, target: Target, status: int, limit_s: float, *, patient: bool) -> None:
        super().__init__(name="probe", daemon=True)
        self.response: Response | str | None = None
        self._target, self._status, self._patient = target, status, patient
        self._deadline = time.monotonic() + limit_s
        self._over = threading.Event()
        self._connection: HTTPConnection | None = None

    @property
    def done(self) -> bool:
        """Whether there is something to judge."""
        return self.response is not None

    def stop(self) -> None:
        """Ask no more; whatever is under way is cut off."""
        self._over.set()
        if self._connection and self._connection.sock:
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(_BOTH_WAYS)
        self.join(1)

    def run(self) -> None:
        """Ask once, or until somebody answers."""
        while not self._over.is_set() and time.monotonic() < self._deadline:
            said = self._ask()
            if self._over.is_set():
                return
            if isinstance(said, Response) or not self._patient:
                self.response = said
                return
            self._over.wait(_PAUSE_S)

    def _ask(self) -> Response | str | None:
        """An answer, a reason why there is none, or nothing if time ran out."""
        from http.client import HTTPException  # noqa: PLC0415 - see the top

        try:
            return self._followed()
        except ConnectionRefusedError:
            return REFUSED
        except TimeoutError:
            return None
        except (OSError, HTTPException, ValueError) as error:
            return f"no answer ({str(error) or type(error).__name__})"

    def _followed(self) -> Response:
        from urllib.parse import urljoin  # noqa: PLC0415 - see the top

        target = self._target
        response, location = self._fetched(target)
        for _ in range(_REDIRECTS):
            if response.status == self._status or response.status not in _MOVED or not location:
                return response
            onward = target_of(urljoin(str(target), location))
            if isinstance(onward, str) or onward[:3] != target[:3]:
                return response._replace(elsewhere=location[:200])
            target = onward
            response, location = self._fetched(target)
        return response._replace(elsewhere="itself, again and again")

    def _fetched(self, target: Target) -> tuple[Response, str]:
        self._connection = connection = _connect(target, self._deadline - time.monotonic())
        try:
            connection.request("GET", target.path, headers={"User-Agent": "truegreen"})
            answer = connection.getresponse()
            body = bytearray()
            while len(body) <= BODY_BYTES and (part := answer.read1(65536)):
                body += part
            cut = len(body) > BODY_BYTES
            location = answer.getheader("Location") or ""
            return Response(answer.status, bytes(body[:BODY_BYTES]), cut), location
        finally:
            connection.close()


def _connect(target: Target, left_s: float) -> HTTPConnection:
    from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - see the top

    limit = max(0.1, left_s)
    if target.scheme == "http":
        return HTTPConnection(target.host, target.port, timeout=limit)
    from ssl import create_default_context  # noqa: PLC0415 - see the top

    return HTTPSConnection(
        target.host, target.port, timeout=limit, context=create_default_context()
    )
