"""What holds over everybody, over HTTP: breakers and limits."""

from __future__ import annotations

from truegreen.faces.budgets import breaker_document, limit_document
from truegreen.faces.documents import Document
from truegreen.faces.web import outer_shapes as shapes
from truegreen.faces.web.routes import API, READERS, Visit, route


@route("GET", f"{API}/breakers", READERS, answers=shapes.Breakers)
def breakers(visit: Visit) -> Document:
    """Breakers that hold tasks back first, then the latest that did."""
    return {"breakers": [breaker_document(each) for each in visit.house.ledger.breakers()]}


@route("GET", f"{API}/limits", READERS, answers=shapes.Limits)
def limits(visit: Visit) -> Document:
    """What all may spend together, and what of it is spent or set aside."""
    return {"limits": [limit_document(each) for each in visit.house.ledger.limits()]}
