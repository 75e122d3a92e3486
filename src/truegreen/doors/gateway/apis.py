"""The model APIs that the gateway speaks: which paths go through, where to, and with whose key.

An API is a value made of such facts. A path is one of a short list or it is nothing: it can change
neither the host nor the way there. Nothing here sends anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from truegreen.doors.gateway.metering import Generated, Messages, Responses, Tally
from truegreen.doors.wire import Headers, Request
from truegreen.tuples import NamedTuple
from truegreen.work.gates.probe import Target, target_of

ANTHROPIC, OPENAI, GEMINI = "anthropic", "openai", "gemini"
REDACTED = "[redacted]"
_KEY_HEADERS = ("x-api-key", "authorization", "x-goog-api-key")
_HELD_BACK = frozenset(
    {
        *(*_KEY_HEADERS, "api-key", "cookie", "host", "accept-encoding", "content-length"),
        *("connection", "keep-alive", "proxy-connection", "proxy-authenticate", "upgrade", "te"),
        *("proxy-authorization", "trailer", "transfer-encoding", "expect", "forwarded", "via"),
        *("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"),
    }
)
"""What concerns this connection alone, or says who asks."""
_KEPT_HERE = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "proxy-authenticate", "upgrade", "te"),
        *("trailer", "transfer-encoding", "content-length", "set-cookie", "location", "alt-svc"),
        "strict-transport-security",
    }
)
_KINDS = {
    400: ("invalid_request_error", "INVALID_ARGUMENT"),
    401: ("authentication_error", "UNAUTHENTICATED"),
    403: ("permission_error", "PERMISSION_DENIED"),
    404: ("not_found_error", "NOT_FOUND"),
    405: ("invalid_request_error", "INVALID_ARGUMENT"),
    413: ("request_too_large", "INVALID_ARGUMENT"),
    415: ("invalid_request_error", "INVALID_ARGUMENT"),
    502: ("api_error", "UNAVAILABLE"),
    503: ("overloaded_error", "UNAVAILABLE"),
}


class Api(Struct, frozen=True, kw_only=True):
    """One provider's API."""

    name: str
    base: str
    base_env: str
    key_envs: tuple[str, ...]
    own_prefix: str
    """What of a path belongs to the base already, where a base ends with it."""
    asks: re.Pattern[str]
    """Paths that make a model work."""
    looks: re.Pattern[str]
    """Paths that cost nothing."""
    tally: Callable[[], Tally]
    refusal: Callable[[int, str, str], dict[str, Any]]


class Upstream(NamedTuple):
    """Where requests to an API go on to, and the real key."""

    api: Api
    target: Target
    key: str
    bearer: bool

    def url(self, path: str, query: str) -> str:
        """The address of a path that was found to be one of the API's."""
        base = str(self.target).rstrip("/")
        if self.api.own_prefix and base.endswith(self.api.own_prefix):
            path = path.removeprefix(self.api.own_prefix)
        return f"{base}{path}{f'?{query}' if query else ''}"

    def headers(self, request: Request) -> Headers:
        """What the provider is told: all that the client said, but for who it is."""
        kept = [pair for pair in request.headers if pair[0] not in _HELD_BACK]
        length = request.body.length
        sized = [("content-length", str(length))] if length is not None and length else []
        return [*kept, *sized, ("accept-encoding", "identity"), self._signed()]

    def _signed(self) -> tuple[str, str]:
        if self.bearer:
            return "authorization", f"Bearer {self.key}"
        return ("x-goog-api-key" if self.api.name == GEMINI else "x-api-key"), self.key


def _of_anthropic(status: int, _: str, message: str) -> dict[str, Any]:
    error = {"type": _KINDS.get(status, _KINDS[400])[0], "message": message}
    return {"type": "error", "error": error, "request_id": "req_truegreen"}


def _of_openai(status: int, code: str, message: str) -> dict[str, Any]:
    kind = _KINDS.get(status, _KINDS[400])[0]
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _of_gemini(status: int, code: str, message: str) -> dict[str, Any]:
    word = _KINDS.get(status, _KINDS[400])[1]
    told = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code.upper()}
    return {"error": {"code": status, "message": message, "status": word, "details": [told]}}


