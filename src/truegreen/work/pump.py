"""One output stream of a child: redacted, hashed, kept within a cap, and cut into lines.

Memory stays bounded whatever comes. It knows no process: bytes go in, an Output comes out.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from hashlib import sha256

import msgspec

from truegreen.work.redact import Redactor

ENDS = 256 * 1024
"""How much of the beginning and of the end is kept ready."""
LINE_BYTES = 8 * 1024 * 1024
"""A longer line is given on with exactly so many bytes; the rest of it is dropped."""


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
        line: Callable[[bytes], object] | None = None,
        *,
        append: bool = False,
    ) -> None:
        """Opens the file, if a path is given; OSError says why it can't be."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        flags |= os.O_APPEND if append else os.O_TRUNC
        self._file = os.open(path, flags, 0o600) if path else None
        self._room = cap if path else 0
        self._redactor = redactor
        self._hash = sha256()
        self._size = self._stored = 0
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._lines = Lines(line) if line else None
        self.trouble: OSError | None = None

    def take(self, data: bytes) -> None:
        """The next bytes of the stream. A file that can't be written shows as `trouble`."""
        self._keep(self._redactor.feed(data))

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        self._size += len(data)
        self._hash.update(data)
        if len(self._head) < ENDS:
            self._head += data[: ENDS - len(self._head)]
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= ENDS:
            self._tail_size -= len(self._tail.popleft())
        if self._room and self.trouble is None:
            self._write(data[: self._room])
        if self._lines:
            self._lines.take(data)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest and self._file is not None:
                done = os.write(self._file, rest)
                self._stored += done
                self._room -= done
                rest = rest[done:]
        except OSError as error:
            self.trouble = error

    def finish(self) -> Output:
        """Close the file and say what went through."""
        self._keep(self._redactor.flush())
        if self._lines:
            self._lines.finish()
        self.close()
        return Output(
            size=self._size,
            stored=self._stored,
            sha256=self._hash.hexdigest(),
            truncated=self._stored < self._size,
            head=bytes(self._head),
            tail=b"".join(self._tail)[-ENDS:],
        )

    def close(self) -> None:
        """Close the file; again does nothing."""
        if self._file is not None:
            handle, self._file = self._file, None
            os.close(handle)


class Lines:
    """Bytes in, whole lines out."""

    def __init__(self, line: Callable[[bytes], object]) -> None:
        """`line` gets each line without its end."""
        self._line = line
        self._open: list[bytes] = []
        self._length = 0

    def take(self, data: bytes) -> None:
        """Some bytes, from anywhere in the stream."""
        first, *whole = data.split(b"\n")
        self._add(first)
        if whole:
            last = whole.pop()
            self._close()
            for line in whole:  # none is longer than what is read at once
                self._line(line)
            self._add(last)

    def _add(self, piece: bytes) -> None:
        piece = piece[: LINE_BYTES - self._length]
        if piece:
            self._open.append(piece)
            self._length += len(piece)

    def _close(self) -> None:
        whole = b"".join(self._open)
        self._open, self._length = [], 0
        self._line(whole)

    def finish(self) -> None:
        """The last line may lack its end."""
        if self._open:
            self._close()
