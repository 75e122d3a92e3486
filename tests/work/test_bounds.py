"""Memory and disk: what all processes of a tree may take together, counted and not guessed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.table import each_row
from tests.work.filling import FILL, filling
from tests.work.running import launch, need_jail
from truegreen.contract import Isolation
from truegreen.work import machine, shim, watch
from truegreen.work.process import Ended, Limits, machine_memory, run

MIB = 1 << 20


@pytest.fixture(params=[Isolation.JAIL, Isolation.REAPER])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    level: Isolation = request.param
    if level is Isolation.JAIL:
        need_jail()
    return level


def python(folder: Path, script: str, isolation: Isolation, **limits: int) -> Ended:
    words = (sys.executable, "-I", "-S", "-c", script)
    return run(launch(folder, *words, isolation=isolation, limits=Limits(**limits)))


# -- memory ----------------------------------------------------------------------------------------

ONE = "import time; held = b'x' * (300 << 20); time.sleep(20)"
MANY = """
import os, time
for _ in range(6):
    if not os.fork():
        held = b'x' * (60 << 20); time.sleep(20)
time.sleep(20)
"""
SHARED = """
import mmap, time
held = mmap.mmap(-1, 300 << 20)
for _ in range(300):
    held.write(b'x' * (1 << 20))
time.sleep(20)
"""


@pytest.mark.criterion("E16")
@pytest.mark.parametrize("script", [ONE, MANY, SHARED], ids=["one", "many", "shared"])
def test_a_tree_that_holds_too_much_memory_is_ended(
    tmp_path: Path, isolation: Isolation, script: str
):
    ended = python(tmp_path, script, isolation, resident=200 * MIB)
    assert (ended.stopped, ended.code, ended.signal) == ("memory", None, signal.SIGKILL)
    assert ended.survivors == ()
    assert ended.seconds < 10


FORKED = """
import os, time
held = b'x' * (120 << 20)
for _ in range(4):
    if not os.fork():
        time.sleep(0.5); os._exit(0)
time.sleep(0.7)
"""
MAPPED = """
import mmap, time
with open('big', 'wb') as file:
    file.truncate(300 << 20)
with open('big', 'rb') as file:
    seen = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    sum(seen[at] for at in range(0, len(seen), 4096)); time.sleep(0.6)
"""
RESERVED = "import mmap, time; held = mmap.mmap(-1, 8 << 30); time.sleep(0.5)"


@pytest.mark.parametrize("script", [FORKED, MAPPED, RESERVED], ids=["forked", "mapped", "reserved"])
def test_what_is_shared_or_mapped_or_only_reserved_is_not_counted_twice(
    tmp_path: Path, isolation: Isolation, script: str
):
    ended = python(tmp_path, script, isolation, resident=200 * MIB)
    assert (ended.stopped, ended.code) == ("", 0)


def test_a_process_that_has_gone_since_it_was_seen_holds_nothing():
    script = "print(flush=True); import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()  # by now it holds something
        seen = shim.entry_of(process.pid)
        process.kill()
    assert seen
    assert seen.pages > 0
    assert shim.pages_held(seen) == 0


def test_a_process_that_does_not_show_its_memory_counts_with_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
):
    me = shim.entry_of(os.getpid())
    assert me
    assert 0 < shim.pages_held(me) < me.pages

    def refuse(path: str) -> bytes:
        raise PermissionError(path)

    monkeypatch.setattr(shim, "read_all", refuse)
    assert shim.pages_held(me) == me.pages
    monkeypatch.setattr(shim, "read_all", lambda _: b"Rss: 4 kB\nPss: 4 kB\n")  # an old kernel
    assert shim.pages_held(me) == me.pages


def test_the_memory_of_a_machine_is_what_a_container_grants(tmp_path: Path):
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < machine_memory() <= total
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "memory/c").mkdir(parents=True)
    for name, text in {
        "a/memory.max": "2000\n",
        "a/b/memory.max": "max\n",
        "memory/c/memory.limit_in_bytes": "3000\n",
    }.items():
        (tmp_path / name).write_text(text)
    listing = tmp_path / "cgroup"
    listing.write_text("4:cpu,memory:/c\n3:cpu:/a\n0::/a/b\n")
    assert sorted(machine._granted(str(tmp_path), str(listing))) == [2000, 3000]
    assert machine._granted(str(tmp_path), str(tmp_path / "none")) == []


# -- disk ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", list(Isolation)[1:])
def test_a_tree_that_fills_its_room_is_ended(tmp_path: Path, level: Isolation):
    ended = filling(tmp_path, FILL, level, room_bytes=30 * MIB)
    assert (ended.stopped, ended.code, ended.signal) == ("room", None, signal.SIGKILL)
    used = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert 30 * MIB < used < 2000 * MIB


def test_what_others_write_to_the_same_disk_is_not_held_against_it(
    tmp_path: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
):
    """The file system loses much, but not to this tree."""
    free = chain([100 * MIB], repeat(0))
    monkeypatch.setattr(watch, "free_bytes", lambda _: next(free))
    ended = filling(tmp_path, "echo x > small; sleep 0.9", isolation, room_bytes=30 * MIB)
    assert (ended.stopped, ended.code) == ("", 0)


SMALL_DISK = """
import sys
from pathlib import Path
from tests.work.filling import FILL, NAMELESS, filling
from truegreen.contract import Isolation
scripts = {"files": FILL, "nameless": f"{sys.executable} -c \\"{NAMELESS}\\""}
ended = filling(Path(sys.argv[1]), scripts[sys.argv[2]], Isolation(sys.argv[3]),
                spare_bytes=40 << 20, room_bytes=1 << 40)
