"""When a file came to be, which no agent can set back; the kernel tells, Python has no word for it.

It knows nothing of what files are for.
"""

from __future__ import annotations

import os
import sys

_NO_FOLLOW, _BTIME, _SIZE = 0x100, 0x800, 256
_MASK_AT, _BTIME_AT = 0, 0x50
_HERE = -100


def born_at(folder: int, name: str) -> float:
    """The birth of a file in an open folder, in seconds; 0 where the kernel does not know it."""
    return _birth(folder, name) / 1e9


def birth_of(path: str) -> int:
    """The birth of what lies at a path, in nanoseconds; 0 where the kernel does not know it."""
    return _birth(_HERE, os.path.abspath(path))


def _birth(folder: int, name: str) -> int:
    import ctypes  # noqa: PLC0415 - dear to load, and hardly ever needed

    told = ctypes.create_string_buffer(_SIZE)
    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is None or statx(folder, os.fsencode(name), _NO_FOLLOW, _BTIME, told) != 0:
        return 0
    if not _number(told.raw, _MASK_AT, 4) & _BTIME:
        return 0
    seconds = _number(told.raw, _BTIME_AT, 8)
    return seconds * 1_000_000_000 + _number(told.raw, _BTIME_AT + 8, 4)


def _number(raw: bytes, at: int, size: int) -> int:
    return int.from_bytes(raw[at : at + size], sys.byteorder)
