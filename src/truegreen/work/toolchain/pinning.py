"""Copies of folders and files, kept where no agent looks, each made once.

A copy has its name by its contents and gets it when it is complete; whoever is killed before leaves
nothing that is used. Originals are never linked to, only earlier copies of ours.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import TypeVar

import msgspec
from msgspec import Struct

from truegreen.work.toolchain import Pin
from truegreen.work.toolchain.scanning import (
    READING,
    Bounds,
    Entry,
    Keeps,
    Scan,
    TooMuch,
    contents_of,
    copied,
    digest_of,
    scan,
)
from truegreen.work.workspace.disk import UNFINISHED, draft_path, room

KEPT_DAYS = 30
_DAY = 86_400
_TRIES = 3
_TICK_NS = 20_000_000
"""Two changes within it can bear the same time."""
_SHUT = 0o555
"""Others may read what a copy holds; nobody writes in it."""
_COPY = re.compile(r"[0-9a-f]{64}")
_TREE = "tree"
PACKAGES = "node_modules"
_SEEN = "seen"

_Note = TypeVar("_Note")
Known = dict[bytes, tuple[tuple[int, int, int, int, int], bytes]]
"""Path → what the original was like, and the hash of its contents."""


class _Seen(Struct, frozen=True, kw_only=True):
    """What a path was like when it was last copied."""

    signature: str
    digest: str
    seal: str
    notes: tuple[str, ...] = ()


class _Moved(Exception):
    """The original changes while it is copied."""


class Store:
    """A folder of copies. `told` hears when one is made, because that takes a while."""

    def __init__(
        self,
        folder: str,
        *,
        bounds: Bounds | None = None,
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = folder
        self._bounds = bounds or Bounds()
        self._told = told
        self.notes: list[str] = []

    def pin(self, path: str, keeps: Keeps, without: tuple[str, ...] = ()) -> Pin | str:
        """A copy of what lies at a path now, or why there is none."""
        real = os.path.realpath(path)

        def look() -> Scan:
            return scan(real, keeps, self._bounds, without)

        try:
            before = look()
        except TooMuch as much:
            return f"{path} has {much}: it is not pinned"
        except OSError as error:
            return f"{path} can't be read: {error.strerror}"
        seen: _Seen | str | None = self._seen(real, before)
        if seen is None:
            seen = self._made(real, look, before)
        if isinstance(seen, str):
            return seen
        self.notes += seen.notes
        if os.path.basename(path) == PACKAGES:
            self._make_resolvable(seen.digest)
        return Pin(
            path=path,
            copy=os.path.join(self._folder, seen.digest, _TREE),
            digest=seen.digest,
            file=not os.path.isdir(real),
            seal=seen.seal,
            identity=identity_of(real),
        )

    def _make_resolvable(self, digest: str) -> None:
        """Node.js looks for a package's dependencies in folders of this name above its real path.

        A link beside the copy leads there, so that packages work from the copy alone.
        """
        with contextlib.suppress(FileExistsError):
            os.symlink(_TREE, os.path.join(self._folder, digest, PACKAGES))

    # -- what is known already ------------------------------------------------------------------

    def _note_of(self, path: str) -> str:
        name = blake2b(os.fsencode(path), digest_size=16).hexdigest()
        return os.path.join(self._folder, _SEEN, name)

    def _seen(self, path: str, now: Scan) -> _Seen | None:
        """What is known about a path that still looks the same, and whose copy is there."""
        seen = _read(self._note_of(path), _Seen)
        same = seen and seen.signature == now.signature and self._touch(seen.digest)
        return seen if same else None

    def _touch(self, digest: str) -> bool:
        """Whether a copy is there; it counts as used from now."""
        try:
            os.utime(os.path.join(self._folder, digest))
        except OSError:
            return False
        return True

    # -- copying --------------------------------------------------------------------------------

    def _made(self, path: str, look: Callable[[], Scan], before: Scan) -> _Seen | str:
        with room(f"a copy of {path} in {self._folder}"):
            os.makedirs(os.path.join(self._folder, _SEEN), mode=0o700, exist_ok=True)
            with self._alone(path):
                for _ in range(_TRIES):
                    # Another one may have made it while we waited
                    if seen := self._seen(path, before):
                        return seen
                    self._told(path)
                    with contextlib.suppress(_Moved):
                        return self._copied(path, look, before)
                    try:
                        before = look()
                    except TooMuch as much:
                        return f"{path} has {much}: it is not pinned"
        return f"{path} changes all the time: it is not pinned"

    @contextlib.contextmanager
    def _alone(self, path: str) -> Iterator[None]:
        with open(f"{self._note_of(path)}.lock", "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _copied(self, path: str, look: Callable[[], Scan], before: Scan) -> _Seen:
        begun = time.time_ns()
        draft = draft_path(self._folder)
        os.mkdir(draft, 0o700)
        try:
            known = self._lay(before, os.path.join(draft, _TREE), path)
            if look().signature != before.signature:
                raise _Moved
            taken = (entry for entry in before.entries if entry.path in known)
            digest = digest_of((entry, known[entry.path][1]) for entry in taken)
            copy = self._named(draft, digest)
        finally:
            remove_tree(draft)
        seal = scan(copy).signature
        notes = tuple(
            f"{path}: {os.fsdecode(each)} can't be read and was left out"
            for each in before.unreadable[:5]
        )
        seen = _Seen(signature=before.signature, digest=digest, seal=seal, notes=notes)
        if before.newest < begun - _TICK_NS:
            self._remember(path, seen, known)
        self.tidy()
        return seen

    def _named(self, draft: str, digest: str) -> str:
        """Give a complete copy its name; one that is there already is as good, if it is whole."""
        place = os.path.join(self._folder, digest)
        copy = os.path.join(place, _TREE)
        try:
            os.rename(draft, place)
        except OSError:
            if not self._touch(digest):
                raise
            if contents_of(scan(copy)) != digest:
                discard(copy)
                os.rename(draft, place)
        return copy

    def _remember(self, path: str, seen: _Seen, known: Known) -> None:
        note = self._note_of(path)
        for name, value in ((f"{note}.list", (seen.digest, known)), (note, seen)):
            draft = draft_path(self._folder)
            with open(draft, "wb") as file:
                file.write(msgspec.msgpack.encode(value))
            os.replace(draft, name)

    def _lay(self, tree: Scan, into: str, path: str) -> Known:
        """Write the copy; what an earlier copy has and nobody touched since is linked to it."""
        digest, earlier = _read(f"{self._note_of(path)}.list", tuple[str, Known]) or ("", {})
        former = os.fsencode(os.path.join(self._folder, digest, _TREE))
        root, top = os.fsencode(tree.root), os.fsencode(into)
        known: Known = {}
        folders = []
        if os.path.isdir(tree.root):
            os.mkdir(top, 0o700)
            folders.append(top)
        for entry in tree.entries:
            place = os.path.join(top, entry.path) if entry.path else top
            stamp = (entry.mode, entry.size, entry.mtime, entry.ctime, entry.inode)
            hashed = b""
            if stat.S_ISDIR(entry.mode):
                os.mkdir(place, 0o700)
                folders.append(place)
            elif stat.S_ISLNK(entry.mode):
                os.symlink(entry.link, place)
            else:
                was, hashed = earlier.get(entry.path, ((), b""))
                older = os.path.join(former, entry.path) if entry.path else former
                if was != stamp or not _linked(older, place):
                    source = os.path.join(root, entry.path) if entry.path else root
                    try:
                        hashed = _copy(entry, entry.source or source, place)
                    except PermissionError:
                        tree.unreadable.append(entry.path)
                        continue
            known[entry.path] = (stamp, hashed)
        for folder in reversed(folders):
            os.chmod(folder, _SHUT)
        return known

    # -- tidying --------------------------------------------------------------------------------

    def tidy(self) -> None:
        """Remove copies that nobody used for long, and what was never finished."""
        now = time.time()
        with os.scandir(self._folder) as found:
            aged = [(entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in found]
        for used, path in sorted(aged):
            name = os.path.basename(path)
            days = 1 if name.startswith(UNFINISHED) else KEPT_DAYS
            copy = _COPY.fullmatch(name) or name.startswith(UNFINISHED)
            if copy and used < now - days * _DAY:
                _drop(path)


def identity_of(path: str) -> str:
    """Device and inode of what lies at a path; empty if nothing does."""
    try:
        seen = os.stat(path)
    except OSError:
        return ""
    return f"{seen.st_dev}:{seen.st_ino}"


def _read(path: str, kind: type[_Note]) -> _Note | None:
    """A note of ours; one that is not there or damaged is none."""
    try:
        with open(path, "rb") as file:
            return msgspec.msgpack.decode(file.read(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def _linked(older: bytes, place: bytes) -> bool:
    try:
        os.link(older, place, follow_symlinks=False)
    except OSError:
        return False
    return True


def _copy(entry: Entry, source: bytes, place: bytes) -> bytes:
    """Copy one file as it was seen, and give its hash."""
    try:
        reads = os.open(source, READING)
    except FileNotFoundError:
        raise _Moved from None
    try:
        status = os.fstat(reads)
        if (status.st_ino, status.st_ctime_ns) != (entry.inode, entry.ctime):
            raise _Moved
        writes = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            hashed = copied(reads, writes)
            os.fchmod(writes, entry.shown_mode)
            os.utime(writes, ns=(entry.mtime, entry.mtime))
        finally:
            os.close(writes)
    finally:
        os.close(reads)
    return hashed


def discard(copy: str) -> None:
    """Give up a copy that is not what it was, so that the next one who needs it makes it anew."""
    folder, name = os.path.split(copy)
    if name == _TREE and _COPY.fullmatch(os.path.basename(folder)):
        _drop(folder)


def _drop(path: str) -> None:
    doomed = draft_path(os.path.dirname(path))
    with contextlib.suppress(OSError):  # another one tidies, too
        os.rename(path, doomed)
        remove_tree(doomed)


def remove_tree(path: str) -> None:
    """Remove a copy or a draft; its folders can't be written to."""
    if not os.path.lexists(path):
        return
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, stat.S_IRWXU)
        with os.scandir(path) as found:
            inner = [entry.path for entry in found]
        for each in inner:
            remove_tree(each)
        os.rmdir(path)
    else:
        os.unlink(path)
