"""A process beside the test that does what it is told: orders go in by line, answers come by line.

It serves until its standard input closes. What the lines say is the matter of the module it runs.

Run as a program this module becomes a crew: it loads the module and forks one process per member.
It opens no store itself, so nothing crosses the fork.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

ROOT = Path(__file__).parents[2]


class Line:
    """Orders to a process, and its answers."""

    def __init__(self, orders: IO[bytes], answers: IO[bytes]) -> None:
        self._orders, self._answers = orders, answers

    def order(self, line: bytes) -> None:
        """Give an order; do not wait."""
        self._orders.write(line + b"\n")
        self._orders.flush()

    def answered(self) -> bytes:
        """The next line that it says."""
        return self._answers.readline()


class Servant(Line):
    """A servant as the test sees it."""

    def __init__(self, module: str, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert self._process.stdin
        assert self._process.stdout
        super().__init__(self._process.stdin, self._process.stdout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._orders.close()
        try:
            self._process.wait(10)
        finally:
            self._process.kill()
            self._process.wait()
            self._answers.close()


class Crew:
    """Several servants of one module, each a process of its own, loaded once for all."""

    def __init__(self, module: str, url: str, number: int) -> None:
        pipes = [(*os.pipe(), *os.pipe()) for _ in range(number)]
        theirs = [end for orders, _, _, answers in pipes for end in (orders, answers)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, module, url, *map(str, theirs)],
            stdin=subprocess.DEVNULL,
            pass_fds=theirs,
            cwd=ROOT,
        )
        for end in theirs:
            os.close(end)
        self._streams = [(open(o, "wb"), open(a, "rb")) for _, o, a, _ in pipes]  # noqa: SIM115
        self.members = [Line(*streams) for streams in self._streams]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for orders, _ in self._streams:
            orders.close()
        try:
            self._process.wait(10)
        finally:
            self._process.kill()
            self._process.wait()
            for _, answers in self._streams:
                answers.close()


# -- the process that is forked -------------------------------------------------------------------


def gather(module: str, url: str, *descriptors: str) -> None:
    """Fork a member for each two descriptors, and wait until all have ended."""
    program = import_module(module)
    if url.startswith("postgres"):
        import_module("truegreen.record.postgres")
    ends = [int(each) for each in descriptors]
    pids = [_member(program.main, url, ends, at) for at in range(0, len(ends), 2)]
    for end in ends:
        os.close(end)
    for pid in pids:
        os.waitpid(pid, 0)


def _member(main: Callable[[str], None], url: str, ends: list[int], at: int) -> int:
    """Fork one whose orders and answers go through the descriptors at this place."""
    if pid := os.fork():
        return pid
    try:
        os.dup2(ends[at], 0)
        os.dup2(ends[at + 1], 1)
        for end in ends:
            os.close(end)
        main(url)
    except BaseException:  # noqa: BLE001 - nothing may go back to where it was forked
        traceback.print_exc()
    finally:
        os._exit(0)


if __name__ == "__main__":
    gather(*sys.argv[1:])
