"""Whether a commit holds all that was left: read from the agent's repository, and not believed."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

import pytest

from tests.work.workspace.scenes import git, repository, workspace
from truegreen.work.workspace import Snapshot, Workspace


@pytest.fixture
def taken(tmp_path: Path) -> Workspace:
    made = workspace(repository(tmp_path / "work", {"a": "1\n", "sub/b": "2\n"}))
    made.base("tsk_1")
    return made


def commit(root: str, message: str = "more") -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)


def left(taken: Workspace) -> Snapshot:
    return taken.left("run_1")


def object_of(taken: Workspace, name: str) -> Path:
    return Path(taken.root, ".git", "objects", name[:2], name[2:])


def test_a_commit_of_everything_holds_the_tree(taken: Workspace):
    Path(taken.root, "new").write_text("3\n")
    commit(taken.root)
    assert taken.is_committed(left(taken))


@pytest.mark.parametrize("path", ["a", "untracked"])
def test_work_that_is_not_committed_is_not_in_the_commit(taken: Workspace, path: str):
    commit_before = git(taken.root, "rev-parse", "HEAD")
    Path(taken.root, path).write_text("changed\n")
    found = left(taken)
    assert found.commit == commit_before
    assert not taken.is_committed(found)


def test_an_object_under_a_name_that_is_not_its_own_is_not_believed(taken: Workspace):
    Path(taken.root, "a").write_text("changed\n")
    found = left(taken)
    body = f"tree {found.digest.removeprefix('tree:')}\nauthor me\n\nall of it\n".encode()
    place = object_of(taken, found.commit)
    place.chmod(0o644)
    place.write_bytes(zlib.compress(b"commit %d\0" % len(body) + body))
    assert not taken.is_committed(found)


def test_something_else_than_a_commit_is_none(taken: Workspace):
    Path(taken.root, "a").write_text("changed\n")
    text = f"tree {left(taken).digest.removeprefix('tree:')}\n".encode()
    whole = b"blob %d\0" % len(text) + text
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    object_of(taken, name).parent.mkdir(exist_ok=True)
    object_of(taken, name).write_bytes(zlib.compress(whole))
    Path(taken.root, ".git", "HEAD").write_text(f"{name}\n")
    found = left(taken)
    assert found.commit == name
    assert not taken.is_committed(found)


@pytest.mark.parametrize(
    "data", [b"", b"garbage", zlib.compress(bytes(20_000_000)), zlib.compress(b"commit 1")]
)
def test_a_damaged_or_endless_object_proves_nothing(taken: Workspace, data: bytes):
    found = left(taken)
    place = object_of(taken, found.commit)
    place.chmod(0o644)
    place.write_bytes(data)
    assert not taken.is_committed(found)


def test_where_nobody_can_tell_the_answer_is_no(taken: Workspace, tmp_path: Path):
    assert taken.is_committed(left(taken))
    git(taken.root, "gc", "-q")
    assert not object_of(taken, left(taken).commit).exists()
    assert not taken.is_committed(left(taken)), "what is packed is not looked for"
    (tmp_path / "plain").mkdir()
    plain = workspace(tmp_path / "plain")
    plain.base("tsk_2")
    assert not plain.is_committed(plain.left("run_2"))
