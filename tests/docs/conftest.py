"""The Python of what is typed here: gates look at all files of its installation in each run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lean_python import on_lean_python


@pytest.fixture(scope="session")
def small_python(small_python: Path) -> Path:
    """The small environment, on an installation that is small, too; one for all workers."""
    return on_lean_python(small_python, small_python.parents[1].with_name("lean"))
