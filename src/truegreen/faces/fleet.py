"""The fleet as a document: workers, what waits for one, and runs whose worker fell silent."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from truegreen.errors import NotRunning
from truegreen.faces.documents import Document
from truegreen.faces.times import instant
from truegreen.model import Light
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.workers import Listed, WorkerState
from truegreen.supervisor.holder import node


def fleet_document(ledger: Ledger) -> Document:
    """Who offers seats, how much is queued, and which runs are suspect."""
    depth = ledger.depth()
    return {
        "workers": [worker_document(each) for each in ledger.workers()],
        "queue": {"queued": depth.queued, "oldest_at": instant(depth.oldest_at)},
        "suspects": [
            {"task": each.task, "run": each.run, "holder": each.lease.holder}
            for each in ledger.overdue()
        ],
    }


NOBODY = "nobody looks for work on this store: truegreen up, scheduler or worker does"
"""What a queued task may wait for although nothing holds it back."""


def is_unattended(ledger: Ledger, task: str) -> bool:
    """Whether a queued task is held back by nothing, and nobody is heard of who would start it."""
    try:
        held = ledger.why(task).hold
    except NotRunning:  # it is under way, or over
        return False
    return held is None and all(each.state is not WorkerState.READY for each in ledger.workers())


def elsewhere(facts: Mapping[str, Any]) -> str:
    """The host that has what a run wrote and left, unless it is this one: its paths are there."""
    host: str = (facts.get("ground") or {}).get("host", "")
    return "" if host == node() else host


def standing_of(listed: Listed, suspects: Container[str]) -> tuple[str, Light]:
    """How a worker stands, in one word and its light; `suspects` hold leases that ran out."""
    if listed.state is WorkerState.STALE:
        return "lost", Light.RED
    if listed.worker.holder in suspects:
        return "suspect", Light.AMBER
    if listed.state is WorkerState.DRAINING:
        return "draining", Light.AMBER
    return "ready", Light.BLUE if listed.worker.busy else Light.GREY


def worker_document(listed: Listed) -> Document:
    """One who offers seats."""
    worker = listed.worker
    return {
        "name": worker.name,
        "holder": worker.holder,
        "state": listed.state,
        "labels": list(listed.labels),
        "seats": worker.seats,
        "busy": worker.busy,
        "version": worker.version,
        "started_at": instant(worker.started_at),
        "seen_at": instant(worker.seen_at),
    }
