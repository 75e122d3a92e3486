"""A client of MCP in a few lines of our own: what crosses the wire, without anybody's library."""

from __future__ import annotations

import json
import subprocess
from types import TracebackType
from typing import Any, Self

from tests.faces.conftest import SCRIPT

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "0"},
}


class Talk:
    """`truegreen mcp` as a child of one's own."""

    def __init__(self, environ: dict[str, str], *words: str, cwd: Any = None) -> None:
        self._process = subprocess.Popen(
            [SCRIPT, "mcp", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            cwd=cwd,
        )
        self._next = 0

    def __enter__(self) -> Self:
        self.ask("initialize", HELLO)
        self._say({"method": "notifications/initialized"})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> tuple[int, str]:
        """Hang up; its exit status, and what it wrote for people."""
        try:
            _, err = self._process.communicate(timeout=20)
        finally:
            self._process.kill()
        return self._process.returncode, err.decode()

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """A request and its answer."""
        self._next += 1
        self._say({"id": self._next, "method": method, "params": params or {}})
        assert self._process.stdout
        while line := self._process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._next:
                found: dict[str, Any] = answer
                return found
        raise AssertionError(self.end())

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Use a tool; the document that it answers with."""
        result = self.ask("tools/call", {"name": name, "arguments": arguments})["result"]
        document: dict[str, Any] = json.loads(result["content"][0]["text"])
        assert document == result["structuredContent"]
        assert result["isError"] is ("error" in document)
        return document

    def tools(self) -> set[str]:
        """What is offered."""
        return {tool["name"] for tool in self.ask("tools/list")["result"]["tools"]}

    def throw(self, data: bytes) -> None:
        """Whatever comes."""
        assert self._process.stdin
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _say(self, message: dict[str, Any]) -> None:
        self.throw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
