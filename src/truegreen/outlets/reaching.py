"""One HTTP request to the outside, bounded in time and size, and never into a private network.

An address is looked up once, every answer is looked at, and the connection goes to that very
address: a name that means something else a moment later gains nothing. Redirects are answers, not
orders, and no proxy of the environment is used. The HTTP library loads when something is sent.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    import http.client
    from ipaddress import IPv4Address, IPv6Address

    Address = IPv4Address | IPv6Address

SECONDS = 10.0
ANSWER_BYTES = 64 * 1024
LONGEST_WAIT = 3600.0
_PORTS = {"http": 80, "https": 443}
_PRIVATE = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
    *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    *("::/8", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16"),
    *("3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
)
"""What is nobody's on the internet; all ways to write an IPv4 address in IPv6 but one among it."""
_TRANSLATED = "64:ff9b::/96"


class Answer(NamedTuple):
    """What came back, or why nothing did."""

    status: int = 0
    headers: Mapping[str, str] = {}
    """By names in lower case."""
    body: bytes = b""
    trouble: str = ""

    @property
    def wait(self) -> float | None:
        """How many seconds the other side asks us to wait."""
        text = self.headers.get("retry-after", "")
        return min(float(text), LONGEST_WAIT) if text.isascii() and text.isdigit() else None


class Unreachable(Exception):
    """Why no connection was made."""


Resolve = Callable[..., list[tuple[Any, ...]]]
Dial = Callable[[str, int, float], socket.socket]


def dial(address: str, port: int, seconds: float) -> socket.socket:
    """A connection to an address that was looked at."""
    return socket.create_connection((address, port), timeout=seconds)


def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes,
    allow_private: bool = False,
    seconds: float = SECONDS,
    most: int = ANSWER_BYTES,
    resolve: Resolve | None = None,
    connect: Dial = dial,
) -> Answer:
    """Send it once, and wait for the answer, all in all no longer than so many seconds."""
    from http.client import HTTPException  # noqa: PLC0415 - see the top
    from urllib.parse import urlsplit  # noqa: PLC0415 - as above

    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
        if not host or not port:
            return Answer(trouble="its address names no host")
        addresses = looked_up(host, port, resolve or socket.getaddrinfo)
        if not allow_private:
            refuse_private(host, addresses)
        sock = _connected(addresses, port, seconds, connect)
    except (Unreachable, ValueError, OSError, UnicodeError) as error:
        return Answer(trouble=str(error) or type(error).__name__)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        with (
            _cut_after(seconds, sock),
            contextlib.closing(_wire(parts.scheme, host, port, sock)) as wire,
        ):
            wire.request(method, path or "/", body=body, headers=dict(headers))
            return _answered(wire.getresponse(), most)
    except (HTTPException, OSError, ValueError) as error:
        return Answer(trouble=f"no answer ({str(error) or type(error).__name__})")
    finally:
        sock.close()


def _answered(response: http.client.HTTPResponse, most: int) -> Answer:
    with response:
        headers = {name.lower(): text for name, text in response.getheaders()}
        return Answer(response.status, headers, response.read(most))


def _wire(scheme: str, host: str, port: int, sock: socket.socket) -> http.client.HTTPConnection:
    """HTTP over a socket that is there already; certificates are those of the name."""
    from http.client import HTTPConnection  # noqa: PLC0415 - see the top

    name = host.encode("idna").decode() if not host.isascii() else host
    connection = HTTPConnection(name, port)
    if scheme == "https":
        import ssl  # noqa: PLC0415 - as above

        sock = ssl.create_default_context().wrap_socket(sock, server_hostname=name)
        connection.default_port = _PORTS["https"]
    connection.sock = sock
    return connection


@contextlib.contextmanager
def _cut_after(seconds: float, sock: socket.socket) -> Iterator[None]:
    """Whoever drips bytes is cut off: a time-out for each of them would bound nothing."""
    descriptor = sock.dup()

    def cut() -> None:
        with contextlib.suppress(OSError):
            descriptor.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        descriptor.close()


# --- where it goes


def looked_up(host: str, port: int, resolve: Resolve) -> list[str]:
    """All addresses of a name, as numbers; asked for once."""
    try:
        found = resolve(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"{host} has no address ({error})") from None
    if not found:
        raise Unreachable(f"{host} has no address")
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def refuse_private(host: str, addresses: list[str]) -> None:
    """One private address among them is one too many."""
    inside = [address for address in addresses if is_private(address)]
    if inside:
        problem = f"{host} is {inside[0]}, which is not on the internet"
        raise Unreachable(f"{problem}; allow_private = true lets it be")


def is_private(text: str) -> bool:
    """Whether an address leads, or may lead, into a network that is nobody's on the internet."""
    import ipaddress  # noqa: PLC0415 - see the top

    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return True  # what can't be read can't be vouched for
    if address in ipaddress.ip_network(_TRANSLATED):
        return is_private(str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)))
    if any(address in ipaddress.ip_network(net) for net in _PRIVATE):
        return True
    return not address.is_global or address.is_multicast


def _connected(addresses: list[str], port: int, seconds: float, connect: Dial) -> socket.socket:
    """The first that answers of those that were looked at, all within the time for one."""
    trouble = ""
    deadline = time.monotonic() + seconds
    for address in addresses:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            return connect(address, port, left)
        except OSError as error:
            trouble = f"{address} can't be reached ({error.strerror or error})"
    raise Unreachable(trouble)
