"""What the API says about itself, for programs that make clients from it."""

from __future__ import annotations

from functools import cache
from typing import Any

from starlette.responses import Response

from truegreen.faces.documents import encoded
from truegreen.faces.web.answering import tagged
from truegreen.faces.web.openapi import description
from truegreen.faces.web.routes import API, READERS, Visit, route


@route("GET", f"{API}/openapi.json", READERS, answers=dict[str, Any])
def openapi(visit: Visit) -> Response:
    """This description: OpenAPI 3.1, made from the routes that are served."""
    return tagged(visit.request, _described())  # names of secrets in it are no secrets


@cache
def _described() -> bytes:
    return encoded(description())
