"""Where a stream ends: in a file, up to a cap, and in a hash of all of it.

A stream that goes on for long gets a thread of its own for both, since neither needs the
interpreter. What waits for it is bounded. When it is closed all is written, or `trouble` says why
not.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from hashlib import sha256
from queue import SimpleQueue

BUSY_BYTES = 4 * 1024 * 1024
"""After so many bytes it is worth a thread; most streams never come to it."""
WAITING = 4
"""How many pieces may wait for the thread."""


class Sink:
    """A file and a hash."""

    def __init__(self, path: str, cap: int, *, append: bool = False) -> None:
        """Opens the file, if a path is given; OSError says why it can't be."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        flags |= os.O_APPEND if append else os.O_TRUNC
        self._file = os.open(path, flags, 0o600) if path else None
        self._room = cap if path else 0
        self._hash = sha256()
        self._seen = 0
        self._carrier: Carrier | None = None
        self.stored = 0
        self.trouble: OSError | None = None

    def put(self, data: bytes) -> None:
        """The next bytes."""
        self._seen += len(data)
        if self._carrier is None and self._seen > BUSY_BYTES:
            self._carrier = Carrier(self.take)
        if self._carrier:
            self._carrier.give(data)
        else:
            self.take(data)

    def take(self, data: bytes) -> None:
        """Hash and write; by whoever carries."""
        self._hash.update(data)
        if self._room and self.trouble is None:
            self._write(data)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)[: self._room]
        try:
            while rest and self._file is not None:
                done = os.write(self._file, rest)
                self.stored += done
                self._room -= done
                rest = rest[done:]
        except OSError as error:
            self.trouble = error

    def digest(self) -> str:
        """Of all that came; once it is closed."""
        return self._hash.hexdigest()

    def settle(self) -> None:
        """Wait until all is written; again does nothing."""
        carrier, self._carrier = self._carrier, None
        if carrier:
            carrier.stop()

    def append(self, note: bytes, end: bytes) -> None:
        """Write a note and the end of the stream behind what is stored; after `settle`."""
        if self.trouble is not None:
            return
        stored, self._room = self.stored, len(note) + len(end)
        self._write(note + end)
        self.stored = stored + max(0, self.stored - stored - len(note))

    def close(self) -> None:
        """Wait until all is written and close the file; again does nothing."""
        try:
            self.settle()
        finally:
            handle, self._file = self._file, None
            if handle is not None:
                os.close(handle)


class Carrier:
    """The thread of a sink."""

    def __init__(self, take: Callable[[bytes], object]) -> None:
        self._take = take
        self._pieces: SimpleQueue[bytes] = SimpleQueue()
        self._free: SimpleQueue[None] = SimpleQueue()  # a semaphore that is not made of Python
        for _ in range(WAITING):
            self._free.put(None)
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._carry, name="sink", daemon=True)
        self._thread.start()

    def give(self, data: bytes) -> None:
        """Waits while too much is on its way."""
        if data:
            self._free.get()
            self._pieces.put(data)

    def stop(self) -> None:
        """Until it has carried all; what went wrong with it goes wrong here."""
        self._pieces.put(b"")
        self._thread.join()
        if self._failed:
            raise self._failed

    def _carry(self) -> None:
        while data := self._pieces.get():
            try:
                if self._failed is None:
                    self._take(data)
            except BaseException as error:  # noqa: BLE001 - raised again by whoever stops it
                self._failed = error
            finally:
                self._free.put(None)
