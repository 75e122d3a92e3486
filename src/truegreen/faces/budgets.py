"""Breakers and limits as documents, the same for the command line and HTTP."""

from __future__ import annotations

from truegreen.faces.documents import Document
from truegreen.faces.times import instant
from truegreen.record.ledger.fleet import Standing
from truegreen.record.ledger.limits import Used


def breaker_document(found: Standing) -> Document:
    """A breaker: whom it holds back, why, until when."""
    what = found.breaker
    until = None if found.waits_for_a_person else instant(what.open_until)
    closes = [f'truegreen breakers close {what.id} --reason "the cause is fixed"']
    return {
        "id": what.id,
        "kind": what.kind,
        "subject": what.subject,
        "name": what.name,
        "signature": what.signature,
        "state": found.state,
        "trips": what.trips,
        "opened_at": instant(what.opened_at),
        "open_until": until,
        "needs_a_person": found.waits_for_a_person,
        "trying": found.trying or None,
        "closed_at": instant(what.closed_at),
        "closed_by": what.closed_by,
        "reason": what.reason,
        "next": closes if what.closed_at is None else [],
    }


def limit_document(used: Used) -> Document:
    """A limit: about whom, and what of it is used."""
    return {
        "id": used.row.id,
        "file": used.row.file,
        "per": str(used.per),
        "agent": used.row.agent,
        "label": used.label,
        "used": {what: amount for what, (amount, _) in used.amounts().items()},
        "of": {what: most for what, (_, most) in used.amounts().items()},
        "set_aside_usd": used.set_aside / 1e6,
        "full": used.full or None,
        "until": instant(used.until),
    }
