"""A checkout from a snapshot, and work that is left as a branch, whatever the repository says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from truegreen.errors import InvalidInput, Unavailable
from truegreen.work.workspace import Workspace
from truegreen.work.workspace.branches import Published, Work, publish
from truegreen.work.workspace.checkout import Made, check_out

TASK = "tsk_1"
BRANCH = f"truegreen/{TASK}"


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "init.defaultBranch=m")
    return subprocess.run(
        ["git", "-C", folder, *names, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit and a change in none."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "kept").write_text("kept\n")
    (folder / "changed").write_text("old\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    (folder / "changed").write_text("in no commit\n")
    return folder


class Scene:
    """A checkout of a repository, and what is left on its branch."""

    def __init__(self, repo: Path, tmp_path: Path) -> None:
        self.repo, self.out, self.mirrors = repo, tmp_path / "out" / TASK, str(tmp_path / "mirrors")
        self.made = self._made()
        self.workspace = Workspace(str(self.out), self.mirrors)
        self.base = self.workspace.base(TASK)

    def _made(self) -> Made:
        original = Workspace(str(self.repo), self.mirrors)
        return check_out(original, original.base(TASK), str(self.out), branch=BRANCH)

    def publish(self, ours: str = "") -> Published:
        left = self.workspace.left("run_1", base=self.base)
        work = Work(self.base, left, self.made.commit, self.made.tree, "the work\n")
        return publish(str(self.repo), self.workspace, TASK, work, ours)


@pytest.fixture
def scene(repo: Path, tmp_path: Path) -> Scene:
    return Scene(repo, tmp_path)


def test_a_checkout_has_the_files_the_history_and_nothing_else_of_its_repository(
    repo: Path, tmp_path: Path
) -> None:
    git(repo, "branch", "answer")
    git(repo, "tag", "answer-key")
    git(repo, "remote", "add", "origin", "https://user:secret@example.org/x.git")
    git(repo, "config", "user.name", "Ana")
    out = Scene(repo, tmp_path).out
    assert (out / "changed").read_text() == "in no commit\n"
    assert git(out, "status", "--short") == "M changed"
    assert git(out, "rev-parse", "HEAD") == git(repo, "rev-parse", "HEAD")
    assert git(out, "for-each-ref", "--format=%(refname)") == f"refs/heads/{BRANCH}"
    assert git(out, "remote", "get-url", "origin") == "https://example.org/x.git"
    assert git(out, "config", "--local", "user.name") == "Ana"
    assert os.stat(out / ".git" / "HEAD").st_nlink == 1
    git(out, "fsck", "--full")


def test_a_checkout_that_can_not_be_made_leaves_nothing(repo: Path, tmp_path: Path) -> None:
    original = Workspace(str(repo), str(tmp_path / "mirrors"))
    snapshot = original.base(TASK)
    for file in (repo / ".git" / "objects").glob("??/*"):
        file.unlink()
    with pytest.raises(Unavailable, match="git fetch failed"):
        check_out(original, snapshot, str(tmp_path / "out" / TASK), branch=BRANCH)
    assert os.listdir(tmp_path / "out") == []


def test_work_is_left_as_a_branch_with_what_was_in_no_commit_below_it(scene: Scene) -> None:
    (scene.out / "new").write_text("new\n")
    (scene.out / "kept").unlink()
    done = scene.publish()
    assert (done.branch, done.commit) == (BRANCH, git(scene.repo, "rev-parse", BRANCH))
    assert git(scene.repo, "diff", "--name-status", f"{BRANCH}~1", BRANCH).split() == [
        *("D", "kept", "A", "new"),
    ]
    assert git(scene.repo, "diff", "--name-only", f"{BRANCH}~2", f"{BRANCH}~1") == "changed"
    assert git(scene.repo, "rev-parse", f"{BRANCH}~2") == git(scene.repo, "rev-parse", "HEAD")
    git(scene.repo, "fsck", "--full", "--strict")
    git(scene.repo, "gc", "-q", "--prune=now")
    assert git(scene.repo, "show", f"{BRANCH}:new") == "new"


def test_nothing_of_the_repository_is_run(scene: Scene, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for folder in (hooks, scene.repo / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in ("reference-transaction", "post-checkout", "post-update", "update"):
            (folder / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
            (folder / name).chmod(0o755)
    for key, value in {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": f"touch {ran}",
        "core.alternateRefsCommand": f"touch {ran}",
        "uploadpack.packObjectsHook": f"touch {ran}",
        "filter.x.clean": f"touch {ran}; cat",
        "filter.x.smudge": f"touch {ran}; cat",
    }.items():
        with (scene.repo / ".git" / "config").open("a") as file:
            section, _, name = key.rpartition(".")
            shown = f'{section.partition(".")[0]} "x"' if "." in section else section
            file.write(f'[{shown}]\n\t{name} = "{value}"\n')
    (scene.repo / ".gitattributes").write_text("* filter=x\n")
    (scene.out / ".gitattributes").write_text("* filter=x\n")
    again = Workspace(str(scene.repo), scene.mirrors)
    check_out(again, again.base("tsk_2"), str(tmp_path / "second"), branch="truegreen/tsk_2")
    scene.publish()
    assert not ran.exists()


def test_a_branch_that_is_ours_moves_and_another_is_left_alone(scene: Scene) -> None:
    (scene.out / "a").touch()
    first = scene.publish()
    (scene.out / "b").touch()
    second = scene.publish(ours=first.commit)
    assert (second.branch, git(scene.repo, "rev-parse", BRANCH)) == (BRANCH, second.commit)
    git(scene.repo, "update-ref", f"refs/heads/{BRANCH}", "HEAD")
    (scene.out / "c").touch()
    third = scene.publish(ours=second.commit)
    assert third.branch == f"{BRANCH}-2"
    assert git(scene.repo, "rev-parse", BRANCH) == git(scene.repo, "rev-parse", "HEAD")
    git(scene.repo, "pack-refs", "--all")
    assert scene.publish(ours=third.commit).branch == f"{BRANCH}-2"


def test_a_branch_that_a_work_tree_stands_on_is_not_moved(scene: Scene, tmp_path: Path) -> None:
    (scene.out / "a").touch()
    first = scene.publish()
    git(scene.repo, "worktree", "add", "-q", str(tmp_path / "tree"), BRANCH)
    (scene.out / "b").touch()
    assert scene.publish(ours=first.commit).branch == f"{BRANCH}-2"
    assert git(scene.repo, "rev-parse", BRANCH) == first.commit


def test_a_branch_called_like_our_folder_leaves_room_for_another_name(scene: Scene) -> None:
    git(scene.repo, "branch", "truegreen")
    (scene.out / "a").touch()
    done = scene.publish()
    assert done.branch == f"truegreen-{TASK}"
    assert git(scene.repo, "rev-parse", done.branch) == done.commit


def test_a_lock_of_git_is_respected(scene: Scene) -> None:
    lock = scene.repo / ".git" / "refs" / "heads" / "truegreen" / f"{TASK}.lock"
    lock.parent.mkdir()
    lock.touch()
    (scene.out / "a").touch()
    assert scene.publish().branch == f"{BRANCH}-2"
    assert lock.exists()


@pytest.mark.parametrize("place", ["objects/pack", "refs/heads/truegreen"])
def test_nothing_is_written_through_a_link(scene: Scene, tmp_path: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    spot = scene.repo / ".git" / place
    if spot.exists():
        spot.rmdir()
    spot.symlink_to(elsewhere)
    (scene.out / "a").touch()
    with pytest.raises(InvalidInput, match="is a link"):
        scene.publish()
    assert os.listdir(elsewhere) == []


@pytest.mark.parametrize(
    ("line", "words"), [("refstorage = reftable", "reftable"), ("objectformat = sha256", "sha256")]
)
def test_a_repository_in_another_format_is_left_alone(scene: Scene, line: str, words: str) -> None:
    with (scene.repo / ".git" / "config").open("a") as file:
        file.write(f"[extensions]\n\t{line}\n")
    (scene.out / "a").touch()
    with pytest.raises(InvalidInput, match=words):
        scene.publish()
