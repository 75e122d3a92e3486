"""When something is due: cron fields in a time zone become instants. Pure: no clock is read here.

Five fields, as cron has them. On the day when clocks go forward, what falls into the gap is due
once, at its end; on the day when they go back it is due once, the first time. What runs by the hour
or by the minute goes by the time that really passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING

from truegreen.patterns import late
from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    from cronsim import CronSim

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = late(r"[\w*/,#-]+( [\w*/,#-]+){4}")
_LONGEST = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_SEARCHED = 512
"""So many of the newest are looked at one by one; of older ones only how many there were."""


class Span(NamedTuple):
    """What was due in a stretch of time: how many, the first, the one before the newest, it."""

    number: int
    first: int
    before: int | None
    newest: int
    exact: bool = True
    """Whether all were counted; else there were at least so many."""


def expected(schedule: str) -> str:
    """What is wrong with a schedule; empty when nothing is."""
    if schedule.startswith("@"):
        known = ", ".join(ALIASES)
        return "" if schedule in ALIASES else f"expected one of {known}, or five cron fields"
    if len(schedule) > _LONGEST or not _FIELDS.fullmatch(schedule):
        return 'expected five cron fields such as "0 2 * * *", or @daily'
    from cronsim import CronSimError  # noqa: PLC0415 - only routines need it

    try:
        next(_counted(schedule, _EPOCH))
    except CronSimError as error:
        return f'{str(error).lower()}; expected five cron fields such as "0 2 * * *"'
    except StopIteration:
        return "never comes"
    return ""


def after(schedule: str, timezone: str, instant: int) -> int | None:
    """The first instant at which it is due after another one; microseconds UTC."""
    return next(_from(schedule, timezone, instant), None)


def _from(schedule: str, timezone: str, instant: int) -> Iterator[int]:
    """All instants after one, in order."""
    start = _EPOCH + timedelta(microseconds=instant)
    try:
        # In an hour that comes twice the fields are looked for from its first time on.
        for found in _counted(schedule, start.astimezone(_zone(timezone))):
            at = (found.astimezone(UTC) - _EPOCH) // _MICRO
            if at > instant:
                yield at
    except OverflowError:
        return


def due(schedule: str, timezone: str, first: int, now: int) -> Span | None:
    """What is due from one instant, which is, up to now; a long sleep costs no long search."""
    if first > now:
        return None
    count, before, newest = 1, None, first
    for at in _from(schedule, timezone, first):
        if at > now:
            return Span(count, first, before, newest)
        if count == _SEARCHED:
            break
        count, before, newest = count + 1, newest, at
    else:
        return Span(count, first, before, newest)
    return _long(schedule, timezone, first, now, count)


def _long(schedule: str, timezone: str, first: int, now: int, count: int) -> Span:
    """The newest two of more than can be looked at, found by going back in growing steps."""
    step = 60_000_000
    while True:
        late = list(_until(schedule, timezone, max(first, now - step), now))
        if len(late) > 1 or now - step <= first:
            return Span(count, first, late[-2], late[-1], exact=False)
        step *= 4


def _until(schedule: str, timezone: str, instant: int, now: int) -> Iterator[int]:
    for at in _from(schedule, timezone, instant):
        if at > now:
            return
        yield at


def _counted(schedule: str, start: datetime) -> CronSim:
    from cronsim import CronSim  # noqa: PLC0415 - only routines need it

    return CronSim(ALIASES.get(schedule, schedule), start)


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - only routines need it

    return UTC if name == "UTC" else ZoneInfo(name)  # cronsim knows UTC by identity