print(ended.stopped, ended.code, ended.signal, ended.disk_full)
"""


@pytest.mark.parametrize("how", ["files", "nameless"])
def test_the_last_of_a_disk_is_kept_whoever_fills_it(
    tmp_path: Path, isolation: Isolation, how: str
):
    """On a disk of 200 MiB, which only a mount namespace of our own can give."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=200m none {disk}"
    unshare = ["unshare", "-m", "sh", "-c"]
    if subprocess.run([*unshare, mount], capture_output=True, check=False).returncode:
        missing("a mount of our own")
    script = f'{mount} && exec {sys.executable} -c "$0" {disk} {how} {isolation}'
    done = subprocess.run(
        [*unshare, script, SMALL_DISK], capture_output=True, text=True, check=False
    )
    assert done.stdout == "disk None 9 True\n", done.stderr


def test_a_full_disk_is_seen_without_any_mount(
    tmp_path: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watch, "free_bytes", lambda _: 10)
    ended = filling(tmp_path, "sleep 20", isolation, spare_bytes=11)
    assert (ended.stopped, ended.signal, ended.disk_full) == ("disk", signal.SIGKILL, True)


def test_a_disk_that_is_full_at_the_end_shows_however_the_tree_ended(
    tmp_path: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
):
    """Who fills it in no time ends by itself, and blames the work."""
    monkeypatch.setattr(watch, "ROOM_SECONDS", 60.0)  # a slow start is not to be caught meanwhile
    monkeypatch.setattr(watch, "free_bytes", lambda _: 10)
    ended = filling(tmp_path, "exit 0", isolation, spare_bytes=11)
    assert (ended.code, ended.stopped, ended.disk_full) == (0, "", True)
    assert not filling(tmp_path, "exit 0", isolation, spare_bytes=10).disk_full


def test_a_folder_is_counted_once_and_no_further_than_needed(tmp_path: Path):
    (tmp_path / "deep/er").mkdir(parents=True)
    block = os.urandom(MIB)
    for name in ("one", "deep/two", "deep/er/three"):
        (tmp_path / name).write_bytes(block)
    os.link(tmp_path / "one", tmp_path / "deep/again")
    (tmp_path / "loop").symlink_to(tmp_path)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    folders = [str(tmp_path)]
    assert machine.holds_more(folders, 3 * MIB - 1)
    assert not machine.holds_more(folders, 3 * MIB + MIB // 2)
    assert not machine.holds_more([str(tmp_path / "gone")], 0)


def test_counting_a_room_again_waits_nine_times_as_long_as_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    counted: list[float] = []

    def slow(*_: Any) -> bool:
        counted.append(time.monotonic())
        time.sleep(0.05)
        return False

    free = chain([100], repeat(0))
    monkeypatch.setattr(watch, "free_bytes", lambda _: next(free))
    monkeypatch.setattr(watch, "holds_more", slow)
    room = watch.Room(Limits(room_bytes=10), (str(tmp_path),), 0.0)
    begun = time.monotonic()
    while time.monotonic() < begun + 0.4:
        room._next = 0.0
        assert room.trouble(time.monotonic()) == ""
    assert len(counted) == 1


def test_without_a_bound_nothing_is_looked_at(tmp_path: Path):
    assert watch.Room(Limits(), (str(tmp_path),), 0.0).next_look == float("inf")
    assert watch.Room(Limits(room_bytes=1), (), 0.0).next_look == float("inf")


@each_row(
    ("stopped", "sentence"),
    [
        ("memory", "used more than 12 GiB of memory"),
        ("room", "wrote more than 1.5 GiB"),
        ("disk", "less than 512 MiB are left on the disk"),
        ("processes", "more than 20 processes at once"),
        ("time", ""),
        ("", ""),
    ],
)
def test_what_was_exceeded_is_said_in_words(stopped: str, sentence: str):
    limits = Limits(resident=12 << 30, room_bytes=3 << 29, spare_bytes=512 * MIB, processes=20)
    assert limits.exceeded(stopped) == sentence
    assert Limits().exceeded("disk") == ""
