"""What a chart is drawn from: counts put into bins of time, stacked, as shapes of a picture.

Pure; knows no store and no page. The same numbers stand in a table beside every picture.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from truegreen.faces.times import local
from truegreen.model import CELLS, GREEN, Cell, Light, Standing
from truegreen.record.ledger.overview import HOUR, Hour
from truegreen.tuples import NamedTuple

HEIGHT = 120
WIDTH = 720
_GAP = 0.22
_MICRO = 1_000_000
_ROUND = (1, 2, 5)


class Span(NamedTuple):
    """How far a chart looks back, and in how many bins."""

    name: str
    words: str
    hours: int
    per_bin: int

    @property
    def bins(self) -> int:
        """How many bars it has."""
        return self.hours // self.per_bin


SPANS = (
    Span("24h", "24 hours", 24, 1),
    Span("7d", "7 days", 7 * 24, 6),
    Span("30d", "30 days", 30 * 24, 24),
)


_TRUE = frozenset(Standing) - {Standing.FALSIFIED}


class Series(NamedTuple):
    """A layer of the stack: which runs it counts, its word and its colour."""

    name: str
    tone: str
    cells: frozenset[Cell]
    standings: frozenset[Standing] = _TRUE


_BROKEN = frozenset({Cell.FAILED, Cell.OUTAGE, Cell.REPORTED_FAILURE})
_GREY = frozenset(cell for cell, look in CELLS.items() if look.light is Light.GREY)
SERIES = (
    Series("passed", "l-green", GREEN, frozenset({Standing.CHECKED})),
    Series("accepted unchecked", "l-amber faded", GREEN, frozenset({Standing.UNCHECKED})),
    Series("stopped", "l-grey", _GREY),
    Series("needs a look", "l-amber", frozenset(Cell) - GREEN - _GREY - _BROKEN),
    Series("failed", "l-red faded", _BROKEN),
    Series("falsified", "t-needs_review", frozenset(Cell), frozenset({Standing.FALSIFIED})),
    Series("silent failure", "l-red", frozenset({Cell.SILENT_FAILURE})),
)
"""From the bottom up. The last that fits counts a run: silent failures are among no others, and
green that was overturned since is not green in the hour in which it was given either."""


class Block(NamedTuple):
    """One layer of one bar."""

    tone: str
    name: str
    runs: int
    y: float
    height: float


class Bar(NamedTuple):
    """One bin."""

    at: int
    x: float
    width: float
    runs: int
    blocks: tuple[Block, ...]
    counts: tuple[int, ...]


class Chart(NamedTuple):
    """A stack of counts over time, ready to be drawn."""

    span: Span
    bars: tuple[Bar, ...]
    top: int
    """The number at the upper edge."""
    totals: tuple[int, ...]

    @property
    def runs(self) -> int:
        """Everything in it."""
        return sum(self.totals)

    @property
    def top_runs(self) -> int:
        """The highest bar."""
        return max(bar.runs for bar in self.bars)

    @property
    def json(self) -> str:
        """The same for the script that draws it with axes."""
        layers = [
            {"name": each.name, "tone": each.tone, "runs": [bar.counts[i] for bar in self.bars]}
            for i, each in enumerate(SERIES)
        ]
        starts = [bar.at // _MICRO for bar in self.bars]
        told = {
            "at": starts,
            "labels": [_label(bar.at, self.span) for bar in self.bars],
            "words": [local(bar.at) for bar in self.bars],
            "seconds": self.span.per_bin * HOUR // _MICRO,
            "layers": layers,
        }
        return msgspec.json.encode(told).decode()


def _label(at: int, span: Span) -> str:
    """What an axis says of a bar, in the zone that all instants of a page are in."""
    here = time.localtime(at // _MICRO)
    return time.strftime("%H:%M" if span.per_bin == 1 else f"{here.tm_mday} %b", here)


def fitting(hours: Iterable[Hour], now: int, asked: str = "") -> Span:
    """The span that was asked for, or the shortest that shows everything of the last week."""
    named = [span for span in SPANS if span.name == asked]
    oldest = min((hour.at for hour in hours), default=now)
    day, week = SPANS[:2]
    return named[0] if named else day if now - oldest < (day.hours - 1) * HOUR else week


def stacked(hours: Iterable[Hour], span: Span, now: int) -> Chart:
    """How runs ended, bin by bin; the last bin is the one that it is now."""
    size = span.per_bin * HOUR
    end = (now // size + 1) * size
    start = end - span.bins * size
    counts = [[0] * len(SERIES) for _ in range(span.bins)]
    for hour in hours:
        if start <= hour.at < end:
            counts[(hour.at - start) // size][_layer(hour)] += hour.runs
    top = rounded_up(max((sum(each) for each in counts), default=0))
    bars = tuple(_bar(start + i * size, i, each, top, span) for i, each in enumerate(counts))
    return Chart(span, bars, top, tuple(map(sum, zip(*counts, strict=True))))


def _layer(hour: Hour) -> int:
    return max(
        i
        for i, series in enumerate(SERIES)
        if hour.cell in series.cells and hour.standing in series.standings
    )


def _bar(at: int, number: int, counts: list[int], top: int, span: Span) -> Bar:
    step = WIDTH / span.bins
    y, blocks = float(HEIGHT), []
    for series, runs in zip(SERIES, counts, strict=True):
        height = HEIGHT * runs / top
        y -= height
        if runs:
            blocks.append(Block(series.tone, series.name, runs, round(y, 2), round(height, 2)))
    x, width = round(number * step + step * _GAP / 2, 2), round(step * (1 - _GAP), 2)
    return Bar(at, x, width, sum(counts), tuple(blocks), tuple(counts))


def rounded_up(number: int) -> int:
    """The next number that an axis may end with: 1, 2, 5, 10, 20 and so on."""
    size = 1
    while True:
        for first in _ROUND:
            if number <= first * size:
                return first * size
        size *= 10
