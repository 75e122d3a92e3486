"""P1 and P2: whole lives a second beside other job systems, in the same run.

A job does nothing; its life is enqueue, claim, run, finish. Each repetition of each system is a
process of its own on a new store, one system after the other: nobody polls while another is
measured. The stores lie on the same file system or in the same server, and every commit is durable
unless a note says otherwise.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from benchmarks import environments
from benchmarks.bench import Bench, Place
from benchmarks.environments import UnavailableError
from benchmarks.measure import Figure, Goal, Scale, interleaved, ratio_at_least, unmeasured

CROWD = 8
OURS = "truegreen"
AHEAD = ratio_at_least(1.5)


class Peer(NamedTuple):
    """A system at the same work, what we want to be beside it, and what it does not promise."""

    shown: str
    module: str
    goals: tuple[Goal, ...] = ()
    note: str = ""
    mode: str = ""


EMBEDDED = (
    Peer(
        "DBOS 3.3, its queue",
        "dbos",
        (ratio_at_least(3),),
        "threads of one process; its file is set to WAL for it",
    ),
    Peer(
        "DBOS 3.3, called",
        "dbos",
        (ratio_at_least(3),),
        note="written down before and after; nothing is queued or claimed",
        mode="called",
    ),
    Peer("huey 3.5", "huey", note="no history, no fence: a row is deleted when it is taken"),
    Peer("litequeue 0.9", "litequeue", note="one row, no history, no fence; NORMAL set to FULL"),
    Peer("persist-queue 1.1", "persist_queue", note="one row, no history, no fence"),
)
SERVED = (
    Peer("DBOS 3.3", "dbos", (AHEAD,), "threads of one process, as it is meant to be used"),
    Peer("procrastinate 3.10", "procrastinate", (AHEAD,), "enqueued in one batch; no fence"),
    Peer("pgqueuer 1.6", "pgqueuer", (AHEAD,), "enqueued in one batch, claimed by ten; no fence"),
    Peer("absurd 0.5", "absurd", (AHEAD,), "enqueued one by one, claimed by ten"),
)
REMEMBERED = (
    Peer(
        "Celery 5.7, Redis",
        "celery",
        note="8 processes of one worker; sent one by one, results read; synced",
    ),
    Peer("dramatiq 2.2, Redis", "dramatiq", note="8 threads of one process; no results; synced"),
    Peer("taskiq 0.13, Redis", "taskiq", note="one process, 8 at a time; results read; synced"),
    Peer("arq 0.28, Redis", "arq", note="one process, 8 at a time; synced"),
    Peer(
        "RQ 2.12, Redis",
        "rq",
        note="8 processes that fork for each job; enqueued in one batch; synced",
    ),
)
"""In a Redis that is told to sync each write; as it is shipped, it may forget the last second."""


class Said(msgspec.Struct):
    """What a driver answers."""

    rate: float
    tasks: float = math.nan


class Contestant:
    """One system, asked again and again until it fails."""

    def __init__(
        self, bench: Bench, place: Place, peer: Peer | None, *, jobs: int, workers: int
    ) -> None:
        self._bench, self._place, self.peer = bench, place, peer
        self._words = (str(jobs), str(workers))
        self.said: list[Said] = []
        self.why = ""

    def __call__(self) -> float:
        """Its next rate; not a number from the first failure on."""
        try:
            if not self.why:
                self.said.append(self._asked())
                return self.said[-1].rate
        except UnavailableError as error:
            if self.peer is None:
                raise
            self.why = str(error)
        return math.nan

    def _asked(self) -> Said:
        python, module, mode = sys.executable, "ours", ""
        store = self._place.fresh()
        if self.peer:
            module, mode = self.peer.module, self.peer.mode
            install = self._bench.scale is not Scale.TINY
            python = environments.interpreter(module, install=install)
            store = store.removeprefix("sqlite://")
        self._bench.say(f"{self.peer.shown if self.peer else OURS}, {self._place.name}")
        patience = self._bench.scale.pick(900, 600, 120)
        words = (store, *self._words, *([mode] if mode else []))
        line = environments.ask(python, f"benchmarks.peers.{module}", *words, patience=patience)
        return msgspec.json.decode(line, type=Said)


def _contest(
    bench: Bench, us: Contestant, them: list[Contestant]
) -> tuple[list[float], list[Contestant]]:
    """Our rates, and the others', taken in turn."""
    actions = {OURS: us, **{each.peer.shown: each for each in them if each.peer}}
    return interleaved(bench.scale.pick(5, 3, 1), actions)[OURS], them


def run(bench: Bench) -> Iterator[Figure]:
    """One process on SQLite; eight workers at one PostgreSQL."""
    place = bench.sqlite[0]
    jobs = bench.scale.pick(1000, 200, 3)
    us = Contestant(bench, place, None, jobs=jobs, workers=1)
    them = [Contestant(bench, place, peer, jobs=jobs, workers=1) for peer in EMBEDDED]
    yield from figures(f"lives, {place.name}", *_contest(bench, us, them))
    if not bench.server:
        yield from _left_out("PostgreSQL", SERVED + REMEMBERED)
        return
    (place,) = bench.server
    workers = bench.scale.pick(CROWD, CROWD, 2)
    jobs = bench.scale.pick(1000, 300, 6)
    peers = dict.fromkeys(SERVED, place) | dict.fromkeys(REMEMBERED, bench.redis)
    us = Contestant(bench, place, None, jobs=jobs, workers=workers)
    them = [
        Contestant(bench, where, peer, jobs=jobs, workers=workers)
        for peer, where in peers.items()
        if where
    ]
    ours, them = _contest(bench, us, them)
    yield from figures(f"lives, {workers} workers, {place.name}", ours, them)
    if not bench.redis:
        yield from _left_out("Redis", REMEMBERED)


def _left_out(where: str, peers: Sequence[Peer]) -> Iterator[Figure]:
    for peer in peers:
        note = f"{peer.shown} not measured: no {where} here"
        left = unmeasured(f"lives, {CROWD} workers, {where}", note)
        yield left._replace(goals=peer.goals, beside_what=peer.shown)


def figures(what: str, ours: list[float], them: list[Contestant]) -> Iterator[Figure]:
    """Our rate beside each; one that could not be measured is named, and its goal is open."""
    for each in them:
        assert each.peer is not None
        peer = each.peer
        if each.why:
            note = f"{peer.shown} not measured: {each.why}"
            yield Figure(what, ours, "/s", peer.goals, (), peer.shown, note)
        else:
            theirs = [said.rate for said in each.said]
            yield Figure(what, ours, "/s", peer.goals, theirs, peer.shown, peer.note)
