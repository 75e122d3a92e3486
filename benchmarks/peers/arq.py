"""arq on Redis: enqueued one by one, done by one process with eight jobs at a time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker

from benchmarks.peers.driver import WARM_UP, Work, given, told


async def nothing(_context: dict[str, Any]) -> int:
    """A job."""
    return 1


async def lives(settings: RedisSettings, work: Work, jobs: int) -> float:
    """How long so many take."""
    pool = await create_pool(settings)
    start = time.perf_counter()
    for _ in range(jobs):
        await pool.enqueue_job("nothing")
    worker = Worker(
        functions=[nothing],
        redis_settings=settings,
        burst=True,
        max_jobs=work.workers,
        poll_delay=0.01,
        handle_signals=False,
    )
    await worker.main()
    took = time.perf_counter() - start
    assert worker.jobs_complete == jobs, f"{worker.jobs_complete} of {jobs} jobs were done"
    await worker.close()
    await pool.aclose()
    return took


async def main() -> None:
    """Warm, then timed."""
    work = given()
    settings = RedisSettings.from_dsn(work.store)
    await lives(settings, work, WARM_UP)
    told(work.jobs, await lives(settings, work, work.jobs))


if __name__ == "__main__":
    asyncio.run(main())
