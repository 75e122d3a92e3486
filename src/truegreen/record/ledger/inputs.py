"""What comes in is checked here before a verb looks at it: types, ranges, sizes, JSON."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from truegreen.contract import checked
from truegreen.errors import InvalidInput

T = TypeVar("T")

REASON_LIMIT = 4096
LONGEST_LEASE = 366 * 86400.0
EXTRA_LIMIT = 65536
WORD_LIMIT = 200


def to_json(value: object) -> str:
    """Compact JSON as it stands in the store."""
    return msgspec.json.encode(value).decode()


def typed(value: T, kind: Any = None) -> T:
    """The value itself, if its fields are what their types say and a store can keep them."""
    try:
        plain = msgspec.to_builtins(value)
        msgspec.convert(plain, kind or type(value))
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InvalidInput(f"{type(value).__name__.lower()}: {error}") from None
    for name, field in (plain if isinstance(plain, dict) else {"number": plain}).items():
        if isinstance(field, int) and not -(1 << 62) < field < 1 << 62:
            raise InvalidInput(f"{name}: {field} is out of range")
    return value


def printable(name: object, what: str = "name") -> str:
    """A name that shows itself whole wherever it is printed, and nothing else around it."""
    text = checked(name, what, WORD_LIMIT)
    if not text.isprintable():
        raise InvalidInput(f"{what}: contains what can't be printed", path=what)
    return text


def told_name(name: str) -> str:
    """The same for a name that a stream tells: a run must not end because of it."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)
    return checked(shown, "name", WORD_LIMIT)


def as_json(value: object, what: str, limit: int = EXTRA_LIMIT) -> str:
    """JSON as it stands in the store, if it can be written and is no longer than this."""
    try:
        return checked(to_json(value), what, limit)
    except (UnicodeEncodeError, TypeError, ValueError) as error:
        raise InvalidInput(f"{what}: can't be kept as JSON ({error})") from None


def microseconds(seconds: float) -> int:
    """How long a lease is; a negative one has run out before it began."""
    if not abs(typed(seconds, float)) <= LONGEST_LEASE:
        raise InvalidInput(f"a lease lasts at most {LONGEST_LEASE:.0f} s, not {seconds}")
    return int(seconds * 1e6)
