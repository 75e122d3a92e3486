"""Plots as SVG, written by hand: bars and curves on logarithmic axes, readable by day and by night.

Everything is placed by counting characters, so nothing overlaps whatever the font.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from benchmarks.measure import Spread

WIDTH = 760
LETTER = 7.0
"""How wide a letter of 13 px is at most, on average."""
STYLE = """
text { font: 13px system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif; fill: #24292f; }
.small { font-size: 12px; fill: #57606a; }
.title { font-weight: 600; font-size: 15px; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.spread { stroke: #24292f; stroke-width: 1.5; }
.value { stroke: #ffffff; stroke-width: 4; paint-order: stroke; }
.ours { fill: #1a7f4b; }
.theirs { fill: #9aa4b0; }
.c0 { stroke: #1a7f4b; fill: #1a7f4b; } .c1 { stroke: #b35900; fill: #b35900; }
.c2 { stroke: #2563c9; fill: #2563c9; } .c3 { stroke: #8a3ffc; fill: #8a3ffc; }
.line { fill: none; stroke-width: 2; }
.mark { stroke: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9da7b3; }
  .grid { stroke: #30363d; }
  .spread { stroke: #e6edf3; } .value { stroke: #0d1117; }
  .ours { fill: #3fb950; } .theirs { fill: #6e7985; }
  .c0 { stroke: #3fb950; fill: #3fb950; } .c1 { stroke: #f0883e; fill: #f0883e; }
  .c2 { stroke: #6cb0ff; fill: #6cb0ff; } .c3 { stroke: #c297ff; fill: #c297ff; }
  .line { fill: none; } .mark { stroke: none; }
}
"""  # noqa: E501 - a style sheet
COLOURS = 4
ROOMY = 300
"""An axis that goes so far needs no ticks between its decades."""


class Bar(NamedTuple):
    """One system."""

    name: str
    spread: Spread
    ours: bool


class Curve(NamedTuple):
    """One series: at each x the median and how far the samples lie apart."""

    name: str
    points: list[tuple[float, Spread]]


class Axis(NamedTuple):
    """A logarithmic axis from one edge to the other."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of a value."""
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Decades; with steps between them where there are few."""
        low, high = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1,) if self.high / self.low > ROOMY else (1, 2, 5)
        values = [step * 10.0**power for power in range(low, high + 1) for step in steps]
        near = 1 + 1e-9
        return [v for v in values if self.low / near <= v <= self.high * near]


def axis(values: Iterable[float], start: float, end: float) -> Axis:
    """From a round number below all values to a round number above them."""
    values = list(values)
    low, high = _round_down(min(values)), _round_up(max(values))
    return Axis(low, high if high > low else low * 10, start, end)


def _round_down(value: float) -> float:
    decade = 10.0 ** math.floor(math.log10(value))
    return max(step * decade for step in (1, 2, 5) if step * decade <= value * (1 + 1e-9))


def _round_up(value: float) -> float:
    decade = 10.0 ** math.floor(math.log10(value))
    return min(step * decade for step in (1, 2, 5, 10) if step * decade >= value * (1 - 1e-9))


def amount(value: float) -> str:
    """A short number: 1.5 k, 20 M."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def bars(title: str, unit: str, rows: Sequence[Bar]) -> str:
    """A bar for each system, the longest on top, with its number at its end."""
    rows = sorted(rows, key=lambda row: -row.spread.middle)
    left = 20 + LETTER * max(len(row.name) for row in rows)
    top, step = 44.0, 30
    bottom = top + step * len(rows)
    values = [v for row in rows for v in (row.spread.low, row.spread.high)]
    scale = axis([10.0 ** math.floor(math.log10(min(values) * 0.9)), *values], left, WIDTH - 90)
    out = [_text(16, 24, title, "title")]
    for tick in scale.ticks():
        x = scale.at(tick)
        out += [_line(x, top - 6, x, bottom, "grid"), _middle(x, bottom + 18, amount(tick))]
    for n, row in enumerate(rows):
        y = top + step * n
        low, middle, high = (scale.at(row.spread[k]) for k in (1, 0, 2))
        kind, wide = "ours" if row.ours else "theirs", middle - left
        box = f'x="{left:.1f}" y="{y + 3:.1f}" width="{wide:.1f}" height="{step - 10}" rx="2"'
        out += [
            _text(left - 8, y + 17, row.name, anchor="end"),
            f'<rect class="{kind}" {box}/>',
            _line(low, y + 13, high, y + 13, "spread"),
            _text(max(middle, high) + 8, y + 17, amount(row.spread.middle), "value"),
        ]
    out.append(_middle((left + WIDTH - 90) / 2, bottom + 40, f"{unit} (logarithmic)"))
    return _picture(bottom + 52, title, out)


def curves(title: str, across: str, up: str, series: Sequence[Curve]) -> str:
    """Lines with marks on two logarithmic axes; names above them."""
    left, right, height = 84.0, WIDTH - 30.0, 250.0
    out = [_text(16, 24, title, "title")]
    x, y = left, 52.0
    for n, curve in enumerate(series):
        wide = 34 + LETTER * len(curve.name)
        if x > left and x + wide > right:
            x, y = left, y + 22
        out += [_mark(n, x + 6, y - 4), _text(x + 18, y, curve.name)]
        x += wide
    top = y + 22
    bottom = top + height
    points = [(at, spread) for curve in series for at, spread in curve.points]
    places = sorted({at for at, _ in points})
    flat = Axis(places[0], places[-1], left + 20, right - 20)
    tall = axis((v for _, s in points for v in (s.low, s.high)), bottom, top)
    for tick in places:
        at = flat.at(tick)
        out += [_line(at, top, at, bottom, "grid"), _middle(at, bottom + 18, amount(tick))]
    for tick in tall.ticks():
        at = tall.at(tick)
        out += [
            _line(left, at, right, at, "grid"),
            _text(left - 8, at + 4, amount(tick), "small", "end"),
        ]
    for n, curve in enumerate(series):
        out += _drawn(n, curve, flat, tall)
    out.append(_middle((left + right) / 2, bottom + 40, across))
    middle = (top + bottom) / 2
    out.append(
        f'<text class="small" text-anchor="middle" '
        f'transform="translate(20 {middle:.1f}) rotate(-90)">{escape(up)}</text>'
    )
    return _picture(bottom + 52, title, out)


def _drawn(n: int, curve: Curve, flat: Axis, tall: Axis) -> list[str]:
    places = [(flat.at(x), spread) for x, spread in curve.points]
    path = " ".join(f"{x:.1f},{tall.at(spread.middle):.1f}" for x, spread in places)
    out = [f'<polyline class="c{n % COLOURS} line" points="{path}"/>']
    for x, spread in places:
        out += [
            _line(x, tall.at(spread.low), x, tall.at(spread.high), f"c{n % COLOURS}"),
            _mark(n, x, tall.at(spread.middle)),
        ]
    return out


def _mark(n: int, x: float, y: float) -> str:
    """A shape for each series, for those who don't tell colours apart."""
    kind = f'class="c{n % COLOURS} mark"'
    shapes = (
        f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>',
        f'<rect {kind} x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>',
        f'<path {kind} d="M{x:.1f} {y - 5.5:.1f}l5.5 9.5h-11z"/>',
        f'<path {kind} d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6-6z"/>',
    )
    return shapes[n % COLOURS]


def _line(x: float, y: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    extra = f' class="{kind}"' if kind else ""
    return f'<text{extra} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _middle(x: float, y: float, text: str) -> str:
    return _text(x, y, text, "small", "middle")


def _picture(height: float, title: str, body: Iterable[str]) -> str:
    """With a title for those who can't see it, and no background of its own."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img">'
    )
    body = (f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", *body)
    return "\n".join((head, *body, "</svg>", ""))
