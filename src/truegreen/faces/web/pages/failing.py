"""How people are told what went wrong: a page in the same frame that says what to do next.

It asks the store nothing, because the store may be what went wrong.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from truegreen.errors import InvalidInput, TruegreenError
from truegreen.faces.clean import shortened
from truegreen.faces.documents import LONGEST_MESSAGE
from truegreen.faces.web.house import House
from truegreen.faces.web.pages import rendering

_UNKNOWN = 401
_SAID: dict[int, tuple[str, str]] = {
    400: ("That request can't be read", "Go back and try it from the page itself."),
    403: (
        "You may not do this",
        "Somebody with the role that it takes can: truegreen login prints their link.",
    ),
    404: (
        "There is nothing here",
        "Check the address. A task is found by its id, or by words of its title.",
    ),
    405: ("That can't be done here", "Go back and use the buttons of the page."),
    409: (
        "That can't be done now",
        "Something may have changed meanwhile: go back and look how it stands.",
    ),
    410: ("That is sealed for ever", "Nothing leads on from there. Make a new task instead."),
    413: ("That is too much at once", "Go back and send less."),
    422: ("That is not quite right", "Go back, change it, and send it again."),
    423: ("Nothing starts now", "The store is frozen; the settings say by whom, and thaw it."),
    500: ("Something broke in truegreen", "A report was written; truegreen doctor looks further."),
    503: (
        "The store can't be reached",
        "Nothing was changed. truegreen doctor says what is wrong.",
    ),
    507: ("There is no room left", "Nothing was written. Make room, then do it again."),
}
"""What people are told first, and what they can do about it."""
_OTHERWISE = ("That did not work", "Go back and look how things stand.")


def error_page(house: House) -> Callable[[Request, TruegreenError], Response]:  # noqa: ARG001
    """How people are told what went wrong."""

    def show(request: Request, error: TruegreenError) -> Response:
        known = error.http_status != _UNKNOWN
        template = "error.html" if known else "login.html"
        title, advice = _SAID.get(error.http_status, _OTHERWISE)
        given = {
            "title": title,
            "advice": advice,
            "message": shortened(error.message, LONGEST_MESSAGE),
            "code": error.code,
            "allowed": [str(each) for each in error.allowed],
            "retryable": error.retryable,
            "back": _back(request, error),
        }
        text = rendering.fragment(template, frame=rendering.stranger(leads_on=known), **given)
        return HTMLResponse(text, error.http_status)

    return show


def _back(request: Request, error: TruegreenError) -> str:
    """The page that a refused deed was asked for on, or the list without its wrong filters."""
    if request.method == "POST":
        return request.url.path.rstrip("/").rpartition("/")[0] or "/"
    return request.url.path if isinstance(error, InvalidInput) else "/"
