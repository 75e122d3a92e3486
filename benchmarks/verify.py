"""S10: how long it takes to walk every chain and to compare the whole history with its anchor."""

from __future__ import annotations

import os
from collections.abc import Iterator

from benchmarks.bench import Bench, Place
from benchmarks.lives import TRANSITIONS, life
from benchmarks.measure import Figure, at_most, interleaved, seconds
from truegreen.record import doctor
from truegreen.record.ledger import Ledger, open_ledger

MILLION = 1_000_000
GOAL = at_most(30.0)


def run(bench: Bench) -> Iterator[Figure]:
    """On each database, in its fastest place."""
    for place in bench.places:
        yield from _measured(bench, place)


def _measured(bench: Bench, place: Place) -> Iterator[Figure]:
    lives = bench.scale.pick(10_000, 1000, 5)
    events = lives * TRANSITIONS
    anchor = os.path.join(bench.folder(bench.folders[0]), "anchor")
    ledger = open_ledger(place.fresh(), anchor=anchor)
    bench.say(f"{lives:,} lives on {place.name}, to verify")
    for _ in range(lives):
        life(ledger)
    ledger.mark()
    samples = interleaved(
        bench.scale.repetitions,
        {"chains": lambda: _chains(ledger), "anchor": lambda: _anchor(ledger)},
    )
    ledger.close()
    both = [a + b for a, b in zip(samples["chains"], samples["anchor"], strict=True)]
    for name, took in {**samples, "both": both}.items():
        yield Figure(f"events verified, {name}, {place.name}", [events / t for t in took], "/s")
    million = [took / events * MILLION for took in both]
    note = f"extrapolated from {events:,} events"
    yield Figure(f"a million events, {place.name}", million, "s", (GOAL,), note=note)


def _chains(ledger: Ledger) -> float:
    ailments: list[doctor.Ailment] = []
    took = seconds(lambda: ailments.extend(doctor.history(ledger.store)))
    assert not ailments
    return took


def _anchor(ledger: Ledger) -> float:
    ailments: list[doctor.Ailment] = []
    took = seconds(lambda: ailments.extend(doctor.anchored(ledger.store, ledger.anchor)))
    assert not ailments
    return took
