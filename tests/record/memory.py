"""A test's own folder in memory: a flush to a disk is half of the time that a small store takes.

The same calls are made, and the store is as it would be on a disk. What a disk loses in a power cut
is the matter of `torture_disk`, which does not ask the real one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.postgres_server import roomiest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """An empty folder in memory, if there is enough of it; gone after the test."""
    with tempfile.TemporaryDirectory(prefix="tg-", dir=roomiest()) as folder:
        yield Path(folder)
