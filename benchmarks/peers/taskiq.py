"""taskiq on Redis, with results: kicked one by one, done by one process with eight at a time."""

from __future__ import annotations

import asyncio
import time

from taskiq.api import run_receiver_task
from taskiq_redis import ListQueueBroker, RedisAsyncResultBackend

from benchmarks.peers.driver import WARM_UP, given, told

POLL_S = 0.01


async def main() -> None:
    """The receiver runs beside whoever kicks."""
    work = given()
    broker = ListQueueBroker(url=work.store).with_result_backend(
        RedisAsyncResultBackend(redis_url=work.store)
    )

    @broker.task(task_name="nothing")
    async def nothing() -> int:
        return 1

    await broker.startup()
    receiver = asyncio.create_task(run_receiver_task(broker, max_async_tasks=work.workers))

    async def lives(jobs: int) -> None:
        kicked = [await nothing.kiq() for _ in range(jobs)]
        for each in kicked:
            result = await each.wait_result(check_interval=POLL_S)
            assert result.return_value == 1

    await lives(WARM_UP)
    start = time.perf_counter()
    await lives(work.jobs)
    told(work.jobs, time.perf_counter() - start)
    receiver.cancel()
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
