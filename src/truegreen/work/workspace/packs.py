"""Pack files of the mirror: written and read by ourselves, in git's own format, without deltas.

One snapshot makes at most one pack, of the objects that the mirror did not have. It appears under
its final name complete and on disk, or not at all; so writers need no lock, and a killed one leaves
only a file that nobody reads. What git packed anew may hold deltas: those are not read here.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import BinaryIO

from truegreen import errors
from truegreen.tuples import NamedTuple
from truegreen.work.workspace.disk import draft, draft_path, sync_folder, unwritable
from truegreen.work.workspace.objects import BLOB, COMMIT, ID_BYTES, TREE, name_of, naming

CHUNK = 1 << 20
WHOLE = 8 << 20
_PRESSED = 1 << 16  # deflate swells at most a thousandfold: 64 MiB at a time
_KINDS = {COMMIT: 1, TREE: 2, BLOB: 3}
_KIND_OF = {number: kind for kind, number in _KINDS.items()}
_HEADER = struct.Struct(">4sII")
_INDEX_MAGIC = b"\xfftOc\x00\x00\x00\x02"
_FANOUT = struct.Struct(">256I")
_TABLES = len(_INDEX_MAGIC) + _FANOUT.size
_FAR = 1 << 31
_LEVEL = 1  # five times faster than 6, and hardly bigger


class Moving(Exception):
    """A file that became longer or shorter while it was read."""


class Packer:
    """Collects the objects of one snapshot; only those that are new are written."""

    def __init__(self, folder: str, has: Callable[[bytes], bool]) -> None:
        self._folder = folder
        self._has = has
        self._file: BinaryIO | None = None
        self._end = _HEADER.size
        self._written: dict[bytes, tuple[int, int]] = {}  # id → offset, checksum

    def has(self, oid: bytes) -> bool:
        """Whether an object is here already."""
        return oid in self._written or self._has(oid)

    def add(self, kind: bytes, body: bytes) -> bytes:
        """Keep an object; gives its id."""
        oid = name_of(kind, body)
        if oid not in self._written and not self._has(oid):
            start = self._end
            entry = _entry_head(_KINDS[kind], len(body)) + zlib.compress(body, _LEVEL)
            self._write(entry)
            self._written[oid] = (start, zlib.crc32(entry))
        return oid

    def add_file(self, file: int, size: int) -> bytes:
        """Keep a blob that is too big for memory, read from an open file; gives its id.

        It is read once to be named, and only if it is new once more to be kept; then it gets the
        name of what was kept. Raises Moving where it has not the size that it was said to have.
        """
        oid = _named(file, size)
        if oid in self._written or self._has(oid):
            return oid
        os.lseek(file, 0, os.SEEK_SET)
        start = self._end
        try:
            oid, checksum = self._copy(file, size)
        except Moving:
            self._cut(start)
            raise
        if oid in self._written or self._has(oid):
            self._cut(start)
        else:
            self._written[oid] = (start, checksum)
        return oid

    def finish(self) -> None:
        """Put the pack and its index in place, on disk; no pack where nothing was new."""
        if self._file is None or not self._written:
            self.abandon()
            return
        file = self._file
        file.seek(0)
        file.write(_HEADER.pack(b"PACK", 2, len(self._written)))
        file.flush()
        checksum = _checksum(file)
        file.seek(self._end)
        file.write(checksum)
        file.flush()
        os.fsync(file.fileno())
        index = draft(self._folder, _index(self._written, checksum))
        name = os.path.join(self._folder, f"pack-{checksum.hex()}")
        os.replace(file.name, f"{name}.pack")  # first the pack: an index promises it
        os.replace(index, f"{name}.idx")
        self._file = None
        file.close()
        sync_folder(self._folder)

    def abandon(self) -> None:
        """Leave nothing behind."""
        if self._file is not None:
            os.unlink(self._file.name)
            with contextlib.suppress(OSError):  # what was still to be written is not wanted
                self._file.close()
            self._file = None

    def _write(self, data: bytes) -> None:
        try:
            if self._file is None:
                path = draft_path(self._folder)
                self._file = open(path, "x+b", buffering=CHUNK)  # noqa: SIM115 - closed by finish
                self._file.write(bytes(_HEADER.size))
            self._file.write(data)
        except OSError as error:  # not to be taken for a file that can't be read
            raise unwritable(f"the mirror {self._folder}", error) from error
        self._end += len(data)

    def _copy(self, file: int, size: int) -> tuple[bytes, int]:
        head = _entry_head(_KINDS[BLOB], size)
        digest, press, checksum = naming(BLOB, size), zlib.compressobj(_LEVEL), zlib.crc32(head)
        self._write(head)
        for piece in _exactly(file, size):
            digest.update(piece)
            pressed = press.compress(piece)
            checksum = zlib.crc32(pressed, checksum)
            self._write(pressed)
        pressed = press.flush()
        self._write(pressed)
        return digest.digest(), zlib.crc32(pressed, checksum)

    def _cut(self, end: int) -> None:
        if self._file is not None:
            self._file.flush()
            self._file.truncate(end)
            self._file.seek(end)
            self._end = end


class Naming:
    """Takes the place of a Packer where only the names are wanted; keeps nothing."""

    def add(self, kind: bytes, body: bytes) -> bytes:
        """The id of an object."""
        return name_of(kind, body)

    def add_file(self, file: int, size: int) -> bytes:
        """The id of a blob in an open file; raises Moving as a Packer does."""
        return _named(file, size)


class Found(NamedTuple):
    """Where an object lies: what it is, how big, and the pressed bytes from its start on."""

    kind: bytes
    size: int
    data: memoryview
    start: int


class Packs:
    """The objects in all packs of a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._packs: dict[str, _Pack] = {}

    def refresh(self) -> None:
        """Learn what others wrote or packed anew; what is open stays readable until then."""
        names = {name for name in os.listdir(self._folder) if name.endswith(".idx")}
        for gone in self._packs.keys() - names:
            del self._packs[gone]
        for name in names - self._packs.keys():
            with contextlib.suppress(FileNotFoundError):  # packed anew since we listed
                self._packs[name] = _Pack(os.path.join(self._folder, name))
        biggest_first = sorted(self._packs.items(), key=lambda item: -item[1].count)
        self._packs = dict(biggest_first)

    @property
    def count(self) -> int:
        """How many packs there are."""
        return len(self._packs)

    def has(self, oid: bytes) -> bool:
        """Whether some pack holds the object."""
        return any(pack.offset(oid) for pack in self._packs.values())

    def find(self, oid: bytes) -> Found | None:
        """Where an object lies; None if no pack holds it whole."""
        for pack in self._packs.values():
            if offset := pack.offset(oid):
                return pack.at(offset)
        return None


