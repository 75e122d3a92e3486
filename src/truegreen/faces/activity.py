"""Whether an agent at work does anything: active, slow or stuck. Beside its status, never in it.

Pure: it gets a live run and the time. A sign is output or computing, as the supervisor saw it; what
an agent says about itself is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truegreen.enums import StrEnum
from truegreen.faces.times import instant, span
from truegreen.model import RunStatus
from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    from truegreen.faces.axes import Look
    from truegreen.record.ledger.overview import LiveRun

SLOW_SECONDS = 120.0
STUCK_SECONDS = 600.0
_OF_THE_CAP = 2
"""Half-way to the idle cap somebody should know, and half-way to that it is slow."""


class Pace(StrEnum):
    """What is seen of an agent at work."""

    ACTIVE = "active"
    SLOW = "slow"
    STUCK = "stuck"
    WAITING = "waiting"
    SUSPECT = "suspect"
    UNKNOWN = "unknown"


class Activity(NamedTuple):
    """The pace of a live run, for how long it showed no sign, and when it showed the last."""

    pace: Pace
    idle_seconds: float | None
    active_at: int | None

    @property
    def words(self) -> str:
        """`stuck, no sign for 8m10s`; of a suspect, for how long its supervisor was silent."""
        if self.pace is Pace.SUSPECT and self.idle_seconds is not None:
            return f"{self.pace}, its lease ran out {span(self.idle_seconds)} ago"
        if self.pace in (Pace.SLOW, Pace.STUCK) and self.idle_seconds is not None:
            return f"{self.pace}, no sign for {span(self.idle_seconds)}"
        return MEANINGS[self.pace]


MEANINGS = {
    Pace.ACTIVE: "active",
    Pace.SLOW: "slow",
    Pace.STUCK: "stuck",
    Pace.WAITING: "waits for an approval",
    Pace.SUSPECT: "suspect, its lease ran out",
    Pace.UNKNOWN: "no sign seen yet",
}


def thresholds(idle_cap_seconds: float | None) -> tuple[float, float]:
    """After how many seconds without a sign a run is slow, and stuck, under its idle cap."""
    stuck = STUCK_SECONDS
    if idle_cap_seconds:
        stuck = min(stuck, idle_cap_seconds / _OF_THE_CAP)
    return min(SLOW_SECONDS, stuck / _OF_THE_CAP), stuck


def activity_of(live: LiveRun, now: int | None = None) -> Activity:
    """What is seen of a live run at an instant; without one, when the record was read."""
    at = live.looked_at if now is None else now
    if live.suspect_since is not None:
        return Activity(Pace.SUSPECT, max(0, at - live.suspect_since) / 1e6, live.active_at)
    if live.run.status is RunStatus.PAUSED:
        return Activity(Pace.WAITING, None, live.active_at)
    if live.active_at is None:
        return Activity(Pace.UNKNOWN, None, None)
    idle = max(0, at - live.active_at) / 1e6
    slow, stuck = thresholds(live.idle_cap / 1e6 if live.idle_cap else None)
    pace = Pace.STUCK if idle >= stuck else Pace.SLOW if idle >= slow else Pace.ACTIVE
    return Activity(pace, idle, live.active_at)


def activity_look(pace: Pace) -> Look:
    """Glyph, word and colour of a pace; none of them is green: being busy is no result."""
    from truegreen.faces.axes import LIGHTS, Look  # noqa: PLC0415 - a list in JSON needs no looks
    from truegreen.model import Light  # noqa: PLC0415 - as above

    light = {Pace.ACTIVE: Light.BLUE, Pace.SLOW: Light.AMBER, Pace.STUCK: Light.RED}
    light[Pace.SUSPECT] = Light.RED
    glyphs = {
        Pace.ACTIVE: "▶",
        Pace.SLOW: "▷",
        Pace.STUCK: "■",
        Pace.WAITING: "⏸",
        Pace.SUSPECT: "?",
    }
    return Look(glyphs.get(pace, "·"), pace, LIGHTS[light.get(pace, Light.GREY)][1])


def activity_document(live: LiveRun, now: int | None = None) -> dict[str, Any]:
    """What is seen of a live run, for programs; it stays the same until something is seen."""
    seen = activity_of(live, now)
    return {
        "pace": seen.pace,
        "run": live.run.id,
        "active_at": instant(seen.active_at),
    }
