"""One question and one answer over a socket: a line of JSON each way, bounded in size and time.

The program inside a run asks, the supervisor answers. This room knows no verb and no record.
"""

from __future__ import annotations

import os
import select
import socket
from typing import Any

import msgspec

from truegreen.doors.event import TERMINATED, terminated_at
from truegreen.errors import InvalidInput, Terminated, Unavailable

LINE_BYTES = 256 * 1024
NAME = "door"
_SHORT = 100  # a socket's address has room for 107 bytes

Line = dict[str, Any]


def ask(path: str, question: Line, *, timeout: float | None = None) -> Line:
    """Ask the supervisor behind a socket; None waits as long as the answer takes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(timeout)
        try:
            _reach(line.connect, path)
            send(line, question)
            return receive(line)
        except OSError as error:
            raise _unanswered(path, question, error) from None


def check_terminated(path: str, verb: str) -> None:
    """Refuse for a terminated run whose supervisor is gone, and leave word of the call."""
    if run := terminated_at(os.fsencode(path), "door", verb):
        raise Terminated(f"{run} {TERMINATED}", run=run)


def _unanswered(path: str, question: Line, error: OSError) -> Unavailable:
    check_terminated(path, str(question.get("verb", "")))
    why = error.strerror or str(error)
    return Unavailable(f"the supervisor of this run does not answer ({why})")


class Asked:
    """A question whose answer is looked for now and then: nobody has to stand and wait for it."""

    def __init__(self, path: str, question: Line, *, timeout: float) -> None:
        """`timeout` is for the asking; the answer may take as long as it takes."""
        self._path, self._question = path, question
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._answer: Line | None = None
        try:
            self._line.settimeout(timeout)
            _reach(self._line.connect, path)
            send(self._line, question)
        except OSError as error:
            self._line.close()
            raise _unanswered(path, question, error) from None

    def answer(self) -> Line | None:
        """What was answered; None as long as nothing was."""
        if self._answer is None and self._has_come():
            try:
                self._answer = receive(self._line)
            except OSError as error:
                raise _unanswered(self._path, self._question, error) from None
            finally:
                self.close()
        return self._answer

    def _has_come(self) -> bool:
        look = select.poll()
        look.register(self._line, select.POLLIN)
        return bool(look.poll(0))

    def close(self) -> None:
        """Nobody wants to know any more."""
        self._line.close()


def listen(path: str) -> socket.socket:
    """A socket at a path that nobody else can reach."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _reach(line.bind, path)
        os.chmod(path, 0o600)
        line.listen(16)
    except BaseException:
        line.close()
        raise
    return line


def send(line: socket.socket, document: Line) -> None:
    """Write one line."""
    line.sendall(msgspec.json.encode(document) + b"\n")


def receive(line: socket.socket) -> Line:
    """Read one line; anything else than one JSON object is refused."""
    text = b""
    while not text.endswith(b"\n"):
        chunk = line.recv(65536)
        if not chunk:
            break
        text += chunk
        if len(text) > LINE_BYTES:
            raise InvalidInput(f"a request has at most {LINE_BYTES} bytes")
    try:
        return msgspec.json.decode(text, type=Line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidInput("a request is one JSON object on one line") from None


def _reach(use: Any, path: str) -> None:
    """Bind or connect to a path of any length, by way of its folder's descriptor."""
    if len(os.fsencode(path)) <= _SHORT:
        use(path)
        return
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        use(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)


def is_gone(line: socket.socket) -> bool:
    """Whether whoever asked has left: an asker sends nothing behind its question."""
    look = select.poll()
    look.register(line, select.POLLIN)
    return bool(look.poll(0))
