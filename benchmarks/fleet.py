"""P2 and P4 for a fleet: many workers at one PostgreSQL, each task started exactly once.

Run as a program, this module is one worker without agents: it claims, ends and judges until the
queue is empty, and answers with what it was given. Real workers are measured beside it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from benchmarks.bench import Bench, Place
from benchmarks.lives import CLAIM, CONTRACT, EXIT, FINDING, OPERATOR, START, VERDICT
from benchmarks.measure import Figure, at_most, never_above, percentile, unmeasured
from truegreen.record.ledger import Ledger, open_ledger

CROWD = 8
IDLE_PERCENT = at_most(1.0)
_TICKS = os.sysconf("SC_CLK_TCK")


class Answer(msgspec.Struct):
    """What one worker was given, and how long each claim took."""

    started: list[str]
    waits: list[float]


def run(bench: Bench) -> Iterator[Figure]:
    """Claims without agents, then whole workers, then workers that have nothing to do."""
    if not bench.server:
        yield unmeasured("8 workers at one PostgreSQL", "no PostgreSQL here")
        return
    (place,) = bench.server
    yield from _claimed(bench, place)
    yield from _worked(bench, place)


# -- claims without agents --------------------------------------------------------------------


def _claimed(bench: Bench, place: Place) -> Iterator[Figure]:
    tasks, crowd = bench.scale.pick(10_000, 2_000, 20), bench.scale.pick(CROWD, CROWD, 2)
    url = place.fresh()
    ledger = bench.ledger(url)
    bench.say(f"{crowd} workers without agents, {tasks:,} tasks")
    opened = {ledger.open(CONTRACT, actor=OPERATOR).id for _ in range(tasks)}
    workers = [_worker(url) for _ in range(crowd)]
    for worker in workers:
        _line(worker)
    begun = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.close()
    answers = [msgspec.json.decode(_line(worker), type=Answer) for worker in workers]
    seconds = time.perf_counter() - begun
    for worker in workers:
        worker.stdin = None  # it is closed already
        worker.communicate()
    yield _twice(ledger, opened, [task for each in answers for task in each.started], place)
    yield Figure(
        f"lives, {crowd} processes, {tasks:,} tasks, {place.name}", [tasks / seconds], "/s"
    )
    waits = [wait * 1e3 for each in answers for wait in each.waits]
    for percent in (50, 99):
        name = f"claim, p{percent}, {crowd} processes, {place.name}"
        yield Figure(name, [percentile(waits, percent)], "ms")


def _worker(url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "benchmarks.fleet", url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _line(worker: subprocess.Popen[bytes]) -> bytes:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    assert line, "a worker died; its reason stands above"
    return line


def _twice(ledger: Ledger, opened: set[str], started: list[str], place: Place) -> Figure:
    """By the workers' word and by the record: each once, and all of them."""
    assert set(started) == opened, "a task was never started"
    counts = Counter(started)
    runs = _runs(ledger)
    assert runs == len(started), f"{runs} runs are recorded, {len(started)} were given"
    more = float(sum(n - 1 for n in counts.values()))
    assert more == 0, "a task was started twice"
    return Figure(
        f"tasks started twice, of {len(opened):,}, {place.name}", [more], "", (never_above(0),)
    )


def _runs(ledger: Ledger) -> int:
    return sum(ended.runs for ended in ledger.ended_since(0))


# -- whole workers ----------------------------------------------------------------------------


def _worked(bench: Bench, place: Place) -> Iterator[Figure]:
    tasks, crowd = bench.scale.pick(200, 80, 4), bench.scale.pick(CROWD, CROWD, 2)
    url, folder = place.fresh(), bench.folder(bench.folders[0])
    ledger = bench.ledger(url)
    with contextlib.ExitStack() as closing:
        workers = [_real(url, folder, closing) for _ in range(crowd)]
        _until(lambda: len(ledger.workers()) == crowd)
        yield _idle(bench, workers, place)
        bench.say(f"{crowd} real workers, {tasks} tasks")
        work = os.path.join(folder, "work")
        os.mkdir(work)
        terms = replace(CONTRACT, command=("true",), cwd=work, gates=())
        begun = time.perf_counter()
        opened = [ledger.open(terms, actor=OPERATOR).id for _ in range(tasks)]
        _until(lambda: _runs(ledger) >= tasks)
        seconds = time.perf_counter() - begun
    runs = [len(ledger.dossier(task).runs) for task in opened]
    assert runs == [1] * tasks, "a task was not started exactly once"
    name = f"runs of `true`, {crowd} workers with a seat each, {tasks} tasks, {place.name}"
    yield Figure(name, [tasks / seconds], "/s")


def _real(url: str, folder: str, closing: contextlib.ExitStack) -> subprocess.Popen[bytes]:
    script = os.path.join(os.path.dirname(sys.executable), "truegreen")
    environ = os.environ | {"TRUEGREEN_STORE": url, "HOME": folder}
    environ |= {f"XDG_{kind}_HOME": f"{folder}/{kind}" for kind in ("STATE", "CONFIG", "CACHE")}
    made = closing.enter_context(
        subprocess.Popen(  # noqa: S603 - our own program
            [script, "worker", "--seats", "1"],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    )
    closing.callback(made.kill)
    return made


def _idle(bench: Bench, workers: list[subprocess.Popen[bytes]], place: Place) -> Figure:
    """What all of them take together while nothing is queued; the database not counted."""
    bench.say(f"{len(workers)} real workers at rest")
    seconds = bench.scale.pick(20, 10, 1)
    time.sleep(bench.scale.pick(5, 5, 0))
    before, begun = sum(map(_ticks, workers)), time.perf_counter()
    time.sleep(seconds)
    used = (sum(map(_ticks, workers)) - before) / _TICKS
    share = used / (time.perf_counter() - begun) * 100
    name = f"{len(workers)} worker processes at rest, of a core, {place.name}"
    return Figure(name, [share], "%", note="each a process; the goal is for 8 seats of one")


def _ticks(worker: subprocess.Popen[bytes]) -> int:
    with open(f"/proc/{worker.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def _until(true: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


# -- the other side ---------------------------------------------------------------------------


def _live(ledger: Ledger) -> Answer:
    answer = Answer([], [])
    while True:
        begun = time.perf_counter()
        tickets = ledger.claim_next(START._replace(holder=f"bench/{os.getpid()}"))
        answer.waits.append(time.perf_counter() - begun)
        if not tickets:
            return answer
        for ticket in tickets:
            answer.started.append(ticket.task)
            ledger.end_run(ticket, EXIT, claim=CLAIM)
            ledger.record(ticket, [FINDING])
            ledger.judge(ticket, VERDICT)


def _serve(url: str) -> None:
    ledger = open_ledger(url)
    print("ready", flush=True)
    sys.stdin.read()
    sys.stdout.write(msgspec.json.encode(_live(ledger)).decode() + "\n")
    ledger.close()


if __name__ == "__main__":
    _serve(sys.argv[1])
