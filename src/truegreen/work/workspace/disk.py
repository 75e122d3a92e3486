"""Small files, read within bounds and written whole.

What an agent could have made is opened without following a link, without waiting for a pipe, and
read only if it is a regular file. What we write is on disk and complete before it has its name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from truegreen import errors

READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
UNFINISHED = "tmp_truegreen_"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def read_bounded(path: str | bytes, limit: int, *, within: int | None = None) -> bytes | None:
    """A regular file's bytes; None if there is none, if it can't be read, or if it is too big."""
    try:
        file = os.open(path, READING, dir_fd=within)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        with open(file, "rb", closefd=False) as opened:
            data = opened.read(limit + 1)
    except OSError:
        return None
    finally:
        os.close(file)
    return data if len(data) <= limit else None


def put(path: str, data: bytes) -> None:
    """Write a file of ours so that it is there whole, and stays there after a power cut."""
    folder = os.path.dirname(path)
    os.replace(draft(folder, data), path)
    sync_folder(folder)


def draft(folder: str, data: bytes) -> str:
    """Write a file that is on disk but has no name yet that anybody reads."""
    path = draft_path(folder)
    try:
        with open(path, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        raise
    return path


def draft_path(folder: str) -> str:
    """A name that nobody else takes."""
    return os.path.join(folder, f"{UNFINISHED}{os.getpid()}_{os.urandom(6).hex()}")


def sync_folder(folder: str) -> None:
    """Make the names in a folder last."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def room(what: str) -> Iterator[None]:
    """Turn a full disk and a read-only one into errors that say what could not be written."""
    try:
        yield
    except OSError as error:
        raise unwritable(what, error) from error


def unwritable(what: str, error: OSError) -> errors.TruegreenError:
    """The error for something of ours that can't be written."""
    if error.errno in _FULL:
        return errors.DiskFull(f"no room left for {what}: {error.strerror}")
    place = f" ({error.filename})" if error.filename else ""
    way = "; XDG_STATE_HOME can name another folder" if error.errno in _FORBIDDEN else ""
    return errors.Unavailable(f"{what} can't be written: {error.strerror}{place}{way}")
