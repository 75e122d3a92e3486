"""Questions from programs that load no library: a line of words, then bytes; an exit status back.

The other end of `event.ask`. It knows no verb and no record.
"""

from __future__ import annotations

import socket

from truegreen.doors.event import FORWARDED
from truegreen.errors import InvalidInput
from truegreen.tuples import NamedTuple

_FIRST = b"\x01"
_HEAD_BYTES = 2000
_HEAD_WORDS = 4


class Frame(NamedTuple):
    """What somebody asks: a verb, its words, and bytes of which there may have been more."""

    verb: str
    words: tuple[str, ...]
    token: str
    payload: bytes
    size: int

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning came through."""
        return self.size > len(self.payload)


class Answer(NamedTuple):
    """What the asker is to leave with."""

    code: int = 0
    out: str = ""
    err: str = ""

    def encode(self) -> bytes:
        """As it goes over the line."""
        out, err = (text.encode("utf-8", "replace") for text in (self.out, self.err))
        return b"%d %d %d\n%b%b" % (self.code, len(out), len(err), out, err)


def is_frame(line: socket.socket) -> bool:
    """Whether what comes is such a question, and not a line of JSON."""
    return line.recv(1, socket.MSG_PEEK) == _FIRST


def receive_frame(line: socket.socket) -> Frame:
    """Read one question, bounded in size."""
    got = b""
    while b"\n" not in got:
        got += _more(line)
        if b"\n" not in got and len(got) > _HEAD_BYTES:
            raise InvalidInput("a question begins with a line of words")
    head, _, payload = got.partition(b"\n")
    frame, length = _read(head)
    while len(payload) < length:
        payload += _more(line)
    if len(payload) != length:
        raise InvalidInput("a question is as long as its first line says")
    return frame._replace(payload=payload)


def _read(head: bytes) -> tuple[Frame, int]:
    words = head.removeprefix(_FIRST).decode("ascii", "replace").split(" ")
    if len(words) < _HEAD_WORDS or not all(word.isdecimal() for word in words[1:3]):
        raise InvalidInput("a question begins with a verb, two sizes and a token")
    length, size = int(words[1]), int(words[2])
    if not length <= min(size, FORWARDED):
        raise InvalidInput(f"a question has at most {FORWARDED} bytes")
    return Frame(words[0], tuple(words[_HEAD_WORDS:]), words[3], b"", size), length


def _more(line: socket.socket) -> bytes:
    chunk = line.recv(65536)
    if not chunk:
        raise InvalidInput("the question was cut off")
    return chunk
