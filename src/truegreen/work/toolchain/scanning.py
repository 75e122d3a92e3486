"""What a folder or a file is like: a signature by names and inodes, a digest by contents.

A signature costs no reading. Nobody but root can give a changed file the old one back: the kernel
sets the time of change. Links stay links unless they lead to where an agent could write.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from hashlib import blake2b

import msgspec

from truegreen.tuples import NamedTuple

Keeps = Callable[[str], bool]
"""Whether a link to this path may stay a link."""

READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK = 1 << 20
_OPTIMISED = (b".opt-1.pyc", b".opt-2.pyc")
"""Byte code that Python makes again where somebody asks for it; most of what is in some folders."""


class Entry(NamedTuple):
    """One thing in a tree. `source` is where a file's contents are, if not at its own path."""

    path: bytes
    mode: int
    size: int = 0
    mtime: int = 0
    ctime: int = 0
    inode: int = 0
    link: bytes = b""
    source: bytes = b""

    @property
    def shown_mode(self) -> int:
        """The permissions of our copy: nobody writes in it."""
        return self.mode & 0o555 | 0o400


class Bounds(NamedTuple):
    """Beyond these, nothing is copied."""

    files: int = 400_000
    bytes: int = 4 << 30


class TooMuch(Exception):
    """A tree goes beyond the bounds."""


class Scan(NamedTuple):
    """A tree as it is now; of a single file, the only entry has no path."""

    root: str
    entries: list[Entry]
    unreadable: list[bytes]

    @property
    def signature(self) -> str:
        """The same as long as nothing was changed."""
        return blake2b(msgspec.msgpack.encode(self.entries), digest_size=32).hexdigest()

    @property
    def newest(self) -> int:
        """When the last change was, in nanoseconds."""
        return max((entry.ctime for entry in self.entries), default=0)


def scan(
    root: str,
    keeps: Keeps | None = None,
    bounds: Bounds | None = None,
    without: tuple[str, ...] = (),
) -> Scan:
    """Look at a folder or a file; OSError if there is none. Without `keeps` all links stay.

    Files whose paths are in `without` are passed by, and folders count as empty.
    """
    walk = _Walk(os.fsencode(root), keeps, bounds or Bounds(), set(map(os.fsencode, without)))
    status = os.stat(root)
    if stat.S_ISDIR(status.st_mode):
        walk.folder(b"", walk.root)
    else:
        walk.add(b"", status)
    walk.entries.sort()
    return Scan(root, walk.entries, walk.unreadable)


