"""The mirror keeps every snapshot, whoever writes at once, dies, or tampers."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.work.workspace.scenes import (
    GIT_ENVIRONMENT,
    contents,
    git,
    repository,
    workspace,
    write,
)
from truegreen import errors
from truegreen.work.workspace import Workspace, mirror, packs, walking

WRITER = """
import sys
from truegreen.work.workspace import Workspace
taken = Workspace(sys.argv[1], sys.argv[2])
print("ready", flush=True)
for number in range(int(sys.argv[4])):
    base = taken.base(sys.argv[3])
    taken.left(f"{sys.argv[3]}_{number}", base=base)
"""


def writer(root: Path, mirrors: Path, name: str, rounds: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(mirrors), name, str(rounds)],
        stdout=subprocess.PIPE,
    )


def fsck(taken: Workspace) -> str:
    return git(taken.mirror.path, "fsck", "--strict", "--no-dangling")


@pytest.mark.criterion("G28", "M09")
@pytest.mark.parametrize("kind", ["git", "plain"])
def test_a_person_gets_partial_work_back_with_the_command_we_name(tmp_path: Path, kind: str):
    files = {"a.txt": "1\n", "sub/b.txt": "2\n"}
    root = (repository if kind == "git" else write)(tmp_path / "work", files)
    taken = workspace(root)
    taken.base("tsk_1")
    write(root, {"a.txt": "half done\n", "new.txt": "3\n"})
    left = taken.left("run_1")
    made = contents(root)
    shutil.rmtree(root)
    mine = repository(tmp_path / "mine", {}) if kind == "git" else tmp_path
    command = taken.describe(left.ref)
    subprocess.run(["/bin/sh", "-ec", command], cwd=mine, env=GIT_ENVIRONMENT, check=True)
    if kind == "git":
        git(mine, "checkout", "-q", "truegreen/left/run_1")
        assert "half done" in git(mine, "diff", "truegreen/left/run_1~1", "truegreen/left/run_1")
        assert git(mine, "log", "-1", "--format=%an %s") == "truegreen truegreen left run_1"
    assert contents(mine if kind == "git" else tmp_path / "truegreen-left-run_1") == made
    assert fsck(taken) == ""
    with pytest.raises(errors.NotFound):
        taken.describe("refs/truegreen/left/run_2")


@pytest.mark.criterion("G28", "M09")
def test_a_second_snapshot_under_one_name_keeps_the_first_in_reach(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1"})
    taken = workspace(root)
    bases, lefts = [], []
    for text in ("2", "3", "4"):
        write(root, {"a.txt": text})
        bases.append(taken.base("t"))
        lefts.append(taken.left("r"))
    for ref, kept in ((bases[0].ref, bases), (lefts[0].ref, lefts)):
        reached = git(taken.mirror.path, "rev-list", ref).split()
        assert {snapshot.id for snapshot in kept} <= set(reached)
    assert git(taken.mirror.path, "rev-parse", f"{lefts[0].ref}^1") == bases[2].id


def test_the_mirror_is_ours_alone(tmp_path: Path):
    root = write(tmp_path / "work", {"a.txt": "1"})
    taken = workspace(root)
    path = Path(taken.mirror.path)
    assert path.stat().st_mode & 0o777 == 0o700
    path.chmod(0o755)
    assert Path(workspace(root).mirror.path).stat().st_mode & 0o777 == 0o700
    shutil.rmtree(path)
    path.symlink_to(tmp_path)
    with pytest.raises(errors.Unavailable, match="not a folder of ours"):
        workspace(root)


def test_two_supervisors_write_at_once(tmp_path: Path):
    root = repository(tmp_path / "work", {f"{n}.txt": str(n) for n in range(20)})
    mirrors = tmp_path / "mirrors"
    writers = [writer(root, mirrors, name, 12) for name in ("one", "one", "two")]
    assert [process.wait(50) for process in writers] == [0, 0, 0]
    for process in writers:
        assert process.stdout
        process.stdout.close()
    taken = workspace(root)
    assert fsck(taken) == ""
    assert len(git(taken.mirror.path, "rev-list", "refs/truegreen/base/one").split()) == 24
    assert not list(mirrors.glob("*.git.*"))


@pytest.mark.parametrize("round_", range(4))
def test_a_writer_killed_at_any_moment_wedges_nothing(tmp_path: Path, round_: int):
    root = repository(tmp_path / "work", {f"{n}.txt": str(n) for n in range(50)})
    process = writer(root, tmp_path / "mirrors", "one", 10_000)
    assert process.stdout
    process.stdout.readline()
    taken = workspace(root)
    while not taken.snapshot_of("refs/truegreen/base/one"):
        time.sleep(0.002)
    time.sleep(round_ * 0.003)
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    begun = time.monotonic()
    base = taken.base("two")
    assert time.monotonic() - begun < 10
    kept = taken.snapshot_of("refs/truegreen/base/one")
    assert kept
    assert kept.digest == base.digest
    assert fsck(taken) == ""


def test_a_lock_that_is_held_too_long_is_an_error_that_says_so(tmp_path: Path, monkeypatch):
    root = write(tmp_path / "work", {"a.txt": "1"})
    taken = workspace(root)
    monkeypatch.setattr(mirror, "_PATIENCE_S", 0.05)
    with (
        workspace(root).mirror.locked(),
        pytest.raises(errors.Unavailable, match="another truegreen"),
    ):
        taken.base("t")
    taken.base("t")


def test_many_snapshots_are_packed_together_and_all_stay_readable(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(mirror, "_PACKS", 6)
    root = repository(tmp_path / "work", {"a.txt": "0", "same.txt": "same\n" * 100})
    taken, other = workspace(root), workspace(root)
    base = taken.base("t")
    lefts = []
    for number in range(20):
        write(root, {"a.txt": "line\n" * 200 + str(number)})
        lefts.append(taken.left(f"r{number}"))
    written = list((Path(taken.mirror.path) / "objects" / "pack").glob("*.pack"))
    assert len(written) < 10
    assert len(other.changes(base, lefts[3])) == 1
    monkeypatch.setattr(mirror.Mirror, "_read_by_git", None)  # nothing was packed as a delta
    for number in (0, 7, 19):
        laid = other.lay(lefts[number], str(tmp_path / f"c{number}"))
        assert contents(laid.root)[b"a.txt"][1].endswith(b"\n" + str(number).encode())
    assert fsck(taken) == ""


def test_a_mirror_that_a_person_s_git_packed_with_deltas_is_still_read(tmp_path: Path):
    root = repository(tmp_path / "work", {f"{n}.txt": "line\n" * 500 + str(n) for n in range(9)})
    taken = workspace(root)
    base = taken.base("t")
    git(taken.mirror.path, "repack", "-adfq", "--window=10", "--depth=50")
    git(taken.mirror.path, "pack-refs", "--all", "--prune")
    delta = git(taken.mirror.path, "cat-file", "--batch-all-objects", "--batch-check=%(deltabase)")
    assert set(delta.split()) != {"0" * 40}
    assert contents(workspace(root).lay(base, str(tmp_path / "copy")).root) == contents(root)
    assert workspace(root).snapshot_of(base.ref) == base


def test_a_changed_configuration_of_the_mirror_is_set_right_before_git_runs(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1\n"})
    taken = workspace(root)
    base = taken.base("t")
    write(root, {"a.txt": "2\n"})
    left = taken.left("r")
    marker = tmp_path / "marker"
    with open(Path(taken.mirror.path) / "config", "a") as file:
        file.write(f"[alias]\n\tx = y\n[diff]\n\texternal = touch {marker}\n")
    (Path(taken.mirror.path) / "HEAD").write_text(f"ref: {left.ref}\n")
    assert "+2" in taken.diff(base, left)
    assert not marker.exists()
    assert (Path(taken.mirror.path) / "HEAD").read_text() == "ref: refs/heads/none\n"
    assert "external" not in (Path(taken.mirror.path) / "config").read_text()


def test_without_git_the_first_word_says_what_to_install(tmp_path: Path, monkeypatch):
    root = write(tmp_path / "work", {"a.txt": "1"})
    planted = write(root, {"bin/git": "#!/bin/sh\n"}) / "bin" / "git"
    planted.chmod(0o755)
    monkeypatch.setattr(mirror, "PLACES", ())
    monkeypatch.setenv("PATH", f"{root}/bin:relative:{tmp_path}/link")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "git").symlink_to(planted)
    with pytest.raises(errors.Unavailable, match="install git"):
        workspace(root)


def test_a_full_disk_is_an_error_that_leaves_no_snapshot(tmp_path: Path):
    root = write(tmp_path / "work", {"a.txt": "1"})
    taken = workspace(root)
    taken.base("small")
    (root / "noise").write_bytes(os.urandom(1 << 20))
    write(root, {f"{n}.txt": os.urandom(1000).hex() for n in range(2000)})  # past the buffer
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, before[1]))
    try:
        with pytest.raises(errors.DiskFull, match="no room"):
            taken.base("big")
        with pytest.raises(errors.DiskFull, match="no room"):
            taken.base("big")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert taken.snapshot_of("refs/truegreen/base/big") is None
    assert not list((Path(taken.mirror.path) / "objects" / "pack").glob("tmp_*"))
    base = taken.base("big")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, before[1]))
    try:
        with pytest.raises(errors.DiskFull, match="clean copy"):
            taken.lay(base, str(tmp_path / "copy"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_old_unfinished_files_of_killed_writers_are_removed(tmp_path: Path):
    root = write(tmp_path / "work", {"a.txt": "1"})
    folder = Path(workspace(root).mirror.path) / "objects" / "pack"
    write(folder, {"tmp_truegreen_1_a": "x", "tmp_truegreen_2_b": "y"})
    os.utime(folder / "tmp_truegreen_1_a", (0, 0))
    workspace(root)
    assert os.listdir(folder) == ["tmp_truegreen_2_b"]


def test_a_link_swapped_in_while_we_walk_is_never_followed(tmp_path: Path):
    """Somebody swaps a folder and a file for links to a secret as fast as they can."""
    root = write(tmp_path / "work", {f"{n}/f.txt": "open" for n in range(30)})
    write(root, {"15/deep/key": "open", "file": "open"})
    secret = write(tmp_path / "secret", {"key": "SECRET", "deep/key": "SECRET", "f.txt": "SECRET"})
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for path, goal in ((root / "15", secret), (root / "file", secret / "key")):
                os.rename(path, tmp_path / "aside")
                os.symlink(goal, path)
                os.unlink(path)
                os.rename(tmp_path / "aside", path)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        taken = workspace(root)
        for _ in range(60):
            taken.left("r")
    finally:
        stop.set()
        swapper.join()
    said = git(taken.mirror.path, "cat-file", "--batch-all-objects", "--batch")
    assert "open" in said
    assert "SECRET" not in said


def test_a_file_that_is_not_what_it_was_listed_as_is_not_waited_for(tmp_path: Path, monkeypatch):
    """A pipe takes the place of a file between the listing and the opening."""
    root = write(tmp_path / "work", {"a.txt": "1", "b.txt": "2"})
    real = walking.Walk._file

    def swapped(self, folder, name, path):
        if name == b"b.txt":
            os.unlink(root / "b.txt")
            os.mkfifo(root / "b.txt")
        return real(self, folder, name, path)

    monkeypatch.setattr(walking.Walk, "_file", swapped)
    base = workspace(root).base("t")
    assert base.refused == ("b.txt: a pipe",)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_put_in_place_after_the_listing_is_not_followed(tmp_path: Path, monkeypatch, kind):
    root = write(tmp_path / "work", {"a.txt": "1", "x" if kind == "file" else "x/key": "2"})
    secret = write(tmp_path / "secret", {"key": "SECRET"})
    step = "_file" if kind == "file" else "_below"
    real = getattr(walking.Walk, step)

    def swapped(self, folder, name, path, *more):
        if name == b"x":
            os.rename(root / "x", tmp_path / "aside")
            os.symlink(secret / "key" if kind == "file" else secret, root / "x")
        return real(self, folder, name, path, *more)

    monkeypatch.setattr(walking.Walk, step, swapped)
    base = workspace(root).base("t")
    assert base.files == 1
    assert base.refused[0].startswith("x: ")


def test_a_disk_that_is_full_is_not_taken_for_a_file_that_cannot_be_read(tmp_path: Path):
    packer = packs.Packer(str(tmp_path), lambda _: False)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, before[1]))
    try:
        with pytest.raises(errors.DiskFull):
            packer.add(b"blob", os.urandom(4 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        packer.abandon()
    assert os.listdir(tmp_path) == ["home"]


def test_a_file_that_keeps_growing_is_refused_not_read_for_ever(tmp_path: Path, monkeypatch):
    root = write(tmp_path / "work", {"a.txt": "1", "grows": "x" * 100})
    real = walking.Walk._weigh

    def grow(self, size):
        if size >= 100:
            with open(root / "grows", "ab") as file:
                file.write(b"y")
        real(self, size)

    monkeypatch.setattr(walking.Walk, "_weigh", grow)
    base = workspace(root).base("t")
    assert base.files == 1
    assert base.refused == ("grows: kept changing while it was read",)


def test_a_file_that_grew_once_is_taken_as_it_was_read(tmp_path: Path, monkeypatch):
    root = write(tmp_path / "work", {"grows": "x" * 100})
    real = walking.Walk._weigh

    def grow(self, size):
        if size == 100:
            (root / "grows").write_bytes(b"z" * 200)
        real(self, size)

    monkeypatch.setattr(walking.Walk, "_weigh", grow)
    taken = workspace(root)
    base = taken.base("t")
    assert (base.bytes, base.refused) == (200, ())
    assert contents(taken.lay(base, str(tmp_path / "c")).root)[b"grows"][1] == b"z" * 200
