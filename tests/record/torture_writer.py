"""Writers that get killed: a nursery forks them quickly, each lives lives and notes every answer.

A note is one write() to a pipe after the verb has returned: what the kernel took before the kill is
what was acknowledged. The nursery opens no store itself, so nothing crosses the fork.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import msgspec

from tests.record.torture_servant import Servant
from tests.record.torture_verbs import living
from truegreen.record.ledger import open_ledger

if TYPE_CHECKING:
    from pathlib import Path

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


class Nursery(Servant):
    """A process that has everything imported and forks writers on demand."""

    def __init__(self, url: str) -> None:
        super().__init__("tests.record.torture_writer", url)

    def writer(self, path: Path) -> Writer:
        """A new writer that notes into a named pipe."""
        os.mkfifo(path)
        self.order(os.fsencode(path))
        pipe = os.open(path, os.O_RDONLY)
        path.unlink()
        return Writer(int(self.answered()), pipe)


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
