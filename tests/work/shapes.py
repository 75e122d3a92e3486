"""Trees that do not want to die: `python shapes.py SHAPE FILE MODE`; each beats into the file.

A stand-alone program. With MODE «stay» its main process lives on, with «leave» it ends at once.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable

BOMB = 150
ME = os.path.abspath(__file__)


def beat(path: str) -> None:
    """Show that somebody acts, for ever."""
    while True:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, b".")
        os.close(handle)
        time.sleep(0.01)


def fork(child: Callable[[], None]) -> int:
    """A process that does one thing and never comes back."""
    pid = os.fork()
    if not pid:
        try:
            child()
        finally:
            os._exit(0)
    return pid


def silent() -> None:
    """Let go of all inherited files."""
    os.closerange(0, 64)


def child(path: str) -> None:
    """One plain child."""
    fork(lambda: beat(path))


def double_fork(path: str) -> None:
    """A daemon of the old school."""
    os.waitpid(fork(lambda: child(path)), 0)


def own_session(path: str) -> None:
    """In a session and group of its own."""

    def apart() -> None:
        os.setsid()
        beat(path)

    fork(apart)


def daemon(path: str) -> None:
    """All of it: session, second fork, no files, no environment."""

    def wiped() -> None:
        silent()
        words = [sys.executable, "-I", "-S", ME, "beat", path, "stay"]
        os.execve(words[0], words, {})  # noqa: S606 - that is the point

    def apart() -> None:
        os.setsid()
        fork(wiped)

    os.waitpid(fork(apart), 0)


def deaf(path: str) -> None:
    """Ignores what can be ignored, the main process too."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child(path)


def respawn(path: str) -> None:
    """A parent in its own session that starts another child whenever one dies."""

    def parent() -> None:
        os.setsid()
        while True:
            os.waitpid(fork(lambda: beat(path)), 0)

    fork(parent)


def bomb(path: str) -> None:
    """Each forks two more, in groups of their own, up to a number."""

    def spread(left: int) -> None:
        os.setsid()
        half = (left - 1) // 2
        for part in (half, left - 1 - half):
            if part > 0:
                fork(lambda part=part: spread(part))  # type: ignore[misc]
        beat(path)

    fork(lambda: spread(BOMB))


def runaway(path: str) -> None:
    """Always moving: each lives for a moment, leaves a child and ends; nobody can be waited for."""

    def run() -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(handle, b".")
            os.close(handle)
            if os.fork():
                os._exit(0)
            os.setsid()

    fork(run)


def stopped(path: str) -> None:
    """A stopped child beside a living one."""
    child(path)
    fork(lambda: os.kill(os.getpid(), signal.SIGSTOP))


def headless(path: str) -> None:
    """Its first thread has ended, so it looks like a zombie; another one acts."""

    def behead() -> None:
        _thread.start_new_thread(beat, (path,))
        ctypes.CDLL(None).pthread_exit(None)

    fork(behead)


def no_home(path: str) -> None:
    """Deletes the directory that it works in."""
    child(path)
    os.rmdir(os.getcwd())


def mute(path: str) -> None:
    """Closes its output early."""
    child(path)
    standing(path)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    os.closerange(1, 3)


def standing(path: str) -> None:
    """Wait for the first beat."""
    while not os.path.exists(path):
        time.sleep(0.002)


def main() -> None:
    """Make the tree, say that it stands, stay or leave."""
    shape, path, mode = sys.argv[1:]
    shapes: dict[str, Callable[[str], None]] = {
        "beat": beat,
        **{made.__name__: made for made in SHAPES},
    }
    shapes[shape](path)
    standing(path)
    if shape != "mute":
        sys.stdout.write("ready\n")
        sys.stdout.flush()
    while mode == "stay":
        time.sleep(1)
    os._exit(0)


SHAPES = [
    *(child, double_fork, own_session, daemon, deaf, respawn, bomb, runaway, stopped),
    *(headless, no_home, mute),
]

if __name__ == "__main__":
    main()
