"""Files of evaluators, whose paths lead through a work tree by links: never those of the agent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from truegreen.supervisor.reach import out_of_reach, safe_path
from truegreen.work.settings_files import compared, signed
from truegreen.work.workspace.mirror import find_git


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A work tree whose file `checks/judge.py` is a link to a file elsewhere.

    Two links lead into the tree: `alias` to all of it, and `side` to its folder `checks`.
    """
    kept = tmp_path / "kept.py"
    kept.write_text("print('mine')\n")
    top = tmp_path / "tree"
    (top / "checks").mkdir(parents=True)
    (top / "checks" / "judge.py").symlink_to(kept)
    (tmp_path / "alias").symlink_to(top)
    (tmp_path / "side").symlink_to(top / "checks")
    return top


@pytest.mark.parametrize(
    "name",
    ["tree/checks/judge.py", "alias/checks/judge.py", "side/judge.py", "side/../alias/../x"],
)
def test_a_file_behind_links_of_the_tree_is_taken_from_before_the_agent(
    root: Path, name: str
) -> None:
    base = root.parent / "base"
    shutil.copytree(root, base, symlinks=True)
    words = out_of_reach(
        ["python3", name], at=str(root.parent), root=str(root), base=lambda: str(base)
    )
    expected = str(base / "checks" / "judge.py") if name.endswith(".py") else name
    assert words == ("python3", expected)


def test_a_path_through_the_tree_is_not_searched_for_programs(root: Path) -> None:
    safe, side = root.parent / "safe", root.parent / "side"
    (safe / "checks").mkdir(parents=True)
    (root / "bin").symlink_to(safe)
    given = [str(safe), str(side), str(root / "bin"), f"{root}/../safe", "relative"]
    assert safe_path(":".join(given), str(root)) == f"{safe}:{root}/../safe"


def test_git_is_not_taken_through_the_tree(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("git")
    assert real
    (root / "checks" / "git").symlink_to(real)
    monkeypatch.setattr("truegreen.work.workspace.mirror.PLACES", ())
    monkeypatch.setenv("PATH", f"{root.parent / 'side'}:{Path(real).parent}")
    assert find_git(str(root)) == real


def test_settings_that_lead_through_the_tree_are_watched(root: Path) -> None:
    settings = root.parent / "truegreen.toml"
    (root / "ours.toml").symlink_to(root.parent / "kept.py")
    settings.symlink_to(root / "ours.toml")
    before = signed([str(settings)])
    assert compared(before, str(root)) == {str(settings): True}
