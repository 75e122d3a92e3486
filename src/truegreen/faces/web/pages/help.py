"""What the words, glyphs and colours mean, and what errors ask for, out of the model itself."""

from __future__ import annotations

from starlette.responses import Response

from truegreen.errors import TruegreenError
from truegreen.faces.documents import Document
from truegreen.faces.web.pages.rendering import page
from truegreen.faces.web.routes import READERS, Visit, route
from truegreen.model import DETAILS, RUNS
from truegreen.tuples import NamedTuple

KEYS = (
    ("j, k", "the next, the one before (inbox)"),
    ("Enter", "open what is chosen"),
    ("a, s, r, d", "take, put off, resolve, decide (inbox)"),
    ("Escape", "close what is open"),
    ("?", "these keys, in the inbox"),
)


class Explained(NamedTuple):
    """An error: its code, how it is answered, and what it says."""

    code: str
    http_status: int
    exit_status: int
    retryable: bool
    words: str


@route("GET", "/help", READERS, media="text/html")
def show(visit: Visit) -> Response:
    """What everything means."""
    given: Document = {"errors": errors(), "runs": RUNS, "details": DETAILS, "keys": KEYS}
    return page(visit, "help.html", section="help", **given)


def errors() -> list[Explained]:
    """Every error that anybody can be told, by its code."""
    found = {kind.code: kind for kind in _family(TruegreenError) if kind is not TruegreenError}
    return [
        Explained(
            code, kind.http_status, kind.exit_status, kind.retryable, (kind.__doc__ or "").strip()
        )
        for code, kind in sorted(found.items())
    ]


def _family(kind: type[TruegreenError]) -> list[type[TruegreenError]]:
    # Further down they may share the code of their parent, whose words are meant.
    below = [each for child in kind.__subclasses__() for each in _family(child)]
    return [*below, kind]
