"""Whatever a tree looks like, nothing of it outlives its run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.work import shapes
from tests.work.running import GUARDED, alive_with, launch, need_jail, until
from truegreen.contract import Isolation
from truegreen.work.process import Ended, Identity, run, sweep

SHAPES = [shape.__name__ for shape in shapes.SHAPES]


@pytest.fixture(params=GUARDED)
def isolation(request: pytest.FixtureRequest) -> Isolation:
    level: Isolation = request.param
    if level is Isolation.JAIL:
        need_jail()
    return level


def grown(folder: Path, shape: str, mode: str, isolation: Isolation, word: str = "!stop") -> Ended:
    """Run a shape until it stands, then stop it; or let its main process leave."""
    home = folder / "cwd"
    home.mkdir()
    ready: list[bytes] = []
    ended = run(
        launch(
            home,
            *(sys.executable, "-I", "-S", shapes.__file__, shape, str(folder / "beat"), mode),
            isolation=isolation,
            tag=f"run_{os.urandom(6).hex()}",
        ),
        line=ready.append,
        tick=lambda: word if ready and mode == "stay" else None,
        tick_s=0.01,
    )
    assert ready == [b"ready"]
    return ended


def silent(folder: Path) -> bool:
    """Nobody is seen, and nobody who moves too fast to be seen leaves traces."""
    beats = folder / "beat"
    before = beats.stat().st_size
    if alive_with(str(beats)):
        return False
    time.sleep(0.05)
    return beats.stat().st_size == before


def assert_silent(folder: Path) -> None:
    assert silent(folder)


@pytest.mark.criterion("G15")
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_survives_a_stop(tmp_path: Path, shape: str, isolation: Isolation):
    ended = grown(tmp_path, shape, "stay", isolation)
    assert_silent(tmp_path)
    assert (ended.stopped, ended.code, ended.signal) == ("stop", None, signal.SIGKILL)
    assert (ended.survivors, ended.confirmed) == ((), True)
    assert ended.swept


@pytest.mark.criterion("N14")
@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_finished_command_leaves_behind_is_ended_and_named(
    tmp_path: Path, shape: str, isolation: Isolation
):
    ended = grown(tmp_path, shape, "leave", isolation)
    assert_silent(tmp_path)
    assert (ended.stopped, ended.code, ended.signal) == ("", 0, None)
    assert (ended.survivors, ended.confirmed) == ((), True)
    assert {one.name.startswith("python") for one in ended.swept} == {True}


@pytest.mark.criterion("G16")
def test_a_tree_that_ignores_term_is_killed_after_its_grace(tmp_path: Path, isolation: Isolation):
    ended = grown(tmp_path, "deaf", "stay", isolation, word="enough")
    assert_silent(tmp_path)
    assert (ended.stopped, ended.signal) == ("enough", signal.SIGKILL)
    assert 1.0 <= ended.seconds < 5.0


def test_a_child_that_kills_its_guard_does_not_get_away(tmp_path: Path):
    script = textwrap.dedent("""
        import os, sys, time
        guard = os.getppid()
        if os.fork():
            os.kill(guard, 9)
            time.sleep(60)
        os.setsid()
        if os.fork():
            os._exit(0)
        os.closerange(0, 64)
        words = [sys.executable, "-c", "import time; time.sleep(60)", sys.argv[1]]
        os.execve(words[0], words, {})
    """)
    word = f"escape-{os.urandom(6).hex()}"
    ended = run(launch(tmp_path, sys.executable, "-c", script, word, tag=word))
    assert alive_with(word) == []
    assert (ended.code, ended.signal, ended.stopped) == (None, signal.SIGKILL, "")
    assert ended.confirmed is False
    assert ended.swept


@pytest.mark.parametrize("times", range(10))
def test_a_child_that_kills_its_guard_at_once_does_not_get_away(tmp_path: Path, times: int):
    """As early as it can: often before the guard could say that it runs."""
    word = f"early-{os.urandom(6).hex()}"
    script = f"kill -9 $PPID; : {word}; while :; do sleep 0.01; done"
    ended = run(launch(tmp_path, "sh", "-c", script, tag=word))
    assert alive_with(word) == []
    assert (ended.code, ended.signal, ended.launch_error) == (None, signal.SIGKILL, "")
    assert ended.confirmed is False


def test_a_child_cannot_kill_its_guard_in_a_jail(tmp_path: Path):
    need_jail()
    script = "kill -9 1; kill -9 $PPID; kill -STOP 1; kill -9 -1; exit 7"
    ended = run(launch(tmp_path, "bash", "-c", script, isolation=Isolation.JAIL))
    assert (ended.code, ended.confirmed) == (7, True)


def test_a_child_that_stops_its_guard_is_ended_in_time(tmp_path: Path):
    script = "kill -STOP $PPID; sleep 60"
    ended = run(launch(tmp_path, "sh", "-c", script, time_s=0.5, grace_s=0.1))
    assert (ended.stopped, ended.survivors) == ("time", ())
    assert ended.seconds < 5


SUPERVISOR = """
import sys
from truegreen.contract import Isolation
from truegreen.work.process import Launch, run
run(Launch(argv=tuple(sys.argv[2:]), cwd="/", env={"PATH": "/usr/bin:/bin"}, tag=sys.argv[2],
    isolation=Isolation(sys.argv[1])))
