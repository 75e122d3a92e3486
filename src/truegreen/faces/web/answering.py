"""From a request to an answer: who asks, whether they may, what they bring, what comes back.

One function for all routes, so that none can forget a step. What went wrong is said as a document
to programs and as a page to people.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import Any, get_origin

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from truegreen.contract import checked
from truegreen.contract.reading import taken
from truegreen.errors import Broken, Forbidden, InvalidInput, TruegreenError, Unavailable
from truegreen.faces.documents import encoded
from truegreen.faces.web.guarding import said
from truegreen.faces.web.house import House
from truegreen.faces.web.identity import identify
from truegreen.faces.web.redacting import redacted_bytes
from truegreen.faces.web.reporting import report
from truegreen.faces.web.routes import Nothing, Route, Visit, is_for_programs
from truegreen.facts import Actor
from truegreen.model import Role
from truegreen.tuples import NamedTuple

NOBODY = Actor(Role.VIEWER, "nobody")
"""Who asks where everybody may."""
HEAVY_AT_ONCE = 2
_NOT_MODIFIED, _BAD_REQUEST, _UNKNOWN = 304, 400, 401
_JSON, _FORM = "application/json", "application/x-www-form-urlencoded"
_MOST_FIELDS = 100
_LONGEST_KEY = 200
Endpoint = Callable[[Request], Awaitable[Response]]
Shown = Callable[[Request, TruegreenError], Response]
"""How an error is shown to people."""


class Malformed(InvalidInput):
    """What came is no request of this kind at all."""

    http_status = _BAD_REQUEST


class Asked(NamedTuple):
    """A request on its way to its route."""

    house: House
    given: Route
    request: Request


def endpoint(house: House, given: Route, shown: Shown) -> Endpoint:
    """What answers one route."""
    asking = partial(Asked, house, given)

    async def answer(request: Request) -> Response:
        try:
            return await _answered(asking(request))
        except ClientDisconnect:
            return Response(status_code=_BAD_REQUEST)
        except TruegreenError as error:
            told = _fit_for(request, error)
        except Exception as error:  # noqa: BLE001 - the one place where nothing may fall through
            told = defect(error)
            await anyio.to_thread.run_sync(report, house.config, request, error)
        return error_response(told) if is_for_programs(given.path) else shown(request, told)

    return answer


def error_response(error: TruegreenError) -> Response:
    """An error as programs read it."""
    response = said(error)
    if error.http_status == _UNKNOWN:
        response.headers["WWW-Authenticate"] = "Bearer"
    if error.retryable:
        response.headers["Retry-After"] = "1"
    return response


def _fit_for(request: Request, error: TruegreenError) -> TruegreenError:
    """What is wrong with the house itself is said in full to those who can mend it."""
    actor = getattr(request.state, "actor", NOBODY)
    if actor.role is Role.OPERATOR or not isinstance(error, Unavailable | Broken):
        return error
    return type(error)((type(error).__doc__ or "unavailable").splitlines()[0])


def defect(error: Exception) -> TruegreenError:
    """What to say of an error that nobody foresaw."""
    return Broken(f"internal error: {type(error).__name__}; please report it")


# --- the way of a request


async def _answered(asked: Asked) -> Response:
    given, request = asked.given, asked.request
    if given.body is None and not inspect.iscoroutinefunction(given.handle):
        return await _in_thread(asked, partial(_read_only, asked))
    actor = await anyio.to_thread.run_sync(_admitted, asked)
    raw = b"" if given.body in (None, bytes) else await request.body()
    visit = await anyio.to_thread.run_sync(_visit, asked, actor, raw)
    extra = _extra(asked, raw)
    if inspect.iscoroutinefunction(given.handle):
        document = await given.handle(visit, **extra)
        return _response(asked, actor, document)
    return await _in_thread(asked, lambda: _handled(asked, visit, extra))


async def _in_thread(asked: Asked, work: Callable[[], Response]) -> Response:
    limiter = _limiter(asked.request) if asked.given.heavy else None
    return await anyio.to_thread.run_sync(work, limiter=limiter)


def _limiter(request: Request) -> anyio.CapacityLimiter:
    """What takes long must not take every thread."""
    kept: anyio.CapacityLimiter | None = getattr(request.app.state, "heavy", None)
    if kept is None:
        kept = request.app.state.heavy = anyio.CapacityLimiter(HEAVY_AT_ONCE)
    return kept


def _read_only(asked: Asked) -> Response:
    """All of a request that brings nothing, in one go."""
    actor = _admitted(asked)
    return _handled(asked, Visit(asked.house, asked.request, actor), _extra(asked, b""))


def _handled(asked: Asked, visit: Visit, extra: dict[str, Any]) -> Response:
    return _response(asked, visit.actor, asked.given.handle(visit, **extra))


def _visit(asked: Asked, actor: Actor, raw: bytes) -> Visit:
    key, again = _request_key(asked, actor, raw)
    return Visit(asked.house, asked.request, actor, key, again)


# --- who


def _admitted(asked: Asked) -> Actor:
    if asked.given.public:
        return NOBODY
    actor = identify(asked.house.ledger, asked.request)
    asked.request.state.actor = actor
    if actor.role not in asked.given.roles:
        listed = sorted(asked.given.roles)
        message = f"{actor} may not do this; it takes the role {', '.join(listed)}"
        raise Forbidden(message, allowed=tuple(listed))
    if actor.role in (Role.AGENT, Role.JUDGE):
        _check_own(asked, actor)
    return actor


def _check_own(asked: Asked, actor: Actor) -> None:
    """The agent of a run sees and does what is its own, and nothing else."""
    parts = asked.request.path_params
    run = parts.get("run")
    if asked.given.own == "task" and actor.run:
        run = actor.run if asked.house.ledger.run(actor.run)[1] == parts.get("task") else None
    if not asked.given.own or actor.run is None or run != actor.run:
        raise Forbidden(f"{actor} speaks for {actor.run} and for nothing else")


# --- what they bring


def _extra(asked: Asked, raw: bytes) -> dict[str, Any]:
    given, request = asked.given, asked.request
    extra: dict[str, Any] = dict(request.path_params)
    if given.query is not Nothing:
        extra["query"] = _query(given.query, request)
    elif given.is_api and request.query_params:
        raise InvalidInput(f"{given.path} takes no query", path="query")
    if given.body is None or given.body is bytes:
        return extra
    body = _body(given.body, request, raw, is_api=given.is_api)
    return extra if given.body is Nothing else {**extra, "body": body}


@cache
def _lists(kind: type[msgspec.Struct]) -> frozenset[str]:
    """What may be said more than once."""
    found = msgspec.structs.fields(kind)
    several = [each.name for each in found if get_origin(each.type) in (list, tuple)]
    return frozenset(several)


def _query(kind: type[msgspec.Struct], request: Request) -> Any:
    listed = _lists(kind)
    given: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        if name not in listed and len(values) > 1:
            raise InvalidInput(f"{name} is given more than once", path="query")
        given[name] = values if name in listed else values[0]
    found = _converted(given, kind)
    for name, value in given.items():
        if value and getattr(found, name) is None:  # the word null is no value
            raise InvalidInput(f"{name}: {value!r} is no value of it", path="query")
    return found


def _body(kind: Any, request: Request, raw: bytes, *, is_api: bool) -> Any:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not raw and media in ("", _JSON, _FORM):
        return _converted({}, kind)
    if media == _FORM and not is_api:
        return _converted(_form(raw, kind), kind)
    if media != _JSON:
        raise Malformed(f"expected a body of type {_JSON}, not {media or 'none'}")
    try:
        try:
            return msgspec.json.decode(raw, type=kind)
        except msgspec.ValidationError:
            return taken(msgspec.json.decode(raw), kind)  # says where and what instead
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"the body is no JSON: {error}") from None


def _form(raw: bytes, kind: Any) -> dict[str, Any]:
    """What a browser's form says; a known field that is empty is one that was left out."""
    from urllib.parse import parse_qsl  # noqa: PLC0415 - forms only

    try:
        text = raw.decode()
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise Malformed("the form can't be read") from None
    if not pairs:
        raise Malformed("the form can't be read")
    known = set(kind.__struct_fields__)
    return {name: value for name, value in pairs if value or name not in known}


