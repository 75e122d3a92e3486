"""`[routines.NAME]` and `[queue]`: what happens again and again, and what one at a time."""

from typing import Annotated

from msgspec import Meta, field

from truegreen.contract.doers import Name, Strict
from truegreen.contract.reading import (
    PATH_BYTES,
    Duration,
    checked,
    checked_names,
    minutes,
    refusal,
)
from truegreen.enums import StrEnum

ITERATIONS = Meta(ge=1, le=10_000, description="how often, at most")


class Overlap(StrEnum):
    """What happens to an occurrence while the one before is still under way."""

    SKIP = "skip"
    QUEUE = "queue"
    PARALLEL = "parallel"


class CatchUp(StrEnum):
    """What happens to occurrences that could not start within their grace."""

    NONE = "none"
    LATEST = "latest"


class Repeat(Strict, frozen=True, kw_only=True):
    """A cycle: the next iteration starts when the one before has an outcome."""

    max_iterations: Annotated[int, ITERATIONS]
    stop_after_failures: Annotated[int, ITERATIONS] = 3


class Routine(Strict, frozen=True, kw_only=True):
    """A task template on a schedule or in a cycle."""

    task: Name
    schedule: str = ""
    timezone: str = "UTC"
    repeat: Repeat | None = None
    grace: Duration = field(default_factory=lambda: minutes(15))
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.NONE
    paused: bool = False

    def __post_init__(self) -> None:
        if bool(self.schedule) == (self.repeat is not None):
            raise refusal("schedule", "a routine has either a schedule or a repeat")
        if self.schedule:
            _check_schedule(self.schedule)
        _check_timezone(self.timezone)


class Queue(Strict, frozen=True, kw_only=True):
    """How the queue is carried out."""

    serial_roles: tuple[Name, ...] = ()
    """Tasks of such a role run one at a time, in a lane that is called like the role."""

    def __post_init__(self) -> None:
        checked_names(self.serial_roles, "serial_roles")


def _check_schedule(schedule: str) -> None:
    from truegreen.contract.schedules import expected  # noqa: PLC0415 - only routines need it

    problem = expected(schedule)
    if problem:
        raise refusal("schedule", problem)


_ZONES = "if it is spelled right, install tzdata"


def _check_timezone(name: str) -> None:
    import zoneinfo  # noqa: PLC0415 - only routines need it

    if name == "UTC":
        return  # known everywhere, also without a database of time zones
    try:
        zoneinfo.ZoneInfo(checked(name, "timezone", PATH_BYTES))
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        problem = f'this machine knows no time zone "{name}"{_way(name)}'
        raise refusal("timezone", problem) from None


def _way(name: str) -> str:
    """What to do about a time zone that is not known."""
    import zoneinfo  # noqa: PLC0415 - as above
    from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

    known = zoneinfo.available_timezones()
    if not known:
        return ", nor any other: install tzdata, or write UTC"
    near = get_close_matches(name[:80], sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else f"; {_ZONES}"
