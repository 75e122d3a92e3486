"""The fleet over HTTP: who offers seats, what waits, and which runs are suspect."""

from __future__ import annotations

from msgspec import Struct

from truegreen.faces.documents import Document
from truegreen.faces.fleet import fleet_document
from truegreen.faces.web.routes import API, READERS, Visit, route
from truegreen.record.ledger.workers import WorkerState


class Worker(Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody who offers seats, as far as it was heard of."""

    name: str
    holder: str
    state: WorkerState
    labels: list[str]
    seats: int
    busy: int
    version: str
    started_at: str
    seen_at: str


class Queue(Struct, frozen=True, forbid_unknown_fields=True):
    """What waits, and since when the oldest that could start."""

    queued: int
    oldest_at: str | None


class Suspect(Struct, frozen=True, forbid_unknown_fields=True):
    """A run whose lease ran out, and who held it."""

    task: str
    run: str
    holder: str


class Fleet(Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    workers: list[Worker]
    queue: Queue
    suspects: list[Suspect]


@route("GET", f"{API}/workers", READERS, answers=Fleet)
def workers(visit: Visit) -> Document:
    """Who offers seats on which host, what is queued, and runs whose worker fell silent."""
    return fleet_document(visit.house.ledger)
