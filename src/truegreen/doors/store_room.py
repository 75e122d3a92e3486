"""Where the bytes lie that agents hand in: by run and by their SHA-256, for the owner's eyes only.

Whether they are taken, and what they are called, is the record's to say; who it does not know has
left nothing here. What is handed in is never opened, only handed out again.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from truegreen.contract import checked
from truegreen.errors import BudgetSpent, InvalidInput, NotFound, Stale, Unavailable, unwritable
from truegreen.facts import Actor, Ticket
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.artifacts import LARGEST_ARTIFACT, MOST_ARTIFACTS, MOST_BYTES
from truegreen.record.rows import Artifact
from truegreen.tuples import NamedTuple

_FOLDER = "artifacts"
_NAME_BYTES = 200
_DIGEST = re.compile(r"[0-9a-f]{64}")
AT_ONCE = 8
"""So many things one run hands in at a time."""
_WEIGHED_BYTES = 1 << 20
_FORGOTTEN_SECONDS = 3600
_PART = ".part"


def shelves(state_dir: str) -> str:
    """The folder of a state directory that holds what was handed in."""
    return os.path.join(state_dir, _FOLDER)


def is_plain(name: str) -> bool:
    """Whether a name can only be that of a file that lies right there."""
    return bool(name.strip()) and "/" not in name and name not in (".", "..") and name.isprintable()


class Room(NamedTuple):
    """What a run may still hand in under a name."""

    run: str
    name: str
    left: int
    known: Artifact | None
    """What it has handed in under this name: the same again is no more, and nothing else fits."""

    def check(self, size: int, sha256: str | None = None) -> None:
        """Refuse what is too much, and other bytes under a name that was used."""
        if size > LARGEST_ARTIFACT:
            limit = f"an artifact has at most {LARGEST_ARTIFACT >> 20} MiB"
            raise InvalidInput(limit, path="size")
        if self.known is None:
            if size > self.left:
                raise _spent()
        elif size > self.known.size or sha256 not in (None, self.known.sha256):
            message = f"{self.name} was handed in already, with other contents"
            raise InvalidInput(message, path="name")


def room_for(ledger: Ledger, run: str, name: str) -> Room:
    """Refuse before anything is read what would be refused afterwards."""
    if not is_plain(checked(name, "name", _NAME_BYTES)):
        raise InvalidInput("an artifact has a plain name, without a folder", path="name")
    had = ledger.artifacts(run)
    known = next((each for each in had if each.name == name), None)
    if known is None and len(had) >= MOST_ARTIFACTS:
        raise _spent()
    return Room(run, name, MOST_BYTES - sum(each.size for each in had), known)


def _spent() -> BudgetSpent:
    limit = f"{MOST_ARTIFACTS} artifacts, {MOST_BYTES >> 20} MiB in all"
    return BudgetSpent(f"a run hands in at most {limit}")


# -- in --------------------------------------------------------------------------------------------


class Delivery(NamedTuple):
    """Bytes that lie there whole, and whether they lay there before."""

    sha256: str
    size: int
    path: str
    new: bool


class Incoming:
    """Bytes on their way in; counted, digested, and nowhere to be found until they are whole."""

    def __init__(self, folder: str, room: Room) -> None:
        self._folder, self.room = folder, room
        self._path = os.path.join(folder, f".{os.urandom(8).hex()}{_PART}")
        self._digest = hashlib.sha256()
        self._size = self._weighed = 0
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = open(os.open(self._path, flags, 0o600), "wb")  # noqa: SIM115 - closed by whoever receives

    def feed(self, chunk: bytes) -> None:
        """The next piece."""
        self._size += len(chunk)
        self.room.check(self._size)
        if self._size - self._weighed >= _WEIGHED_BYTES:
            self._weighed = self._size
            self._weigh()
        self._digest.update(chunk)
        self._file.write(chunk)

    def _weigh(self) -> None:
        """What comes in beside this, through whatever server, counts as well."""
        again = self.room.known.size if self.room.known else 0
        if sum(size for _, size, _ in _lying(self._folder)) > MOST_BYTES + again:
            raise _spent()

    def keep(self) -> Delivery:
        """All is there: under its digest from now on, whatever happens."""
        sha256 = self._digest.hexdigest()
        self.room.check(self._size, sha256)
        path = os.path.join(self._folder, sha256)
        self._file.flush()
        os.fsync(self._file.fileno())
        new = not os.path.lexists(path)
        os.rename(self._path, path)
        _settle(self._folder)
        return Delivery(sha256, self._size, path, new)

    def close(self) -> None:
        """What was not kept is gone."""
        self._file.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)


@contextmanager
def receiving(shelf: str, room: Room) -> Iterator[Incoming]:
    """Take something in for a run; trouble with the disk is said as such."""
    folder = os.path.join(shelf, _plain(room.run))
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        _check_not_many(folder)
        incoming = Incoming(folder, room)
        try:
            yield incoming
        finally:
            incoming.close()
    except OSError as error:
        raise unwritable(f"an artifact can't be kept: {error.strerror}", error) from None


def _check_not_many(folder: str) -> None:
    """Refuse one too many at a time; what a server that was killed left is taken away."""
    now, under_way = time.time(), 0
    for path, _, changed in _lying(folder):
        if path.endswith(_PART) and now - changed > _FORGOTTEN_SECONDS:
            with suppress(FileNotFoundError):
                os.unlink(path)
        else:
            under_way += path.endswith(_PART)
    if under_way >= AT_ONCE:
        raise Unavailable(f"a run hands in at most {AT_ONCE} things at a time; try again")


def _lying(folder: str) -> Iterator[tuple[str, int, float]]:
    """What lies in a folder, with its size and when it was changed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # kept or thrown away meanwhile
                status = entry.stat(follow_symlinks=False)
                yield entry.path, status.st_size, status.st_mtime


