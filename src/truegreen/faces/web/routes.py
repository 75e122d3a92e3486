"""What can be asked over HTTP: every route with who may ask it, what it takes and what it answers.

A route without roles can't be written down. What is not written down here is not served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from truegreen.faces.web.house import House
from truegreen.facts import Actor
from truegreen.model import Role
from truegreen.tuples import NamedTuple

F = TypeVar("F", bound=Callable[..., Any])


class Everybody(frozenset[Role]):
    """No role at all: whoever comes may ask. An empty set of roles is not it, but a mistake."""


READERS = frozenset({Role.VIEWER, Role.LEAD, Role.OPERATOR})
LEADERS = frozenset({Role.LEAD, Role.OPERATOR})
OPERATORS = frozenset({Role.OPERATOR})
DOERS = frozenset({Role.AGENT})
PUBLIC: frozenset[Role] = Everybody()
"""Few routes are so, and a test names them."""

API = "/api/v1"
METRICS = "/metrics"
"""Where Prometheus looks unless it is told otherwise; the API has the same."""
HEALTH = "/healthz"
"""Where probes look unless they are told otherwise; the API has the same."""
METHODS = ("GET", "POST", "DELETE")
_BOUND = frozenset({Role.AGENT, Role.JUDGE})
_PARTS = ("", "run", "task")


class Visit(NamedTuple):
    """Somebody who asks for something."""

    house: House
    request: Request
    actor: Actor
    key: str | None = None
    """What makes the same request twice one request; for the ledger's verbs."""
    again: bool = False
    """Whether the same request came before under the same key."""


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No query, or no body."""


class Route(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    roles: frozenset[Role]
    handle: Callable[..., Any]
    summary: str
    query: type[msgspec.Struct]
    body: type[msgspec.Struct | bytes] | None
    """What it takes; `bytes` are left for the function to read."""
    answers: Any
    """The type of the document that comes back, or several; None where it is none of ours."""
    status: int
    own: str
    """For an agent: which part of the path must be its own run or task."""
    media: str
    """What comes back where it is no document: `text/html`, `text/event-stream`, …"""
    heavy: bool
    """Whether it may take long; few of these are answered at a time."""

    @property
    def public(self) -> bool:
        """Whether it asks nobody who they are."""
        return isinstance(self.roles, Everybody)

    @property
    def is_api(self) -> bool:
        """Whether it is described to programs."""
        return self.path.startswith(API)


def is_for_programs(path: str) -> bool:
    """Whether what is said about a path is read by programs."""
    return path.startswith(API) or path in (METRICS, HEALTH)


ROUTES: list[Route] = []


def route(
    method: str,
    path: str,
    roles: frozenset[Role],
    *,
    query: type[msgspec.Struct] = Nothing,
    body: type[msgspec.Struct | bytes] | None = None,
    answers: Any = None,
    status: int = 200,
    own: str = "",
    media: str = "application/json",
    heavy: bool = False,
) -> Callable[[F], F]:
    """Write down a route; the function's docstring is what the API's description says about it.

    A plain function is called in a thread and gets (visit, **path parts, query=…, body=…), the last
    two only where it declares them; it answers with a document. A coroutine is for what streams. A
    POST that takes no body is refused one.
    """

    def keep(function: F) -> F:
        summary = (function.__doc__ or "").strip().split("\n")[0]
        made = Route(
            method=method,
            path=path,
            roles=roles,
            handle=function,
            summary=summary,
            query=query,
            body=Nothing if body is None and method == "POST" else body,
            answers=answers,
            status=status,
            own=own,
            media=media,
            heavy=heavy,
        )
        _check(made)
        ROUTES.append(made)
        return function

    return keep


def _check(made: Route) -> None:
    """What is forgotten here would be open to everybody, or to every agent."""
    wrong = {
        "no role": not made.public and not made.roles,
        "a role that nobody has": not all(isinstance(role, Role) for role in made.roles),
        "no method of ours": made.method not in METHODS,
        "no path": not made.path.startswith("/"),
        "no word about it": not made.summary,
        "an agent, and not what must be its own": bool(made.roles & _BOUND) and not made.own,
        "a part that is not in the path": made.own not in _PARTS
        or (made.own != "" and f"{{{made.own}}}" not in made.path),
        "the same path and method twice": any(
            (made.method, made.path) == (known.method, known.path) for known in ROUTES
        ),
    }
    found = [words for words, is_so in wrong.items() if is_so]
    if found:
        raise TypeError(f"{made.method} {made.path} has {' and '.join(found)}")


Answer = Response | dict[str, Any] | list[Any]
