"""T3, P12: how soon terminate is acknowledged, how soon all is silent, and the kill switch."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

from benchmarks.bench import Bench, Place
from benchmarks.lives import CONTRACT, OPERATOR, START
from benchmarks.measure import Figure, at_most, percentile
from truegreen.contract import Isolation
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.fencing import Whom
from truegreen.supervisor.holder import holder_name
from truegreen.supervisor.kill_switch import terminate_all
from truegreen.supervisor.termination import terminate
from truegreen.work.jail import choose
from truegreen.work.process import Identity, Launch
from truegreen.work.process import run as run_process

P95_MS = at_most(20.0)
SILENCE_P99_MS = at_most(250.0)
SWITCH_SECONDS = at_most(30.0)
PERCENTS = (50, 95, 99)
PROCESSES = 200
LEVELS = (Isolation.JAIL, Isolation.REAPER, Isolation.NONE)
_STARTED_SECONDS = 30.0


def run(bench: Bench) -> Iterator[Figure]:
    """On each database and file system; then with processes, and with many tasks."""
    for place in bench.everywhere:
        bench.say(f"terminate on {place.name}")
        yield from _measured(bench, place)
    yield from _silences(bench)
    for place in bench.everywhere:
        bench.say(f"the kill switch on {place.name}")
        yield _switch(bench, place)


def _measured(bench: Bench, place: Place) -> Iterator[Figure]:
    ledger = bench.ledger(place.fresh())
    times = bench.scale.pick(200, 100, 3)
    firsts, repeats = [], []
    for _ in range(bench.scale.repetitions):
        firsts.append([_first(ledger)[0] for _ in range(times)])
        repeats.append(_again(ledger, bench.scale.pick(100, 100, 5)))
    for name, rounds in (("from running", firsts), ("repeated", repeats)):
        for percent in PERCENTS:
            samples = [percentile(each, percent) * 1e3 for each in rounds]
            goals = (P95_MS,) if percent == PERCENTS[1] else ()
            yield Figure(f"terminate {name}, p{percent}, {place.name}", samples, "ms", goals)


def _first(ledger: Ledger) -> tuple[float, str]:
    task = ledger.open(CONTRACT, actor=OPERATOR).id
    ledger.start(task, START)
    start = time.perf_counter()
    answer = ledger.terminate(task, actor=OPERATOR)
    took = time.perf_counter() - start
    assert answer.outcome == "interrupted"
    return took, task


def _again(ledger: Ledger, times: int) -> list[float]:
    """One task, terminated again and again: every time a success, and nothing changes."""
    _, task = _first(ledger)
    before = ledger.task(task)
    took = []
    for _ in range(times):
        start = time.perf_counter()
        answer = ledger.terminate(task, actor=OPERATOR)
        took.append(time.perf_counter() - start)
        assert answer.already_terminated
    assert ledger.task(task) == before
    return took


# --- with processes


def _silences(bench: Bench) -> Iterator[Figure]:
    """From the call to its answer: committed, marked, killed, and verified to be silent."""
    ledger = bench.ledger(bench.sqlite[0].fresh())
    home = bench.folder(bench.folders[0])
    many = bench.scale.pick(PROCESSES, PROCESSES, 5)
    for level in LEVELS:
        bench.say(f"terminate with {many} processes, {level}")
        times = bench.scale.pick(100, 20, 1)
        took = [_silence(ledger, home, level, many) * 1e3 for _ in range(times)]
        for percent in PERCENTS:
            name = f"terminate to verified silence, {PROCESSES} processes, {level}, p{percent}"
            goals = (SILENCE_P99_MS,) if percent == PERCENTS[-1] else ()
            yield Figure(name, [percentile(took, percent)], "ms", goals)


def _silence(ledger: Ledger, home: str, level: Isolation, many: int) -> float:
    task = ledger.open(CONTRACT, actor=OPERATOR).id
    isolation = choose(level)
    ticket = ledger.start(task, START._replace(holder=holder_name(), isolation=isolation))
    script = f"i=0; while [ $i -lt {many} ]; do sleep 300 & i=$((i+1)); done; echo up; wait"
    launch = Launch(
        argv=("sh", "-c", script),
        cwd=home,
        env={"PATH": os.environ["PATH"]},
        isolation=isolation,
        tag=ticket.run,
    )
    up, told = threading.Event(), threading.Event()

    def started(process: Identity) -> None:
        ledger.heartbeat(ticket, process=process._asdict())
        told.set()

    def supervise() -> None:
        run_process(launch, line=lambda _: up.set(), started=started)

    supervisor = threading.Thread(target=supervise)
    supervisor.start()
    assert up.wait(_STARTED_SECONDS)
    assert told.wait(_STARTED_SECONDS)
    begun = time.perf_counter()
    answer = terminate(ledger, Whom("task", task), state_dir=home, actor=OPERATOR)
    took = time.perf_counter() - begun
    supervisor.join()
    assert len(answer.killed) > many, answer
    assert answer.complete, answer
    return took


# --- everything at once


def _switch(bench: Bench, place: Place) -> Figure:
    """Tasks that wait, and agents whose work is done."""
    ledger = bench.ledger(place.fresh())
    home = bench.folder(bench.folders[0])
    tasks, agents = bench.scale.pick(1000, 1000, 3), bench.scale.pick(10_000, 2000, 3)
    for _ in range(tasks):
        ledger.open(CONTRACT, actor=OPERATOR)
    for number in range(agents):
        ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session=f"s-{number}")
    begun = time.perf_counter()
    answer = terminate_all(ledger, state_dir=home, actor=OPERATOR, reason="measured")
    took = time.perf_counter() - begun
    assert answer.complete, answer.left
    name = f"terminate --all, {tasks:,} tasks and {agents:,} agents, {place.name}"
    return Figure(name, [took], "s", (SWITCH_SECONDS,))
