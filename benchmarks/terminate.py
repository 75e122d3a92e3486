"""T3 and P12: how soon terminate is acknowledged, from running and a hundred times in a row."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.bench import Bench, Place
from benchmarks.lives import CONTRACT, OPERATOR, START
from benchmarks.measure import Figure, at_most, percentile
from truegreen.record.ledger import Ledger

P95_MS = at_most(20.0)
PERCENTS = (50, 95, 99)


def run(bench: Bench) -> Iterator[Figure]:
    """On each database and file system."""
    for place in bench.everywhere:
        bench.say(f"terminate on {place.name}")
        yield from _measured(bench, place)


def _measured(bench: Bench, place: Place) -> Iterator[Figure]:
    ledger = bench.ledger(place.fresh())
    times = bench.scale.pick(200, 100, 3)
    firsts, repeats = [], []
    for _ in range(bench.scale.repetitions):
        firsts.append([_first(ledger)[0] for _ in range(times)])
        repeats.append(_again(ledger, bench.scale.pick(100, 100, 5)))
    for name, rounds in (("from running", firsts), ("repeated", repeats)):
        for percent in PERCENTS:
            samples = [percentile(each, percent) * 1e3 for each in rounds]
            goals = (P95_MS,) if percent == PERCENTS[1] else ()
            yield Figure(f"terminate {name}, p{percent}, {place.name}", samples, "ms", goals)


def _first(ledger: Ledger) -> tuple[float, str]:
    task = ledger.open(CONTRACT, actor=OPERATOR).id
    ledger.start(task, START)
    start = time.perf_counter()
    answer = ledger.terminate(task, actor=OPERATOR)
    took = time.perf_counter() - start
    assert answer.outcome == "interrupted"
    return took, task


def _again(ledger: Ledger, times: int) -> list[float]:
    """One task, terminated again and again: every time a success, and nothing changes."""
    _, task = _first(ledger)
    before = ledger.task(task)
    took = []
    for _ in range(times):
        start = time.perf_counter()
        answer = ledger.terminate(task, actor=OPERATOR)
        took.append(time.perf_counter() - start)
        assert answer.already_terminated
    assert ledger.task(task) == before
    return took
