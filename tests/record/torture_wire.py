"""A wire between the ledger and PostgreSQL that reads along and can be cut at any statement.

It follows the client's messages far enough to know which statement is about to run: simple queries
by their text, prepared ones by the text that their name was given.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import time
from enum import Enum
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

SOCKET = ".s.PGSQL.5432"
LATE_BY = 0.06


class Cut(Enum):
    """Where the wire is cut."""

    BEFORE_COMMIT = "the server never hears of the commit"
    AFTER_COMMIT = "the commit is done, its answer is lost"
    LATE_COMMIT = "the client is cut off first, the commit arrives later"
    AT_STATEMENT = "before the n-th statement"


class Client:
    """One connection: what the client has sent and not yet been read, and the names it gave."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near, self.far = near, far
        self.unread = b""
        self.greeted = False
        self.texts: dict[bytes, bytes] = {}

    def messages(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Whole messages, and the statement that each one runs, if it runs one."""
        self.unread += data
        found: list[tuple[bytes, bytes]] = []
        while True:
            head = 1 if self.greeted else 0
            if len(self.unread) < head + 4:
                return found
            (length,) = struct.unpack_from(">i", self.unread, head)
            whole, rest = self.unread[: head + length], self.unread[head + length :]
            if len(whole) < head + length:
                return found
            self.unread = rest
            found.append((whole, self.statement(whole) if self.greeted else b""))
            # An encryption request is answered with one byte and followed by the real greeting.
            self.greeted = self.greeted or whole[4:8] == struct.pack(">i", 196608)

    def statement(self, message: bytes) -> bytes:
        """The text that a message makes the server run."""
        kind, body = message[:1], message[5:]
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self.texts[name] = text
        if kind == b"Q":
            return body.rstrip(b"\0")
        if kind == b"B":
            _, name, _ = body.split(b"\0", 2)
            return self.texts.get(name, b"?")
        return b""


class Wire:
    """Listens beside the server's socket and passes everything on until it is told to cut."""

    def __init__(self, server: Path, folder: Path) -> None:
        self.folder = folder
        self._server = str(server / SOCKET)
        self._plan: Cut | None = None
        self._statements_left = 0
        self.cuts = 0
        self.statements: list[bytes] = []
        self.dead = False
        self.dead_after_cut = False
        self.cut_again_at = 0
        self._over = False
        self._clients: list[Client] = []
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / SOCKET))
        self._door.listen(64)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def url(self, url: str) -> str:
        """The address of a database through the wire."""
        database = url.split("///", 1)[1].split("?", 1)[0]
        return f"postgresql:///{database}?host={self.folder}&user=postgres&sslmode=disable"

    def cut(self, plan: Cut, statement: int = 0) -> None:
        """Cut once, at the next occasion."""
        self._statements_left, self._plan = statement, plan
        self.statements.clear()

    def spare(self) -> None:
        """Don't cut after all."""
        self._plan = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over = True
        self._thread.join(10)
        self._door.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._door, selectors.EVENT_READ)
            while not self._over:
                for key, _ in waiting.select(0.05):
                    if key.fileobj is self._door:
                        self._let_in(waiting)
                    else:
                        client, from_near = key.data
                        if client in self._clients:
                            self._pass(waiting, client, from_near=from_near)
            for client in list(self._clients):
                self._hang_up(waiting, client)

    def _let_in(self, waiting: selectors.BaseSelector) -> None:
        near, _ = self._door.accept()
        if self.dead:
            near.close()
            return
        far = socket.socket(socket.AF_UNIX)
        far.connect(self._server)
        client = Client(near, far)
        self._clients.append(client)
        waiting.register(near, selectors.EVENT_READ, (client, True))
        waiting.register(far, selectors.EVENT_READ, (client, False))

    def _hang_up(self, waiting: selectors.BaseSelector, client: Client) -> None:
        self._clients.remove(client)
        for end in (client.near, client.far):
            waiting.unregister(end)
            end.close()

    def _pass(self, waiting: selectors.BaseSelector, client: Client, *, from_near: bool) -> None:
        source, target = (client.near, client.far) if from_near else (client.far, client.near)
        try:
            data = source.recv(65536)
            if data and not from_near:
                target.sendall(data)
            elif data:
                for message, statement in client.messages(data):
                    if self._is_cut(waiting, client, message, statement):
                        return
                    target.sendall(message)
        except OSError:
            data = b""
        if not data:
            self._hang_up(waiting, client)

    def _is_cut(
        self, waiting: selectors.BaseSelector, client: Client, message: bytes, statement: bytes
    ) -> bool:
        """Cut the wire here if that is the plan."""
        if not statement or self._plan is None:
            return False
        self.statements.append(statement)
        if self._plan is Cut.AT_STATEMENT:
            self._statements_left -= 1
            if self._statements_left > 0:
                return False
        elif statement.strip().upper() != b"COMMIT":
            return False
        plan, self._plan = self._plan, Cut.AT_STATEMENT if self.cut_again_at else None
        self._statements_left, self.cut_again_at = self.cut_again_at, 0
        self.cuts += 1
        self.dead = self.dead or self.dead_after_cut
        if plan is Cut.AFTER_COMMIT:
            self._commit(client, message)
        if plan is Cut.LATE_COMMIT:
            client.near.shutdown(socket.SHUT_RDWR)
            self._clients.remove(client)
            for end in (client.near, client.far):
                waiting.unregister(end)
            threading.Thread(target=self._commit_late, args=(client, message)).start()
        else:
            self._hang_up(waiting, client)
        return True

    @staticmethod
    def _commit(client: Client, message: bytes) -> None:
        """Let the server commit, and hear its answer before anything else happens."""
        execute = b"" if message[:1] == b"Q" else b"E\0\0\0\t\0\0\0\0\0"
        sync = b"" if message[:1] == b"Q" else b"S\0\0\0\x04"
        client.far.settimeout(5)
        heard = b""
        with contextlib.suppress(OSError):
            client.far.sendall(message + execute + sync)
            while b"COMMIT\0" not in heard:
                data = client.far.recv(65536)
                if not data:
                    break
                heard += data

    @classmethod
    def _commit_late(cls, client: Client, message: bytes) -> None:
        time.sleep(LATE_BY)
        cls._commit(client, message)
        client.near.close()
        client.far.close()
