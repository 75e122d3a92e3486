"""dramatiq on Redis: sent one by one, done by eight threads of one process."""

from __future__ import annotations

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers.driver import WARM_UP, Work, given, timed, told


def lives(broker: RedisBroker, work: Work, jobs: int) -> int:
    """Sent and done; says how many were."""
    done: list[int] = []

    @dramatiq.actor(broker=broker, actor_name=f"nothing{jobs}")
    def nothing() -> None:
        done.append(1)

    for _ in range(jobs):
        nothing.send()
    worker = dramatiq.Worker(broker, worker_threads=work.workers)
    worker.start()
    broker.join(nothing.queue_name)
    worker.join()
    worker.stop()
    return len(done)


def main() -> None:
    """Warm, then timed."""
    work = given()
    broker = RedisBroker(url=work.store)
    dramatiq.set_broker(broker)
    lives(broker, work, WARM_UP + 1)
    counted: list[int] = []
    took = timed(lambda: counted.append(lives(broker, work, work.jobs)))
    assert counted == [work.jobs], f"{counted} of {work.jobs} jobs were done"
    told(work.jobs, took)


if __name__ == "__main__":
    main()
