"""What the pages load beside themselves: sheets, scripts, a picture. Nothing from other hosts.

Each has a digest of its content in its name, so that a browser keeps it for ever and a new version
of it has another name. They are read once; no path of a request is looked up on the disk.
"""

from __future__ import annotations

import functools
import hashlib
import os

from starlette.responses import Response

from truegreen.errors import NotFound
from truegreen.faces.web.pages import colours
from truegreen.faces.web.routes import PUBLIC, Visit, route
from truegreen.tuples import NamedTuple

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "static")
SHEET = "truegreen.css"
_FOR_EVER = "public, max-age=31536000, immutable"
_MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_DIGITS = 12


class Asset(NamedTuple):
    """A file as it is served."""

    href: str
    media: str
    body: bytes


@functools.cache
def assets() -> dict[str, Asset]:
    """Every file by its own name."""
    found = {}
    for folder, _, names in os.walk(FOLDER):
        for name in names:
            if os.path.splitext(name)[1] in _MEDIA:
                found[name] = _read(folder, name)
    return found


def _read(folder: str, name: str) -> Asset:
    with open(os.path.join(folder, name), "rb") as file:
        body = file.read()
    if name == SHEET:
        body = colours.sheet().encode() + body
    stem, end = os.path.splitext(name)
    digest = hashlib.sha256(body).hexdigest()[:_DIGITS]
    return Asset(f"/static/{stem}.{digest}{end}", _MEDIA[end], body)


@functools.cache
def _by_href() -> dict[str, Asset]:
    return {asset.href: asset for asset in assets().values()}


@route("GET", "/static/{name}", PUBLIC, media="text/css")
def static(visit: Visit, name: str) -> Response:  # noqa: ARG001 - it is the same for everybody
    """A file that the pages need."""
    found = _by_href().get(f"/static/{name}")
    if found is None:
        raise NotFound("there is no such file; reload the page that asked for it")
    headers = {"Cache-Control": _FOR_EVER, "Content-Type": found.media}
    return Response(found.body, headers=headers)
