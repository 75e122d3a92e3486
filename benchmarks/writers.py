"""P3: many writers at one store. Nothing is lost or refused, nobody waits long.

Threads of one process, as the seats of `truegreen up` are, commit together on SQLite: their rate
stands beside that of as many processes, which can't.

Run as a program, this module is one writer: it reads orders on standard input (threads, seconds)
and answers each with what was acknowledged to it.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from benchmarks.bench import Bench, Place
from benchmarks.lives import steps
from benchmarks.measure import Figure, never_above, ratio_at_least
from truegreen.errors import TruegreenError
from truegreen.model import TaskStatus
from truegreen.record.ledger import Ledger, open_ledger

WORST_WAIT_MS = never_above(100.0)
THREADS = "threads of one process"
TOGETHER = ratio_at_least(1.7)


class Order(msgspec.Struct):
    """Live lives with so many threads for so long."""

    threads: int
    seconds: float


class Answer(msgspec.Struct):
    """What one writer was told."""

    lives: list[str]
    refused: list[str]
    waits: list[float]


class Writer:
    """A process that writes when it is told to."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "benchmarks.writers", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ready(self) -> None:
        """Wait until it is connected."""
        self._read()

    def order(self, order: Order) -> None:
        """Let it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(order) + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Answer:
        """Wait until it is done."""
        return msgspec.json.decode(self._read(), type=Answer)

    def _read(self) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a writer died; its reason stands above")
        return line

    def close(self) -> None:
        """Let it go, and wait for it."""
        self._process.communicate()


class Round(NamedTuple):
    """What some writers did together."""

    rate: float
    worst: float
    refused: int
    lives: list[str]


def _round(writers: list[Writer], threads: int, seconds: float) -> Round:
    for writer in writers:
        writer.order(Order(threads, seconds))
    answers = [writer.answer() for writer in writers]
    lives = [task for answer in answers for task in answer.lives]
    worst = max((wait for answer in answers for wait in answer.waits), default=0.0)
    refused = [text for answer in answers for text in answer.refused]
    for text in refused[:3]:
        Bench.say(f"refused: {text}")
    return Round(len(lives) / seconds, worst, len(refused), lives)


def run(bench: Bench) -> Iterator[Figure]:
    """Eight processes on one SQLite file, four on one PostgreSQL; as many threads of one."""
    for place in bench.everywhere:
        if place.dialect == "sqlite":
            crowd = bench.scale.pick(8, 8, 2)
            shapes = {f"{crowd} processes": (crowd, 1), f"{crowd} {THREADS}": (1, crowd)}
        else:
            crowd = bench.scale.pick(4, 4, 2)
            shapes = {
                f"{crowd} processes": (crowd, 1),
                f"{crowd} {THREADS}": (1, crowd),
            }
        bench.say(f"writers on {place.name}: {', '.join(shapes)}")
        yield from _together(bench, place, shapes)


def _together(bench: Bench, place: Place, shapes: dict[str, tuple[int, int]]) -> Iterator[Figure]:
    url = place.fresh()
    ledger = bench.ledger(url)
    seconds = bench.scale.pick(30, 10, 2) / 10
    rounds: dict[str, list[Round]] = {name: [] for name in ("one", *shapes)}
    with contextlib.ExitStack() as closing:
        writers = [Writer(url) for _ in range(max(count for count, _ in shapes.values()))]
        for writer in writers:
            closing.callback(writer.close)
        for writer in writers:
            writer.ready()
        for _ in range(bench.scale.repetitions):
            rounds["one"].append(_round(writers[:1], 1, seconds))
            for name, (count, threads) in shapes.items():
                rounds[name].append(_round(writers[:count], threads, seconds))
    one = [each.rate for each in rounds["one"]]
    lost = _lost(ledger, [task for each in rounds.values() for r in each for task in r.lives])
    yield Figure(f"acknowledged lives lost, {place.name}", [lost], "", (never_above(0),))
    for name in shapes:
        many = rounds[name]
        where = f"{name}, {place.name}"
        yield Figure(f"refused, {where}", [float(r.refused) for r in many], "", (never_above(0),))
        yield Figure(f"worst wait, {where}", [r.worst * 1e3 for r in many], "ms", (WORST_WAIT_MS,))
        yield Figure(f"lives, {where}", [r.rate for r in many], "/s", (), one, "one writer")
    if place.dialect == "sqlite":
        apart, joined = ([r.rate for r in rounds[name]] for name in shapes)
        what = f"lives committed together, {place.name}"
        yield Figure(what, joined, "/s", (TOGETHER,), apart, "as many processes")


def _lost(ledger: Ledger, acknowledged: list[str]) -> float:
    """How many acknowledged lives the store does not know as green."""
    kept = sum(c.tasks for c in ledger.counts() if c.status is TaskStatus.SUCCEEDED)
    assert kept == len(set(acknowledged)), f"{kept} are kept, {len(acknowledged)} acknowledged"
    return float(sum(ledger.task(i).status is not TaskStatus.SUCCEEDED for i in acknowledged))


# -- the other side ---------------------------------------------------------------------------


def _write(ledger: Ledger, until: float, answer: Answer) -> None:
    """Live until the time is over; the life that is under way is lived to its end."""
    while (last := time.perf_counter()) < until:
        task = ""
        try:
            for _, acknowledged in steps(ledger):
                task, now = acknowledged, time.perf_counter()
                answer.waits.append(now - last)
                last = now
        except TruegreenError as error:
            answer.refused.append(f"{error.code}: {error}")
        else:
            answer.lives.append(task)


def _serve(url: str) -> None:
    ledger = open_ledger(url)
    print("ready", flush=True)
    for line in sys.stdin.buffer:
        order = msgspec.json.decode(line, type=Order)
        until = time.perf_counter() + order.seconds
        answers = [Answer([], [], []) for _ in range(order.threads)]
        threads = [
            threading.Thread(target=_write, args=(ledger, until, answer)) for answer in answers
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        merged = Answer(
            [task for answer in answers for task in answer.lives],
            [text for answer in answers for text in answer.refused],
            [max((wait for answer in answers for wait in answer.waits), default=0.0)],
        )
        sys.stdout.buffer.write(msgspec.json.encode(merged) + b"\n")
        sys.stdout.flush()
    ledger.close()


if __name__ == "__main__":
    _serve(sys.argv[1])
