"""A snapshot is the workspace as it is, with the digest that git gives it."""

from __future__ import annotations

import os
import random
import shutil
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.work.workspace.scenes import (
    contents,
    fast_folder,
    git,
    git_digest,
    repository,
    workspace,
    write,
)
from truegreen import errors
from truegreen.work.workspace import Change, Limits, TooMuch, Workspace, dotgit, top_of

EMPTY = "tree:4b825dc642cb6eb9a060e54bf8d69288fbee4904"

NAMES = st.sampled_from(
    [b"a", b"b", b"a.b", b"a-", b"a0", b"A", b"x.py", b"x.log", b"build", b"\xc3\xa9", b"\xff\xfe",
     b"new\nline", b"sp ace", b"-rf", b"\"'", b"n" * 200, b".hidden", b"gitx", b".gitx", b"git~2"]
)  # fmt: skip
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(b"/".join)
LEAVES = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=40)),
    st.tuples(st.just("program"), st.binary(max_size=40)),
    st.tuples(st.just("link"), st.sampled_from([b"a", b"x.py", b"./b", b"a/x.py"])),
)
RULES = st.sampled_from(
    ["", "*.log\n", "build/\n", "/a\n", "a/*\n!a/b\n", "**/b\n", "x*\n!x.py\n", "*\n!*/\n!*.py\n"]
)


def build(root: Path, tree: dict[bytes, tuple[str, bytes]]) -> None:
    """Make files and links, but none where a file already stands in the way."""
    for path, (kind, data) in tree.items():
        place = os.path.join(os.fsencode(str(root)), path)
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if os.path.lexists(place):
                continue
            if kind == "link":
                os.symlink(data, place)
            else:
                with open(place, "wb") as file:
                    file.write(data)
                os.chmod(place, 0o755 if kind == "program" else 0o644)
        except OSError:  # a link to itself, a file in the way
            continue


@settings(max_examples=40)
@given(
    before=st.dictionaries(PATHS, LEAVES, max_size=12),
    after=st.dictionaries(PATHS, LEAVES, max_size=12),
    rules=RULES,
    inner=RULES,
    exclude=RULES,
    version=st.sampled_from(["2", "4"]),
)
def test_the_digest_is_git_s_own_tree_hash(before, after, rules, inner, exclude, version):
    with fast_folder() as folder:
        root = Path(folder) / "work"
        root.mkdir()
        git(root, "init", "-q")
        git(root, "config", "index.version", version)
        build(root, before)
        git(root, "add", "-A", "-f")  # tracked, whatever the rules that come later
        git(root, "update-index", "--index-version", version)
        (root / ".gitignore").write_text(rules)
        if (root / "a").is_dir() and not (root / "a").is_symlink():
            (root / "a" / ".gitignore").write_text(inner)
        (root / ".git" / "info" / "exclude").write_text(exclude)
        build(root, after)
        assert workspace(root).base("t").digest == git_digest(root)


