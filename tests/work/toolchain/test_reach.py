"""What an agent could change, and paths by other names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from truegreen.work.toolchain.reach import named_in, within_reach

STRANGER = 54321


@pytest.fixture
def stranger(monkeypatch):
    """As if we were a user to whom nothing belongs."""

    def access(path: str, mode: int) -> bool:
        assert mode == os.W_OK
        return bool(os.stat(path).st_mode & 0o002)

    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    monkeypatch.setattr(os, "access", access)


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    (tmp_path / "prefix" / "lib").mkdir(parents=True)
    (tmp_path / "prefix" / "lib" / "os.py").write_text("")
    return tmp_path / "prefix"


@pytest.mark.usefixtures("stranger")
def test_what_belongs_to_others_is_out_of_reach(prefix):
    assert not within_reach(str(prefix / "lib"))
    assert not within_reach(str(prefix / "lib" / "os.py"))


@pytest.mark.usefixtures("stranger")
def test_what_anybody_may_write_is_within_reach(prefix):
    (prefix / "lib").chmod(0o777)
    assert within_reach(str(prefix / "lib"))
    assert not within_reach(str(prefix))


@pytest.mark.usefixtures("stranger")
def test_what_can_be_replaced_from_above_is_within_reach(prefix):
    prefix.chmod(0o777)
    assert within_reach(str(prefix / "lib" / "os.py"))
    prefix.chmod(0o1777)
    assert not within_reach(str(prefix / "lib" / "os.py"))


@pytest.mark.usefixtures("stranger")
def test_a_link_is_as_near_as_what_it_leads_to(prefix, tmp_path):
    (tmp_path / "link").symlink_to(prefix / "lib")
    assert not within_reach(str(tmp_path / "link"))


def test_our_own_and_what_is_missing_is_within_reach(prefix):
    (prefix / "lib").chmod(0o555)
    assert within_reach(str(prefix / "lib"))
    assert within_reach(str(prefix / "missing"))


def test_only_links_above_a_folder_are_seen_through(prefix, tmp_path):
    (tmp_path / "link").symlink_to(prefix)
    (prefix / "inner").symlink_to("lib")
    place = str(prefix)
    assert named_in(f"{tmp_path}/link/lib/os.py", place) == f"{prefix}/lib/os.py"
    assert named_in(f"{tmp_path}/link/inner/os.py", place) == f"{prefix}/inner/os.py"
    assert named_in(f"{prefix}/inner/os.py", place) == f"{prefix}/inner/os.py"
    assert named_in("/usr/bin/env", place) == "/usr/bin/env"