def _converted(given: object, kind: Any) -> Any:
    """Words from an address or a form: numbers and switches are words there, too."""
    return taken(given, kind, strict=False)


def _request_key(asked: Asked, actor: Actor, raw: bytes) -> tuple[str | None, bool]:
    """The same request, sent again by the same, is the same; under one key nothing else comes."""
    request = asked.request
    given = request.headers.getlist("idempotency-key")
    if not given or request.method != "POST":
        return None, False
    if len(given) > 1:
        raise InvalidInput("a request has one idempotency key", path="idempotency-key")
    where = [request.method, request.url.path, request.url.query]
    words = b"\0".join([*(word.encode() for word in where), raw])
    fingerprint = hashlib.sha256(words).hexdigest()
    kept = checked(given[0], "idempotency key", _LONGEST_KEY)
    if kept and actor.run:  # agents of many runs go by one name
        kept = hashlib.sha256(f"{actor.run}\0{kept}".encode()).hexdigest()
    first = asked.house.ledger.claim_request(kept, fingerprint, actor=actor)
    key = hashlib.sha256(f"{actor}\0{kept}".encode()).hexdigest()
    return f"http:{key[:40]}", not first


# --- what comes back


def _response(asked: Asked, actor: Actor, document: object) -> Response:
    if isinstance(document, Response):
        return document
    given, request = asked.given, asked.request
    body = encoded(document) if actor.role is Role.OPERATOR else redacted_bytes(document)
    if request.method not in ("GET", "HEAD"):
        return Response(body, given.status, media_type=_JSON)
    return tagged(request, body, given.status)


def tagged(request: Request, body: bytes, status: int = 200, media: str = _JSON) -> Response:
    """What was read, unless the asker has the same already."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie"}
    if is_known(request, tag):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    return Response(body, status, headers, media)


def is_known(request: Request, tag: str) -> bool:
    """Whether the asker names this very version as one that it has."""
    listed = request.headers.get("if-none-match", "").split(",")
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in listed)
