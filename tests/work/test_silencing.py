"""Runs silenced from outside: all of them, nobody else, and no word about what was not seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.work import shapes
from tests.work.running import alive_with, launch, need_jail, until
from truegreen.contract import Isolation
from truegreen.work import shim, silencing
from truegreen.work.process import Ended, Identity, run
from truegreen.work.silencing import Quarry, living, silence_runs
from truegreen.work.tree import VARIABLE

Started = tuple[Quarry, Callable[[], Ended]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """A run with a supervisor that does nothing but look on."""
    threads: list[threading.Thread] = []

    def make(*argv: str, isolation: Isolation = Isolation.REAPER) -> Started:
        tag = f"run_{os.urandom(6).hex()}"
        ended: list[Ended] = []
        known: list[Identity] = []
        words = launch(tmp_path, *argv, isolation=isolation, tag=tag)
        thread = threading.Thread(target=lambda: ended.append(run(words, started=known.append)))
        threads.append(thread)
        thread.start()
        until(lambda: known)

        def over() -> Ended:
            thread.join(20)
            return ended[0]

        return Quarry(tag, isolation, known[0]), over

    yield make
    for thread in threads:
        thread.join(40)


def names_of(quarry: Quarry) -> list[str]:
    return sorted(each.name for each in living([quarry])[quarry.run])


def shaped(shape: str, beats: Path) -> list[str]:
    return [sys.executable, "-I", "-S", shapes.__file__, shape, str(beats), "stay"]


@pytest.mark.criterion("G15")
@pytest.mark.parametrize("isolation", [Isolation.JAIL, Isolation.REAPER])
def test_many_runs_are_silenced_at_once_and_vouched_for(
    tmp_path: Path, start: Callable[..., Started], isolation: Isolation
) -> None:
    if isolation is Isolation.JAIL:
        need_jail()
    beats = [tmp_path / f"beat-{number}" for number in range(3)]
    runs = [start(*shaped("daemon", path), isolation=isolation) for path in beats]
    until(lambda: all(path.exists() for path in beats))
    silence = silence_runs([quarry for quarry, _ in runs])
    assert not any(alive_with(str(path)) for path in beats)
    assert (silence.survivors, silence.unconfirmed) == ((), ())
    assert len(silence.killed) >= 3 * 3
    assert all(over().survivors == () for _, over in runs)


def test_a_guard_is_asked_and_so_its_supervisor_knows_how_it_went(
    tmp_path: Path, start: Callable[..., Started]
) -> None:
    """A guard that was killed could tell nobody that it saw the last one go."""
    beats = tmp_path / "beat"
    quarry, over = start(*shaped("runaway", beats))
    until(beats.exists)
    assert silence_runs([quarry]).unconfirmed == ()
    assert over().confirmed


def test_a_guard_that_is_gone_vouches_for_nothing(start: Callable[..., Started]) -> None:
    quarry, over = start("sleep", "60")
    assert quarry.process
    os.kill(quarry.process.pid, signal.SIGKILL)
    over()
    assert silence_runs([quarry]) == ((), (), (quarry.run,))
    assert silence_runs([quarry._replace(is_over=True)]).unconfirmed == ()


def test_a_guard_that_does_not_obey_is_killed_with_all_it_holds(
    start: Callable[..., Started],
) -> None:
    quarry, over = start("sh", "-c", "sleep 60 & sleep 60")
    until(lambda: names_of(quarry).count("sleep") == 2)
    assert quarry.process
    os.kill(quarry.process.pid, signal.SIGSTOP)
    stat = Path(f"/proc/{quarry.process.pid}/stat")
    until(lambda: " T " in stat.read_text())
    silence = silence_runs([quarry])
    assert silence.survivors == ()
    assert silence.unconfirmed == (quarry.run,)
    assert {"sh", "sleep"} <= {each.name for each in silence.killed}
    over()


def test_without_isolation_a_child_without_a_mark_is_known_by_its_parent(
    start: Callable[..., Started],
) -> None:
    """So the parent must not be killed before its children are found."""
    seconds = f"61.{os.getpid()}"
    script = f"env -i sh -c 'setsid sleep {seconds}; :' & wait"
    quarry, over = start("sh", "-c", script, isolation=Isolation.NONE)
    until(lambda: names_of(quarry) == ["sh", "sh", "sleep"])
    silence = silence_runs([quarry])
    assert alive_with(seconds) == []
    assert sorted(each.name for each in silence.killed) == ["sh", "sh", "sleep"]
    assert silence.unconfirmed == (quarry.run,)
    over()


def test_a_process_whose_first_thread_has_ended_is_no_zombie(
    tmp_path: Path, start: Callable[..., Started]
) -> None:
    beats = tmp_path / "beat"
    quarry, over = start(*shaped("headless", beats), isolation=Isolation.NONE)
    until(beats.exists)
    until(lambda: len(names_of(quarry)) == 2)
    silence = silence_runs([quarry])
    assert (len(silence.killed), silence.survivors) == (2, ())
    size = beats.stat().st_size
    time.sleep(0.05)
    assert beats.stat().st_size == size
    over()


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """Somebody else's process, with a child."""
    process = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], start_new_session=True)
    try:
        until(lambda: child_of(process.pid))
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def child_of(pid: int) -> shim.Entry | None:
    return next((entry for entry in shim.table().values() if entry.parent == pid), None)


