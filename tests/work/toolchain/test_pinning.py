"""Copies of tools: complete, made once, and never part of the original."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from truegreen.errors import DiskFull
from truegreen.work.toolchain import Pin, pinning
from truegreen.work.toolchain.pinning import KEPT_DAYS, Store, remove_tree
from truegreen.work.toolchain.scanning import Bounds, contents_of, scan


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    root = tmp_path / "tools"
    (root / "bin").mkdir(parents=True)
    (root / "lib" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "bin" / "run").write_text("#!/bin/sh\n")
    (root / "bin" / "run").chmod(0o755)
    (root / "lib" / "a.py").write_text("a = 1\n")
    (root / "lib" / "deep" / "b.py").write_text("b = 1\n")
    (root / "lib64").symlink_to("lib")
    (root / "bin" / "again").symlink_to("../lib/../bin/run")
    aged(root)
    return root


def aged(root: Path) -> None:
    """As if written a while ago: what is fresh is not remembered by its looks."""
    time.sleep(0.025)
    os.utime(root)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def nowhere(_: str) -> bool:
    return False


def pin(store: Store, path: Path, keeps=nowhere, **more) -> Pin:
    got = store.pin(str(path), keeps, **more)
    assert isinstance(got, Pin), got
    return got


def copies(tmp_path: Path) -> list[str]:
    return sorted(name for name in os.listdir(tmp_path / "store") if len(name) == 64)


def never(*_: object) -> None:
    pytest.fail("contents were read")


def test_a_copy_is_what_the_original_was_and_nobody_can_write_in_it(tools, store):
    got = pin(store, tools)
    copy = Path(got.copy)
    for name in ("bin/run", "lib/a.py", "lib/deep/b.py"):
        here, there = (root / name for root in (copy, tools))
        assert here.read_bytes() == there.read_bytes()
        assert here.stat().st_mtime_ns == there.stat().st_mtime_ns
        assert here.stat().st_ino != there.stat().st_ino
        assert here.stat().st_mode & 0o222 == 0
    assert os.access(copy / "bin/run", os.X_OK)
    assert not os.access(copy / "lib/a.py", os.X_OK)
    assert os.readlink(copy / "lib64") == "lib"
    assert (copy / "empty").is_dir()
    assert stat.S_IMODE((copy / "lib").stat().st_mode) == 0o555
    assert contents_of(scan(got.copy)) == got.digest


def test_a_file_alone_can_be_pinned(tools, store):
    got = pin(store, tools / "bin" / "run")
    assert got.file
    assert Path(got.copy).read_text() == "#!/bin/sh\n"
    assert contents_of(scan(got.copy)) == got.digest


def test_what_looks_the_same_is_not_read_again(tools, store, monkeypatch):
    first = pin(store, tools)
    monkeypatch.setattr(pinning, "_copy", never)
    monkeypatch.setattr(pinning, "_linked", never)
    assert pin(store, tools) == first


def test_a_change_gives_another_copy_and_the_earlier_one_stays(tools, store, tmp_path):
    first = pin(store, tools)
    (tools / "lib" / "a.py").write_text("a = 2\n")
    second = pin(store, tools)
    assert second.digest != first.digest
    assert copies(tmp_path) == sorted([first.digest, second.digest])
    assert Path(first.copy, "lib/a.py").read_text() == "a = 1\n"


def test_a_change_that_hides_behind_the_old_time_is_seen(tools, store):
    first = pin(store, tools)
    target = tools / "lib" / "a.py"
    seen = target.stat()
    target.write_text("a = 9\n")
    os.utime(target, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert target.stat().st_size == seen.st_size
    assert pin(store, tools).digest != first.digest


def test_unchanged_files_are_shared_with_an_earlier_copy_and_never_with_the_original(tools, store):
    first = pin(store, tools)
    (tools / "lib" / "a.py").write_text("a = 2\n")
    second = pin(store, tools)
    one, two = (Path(got.copy, "lib/deep/b.py").stat().st_ino for got in (first, second))
    assert one == two != (tools / "lib/deep/b.py").stat().st_ino
    assert Path(first.copy, "lib/a.py").stat().st_ino != Path(second.copy, "lib/a.py").stat().st_ino


def test_what_is_fresh_is_looked_at_again_because_two_changes_can_bear_one_time(
    tools, store, monkeypatch
):
    monkeypatch.setattr(pinning, "_TICK_NS", 10**15)
    pin(store, tools)
    made: list[str] = []
    monkeypatch.setattr(store, "_told", made.append)
    pin(store, tools)
    assert made == [str(tools)]


# --- links


def test_links_that_lead_out_are_followed_and_others_stay(tools, store, tmp_path):
    (tmp_path / "cache" / "pkg" / "inner").mkdir(parents=True)
    (tmp_path / "cache" / "pkg" / "inner" / "c.py").write_text("c")
    (tmp_path / "cache" / "one.py").write_text("one")
    (tmp_path / "cache" / "pkg" / "up").symlink_to("..")
    (tmp_path / "cache" / "beside.py").write_text("beside")
    (tmp_path / "cache" / "pkg" / "side").symlink_to("../beside.py")
    system = tmp_path / "system"
    system.write_text("s")
    (tools / "pkg").symlink_to(tmp_path / "cache" / "pkg")
    (tools / "one.py").symlink_to(tmp_path / "cache" / "one.py")
    (tools / "system").symlink_to(system)
    (tools / "broken").symlink_to("/nonexistent/x")
    copy = Path(pin(store, tools, lambda path: path == str(system)).copy)
    (tmp_path / "cache" / "one.py").write_text("changed")
    (tmp_path / "cache" / "pkg" / "inner" / "c.py").write_text("changed")
    assert (copy / "one.py").read_text() == "one"
    assert (copy / "pkg" / "side").read_text() == "beside"
    assert (copy / "pkg" / "inner" / "c.py").read_text() == "c"
    assert not (copy / "pkg").is_symlink()
    assert os.readlink(copy / "system") == str(system)
    assert os.readlink(copy / "broken") == "/nonexistent/x"


def test_a_change_behind_a_followed_link_gives_another_copy(tools, store, tmp_path):
    (tmp_path / "one.py").write_text("one")
    (tools / "one.py").symlink_to(tmp_path / "one.py")
    first = pin(store, tools)
    (tmp_path / "one.py").write_text("two")
    assert pin(store, tools).digest != first.digest


def test_a_link_that_climbs_by_another_link_is_not_taken_at_its_word(tools, store, tmp_path):
    (tmp_path / "out" / "folder").mkdir(parents=True)
    (tmp_path / "out" / "evil").write_text("before")
    (tools / "lib" / "hop").symlink_to(tmp_path / "out" / "folder")
    (tools / "lib" / "evil").symlink_to("hop/../evil")
    keeps = {str(tmp_path / "out" / "folder")}
    copy = Path(pin(store, tools, lambda path: path in keeps).copy)
    (tmp_path / "out" / "evil").write_text("after")
    assert (copy / "lib" / "evil").read_text() == "before"


def test_pipes_and_sockets_are_passed_by(tools, store):
    os.mkfifo(tools / "pipe")
    assert not Path(pin(store, tools).copy, "pipe").exists()


def test_a_pin_can_leave_folders_empty(tools, store):
    copy = Path(pin(store, tools, without=("lib",)).copy)
    assert (copy / "lib").is_dir()
    assert not list((copy / "lib").iterdir())


# --- bounds and trouble


@pytest.mark.parametrize("bounds", [Bounds(files=3), Bounds(bytes=10)])
def test_beyond_the_bounds_nothing_is_pinned_and_that_is_said(tools, tmp_path, bounds):
    got = Store(str(tmp_path / "store"), bounds=bounds).pin(str(tools), nowhere)
    assert isinstance(got, str)
    assert "more than" in got
    assert "not pinned" in got
    assert not (tmp_path / "store").exists()


def test_what_is_not_there_is_said(store, tmp_path):
    assert "can't be read" in str(store.pin(str(tmp_path / "no"), nowhere))


def test_whoever_dies_half_way_leaves_nothing_that_is_used(tools, store, tmp_path, monkeypatch):
    real, left = pinning._copy, iter(range(2))

    def dying(*given):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(pinning, "_copy", dying)
    with pytest.raises(KeyboardInterrupt):
        store.pin(str(tools), nowhere)
    assert not copies(tmp_path)
    assert os.listdir(tmp_path / "store") == ["seen"]
    monkeypatch.setattr(pinning, "_copy", real)
    assert Path(pin(store, tools).copy, "lib/deep/b.py").exists()


def test_a_full_disk_is_an_error_of_its_own(tools, store, tmp_path, monkeypatch):
    def full(*_: object) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pinning, "copied", full)
    with pytest.raises(DiskFull, match="no room left for a copy of"):
        store.pin(str(tools), nowhere)
    assert not copies(tmp_path)


def test_what_changes_while_it_is_copied_is_copied_again(tools, store, monkeypatch):
    real = pinning._copy
    told: list[object] = []

    def changing(entry, source, place):
        if not told:
            told.append(entry)
            (tools / "lib" / "a.py").write_text("a = 'later'\n")
        return real(entry, source, place)

    monkeypatch.setattr(pinning, "_copy", changing)
    assert Path(pin(store, tools).copy, "lib/a.py").read_text() == "a = 'later'\n"


def test_what_never_stands_still_is_not_pinned(tools, store, tmp_path, monkeypatch):
    real = pinning._copy

    def changing(entry, source, place):
        (tools / "lib" / f"{time.monotonic_ns()}").write_text("")
        return real(entry, source, place)

    monkeypatch.setattr(pinning, "_copy", changing)
    assert "changes all the time" in str(store.pin(str(tools), nowhere))
    assert not copies(tmp_path)


def test_two_at_once_make_one_copy(tools, tmp_path):
    told: list[str] = []
    found: list[Pin | str] = []

    def work() -> None:
        found.append(Store(str(tmp_path / "store"), told=told.append).pin(str(tools), nowhere))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({getattr(each, "digest", each) for each in found}) == 1
    assert len(copies(tmp_path)) == 1
    assert told == [str(tools)]


def test_the_same_contents_elsewhere_are_the_same_copy(tools, store, tmp_path):
    first = pin(store, tools)
    tools.rename(tmp_path / "moved")
    assert pin(store, tmp_path / "moved").copy == first.copy


@pytest.mark.parametrize("junk", [b"", b"\xff\xff", b"\x80"])
def test_a_damaged_note_is_no_note(tools, store, tmp_path, junk):
    first = pin(store, tools)
    for note in (tmp_path / "store" / "seen").iterdir():
        note.write_bytes(junk)
    assert pin(store, tools).digest == first.digest


def test_a_copy_that_somebody_changed_is_not_taken_for_a_new_one(tools, store, tmp_path):
    first = pin(store, tools)
    changed = Path(first.copy, "lib/a.py")
    changed.chmod(0o644)
    changed.write_text("a = 'evil'\n")
    for note in (tmp_path / "store" / "seen").iterdir():
        note.unlink()
    assert pin(store, tools).copy == first.copy
    assert changed.read_text() == "a = 1\n"


# --- tidying


def test_only_copies_that_nobody_used_for_long_are_removed(tools, store, tmp_path):
    first = pin(store, tools)
    long_ago = time.time() - (KEPT_DAYS + 1) * 86_400
    folder = tmp_path / "store"
    os.utime(folder / first.digest, (long_ago, long_ago))
    store.tidy()
    assert not copies(tmp_path)
    assert "seen" in os.listdir(folder)


def test_what_is_used_counts_from_then(tools, store, tmp_path):
    first = pin(store, tools)
    long_ago = time.time() - (KEPT_DAYS + 1) * 86_400
    os.utime(tmp_path / "store" / first.digest, (long_ago, long_ago))
    pin(store, tools)
    store.tidy()
    assert copies(tmp_path) == [first.digest]


def test_what_was_never_finished_goes_after_a_day(tools, store, tmp_path):
    pin(store, tools)
    dead, alive = (tmp_path / "store" / f"tmp_truegreen_1_{name}" for name in ("a", "b"))
    for folder in (dead, alive):
        (folder / "tree").mkdir(parents=True)
        (folder / "tree").chmod(0o555)
    old = time.time() - 2 * 86_400
    os.utime(dead, (old, old))
    store.tidy()
    assert not dead.exists()
    assert alive.exists()


def test_a_copy_can_be_removed_though_nobody_can_write_in_it(tools, store):
    copy = pin(store, tools).copy
    remove_tree(copy)
    assert not os.path.exists(copy)
