"""What texts of clients and tools are signs of: denied egress, and errors of a model's provider.

Matching text is a hint, used where a client has nothing better to offer. Pure.
"""

from __future__ import annotations

import re
from functools import cache

from truegreen.model import ExitDetail
from truegreen.work.agents.wording import one_line

_WINDOW = 16 * 1024
_A_PROXY_SAID_NO = (
    r"CONNECT tunnel failed, response 40[37]",  # curl, git, cargo
    r"Received HTTP code 40[37] from proxy after CONNECT",  # older curl
    r"Tunnel connection failed: 40[37]",  # Python: urllib, pip, requests
    r"ProxyError\W{1,4}40[37]",  # httpx
    r"Proxy tunneling failed: (?:Forbidden|Proxy Auth)",  # wget
    r"Proxy response \(40[37]\)",  # Node: undici
    r"tunneling socket could not be established, (?:statusCode|cause)=\W{0,2}40[37]",  # npm
    r"Invalid response from proxy: HTTP/1\.[01] 40[37]",  # apt
    r"Proxy returns \"HTTP/1\.[01] 40[37]",  # Java
    r"proxyconnect tcp: [^\n]{0,200}Forbidden",  # Go
    r"\bhost_not_allowed\b",
    r"\bx-deny-reason:",
    r"Host not in allowlist",
)
_A_FETCH_WAS_REFUSED = (
    r"curl: \(22\) The requested URL returned error: 403",
    r"unable to access '[^'\n]{1,2000}': The requested URL returned error: 403",  # git
    r"ERROR 403: Forbidden",  # wget
    r"HTTP Error 403: Forbidden",  # Python
)
_HINTS = ("unnel", "roxy", "403", "allow", "deny-reason")
"""Pieces of the patterns: most output has none of them, and they are found much faster."""
_PROXY_HINTS = (
    *("tunnel failed, response 40", "from proxy after CONNECT", "Tunnel connection failed: 40"),
    *("ProxyError", "Proxy tunneling failed", "Proxy response (40", "tunneling socket could not"),
    *("response from proxy", "Proxy returns", "proxyconnect tcp", "host_not_allowed"),
    *("deny-reason", "ost not in allowlist"),
)
_REACHING_OUT = (r"bash", r"shell", r"command", r"exec", r"fetch", r"web", r"terminal")


@cache
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """Compiled when first needed: most runs end without an error to look into."""
    return re.compile("|".join(words), re.IGNORECASE)


def reaches_out(tool: str) -> bool:
    """Whether a tool runs commands or fetches, so that its output may tell of denied egress."""
    return bool(_any_of(_REACHING_OUT).search(tool))


def egress_denied(text: str, *, failed: bool = False) -> str:
    """The line of a tool's output that shows denied egress; empty where none does.

    A bare 403 is a sign only of a command that failed: servers, too, answer so.
    """
    if len(text) > 2 * _WINDOW:
        text = f"{text[:_WINDOW]}\n{text[-_WINDOW:]}"
    if not any(hint in text for hint in _HINTS):
        return ""
    found = None
    if any(hint in text for hint in _PROXY_HINTS):
        found = _any_of(_A_PROXY_SAID_NO).search(text)
    if not found and failed:
        found = _any_of(_A_FETCH_WAS_REFUSED).search(text)
    if not found:
        return ""
    start = max(text.rfind("\n", 0, found.start()) + 1, found.start() - 200)
    return one_line(text[start : found.end() + 100].split("\n")[0])