class _Pack:
    def __init__(self, index: str) -> None:
        self._index = _mapped(index)
        self._path = index.removesuffix(".idx") + ".pack"
        self._data = memoryview(_mapped(self._path))
        if self._index[: len(_INDEX_MAGIC)] != _INDEX_MAGIC or len(self._index) < _TABLES:
            raise errors.Broken(f"{index} is not an index that we or git wrote")
        self._fanout = (0, *_FANOUT.unpack_from(self._index, len(_INDEX_MAGIC)))
        self.count = self._fanout[-1]
        if len(self._index) < _TABLES + self.count * (ID_BYTES + 8):
            raise errors.Broken(f"{index} is cut off")

    def offset(self, oid: bytes) -> int:
        """Where an object starts; 0 if it is not here."""
        low, high = (_TABLES + n * ID_BYTES for n in self._fanout[oid[0] : oid[0] + 2])
        at = self._index.find(oid, low, high)
        while at >= 0 and (at - _TABLES) % ID_BYTES:
            at = self._index.find(oid, at + 1, high)
        if at < 0:
            return 0
        number = (at - _TABLES) // ID_BYTES
        near = _TABLES + self.count * (ID_BYTES + 4)
        offset: int = struct.unpack_from(">I", self._index, near + 4 * number)[0]
        if offset >= _FAR:
            far = near + 4 * self.count + 8 * (offset - _FAR)
            offset = struct.unpack_from(">Q", self._index, far)[0]
        return offset

    def at(self, offset: int) -> Found | None:
        """The object at an offset; None for a delta."""
        byte = self._data[offset]
        kind, size, shift = _KIND_OF.get(byte >> 4 & 7), byte & 15, 4
        while byte & 0x80:
            offset += 1
            byte = self._data[offset]
            size |= (byte & 0x7F) << shift
            shift += 7
        return Found(kind, size, self._data, offset + 1) if kind else None


def body_of(found: Found) -> bytes:
    """The whole object, for what fits into memory."""
    end = found.start + found.size + (found.size >> 8) + 64  # pressing adds less than that
    return zlib.decompress(found.data[found.start : end], bufsize=found.size or 1)


def pieces_of(found: Found) -> Iterator[bytes]:
    """The object piece by piece."""
    loose = zlib.decompressobj()
    for start in range(found.start, len(found.data), _PRESSED):
        yield loose.decompress(found.data[start : start + _PRESSED])
        if loose.eof:
            return


def _mapped(path: str) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _entry_head(kind: int, size: int) -> bytes:
    byte = kind << 4 | size & 15
    size >>= 4
    head = bytearray()
    while size:
        head.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    head.append(byte)
    return bytes(head)


def _exactly(file: int, size: int) -> Iterator[bytes]:
    """The pieces of a file that must have a certain size, to the byte."""
    left = size
    while piece := os.read(file, CHUNK):
        left -= len(piece)
        if left < 0:
            break
        yield piece
    if left:
        raise Moving


def _named(file: int, size: int) -> bytes:
    digest = naming(BLOB, size)
    for piece in _exactly(file, size):
        digest.update(piece)
    return digest.digest()


def _checksum(file: BinaryIO) -> bytes:
    file.seek(0)
    digest = hashlib.sha1(usedforsecurity=False)
    while piece := file.read(CHUNK):
        digest.update(piece)
    return digest.digest()


def _index(written: dict[bytes, tuple[int, int]], checksum: bytes) -> bytes:
    """The index of a pack: fan-out, ids, checksums, offsets, and a table for far offsets."""
    oids = sorted(written)
    counts = [0] * 256
    for oid in oids:
        counts[oid[0]] += 1
    offsets = [written[oid][0] for oid in oids]
    far = [offset for offset in offsets if offset >= _FAR]
    places = iter(range(len(far)))
    near = [offset if offset < _FAR else _FAR + next(places) for offset in offsets]
    body = b"".join(
        (
            _INDEX_MAGIC,
            _FANOUT.pack(*accumulate(counts)),
            *oids,
            struct.pack(f">{len(oids)}I", *(written[oid][1] for oid in oids)),
            struct.pack(f">{len(oids)}I", *near),
            struct.pack(f">{len(far)}Q", *far),
            checksum,
        )
    )
    return body + hashlib.sha1(body, usedforsecurity=False).digest()
