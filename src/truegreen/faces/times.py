"""Instants and spans, as JSON carries them and as people read them; always with a zone.

No datetime: the standard library's `time` is loaded anyway, and start-up is measured.
"""

from __future__ import annotations

import time

_MICRO = 1_000_000
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def instant(at: int | None) -> str | None:
    """RFC 3339 in UTC, to the microsecond."""
    if at is None:
        return None
    seconds, micro = divmod(at, _MICRO)
    return time.strftime(f"%Y-%m-%dT%H:%M:%S.{micro:06d}Z", time.gmtime(seconds))


def local(at: int | None) -> str:
    """In the zone of whoever looks, with its offset."""
    if at is None:
        return ""
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(at // _MICRO))


def local_minute(given: str | None) -> str:
    """The minute of an instant as JSON has it, in the zone of whoever looks, with its offset."""
    if not given:
        return "-"
    from calendar import timegm  # noqa: PLC0415 - few pages are drawn from a document

    at = timegm(time.strptime(given[:19], "%Y-%m-%dT%H:%M:%S"))
    return time.strftime("%Y-%m-%d %H:%M %z", time.localtime(at))


def span(seconds: float) -> str:
    """`4m12s`, in the two largest units."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    for size, unit, below, name in ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "m")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size}{unit}{rest}{name}"
    return f"{whole // _MINUTE}m{whole % _MINUTE}s"
