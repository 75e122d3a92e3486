"""An agent in a run does not touch the hooks that hold it, also where it hides what it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.walk.conftest import Walk, own, shell
from tests.walk.test_people import BARE


@pytest.mark.criterion("O02")
def test_an_agent_that_dropped_its_environment_neither_installs_nor_uninstalls(walk: Walk) -> None:
    settings = Path(os.environ["HOME"], ".claude", "settings.json")
    settings.parent.mkdir()
    walk.tg("install", "claude-code", "--yes", "--no-verify")
    before = settings.read_text()
    acts = [
        own("install", "claude-code", *words, "--yes", "--no-verify", "--store", walk.store)
        for words in (["--uninstall"], ["--project"])
    ]
    line = "; ".join(f"{BARE} {act} >>tried 2>&1; echo $? >>tried" for act in acts)
    walk.run("--isolation", "reaper", "--gate", "true", *shell(line))
    lines = (walk.folder / "tried").read_text().splitlines()
    assert [line for line in lines if line.isdigit()] == ["2", "2"], lines
    assert settings.read_text() == before
    assert not (walk.folder / ".claude").exists()
