"""P1 beside Prefect: its flow runs and task runs, the closest in what they do, and slow to install.

As the other job systems are measured (see benchmarks/field.py), with fewer of its flows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.field import OURS, Contestant, Peer, figures
from benchmarks.measure import Figure, interleaved, ratio_at_least

PREFECT = Peer(
    "Prefect 3.8, flow runs",
    "prefect",
    (ratio_at_least(1000),),
    "its own server and SQLite, synchronous NORMAL; no claim: a flow runs where it is called",
)


def run(bench: Bench) -> Iterator[Figure]:
    """One process; its server and its SQLite lie on the same file system."""
    place = bench.sqlite[0]
    folder = place._replace(fresh=partial(bench.folder, bench.folders[0]))
    flows = bench.scale.pick(20, 5, 1)
    us = Contestant(bench, place, None, jobs=bench.scale.pick(1000, 200, 3), workers=1)
    it = Contestant(bench, folder, PREFECT, jobs=flows, workers=1)
    rates = interleaved(bench.scale.pick(5, 3, 1), {OURS: us, PREFECT.shown: it})
    what = f"lives, {place.name}"
    yield from figures(what, rates[OURS], [it])
    if not it.why:
        tasks = [said.tasks for said in it.said]
        beside = "Prefect 3.8, task runs of one flow"
        note = "tasks of a flow that runs already"
        yield Figure(what, rates[OURS], "/s", (), tasks, beside, note)
