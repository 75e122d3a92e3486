"""Snapshots are written to last, and a disk makes each of them wait; these tests need no disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.work.workspace.scenes import fast_folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder of the test's own, in memory where there is a place for that."""
    with fast_folder() as folder:
        yield Path(folder)
