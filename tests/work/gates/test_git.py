"""Gates of kind `git`: committed, on its branch, pushed; read from the objects and the remote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.work.gates.trees import Tree
from truegreen.contract import Gate, GateKind
from truegreen.model import FindingOutcome, Level
from truegreen.work.workspace import Workspace

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE


def git(**more) -> Gate:
    return Gate(name="git", kind=GateKind.GIT, **more)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    tree = Tree(tmp_path, {"a.txt": "before\n", ".gitignore": "*.log\ninner.git/\n"})
    tree.git("remote", "add", "origin", str(remote))
    tree.remotes = tree.workspace.remotes()
    return tree


def work(tree: Tree, branch: str = "agent/fix") -> str:
    tree.git("switch", "-q", "-c", branch)
    tree.write({"a.txt": "after\n", "noise.log": "ignored\n"})
    tree.git("commit", "-q", "-a", "-m", "fix")
    return tree.git("rev-parse", "HEAD")


@pytest.mark.criterion("A25", "E24")
def test_a_commit_of_everything_passes(tree):
    commit = work(tree)
    found = tree.ask(git(branch="agent/"))
    assert (found.outcome, found.level) == (PASSED, Level.A2)
    assert found.reason == f"committed {commit[:12]}; on agent/fix"
    assert found.evidence["commit"] == commit


def test_packed_commits_are_read_too(tree):
    work(tree)
    tree.git("gc", "-q", "--prune=now")
    assert tree.ask(git()).outcome is PASSED


def test_nothing_committed_is_red(tree):
    tree.write({"a.txt": "after\n"})
    found = tree.ask(git())
    assert found.outcome is FAILED
    assert found.reason.startswith("nothing was committed since ")


@pytest.mark.parametrize("left", [{"a.txt": "later\n"}, {"new.txt": "untracked\n"}])
def test_work_beside_the_commit_is_red(tree, left):
    work(tree)
    tree.write(left)
    found = tree.ask(git())
    assert found.outcome is FAILED
    assert found.reason.startswith("not everything is committed")


def test_another_branch_is_red(tree):
    work(tree, "feature")
    found = tree.ask(git(branch="agent/"))
    assert (found.outcome, found.reason) == (
        FAILED,
        "on feature, not on a branch that starts with agent/",
    )


@pytest.mark.criterion("E30")
def test_a_push_is_read_from_the_remote(tree):
    work(tree)
    found = tree.ask(git(pushed=True))
    assert (found.outcome, found.reason) == (FAILED, "origin has no branch agent/fix")
    tree.git("push", "-q", "origin", "agent/fix")
    assert tree.ask(git(pushed=True)).outcome is PASSED
    tree.write({"a.txt": "more\n"})
    tree.git("commit", "-q", "-a", "-m", "more")
    found = tree.ask(git(pushed=True))
    assert found.outcome is FAILED
    assert "origin/agent/fix is at " in found.reason


@pytest.mark.criterion("E30")
def test_a_remote_that_the_agent_redirected_does_not_count(tree):
    work(tree)
    fake = tree.home / "fake.git"
    subprocess.run(["git", "init", "-q", "--bare", fake], check=True)
    tree.git("remote", "set-url", "origin", str(fake))
    tree.git("push", "-q", "origin", "agent/fix")
    tree.git("update-ref", "refs/remotes/origin/agent/fix", "HEAD")
    assert tree.ask(git(pushed=True)).outcome is FAILED


def test_a_remote_by_its_address_needs_no_name(tree):
    work(tree)
    tree.git("push", "-q", "origin", "agent/fix")
    remote = tree.remotes["origin"]
    assert tree.ask(git(pushed=True, remote=remote), remotes={}).outcome is PASSED
    assert tree.ask(git(pushed=True, remote=f"file://{remote}"), remotes={}).outcome is PASSED


def test_a_remote_in_the_workspace_is_worth_a1(tree):
    work(tree)
    inner = tree.root / "inner.git"
    subprocess.run(["git", "init", "-q", "--bare", inner], check=True)
    tree.git("push", "-q", str(inner), "agent/fix")
    found = tree.ask(git(pushed=True, remote=str(inner)))
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert "lies in the workspace" in found.evidence["doubt"]


@pytest.mark.parametrize(
    ("remote", "reason"),
    [
        ("upstream", "there was no remote upstream"),
        ("/nonexistent/remote.git", "can't be read"),
        ("ext::sh -c touch% /tmp/evil", "there was no remote"),
    ],
)
def test_a_remote_that_can_not_be_read_is_a_gate_error(tree, remote, reason):
    work(tree)
    found = tree.ask(git(pushed=True, remote=remote))
    assert found.outcome is ERROR
    assert reason in found.reason


def test_a_remote_that_would_run_a_program_is_never_asked(tree, tmp_path):
    work(tree)
    mark = tmp_path / "ran"
    found = tree.ask(git(pushed=True), remotes={"origin": f"ext::touch {mark}"})
    assert (found.outcome, found.reason) == (
        ERROR,
        "gate error: origin is no address that is safe to ask",
    )
    assert not mark.exists()


def test_settings_hooks_and_filters_of_the_agent_do_not_run(tree, tmp_path):
    work(tree)
    tree.git("push", "-q", "origin", "agent/fix")
    mark = tmp_path / "ran"
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {mark}\n")
    trap.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "uploadpack.packObjectsHook", "core.pager"):
        tree.git("config", key, str(trap))
    tree.git("config", "filter.x.clean", str(trap))
    tree.git("config", "core.alternateRefsCommand", str(trap))
    tree.write(
        {".git/info/attributes": "* filter=x\n", ".git/hooks/post-checkout": trap.read_text()}
    )
    mark.unlink(missing_ok=True)
    assert tree.ask(git(pushed=True)).outcome is PASSED
    assert not mark.exists()


def test_a_head_that_names_no_commit_is_red(tree):
    work(tree)
    (tree.root / ".git/refs/heads/agent/fix").write_text("1" * 40 + "\n")
    found = tree.ask(git())
    assert found.outcome is FAILED
    assert "is no commit of the repository" in found.reason


def test_a_swapped_object_is_not_believed(tree):
    commit = work(tree)
    tree.write({"a.txt": "uncommitted\n"})
    tree.git("add", "-A")
    other = tree.git("commit-tree", "-m", "x", tree.git("write-tree"))
    objects = tree.root / ".git/objects"
    forged = objects / commit[:2] / commit[2:]
    forged.chmod(0o644)
    forged.write_bytes((objects / other[:2] / other[2:]).read_bytes())
    assert tree.ask(git()).outcome is FAILED


def test_replaced_commits_are_seen_as_they_are(tree):
    commit = work(tree)
    tree.write({"a.txt": "uncommitted\n"})
    tree.git("add", "-A")
    other = tree.git("commit-tree", "-m", "x", tree.git("write-tree"))
    tree.git("replace", commit, other)
    assert tree.ask(git()).outcome is FAILED


def test_a_deleted_repository_is_red_and_no_repository_at_all_an_error(tree, tmp_path):
    work(tree)
    subprocess.run(["rm", "-rf", tree.root / ".git"], check=True)
    assert tree.ask(git()).outcome is FAILED
    other = tmp_path / "other"
    other.mkdir()
    plain = Tree(other, {"a.txt": "x"}, git=False)
    assert plain.ask(git()).outcome is ERROR


def test_a_worktree_is_read_like_its_repository(tree):
    tree.git("worktree", "add", "-q", "-b", "side", str(tree.home / "side"))
    tree.root = tree.home / "side"
    tree.workspace = Workspace(str(tree.root), str(tree.home / "mirrors"))
    tree.base = tree.workspace.base("tsk_side")
    assert tree.ask(git()).outcome is FAILED
    commit = work(tree)
    found = tree.ask(git(branch="agent/"))
    assert (found.outcome, found.evidence["commit"]) == (PASSED, commit)