def test_a_second_look_finds_who_was_born_since_and_nobody_else(
    start: Callable[..., Started],
    stranger: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Below those of the first look, or with the mark and no parent any more."""
    script = "mkfifo fifo; read go < fifo; sleep 60 & (setsid sleep 60 &); sleep 60"
    quarry, over = start("sh", "-c", script, isolation=Isolation.NONE)
    until(lambda: names_of(quarry) == ["sh"])
    hunt, twice, below = (silencing.Hunt([quarry], shim.table()) for _ in range(3))
    (first,) = hunt.afresh()
    assert [entry.pid for entry in (*twice.afresh(), *below.afresh())] == 2 * [first.pid]
    Path(f"/proc/{first.pid}/cwd/fifo").write_text("go\n")
    until(lambda: names_of(quarry) == ["sh", "sleep", "sleep", "sleep"])
    read: list[int] = []
    entry_of = shim.entry_of

    def reading(pid: int) -> shim.Entry | None:
        read.append(pid)
        return entry_of(pid)

    monkeypatch.setattr(shim, "entry_of", reading)
    found = hunt.again()
    monkeypatch.undo()
    assert sorted(entry.name for entry in found) == [b"sh", *3 * [b"sleep"]]
    assert len(read) < len(shim.table()) / 2, "who is known is not read again"
    assert len(twice.afresh()) == len(hunt.again()) == 4
    monkeypatch.setattr(silencing, "_carries", lambda *_: False)
    assert len(below.again()) == 3, "all but the orphan"
    monkeypatch.undo()
    assert len(silence_runs([quarry]).killed) == 4
    assert stranger.poll() is None
    over()


@pytest.mark.criterion("G26")
def test_the_children_of_a_reused_pid_are_somebody_elses(
    start: Callable[..., Started], stranger: subprocess.Popen[bytes]
) -> None:
    """It was one of the run's at the first look, and is a stranger's at the second."""
    quarry, over = start("sleep", "60", isolation=Isolation.NONE)
    everybody, child = shim.table(), child_of(stranger.pid)
    assert child
    del everybody[child.pid]
    everybody[stranger.pid].start -= 1
    hunt = silencing.Hunt([quarry], everybody)
    kin = hunt.afresh()
    assert [entry.name for entry in kin] == [b"sleep"]
    kin.append(everybody[stranger.pid])
    assert [entry.name for entry in hunt.again()] == [b"sleep"]
    silence_runs([quarry])
    over()


@pytest.mark.criterion("P08")
def test_who_was_seen_is_dead_before_it_is_called_so(
    start: Callable[..., Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing ties it to its run any more when it is looked for again."""
    seconds = f"60.{os.getpid()}"
    script = f"setsid sleep {seconds} & wait"
    quarry, over = start("sh", "-c", script, isolation=Isolation.NONE)
    until(lambda: names_of(quarry) == ["sh", "sleep"])
    monkeypatch.setattr(silencing, "kin_of", lambda *_: [])
    silence = silence_runs([quarry])
    assert sorted(each.name for each in silence.killed) == ["sh", "sleep"]
    assert alive_with(seconds) == []
    over()


@pytest.mark.criterion("P08")
def test_who_does_not_die_is_named_as_living_and_never_as_killed(
    start: Callable[..., Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process that hangs in the kernel: signals reach it, and it stays."""
    quarry, over = start("sh", "-c", "sleep 60 & sleep 0.1; wait", isolation=Isolation.NONE)
    until(lambda: names_of(quarry) == ["sh", "sleep"])
    for room in (shim, silencing):
        monkeypatch.setattr(room, "send", lambda *_: None)
    silence = silence_runs([quarry])
    monkeypatch.undo()
    assert sorted(each.name for each in silence.survivors) == ["sh", "sleep"]
    assert silence.killed == ()
    assert sorted(each.name for each in silence_runs([quarry]).killed) == ["sh", "sleep"]
    over()


@pytest.mark.criterion("G26")
def test_nobody_else_is_touched(start: Callable[..., Started]) -> None:
    quarry, over = start("sleep", "60")
    other, over_other = start("sleep", "60")
    stranger = subprocess.Popen(["sleep", "60"], env={VARIABLE: f"{quarry.run}x"})
    try:
        killed = silence_runs([quarry]).killed
        assert [each.name for each in killed if not each.name.startswith("python")] == ["sleep"]
        over()
        assert stranger.poll() is None
        assert other.process
        assert other.process.alive()
    finally:
        stranger.kill()
        stranger.wait()
        silence_runs([other])
        over_other()


@pytest.mark.criterion("G26")
def test_a_reused_pid_is_somebody_else(start: Callable[..., Started]) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        now = Identity.of(process.pid)
        assert now
        for stranger in (now._replace(start=now.start - 1), now._replace(boot="another")):
            for level in Isolation:
                assert silence_runs([Quarry(f"run_{uuid4().hex}", level, stranger)]).killed == ()
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_nothing_to_silence_is_silent() -> None:
    assert silence_runs([]) == ((), (), ())
    assert silence_runs([Quarry("")]) == ((), (), ())
