"""Files that are there whole or not at all, and on the disk before anybody is told of them."""

from __future__ import annotations

import os
from contextlib import suppress

OURS_ALONE = 0o600


def write_whole(path: str, data: bytes, *, mode: int = 0o666, replace: bool = False) -> None:
    """Write a file; one that exists is only replaced if that was asked for (FileExistsError)."""
    folder = os.path.dirname(path) or "."
    draft = os.path.join(folder, f".{os.path.basename(path)}.{os.getpid()}_{os.urandom(6).hex()}")
    try:
        with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(draft, path)
        else:
            os.link(draft, path)  # unlike a rename, it never overwrites
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)
    keep_names(folder)


def keep_names(folder: str) -> None:
    """A new name lasts only after its folder was flushed as well."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
