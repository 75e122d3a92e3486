"""One HTTP request, bounded by the wall clock and in size; redirects are not followed.

It is sent from a thread of its own, so that a server that drips bytes can hold nobody up. What the
answer means is the business of others. The HTTP library loads when a request is sent.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from truegreen.work.gates.probe import Target

if TYPE_CHECKING:
    import ssl

REPLY_BYTES = 4 * 1024 * 1024
_TICK_S = 0.1
_BOTH_WAYS = 2  # SHUT_RDWR
_LINGER_S = 1.0


class Reply(Struct, frozen=True, kw_only=True):
    """What a server answered, or why there is no answer."""

    status: int = 0
    headers: dict[str, str] = {}
    """By names in lower case."""
    body: bytes = b""
    trouble: str = ""
    lasting: bool = False

    @property
    def streamed(self) -> bool:
        """Whether the body is a stream of events."""
        kind = self.headers.get("content-type", "")
        return "text/event-stream" in kind or self.body.lstrip().startswith((b"data:", b"event:"))


def post(
    target: Target,
    headers: Mapping[str, str],
    body: bytes,
    *,
    seconds: float,
    environ: Mapping[str, str],
    tick: Callable[[], str | None] | None,
) -> Reply:
    """Send it once, and wait for the whole answer."""
    proxy = proxy_for(target, environ)
    if proxy and not proxy.startswith(("http://", "https://")):
        return Reply(trouble="its proxy is none for HTTP: set HTTPS_PROXY to one", lasting=True)
    asking = _Asking(target, dict(headers), body, seconds, proxy, environ)
    asking.start()
    try:
        return _awaited(asking, seconds, tick)
    finally:
        asking.stop()


def _awaited(asking: _Asking, seconds: float, tick: Callable[[], str | None] | None) -> Reply:
    deadline = time.monotonic() + seconds
    while asking.is_alive() and (left := deadline - time.monotonic()) > 0:
        asking.join(min(left, _TICK_S))
        if tick and (word := tick()):
            return Reply(trouble=f"stopped ({word})")
    return asking.reply or Reply(trouble=f"no answer within {seconds:g} s")


def proxy_for(target: Target, environ: Mapping[str, str]) -> str:
    """The proxy that the environment names for an address; empty for none."""
    direct = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    spared = [entry.strip().lstrip(".") for entry in direct.split(",") if entry.strip()]
    if target.local or any(_covers(entry, target.host) for entry in spared):
        return ""
    names = (f"{target.scheme}_proxy", "all_proxy")
    return next((environ[n] for name in names for n in (name, name.upper()) if environ.get(n)), "")


def _covers(entry: str, host: str) -> bool:
    return entry in {"*", host} or host.endswith(f".{entry}")


class _Asking(threading.Thread):
    """The request under way."""

    def __init__(
        self,
        target: Target,
        headers: dict[str, str],
        body: bytes,
        seconds: float,
        proxy: str,
        environ: Mapping[str, str],
    ) -> None:
        super().__init__(name="judge", daemon=True)
        self.reply: Reply | None = None
        self._target, self._headers, self._body = target, headers, body
        self._seconds, self._proxy, self._environ = seconds, proxy, environ
        self._over = threading.Event()
        self._socket: Any = None

    def stop(self) -> None:
        """Cut off whatever is under way; nobody waits for it any more."""
        self._over.set()
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(_BOTH_WAYS)
        self.join(_LINGER_S)

    def run(self) -> None:
        """Ask, and keep what came of it."""
        import httpx2  # noqa: PLC0415 - see the top

        try:
            reply = self._asked()
        except httpx2.TimeoutException:
            reply = Reply(trouble=f"no answer within {self._seconds:g} s")
        except httpx2.InvalidURL as error:
            reply = Reply(trouble=f"its address is none: {error}", lasting=True)
        except (httpx2.HTTPError, OSError, ValueError) as error:
            reply = Reply(trouble=f"no answer ({str(error) or type(error).__name__})")
        if not self._over.is_set():
            self.reply = reply

    def _asked(self) -> Reply:
        import httpx2  # noqa: PLC0415 - see the top

        client = httpx2.Client(
            trust_env=False,
            verify=trusted(self._environ) or True,
            proxy=self._proxy or None,
            timeout=self._seconds,
            follow_redirects=False,
        )
        with (
            client,
            client.stream(
                "POST",
                str(self._target),
                content=self._body,
                headers={**self._headers, "Accept-Encoding": "identity"},
                extensions={"trace": self._trace},
            ) as response,
        ):
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > REPLY_BYTES:
                    why = f"it answered with more than {REPLY_BYTES:,} bytes"
                    return Reply(status=response.status_code, trouble=why)
            headers = {name.lower(): text for name, text in response.headers.items()}
            return Reply(status=response.status_code, headers=headers, body=bytes(body))

    def _trace(self, event: str, told: dict[str, Any]) -> None:
        """Keep the connection, so that it can be cut from outside."""
        if self._over.is_set():
            raise TimeoutError("nobody waits for it any more")
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = told["return_value"].get_extra_info("socket")


def trusted(environ: Mapping[str, str]) -> ssl.SSLContext | None:
    """The certificates that the environment names, if it names any."""
    file, folder = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if not (file or folder):
        return None
    from ssl import create_default_context  # noqa: PLC0415 - see the top

    return create_default_context(
        cafile=file if file and os.path.isfile(file) else None,
        capath=folder if folder and os.path.isdir(folder) else None,
    )


def events(body: bytes) -> list[str]:
    """The data of each event of a stream, in order."""
    text = body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    found = []
    for event in text.split("\n\n"):
        lines = [line[5:].removeprefix(" ") for line in event.split("\n") if line[:5] == "data:"]
        if lines:
            found.append("\n".join(lines))
    return found