def test_uncommitted_changed_and_deleted_files_are_taken_as_they_are(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1", "b.txt": "2", "gone.txt": "3"})
    write(root, {"a.txt": "changed", "new/c.txt": "4"})
    (root / "gone.txt").unlink()
    taken = workspace(root)
    base = taken.base("tsk_1")
    assert base.digest == git_digest(root)
    assert (base.kind, base.files, base.refused) == ("git", 3, ())
    assert base.bytes == len("changed" + "2" + "4")


def test_a_tracked_file_is_taken_though_it_is_ignored(tmp_path: Path):
    root = repository(tmp_path / "work", {"build/kept.txt": "1", "a.txt": "2"})
    write(root, {".gitignore": "build/\n", "build/other.txt": "3"})
    taken = workspace(root)
    taken.lay(taken.base("t"), str(tmp_path / "copy"))
    assert set(contents(tmp_path / "copy")) == {b"build/kept.txt", b"a.txt", b".gitignore"}


NOISE = random.Random(0).randbytes(3000)  # noqa: S311 - the same for all workers


@pytest.mark.parametrize(
    "damage",
    [b"", b"DIRC", b"DIRC\0\0\0\2\xff\xff\xff\xff", b"\0" * 5000, NOISE],
)
def test_an_odd_index_only_loses_what_is_ignored(tmp_path: Path, damage: bytes):
    root = repository(tmp_path / "work", {"a.txt": "2", ".gitignore": "*.log\n"})
    write(root, {"x.log": "1"})
    git(root, "add", "-f", "x.log")
    assert workspace(root).base("t").files == 3
    (root / ".git" / "index").write_bytes(damage)
    assert workspace(root).base("u").files == 2


def test_an_index_whose_paths_grow_without_end_is_not_believed(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    entries = [bytes(62) + b"\0" + b"x" * 1000 + b"\0"] * 5
    (root / ".git" / "index").write_bytes(struct.pack(">4sII", b"DIRC", 4, 5) + b"".join(entries))
    found = dotgit.repository_of(str(root))
    assert found
    assert dotgit.tracked_by(found) == frozenset()


def test_a_new_rule_hides_nothing_from_what_was_left(tmp_path: Path):
    root = repository(
        tmp_path / "work", {"a.txt": "1", "t.py": "assert 0", ".gitignore": "*.log\n"}
    )
    taken = workspace(root)
    base = taken.base("t")
    write(root, {".gitignore": "*\n", "evil.py": "x", "t.py": "pass", "sub/.gitignore": "*\n"})
    write(root, {"sub/evil.py": "x", "noise.log": "x"})
    (root / ".git" / "info" / "exclude").write_text("evil.py\n")
    left = taken.left("r")
    paths = {change.path for change in taken.changes(base, left)}
    assert paths == {".gitignore", "evil.py", "t.py", "sub/.gitignore", "sub/evil.py"}
    assert any(note.startswith(".gitignore changed") for note in left.notes)
    assert any(note.startswith("sub/.gitignore changed") for note in left.notes)


def test_a_later_process_still_judges_by_the_rules_of_the_base(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    (root / ".git" / "info" / "exclude").write_text("*.tmp\n")
    base = workspace(root).base("t")
    (root / ".git" / "info" / "exclude").write_text("*\n")
    write(root, {"evil.py": "x", "b.tmp": "x"})
    later = workspace(root)
    again = later.snapshot_of(base.ref)
    assert again == base
    left = later.left("r", base=again)
    assert later.changes(base, left) == (Change("evil.py", "added"),)


def test_work_that_is_no_longer_ignored_or_was_added_by_force_counts(tmp_path: Path):
    root = repository(tmp_path / "work", {".gitignore": "out/\n*.bin\n"})
    taken = workspace(root)
    base = taken.base("t")
    write(root, {".gitignore": "*.bin\n*.log\n", "out/result.txt": "done", "out/noise.log": "3"})
    write(root, {"forced.bin": "1", "x.bin": "2"})
    git(root, "add", "-f", "forced.bin")
    paths = {change.path for change in taken.changes(base, taken.left("r"))}
    assert paths == {".gitignore", "out/result.txt", "forced.bin"}


def test_a_file_of_the_base_counts_though_it_is_ignored_and_no_longer_tracked(tmp_path: Path):
    root = repository(tmp_path / "work", {"secret.cfg": "1", "a.txt": "2"})
    write(root, {".gitignore": "*.cfg\n"})
    taken = workspace(root)
    base = taken.base("t")
    git(root, "rm", "-q", "--cached", "secret.cfg")
    write(root, {"secret.cfg": "changed"})
    assert taken.changes(base, taken.left("r")) == (Change("secret.cfg", "changed"),)


def test_products_that_only_the_agent_ignores_do_not_lose_its_work(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    taken = workspace(root, Limits(files=50))
    base = taken.base("t")
    write(root, {".gitignore": "node_modules/\n", "app.js": "1"})
    write(root, {f"node_modules/{n}.js": "x" for n in range(100)})
    left = taken.left("r")
    paths = {change.path for change in taken.changes(base, left)}
    assert paths == {".gitignore", "app.js"}
    assert any("own rules" in reason for reason in left.refused)


def test_a_folder_without_git_has_the_same_form(tmp_path: Path):
    root = write(tmp_path / "work", {"a.txt": "1", ".gitignore": "*\n", "sub/b": "2"})
    write(root, {"__pycache__/a.pyc": "derived", "sub/__pycache__/b.pyc": "derived"})
    taken = workspace(root)
    base = taken.base("t")
    assert (base.kind, base.commit, base.branch, base.files) == ("plain", "", "", 3)
    shutil.rmtree(root / "__pycache__")
    shutil.rmtree(root / "sub" / "__pycache__")
    (root / ".gitignore").unlink()
    write(tmp_path / "twin", {"a.txt": "1", "sub/b": "2"})
    git(tmp_path / "twin", "init", "-q")
    assert taken.left("r").digest == git_digest(tmp_path / "twin")


def test_a_repository_that_the_agent_made_hides_nothing(tmp_path: Path):
    root = write(tmp_path / "work", {"a.txt": "1"})
    taken = workspace(root)
    base = taken.base("t")
    write(root, {".gitignore": "*\n", "evil": "x"})
    git(root, "init", "-q")
    left = taken.left("r")
    assert {change.path for change in taken.changes(base, left)} == {".gitignore", "evil"}


def test_a_repository_that_the_agent_deleted_still_has_its_rules(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1", ".gitignore": "*.log\n"})
    write(root, {"x.log": "noise"})
    taken = workspace(root)
    base = taken.base("t")
    shutil.rmtree(root / ".git")
    left = taken.left("r")
    assert left.digest == base.digest
    assert (left.commit, left.branch) == ("", "")


@pytest.mark.criterion("O08")
def test_what_cannot_be_taken_is_listed_with_its_reason(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1", "sub/b.txt": "2"})
    secret = write(tmp_path / "secret", {"key": "s"})
    os.symlink(secret / "key", root / "absolute")
    os.symlink("../secret/key", root / "outside")
    os.symlink("sub/../../secret", root / "climbs")
    os.symlink("a.txt", root / ".gitmodules")
    os.symlink("sub", root / "inside")
    os.mkfifo(root / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.relpath(root / "sock"))
    listener.close()
    write(root, {".GIT/config": "x", "git~1": "x"})
    repository(root / "nested", {"n.txt": "3"})
    base = workspace(root).base("t")
    reasons = dict(reason.split(": ", 1) for reason in base.refused)
    assert set(reasons) == {
        "absolute", "outside", "climbs", ".gitmodules", "pipe", "sock", ".GIT", "git~1",
        "nested/.git",
    }  # fmt: skip
    assert "leaves the tree" in reasons["outside"]
    assert "absolute" in reasons["absolute"]
    assert "its files are taken as plain files" in reasons["nested/.git"]
    taken = workspace(root)
    taken.lay(base, str(tmp_path / "copy"))
    assert set(contents(tmp_path / "copy")) == {b"a.txt", b"sub/b.txt", b"inside", b"nested/n.txt"}


def test_a_file_that_cannot_be_read_is_refused_not_skipped(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1", "b.txt": "2"})
    (root / "b.txt").chmod(0)
    base = workspace(root).base("t")
    readable = os.geteuid() == 0  # root reads everything
    assert base.files == 1 + readable
    assert base.refused == (() if readable else ("b.txt: can't be read (permission denied)",))


@pytest.mark.criterion("G28")
def test_a_deleted_workspace_leaves_an_empty_tree_that_says_so(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    taken = workspace(root)
    base = taken.base("t")
    shutil.rmtree(root)
    left = taken.left("r")
    assert (left.digest, left.files) == (EMPTY, 0)
    assert "does not exist; nothing was left" in left.refused[0]
    assert taken.changes(base, left) == (Change("a.txt", "deleted"),)
    assert taken.digest() == EMPTY
    assert workspace(root).snapshot_of(left.ref) == left


def test_a_workspace_whose_name_is_no_text_can_vanish_too(tmp_path: Path):
    root = os.fsdecode(os.fsencode(str(tmp_path)) + b"/\xff\xfe")
    os.mkdir(root)
    taken = Workspace(root, str(tmp_path / "mirrors"))
    taken.base("t")
    os.rmdir(root)
    assert "\\xff\\xfe does not exist" in taken.left("r").refused[0]


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_workspace_that_became_something_else_is_gone_too(tmp_path: Path, kind: str):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    taken = workspace(root)
    taken.base("t")
    shutil.rmtree(root)
    if kind == "file":
        root.write_text("x")
    else:
        root.symlink_to(write(tmp_path / "elsewhere", {"secret": "s"}))
    left = taken.left("r")
    assert left.digest == EMPTY
    assert left.refused


@pytest.mark.parametrize("missing", ["nowhere", "file"])
def test_a_base_needs_a_folder(tmp_path: Path, missing: str):
    (tmp_path / "file").write_text("x")
    with pytest.raises(errors.InvalidInput, match=r"does not exist|not a folder"):
        workspace(tmp_path / missing).base("t")


@pytest.mark.parametrize("limits", [Limits(files=9), Limits(bytes=99)])
def test_a_workspace_that_is_too_big_is_refused_with_the_way_on(tmp_path: Path, limits: Limits):
    root = repository(tmp_path / "work", {f"{n}.txt": "0123456789" for n in range(10)})
    taken = workspace(root, limits)
    with pytest.raises(TooMuch, match=r"\.gitignore before the agent starts"):
        taken.base("t")
    assert taken.snapshot_of("refs/truegreen/base/t") is None
    assert not os.listdir(Path(taken.mirror.path) / "objects" / "pack")


def test_a_sparse_giant_is_refused_before_it_is_read(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    with open(root / "giant", "wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(TooMuch):
        workspace(root).base("t")


def test_progress_is_told(tmp_path: Path):
    root = write(tmp_path / "work", {f"{n}": "12" for n in range(2100)})
    told: list[tuple[int, int]] = []
    taken = Workspace(
        str(root), str(tmp_path / "m"), progress=lambda files, size: told.append((files, size))
    )
    taken.base("t")
    assert told == [(1000, 2000), (2000, 4000)]


def test_our_own_folders_are_no_work(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1", "state/b.txt": "2"})
    inside = Workspace(
        str(root), str(root / ".truegreen" / "mirrors"), leave_out=(str(root / "state"),)
    )
    write(root, {".truegreen/seen.txt": "3"})
    base = inside.base("t")
    assert base.files == 2
    assert inside.left("r").digest == base.digest
    with pytest.raises(errors.InvalidInput, match="own files"):
        Workspace(str(root / "state"), str(root))


def test_the_commit_and_branch_are_read_without_git(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    first = git(root, "rev-parse", "HEAD")
    assert _where(root) == (first, "main")
    git(root, "pack-refs", "--all")
    assert _where(root) == (first, "main")
    git(root, "checkout", "-q", "-b", "feature/x")
    git(root, "commit", "-q", "--allow-empty", "-m", "second")
    second = git(root, "rev-parse", "HEAD")
    assert _where(root) == (second, "feature/x")
    git(root, "checkout", "-q", "--detach", first)
    assert _where(root) == (first, "")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"), "main")
    assert _where(tmp_path / "tree") == (first, "main")
    git(root, "checkout", "-q", "--orphan", "fresh")
    assert _where(root) == ("", "fresh")


def _where(root: Path) -> tuple[str, str]:
    base = workspace(root).base("t")
    assert base.kind == "git"
    return base.commit, base.branch


@pytest.mark.parametrize(
    "head",
    [
        "ref: refs/heads/../../../secret\n",
        "ref: /etc/passwd\n",
        "ref: refs/heads/\n",
        "0" * 39,
        "x" * 40,
        "ref: refs/heads/a\x1b[31m\n",
        "",
    ],
)
def test_a_head_that_names_no_ref_is_no_commit(tmp_path: Path, head: str):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    write(root, {"secret": "a" * 40})
    (root / ".git" / "HEAD").write_text(head)
    assert workspace(root).base("t").commit == ""


def test_remotes_are_read_without_git(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    git(root, "remote", "add", "origin", "https://example.org/a.git")
    git(root, "config", "remote.odd name.url", 'ssh://h/"quoted" # x')
    write(tmp_path, {"more": '[remote "evil"]\n\turl = ext::sh -c true\n'})
    git(root, "config", "include.path", str(tmp_path / "more"))
    assert workspace(root).remotes() == {
        "origin": "https://example.org/a.git",
        "odd name": 'ssh://h/"quoted" # x',
    }
    assert workspace(write(tmp_path / "plain", {"a": "1"})).remotes() == {}


def test_the_top_of_a_work_tree_is_found(tmp_path: Path):
    root = repository(tmp_path / "work", {"a/b/c.txt": "1"})
    assert top_of(str(root / "a" / "b")) == str(root.resolve())
    assert top_of(str(tmp_path)) == str(tmp_path.resolve())


@pytest.mark.parametrize(
    "name", ["", "a/b", "../x", "-x", "a..b", "x.lock", ".x", "x.", "a b", "x" * 200]
)
def test_a_name_that_could_leave_the_refs_is_refused(tmp_path: Path, name: str):
    root = write(tmp_path / "work", {"a": "1"})
    with pytest.raises(errors.InvalidInput):
        workspace(root).base(name)
    with pytest.raises(errors.InvalidInput):
        workspace(root).snapshot_of(f"refs/heads/{name}")


def test_the_digest_now_is_what_left_would_keep_and_moves_with_the_tree(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    taken = workspace(root)
    base = taken.base("t")
    assert taken.digest() == base.digest
    write(root, {"big": "x" * (9 << 20)})
    assert taken.digest() != base.digest
    assert taken.digest() == taken.left("r").digest == git_digest(root)
