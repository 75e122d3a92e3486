"""One output stream of a child: redacted, hashed, kept within a cap, and cut into lines.

Memory stays bounded whatever comes. It knows no process: bytes go in, an Output comes out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import sha256

import msgspec

from truegreen.work.lines import Lines
from truegreen.work.redact import Redactor
from truegreen.work.sink import Sink

ENDS = 256 * 1024
"""How much of the beginning and of the end is kept ready."""
_ENDS_SHARE = 4
"""A file that holds less than so many ends has only the beginning of a stream."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """A finished stream, as it was after redaction.

    The file has `stored` bytes of it: the beginning, and where the stream was too long for it a
    line that says how many bytes are missing, and the end.
    """

    size: int = 0
    stored: int = 0
    sha256: str = sha256().hexdigest()
    truncated: bool = False
    head: bytes = b""
    tail: bytes = b""


class Pump:
    """What a stream goes through."""

    def __init__(
        self,
        path: str,
        cap: int,
        redactor: Redactor,
        block: Callable[[bytes], object] | None = None,
        *,
        append: bool = False,
    ) -> None:
        """Opens the file, if a path is given; OSError says why it can't be."""
        self._end_room = ENDS if cap >= _ENDS_SHARE * ENDS else 0
        self._sink = Sink(path, cap - self._end_room, append=append)
        self._redactor = redactor
        self._size = 0
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._lines = Lines(block) if block else None

    @property
    def trouble(self) -> OSError | None:
        """Why the file can't be written any more."""
        return self._sink.trouble

    def take(self, data: bytes) -> None:
        """The next bytes of the stream. A file that can't be written shows as `trouble`."""
        self._keep(self._redactor.feed(data))

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        self._size += len(data)
        self._sink.put(data)
        if len(self._head) < ENDS:
            self._head += data[: ENDS - len(self._head)]
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= ENDS:
            self._tail_size -= len(self._tail.popleft())
        if self._lines:
            self._lines.take(data)

    def finish(self) -> Output:
        """Close the file and say what went through."""
        self._keep(self._redactor.flush())
        if self._lines:
            self._lines.finish()
        tail = b"".join(self._tail)[-ENDS:]
        try:
            self._sink.settle()
            end = self._end(tail)
            if end:
                self._sink.append(self._gap(end), end)
        finally:
            self.close()
        return Output(
            size=self._size,
            stored=self._sink.stored,
            sha256=self._sink.digest(),
            truncated=self._sink.stored < self._size,
            head=bytes(self._head),
            tail=tail,
        )

    def _end(self, tail: bytes) -> bytes:
        """The end of the stream that goes behind what is stored; whole lines where bytes miss."""
        left = self._size - self._sink.stored
        if not (left and self._end_room and self._sink.stored):
            return b""
        if left <= len(tail):
            return tail[-left:]
        begin = tail.find(b"\n") + 1
        return tail[begin:] or tail

    def _gap(self, end: bytes) -> bytes:
        """The line that stands for the bytes between what is stored and the end."""
        missing = self._size - self._sink.stored - len(end)
        if not missing:
            return b""
        return f"\n[truegreen: {missing:,} of {self._size:,} bytes are missing here]\n".encode()

    def close(self) -> None:
        """Close the file; again does nothing."""
        self._sink.close()
