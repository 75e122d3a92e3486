"""What a running server answers: OpenAPI, metrics, reading routes, and MCP for every role."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError

from tests.forking import SCRIPT
from tests.golden import mcp_client
from tests.golden.scratch import Scratch, pretty

ROLES = ("viewer", "lead", "operator")
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "golden", "version": "0"},
}
REQUESTS = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
)
JSON = "application/json"
LEFT_OUT = ("/api/v1/openapi.json", "/api/v1/tokens")
"""Routes with a document of their own; tokens have the name of whoever started the server."""
SECONDS = 30


def of_server(scratch: Scratch) -> dict[str, str]:
    """The documents of a server on the furnished store, and of the tools of an agent in a run."""
    scratch.refresh()
    tokens = {role: _token(scratch, role) for role in ROLES}
    with _served(scratch) as url:
        description = json.loads(_asked(f"{url}/api/v1/openapi.json", tokens["viewer"])[1])
        made = {
            "openapi.json": _versioned(scratch, pretty(description)),
            "metrics.txt": scratch.normalised(_asked(f"{url}/metrics", tokens["viewer"])[1]),
            "http/unauthenticated.json": _recorded(
                scratch, "GET /api/v1/tasks", _asked(f"{url}/api/v1/tasks")
            ),
        }
        for role in ROLES:
            results = [_called(f"{url}/mcp", tokens[role], each) for each in REQUESTS]
            made[f"mcp/tools-{role}.json"] = _tools(scratch, results)
        made |= dict(_routes(scratch, url, tokens["operator"], description))
    made["mcp/tools-agent.json"] = _tools(scratch, _inside_a_run(scratch))
    return made


def _token(scratch: Scratch, role: str) -> str:
    answer = scratch.tg("token", "create", "--role", role, "--name", role, "--json")
    secret: str = json.loads(answer.out)["secret"]
    return secret


@contextmanager
def _served(scratch: Scratch) -> Iterator[str]:
    """The address of a server, which ends after the block."""
    with subprocess.Popen(
        [SCRIPT, "web", "--port", "0", "--no-open", "--json"],
        cwd=scratch.work,
        env=scratch.environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        try:
            assert server.stdout
            line = server.stdout.readline()
            assert line, server.communicate(timeout=SECONDS)
            yield json.loads(line)["url"]
        finally:
            server.terminate()
            server.communicate(timeout=SECONDS)


def _asked(url: str, token: str = "", body: object = None) -> tuple[int, str, str]:
    """Status, text and media type of an answer."""
    headers = {"Accept": f"{JSON}, text/event-stream", "Content-Type": JSON}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - a server of ours
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - as above
            return answer.status, answer.read().decode(), answer.headers.get_content_type()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers.get_content_type()


def _recorded(scratch: Scratch, route: str, answer: tuple[int, str, str]) -> str:
    status, text, media = answer
    body = {"request": route, "status": status, "media": media}
    return scratch.normalised(pretty({**body, "body": json.loads(text)}))


def _versioned(scratch: Scratch, text: str) -> str:
    """A description of the program: nothing in it varies but the version."""
    return scratch.normalised.version(text)


# --- routes


def _routes(
    scratch: Scratch, url: str, token: str, description: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Every route that only reads and answers with JSON."""
    filled = {"task": scratch.furnished.tasks["failed"], "routine": "nightly", "name": "nightly"}
    for path, methods in sorted(description["paths"].items()):
        answers = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if JSON not in answers or path in LEFT_OUT:
            continue
        try:
            there = path.format(**filled)
        except KeyError:
            continue
        name = path.removeprefix("/api/v1").strip("/").replace("/", "-")
        name = name.translate(str.maketrans("", "", "{}")) or "root"
        yield (
            f"http/get-{name}.json",
            _recorded(scratch, f"GET {path}", _asked(f"{url}{there}", token)),
        )


# --- MCP


def _called(url: str, token: str, message: dict[str, Any]) -> dict[str, Any]:
    _, text, _ = _asked(url, token, message)
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    found: dict[str, Any] = json.loads(lines[-1] if lines else text)
    return found


def _inside_a_run(scratch: Scratch) -> list[dict[str, Any]]:
    """What the agent of a run is answered by its own server."""
    (scratch.work / "requests.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in REQUESTS))
    agent = [sys.executable, mcp_client.__file__, "requests.jsonl"]
    answer = scratch.tg("run", "--json", "--", *agent)
    log = scratch.tg("log", json.loads(answer.out)["id"])
    return [json.loads(line) for line in log.out.splitlines()]


def _tools(scratch: Scratch, answers: list[dict[str, Any]]) -> str:
    hello, listed = (each["result"] for each in answers)
    return _versioned(scratch, pretty({"initialize": hello, "tools/list": listed}))
