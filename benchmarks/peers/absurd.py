"""absurd on PostgreSQL: spawned one by one (it has no batch), claimed by ten, done by a crowd."""

from __future__ import annotations

import psycopg
from absurd_sdk import Absurd
from absurdctl import BUNDLED_SCHEMA_SQL

from benchmarks.peers.driver import crowded, given, ready, serves

MODULE = "benchmarks.peers.absurd"
BATCH = 10


def application(store: str, done: list[int]) -> Absurd:
    """One task of nothing."""
    app = Absurd(store)

    @app.register_task(name="nothing")
    def nothing(_params: object, _context: object) -> int:
        done.append(1)
        return 1

    return app


def serve(store: str) -> None:
    """A worker that ends when the queue is empty."""
    done: list[int] = []
    app = application(store, done)
    ready()
    before = -1
    while len(done) > before:
        before = len(done)
        app.work_batch(batch_size=BATCH)
    print(len(done), flush=True)


def main() -> None:
    """Its schema, a queue, the tasks, the workers."""
    work = given()
    if serves():
        serve(work.store)
        return
    with psycopg.connect(work.store) as connection:
        connection.execute(BUNDLED_SCHEMA_SQL.encode())
    app = application(work.store, [])
    app.create_queue()

    def enqueue(jobs: int) -> None:
        for _ in range(jobs):
            app.spawn("nothing", {})

    crowded(MODULE, work, enqueue)


if __name__ == "__main__":
    main()
