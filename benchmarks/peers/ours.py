"""truegreen itself, driven as the others are: whole lives by one writer, or by a crowd."""

from __future__ import annotations

import os

from benchmarks.lives import CLAIM, CONTRACT, EXIT, FINDING, OPERATOR, START, VERDICT, life
from benchmarks.peers.driver import WARM_UP, crowded, given, ready, serves, timed, told
from truegreen.record.ledger import Ledger, open_ledger

MODULE = "benchmarks.peers.ours"
BATCH = 10


def serve(ledger: Ledger) -> None:
    """A worker without agents: it claims by ten, and ends, finds and judges each."""
    start = START._replace(holder=f"bench/{os.getpid()}")
    done = 0
    ready()
    while tickets := ledger.claim_next(start, limit=BATCH):
        for ticket in tickets:
            ledger.end_run(ticket, EXIT, claim=CLAIM)
            ledger.record(ticket, [FINDING])
            ledger.judge(ticket, VERDICT)
            done += 1
    print(done, flush=True)


def main() -> None:
    """One writer lives lives; many share a queue."""
    work = given()
    ledger = open_ledger(work.store)

    def lives(jobs: int) -> None:
        for _ in range(jobs):
            life(ledger)

    def enqueue(jobs: int) -> None:
        for _ in range(jobs):
            ledger.open(CONTRACT, actor=OPERATOR)

    if serves():
        serve(ledger)
    elif work.workers == 1:
        lives(WARM_UP)
        told(work.jobs, timed(lambda: lives(work.jobs)))
    else:
        crowded(MODULE, work, enqueue)
    ledger.close()


if __name__ == "__main__":
    main()
