"""A store, everybody who may call tools on it, and a client of the SDK in the same process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from mcp.client import Client

from tests.record.lives import OPERATOR, started
from truegreen.config import Config, load_config
from truegreen.faces.mcp.server import TASK_STATE, server_for
from truegreen.faces.mcp.visitors import Far, Outside, Visitor
from truegreen.facts import SYSTEM, Actor, Ticket
from truegreen.model import Role
from truegreen.record.ledger import Ledger, open_ledger


class Said(NamedTuple):
    """The result of a call."""

    error: str
    document: dict[str, Any]
    heard: list[str]
    state: str | None
    """What MCP would call the task's state."""


def call(
    visitor: Visitor, name: str, arguments: dict[str, Any] | None = None, mode: str = "legacy"
) -> Said:
    """Use a tool as a client does."""
    heard: list[str] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async def talk() -> Said:
        async with Client(server_for(visitor), mode=mode) as client:
            result = await client.call_tool(name, arguments or {}, progress_callback=listen)
        (content,) = result.content
        document = json.loads(getattr(content, "text", ""))
        assert document == result.structured_content
        assert result.is_error == ("error" in document)
        state = (result.meta or {}).get(TASK_STATE)
        return Said(document.get("error", {}).get("code", ""), document, heard, state)

    return anyio.run(talk)


def tools(visitor: Visitor, mode: str = "legacy") -> dict[str, Any]:
    """What a client is offered, by name."""

    async def talk() -> dict[str, Any]:
        async with Client(server_for(visitor), mode=mode) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    return anyio.run(talk)


class Office:
    """A store and those who act on it."""

    def __init__(self, ledger: Ledger, config: Config) -> None:
        self.ledger, self.config = ledger, config

    def visitor(self, role: Role, name: str = "") -> Outside:
        """Somebody in a role."""
        actor = Actor(role, name or str(role))
        return Outside(self.ledger, self.config, role, lambda: actor)

    def agent(self, **terms: Any) -> tuple[Far, Ticket, str]:
        """The agent of a live run, with its ticket and its token."""
        ticket = started(self.ledger, **terms)
        token = self.token(ticket)
        return Far(self.ledger, self.config, Role.AGENT, token), ticket, token

    def token(self, ticket: Ticket) -> str:
        """A run's token."""
        return self.ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)[1]

    def key(self, role: Role, name: str = "") -> str:
        """A token for somebody who is no agent."""
        return self.ledger.mint_token(role, name or str(role), actor=OPERATOR)[1]


@pytest.fixture
def office(tmp_path: Path, home_store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    """An empty store of one's own."""
    monkeypatch.chdir(tmp_path)
    config = load_config(os.environ, str(tmp_path))
    ledger = open_ledger(home_store)
    yield Office(ledger, config)
    ledger.close()
