"""Whatever is killed, stopped, full or late: an end looks clean only if the command ended clean."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.work.running import GUARDED, launch, need_jail
from truegreen.contract import Isolation
from truegreen.work.jail import Profile
from truegreen.work.process import Ended, Limits, run
from truegreen.work.shim import Entry, beneath, table

DRAWS = 40
WORK = "sleep 0.04 || exit 9; echo x || exit 9; echo x > {0} || exit 9; exit 0"
"""Leaves a mark right before its good end, and takes no trouble for a good end."""


def clean(ended: Ended) -> bool:
    """What a gate takes for a pass."""
    faults = (ended.signal, ended.stopped, ended.launch_error, ended.oom, ended.disk_full)
    return ended.code == 0 and not any(faults)


BYSTANDERS: set[int] = set()
"""What the tests themselves have running."""


def mind_the_bystanders() -> None:
    """Whoever is here already is nobody's to strike: a browser, a server, what others keep."""
    BYSTANDERS.clear()
    BYSTANDERS.update(entry.pid for entry in beneath({os.getpid()}, table()))


@pytest.fixture(autouse=True)
def _bystanders() -> None:
    mind_the_bystanders()


def tree() -> list[Entry]:
    """Ours, the outermost first: bubblewrap's two, the guard, the command.

    A fork that is not yet a program of its own is left alone: who starts it waits for that.
    """
    me = words_of(os.getpid())
    found = [entry for entry in beneath({os.getpid()}, table()) if entry.alive]
    return [e for e in found if e.pid not in BYSTANDERS and words_of(e.pid) not in (me, b"")]


def words_of(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@contextlib.contextmanager
def struck(delay: float, number: int, which: int) -> Iterator[None]:
    """A signal to one of the tree after a while, if it is there by then."""

    def strike() -> None:
        time.sleep(delay)
        found = tree()
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(found[min(which, len(found) - 1)].pid, number)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        thread.join()


@pytest.mark.criterion("H11", "E16")
def test_a_blow_at_any_moment_to_any_process_never_looks_like_a_clean_end(tmp_path: Path):
    need_jail()
    seed = random.SystemRandom().randrange(1 << 32)
    draw = random.Random(seed)  # noqa: S311 - no secret
    seen: Counter[bool] = Counter()
    for n in range(DRAWS):
        mark = tmp_path / f"mark-{n}"
        level = draw.choice(GUARDED)
        delay, which = draw.uniform(0, 0.12), draw.randrange(5)
        number = draw.choice([signal.SIGKILL] * 12 + [signal.SIGTERM, signal.SIGSTOP])
        more: dict[str, Any] = {"time_s": 0.3, "grace_s": 0.0} if number == signal.SIGSTOP else {}
        with struck(delay, number, which):
            ended = run(launch(tmp_path, "sh", "-c", WORK.format(mark), isolation=level, **more))
        said = f"seed {seed}, draw {n}: {level} {number} to {which} after {delay:.3f} s: {ended}"
        assert mark.exists() or not clean(ended), said
        assert ended.code is None or ended.signal is None, said
        assert tree() == [], said
        seen[clean(ended)] += 1
    assert seen[True]
    assert seen[False]


@pytest.mark.parametrize("level", GUARDED)
@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_guard_or_a_jail_that_is_killed_takes_the_command_along_and_its_good_end(
    tmp_path: Path, level: Isolation, which: int
):
    """The outermost, the next, and the command itself."""
    need_jail()
    lines: list[bytes] = []
    killed: list[int] = []

    def tick() -> None:
        if lines and not killed:
            killed.append(tree()[which].pid)
            os.kill(killed[0], signal.SIGKILL)

    script = "echo up; exec sleep 20"
    given = launch(tmp_path, "sh", "-c", script, isolation=level)
    ended = run(given, line=lines.append, tick=tick, tick_s=0.02)
    assert killed
    assert not clean(ended)
    assert ended.seconds < 10
    assert tree() == []


FAULTS: dict[str, dict[str, Any]] = {
    "the log has no room": {"stdout_path": "/dev/full"},
    "its time is over": {"time_s": 0.05, "grace_s": 0.0},
    "too much memory": {"limits": Limits(resident=1)},
    "too many processes": {"limits": Limits(processes=1)},
    "too big a file": {"limits": Limits(file_bytes=1)},
    "the disk is full": {"limits": Limits(spare_bytes=1 << 62)},
    "nothing can be loaded": {"limits": Limits(memory=1 << 20)},
}


@pytest.mark.criterion("E16")
@pytest.mark.parametrize("level", GUARDED)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_never_a_clean_end(tmp_path: Path, level: Isolation, fault: str):
    if level is Isolation.JAIL:
        need_jail()
    mark = tmp_path / "mark"
    script = f"sleep 0.2; exec 3> {mark}; echo xx; echo xx >&3 || exit 9; exit 0"
    given: dict[str, Any] = {"isolation": level, "jail": Profile(writable=(str(tmp_path),))}
    ended = run(launch(tmp_path, "sh", "-c", script, **(given | FAULTS[fault])))
    assert not clean(ended), fault


@pytest.mark.parametrize("level", GUARDED)
def test_last_words_that_could_not_be_kept_are_no_clean_end(tmp_path: Path, level: Isolation):
    """The log turns out to be full only when the command has ended well."""
    need_jail()
    given = launch(tmp_path, "sh", "-c", "echo x; exit 0", isolation=level, stdout_path="/dev/full")
    assert not clean(run(given))


def test_the_same_command_without_a_fault_ends_clean(tmp_path: Path):
    script = WORK.format(tmp_path / "mark")
    assert all(clean(run(launch(tmp_path, "sh", "-c", script, isolation=at))) for at in GUARDED)
