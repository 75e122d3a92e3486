"""Somebody outside, on a loopback port: keeps what was asked, and answers as a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

import msgspec

from truegreen.config import Config
from truegreen.contract import read_toml


class Asked(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Reply(NamedTuple):
    """What goes back."""

    status: int = 204
    body: bytes = b""
    headers: Mapping[str, str] = {}
    drip: threading.Event | None = None
    """Sends headers byte by byte until this is set."""


Behave = Callable[[Asked], Reply]


class Receiver:
    """A server; `with` it."""

    def __init__(self, behave: Behave = lambda _: Reply()) -> None:
        self.asked: list[Asked] = []
        self.behave = behave
        self.arrived = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): text for name, text in self.headers.items()}
                asked = Asked(self.command, self.path, headers, body)
                with receiver.arrived:
                    receiver.asked.append(asked)
                    receiver.arrived.notify_all()
                reply = receiver.behave(asked)
                if reply.drip:
                    while not reply.drip.wait(0.01):
                        self.wfile.write(b"H")
                    return
                self.send_response(reply.status)
                for name, text in reply.headers.items():
                    self.send_header(name, text)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            do_GET = do_POST = do_PATCH = answer  # noqa: N815 - as the library calls them

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait(self, number: int, seconds: float = 10) -> list[Asked]:
        """Until so many requests have come."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.asked) >= number, seconds), self.asked
            return list(self.asked)


def settings(text: str) -> Config:
    """What a truegreen.toml of these words sets."""
    return Config(
        store="sqlite:///nowhere.db",
        state_dir="/nowhere",
        file=None,
        contents=read_toml(text, "truegreen.toml"),
        sources={},
    )