"""


@pytest.mark.parametrize("shape", ["daemon", "respawn", "deaf", "bomb", "runaway"])
def test_no_agent_acts_a_second_after_the_supervisor_was_killed(
    tmp_path: Path, isolation: Isolation, shape: str
):
    beats = tmp_path / "beat"
    words = [sys.executable, "-I", "-S", shapes.__file__, shape, str(beats), "stay"]
    supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISOR, isolation, *words])
    try:
        until(beats.exists)
    finally:
        supervisor.kill()
        supervisor.wait()
    until(lambda: silent(tmp_path), seconds=1.0)
    assert_silent(tmp_path)


@pytest.mark.criterion("H09")
def test_a_sweep_after_a_crash_finds_what_carries_the_tag(tmp_path: Path):
    word = f"left-{os.urandom(6).hex()}"
    code = "import time; time.sleep(60)"
    tagged = subprocess.Popen(
        [sys.executable, "-c", code, word], env={"TRUEGREEN_RUN": word}, start_new_session=True
    )
    other = subprocess.Popen([sys.executable, "-c", code, word], env={"TRUEGREEN_RUN": f"{word}x"})
    try:
        until(lambda: len(alive_with(word)) == 2)
        swept, survivors = sweep(word, None)
        assert [one.pid for one in swept] == [tagged.pid]
        assert survivors == ()
        assert tagged.wait() == -signal.SIGKILL
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_sweep_finds_what_descends_from_a_process(tmp_path: Path):
    word = f"below-{os.urandom(6).hex()}"
    parent = subprocess.Popen(["sh", "-c", f"sleep 60 & sleep 60; : {word}"])
    identity = Identity.of(parent.pid)
    assert identity
    until(lambda: names(parent.pid) == ["sleep", "sleep"])  # each has become what it is
    swept, survivors = sweep("", identity)
    assert sorted(one.name for one in swept) == ["sh", "sleep", "sleep"]
    assert (survivors, parent.wait()) == ((), -signal.SIGKILL)


def names(pid: int) -> list[str]:
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{child}/comm").read_text().strip() for child in below]


def test_a_sweep_spares_its_sender_and_those_it_descends_from(tmp_path: Path):
    script = "from truegreen.work.process import sweep; print(sweep('mine'))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "TRUEGREEN_RUN": "mine"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "Sweep(swept=(), survivors=())\n"


@pytest.mark.criterion("G26")
def test_a_process_with_another_start_time_is_somebody_else():
    mine = Identity.of(os.getpid())
    assert mine
    assert mine.alive()
    stranger = mine._replace(start=mine.start - 1)
    assert not stranger.alive()
    assert sweep("", stranger) == ((), ())
    assert not mine._replace(boot="another").alive()


@pytest.mark.criterion("H01")
def test_a_zombie_is_dead_and_a_process_of_another_user_is_alive():
    dead = subprocess.Popen(["true"])
    until(lambda: " Z " in Path(f"/proc/{dead.pid}/stat").read_text())
    identity = Identity.of(dead.pid)
    assert identity
    assert not identity.alive()
    dead.wait()
    init = Identity.of(1)
    assert init
    assert init.alive()
