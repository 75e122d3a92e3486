"""A mail server on a loopback port: keeps the letters, and refuses what a test says."""

from __future__ import annotations

import socketserver
import ssl
import threading
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Self


class _Handler(socketserver.StreamRequestHandler):
    house: MailServer
    wrapped: ssl.SSLSocket | None = None

    def handle(self) -> None:
        self.say("220 double")
        while line := self.rfile.readline().decode().strip():
            self.house.lines.append(line)
            word = line.split()[0].upper()
            if word in self.house.refuse:
                self.say(self.house.refuse[word])
            elif word == "QUIT":
                self.say("221 bye")
                return
            else:
                self.answer(word)

    def answer(self, word: str) -> None:
        tls = self.house.tls
        if word == "DATA":
            self.take()
        elif word == "EHLO":
            self.say(f"250-double\r\n{'250-STARTTLS' if tls else '250-plain'}\r\n250 AUTH PLAIN")
        elif word == "STARTTLS" and tls:
            self.say("220 go on")
            self.upgrade(tls)
        else:
            self.say("235 in" if word == "AUTH" else "250 fine")

    def upgrade(self, context: ssl.SSLContext) -> None:
        self.wrapped = self.connection = context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)
        self.house.lines.append("-- encrypted from here")

    def finish(self) -> None:
        super().finish()
        if self.wrapped:
            self.wrapped.close()

    def take(self) -> None:
        self.say("354 go on")
        text = b""
        while (line := self.rfile.readline()) != b".\r\n":
            text += line
        parsed = message_from_bytes(text, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        self.house.letters.append(parsed)
        self.say("250 taken")

    def say(self, words: str) -> None:
        self.wfile.write(f"{words}\r\n".encode())


class MailServer:
    """A server; `with` it. `refuse` answers a command's first word, `tls` takes STARTTLS."""

    def __init__(
        self, refuse: dict[str, str] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.letters: list[EmailMessage] = []
        self.lines: list[str] = []
        self.refuse, self.tls = refuse or {}, tls
        handler: Any = type("Handler", (_Handler,), {"house": self})
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