class _Walk:
    """A walk through one tree; special files are passed by."""

    def __init__(
        self, root: bytes, keeps: Keeps | None, bounds: Bounds, without: set[bytes]
    ) -> None:
        self.root = root
        self._without = without
        self.entries: list[Entry] = []
        self.unreadable: list[bytes] = []
        self._keeps = keeps
        self._bounds = bounds
        self._bytes = 0
        self._led: list[tuple[int, int]] = []

    def folder(self, at: bytes, source: bytes) -> None:
        """Everything in a folder, which is shown at a path."""
        pending = [(at, source)]
        while pending:
            path, place = pending.pop()
            prefix = path + b"/" if path else b""
            followed = place != os.path.join(self.root, path) if path else place != self.root
            for item in self._listed(path, place):
                inner = prefix + item.name
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                kind = stat.S_IFMT(status.st_mode)
                if kind == stat.S_IFDIR:
                    self._count(Entry(inner, stat.S_IFDIR))
                    if inner not in self._without:
                        pending.append((inner, item.path))
                elif inner in self._without or inner.endswith(_OPTIMISED):
                    continue
                elif kind == stat.S_IFLNK:
                    self._link(inner, item.path, status, followed=followed)
                else:
                    self.add(inner, status, item.path if followed else b"")

    def _listed(self, path: bytes, place: bytes) -> list[os.DirEntry[bytes]]:
        try:
            with os.scandir(place) as found:
                return list(found)
        except PermissionError:
            self.unreadable.append(path)
        except FileNotFoundError:
            pass  # gone since its folder was read; whoever copies looks twice
        return []

    def add(self, path: bytes, status: os.stat_result, source: bytes = b"") -> None:
        """A regular file."""
        if not stat.S_ISREG(status.st_mode):
            return
        self._bytes += status.st_size
        times = status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        self._count(Entry(path, status.st_mode, status.st_size, *times, b"", source))

    def _count(self, entry: Entry) -> None:
        self.entries.append(entry)
        if len(self.entries) > self._bounds.files:
            raise TooMuch(f"more than {self._bounds.files:,} files")
        if self._bytes > self._bounds.bytes:
            raise TooMuch(f"more than {self._bounds.bytes >> 20:,} MiB")

    def _link(self, path: bytes, place: bytes, status: os.stat_result, *, followed: bool) -> None:
        target = os.readlink(place)
        # Behind another link, words would lead elsewhere than they do there
        if not (followed and not target.startswith(b"/")) and (
            self._keeps is None or _stays_inside(path, target) or self._may_stay(place)
        ):
            self._count(Entry(path, stat.S_IFLNK, 0, 0, status.st_ctime_ns, status.st_ino, target))
            return
        try:
            led = os.stat(place)
        except OSError:  # it leads nowhere, and stays so in the copy
            self._count(Entry(path, stat.S_IFLNK, 0, 0, 0, 0, target))
            return
        if stat.S_ISDIR(led.st_mode):
            self._led_folder(path, os.path.realpath(place), (led.st_dev, led.st_ino))
        else:
            self.add(path, led, os.path.realpath(place))

    def _may_stay(self, place: bytes) -> bool:
        target = os.fsdecode(os.path.realpath(place))
        root = os.fsdecode(os.path.realpath(self.root))
        inside = target == root or target.startswith(f"{root}/")
        return inside or bool(self._keeps and self._keeps(target))

    def _led_folder(self, path: bytes, place: bytes, identity: tuple[int, int]) -> None:
        """A folder behind a link, as if it were here; a link to a folder around it ends there."""
        self._count(Entry(path, stat.S_IFDIR))
        if identity in self._led:
            return
        self._led.append(identity)
        self.folder(path, place)
        self._led.pop()


def _stays_inside(path: bytes, target: bytes) -> bool:
    """Whether a link says by its words alone that it leads to its own tree."""
    parts = [part for part in target.split(b"/") if part not in (b"", b".")]
    up = sum(part == b".." for part in parts)
    leading = all(part == b".." for part in parts[:up])
    return not target.startswith(b"/") and leading and up <= path.count(b"/")


# --- contents


def digest_of(entries: Iterator[tuple[Entry, bytes]]) -> str:
    """The digest of a tree from its entries, in their order, with their contents' hashes."""
    whole = blake2b(digest_size=32)
    for entry, content in entries:
        kind = stat.S_IFMT(entry.mode)
        mode = entry.shown_mode if kind == stat.S_IFREG else 0
        whole.update(msgspec.msgpack.encode((entry.path, kind, mode, entry.link, content)))
    return whole.hexdigest()


def contents_of(tree: Scan) -> str:
    """The digest of a tree by reading all of it."""
    root = os.fsencode(tree.root)

    def read() -> Iterator[tuple[Entry, bytes]]:
        for entry in tree.entries:
            regular = stat.S_ISREG(entry.mode)
            place = entry.source or (os.path.join(root, entry.path) if entry.path else root)
            yield entry, hash_of(place) if regular else b""

    return digest_of(read())


def hash_of(path: str | bytes) -> bytes:
    """The hash of a file's contents."""
    handle = os.open(path, READING)
    try:
        return copied(handle, None)
    finally:
        os.close(handle)


def copied(source: int, into: int | None) -> bytes:
    """Read a file to its end, write it into another if there is one, and give its hash."""
    whole = blake2b(digest_size=32)
    while data := os.read(source, _CHUNK):
        whole.update(data)
        rest = memoryview(data)
        while into is not None and rest:
            rest = rest[os.write(into, rest) :]
    return whole.digest()
