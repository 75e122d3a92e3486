"""A report of one run: what was measured on which machine, beside its goals, met or missed."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import apsw

from benchmarks.bench import Bench
from benchmarks.measure import Figure, Spread

HEADINGS = ("what", "median (min to max)", "beside it", "ratio (min to max)", "goal", "")


class Part(NamedTuple):
    """What one suite found."""

    name: str
    about: str
    figures: list[Figure]
    seconds: float


def machine(bench: Bench, words: Sequence[str]) -> dict[str, str]:
    """What the numbers depend on, and the command that made them."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return {
        "command": shlex.join(["python", "-m", "benchmarks", *words]),
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "load average": f"{load} (at the end)",
        "Python": platform.python_version(),
        "SQLite": f"{apsw.sqlite_lib_version()}, synchronous FULL, WAL",
        "PostgreSQL": _server(bench),
        "stores": "; ".join(place.name for place in bench.sqlite + vars(bench).get("server", [])),
        "scale": bench.scale.value,
    }


def _server(bench: Bench) -> str:
    """Version and settings of PostgreSQL, if a suite asked for one."""
    if "postgres" not in vars(bench) or bench.postgres is None:
        return "not measured"
    import psycopg  # noqa: PLC0415 - an extra

    names = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers")
    with psycopg.connect(bench.postgres.url("postgres")) as connection:
        rows = [connection.execute(f"SHOW {name}".encode()).fetchone() for name in names]
    values = [str(row[0]) if row else "" for row in rows]
    settings = (f"{name} {value}" for name, value in zip(names, values, strict=True))
    return ", ".join(settings).removeprefix("server_version ")


def number(value: float) -> str:
    """Three digits that matter, or all of a great number."""
    if value == int(value) and abs(value) < 1e15:  # noqa: PLR2004 - exact as an integer
        return f"{int(value):,}"
    if abs(value) >= 100:  # noqa: PLR2004 - three digits before the point
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _spread(spread: Spread | None, unit: str = "") -> str:
    if spread is None:
        return ""
    shown = f"{number(spread.middle)} {unit}".rstrip()
    if spread.low == spread.high:
        return shown
    return f"{shown} ({number(spread.low)} to {number(spread.high)})"


def _goals(figure: Figure) -> tuple[str, str]:
    said, verdicts = [], []
    for goal in figure.goals:
        unit = "x" if goal.on_ratio else f" {figure.unit}".rstrip()
        always = "always " if goal.always else ""
        said.append(f"{always}{goal.sign} {number(goal.bound)}{unit}")
        kept = figure.kept(goal)
        verdicts.append("not measured" if kept is None else "met" if kept else "MISSED")
    return ", ".join(said), ", ".join(verdicts)


def cells(figure: Figure) -> tuple[str, ...]:
    """One line of a table."""
    beside = Spread.of(figure.beside) if figure.beside else None
    spread = _spread(beside, figure.unit) or "not measured"
    other = f"{figure.beside_what}: {spread}" if figure.beside_what else ""
    goal, verdict = _goals(figure)
    value = _spread(figure.value, figure.unit) if figure.samples else "not measured"
    note = f" [{figure.note}]" if figure.note else ""
    return (f"{figure.what}{note}", value, other, _spread(figure.ratio), goal, verdict)


def as_text(parts: Iterable[Part], facts: dict[str, str]) -> str:
    """For a terminal."""
    lines = [f"{name + ':':14} {value}" for name, value in facts.items()]
    for part in parts:
        rows = [HEADINGS, *(cells(figure) for figure in part.figures)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
        lines += ["", f"{part.name}: {part.about} ({part.seconds:.0f} s)", ""]
        for row in rows:
            padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join(padded).rstrip())
    return "\n".join(lines) + "\n"


def table(part: Part) -> list[str]:
    """The lines of a part, for a page."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(cells(figure) for figure in part.figures)]
    return [f"| {' | '.join(row)} |" for row in rows]


def as_markdown(parts: Iterable[Part], facts: dict[str, str]) -> str:
    """For a page."""
    lines = ["# Benchmarks", "", *(f"- {name}: {value}" for name, value in facts.items())]
    for part in parts:
        lines += ["", f"## {part.name}", "", part.about, "", *table(part)]
    return "\n".join(lines) + "\n"


def summary(parts: Iterable[Part]) -> str:
    """How many goals were met, and which were missed."""
    verdicts = [(f, f.kept(goal)) for part in parts for f in part.figures for goal in f.goals]
    missed = [figure.what for figure, kept in verdicts if kept is False]
    met = sum(kept is True for _, kept in verdicts)
    lines = [f"{met} goals met, {len(missed)} missed", *(f"  missed: {what}" for what in missed)]
    return "\n".join(lines) + "\n"


def progress(text: str) -> None:
    """Where the run is."""
    print(text, file=sys.stderr, flush=True)
