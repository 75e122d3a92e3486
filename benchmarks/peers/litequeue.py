"""litequeue: put, popped with a lock, done."""

from __future__ import annotations

from litequeue import LiteQueue

from benchmarks.peers.driver import WARM_UP, given, timed, told


def main() -> None:
    """One process; it sets `synchronous` NORMAL itself, which is put back to FULL."""
    work = given()
    queue = LiteQueue(work.store)
    queue.conn.execute("PRAGMA synchronous = FULL")

    def lives(jobs: int) -> None:
        for _ in range(jobs):
            queue.put("nothing")
            queue.done(queue.pop().message_id)

    lives(WARM_UP)
    told(work.jobs, timed(lambda: lives(work.jobs)))


if __name__ == "__main__":
    main()
