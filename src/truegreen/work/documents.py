"""Files and JSON that somebody else wrote, read without trusting a word of it.

What is no regular file, leads out of its folder, is too large or can be read in two ways gives a
reason instead of a value. This room knows neither claims nor gates.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, NoReturn

from msgspec import Struct

from truegreen.paths import is_inside

DEPTH = 100
inside = is_inside


class Trouble(Struct, frozen=True, kw_only=True):
    """Why a file could not be read; `absent` where there is none, `ours` where we gave up."""

    reason: str
    absent: bool = False
    ours: bool = False


class Document(Struct, frozen=True, kw_only=True):
    """The bytes of a regular file, and when it was written."""

    data: bytes
    written_ns: int


class NotJson(ValueError):
    """The text is no JSON, or JSON that two readers could read in two ways."""


def read_regular(path: str, *, within: str, limit: int) -> Document | Trouble:
    """A regular file's bytes; links are not followed and pipes not waited for."""
    if not inside(os.path.dirname(path) or ".", within):
        return Trouble(reason=f"lies outside {within}")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        handle = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        return Trouble(reason="is missing", absent=True)
    except OSError as error:
        known = {errno.ELOOP: "is a link", errno.ENXIO: "is no regular file"}.get(error.errno or 0)
        return Trouble(reason=known or f"can't be read ({error.strerror})", ours=not known)
    try:
        return _read(handle, limit)
    except OSError as error:
        return Trouble(reason=f"can't be read ({error.strerror})", ours=True)
    finally:
        os.close(handle)


def _read(handle: int, limit: int) -> Document | Trouble:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        return Trouble(reason="is no regular file")
    data = bytearray()
    while len(data) <= limit and (part := os.read(handle, min(limit + 1, 1 << 20))):
        data += part
    if len(data) > limit or status.st_size > limit:
        size = max(status.st_size, len(data))
        return Trouble(reason=f"is too large ({size} bytes; the limit is {limit})", ours=True)
    return Document(data=bytes(data), written_ns=status.st_mtime_ns)


def read_document(data: bytes) -> Any:
    """The value of a JSON text: UTF-8, no key twice, no NaN, not nested without end."""
    import json  # noqa: PLC0415 - only claim files and one gate kind need it; start-up is measured

    try:
        text = data.decode("utf-8-sig")
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
        # Says which strings can't be written back, and which numbers no float can hold.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8 text (byte {error.start})") from None
    except UnicodeEncodeError:
        raise NotJson("not valid Unicode (a lone surrogate)") from None
    except RecursionError:
        raise NotJson("nested too deep") from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    if _deeper_than(value, DEPTH):
        raise NotJson("nested too deep")
    return value


def _deeper_than(value: Any, depth: int) -> bool:
    """Whoever reads it later may have less room on the stack than we have."""
    level = [value]
    for _ in range(depth):
        lists = (part if isinstance(part, list) else list(part.values()) for part in level
                 if isinstance(part, list | dict))  # fmt: skip
        level = [inner for part in lists for inner in part]
    return bool(level)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise NotJson(f"the key {key[:80]!r} is there twice")
        found[key] = value
    return found


def _no_constant(word: str) -> NoReturn:
    raise NotJson(f"{word} is no JSON number")