_NAME = r"[A-Za-z0-9][A-Za-z0-9_@-]*(?:\.[A-Za-z0-9_@-]+)*"
APIS = {
    ANTHROPIC: Api(
        name=ANTHROPIC,
        base="https://api.anthropic.com",
        base_env="ANTHROPIC_BASE_URL",
        key_envs=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        own_prefix="/v1",
        asks=re.compile(r"/v1/messages"),
        looks=re.compile(rf"/v1/messages/count_tokens|/v1/models(?:/{_NAME})?"),
        tally=Messages,
        refusal=_of_anthropic,
    ),
    OPENAI: Api(
        name=OPENAI,
        base="https://api.openai.com/v1",
        base_env="OPENAI_BASE_URL",
        key_envs=("OPENAI_API_KEY",),
        own_prefix="/v1",
        asks=re.compile(
            r"/v1/(?:responses(?:/compact)?|chat/completions|completions|embeddings|moderations)"
        ),
        looks=re.compile(rf"/v1/responses/input_tokens|/v1/models(?:/{_NAME}){{0,2}}"),
        tally=Responses,
        refusal=_of_openai,
    ),
    GEMINI: Api(
        name=GEMINI,
        base="https://generativelanguage.googleapis.com",
        base_env="GOOGLE_GEMINI_BASE_URL",
        key_envs=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        own_prefix="",
        asks=re.compile(
            rf"/v1(?:beta|alpha)?/models/{_NAME}:"
            r"(?:generateContent|streamGenerateContent|embedContent|batchEmbedContents)"
        ),
        looks=re.compile(
            rf"/v1(?:beta|alpha)?/models/{_NAME}:countTokens|/v1(?:beta|alpha)/models(?:/{_NAME})?"
        ),
        tally=Generated,
        refusal=_of_gemini,
    ),
}


class Route(NamedTuple):
    """What a request wants."""

    api: Api
    asks: bool
    """Whether a model works for it, so that it is counted."""


def route_of(request: Request) -> Route | None:
    """Which API a request is for; nothing for a path that does not go through."""
    for api in _in_order(request):
        if request.method == "POST" and api.asks.fullmatch(request.path):
            return Route(api, asks=True)
        if request.method in ("GET", "POST") and api.looks.fullmatch(request.path):
            return Route(api, asks=False)
    return None


def _in_order(request: Request) -> list[Api]:
    """Two providers call their list of models the same: who names its version is Anthropic's."""
    anthropic, openai, gemini = APIS[ANTHROPIC], APIS[OPENAI], APIS[GEMINI]
    theirs = bool(request.header("anthropic-version") or request.header("x-api-key"))
    return [anthropic, openai, gemini] if theirs else [openai, gemini, anthropic]


def key_of(request: Request) -> tuple[str, str]:
    """The key that a request shows, and its query without it."""
    bearer = request.header("authorization")
    shown = [request.header("x-api-key"), request.header("x-goog-api-key")]
    shown += [bearer[7:].strip()] if bearer[:7].lower() == "bearer " else []
    pairs = request.query.split("&") if request.query else []
    shown += [pair[4:] for pair in pairs if pair.startswith("key=")]
    rest = "&".join(pair for pair in pairs if not pair.startswith("key="))
    return next(filter(None, shown), ""), rest


def refusal(api: Api | None, status: int, code: str, message: str) -> bytes:
    """A no in the words of the provider, so that a client takes it for what it is."""
    shape = api.refusal if api else _of_openai
    return msgspec.json.encode(shape(status, code, message))


def passed_on(headers: Mapping[str, str], key: str) -> Headers:
    """What a client is told of the head of a provider's answer; never the real key."""
    kept = [(name, value) for name, value in headers.items() if name.lower() not in _KEPT_HERE]
    return [(name.replace(key, REDACTED), value.replace(key, REDACTED)) for name, value in kept]


def upstreams_of(environ: Mapping[str, str]) -> dict[str, Upstream]:
    """Every API that this environment holds a key for, and where its requests go."""
    found = (upstream_of(api, environ) for api in APIS.values())
    return {each.api.name: each for each in found if isinstance(each, Upstream)}


def upstream_of(api: Api, environ: Mapping[str, str]) -> Upstream | str:
    """Where an API is, and its key; or what is missing."""
    name = next((name for name in api.key_envs if environ.get(name, "").strip()), "")
    if not name:
        return f"set {' or '.join(api.key_envs)}"
    key = environ[name].strip()
    if not key.isascii() or not key.isprintable():
        return f"{name} holds characters that no key has"
    target = target_of(environ.get(api.base_env, "").strip().rstrip("/") or api.base)
    if isinstance(target, str):
        return f"{api.base_env}: {target}"
    return Upstream(api, target, key, bearer=api.name == OPENAI or name == "ANTHROPIC_AUTH_TOKEN")
