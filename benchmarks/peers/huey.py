"""huey on SQLite: put into the queue, taken out, run, its result stored and read."""

from __future__ import annotations

from huey import SqliteHuey

from benchmarks.peers.driver import WARM_UP, given, timed, told


def main() -> None:
    """One process puts and takes, `synchronous` FULL."""
    work = given()
    queue = SqliteHuey("bench", filename=work.store, fsync=True)

    @queue.task()
    def nothing() -> int:
        return 1

    def lives(jobs: int) -> None:
        for _ in range(jobs):
            result = nothing()
            queue.execute(queue.dequeue())
            assert result.get() == 1

    lives(WARM_UP)
    told(work.jobs, timed(lambda: lives(work.jobs)))


if __name__ == "__main__":
    main()
