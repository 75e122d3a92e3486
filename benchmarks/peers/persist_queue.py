"""persist-queue with acknowledgements: put, got, acknowledged."""

from __future__ import annotations

from persistqueue import SQLiteAckQueue

from benchmarks.peers.driver import WARM_UP, given, timed, told


def main() -> None:
    """One process; its connections are set to `synchronous` FULL."""
    work = given()
    queue = SQLiteAckQueue(work.store)
    for connection in {id(each): each for each in (queue._getter, queue._putter)}.values():  # noqa: SLF001 - no setting for it
        connection.execute("PRAGMA synchronous = FULL")

    def lives(jobs: int) -> None:
        for _ in range(jobs):
            queue.put("nothing")
            queue.ack(queue.get())

    lives(WARM_UP)
    told(work.jobs, timed(lambda: lives(work.jobs)))


if __name__ == "__main__":
    main()