_CAUSES: tuple[tuple[ExitDetail, tuple[str, ...]], ...] = (
    (
        ExitDetail.REFUSED,
        (
            *(r"content[_ -]?filter", r"\bflagged\b", r"\bsafety\b", r"usage polic"),
            *(r"policy violation", r"violat\w{0,5} [^\n]{0,40}polic", r"prohibited[_ ]content"),
            *(r"\bblocklist\b", r"\brecitation\b"),
        ),
    ),
    (
        ExitDetail.CONTEXT_CAP,
        (
            *(r"context window", r"context[_ ]length", r"prompt is too long", r"maximum context"),
            *(r"input is too long", r"context (?:limit|overflow)"),
            r"exceeds? the (?:model'?s )?(?:maximum|limit)[^\n]{0,40}token",
        ),
    ),
    (
        ExitDetail.TOKEN_CAP,
        (r"max_output_tokens", r"output token (?:maximum|limit)", r"output length"),
    ),
    (
        ExitDetail.RATE_LIMITED,
        (
            *(r"rate[_ -]?limit", r"usage limit", r"\bquota\b", r"high demand", r"overloaded"),
            *(r"too many requests", r"resource[_ ]exhausted", r"at capacity", r"throttl"),
            *(r"service unavailable", r"\"UNAVAILABLE\"", r"limit reached", r"hit your limit"),
        ),
    ),
)
"""Words that name a cause."""
_SYMPTOMS: tuple[tuple[ExitDetail, tuple[str, ...]], ...] = (
    (
        ExitDetail.AUTH_INVALID,
        (
            *(r"api[ _-]?key", r"unauthori[sz]ed", r"unauthenticated", r"authenticat", r"oauth"),
            *(r"not logged in", r"/login\b", r"missing environment variable", r"credential"),
            *(r"permission_denied", r"\bforbidden\b", r"credit balance", r"\bbilling\b"),
            *(r"account (?:is )?on hold", r"invalid[_ ]token"),
        ),
    ),
    (
        ExitDetail.CONFIG_INVALID,
        (
            *(r"model[_ ]not[_ ]found", r"issue with the selected model", r"unknown model"),
            r"\bmodel\b[^\n]{0,80}(?:does not exist|not (?:found|exist))",
        ),
    ),
    (
        ExitDetail.PROVIDER_ERROR,
        (
            *(r"fetch failed", r"\bE(?:CONN|NOTFOUND|AI_AGAIN|TIMEDOUT|HOSTUNREACH|PIPE)"),
            r"connection (?:refused|reset|closed|dropped|failed|error)",
            *(r"stream disconnected", r"network error", r"socket hang", r"timed out"),
            *(r"internal server error", r"bad gateway", r"gateway timeout", r"server_error"),
            r"API Error",
        ),
    ),
)
"""Words that fit an HTTP status, where a message names none that says more."""
_STATUS = (
    r"(?:status(?:code)?|API Error|error|code)\W{1,4}(?:status\W{1,2})?([45]\d\d)\b",
    r"\(([45]\d\d)\)",
)
_OF_STATUS = {
    401: ExitDetail.AUTH_INVALID,
    402: ExitDetail.AUTH_INVALID,
    403: ExitDetail.AUTH_INVALID,
    404: ExitDetail.CONFIG_INVALID,
    429: ExitDetail.RATE_LIMITED,
    503: ExitDetail.RATE_LIMITED,
    529: ExitDetail.RATE_LIMITED,
}
_FIRST_ERROR = 400


def status_in(text: str) -> int | None:
    """The HTTP status that an error message names."""
    found = _any_of(_STATUS).search(text)
    return int(found[1] or found[2]) if found else None


def of_status(status: int | None) -> ExitDetail | None:
    """What an HTTP status of the model's provider means."""
    if status is None or status < _FIRST_ERROR:
        return None
    return _OF_STATUS.get(status, ExitDetail.PROVIDER_ERROR)


def provider_failure(message: str, status: int | None = None) -> ExitDetail | None:
    """What a provider's error message means; None where it says nothing known.

    Words that name a cause come before the status: providers send 400 and 403 for many things.
    """
    message = message[:_WINDOW]
    if egress_denied(message):
        return ExitDetail.EGRESS_DENIED
    if (cause := _first_said(_CAUSES, message)) is not None:
        return cause
    coded = of_status(status if status is not None else status_in(message))
    if coded is not None and coded is not ExitDetail.PROVIDER_ERROR:
        return coded
    return _first_said(_SYMPTOMS, message) or coded


def _first_said(
    table: tuple[tuple[ExitDetail, tuple[str, ...]], ...], message: str
) -> ExitDetail | None:
    for detail, words in table:
        if _any_of(words).search(message):
            return detail
    return None
