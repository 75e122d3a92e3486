"""A tree that nobody feeds is dead in time, whatever has become of whoever started it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.work.running import launch, need_jail, until
from truegreen.contract import Isolation
from truegreen.work.lifeline import LAPSED, Lifeline, lifeline_of
from truegreen.work.process import run

TAG = f"run_{os.urandom(6).hex()}"
"""Whatever bears it is ended, on the whole machine: other workers have others."""
BEAT = "while :; do date +%s%N > beat; sleep 0.02; done"
STARTS = """
import sys
from truegreen.contract import Isolation
from truegreen.work.lifeline import Lifeline
from truegreen.work.process import Launch, run
import time
line = Lifeline(sys.argv[5], time.clock_gettime(time.CLOCK_BOOTTIME) + float(sys.argv[3]))
with open(sys.argv[1] + "/ends", "w") as file:
    file.write(str(time.time() + line.until - line.now()))
env = {"PATH": "/usr/bin:/bin", "HOME": sys.argv[1]}
run(Launch(argv=("sh", "-c", sys.argv[4]), cwd=sys.argv[1], env=env, tag=sys.argv[5],
           isolation=Isolation(sys.argv[2])))
"""


@pytest.fixture(params=[Isolation.JAIL, Isolation.REAPER, Isolation.NONE])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    level: Isolation = request.param
    if level is Isolation.JAIL:
        need_jail()
    return level


@pytest.fixture
def line() -> Iterator[Lifeline]:
    line = Lifeline(TAG, time.clock_gettime(time.CLOCK_BOOTTIME) + 1.5)
    yield line
    line.close()


@pytest.mark.criterion("H03")
def test_a_tree_that_is_not_fed_dies_in_time(
    tmp_path: Path, isolation: Isolation, line: Lifeline
) -> None:
    ended = run(launch(tmp_path, "sh", "-c", BEAT, isolation=isolation, tag=TAG))
    assert -0.001 <= line.now() - line.until < 2.4, "a guard counts milliseconds"
    assert (ended.stopped, ended.signal) == (LAPSED, signal.SIGKILL)


def test_a_tree_lives_as_long_as_it_is_fed(
    tmp_path: Path, isolation: Isolation, line: Lifeline
) -> None:
    over = threading.Event()

    def feed() -> None:
        while not over.wait(0.1):
            line.feed(line.now() + 1.5)

    thread = threading.Thread(target=feed)
    thread.start()
    ended = run(launch(tmp_path, "sleep", "2", isolation=isolation, tag=TAG))
    over.set()
    thread.join()
    assert (ended.code, ended.stopped) == (0, "")


def test_nothing_is_started_when_it_is_too_late(
    tmp_path: Path, isolation: Isolation, line: Lifeline
) -> None:
    line.until = 1.0
    ended = run(launch(tmp_path, "touch", "made", isolation=isolation, tag=TAG))
    assert ended.stopped == LAPSED
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("level", [Isolation.JAIL, Isolation.REAPER])
def test_a_guard_that_begins_too_late_starts_nothing(
    tmp_path: Path, level: Isolation, line: Lifeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its supervisor was frozen between its last look and the start."""
    if level is Isolation.JAIL:
        need_jail()
    line.until = 1.0
    monkeypatch.setattr(Lifeline, "late", lambda _: False)
    ended = run(launch(tmp_path, "touch", "made", isolation=level, tag=TAG))
    assert (ended.stopped, ended.confirmed) == (LAPSED, True)
    assert not (tmp_path / "made").exists()


def test_what_has_another_tag_is_not_bound(tmp_path: Path, line: Lifeline) -> None:
    line.until = 1.0
    assert run(launch(tmp_path, "true", tag=f"{TAG}y")).code == 0
    line.close()
    assert lifeline_of(TAG) is None


@pytest.mark.criterion("H03", "H02")
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_the_tree_of_a_frozen_or_dead_supervisor_is_dead_in_time(
    tmp_path: Path, isolation: Isolation, number: int
) -> None:
    words = [sys.executable, "-c", STARTS, str(tmp_path), isolation, "3.0", BEAT, TAG]
    pid = os.posix_spawn(sys.executable, words, os.environ)
    try:
        until((tmp_path / "beat").exists)
        os.kill(pid, number)
        until(lambda: not _beats(tmp_path), 10)
        assert _last_beat(tmp_path) - float((tmp_path / "ends").read_text()) < 1.5
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _beats(folder: Path) -> bool:
    before = _last_beat(folder)
    time.sleep(0.5)
    return _last_beat(folder) != before


def _last_beat(folder: Path) -> float:
    return (folder / "beat").stat().st_mtime
