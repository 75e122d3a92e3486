"""The page docs/performance.md and its plots, written from runs and from nothing else.

What is met comes first, then plots, then the tables of each suite, then the machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from benchmarks import goals, plots
from benchmarks.goals import Standing, Verdict
from benchmarks.measure import Figure, Spread, exponent
from benchmarks.plots import Bar, Curve
from benchmarks.report import Part, number, table
from benchmarks.results import Run

OURS = "truegreen"
PICTURES = os.path.join("img", "performance")
HEAD = """\
# Performance

Written by `make bench` from the runs in `benchmarks/results/`; not by hand. Each line is the median
of repetitions that were taken in turn with what stands beside it, in the same run: machines are
shared and noisy, so the ratios count, not the times. In parentheses is how far they lie apart.
"""
UNITS = {"/s": "a second", "s": "seconds", "ms": "milliseconds"}
MACHINE = ("machine", "Python", "SQLite", "PostgreSQL", "stores")


def files(runs: Sequence[Run], page: str) -> dict[str, str]:
    """The page and its plots: the text of each by its path."""
    folder = os.path.dirname(page)
    drawn = list(_plots([part for run in runs for part in run.parts]))
    texts = {os.path.join(folder, PICTURES, f"{name}.svg"): svg for name, svg, _, _ in drawn}
    return {page: _page(runs, drawn), **texts}


def write(runs: Sequence[Run], page: str) -> None:
    """Put them where they belong; plots of what is no longer measured go."""
    folder = os.path.join(os.path.dirname(page), PICTURES)
    os.makedirs(folder, exist_ok=True)
    wanted = files(runs, page)
    for name in os.listdir(folder):
        if os.path.join(folder, name) not in wanted:
            os.unlink(os.path.join(folder, name))
    for path, text in wanted.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def _page(runs: Sequence[Run], drawn: Sequence[tuple[str, str, str, str]]) -> str:
    parts = [part for run in runs for part in run.parts]
    stands = goals.standings(parts)
    lines = [HEAD, *_summary(stands), *_missed(stands), "## Plots", ""]
    for name, _, title, caption in drawn:
        lines += [f"![{title}]({PICTURES}/{name}.svg)", "", caption, ""]
    for run in runs:
        lines += _suite(run)
    lines += _machines(runs)
    return "\n".join(lines).rstrip("\n") + "\n"


# -- what is met ------------------------------------------------------------------------------


def _summary(stands: Sequence[Standing]) -> Iterator[str]:
    met = sum(each.word == "met" for each in stands)
    missed = sum(each.word == "MISSED" for each in stands)
    yield "## Goals"
    yield ""
    rest = len(stands) - met - missed
    yield f"{met} met, {missed} missed, {rest} not measured or not all of it."
    yield ""
    yield "| # | goal | measured | |"
    yield "| --- | --- | --- | --- |"
    for each in stands:
        measured = "; ".join(_gists(each))
        yield f"| {each.aim.name} | {each.aim.text} | {measured} | {each.word} |"
    yield ""


def _gists(stand: Standing) -> Iterator[str]:
    """The worst of each kind of goal, in a few words."""
    kinds: dict[tuple[object, ...], list[Verdict]] = {}
    for each in stand.verdicts:
        against = each.figure.beside_what if each.goal.on_ratio else each.figure.unit
        kinds.setdefault((each.goal, against), []).append(each)
    for verdicts in kinds.values():
        known = [each for each in verdicts if each.kept is not None]
        if known:
            yield _gist(_worst(known))
        else:
            yield f"{verdicts[0].figure.beside_what or verdicts[0].figure.what}: not measured"
    for what in (*stand.absent, *([stand.aim.owed] if stand.aim.owed else [])):
        yield f"{what}: not measured"


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    return (max if verdicts[0].goal.sign == "≤" else min)(verdicts, key=_value)


def _value(verdict: Verdict) -> float:
    """What a goal is held against."""
    goal, figure = verdict.goal, verdict.figure
    spread = figure.ratio if goal.on_ratio else figure.value
    assert spread is not None
    if goal.always:
        return spread.high if goal.sign == "≤" else spread.low
    return spread.middle


def _gist(verdict: Verdict) -> str:
    goal, figure = verdict.goal, verdict.figure
    value, bound = number(_value(verdict)), f"{goal.sign} {number(goal.bound)}"
    if goal.on_ratio:
        return f"{value}x {figure.beside_what} ({bound}x)"
    return f"{figure.what}: {f'{value} {figure.unit}'.strip()} ({bound})"


def _missed(stands: Sequence[Standing]) -> Iterator[str]:
    known = goals.limits()
    if not any(each.missed for each in stands):
        return
    yield "### Missed, and what limits it"
    yield ""
    for stand in stands:
        reasons: dict[str, list[Verdict]] = {}
        for each in stand.missed:
            reasons.setdefault(goals.limit_of(stand.aim, each.figure, known), []).append(each)
        for text, verdicts in reasons.items():
            kinds: dict[object, list[Verdict]] = {}
            for each in verdicts:
                kinds.setdefault((each.goal, each.figure.beside_what), []).append(each)
            worst = "; ".join(_gist(_worst(each)) for each in kinds.values())
            yield f"- **{stand.aim.name}**: {worst}. {text}"
    yield ""


# -- plots ------------------------------------------------------------------------------------


def _plots(parts: Sequence[Part]) -> Iterator[tuple[str, str, str, str]]:
    """Name, picture, title and caption of each."""
    yield from _fields([f for p in parts if p.name in ("peers", "prefect") for f in p.figures])
    found: dict[str, list[Figure]] = {}
    for figure in (figure for part in parts for figure in part.figures):
        if figure.at and figure.samples:
            found.setdefault(figure.at.plot, []).append(figure)
    for title, figures in found.items():
        if len({figure.at.x for figure in figures if figure.at}) > 1:
            yield _growth(title, figures)


def _fields(figures: Iterable[Figure]) -> Iterator[tuple[str, str, str, str]]:
    """One picture for each database: us, and everybody who was measured beside us."""
    found: dict[str, list[Figure]] = {}
    for figure in figures:
        if figure.samples:
            found.setdefault(figure.what, []).append(figure)
    for what, beside in found.items():
        rows = [Bar(OURS, Spread.of(beside[0].samples), ours=True)]
        rows += [Bar(f.beside_what, Spread.of(f.beside), ours=False) for f in beside if f.beside]
        if len(rows) == 1:
            continue
        title = f"Whole {what}"
        notes = [f"- {f.beside_what}: {f.note}" for f in beside if f.beside and f.note]
        notes += [f"- **{f.note}**" for f in beside if not f.beside]
        caption = "\n".join(["Lives a second; a thin line is the spread.", "", *notes])
        yield _name(f"field {what}"), plots.bars(title, "lives a second", rows), title, caption


def _growth(title: str, figures: Sequence[Figure]) -> tuple[str, str, str, str]:
    series: dict[str, list[tuple[float, Spread]]] = {}
    for figure in figures:
        assert figure.at is not None
        series.setdefault(figure.at.curve, []).append((figure.at.x, Spread.of(figure.samples)))
    rows = [Curve(name, sorted(points)) for name, points in series.items()]
    first = figures[0]
    assert first.at is not None
    up = UNITS.get(first.unit, first.unit)
    fits = "; ".join(f"{row.name}: {_fit(row)}" for row in rows if len(row.points) > 1)
    caption = f"{title}. How it grows with {first.at.axis} (1 is linear, 0 is flat): {fits}."
    return _name(title), plots.curves(title, first.at.axis, up, rows), title, caption


def _fit(curve: Curve) -> str:
    return f"exponent {exponent([(x, spread.middle) for x, spread in curve.points]):.2f}"


def _name(title: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))


# -- tables -----------------------------------------------------------------------------------


def _suite(run: Run) -> Iterator[str]:
    (part,) = run.parts
    facts = run.facts
    yield f"## {part.name}"
    yield ""
    yield part.about
    yield ""
    yield (
        f"`{facts['command']}`, {facts['when']}, scale {facts['scale']}, {part.seconds:.0f} s, "
        f"load average {facts['load average']}{_loaded(facts)}"
    )
    yield ""
    yield from table(part)
    yield ""


def _loaded(facts: dict[str, str]) -> str:
    """Whether others worked on the machine: a benchmark of one process leaves a load of one."""
    cores = float(facts["machine"].split()[0])
    busy = float(re.split(r"[, ]", facts["load average"])[0])
    return ": **taken under load**" if busy > cores + 1 else ""


def _machines(runs: Sequence[Run]) -> Iterator[str]:
    yield "## The machine"
    yield ""
    for name in MACHINE:
        values = dict.fromkeys(run.facts[name] for run in runs if run.facts[name] != "not measured")
        yield f"- {name}: {' / '.join(values) or 'not measured'}"
    yield ""
    yield 'To measure again: `make bench`; parts by name (`make bench ARGS="peers growth"`),'
    yield "with smaller stores and shorter rounds by `--quick`. What is not measured again stays."
