"""The web face on a furnished store, in this process, and callers of every role."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.faces.conftest import Furnished
from tests.record.lives import OPERATOR, started
from truegreen.config import Config, load_config
from truegreen.faces.deeds import Deeds
from truegreen.faces.web.house import Address, House
from truegreen.faces.web.live import Live
from truegreen.faces.web.serving import Serving, listening
from truegreen.faces.web.site import site
from truegreen.facts import SYSTEM, Ticket
from truegreen.model import Role, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.store import open_store

ADDRESS = Address()
HERE = ADDRESS.url
HOST = HERE.removeprefix("http://")
TOML = """
[agents.echo]
adapter = "command"
command = ["echo", "{goal}"]

[tasks.tidy]
agent = "echo"
goal = "tidy up"
gates = ["clean"]

[gates.clean]
kind = "run"
command = ["true"]

[routines.nightly]
schedule = "0 2 * * *"
task = "tidy"

[routines.rounds]
task = "tidy"
repeat = { max_iterations = 3 }
"""
NAMES = {Role.VIEWER: "vic", Role.LEAD: "lead", Role.OPERATOR: "ana"}


class Ask(NamedTuple):
    """A request, for those who make thousands of them."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | Sequence[bytes] = b""
    """One piece, or several of them without an announced length."""


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The code of the error that it says."""
        return str(json.loads(self.body)["error"]["code"])


class Web:
    """The application of one store, with callers."""

    def __init__(self, ledger: Ledger, config: Config, stack: ExitStack) -> None:
        self.ledger, self.config = ledger, config
        self.house = House(config, ledger, Deeds(ledger, config), ADDRESS, Live(ledger))
        self.app: Starlette = site(self.house)
        self._stack = stack
        self._portal: TestClient | None = None
        self._secrets: dict[Role, str] = {}
        self.tasks: dict[TaskStatus, str] = {}

    def secret(self, role: Role) -> str:
        """The token of somebody with this role."""
        if role not in self._secrets:
            self._secrets[role] = self.ledger.mint_token(role, NAMES[role], actor=OPERATOR)[1]
        return self._secrets[role]

    def bound(self, role: Role, ticket: Ticket) -> str:
        """The token of the agent, or of a judge, of a run."""
        return self.ledger.mint_token(role, role, actor=SYSTEM, ticket=ticket)[1]

    def agent(self, **terms: Any) -> tuple[Ticket, str]:
        """A live run, and the token of its agent."""
        ticket = started(self.ledger, **terms)
        return ticket, self.bound(Role.AGENT, ticket)

    def session(self, role: Role = Role.OPERATOR) -> str:
        """The secret of a browser that has logged in."""
        code = self.ledger.mint_login(role, f"{role}-browser", actor=OPERATOR)[1]
        return self.ledger.log_in(code)[1]

    def known(self, who: Role | str) -> tuple[str, str]:
        """The header of somebody."""
        secret = self.secret(who) if isinstance(who, Role) else who
        return "Authorization", f"Bearer {secret}"

    def ask(self, asks: Iterable[Ask]) -> list[Reply]:
        """Many requests, one after the other, without a client's own work in between."""

        async def all_of_them() -> list[Reply]:
            return [await _replied(self.app, each) for each in asks]

        portal = self._portal_of(self.client()).portal
        assert portal is not None
        return portal.call(all_of_them)

    def _portal_of(self, client: TestClient) -> TestClient:
        if self._portal is None:  # one event loop for all of them
            self._portal = self._stack.enter_context(client)
        return self._portal

    def client(self, who: Role | str | None = None, **headers: str) -> TestClient:
        """Somebody who asks: by a role, by a secret, or nobody."""
        secret = self.secret(who) if isinstance(who, Role) else who
        known = {"Authorization": f"Bearer {secret}"} if secret else {}
        client = TestClient(
            self.app,
            base_url=HERE,
            headers={**known, **headers},
            raise_server_exceptions=False,
            follow_redirects=False,
        )
        client.portal = self._portal_of(client).portal
        return client

    def browser(self, role: Role = Role.OPERATOR, **headers: str) -> TestClient:
        """Somebody who has logged in, and whose pages are ours."""
        client = self.client(None, **{"Origin": HERE, "Sec-Fetch-Site": "same-origin", **headers})
        client.cookies.set("truegreen_session_8787", self.session(role))
        return client


@contextmanager
def served(web: Web) -> Iterator[Address]:
    """The same application behind a socket of its own."""
    listener, address = listening("127.0.0.1", 0)
    live = Live(web.ledger)
    house = House(web.config, web.ledger, web.house.deeds, address, live)
    serving = Serving(site(house), listener)
    serving.start()
    try:
        yield address
    finally:
        serving.stop()


async def _replied(app: Starlette, ask: Ask) -> Reply:
    """One request straight into the application, as a server would hand it over."""
    path, _, query = ask.path.partition("?")
    pieces = [ask.body] if isinstance(ask.body, bytes) else list(ask.body)
    given = list(ask.headers)
    names = {name.lower() for name, _ in given}
    given += [] if "host" in names else [("host", HOST)]
    if isinstance(ask.body, bytes) and ask.body and "content-length" not in names:
        given.append(("content-length", str(len(ask.body))))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": ask.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", ADDRESS.port),
        "state": {},
    }
    start: dict[str, Any] = {}
    out: list[bytes] = []

    async def receive() -> dict[str, Any]:
        if not pieces:
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Any) -> None:
        start.update(message if message["type"] == "http.response.start" else {})
        out.append(message.get("body", b""))

    await app(scope, receive, send)
    headers = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
    return Reply(start["status"], headers, b"".join(out))


@pytest.fixture
def web(furnished: Furnished, tmp_path: Path) -> Iterator[Web]:
    """The web face of a store with a task in every status, and a file with templates."""
    (tmp_path / "truegreen.toml").write_text(TOML)
    config = load_config(os.environ, str(tmp_path))
    ledger = Ledger(open_store(furnished.url))  # verified when it was furnished
    with ExitStack() as stack:
        made = Web(ledger, config, stack)
        made.tasks = furnished.tasks
        yield made
    ledger.close()


@pytest.fixture
def web_anywhere(furnished_anywhere: Furnished, tmp_path: Path) -> Iterator[Web]:
    """The same on each database."""
    (tmp_path / "truegreen.toml").write_text(TOML)
    config = load_config(os.environ, str(tmp_path))
    ledger = Ledger(open_store(furnished_anywhere.url))  # verified when it was furnished
    with ExitStack() as stack:
        made = Web(ledger, config, stack)
        made.tasks = furnished_anywhere.tasks
        yield made
    ledger.close()
