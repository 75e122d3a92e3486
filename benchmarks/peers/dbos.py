"""DBOS: a workflow of nothing, by its queue; threads of one process, as it is meant to be used."""

from __future__ import annotations

import sqlite3
import sys

from dbos import DBOS, DBOSConfig

from benchmarks.peers.driver import WARM_UP, given, timed, told

POLL_S = 0.01


@DBOS.workflow()
def nothing() -> int:
    """A job."""
    return 1


def queued(jobs: int) -> None:
    """By the queue: enqueued, claimed by its thread, run, its result read."""
    handles = [DBOS.enqueue_workflow("bench", nothing) for _ in range(jobs)]
    assert all(handle.get_result(polling_interval_sec=POLL_S) == 1 for handle in handles)


def called(jobs: int) -> None:
    """Called, which writes it down before and after; nobody claims."""
    for _ in range(jobs):
        nothing()


def main() -> None:
    """By the queue, or by calls where the last word says so."""
    work = given()
    store = work.store
    if "://" not in store:
        # It leaves the journal as it is; a log is the faster one, and no less durable.
        with sqlite3.connect(store) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        store = f"sqlite:///{store}"
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": store,
        "log_level": "ERROR",
        "executor_id": "bench",
        "application_version": "1",
    }
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue("bench", polling_interval_sec=POLL_S)
    lives = called if sys.argv[4:] == ["called"] else queued
    lives(WARM_UP)
    took = timed(lambda: lives(work.jobs))
    told(work.jobs, took)
    DBOS.destroy()


if __name__ == "__main__":
    main()
