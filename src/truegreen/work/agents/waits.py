"""When a rate limit resets, as the messages of providers and clients say it. Pure."""

from __future__ import annotations

import re
import time

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AGAIN = r"(?:try again|retry(?:[- ]after)?|resets?|wait)"
_IN = rf"{_AGAIN}\s*(?:in|:|for|after)?\s+(?=\d)"
_RETRY_AFTER = r"retry-after\W{1,3}(\d{1,7})(?![\d\s]*[a-z])"
_AMOUNT = (
    r"\s*(?:,|and)?\s*(\d{1,9}(?:\.\d{1,9})?)\s*"
    r"(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
)
_EPOCH = r"(?:\||resets?_?at\W{1,3}|reset\W{1,3})(1\d{9})(?:\d{3})?\b"
_ON_DAY = (
    rf"{_AGAIN}(?: at| on)?\s+([A-Z][a-z]{{2}})[a-z]*\.? (\d{{1,2}})(?:st|nd|rd|th)?,? "
    r"(?:(\d{4}),? )?(?:at )?(\d{1,2})(?::(\d{2}))?\s*([AP]M)\b"
)
_AT_HOUR = rf"{_AGAIN}(?: at)?\s+(\d{{1,2}})(?::(\d{{2}}))?\s*([ap]m)\b"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = 86400.0
_LONGEST = 35 * _DAY
_NOON = 12
_WINDOW = 16 * 1024


def wait_in(text: str, now: float) -> float:
    """Seconds until a rate limit resets; 0 where the text does not say."""
    text = text[:_WINDOW]
    seconds = _after(text) or _at_epoch(text, now) or _on_day(text, now) or _at_hour(text, now)
    return min(max(seconds, 0.0), _LONGEST)


def _search(words: str, text: str) -> re.Match[str] | None:
    return re.search(words, text, re.IGNORECASE)


def _after(text: str) -> float:
    """«try again in 1h 5m»."""
    if bare := _search(_RETRY_AFTER, text):
        return float(bare[1])
    start = _search(_IN, text)
    if not start:
        return 0.0
    total, amounts = 0.0, re.compile(_AMOUNT, re.IGNORECASE)
    place = start.end()
    while amount := amounts.match(text, place):
        unit = amount[2].lower()
        total += float(amount[1]) * _UNITS["ms" if unit.startswith(("ms", "mil")) else unit[0]]
        place = amount.end()
    return total


def _at_epoch(text: str, now: float) -> float:
    """«limit reached|1794771729»."""
    found = _search(_EPOCH, text)
    return float(found[1]) - now if found else 0.0


def _on_day(text: str, now: float) -> float:
    """«try again at Jan 15th, 2027 8:00 AM», by the clock of this machine."""
    found = _search(_ON_DAY, text)
    if not found or found[1].lower() not in _MONTHS:
        return 0.0
    year = int(found[3]) if found[3] else time.localtime(now).tm_year
    month = _MONTHS.index(found[1].lower()) + 1
    return _until(now, year, month, int(found[2]), _hour(found[4], found[6]), int(found[5] or 0))


def _at_hour(text: str, now: float) -> float:
    """«resets 3pm»: the next time that the clock of this machine shows it."""
    found = _search(_AT_HOUR, text)
    if not found:
        return 0.0
    year, month, day = time.localtime(now)[:3]
    seconds = _until(now, year, month, day, _hour(found[1], found[3]), int(found[2] or 0))
    return seconds if seconds > 0 else seconds + _DAY


def _hour(hour: str, half: str) -> int:
    return int(hour) % _NOON + (_NOON if half.lower() == "pm" else 0)


def _until(now: float, year: int, month: int, day: int, hour: int, minute: int) -> float:
    try:
        return time.mktime((year, month, day, hour, minute, 0, 0, 0, -1)) - now
    except (OverflowError, ValueError):
        return 0.0
