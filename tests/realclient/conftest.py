"""The real clients for tests: found in the cache where `make clients` put them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.conftest import missing
from tests.forking import Forge
from tests.realclient.clients import CLAUDE_CODE, CODEX, GEMINI, LANG, Client
from tests.walk.conftest import Walk, environ

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["environ"]


def found(client: Client) -> Client:
    """The client, if it is there."""
    if client is GEMINI and not (shutil.which("node") and shutil.which("npm")):
        missing("node with npm, which Gemini CLI needs (`make runners`)")
    if not client.package.present():
        missing(f"{client.package.folder} (`make clients`)")
    return client


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short name: from a long one Claude Code moves its socket to /tmp."""
    return tmp_path_factory.mktemp("c")


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    """The command, loaded with the clients' language: with another one, it is not forked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANG", LANG)
        forge = Forge()
    yield forge
    forge.close()


@pytest.fixture
def walk(
    folder: Path, environ: Callable[..., dict[str, str]], forge: Forge, home_store: str
) -> Walk:
    """An empty workspace without git, the installed command in it, and a store without a task."""
    workspace = folder / "workspace"
    workspace.mkdir()
    return Walk(workspace, lambda **changes: environ(**{"LANG": LANG, **changes}), forge)


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
