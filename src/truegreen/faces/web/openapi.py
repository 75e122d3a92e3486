"""What the API says about itself: OpenAPI 3.1, made from the routes that are served, and no others.

Nothing is written here twice: paths, roles, parameters and shapes come from where they are used.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

import msgspec

from truegreen import __version__
from truegreen.faces.web.identity import cookie_name
from truegreen.faces.web.routes import ROUTES, Nothing, Route
from truegreen.faces.web.shapes import Refusal

Schema = dict[str, Any]

_REF = "#/components/schemas/{name}"
_JSON, _SSE = "application/json", "text/event-stream"
_PART = re.compile(r"\{(\w+)\}")
_ID = {"type": "string", "pattern": "^[A-Za-z0-9]+(_[A-Za-z0-9]+)?$", "maxLength": 40}
_NAME = {"type": "string", "pattern": "^[A-Za-z0-9_.-]+$", "maxLength": 100}
_SHA256 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_PARTS = {"routine": _NAME, "sha256": _SHA256}
_KNOWN_PARTS = {
    "task": "the task's id, or a unique beginning of it",
    "run": "the run's id; whoever may read any run can give a unique beginning",
    "agent": "the agent's id, or a unique beginning of it",
    "item": "the inbox item's id, or a unique beginning of it",
    "token": "the token's id, or a unique beginning of it",
    "routine": "the routine's name in truegreen.toml",
    "sha256": "the SHA-256 of the bytes",
}
_WORDS = {
    304: "The asker has this version already.",
    400: "What came is no request of this kind.",
    401: "No token, or one that opens nothing.",
    403: "This role or identity may not do it.",
    404: "Nothing goes by that id.",
    409: "The record refuses it as things stand.",
    410: "Terminated: sealed for ever.",
    413: "More bytes than are taken.",
    416: "The part that was asked for lies outside of the file.",
    421: "The server goes by another name.",
    422: "A value or a key is wrong.",
    423: "Somebody has frozen the store.",
    429: "So many listen already that the others would not be answered.",
    431: "A head of more than 64 KiB.",
    500: "A defect; please report it.",
    503: "The surroundings don't allow it now.",
    507: "There is no room left.",
}
_ALWAYS = (400, 401, 403, 410, 413, 421, 422, 431, 500, 503)
_ON_WRITING = (404, 409, 423, 507)
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same request again under this key is one request; another one is refused.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    "example": "0c3k9-create-1",
}
_TAG = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the version at hand.",
    "schema": {"type": "string"},
    "example": '"0123456789abcdef0123456789abcdef"',
}
_RANGE = {
    "name": "Range",
    "in": "header",
    "description": "One part of the bytes: `bytes=0-1023`, `bytes=1024-`, `bytes=-512`.",
    "schema": {"type": "string"},
    "example": "bytes=0-1023",
}
_LAST_EVENT = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the last event that was seen.",
    "schema": {"type": "string", "pattern": r"^([0-9]{1,18}\.[0-9]{1,18})?$"},
}
_TAGGED = {"ETag": {"description": "This version.", "schema": {"type": "string"}}}
_SECURITY = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token: `truegreen token create`.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": cookie_name(8787),
        "description": "A browser's session: `truegreen login`; the number is the server's port."
        " It changes things from its own pages only.",
    },
}
EXAMPLES: dict[str, Schema] = {
    "Order": {
        "title": "fix the parser",
        "command": ["claude", "-p", "fix the parser"],
        "gates": ["pytest -q"],
        "protect": ["tests/**"],
    },
    "Rejection": {"reason": "not on a Friday", "question": "evt_06b2mjx0s5"},
    "Retry": {"reason": "the registry was down", "more_attempts": 1},
    "Decision": {"accept": True, "reason": "read the diff; the gate is flaky"},
    "Declaration": {
        "kind": "done",
        "reason": "parser fixed",
        "statements": [{"text": "212 tests passed", "kind": "tests"}],
    },
    "Question": {"action": "delete the staging database"},
    "Message": {"message": "the parser lives in src/parse now"},
    "Snooze": {"seconds": 14400},
    "Resolution": {"outcome": "that was me"},
    "Wanted": {"role": "viewer", "name": "dashboard", "seconds": 2592000},
}
"""What bodies look like; a test reads each."""


@cache
def description() -> Schema:
    """The whole description, from the routes that are written down."""
    served = [route for route in ROUTES if route.is_api]
    kinds = [kind for route in served for kind in _kinds(route)]
    _, components = msgspec.json.schema_components([*kinds, Refusal], ref_template=_REF)
    paths: Schema = {}
    for route in served:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, components)
    asked = {route.query.__name__ for route in served}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "truegreen",
            "version": __version__,
            "description": "How runs ended, what agents claim, and what checks found: never"
            " merged. The same documents as the command line gives with `--json`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {name: each for name, each in components.items() if name not in asked},
            "securitySchemes": _SECURITY,
        },
        "security": [{"bearer": []}, {"cookie": []}],
    }


def _kinds(route: Route) -> list[Any]:
    kinds: list[Any] = [route.query]
    kinds += _answers(route)
    if route.body not in (None, bytes, Nothing):
        kinds.append(route.body)
    return kinds


def _answers(route: Route) -> tuple[Any, ...]:
    if route.answers is None:
        return ()
    return route.answers if isinstance(route.answers, tuple) else (route.answers,)


def _schema(kind: Any) -> Schema:
    (found,), _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return dict(found)


def _operation(route: Route, components: dict[str, Any]) -> Schema:
    text = inspect.cleandoc(route.handle.__doc__ or "")
    operation: Schema = {
        "operationId": f"{_room(route)}_{route.handle.__name__}",
        "tags": [_room(route)],
        "summary": route.summary,
        "description": f"{text}\n\nFor: {_who(route)}.",
        "parameters": _parameters(route, components),
        "responses": _responses(route),
        "x-roles": sorted(route.roles),
    }
    body = _body(route)
    if body:
        operation["requestBody"] = body
    if route.public:
        operation["security"] = []
    return operation


def _room(route: Route) -> str:
    return route.handle.__module__.rpartition(".")[2]


def _who(route: Route) -> str:
    if route.public:
        return "everybody"
    own = " (the agent: its own)" if route.own else ""
    return f"{', '.join(sorted(route.roles))}{own}"


# --- what it takes


def _parameters(route: Route, components: dict[str, Any]) -> list[Schema]:
    found = [_part(name) for name in _PART.findall(route.path)]
    if route.query is not Nothing:
        found += _queries(components[route.query.__name__])
    if route.method == "POST":
        found.append(_KEY)
    elif route.method == "GET" and route.media == _JSON:
        found.append(_TAG)
    if _has_parts(route):
        found.append(_RANGE)
    if route.media == _SSE:
        found.append(_LAST_EVENT)
    return found


def _has_parts(route: Route) -> bool:
    """Whether a part of the bytes can be asked for."""
    return route.media == "text/plain" and "offset" in route.query.__struct_fields__


def _part(name: str) -> Schema:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _KNOWN_PARTS[name],
        "schema": _PARTS.get(name, _ID),
    }


def _queries(known: Schema) -> list[Schema]:
    needed = known.get("required", [])
    return [
        {
            "name": name,
            "in": "query",
            "required": name in needed,
            "schema": _spoken(schema),
            "description": schema.get("description", name.replace("_", " ")),
        }
        for name, schema in known["properties"].items()
    ]


def _spoken(schema: Schema) -> Schema:
    """Nothing is null in an address: it is left out."""
    kept = {key: value for key, value in schema.items() if key != "default" or value is not None}
    choices = [each for each in kept.pop("anyOf", []) if each != {"type": "null"}]
    if len(choices) == 1:
        return {**choices[0], **kept}
    return {**kept, **({"anyOf": choices} if choices else {})}


def _body(route: Route) -> Schema | None:
    if route.body is bytes:
        content: Schema = {"application/octet-stream": {"schema": {"type": "string"}}}
        return {"required": True, "content": content}
    if route.body in (None, Nothing):
        return None
    content = {"schema": _schema(route.body)}
    example = EXAMPLES.get(getattr(route.body, "__name__", ""))
    if example:
        content["example"] = example
    return {"required": example is not None, "content": {_JSON: content}}


# --- what it answers


def _responses(route: Route) -> Schema:
    found: Schema = {str(route.status): _answer(route)}
    for status in _statuses(route):
        found[str(status)] = _refusal(status)
    if route.method == "GET" and route.media == _JSON:
        found["304"] = {"description": _WORDS[304]}
    if _has_parts(route):
        found |= {"206": {**_answer(route), "description": "The part that was asked for."}}
        found |= {"304": {"description": _WORDS[304]}, "416": _refusal(416)}
    if route.media == _SSE or "follow" in route.query.__struct_fields__:
        found["429"] = _refusal(429)
    return dict(sorted(found.items()))


def _statuses(route: Route) -> list[int]:
    if route.public:
        return [413, 421, 422, 500]
    asked = {"task", "agent"} & set(route.query.__struct_fields__)
    named = (404, 409) if "{" in route.path or asked else ()
    return sorted({*_ALWAYS, *named, *(_ON_WRITING if route.method != "GET" else ())})


def _refusal(status: int) -> Schema:
    schema = {"$ref": _REF.format(name=Refusal.__name__)}
    return {"description": _WORDS[status], "content": {_JSON: {"schema": schema}}}


def _answer(route: Route) -> Schema:
    found = [_schema(kind) for kind in _answers(route)] or [{"type": "string"}]
    schema = found[0] if len(found) == 1 else {"anyOf": found}
    answer: Schema = {
        "description": route.summary,
        "content": {route.media: {"schema": schema}},
    }
    if route.method == "GET" and route.media == _JSON:
        answer["headers"] = _TAGGED
    return answer
