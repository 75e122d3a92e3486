"""RQ on Redis: enqueued in one batch, done by worker processes that fork for each job."""

from __future__ import annotations

from typing import Any

from redis import Redis
from rq import Queue, Worker

from benchmarks.peers.driver import crowded, given, ready, serves

MODULE = "benchmarks.peers.rq"


def nothing() -> int:
    """A job."""
    return 1


class Counting(Worker):
    """Knows how many jobs it saw through; they run in forks."""

    seen = 0

    def execute_job(self, job: Any, queue: Any) -> None:
        """One more."""
        super().execute_job(job, queue)
        self.seen += 1


def main() -> None:
    """One batch, then the workers."""
    work = given()
    queue = Queue(connection=Redis.from_url(work.store))
    if serves():
        worker = Counting([queue], connection=queue.connection)
        ready()
        worker.work(burst=True, logging_level="ERROR")
        assert queue.failed_job_registry.count == 0, "a job failed"
        print(worker.seen, flush=True)
        return
    one = Queue.prepare_data(f"{MODULE}.nothing")
    crowded(MODULE, work, lambda jobs: queue.enqueue_many([one] * jobs))


if __name__ == "__main__":
    main()