def entered(ledger: Ledger, ticket: Ticket, incoming: Incoming, *, actor: Actor) -> Artifact:
    """Keep what came in, and write it down; what the record refuses does not stay."""
    kept = incoming.keep()
    try:
        return ledger.attach(ticket, incoming.room.name, kept.sha256, kept.size, actor=actor)
    except BaseException:
        if kept.new and not _is_known(ledger, ticket.run, kept.sha256):
            os.unlink(kept.path)
        raise


def hand_in(
    ledger: Ledger,
    shelf: str,
    ticket: Ticket,
    name: str,
    chunks: Iterable[bytes],
    *,
    actor: Actor,
) -> Artifact:
    """Keep some bytes under their digest, and write down that the run handed them in."""
    with receiving(shelf, room_for(ledger, ticket.run, name)) as incoming:
        for chunk in chunks:
            incoming.feed(chunk)
        return entered(ledger, ticket, incoming, actor=actor)


# -- out -------------------------------------------------------------------------------------------


def handed_in(ledger: Ledger, shelf: str, run: str, sha256: str) -> tuple[Artifact, BinaryIO]:
    """Something that a run handed in, and its bytes."""
    found = [each for each in ledger.artifacts(run) if each.sha256 == sha256]
    if not found or not _DIGEST.fullmatch(sha256):
        raise NotFound(f"{run} has handed in nothing with this digest", kind="artifact")
    path = os.path.join(shelf, _plain(run), sha256)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        raise NotFound("its bytes are not kept on this machine", kind="artifact") from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_size != found[0].size:
        os.close(handle)
        raise Stale("its bytes are not what was handed in any more", stale="artifact")
    return found[0], open(handle, "rb")


def _is_known(ledger: Ledger, run: str, sha256: str) -> bool:
    try:
        return any(each.sha256 == sha256 for each in ledger.artifacts(run))
    except Unavailable:
        return True  # nobody can say: what somebody may need stays


def _plain(run: str) -> str:
    if not run.isascii() or not run.replace("_", "").isalnum():
        raise InvalidInput(f"{run!r} is not the id of a run")
    return run


def _settle(folder: str) -> None:
    """A name lasts when its folder is on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
