"""P1 and P2: whole task lives a second through the ledger, beside the same rows written raw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.bench import Bench, Place
from benchmarks.lives import life
from benchmarks.measure import Figure, interleaved, rate, ratio_at_least
from benchmarks.raw import raw_cte, raw_pipelined, raw_sqlite

RAW = {
    "sqlite": {"raw SQL": raw_sqlite},
    "postgres": {"raw SQL, pipelined": raw_pipelined, "raw SQL, one CTE": raw_cte},
}
GOAL = ratio_at_least(0.6)


def run(bench: Bench) -> Iterator[Figure]:
    """One writer, each database on each file system."""
    for place in bench.everywhere:
        bench.say(f"lives on {place.name}")
        yield from _lives(bench, place)


def _lives(bench: Bench, place: Place) -> Iterator[Figure]:
    times = bench.scale.pick(300, 60, 3)
    with ExitStack() as open_ones:
        ledger = bench.ledger(place.fresh())
        actions = {"ours": lambda: life(ledger)}
        for name, raw in RAW[place.dialect].items():
            actions[name] = open_ones.enter_context(raw(place.fresh()))
        for action in actions.values():
            rate(action, max(2, times // 10))  # prepared statements, warm caches
        samples = interleaved(
            bench.scale.repetitions,
            {name: lambda action=action: rate(action, times) for name, action in actions.items()},  # type: ignore[misc]
        )
    ours = samples.pop("ours")
    for name, raws in samples.items():
        yield Figure(f"lives, {place.name}", ours, "/s", (GOAL,), raws, name)
