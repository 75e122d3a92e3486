"""Runs as files: every sample of each suite, and the newest run of each when there are several."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from benchmarks.measure import At, Figure, Goal
from benchmarks.report import Part

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
SUFFIX = ".json"


class Run(NamedTuple):
    """What was measured at one time: the machine then, and what each suite found."""

    facts: dict[str, str]
    parts: list[Part]


def as_data(run: Run) -> dict[str, Any]:
    """For a program: every sample."""
    return {
        "machine": run.facts,
        "suites": [{"name": p.name, "about": p.about, "seconds": p.seconds} for p in run.parts],
        "figures": [
            {
                "suite": part.name,
                **figure._asdict(),
                "goals": [goal._asdict() | {"met": figure.kept(goal)} for goal in figure.goals],
                "at": figure.at._asdict() if figure.at else None,
            }
            for part in run.parts
            for figure in part.figures
        ],
    }


def from_data(data: dict[str, Any]) -> Run:
    """The run that a file was written of."""
    figures: dict[str, list[Figure]] = {}
    for each in data["figures"]:
        goals = [{k: v for k, v in goal.items() if k != "met"} for goal in each["goals"]]
        at = At(**each["at"]) if each.get("at") else None
        rest = {k: v for k, v in each.items() if k not in ("suite", "goals", "at")}
        figure = Figure(**rest, goals=tuple(Goal(**goal) for goal in goals), at=at)
        figures.setdefault(each["suite"], []).append(figure)
    parts = [
        Part(suite["name"], suite["about"], figures.get(suite["name"], []), suite["seconds"])
        for suite in data["suites"]
    ]
    return Run(data["machine"], parts)


def write(path: str, run: Run) -> None:
    """One file, in lines that a person can compare."""
    text = msgspec.json.format(msgspec.json.encode(as_data(run)), indent=1)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text + b"\n")


def read(paths: Iterable[str]) -> list[Run]:
    """The runs of some files."""
    runs = []
    for path in paths:
        with open(path, "rb") as file:
            runs.append(from_data(msgspec.json.decode(file.read())))
    return runs


def kept(folder: str = FOLDER) -> list[str]:
    """The files of a folder."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(SUFFIX)]


def keep(run: Run, folder: str = FOLDER) -> None:
    """A file for each suite, so that one can be measured again without the others."""
    for part in run.parts:
        write(os.path.join(folder, part.name + SUFFIX), Run(run.facts, [part]))


def newest(runs: Iterable[Run], order: Sequence[str]) -> list[Run]:
    """Each suite once, as it was measured last, in a given order; of equals the later one."""
    latest: dict[str, Run] = {}
    for run in runs:
        for part in run.parts:
            known = latest.get(part.name)
            if known is None or run.facts["when"] >= known.facts["when"]:
                latest[part.name] = Run(run.facts, [part])
    return [latest[name] for name in order if name in latest]
