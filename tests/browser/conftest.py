"""A real browser on a real server: Chromium as the machine has it, driven by playwright.

One browser serves all tests of a worker. A window remembers whatever goes wrong; tests that look at
the same site by the same role use it one after the other. Nothing is mocked: the store is a file,
the server listens, and whoever looks has logged in with a link.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.furnishing import TOML, Furniture, furnish
from tests.browser.serving import Site
from tests.browser.watching import Visitor
from tests.conftest import missing
from tests.patience import be_patient
from truegreen.model import Role
from truegreen.record.ledger import open_ledger

ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
Visit = Callable[..., Visitor]


class Running(NamedTuple):
    """The browser of a worker, and the loop that it is driven by."""

    browser: Browser
    loop: asyncio.AbstractEventLoop


@pytest.fixture(scope="session")
def running_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The machine's own Chromium, with a home that is nobody's."""
    program = shutil.which("chromium")
    if program is None:
        missing("Chromium (`make browser`)")
    home = str(tmp_path_factory.mktemp("chromium"))
    environ: dict[str, str | float | bool] = {**os.environ, "HOME": home, "TZ": "UTC"}
    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=program, args=list(ARGS), env=environ, timeout=60_000
        )
        with out_of_sight() as loop:
            yield Running(browser, loop)
        browser.close()


@contextmanager
def out_of_sight() -> Iterator[asyncio.AbstractEventLoop]:
    """Playwright's loop stays in this thread; nobody else may take it for their own."""
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield loop
    finally:
        asyncio._set_running_loop(loop)


@contextmanager
def in_sight(running: Running) -> Iterator[None]:
    """While the browser is driven, its loop is the one of this thread."""
    asyncio._set_running_loop(running.loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)


@pytest.fixture
def chromium(running_browser: Running) -> Iterator[Browser]:
    """The browser, for as long as a test has it."""
    with in_sight(running_browser):
        yield running_browser.browser


@contextmanager
def shared(site: Site, running: Running) -> Iterator[Site]:
    """A site for several tests: to make a window takes longer than to load a page in one."""
    site.windows = {}
    yield site
    with in_sight(running):
        for window in chain.from_iterable(site.windows.values()):
            window.context.close()


class Stored:
    """A folder with a store, its file of settings, and what tests look for in it."""

    def __init__(self, folder: Path, furniture: Furniture) -> None:
        self.folder, self.furniture = folder, furniture

    def copied(self, folder: Path) -> Path:
        """The same in another folder, to be changed at will."""
        shutil.copytree(self.folder, folder)
        return folder


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """The furnished store, made once."""
    folder = tmp_path_factory.mktemp("furnished-for-a-browser") / "place"
    folder.mkdir()
    (folder / "truegreen.toml").write_text(TOML)
    file = folder / "store.db"
    ledger = open_ledger(f"sqlite://{file}", anchor=f"{file}.anchor")
    be_patient(ledger)
    furniture = furnish(ledger, folder / "state" / "truegreen")
    ledger.mark()
    ledger.close()
    return Stored(folder, furniture)


@pytest.fixture(scope="session")
def gallery(
    stored: Stored, running_browser: Running, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A server that everybody looks at and nobody changes."""
    folder = stored.copied(tmp_path_factory.mktemp("gallery") / "place")
    with Site(folder) as site, shared(site, running_browser):
        yield site


@pytest.fixture(scope="module")
def workshop(
    stored: Stored, running_browser: Running, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A server for all tests of a file; each acts on what it brought about itself."""
    folder = stored.copied(tmp_path_factory.mktemp("workshop") / "place")
    with Site(folder) as site, shared(site, running_browser):
        yield site


@pytest.fixture
def site(stored: Stored, tmp_path: Path) -> Iterator[Site]:
    """A server of one's own."""
    with Site(stored.copied(tmp_path / "place")) as site:
        yield site


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    """Somebody opens a site: by a role, logged in with a real link; `alone` in a new window."""
    with ExitStack() as stack:

        def come(
            site: Site, role: Role | None = Role.OPERATOR, *, alone: bool = False, **context: object
        ) -> Visitor:
            if alone or not role or site.windows is None:
                visitor = stack.enter_context(Visitor(chromium, site, **context))
                if role:
                    visitor.log_in(role)
                return visitor
            free = site.windows.setdefault((role, *sorted(context.items())), [])
            if free:
                visitor = free.pop()
                visitor.come_back()
            else:
                visitor = Visitor(chromium, site, **context)
                visitor.log_in(role)
            stack.callback(free.append, visitor)
            return visitor

        yield come


@pytest.fixture
def furniture(stored: Stored) -> Furniture:
    """What is in the store."""
    return stored.furniture
