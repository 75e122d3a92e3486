"""Prefect with the server that it starts for itself: flow runs of nothing, then task runs.

Its store is a folder. It has no workers here: a flow runs where it is called, and its server keeps
the states. By a work pool and a worker it is slower.
"""

from __future__ import annotations

import os

from benchmarks.peers.driver import given, timed, told

SETTINGS = {
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "400",
    "DO_NOT_TRACK": "1",
}


def main() -> None:
    """Flow runs are the measure; how many task runs a second is told beside it."""
    work = given()
    os.environ |= SETTINGS | {"PREFECT_HOME": work.store}
    os.environ.pop("PREFECT_API_URL", None)
    from prefect import flow, task  # noqa: PLC0415 - reads its settings

    @flow
    def nothing() -> int:
        return 1

    @task
    def step() -> int:
        return 1

    @flow
    def many(times: int) -> int:
        return sum(step() for _ in range(times))

    def flows(times: int) -> None:
        for _ in range(times):
            nothing()

    flows(1)
    many(1)
    took = timed(lambda: flows(work.jobs))
    steps = 5 * work.jobs
    told(work.jobs, took, tasks=steps / timed(lambda: many(steps)))


if __name__ == "__main__":
    main()
