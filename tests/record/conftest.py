"""Fixtures of the record: a ledger whose time passes when a test says so."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.record.memory import tmp_path
from tests.record.timing import Clock
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["tmp_path"]


@pytest.fixture
def clock() -> Clock:
    """The clock of `timed`."""
    return Clock()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Address of a SQLite store that does not exist yet: how it is made matters here."""
    return f"sqlite://{tmp_path}/truegreen.db"


@pytest.fixture
def made_url(sqlite_url: str, plain_store: Path) -> str:
    """The same, and the store is there, with default settings: a copy of one that was just made."""
    shutil.copy(plain_store, sqlite_url.removeprefix("sqlite://"))
    return sqlite_url


@pytest.fixture(scope="session")
def timed_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was made when the clock of `timed` begins."""
    path = tmp_path_factory.mktemp("timed") / "timed.db"
    open_ledger(f"sqlite://{path}", clock=Clock()).close()
    return path


@pytest.fixture
def timed(tmp_path: Path, timed_store: Path, clock: Clock) -> Iterator[Ledger]:
    """A ledger with default settings, whose time passes when the test says so."""
    shutil.copy(timed_store, tmp_path / "timed.db")
    ledger = open_ledger(f"sqlite://{tmp_path}/timed.db", clock=clock)
    yield ledger
    ledger.close()
