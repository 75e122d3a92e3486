"""The hash chain of events, per task, and its anchor outside the database.

A chain alone misses a cut tail and a history that was computed anew; the anchor, a file beside the
store, does not. Nothing here writes to a database.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping

import msgspec

from truegreen.errors import Unavailable, unwritable
from truegreen.record.rows import Event
from truegreen.tuples import NamedTuple

GENESIS = bytes(32)
_TAIL = 4096


SEALED = (
    *("revision", "id", "at", "level", "event", "from_status", "to_status", "actor", "reason"),
    *("run_id", "fence", "idempotency_key", "data"),
)
"""The columns of an event that its hash covers, beside the task and the hash before it."""


def seal(head: bytes, task: str | None, values: Mapping[str, object]) -> bytes:
    """The hash of an event that follows `head`."""
    content = msgspec.json.encode([task, *[values[name] for name in SEALED]])
    return hashlib.sha256(head + content).digest()


def seal_of(head: bytes, task: str | None, event: Event) -> bytes:
    """The hash that a stored event should have."""
    return seal(head, task, {name: getattr(event, name) for name in SEALED})


class Mark(msgspec.Struct, frozen=True):
    """One line of the anchor: everything up to this event had this digest."""

    xact: int
    key: int
    events: int
    digest: str
    at: int


class Reach(NamedTuple):
    """How far a running digest has come."""

    xact: int = 0
    key: int = 0
    events: int = 0
    digest: bytes = GENESIS

    def over(self, event: Event) -> Reach:
        """One event further."""
        digest = hashlib.sha256(self.digest + event.id.encode() + (event.hash or b"")).digest()
        return Reach(event.xact, event.key, self.events + 1, digest)


class Anchor:
    """A file of marks, one JSON line each; appended and flushed to the disk, never rewritten."""

    def __init__(self, path: str) -> None:
        self.path = path

    def marks(self) -> list[Mark]:
        """Every mark, oldest first; a line that was cut by a crash is not one."""
        try:
            with open(self.path, "rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            message = f"the anchor {self.path} can't be read: {error.strerror}"
            raise Unavailable(message) from error
        return [self._mark(line) for line in lines[:-1] if line]

    def _mark(self, line: bytes) -> Mark:
        try:
            return msgspec.json.decode(line, type=Mark)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            message = f"the anchor {self.path} is damaged: keep it as evidence, and move it away"
            raise Unavailable(message) from error

    def last(self) -> Reach:
        """Where the next mark goes on from; only the end of the file is read."""
        try:
            with open(self.path, "rb") as file:
                file.seek(max(0, os.path.getsize(self.path) - _TAIL))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return Reach()
        except OSError as error:
            raise Unavailable(f"the anchor {self.path}: {error.strerror}") from error
        if len(lines) < 2:  # noqa: PLR2004 - no whole line yet
            return Reach()
        mark = self._mark(lines[-2])
        return Reach(mark.xact, mark.key, mark.events, bytes.fromhex(mark.digest))

    def extend(self, since: Callable[[Reach], Iterable[Event]]) -> None:
        """Mark how far the history has come, durably.

        `since` gives the events after a mark. The file is locked from reading the last mark until
        the next one is written: a mark is only true if no other process wrote one in between.
        """
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            handle = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
        except OSError as error:
            raise self._unwritten(error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            _drop_torn_line(handle)
            before = reach = self.last()
            at = 0
            for event in since(before):
                reach, at = reach.over(event), event.at
            if reach.events > before.events:
                mark = Mark(reach.xact, reach.key, reach.events, reach.digest.hex(), at)
                _write_whole(handle, msgspec.json.encode(mark) + b"\n")
                os.fsync(handle)
            if before == Reach():
                _keep_name(os.path.dirname(self.path))
        except OSError as error:
            raise self._unwritten(error) from error
        finally:
            os.close(handle)

    def _unwritten(self, error: OSError) -> Unavailable:
        """The store has what was done; only its mark is missing until the next one."""
        message = f"the anchor {self.path} can't be written: {error.strerror}"
        return unwritable(f"{message}; what was done is recorded, see: truegreen list", error)


def _write_whole(handle: int, line: bytes) -> None:
    """Write a line, or fail: of the last bytes of a disk only a part may be taken."""
    if os.write(handle, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _drop_torn_line(handle: int) -> None:
    """Cut off the line that a crash left without an end: the next mark must not follow on it."""
    size = os.fstat(handle).st_size
    tail = os.pread(handle, _TAIL, max(0, size - _TAIL))
    if tail and not tail.endswith(b"\n"):
        os.ftruncate(handle, size - len(tail) + tail.rfind(b"\n") + 1)


def _keep_name(folder: str) -> None:
    """A new file is only found after a power cut if its folder was flushed as well."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
