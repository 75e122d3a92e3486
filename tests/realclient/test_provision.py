"""The cache of clients: pinned, whole or not at all, and without addresses."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from tests.realclient import provision

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr(provision, "CACHE", str(cache))
    return cache


def half(into: str) -> None:
    with open(os.path.join(into, "program"), "w", encoding="utf-8") as out:
        out.write("half of it")
    raise OSError("the line went dead")


def whole(into: str) -> None:
    path = os.path.join(into, "program")
    with open(path, "w", encoding="utf-8") as out:
        out.write("#!/bin/sh\n")
    os.chmod(path, 0o700)


def test_the_pins_name_no_address_and_hash_every_package():
    text = "".join(provision.pins().values())
    assert "://" not in text
    assert "--index" not in text
    assert set(provision.pins()) == {"claude-agent-sdk", "openai-codex-cli-bin"}
    for block in provision.pins().values():
        assert re.match(r"[\w-]+==[\d.]+ \\\n( +--hash=sha256:[0-9a-f]{64}( \\)?\n)+\Z", block)


def test_a_client_that_came_half_is_not_there(cache: Path):
    package = provision.Package("client-1", "program", half)
    with pytest.raises(OSError, match="went dead"):
        provision.install(package)
    assert os.listdir(cache) == []


def test_a_client_without_its_program_is_refused(cache: Path):
    package = provision.Package("client-1", "bin/program", whole)
    with pytest.raises(OSError, match="carries no program"):
        provision.install(package)
    assert os.listdir(cache) == []


def test_what_a_killed_fetch_left_is_cleared_away(cache: Path):
    (cache / ".half-of-it").mkdir()
    package = provision.Package("client-1", "program", whole)
    assert not package.present()
    provision.install(package)
    assert package.present()
    assert os.listdir(cache) == ["client-1"]
