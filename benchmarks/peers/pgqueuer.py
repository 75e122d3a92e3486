"""PgQueuer on PostgreSQL: enqueued in a batch, claimed by ten and done by worker processes."""

from __future__ import annotations

import asyncio

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

from benchmarks.peers.driver import crowded, given, ready, serves

MODULE = "benchmarks.peers.pgqueuer"
BATCH = 10


async def serve(store: str) -> None:
    """A worker that ends when the queue is empty."""
    connection = await asyncpg.connect(store)
    queue = PgQueuer(AsyncpgDriver(connection))
    done: list[int] = []

    @queue.entrypoint("nothing")
    async def nothing(_job: object) -> None:
        done.append(1)

    ready()
    await queue.qm.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
    print(len(done), flush=True)


async def install(store: str) -> None:
    """Its tables."""
    connection = await asyncpg.connect(store)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


async def enqueue(store: str, jobs: int) -> None:
    """All of them at once."""
    connection = await asyncpg.connect(store)
    queries = Queries(AsyncpgDriver(connection))
    await queries.enqueue(["nothing"] * jobs, [None] * jobs, [0] * jobs)
    await connection.close()


def main() -> None:
    """One batch, then the workers."""
    work = given()
    if serves():
        asyncio.run(serve(work.store))
        return
    asyncio.run(install(work.store))
    crowded(MODULE, work, lambda jobs: asyncio.run(enqueue(work.store, jobs)))


if __name__ == "__main__":
    main()
