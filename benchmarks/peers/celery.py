"""Celery on Redis, with results: sent one by one, done by eight processes of one worker."""

from __future__ import annotations

import os
import subprocess
import sys

from celery import Celery

from benchmarks.peers.driver import WARM_UP, given, timed, told

STORE = "BENCH_STORE"
_url = os.environ.get(STORE, "").replace("unix://", "redis+socket://")
app = Celery("bench", broker=_url, backend=_url)


@app.task(name="nothing")
def nothing() -> int:
    """A job."""
    return 1


def lives(jobs: int) -> None:
    """Sent, done, and each result read."""
    sent = [nothing.delay() for _ in range(jobs)]
    assert all(each.get(timeout=300) == 1 for each in sent)


def main() -> None:
    """A worker of its own beside whoever sends."""
    work = given()
    words = [sys.executable, "-m", "celery", "-A", "benchmarks.peers.celery", "worker"]
    options = ["-c", str(work.workers), "-l", "ERROR", "--without-gossip", "--without-mingle"]
    worker = subprocess.Popen([*words, *options], stdout=subprocess.DEVNULL)  # noqa: S603 - ours
    try:
        lives(WARM_UP)
        told(work.jobs, timed(lambda: lives(work.jobs)))
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    if STORE not in os.environ:
        os.execve(sys.executable, sys.orig_argv, os.environ | {STORE: sys.argv[1]})  # noqa: S606 - it reads its broker when it is loaded
    main()
