"""The estate on which attacks and twins are played: prepared tools, and a ground for each."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator

import pytest

from tests.attacks.ground import Estate
from tests.attacks.loaded_command import loaded_command
from tests.conftest import missing


@pytest.fixture(scope="session")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """One per worker; tools, and the copies that are pinned of them, are made once for all."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        missing("bubblewrap")
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    forge = loaded_command()
    yield Estate(tmp_path_factory.mktemp("estate"), common / "attacks", forge)
    forge.close()
