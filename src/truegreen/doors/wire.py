"""HTTP/1.1 as a loopback client speaks it: a request is read strictly, an answer written plainly.

Whatever could be read in two ways is refused, so that nobody behind the gateway reads it another
way. It knows no provider and no key.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from truegreen.tuples import NamedTuple

BODY_BYTES = 64 * 1024 * 1024
_LINE_BYTES = 32 * 1024
_HEADERS = 100
_CHUNK = 65536
_REQUEST = re.compile(rb"([A-Z]{3,7}) (/[\x21-\x7e]*) HTTP/1\.1\r\n")
_HEADER = re.compile(rb"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*?)[ \t]*\r\n")
_LENGTH = re.compile(r"[0-9]{1,12}")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    421: "Misdirected Request",
    502: "Bad Gateway",
    503: "Service Unavailable",
}

Headers = list[tuple[str, str]]


class Malformed(Exception):
    """What came is no request that only one meaning can be read from."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Request(NamedTuple):
    """The head of a request, and its body as it comes in."""

    method: str
    path: str
    query: str
    headers: Headers
    body: Body

    def header(self, name: str) -> str:
        """The value of a header that must not stand there twice; empty if it does not."""
        found = [value for each, value in self.headers if each == name]
        if len(found) > 1:
            raise Malformed(400, f"the header {name} stands there twice")
        return found[0] if found else ""


class Body:
    """The bytes behind a head: so many, or chunk by chunk; never more than are allowed."""

    def __init__(self, file: BinaryIO, length: int | None, *, wanted: bool = False) -> None:
        """Without a length it comes in chunks. `wanted`: the sender waits to be told to go on."""
        self._file = file
        self.length = length
        self.wanted = wanted
        self.taken = 0
        self._over = length == 0

    def __iter__(self) -> Iterator[bytes]:
        while part := self._part():
            self.taken += len(part)
            if self.taken > BODY_BYTES:
                raise Malformed(413, f"a request has at most {BODY_BYTES:,} bytes")
            yield part

    def whole(self) -> bytes:
        """All of it."""
        return b"".join(self)

    def skip(self) -> None:
        """Read the rest of it away, so that an answer reaches the sender."""
        for _ in self:
            pass

    def _part(self) -> bytes:
        if self._over:
            return b""
        if self.length is None:
            return self._chunk()
        part = self._file.read(min(_CHUNK, self.length - self.taken))
        if not part:
            raise Malformed(400, "the body ends too soon")
        self._over = self.taken + len(part) == self.length
        return part

    def _chunk(self) -> bytes:
        size = _SIZE.fullmatch(self._file.readline(_LINE_BYTES))
        if size is None:
            raise Malformed(400, "a chunk without a size")
        left = int(size[1], 16)
        if left > BODY_BYTES:
            raise Malformed(413, f"a request has at most {BODY_BYTES:,} bytes")
        part = self._file.read(left) if left else b""
        if len(part) < left or self._file.readline(_LINE_BYTES) != b"\r\n":
            raise Malformed(400, "a chunk that ends wrongly, or a trailer")
        self._over = not left
        return part


def read_request(file: BinaryIO) -> Request | None:
    """The next request on a connection; nothing where the other side has hung up."""
    line = file.readline(_LINE_BYTES)
    if not line:
        return None
    found = _REQUEST.fullmatch(line)
    if found is None:
        raise Malformed(400, "no request of HTTP/1.1 with a path")
    path, _, query = found[2].decode("ascii").partition("?")
    headers = _headers(file)
    draft = Request(found[1].decode("ascii"), path, query, headers, Body(file, 0))
    return draft._replace(body=_body(file, draft))


def _headers(file: BinaryIO) -> Headers:
    headers: Headers = []
    while (line := file.readline(_LINE_BYTES)) != b"\r\n":
        found = _HEADER.fullmatch(line)
        if found is None or len(headers) >= _HEADERS:
            raise Malformed(400, "a header that can't be read, or too many of them")
        headers.append((found[1].decode("ascii").lower(), found[2].decode("latin-1")))
    return headers


def _body(file: BinaryIO, draft: Request) -> Body:
    length, coding = draft.header("content-length"), draft.header("transfer-encoding")
    wanted = draft.header("expect").lower() == "100-continue"
    if coding:
        if length or coding.lower() != "chunked":
            raise Malformed(400, "a body has a length or comes in chunks, and not both")
        return Body(file, None, wanted=wanted)
    if length and not _LENGTH.fullmatch(length):
        raise Malformed(400, "a length is a number")
    if int(length or 0) > BODY_BYTES:
        raise Malformed(413, f"a request has at most {BODY_BYTES:,} bytes")
    return Body(file, int(length or 0), wanted=wanted)


def head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    """The head of an answer."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, '-')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def chunk(data: bytes) -> bytes:
    """A part of an answer whose length nobody knows yet."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def bound(line: socket.socket, seconds: float) -> None:
    """Nobody waits longer for the other side: kept by the kernel, which costs no call of its own.

    A time-out of Python's would look before each read and write whether it could be done.
    """
    limit = struct.pack("ll", int(seconds), 0)
    for way in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        line.setsockopt(socket.SOL_SOCKET, way, limit)


def hang_up(line: socket.socket) -> None:
    """Nothing more goes either way; who waits on it wakes up."""
    try:
        line.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has hung up by itself
