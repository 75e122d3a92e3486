"""A port on this machine alone: a thread for each connection, requests one after the other on it.

Who comes from elsewhere, names another host or comes when all seats are taken is not heard.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import BinaryIO, cast

from truegreen.doors.wire import Headers, Malformed, Request, bound, hang_up, head, read_request

_IDLE_SECONDS = 300.0

Answering = Callable[[socket.socket, Request], bool]
"""Answers a request on its connection; says whether another may follow."""
Refusing = Callable[[socket.socket, Malformed], object]
"""Says no to what can't be read."""


class Loopback:
    """Listens on a port of its own until it is closed."""

    def __init__(self, name: str, seats: int, answers: Answering, refuses: Refusing) -> None:
        """`name` is its threads'; `seats` is how many connections there may be at a time."""
        self._name, self._answers, self._refuses = name, answers, refuses
        self._lines: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._seats = threading.BoundedSemaphore(seats)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._hosts = tuple(f"{name}:{self.port}" for name in ("127.0.0.1", "localhost"))
        threading.Thread(target=self._accept, name=name, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it is found."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Nobody comes in any more, and who is here is hung up on."""
        self._closed.set()
        hang_up(self._listener)
        self._listener.close()
        with self._lock:
            lines = tuple(self._lines)
        for line in lines:
            hang_up(line)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                line, peer = self._listener.accept()
            except OSError:
                return  # closed
            if not peer[0].startswith("127.") or not self._seats.acquire(blocking=False):
                line.close()
                continue
            with self._lock:
                self._lines.add(line)
            threading.Thread(target=self._serve, args=(line,), name=self._name, daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        try:
            bound(line, _IDLE_SECONDS)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with line.makefile("rb", buffering=65536) as file:
                while self._served(line, cast("BinaryIO", file)):
                    pass
        except OSError:
            return  # the client is gone, or said nothing for long
        finally:
            with self._lock:
                self._lines.discard(line)
            hang_up(line)
            line.close()
            self._seats.release()

    def _served(self, line: socket.socket, file: BinaryIO) -> bool:
        """Answer one request; says whether another may follow."""
        try:
            request = read_request(file)
            if request is None or self._closed.is_set():
                return False
            self._check_host(request)
            return self._answers(line, request)
        except Malformed as error:
            self._refuses(line, error)
            return False

    def _check_host(self, request: Request) -> None:
        """A page of a browser, led here by a name, still says that name."""
        if request.header("host").lower() not in self._hosts:
            raise Malformed(421, "this is no host of that name")


def say(line: socket.socket, status: int, body: bytes, more: Headers | None = None) -> bool:
    """A whole answer in JSON; says whether it was heard."""
    headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
    try:
        line.sendall(head(status, [*headers, *(more or [])]) + body)
    except OSError:
        return False
    return True
