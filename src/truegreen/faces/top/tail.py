"""The end of what an agent wrote, made safe to show; whatever else is in its place is not read."""

from __future__ import annotations

import os
import stat

from truegreen.faces.clean import clean

_BYTES = 65536
LINES = 200


def tail(path: str, lines: int = LINES) -> list[str]:
    """The last lines of a file, cleaned; none where there is no such file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return []
        told = os.pread(handle, _BYTES, max(0, found.st_size - _BYTES)).decode("utf-8", "replace")
    finally:
        os.close(handle)
    return [clean(line.expandtabs()) for line in told.splitlines()[-lines:]]
