"""Whether the server lives. The one thing that anybody may ask."""

from __future__ import annotations

from truegreen.faces.documents import Document
from truegreen.faces.web import shapes
from truegreen.faces.web.routes import API, HEALTH, PUBLIC, Visit, route


@route("GET", HEALTH, PUBLIC, answers=shapes.Health)
@route("GET", f"{API}/healthz", PUBLIC, answers=shapes.Health)
def healthz(visit: Visit) -> Document:  # noqa: ARG001 - it says nothing about anything
    """Whether the server answers; nothing else is told to somebody unknown."""
    return {"status": "ok"}
