"""P15: what a life and a terminate cost as the store grows, and how long a recovery takes."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench, Place
from benchmarks.lives import CONTRACT, OPERATOR, life
from benchmarks.measure import At, Figure, at_most, interleaved, ratio_at_most, seconds
from truegreen.record.ledger import Ledger, Start

FLAT = ratio_at_most(1.5)
RECOVERED = at_most(1.0)
_OUT_AT_ONCE = Start("bench", base_digest="before", lease_seconds=0.0)


def run(bench: Bench) -> Iterator[Figure]:
    """On each database, in its fastest place."""
    for place in bench.places:
        yield from _growing(bench, place)
        yield from _recovering(bench, place)


def _growing(bench: Bench, place: Place) -> Iterator[Figure]:
    most = bench.scale.pick(1_000_000, 100_000, 200)
    sizes = [size for size in (0, 1_000, 10_000, 100_000, 1_000_000) if size <= most] or [0]
    if most not in sizes:
        sizes.append(most)
    ledgers = {size: bench.ledger(bench.populated(place, size)) for size in sizes}
    times = bench.scale.pick(200, 40, 2)
    for name, action in (("life", life), ("terminate", _terminate)):
        bench.say(f"{name} in growing stores on {place.name}")
        measured = interleaved(
            bench.scale.repetitions,
            {
                str(size): lambda ledger=ledger, action=action: _each(action, ledger, times)  # type: ignore[misc]
                for size, ledger in ledgers.items()
            },
        )
        for size in sizes[1:]:
            what = f"{name}, {size:,} tasks, {place.name}"
            at = At(f"Time of a {name} as the store grows", place.name, "tasks in the store", size)
            samples, empty = measured[str(size)], measured["0"]
            yield Figure(what, samples, "ms", (FLAT,), empty, "empty store", at=at)


def _each(action: object, ledger: Ledger, times: int) -> float:
    assert callable(action)
    return seconds(lambda: [action(ledger) for _ in range(times)]) / times * 1e3


def _terminate(ledger: Ledger) -> None:
    """Open and terminate: two transitions."""
    ledger.terminate(ledger.open(CONTRACT, actor=OPERATOR).id, actor=OPERATOR)


def _recovering(bench: Bench, place: Place) -> Iterator[Figure]:
    """All runs were left behind by a supervisor that died."""
    many = bench.scale.pick(1000, 1000, 10)
    few = max(1, many // 10)
    ledger = bench.ledger(place.fresh())
    took: dict[int, list[float]] = {few: [], many: []}
    bench.say(f"recovery on {place.name}")
    for _ in range(bench.scale.repetitions):
        for number, samples in took.items():
            for _ in range(number):
                ledger.start(ledger.open(CONTRACT, actor=OPERATOR).id, _OUT_AT_ONCE)
            samples.append(seconds(lambda number=number: _recover(ledger, number)))  # type: ignore[misc]
    what = f"recovery of {many:,} unfinished runs, {place.name}"
    tenfold = [sample * many / few for sample in took[few]]
    beside = f"{many // few} times {few:,} runs"
    yield Figure(what, took[many], "s", (RECOVERED, FLAT), tenfold, beside)


def _recover(ledger: Ledger, number: int) -> None:
    overdue = ledger.overdue(limit=number)
    assert len(overdue) == number
    assert len(ledger.lose_all(overdue)) == number
    assert not ledger.overdue()
