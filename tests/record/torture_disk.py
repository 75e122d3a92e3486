"""Disks that remember and disks that fail: file layers for SQLite between it and the real one.

A RecordingDisk logs every write, truncation and flush, so that any state after a power cut can be
built: what was flushed is there, of what came later any part may be. A FailingDisk fails at a call.
"""
# ruff: noqa: N802 - apsw calls these methods by SQLite's names

from __future__ import annotations

import itertools
import sys
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator
    from pathlib import Path

SECTOR = 512
KEPT_EVERY = 50
_KEPT = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_WAL
_numbers = itertools.count(1)


class Deed(NamedTuple):
    """Something that happened to a file; an acknowledgement happens to none."""

    kind: str
    file: str = ""
    offset: int = 0
    data: bytes = b""


class _RecordingFile(apsw.VFSFile):
    def __init__(self, disk: RecordingDisk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._name = path.rsplit("/", 1)[-1]
        disk.log.append(Deed("create", self._name))

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._disk.log.append(Deed("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._disk.log.append(Deed("truncate", self._name, newsize))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._disk.log.append(Deed("flush", self._name))


class RecordingDisk(apsw.VFS):
    """Writes down what would reach a disk, and when it must have."""

    def __init__(self) -> None:
        self.name = f"recording{next(_numbers)}"
        self.log: list[Deed] = []
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        if flags[0] & (_KEPT | apsw.SQLITE_OPEN_MAIN_JOURNAL):
            return _RecordingFile(self, name, flags)
        return super().xOpen(name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        super().xDelete(name, syncdir)
        self.log.append(Deed("delete", name.rsplit("/", 1)[-1]))

    def acknowledge(self) -> None:
        """A verb has answered."""
        self.log.append(Deed("acknowledge"))


class Life:
    """A file from its first deed to its deletion, with what it held at some points of the log."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.deeds: list[Deed] = []
        self.places: list[int] = []
        self.gone = sys.maxsize
        self._content = bytearray()
        self._kept: list[bytes] = []

    def add(self, place: int, deed: Deed) -> None:
        """One more deed, at this place of the log."""
        if len(self.deeds) % KEPT_EVERY == 0:
            self._kept.append(bytes(self._content))
        self.deeds.append(deed)
        self.places.append(place)
        _apply(self._content, deed)

    def after(self, number: int) -> bytearray:
        """What it holds after so many of its deeds; there is at least one more."""
        content = bytearray(self._kept[number // KEPT_EVERY])
        for deed in self.deeds[number - number % KEPT_EVERY : number]:
            _apply(content, deed)
        return content


def lives_of(log: list[Deed]) -> list[Life]:
    """The log file by file: it is cut many times, and each time all files are built from it."""
    lives: list[Life] = []
    living: dict[str, Life] = {}
    for place, deed in enumerate(log):
        if deed.kind == "delete":
            if deed.file in living:
                living.pop(deed.file).gone = place
        elif deed.file:
            if deed.file not in living:
                living[deed.file] = Life(deed.file)
                lives.append(living[deed.file])
            living[deed.file].add(place, deed)
    return lives


def after_power_cut(
    lives: list[Life], cut: int, dice: random.Random
) -> Iterator[tuple[str, bytes]]:
    """The files as they may be found when the power fails after `cut` deeds."""
    for life in lives:
        done = bisect_left(life.places, cut)
        if not done or life.gone < cut:
            continue
        flushed = next((n for n in reversed(range(done)) if life.deeds[n].kind == "flush"), 0)
        content = life.after(flushed)
        rest = [deed for deed in life.deeds[flushed:done] if deed.kind in ("write", "truncate")]
        for deed in _survivors(rest, dice):
            _apply(content, deed)
        yield life.file, bytes(content)


def _survivors(rest: list[Deed], dice: random.Random) -> Iterator[Deed]:
    """What a disk may have taken of what nobody made it take: none, all, some, in pieces."""
    manner = dice.choice(["none", "all", "beginning", "any", "torn"])
    kept = dice.randint(0, len(rest))
    for number, deed in enumerate(rest):
        if manner == "none" or (manner == "beginning" and number >= kept):
            continue
        if manner in ("any", "torn") and dice.random() < 0.5:
            continue
        if manner == "torn" and deed.kind == "write":
            sectors = range(0, len(deed.data), SECTOR)
            for start in sectors:
                if dice.random() < 0.7:
                    piece = deed.data[start : start + SECTOR]
                    yield deed._replace(offset=deed.offset + start, data=piece)
            continue
        yield deed


def _apply(content: bytearray, deed: Deed) -> None:
    if deed.kind == "write":
        if len(content) < deed.offset:
            content.extend(bytes(deed.offset - len(content)))
        content[deed.offset : deed.offset + len(deed.data)] = deed.data
    elif deed.kind == "truncate":
        del content[deed.offset :]


def write_files(folder: Path, files: Iterator[tuple[str, bytes]]) -> None:
    """Lay the files of a crash state out."""
    for name, content in files:
        (folder / name).write_bytes(content)


class _FailingFile(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._disk.fails():
            if self._disk.short:
                super().xWrite(data[: len(data) // 2], offset)
            raise self._disk.error
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        if self._disk.fails():
            raise self._disk.error
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        if self._disk.fails():
            raise self._disk.error
        super().xSync(flags)


class FailingDisk(apsw.VFS):
    """Fails the n-th write, truncation, flush or opening, once or until it is mended."""

    def __init__(self) -> None:
        self.name = f"failing{next(_numbers)}"
        self.error: apsw.Error = apsw.FullError("no space left on device")
        self.short = self.once = self.failed = False
        self._left = 0
        super().__init__(self.name, "")

    def break_at(
        self, call: int, error: apsw.Error, *, short: bool = False, once: bool = False
    ) -> None:
        """Work for `call` - 1 more calls; a short write leaves half of the data behind."""
        self._left, self.error, self.short, self.once = call, error, short, once
        self.failed = False

    def mend(self) -> None:
        """Work again."""
        self._left, self.failed = 0, False

    def fails(self) -> bool:
        """Count a call."""
        if self.failed:
            return not self.once
        if self._left:
            self._left -= 1
            self.failed = self._left == 0
        return self.failed

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        if flags[0] & _KEPT:
            # What is full or read-only can still be opened.
            if isinstance(self.error, apsw.IOError) and self.fails():
                raise apsw.CantOpenError("too many open files")
            return _FailingFile(self, name, flags)
        return super().xOpen(name, flags)
