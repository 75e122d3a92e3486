"""A run with a key of its own, the gateway that it thinks through, and a provider behind it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.doors.gateway.provider import MESSAGE, Provider, whole
from tests.record.lives import started
from truegreen.contract import Caps, ModelPrice
from truegreen.doors.gateway.apis import upstreams_of
from truegreen.doors.gateway.server import Gateway, Session
from truegreen.facts import SYSTEM, Ticket
from truegreen.model import Role
from truegreen.record.ledger import Ledger

REAL = "sk-real-0123456789abcdef"
PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/responses",
    "gemini": "/v1beta/models/gemini-2.5-pro:generateContent",
}
SHOWN = {
    "anthropic": lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
    "openai": lambda key: {"authorization": f"Bearer {key}"},
    "gemini": lambda key: {"x-goog-api-key": key},
}


def environ(url: str, **more: str) -> dict[str, str]:
    """What a supervisor with all three keys has around it."""
    return {
        "ANTHROPIC_API_KEY": REAL,
        "OPENAI_API_KEY": REAL,
        "GEMINI_API_KEY": REAL,
        "ANTHROPIC_BASE_URL": url,
        "OPENAI_BASE_URL": f"{url}/v1",
        "GOOGLE_GEMINI_BASE_URL": url,
        **more,
    }


def key_for(ledger: Ledger, ticket: Ticket) -> str:
    return ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)[1]


class Thinker:
    """An agent that thinks through a gateway."""

    def __init__(
        self, ledger: Ledger, ticket: Ticket, gateway: Gateway, session: Session, provider: Provider
    ) -> None:
        self.ledger, self.ticket, self.gateway = ledger, ticket, gateway
        self.session, self.provider = session, provider
        self.key = key_for(ledger, ticket)
        self.http = httpx2.Client(trust_env=False, base_url=gateway.url, timeout=20)

    def ask(self, api: str = "anthropic", key: str = "", **body: Any) -> httpx2.Response:
        """One request to an API, with the run's key or another."""
        return self.http.post(PATHS[api], headers=SHOWN[api](key or self.key), json=body)

    def raw(self, data: bytes) -> bytes:
        """What comes back for these very bytes."""
        with socket.create_connection(("127.0.0.1", self.gateway.port), 10) as line:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            found = b""
            while part := line.recv(65536):
                found += part
        return found

    @property
    def tokens(self) -> int:
        return self.session.meter.tokens


@contextmanager
def thinking(
    ledger: Ledger,
    provider: Provider,
    *,
    caps: Caps | None = None,
    prices: dict[str, ModelPrice] | None = None,
    **variables: str,
) -> Iterator[Thinker]:
    """A run under way, through a gateway to a provider."""
    ticket = started(ledger)
    around = environ(provider.url, **variables)
    gateway = Gateway(ledger, upstreams_of(around), around)
    try:
        session = gateway.admit(ticket, caps or Caps(), prices or {})
        thinker = Thinker(ledger, ticket, gateway, session, provider)
        with thinker.http:
            yield thinker
        gateway.dismiss(session)
    finally:
        gateway.close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(whole(MESSAGE)) as provider:
        yield provider


@pytest.fixture
def thinker(ledger: Ledger, provider: Provider) -> Iterator[Thinker]:
    """On each database."""
    with thinking(ledger, provider) as thinker:
        yield thinker


@pytest.fixture
def local(sqlite_url: str, provider: Provider) -> Iterator[Thinker]:
    """On one database, where the record makes no difference."""
    from truegreen.record.ledger import open_ledger  # noqa: PLC0415 - as the fixture's own

    ledger = open_ledger(sqlite_url)
    with thinking(ledger, provider) as thinker:
        yield thinker
    ledger.close()
