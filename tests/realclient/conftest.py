"""The real clients for tests: found in the cache where `make clients` put them."""

from __future__ import annotations

import shutil

import pytest

from tests.conftest import missing
from tests.realclient.clients import CLAUDE_CODE, CODEX, GEMINI, Client
from tests.walk.conftest import compiled, environ, walk

__all__ = ["compiled", "environ", "walk"]


def found(client: Client) -> Client:
    """The client, if it is there."""
    if client is GEMINI and not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("Gemini CLI needs Node, which is no part of the set-up")
    if not client.package.present():
        missing(f"{client.package.folder} (`make clients`)")
    return client


@pytest.fixture
def claude_code() -> Client:
    """Claude Code, unmodified."""
    return found(CLAUDE_CODE)


@pytest.fixture
def codex() -> Client:
    """Codex, unmodified."""
    return found(CODEX)


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Client:
    """The client that the test names."""
    chosen: Client = request.param
    return found(chosen)
