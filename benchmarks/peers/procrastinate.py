"""procrastinate on PostgreSQL: deferred in a batch, done by worker processes; jobs are kept."""

from __future__ import annotations

import asyncio

from procrastinate import App, PsycopgConnector

from benchmarks.peers.driver import crowded, given, ready, serves

MODULE = "benchmarks.peers.procrastinate"


def application(store: str) -> App:
    """One task of nothing, and a count of how often it was done."""
    app = App(connector=PsycopgConnector(conninfo=store, min_size=1, max_size=4))

    @app.task(name="nothing")
    async def nothing() -> None:
        done.append(1)

    return app


done: list[int] = []


async def serve(store: str) -> None:
    """A worker that ends when it has caught up."""
    app = application(store)
    async with app.open_async():
        ready()
        await app.run_worker_async(wait=False, concurrency=1, install_signal_handlers=False)
    print(len(done), flush=True)


def main() -> None:
    """All in one batch, then the workers."""
    work = given()
    if serves():
        asyncio.run(serve(work.store))
        return
    app = application(work.store)
    with app.open():
        app.schema_manager.apply_schema()
        task = app.tasks["nothing"]
        crowded(MODULE, work, lambda jobs: task.batch_defer(*({} for _ in range(jobs))))


if __name__ == "__main__":
    main()
