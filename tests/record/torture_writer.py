"""Writers that get killed: a nursery forks them quickly, each lives lives and notes every answer.

A note is one write() to a pipe after the verb has returned: what the kernel took before the kill is
what was acknowledged. The nursery opens no store itself, so nothing crosses the fork.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from tests.record.torture_verbs import living
from truegreen.record.ledger import open_ledger

if TYPE_CHECKING:
    from types import TracebackType

ROOT = Path(__file__).parents[2]
Acknowledged = tuple[str, int, str]


class Writer:
    """One forked writer, as the test sees it."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid, self._pipe = pid, pipe
        self._rest = b""

    def wait_for_note(self) -> None:
        """Until it has written something."""
        self._rest = os.read(self._pipe, 65536)

    def kill(self) -> list[Acknowledged]:
        """SIGKILL, and everything that had been acknowledged to it."""
        os.kill(self.pid, signal.SIGKILL)
        with open(self._pipe, "rb") as file:
            lines = (self._rest + file.read()).split(b"\n")
        return [msgspec.json.decode(line, type=Acknowledged) for line in lines[:-1]]


class Nursery:
    """A process that has everything imported and forks writers on demand."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.record.torture_writer", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._orders, self._answers = self._process.stdin, self._process.stdout

    def writer(self, path: Path) -> Writer:
        """A new writer that notes into a named pipe."""
        os.mkfifo(path)
        self._orders.write(os.fsencode(path) + b"\n")
        self._orders.flush()
        pipe = os.open(path, os.O_RDONLY)
        path.unlink()
        return Writer(int(self._answers.readline()), pipe)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._orders.close()
        self._process.wait(10)
        self._answers.close()


def write(url: str, path: str) -> None:
    """Live until killed."""
    notes = os.open(path, os.O_WRONLY)
    ledger = open_ledger(url)
    number = os.getpid()
    while True:
        number += 1
        for task in living(ledger, number):
            line = msgspec.json.encode((task.id, task.revision, task.status))
            os.write(notes, line + b"\n")


def main(url: str) -> None:
    """Fork a writer per line of standard input; when it closes, none is left."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries them
    writers = []
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                write(url, line.rstrip("\n"))
            finally:
                os._exit(1)
        writers.append(pid)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    for pid in writers:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main(sys.argv[1])
