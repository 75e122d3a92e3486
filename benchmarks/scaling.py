"""How much more is done with more seats, with more workers, and how long more output takes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from benchmarks import stream
from benchmarks.bench import Bench, Place
from benchmarks.dispatch import Seen, working
from benchmarks.lives import CONTRACT, OPERATOR
from benchmarks.measure import At, Figure, interleaved, unmeasured
from benchmarks.peers.driver import Crowd

_NAP_S = 0.25
"""How long an agent takes that needs no core: what seats are for."""


def run(bench: Bench) -> Iterator[Figure]:
    """Seats of one process, workers at one server, megabytes of one child."""
    repetitions = bench.scale.pick(5, 3, 1)
    most = bench.scale.pick(8, 8, 2)
    counts = [n for n in (1, 2, 4, 8) if n <= most]
    for place in bench.places:
        bench.say(f"seats on {place.name}")
        yield from _curve(
            repetitions,
            {n: partial(_seated, bench, place, n) for n in counts},
            lambda n, place=place: Figure(  # type: ignore[misc]
                f"runs of a {_NAP_S:g} s nap, seats: {n}, {place.name}",
                (),
                "/s",
                at=At(f"Runs of a {_NAP_S:g} s nap with more seats", place.name, "seats", n),
            ),
        )
    yield from _workers(bench, repetitions, counts)
    yield from _outputs(bench, repetitions)


def _curve(
    repetitions: int, actions: dict[int, Callable[[], float]], line: Callable[[int], Figure]
) -> Iterator[Figure]:
    """Each size in turn, beside the smallest."""
    samples = interleaved(repetitions, {str(n): action for n, action in actions.items()})
    smallest = min(actions)
    for n in actions:
        figure = line(n)._replace(samples=samples[str(n)])
        if n != smallest:
            figure = figure._replace(beside=samples[str(smallest)], beside_what=f"{smallest:,}")
        yield figure


def _seated(bench: Bench, place: Place, seats: int) -> float:
    """Runs a second of agents that only wait."""
    ledger, seen = bench.ledger(place.fresh()), Seen()
    tasks = seats * bench.scale.pick(6, 4, 1)
    cwd = bench.folder(bench.folders[0])
    terms = replace(CONTRACT, command=("sleep", str(_NAP_S)), cwd=cwd, gates=())
    opened = {ledger.open(terms, actor=OPERATOR).id for _ in range(tasks)}
    begun = time.perf_counter()
    with working(bench, ledger, seen, seats=seats):
        while not opened <= seen.over:
            time.sleep(0.005)
        return tasks / (time.perf_counter() - begun)


def _workers(bench: Bench, repetitions: int, counts: list[int]) -> Iterator[Figure]:
    if not bench.server:
        yield unmeasured("claimed, ended and judged by workers", "no PostgreSQL here")
        return
    (place,) = bench.server
    bench.say(f"workers at {place.name}")
    yield from _curve(
        repetitions,
        {n: partial(_drained, bench, place, n) for n in counts},
        lambda n: Figure(
            f"claimed, ended and judged, workers: {n}, {place.name}",
            (),
            "/s",
            at=At("Tasks claimed, ended and judged by more workers", place.name, "workers", n),
        ),
    )


def _drained(bench: Bench, place: Place, workers: int) -> float:
    url = place.fresh()
    ledger = bench.ledger(url)
    tasks = bench.scale.pick(400, 120, 4)
    for _ in range(tasks):
        ledger.open(CONTRACT, actor=OPERATOR)
    crowd = Crowd("benchmarks.peers.ours", url, workers)
    begun = time.perf_counter()
    done = crowd.drain()
    took = time.perf_counter() - begun
    crowd.close()
    assert done == tasks, f"{done} of {tasks} tasks were judged"
    return tasks / took


def _outputs(bench: Bench, repetitions: int) -> Iterator[Figure]:
    """The time for a child's output, parsed and stored, over its size."""
    folder = bench.folder(bench.folders[0])
    block = stream.events()
    sizes = [n for n in (4, 16, 64, 256) if n <= bench.scale.pick(256, 64, 16)]
    paths = {}
    for size in sizes:
        paths[size] = os.path.join(folder, f"{size}")
        stream.fill(paths[size], block, size * stream.MEGABYTE)
    bench.say("output sizes")
    out = os.path.join(folder, "out")
    yield from _curve(
        repetitions,
        {n: lambda n=n: n / stream.ours(paths[n], out) for n in sizes},  # type: ignore[misc]
        lambda n: Figure(
            f"a child's output of {n} MB, parsed, redacted, hashed, stored",
            (),
            "s",
            at=At("Time for a child's output", "parsed, redacted, hashed, stored", "megabytes", n),
        ),
    )
