"""Numbers that mean something on a noisy machine: samples, spreads, ratios within one run, goals.

It knows no store and no suite.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple


class Scale(Enum):
    """How long to measure: for the record, for a look, or only that it runs."""

    FULL = "full"
    QUICK = "quick"
    TINY = "tiny"

    def pick(self, full: int, quick: int, tiny: int) -> int:
        """The size for this scale."""
        return {Scale.FULL: full, Scale.QUICK: quick, Scale.TINY: tiny}[self]

    @property
    def repetitions(self) -> int:
        """How often each thing is measured, in turn with the others."""
        return self.pick(9, 5, 1)


class Spread(NamedTuple):
    """The median of some samples, and how far they lie apart."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Of one sample or more."""
        return cls(statistics.median(samples), min(samples), max(samples))


class Goal(NamedTuple):
    """A bound that the median value, the median ratio, or every single value must keep."""

    sign: str
    bound: float
    on_ratio: bool = False
    always: bool = False

    def met_by(self, spread: Spread) -> bool:
        """Whether the bound is kept."""
        if self.sign == "≤":
            return (spread.high if self.always else spread.middle) <= self.bound
        return (spread.low if self.always else spread.middle) >= self.bound


def at_most(bound: float) -> Goal:
    """The value is no higher than this."""
    return Goal("≤", bound)


def never_above(bound: float) -> Goal:
    """No repetition is higher than this."""
    return Goal("≤", bound, always=True)


def ratio_at_most(bound: float) -> Goal:
    """The value is no more than so many times what stands beside it."""
    return Goal("≤", bound, on_ratio=True)


def ratio_at_least(bound: float) -> Goal:
    """The value is no less than so many times what stands beside it."""
    return Goal("≥", bound, on_ratio=True)


class At(NamedTuple):
    """Where a figure lies in a plot: on which curve, and how far along the axis."""

    plot: str
    curve: str
    axis: str
    x: float


class Figure(NamedTuple):
    """One line of a report: samples, those of the thing beside it, the goals, and what to know."""

    what: str
    samples: Sequence[float]
    unit: str
    goals: tuple[Goal, ...] = ()
    beside: Sequence[float] = ()
    beside_what: str = ""
    note: str = ""
    at: At | None = None

    @property
    def value(self) -> Spread | None:
        """Our number."""
        return Spread.of(self.samples) if self.samples else None

    @property
    def ratio(self) -> Spread | None:
        """Ours over the other, repetition by repetition."""
        if not self.samples or not self.beside:
            return None
        pairs = zip(self.samples, self.beside, strict=True)
        return Spread.of([ours / other for ours, other in pairs])

    def kept(self, goal: Goal) -> bool | None:
        """Whether a goal is met; None when nothing was measured."""
        spread = self.ratio if goal.on_ratio else self.value
        return goal.met_by(spread) if spread else None


def unmeasured(what: str, why: str) -> Figure:
    """A line that says why it has no number."""
    return Figure(what, (), "", note=why)


def seconds(action: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def rate(action: Callable[[], object], times: int) -> float:
    """How often it can be done in a second."""
    start = time.perf_counter()
    for _ in range(times):
        action()
    return times / (time.perf_counter() - start)


def interleaved(
    repetitions: int, actions: Mapping[str, Callable[[], float]]
) -> dict[str, list[float]]:
    """Measure each in turn, again and again; every second time in the other order."""
    samples: dict[str, list[float]] = {name: [] for name in actions}
    names = list(actions)
    for repetition in range(repetitions):
        for name in names if repetition % 2 == 0 else reversed(names):
            samples[name].append(actions[name]())
    return samples


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """How y grows with x: the slope of the line through the logarithms; 1 is linear, 0 is flat."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that so many percent do not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
