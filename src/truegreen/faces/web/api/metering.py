"""The record in numbers, as Prometheus reads them."""

from __future__ import annotations

from starlette.responses import Response

from truegreen.faces.web.routes import API, METRICS, READERS, Visit, route
from truegreen.outlets.metrics import exposition

_MEDIA = "text/plain; version=0.0.4; charset=utf-8"


@route("GET", METRICS, READERS, media="text/plain")
@route("GET", f"{API}/metrics", READERS, media="text/plain")
def metrics(visit: Visit) -> Response:
    """All metrics in Prometheus' text format; they come out of the record, so none is lost."""
    house = visit.house
    body = exposition(house.ledger, listeners=house.live.listeners)
    return Response(body, media_type=_MEDIA)
