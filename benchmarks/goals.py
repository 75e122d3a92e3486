"""The performance goals: which lines of which suites hold them, and what limits a miss."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from benchmarks.measure import Figure, Goal
from benchmarks.report import Part

LIMITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "limits.toml")
UNKNOWN = "What limits it is not known yet."


class Aim(NamedTuple):
    """A goal: its lines by suite and by what their text contains, and what no suite measures."""

    name: str
    text: str
    lines: tuple[tuple[str, str], ...]
    owed: str = ""


AIMS = (
    Aim(
        "P1",
        "a whole life through the ledger on SQLite, one writer: ≥ 0.6x raw SQL, ≥ 3x DBOS, "
        "≥ 1,000x Prefect",
        (("ledger", "SQLite"), ("peers", "SQLite"), ("prefect", "")),
    ),
    Aim(
        "P2",
        "the same on PostgreSQL: ≥ 0.6x raw SQL; with 8 workers ≥ 1.5x procrastinate, absurd, "
        "DBOS and pgqueuer",
        (("ledger", "PostgreSQL"), ("peers", "PostgreSQL"), ("fleet", "started twice")),
    ),
    Aim(
        "P3",
        "8 processes write to one SQLite file: nothing lost or refused, no wait over 100 ms; "
        "group commit ≥ 1.7x bare writers",
        (("writers", ""),),
    ),
    Aim(
        "P4",
        "from add to a seat: p50 ≤ 3 ms, p99 ≤ 20 ms; 8 seats at rest ≤ 1 % of a core",
        (("dispatch", ""),),
    ),
    Aim(
        "P5",
        "the hook at each tool call: ≤ 1.5x a bare interpreter; by HTTP ≤ 2 ms",
        (("hook", ""),),
    ),
    Aim(
        "P6",
        "`--version`, `--help` ≤ 5x, `list --json` of 100,000 tasks ≤ 8x a bare interpreter",
        (("start_up", ""),),
    ),
    Aim("P7", "`truegreen run -- true` ≤ 12x a bare interpreter", (("supervision", "run "),)),
    Aim(
        "P8",
        "a child's output, parsed, redacted, hashed, stored: ≥ 250 MB/s, ≥ 0.4x a bare pipe, "
        "memory growth ≤ 64 MB",
        (("stream", ""),),
    ),
    Aim(
        "P9",
        "a gate over the bare command, 1,000 files: A2 ≤ 300 ms, A3 ≤ 350 ms, ≤ 3x "
        "`git worktree add`",
        (("gates", ""),),
    ),
    Aim(
        "P10",
        "1 M and 10 M tasks: documents ≤ 10 ms and pages ≤ 50 ms at p99, ≤ 1.5x a tenth of the "
        "tasks; 200 viewers ≤ 20 % of a core",
        (("reads", ""), ("web", ", p(50|99)"), ("viewers", "viewers|listeners")),
        "10,000,000 tasks, which take 60 GB and found no room",
    ),
    Aim("P11", "lists of 50 a second ≥ 0.7x a bare route", (("web", "lists of 50"),)),
    Aim(
        "P12",
        "terminate acknowledged at p95 ≤ 20 ms, 200 processes silent ≤ 250 ms",
        (("terminate", ""), ("supervision", "kill to silence")),
    ),
    Aim(
        "P13",
        "memory: the server with 1 M tasks ≤ 150 MB, each of 200 runs ≤ 3 MB",
        (("viewers", "memory"),),
    ),
    Aim(
        "P14",
        "the model gateway: ≤ 3 ms to the first byte, ≥ 0.8x a bare proxy",
        (("gateway", ""),),
    ),
    Aim(
        "P15",
        "growth: a life and a terminate cost the same in a store of any size; recovery of 1,000 "
        "runs ≤ 1 s",
        (("growth", ""),),
        "10,000,000 tasks, which take 60 GB and found no room",
    ),
    Aim(
        "S10, counts",
        "a million events verified in ≤ 30 s; ≤ 1 sync per transition, ≤ 5 KB of WAL per life",
        (("verify", ""), ("counts", "")),
    ),
)


class Verdict(NamedTuple):
    """A goal on a line, and whether it is met; None when it was not measured."""

    figure: Figure
    goal: Goal
    kept: bool | None


class Standing(NamedTuple):
    """How an aim stands."""

    aim: Aim
    verdicts: list[Verdict]
    absent: tuple[str, ...] = ()
    """Suites that were not run."""

    @property
    def missed(self) -> list[Verdict]:
        """What is not good enough."""
        return [each for each in self.verdicts if each.kept is False]

    @property
    def open(self) -> list[Verdict]:
        """What nobody knows."""
        return [each for each in self.verdicts if each.kept is None]

    @property
    def word(self) -> str:
        """Met only when all of it was measured."""
        if self.missed:
            return "MISSED"
        if all(each.kept is None for each in self.verdicts):
            return "not measured"
        return "partly measured" if self.open or self.absent or self.aim.owed else "met"


def standings(parts: Iterable[Part]) -> list[Standing]:
    """Each aim, with all goals on its lines."""
    known = {part.name: part for part in parts}
    return [Standing(aim, list(_verdicts(aim, known)), _absent(aim, known)) for aim in AIMS]


def _absent(aim: Aim, parts: dict[str, Part]) -> tuple[str, ...]:
    return tuple(suite for suite, _ in aim.lines if suite not in parts)


def _verdicts(aim: Aim, parts: dict[str, Part]) -> Iterator[Verdict]:
    for suite, pattern in aim.lines:
        for figure in parts[suite].figures if suite in parts else ():
            if re.search(pattern, figure.what):
                yield from (Verdict(figure, goal, figure.kept(goal)) for goal in figure.goals)


class Limit(NamedTuple):
    """What keeps the lines of an aim whose text contains something from their goal."""

    aim: str
    match: str
    text: str


def limits(path: str = LIMITS) -> list[Limit]:
    """All that are known."""
    with open(path, "rb") as file:
        return [Limit(**each) for each in tomllib.load(file)["limit"]]


def limit_of(aim: Aim, figure: Figure, known: Iterable[Limit]) -> str:
    """What limits a line; the first that fits."""
    line = f"{figure.what} {figure.beside_what}"
    fits = (each for each in known if each.aim == aim.name and re.search(each.match, line))
    return next((each.text for each in fits), UNKNOWN)
