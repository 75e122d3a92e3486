"""The nights of the demo: a routine that was played every night of a week, and failed in one.

A literal table. Its runs are as real as the other scenes' and are played at the same time; only the
clock of the demo's own store is set back meanwhile, so that they are dated where they belong.
"""

from __future__ import annotations

import time

from truegreen.tuples import NamedTuple

_DAY = 86_400
_BEGIN = 2 * 3600 + 7 * 60
"""Nights begin seven minutes past two, in the local time zone."""


class Night(NamedTuple):
    """A scene that is played in one of the last nights, under another title."""

    ago: int
    scene: str
    routine: str

    @property
    def name(self) -> str:
        """What tells its workspace from others of the same scene."""
        return f"{self.scene}-{self.ago}"

    def begins(self, now: float) -> float:
        """When that night was; seconds since the epoch."""
        year, month, day, *_ = time.localtime(now - self.ago * _DAY)
        midnight = time.mktime((year, month, day, 0, 0, 0, 0, 0, -1))
        return midnight + _BEGIN

    def title(self, now: float) -> str:
        """The routine, and which night it was."""
        return f"{self.routine}, night of {time.strftime('%a %d %b', self._day(now))}"

    def _day(self, now: float) -> time.struct_time:
        return time.localtime(self.begins(now))


_NUMERALS, _ORDERS, _HAIKU = "nightly numerals", "nightly order totals", "nightly haiku"

NIGHTS: tuple[Night, ...] = (
    Night(7, "honest", _NUMERALS),
    Night(6, "honest", _NUMERALS),
    Night(6, "unclaimed-good", _HAIKU),
    Night(5, "honest", _NUMERALS),
    Night(4, "honest", _NUMERALS),
    Night(3, "fabricated-tests", _ORDERS),
    Night(2, "honest", _NUMERALS),
    Night(2, "turn-cap", "nightly shapes"),
    Night(1, "honest", _NUMERALS),
)
"""The oldest first: a history goes forward."""
