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


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """A finished stream, as it was after redaction. The file has its first `stored` bytes."""

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
        self._sink = Sink(path, cap, append=append)
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
        self.close()
        return Output(
            size=self._size,
            stored=self._sink.stored,
            sha256=self._sink.digest(),
            truncated=self._sink.stored < self._size,
            head=bytes(self._head),
            tail=b"".join(self._tail)[-ENDS:],
        )

    def close(self) -> None:
        """Close the file; again does nothing."""
        self._sink.close()
