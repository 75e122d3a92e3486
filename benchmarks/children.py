"""P7, P12: what isolation costs at the start, and how long 200 processes take to fall silent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.measure import Figure, at_most, interleaved, percentile, seconds, unmeasured
from truegreen.contract import Isolation
from truegreen.work import jail, process
from truegreen.work.process import Launch

BARE = "Popen"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
TREE = 200
START_MS = at_most(40.0)
SILENCE_MS = at_most(250.0)

# Half of them in sessions of their own; each beats as long as it lives.
GROVE = """
import os, sys, time
for n in range(int(sys.argv[1]) - 1):
    if not os.fork():
        if n % 2:
            os.setsid()
        break
else:
    print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


def run(bench: Bench) -> Iterator[Figure]:
    """Each level that works here."""
    levels = [Isolation.REAPER, Isolation.NONE]
    if jail.probe().jail:
        levels.insert(0, Isolation.JAIL)
    else:
        yield unmeasured("jail", jail.probe().why)
    yield from _starts(bench, levels)
    for level in levels:
        if level is not Isolation.NONE:
            yield _silence(bench, level)


def _starts(bench: Bench, levels: list[Isolation]) -> Iterator[Figure]:
    bench.say("starts")
    samples = interleaved(
        bench.scale.pick(101, 31, 2),
        {BARE: _popen, **{level: partial(_start, level) for level in levels}},
    )
    bare = samples.pop(BARE)
    for level, ours in samples.items():
        over = [one - other for one, other in zip(ours, bare, strict=True)]
        yield Figure(f"start and end over Popen, {level}", over, "ms", (START_MS,))


def _popen() -> float:
    return seconds(lambda: subprocess.run(["/bin/true"], check=True)) * 1e3


def _start(level: Isolation) -> float:
    given = Launch(argv=("/bin/true",), cwd="/", env=ENVIRONMENT, isolation=level)
    return seconds(lambda: process.run(given)) * 1e3


def _silence(bench: Bench, level: Isolation) -> Figure:
    """From the order to kill until the whole tree is known to be dead."""
    size = bench.scale.pick(TREE, TREE, 5)
    bench.say(f"{level}: killing {size} processes")
    took = [_killed(level, size) for _ in range(bench.scale.pick(100, 20, 1))]
    note = f"{size} processes, {len(took)} times; worst {max(took):.0f}"
    return Figure(
        f"order to silence, p99, {level}", [percentile(took, 99)], "ms", (SILENCE_MS,), note=note
    )


def _killed(level: Isolation, size: int) -> float:
    ordered: list[float] = []
    lines: list[bytes] = []

    def tick() -> str | None:
        if not lines or ordered:
            return None
        ordered.append(time.perf_counter())
        return "!stop"

    given = Launch(
        argv=(sys.executable, "-I", "-S", "-c", GROVE, str(size)),
        cwd=os.sep,
        env=ENVIRONMENT,
        isolation=level,
        tag=f"bench-{os.urandom(4).hex()}",
    )
    ended = process.run(given, line=lines.append, tick=tick, tick_s=0.05)
    took = (time.perf_counter() - ordered[0]) * 1e3
    assert ended.confirmed, ended
    assert len(ended.swept) == size - 1, len(ended.swept)
    return took
