"""What every driver shares: it is told a store, how many jobs and workers, and says a rate.

Nothing but the standard library is imported here: it runs in the peers' environments.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

DRAIN = "drain"
WARM_UP = 10


class Work(NamedTuple):
    """So many jobs, from nothing to done, in a store that nobody has used."""

    store: str
    jobs: int
    workers: int


def given() -> Work:
    """What the command line asks for."""
    store, jobs, workers = sys.argv[1:4]
    return Work(store, int(jobs), int(workers))


def told(jobs: int, took: float, **more: float) -> None:
    """The answer, as the last line."""
    print(json.dumps({"rate": jobs / took, "jobs": jobs, "seconds": took, **more}), flush=True)


def timed(action: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


class Crowd:
    """Worker processes that are connected and wait for the word."""

    def __init__(self, module: str, store: str, workers: int) -> None:
        words = [sys.executable, "-m", module, store, "0", "0", DRAIN]
        self._workers = [
            subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - ourselves
            for _ in range(workers)
        ]
        for worker in self._workers:
            _line(worker)

    def drain(self) -> int:
        """Let them work until the queue is empty; says how many jobs they did."""
        for worker in self._workers:
            assert worker.stdin is not None
            worker.stdin.close()
        return sum(int(_line(worker)) for worker in self._workers)

    def close(self) -> None:
        """Wait for the end of each."""
        for worker in self._workers:
            assert worker.stdout is not None
            worker.stdout.close()
            worker.wait()


def _line(worker: subprocess.Popen[bytes]) -> bytes:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    assert line, "a worker died; its reason stands above"
    return line


def serves() -> bool:
    """Whether this process is one of a crowd."""
    return sys.argv[4:] == [DRAIN]


def ready() -> None:
    """Connected; waits for the word."""
    print("ready", flush=True)
    sys.stdin.read()


def crowded(module: str, work: Work, enqueue: Callable[[int], object]) -> None:
    """Put everything into the queue, then let a crowd empty it; both are timed."""
    enqueue(WARM_UP)
    warm = Crowd(module, work.store, 1)
    warm.drain()
    warm.close()
    crowd = Crowd(module, work.store, work.workers)
    put = timed(lambda: enqueue(work.jobs))
    start = time.perf_counter()
    done = crowd.drain()
    took = time.perf_counter() - start
    crowd.close()
    assert done == work.jobs, f"{done} of {work.jobs} jobs were done"
    told(work.jobs, put + took, enqueue=put, drain=took)
