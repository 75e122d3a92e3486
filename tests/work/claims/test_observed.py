"""What a run left, looked at without running anything in it."""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path

import pytest

from truegreen.facts import Statement
from truegreen.work.claims.history import History, history_of
from truegreen.work.claims.observed import left_of
from truegreen.work.workspace import Workspace

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, name: str) -> str:
    (folder / name).write_text(name)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", name)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main", ".")
    return folder


NAMES = ("agent/x", "agent/y", "../../HEAD", "agent/../main", "")


@pytest.mark.criterion("J13")
def test_the_commits_since_the_base_are_found(repository: Path):
    base, one, two = (commit(repository, name) for name in "abc")
    git(repository, "branch", "agent/x")
    found = history_of(str(repository), two, base, NAMES)
    assert found == History(commits=(two, one), whole=True, branches=("agent/x",))
    assert history_of(str(repository), base, base) == History(whole=True)


def test_both_sides_of_a_merge_are_found(repository: Path):
    base = commit(repository, "a")
    git(repository, "checkout", "-qb", "side")
    side = commit(repository, "b")
    git(repository, "checkout", "-q", "main")
    main = commit(repository, "c")
    git(repository, "merge", "-q", "--no-edit", "side")
    head = git(repository, "rev-parse", "HEAD")
    found = history_of(str(repository), head, base)
    assert (set(found.commits), found.whole) == ({head, main, side}, True)


def test_what_is_packed_away_is_not_known_and_not_denied(repository: Path):
    base, one, two = (commit(repository, name) for name in "abc")
    git(repository, "gc", "-q")
    last = commit(repository, "d")
    assert history_of(str(repository), last, base) == History(commits=(last,), whole=False)
    assert history_of(str(repository), two, base) == History(commits=(), whole=False)
    assert one != two


def forged(repository: Path, name: str, data: bytes) -> None:
    path = repository / ".git" / "objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        zlib.compress(b"commit 4\0fake"),
        zlib.compress(b"blob 4\0fake"),
        zlib.compress(b"commit 99999999\0" + b"x" * (4 << 20)),
    ],
)
def test_an_object_that_is_not_what_its_name_says_is_not_there(repository: Path, data: bytes):
    base = commit(repository, "a")
    name = "ab" * 20
    forged(repository, name, data)
    assert history_of(str(repository), name, base) == History(whole=False)


def test_a_folder_without_git_has_no_history(tmp_path: Path):
    assert history_of(str(tmp_path), "a" * 40, "b" * 40) == History()


def test_no_program_of_the_agent_runs_while_it_is_looked_at(repository: Path, tmp_path: Path):
    base = commit(repository, "a")
    trap = tmp_path / "ran"
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(hook))
    history_of(str(repository), base, "", ("main",))
    assert not trap.exists()


def test_left_says_what_is_kept_and_what_is_only_there(repository: Path, tmp_path: Path):
    (repository / ".gitignore").write_text("dist/\n")
    first = commit(repository, "a")
    workspace = Workspace(str(repository), str(tmp_path / "mirrors"))
    base = workspace.base("task")
    second = commit(repository, "made.txt")
    os.makedirs(repository / "dist")
    (repository / "dist" / "app.js").write_text("x")
    left = workspace.left("run", base=base)
    said = [Statement(text="branch: main", kind="branch")]
    found = left_of(workspace, base, left, said, extra={"n": 1})
    assert (found.base, found.commit, found.branch) == (first, second, "main")
    assert found.history == History(commits=(second,), whole=True, branches=("main",))
    assert [found.kept(path) for path in ("made.txt", "dist/app.js", "no")] == [True, False, False]
    assert [found.ignored(path) for path in ("made.txt", "dist/app.js", "no")] == [
        False,
        True,
        False,
    ]
    assert found.extra == {"n": 1}
