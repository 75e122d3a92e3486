"""Small streams for tests of one trap each."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from truegreen.work.agents import ADAPTERS, Ending, Expectation, Reader, Reading


def event(kind: str, **fields: Any) -> bytes:
    return json.dumps({**fields, "type": kind}).encode()


def read_all(
    adapter: str,
    lines: list[bytes],
    *,
    code: int | None = 0,
    expects: Expectation | None = None,
    **ending: Any,
) -> tuple[Reader, Reading]:
    reader = ADAPTERS[adapter].reader(expects or Expectation())
    for line in lines:
        reader.feed(line)
    return reader, reader.read(replace(Ending(code=code), **ending))


def detail(adapter: str, lines: list[bytes], **ending: Any) -> str:
    return str(read_all(adapter, lines, **ending)[1].detail)


def egress(tool: str) -> str:
    return {
        "curl": "curl: (56) CONNECT tunnel failed, response 403",
        "curl over http": "Host not in allowlist\n",
        "git": "fatal: unable to access 'https://x/': CONNECT tunnel failed, response 403",
        "python": "urllib.error.URLError: <urlopen error Tunnel connection failed: 403 Forbidden>",
        "pip": "ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 403 F",
        "wget": "Proxy tunneling failed: ForbiddenUnable to establish SSL connection.",
        "npm": "npm error tunneling socket could not be established, statusCode=403",
        "node": "Request was cancelled: Proxy response (403) !== 200 when HTTP Tunneling",
        "apt": "Err:1 Invalid response from proxy: HTTP/1.1 403 Forbidden",
        "header": "< x-deny-reason: host_not_allowed",
    }[tool]


TOOLS = (
    *("curl", "curl over http", "git", "python", "pip", "wget", "npm", "node", "apt", "header"),
)
