"""P10, P13: what many live viewers cost the server, and how much memory servers and runs take.

Two hundred people look at the same page, or listen to the history, while things change five times
a second; each of them reads everything.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from benchmarks.bench import Bench
from benchmarks.lives import CONTRACT, OPERATOR
from benchmarks.measure import Figure, at_most
from benchmarks.web import Line, Served, paths, served
from truegreen.contract import Contract
from truegreen.model import RunStatus, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.reads import LONGEST_PAGE
from truegreen.record.lifecycle import SETTLED

CPU = at_most(20.0)
SERVER_MB, RUN_MB = at_most(150.0), at_most(3.0)
CHANGES_A_SECOND = 5
_TICKS = os.sysconf("SC_CLK_TCK")
_DEADLINE_S = 60.0


def run(bench: Bench) -> Iterator[Figure]:
    """On SQLite in its fastest place."""
    url = bench.populated(bench.sqlite[0], bench.scale.pick(1_000_000, 100_000, 200))
    ledger = bench.ledger(url)
    with served(bench, url) as server:
        yield from _watched(bench, server, ledger, "/live/overview", "viewers of the Overview")
        yield from _watched(bench, server, ledger, "/api/v1/events", "listeners to the history")
        _visit(server, ledger)
        tasks = sum(count.tasks for count in ledger.counts())
        yield Figure(
            f"memory of the server, {tasks:,} tasks", [resident(server.pid)], "MB", (SERVER_MB,)
        )
    yield from _runs(bench)


# --- viewers


class Crowd:
    """Reads whatever comes, over many connections."""

    def __init__(self, server: Served, path: str, viewers: int) -> None:
        self._lines = [self._opened(server, path) for _ in range(viewers)]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.bytes = 0
        self._thread.start()

    @staticmethod
    def _opened(server: Served, path: str) -> socket.socket:
        port = server.ports.web
        line = socket.create_connection(("127.0.0.1", port), timeout=_DEADLINE_S)
        head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        line.sendall(f"{head}authorization: Bearer {server.ports.token}\r\n\r\n".encode())
        if b" 200 " not in line.recv(65536).partition(b"\r\n")[0]:
            raise RuntimeError(f"{path} can't be followed")
        line.setblocking(False)
        return line

    def _read(self) -> None:
        with selectors.DefaultSelector() as ready:
            for line in self._lines:
                ready.register(line, selectors.EVENT_READ)
            while not self._over.is_set():
                for key, _ in ready.select(0.2):
                    self.bytes += len(self._lines_read(key.fileobj))

    @staticmethod
    def _lines_read(line: object) -> bytes:
        assert isinstance(line, socket.socket)
        got = line.recv(1 << 18)
        if not got:
            raise RuntimeError("a viewer was let go")
        return got

    @property
    def alive(self) -> bool:
        """Whether nobody was let go."""
        return self._thread.is_alive()

    def close(self) -> None:
        """They all go home."""
        self._over.set()
        self._thread.join()
        for line in self._lines:
            line.close()


@contextmanager
def _changing(ledger: Ledger) -> Iterator[None]:
    """Things change, again and again."""
    over = threading.Event()

    def change() -> None:
        while not over.wait(1 / CHANGES_A_SECOND):
            ledger.open(CONTRACT, actor=OPERATOR)

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watched(bench: Bench, server: Served, ledger: Ledger, path: str, who: str) -> Iterator[Figure]:
    viewers = bench.scale.pick(200, 200, 5)
    seconds = bench.scale.pick(100, 50, 5) / 10
    bench.say(f"{viewers} {who}")
    shares = []
    with closing(Crowd(server, path, viewers)) as crowd, _changing(ledger):
        time.sleep(seconds / 5)  # until all have their first rendering
        for _ in range(bench.scale.repetitions):
            before, start = busy_seconds(server.pid), time.perf_counter()
            time.sleep(seconds)
            took = time.perf_counter() - start
            shares.append(100 * (busy_seconds(server.pid) - before) / took)
        if not crowd.alive or not crowd.bytes:
            raise RuntimeError("not everybody was served to the end")
    what = f"one core's time for {viewers} {who}, {CHANGES_A_SECOND} changes a second"
    yield Figure(what, shares, "%", (CPU,), note=f"{crowd.bytes / 1e6:.0f} MB were read")


def _visit(server: Served, ledger: Ledger) -> None:
    """Everything is asked for once, so that all that is loaded late is loaded."""
    for path in paths(ledger).values():
        line = Line(server.ports.web, server.ports.token, path)
        line.ask()
        line.close()


# --- what the machine says of a process


def busy_seconds(pid: int) -> float:
    """For how long a process has kept a core busy."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident(pid: int) -> float:
    """How much of the machine's memory a process takes, in MB."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        kept = next(line for line in file if line.startswith("VmRSS:"))
    return int(kept.split()[1]) * 1024 / 1e6


# --- runs


def _runs(bench: Bench) -> Iterator[Figure]:
    """A scheduler with many runs at the same time, beside itself with none."""
    runs = bench.scale.pick(200, 40, 2)
    bench.say(f"{runs} runs at the same time")
    folder = bench.folder(bench.folders[0])
    url = f"sqlite://{folder}/truegreen.db"
    ledger = bench.ledger(url)
    environ = {**os.environ, "TRUEGREEN_STORE": url, "XDG_STATE_HOME": folder, "HOME": folder}
    words = [sys.executable, "-m", "truegreen", "scheduler", "--seats", str(runs)]
    with subprocess.Popen(  # noqa: S603
        words, env=environ, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as scheduler:
        try:
            idle = _settled(ledger, scheduler.pid, folder)
            busy = _busy(ledger, scheduler.pid, folder, runs)
        finally:
            scheduler.terminate()
            time.sleep(0.5)
            scheduler.terminate()  # at once
    what = f"memory of the supervisor for each of {runs} runs at the same time"
    yield Figure(what, [(busy - idle) / runs], "MB", (RUN_MB,), note=f"{idle:.0f} MB without runs")


def _settled(ledger: Ledger, pid: int, folder: str) -> float:
    """The memory after one run, when everything that a run needs is loaded."""
    task = ledger.open(_contract(folder, "true"), actor=OPERATOR)
    _until(lambda: ledger.task(task.id).status in SETTLED | {TaskStatus.NEEDS_REVIEW})
    return resident(pid)


def _busy(ledger: Ledger, pid: int, folder: str, runs: int) -> float:
    for number in range(runs):
        place = os.path.join(folder, f"place-{number}")
        os.mkdir(place)
        ledger.open(_contract(place, "exec sleep 600"), actor=OPERATOR)
    _until(lambda: _under_way(ledger) == runs)
    return resident(pid)


def _under_way(ledger: Ledger) -> int:
    found = ledger.live_runs(limit=LONGEST_PAGE)
    return sum(live.run.status is RunStatus.RUNNING for live in found)


def _contract(folder: str, script: str) -> Contract:
    return Contract(title="wait", command=("sh", "-c", script), cwd=folder, gates=())


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_S * 5
    while not true():
        if time.monotonic() > deadline:
            raise RuntimeError("it did not come true")
        time.sleep(0.1)
