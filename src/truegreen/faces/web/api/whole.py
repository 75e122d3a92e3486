"""Everything at once over HTTP: the matrix, the audit, and the signed receipt of a task."""

from __future__ import annotations

import os
import time
from typing import Any

from starlette.responses import Response

from truegreen.faces import audit_words
from truegreen.faces.documents import Document
from truegreen.faces.figures import WEEK, ended_document, matrix_document, measured
from truegreen.faces.web import outer_shapes as shapes
from truegreen.faces.web.answering import tagged
from truegreen.faces.web.api.taking import Age, Since, Taken, ago
from truegreen.faces.web.house import House
from truegreen.faces.web.routes import API, OPERATORS, READERS, Visit, route
from truegreen.outlets.audit import Report, audit, read_probes
from truegreen.outlets.keys import Keyring
from truegreen.outlets.receipts import issue


class AuditQuery(Taken, frozen=True):
    """How far to look back."""

    since: Age = "7d"


@route("GET", f"{API}/matrix", READERS, query=Since, answers=shapes.Matrix)
def matrix(visit: Visit, query: Since) -> Document:
    """How many tasks stand in which cell now; with since, how many runs ended there."""
    ledger = visit.house.ledger
    inbox = sum(pile.items for pile in ledger.piles())
    if query.since is None:
        counted = matrix_document(ledger.counts(), inbox=inbox)
        return measured(ledger, counted, time.time_ns() // 1000 - WEEK)
    since = ago(query.since)
    return measured(ledger, ended_document(ledger.ended_since(since), since, inbox=inbox), since)


@route("GET", f"{API}/audit", READERS, query=AuditQuery, answers=dict[str, Any], heavy=True)
def audit_route(visit: Visit, query: AuditQuery) -> Document:
    """What agents claimed beside what was found; it takes longer, the longer the time is."""
    return audit_words.document(audited(visit.house, ago(query.since)))


def audited(house: House, since: int) -> Report:
    """The audit since an instant."""
    probings, unread = read_probes(os.path.join(house.config.state_dir, "probes"))
    return audit(
        house.ledger.audited(since),
        house.ledger.answered(since),
        since=since,
        until=time.time_ns() // 1000,
        unattended=house.ledger.unattended(),
        probings=probings,
        unread=unread,
    )


@route("GET", f"{API}/receipts/{{task}}", OPERATORS, answers=shapes.Receipt, heavy=True)
def receipt(visit: Visit, task: str) -> Response:
    """The signed receipt of a settled task; it holds the whole contract, so it is not for all."""
    house = visit.house
    signer = Keyring(house.config.state_dir).signing()
    made = issue(house.ledger, house.ledger.find("tsk", task), signer)
    return tagged(visit.request, made.envelope)
