"""Which settings files an agent could write, and whether it did."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from truegreen.config import spot
from truegreen.work.jail import Placed
from truegreen.work.settings_files import (
    Life,
    around,
    changed_at,
    compared,
    could_write,
    signed,
    still,
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree with a folder in it."""
    (tmp_path / "tree" / "part").mkdir(parents=True)
    return tmp_path / "tree"


def test_a_file_is_looked_for_upward_and_where_it_is_in_force(tree: Path):
    ours = str(tree.parent / "ops.toml")
    found = around([ours, ""], str(tree / "part"))
    assert found[0] == ours
    names = [str(folder / "truegreen.toml") for folder in (tree / "part", tree, tree.parent)]
    assert list(found[1:4]) == names
    assert found[-1] == "/truegreen.toml"
    assert around([""], str(tree))[0] == names[1]


def test_links_to_a_folder_are_another_way_to_the_same_file(tree: Path):
    (tree.parent / "link").symlink_to(tree)
    file = str(tree / "truegreen.toml")
    assert spot(str(tree.parent / "link" / "truegreen.toml")) == file
    assert file in around([], str(tree.parent / "link"))
    linked = str(tree.parent / "link" / "truegreen.toml")
    assert could_write({file: False}, linked, (), Life(0, 1))


@pytest.mark.parametrize("deed", ["write", "make", "remove", "link"])
def test_what_became_of_a_file_is_seen(tree: Path, deed: str):
    file, other = tree / "truegreen.toml", tree / "other"
    other.write_text("b")
    if deed != "make":
        file.write_text("a")
    before = signed([str(file)])
    assert compared(before, str(tree)) == {str(file): True}
    if deed in ("remove", "link"):
        file.unlink()
    if deed == "link":
        file.symlink_to(other)
    elif deed != "remove":
        file.write_text("b")
    assert compared(before, str(tree)) == {str(file): False}


def test_of_what_lies_elsewhere_only_a_change_is_kept(tree: Path):
    outside = tree.parent / "truegreen.toml"
    outside.write_text("a")
    before = signed([str(outside), str(tree / "truegreen.toml")])
    assert compared(before, str(tree)) == {str(tree / "truegreen.toml"): True}
    outside.write_text("b")
    assert compared(before, str(tree))[str(outside)] is False


def test_of_what_is_used_it_is_kept_that_it_is_the_same(tree: Path):
    outside = tree.parent / "ops.toml"
    outside.write_text("a")
    before = signed([str(outside)])
    assert compared(before, str(tree), [str(outside), ""]) == {str(outside): True}


def test_a_run_could_write_what_it_changed_and_what_changed_in_its_life():
    file = "/x/truegreen.toml"
    life = Life(10, 20)
    assert not could_write({file: True}, file, (15,), life)
    assert could_write({file: False}, file, (5,), life)
    assert [at for at in (9, 10, 20, 21) if could_write({}, file, (at,), life)] == [10, 20]
    assert could_write({}, file, (21,), Life(10, None))
    assert not could_write({}, file, (9,), Life(10, None))
    assert [at for at in (7, 8, 22, 23) if could_write({}, file, (at,), Life(10, 20, 2))] == [8, 22]


def test_when_a_file_changed_can_not_be_set_back(tree: Path):
    file = tree / "truegreen.toml"
    file.write_text("a")
    (first,) = changed_at(str(file))
    time.sleep(0.02)
    file.write_text("b")
    os.utime(file, (1, 1))
    (then,) = changed_at(str(file))
    assert then > first
    (tree / "link").symlink_to(file)
    assert then in changed_at(str(tree / "link"))
    time.sleep(0.02)
    file.unlink()
    assert max(changed_at(str(file))) > then


def test_files_are_held_still_where_that_can_be(tree: Path):
    file, above, linked = (
        folder / "truegreen.toml" for folder in (tree, tree.parent, tree / "part")
    )
    file.write_text("a")
    above.write_text("a")
    linked.symlink_to(file)
    names = [str(each) for each in (file, above, linked, tree / "missing.toml")]
    held = still(names, str(tree))
    assert held == (Placed(names[0], names[0]), Placed(names[1], names[1]))
    covered = still(names, str(tree), [str(tree.parent)])
    assert covered == (Placed(names[0], names[0]),)
