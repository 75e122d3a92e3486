"""P4: how soon a task that is added gets a seat, and what a fleet costs that has nothing to do."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from benchmarks.bench import Bench, Place
from benchmarks.lives import CONTRACT, OPERATOR
from benchmarks.measure import Figure, at_most, percentile
from truegreen.facts import Ticket
from truegreen.record.ledger import Ledger
from truegreen.scheduler import Audience, Carried, Scheduler
from truegreen.supervisor.place import Place as Surroundings
from truegreen.supervisor.watch import Watch

P50_MS, P99_MS = at_most(3.0), at_most(20.0)
IDLE_PERCENT = at_most(1.0)
SEATS = 8
_IDLE_SECONDS = 2.5
"""After so long without work a scheduler looks once a second."""


def run(bench: Bench) -> Iterator[Figure]:
    """On one of each database: with a hint from another connection, then at rest."""
    for place in bench.places:
        bench.say(f"from add to a seat on {place.name}")
        yield from _latency(bench, place)
        bench.say(f"a fleet at rest on {place.name}")
        yield _idle(bench, place)


class Seen(Audience):
    """Remembers when a task was given a seat, when its agent was there, and that it has ended."""

    def __init__(self) -> None:
        self.seated: dict[str, float] = {}
        self.started: dict[str, float] = {}
        self.over: set[str] = set()

    def watch(self, task: str) -> Watch:
        """It has a seat."""
        self.seated[task] = time.perf_counter()
        return _Begun(self, task)

    def ended(self, carried: Carried) -> None:
        """It is done with."""
        self.over.add(carried.task)


class _Begun(Watch):
    def __init__(self, seen: Seen, task: str) -> None:
        self._seen, self._task = seen, task

    def started(self, ticket: Ticket, isolation: str, log: str) -> None:  # noqa: ARG002 - only when
        self._seen.started.setdefault(self._task, time.perf_counter())


@contextmanager
def working(bench: Bench, ledger: Ledger, seen: Seen, seats: int) -> Iterator[None]:
    """A scheduler at work in a thread of its own."""
    state = bench.folder(bench.folders[0])
    surroundings = Surroundings(state, (state,), os.environ)
    made = Scheduler(ledger, surroundings, seen, seats=seats)
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        yield
    finally:
        made.stop(at_once=True)
        thread.join()
        made.close()


def _latency(bench: Bench, place: Place) -> Iterator[Figure]:
    url = place.fresh()
    ledger, other, seen = bench.ledger(url), bench.ledger(url), Seen()
    seated, running = [], []
    contract = replace(CONTRACT, command=("true",), cwd=bench.folder(bench.folders[0]), gates=())
    with working(bench, ledger, seen, seats=SEATS):
        time.sleep(_IDLE_SECONDS if bench.scale.pick(1, 1, 0) else 0)
        for _ in range(bench.scale.pick(60, 30, 2)):
            start = time.perf_counter()
            task = other.open(contract, actor=OPERATOR).id
            while task not in seen.over:
                time.sleep(0.005)
            seated.append((seen.seated[task] - start) * 1e3)
            running.append((seen.started[task] - start) * 1e3)
    for percent, goal in ((50, P50_MS), (99, P99_MS)):
        value = percentile(seated, percent)
        yield Figure(f"from add to a seat, p{percent}, {place.name}", [value], "ms", (goal,))
    name = f"from add to an agent that runs, snapshot and spawn included, p50, {place.name}"
    yield Figure(name, [percentile(running, 50)], "ms")


def _idle(bench: Bench, place: Place) -> Figure:
    ledger = bench.ledger(place.fresh())
    seconds = bench.scale.pick(30, 10, 1)
    with working(bench, ledger, Seen(), seats=SEATS):
        time.sleep(_IDLE_SECONDS if bench.scale.pick(1, 1, 0) else 0)
        before, began = time.process_time(), time.perf_counter()
        time.sleep(seconds)
        share = (time.process_time() - before) / (time.perf_counter() - began) * 100
    name = f"{SEATS} seats at rest, of a core, {place.name}"
    return Figure(name, [share], "%", (IDLE_PERCENT,))
