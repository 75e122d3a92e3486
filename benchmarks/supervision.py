"""P7, P12, P18: what a run costs, also one that sleeps, and how soon a large tree is silent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.measure import Figure, at_most, interleaved, ratio_at_most, seconds, unmeasured
from truegreen.contract import Isolation
from truegreen.work import process
from truegreen.work.jail import choose
from truegreen.work.process import Launch

BARE = "python -I -c pass"
LEVELS = (Isolation.JAIL, Isolation.REAPER, Isolation.NONE)
PROCESSES = 200
_STARTED_SECONDS = 30.0


def run(bench: Bench) -> Iterator[Figure]:
    """The whole command, one whose agent sleeps, then the end of a large tree."""
    yield from _commands(bench)
    yield from _sleeping(bench)
    yield from _silence(bench)


# --- the whole command


def _commands(bench: Bench) -> Iterator[Figure]:
    program = os.path.join(sysconfig.get_path("scripts"), "truegreen")
    if not os.access(program, os.X_OK):
        yield unmeasured("truegreen run -- true", f"there is no {program}")
        return
    home = bench.folder(bench.folders[0])
    place = os.path.join(home, "work")
    os.mkdir(place)
    environment = {
        **os.environ,
        "HOME": home,
        "XDG_STATE_HOME": f"{home}/state",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": f"{home}/compiled",
    }
    environment.pop("TRUEGREEN_STORE", None)
    spent = partial(_milliseconds, environment=environment, cwd=place)
    commands: dict[str, Callable[[], float]] = {
        BARE: partial(spent, [sys.executable, "-I", "-c", "pass"])
    }
    for level in LEVELS:
        words = [program, "run", "--json", "--isolation", level, "--", "true"]
        commands[f"truegreen run --isolation {level} -- true"] = partial(spent, words, allowed=3)
    for action in commands.values():
        action()  # compiled, and the store made
    bench.say("truegreen run -- true at every level")
    samples = interleaved(bench.scale.pick(21, 9, 1), commands)
    bare = samples.pop(BARE)
    for name, ours in samples.items():
        yield Figure(name, ours, "ms", (ratio_at_most(12),), bare, BARE)


def _milliseconds(
    words: list[str], *, environment: dict[str, str], cwd: str, allowed: int = 0
) -> float:
    def action() -> None:
        done = subprocess.run(  # noqa: S603
            words, env=environment, cwd=cwd, stdout=subprocess.DEVNULL, check=False
        )
        assert done.returncode in (0, allowed), (words, done.returncode)

    return seconds(action) * 1e3


# --- an agent that sleeps


def _sleeping(bench: Bench) -> Iterator[Figure]:
    """The time of a core that the supervisor and its guard need beside an agent that sleeps."""
    seconds = bench.scale.pick(60, 20, 0)
    program = os.path.join(sysconfig.get_path("scripts"), "truegreen")
    for level in LEVELS:
        name = f"supervisor and guard of a sleeping agent, of a core, {level}"
        bench.say(name)
        home = bench.folder(bench.folders[0])
        environment = {**os.environ, "HOME": home, "TRUEGREEN_STORE": f"sqlite://{home}/store.db"}
        words = [program, "run", "--isolation", level, "--", "sleep", "600"]
        with subprocess.Popen(  # noqa: S603
            words, env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as run:
            time.sleep(5 if seconds else 2)  # it has started, and what starting costs is over
            before, began = _busy_ms(run.pid), time.monotonic()
            time.sleep(seconds or 1)
            used, passed = _busy_ms(run.pid) - before, time.monotonic() - began
            run.send_signal(signal.SIGINT)
        yield Figure(name, [used / passed / 10], "%", (at_most(0.2),))


def _busy_ms(pid: int) -> float:
    """The processor time of a process and of all below it; an agent that sleeps adds none."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    busy = (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as file:
            busy += sum(_busy_ms(int(child)) for child in file.read().split())
    return busy


# --- the end of a large tree


def _silence(bench: Bench) -> Iterator[Figure]:
    home = bench.folder(bench.folders[0])
    for level in LEVELS[:2]:
        bench.say(f"silence of {PROCESSES} processes, {level}")
        repeats = bench.scale.pick(25, 5, 1)
        samples = [
            _until_silent(home, level, bench.scale.pick(200, 200, 5)) for _ in range(repeats)
        ]
        goal = at_most(250.0)
        yield Figure(f"kill to silence, {PROCESSES} processes, {level}", samples, "ms", (goal,))


def _until_silent(home: str, level: Isolation, many: int) -> float:
    """From the word that kills to the return of a verified empty tree."""
    script = f"i=0; while [ $i -lt {many} ]; do sleep 300 & i=$((i+1)); done; echo up; wait"
    lines: list[bytes] = []
    asked = 0.0
    begun = time.monotonic()

    def tick() -> str | None:
        nonlocal asked
        assert time.monotonic() - begun < _STARTED_SECONDS
        if not lines:
            return None
        asked = asked or time.monotonic()
        return "!enough"

    launch = Launch(
        argv=("sh", "-c", script),
        cwd=home,
        env={"PATH": os.environ["PATH"]},
        isolation=choose(level),
        tag=f"run_bench{time.monotonic_ns()}",
    )
    ended = process.run(launch, line=lines.append, tick=tick, tick_s=0.01)
    assert not ended.survivors, ended
    return (time.monotonic() - asked) * 1e3
