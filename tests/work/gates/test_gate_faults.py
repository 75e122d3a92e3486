"""Whatever step of a gate is killed, full, late, silent or garbled: the gate does not pass."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.work.gates.python_tests.suites import CORE, FILES, FIXED, Suite, tools
from tests.work.gates.replays import Fault, Replay, Tick, clear, output, put, recorded
from tests.work.gates.test_held_out import ADD, CASES, HARD_CODED, HONEST, SECRET_OUT, Held
from tests.work.gates.trees import SYSTEM_PATH, Tree, run_gate
from tests.work.running import GUARDED, need_jail
from tests.work.test_faults import mind_the_bystanders
from tests.work.test_faults import tree as processes
from truegreen.contract import Contract, Gate, GateKind, Isolation
from truegreen.facts import Finding
from truegreen.model import FindingOutcome
from truegreen.work import verify
from truegreen.work.gates.reports import REPORT_BYTES
from truegreen.work.process import Ended

DRAWS = 1000
BLOWS = 25
PASSED = FindingOutcome.PASSED
LIMITS = ("time", "idle", "memory", "room", "disk", "processes")
NO_FILES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.EROFS)

PRINTS_TAP = "print('1..3\\nok 1 - alpha\\nok 2 - beta\\nok 3 - gamma')\n"
WRITES_JUNIT = """\
import os
cases = "".join(f'<testcase name="test_{name}"/>' for name in ("one", "two", "three"))
with open(os.environ["REPORT"], "w") as file:
    file.write(f'<testsuite name="s" tests="3">{cases}</testsuite>')
"""
UNITTEST = """\
import unittest


class Sums(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(1 + 1, 2)
"""


# --- gates that pass


def _python(*words: str, **more: Any) -> Gate:
    return Gate(name="check", command=(sys.executable, *words), **more)


GATES = {
    "run": (_python("-I", "-c", "print('well')"), {}),
    "counted": (_python("-m", "unittest"), {"test_sums.py": UNITTEST}),
    "tap": (_python("-I", "-c", PRINTS_TAP, kind=GateKind.TAP), {}),
    "junit": (_python("-I", "-c", WRITES_JUNIT, kind=GateKind.JUNIT, report="$REPORT"), {}),
}


def _replays(home: Path) -> Iterator[tuple[Replay, Finding]]:
    for name, (gate, files) in GATES.items():
        (home / name).mkdir()
        tree = Tree(home / name, {"README": "x", **files})
        site = tree.write({"work.txt": "done"}).site(path=SYSTEM_PATH)
        before = verify.baseline(Contract(title="t", gates=(gate,)), site)
        yield recorded(name, gate, site, before[0].evidence if before else {})
    (home / "held").mkdir()
    held = Held(home / "held", {"add.py": HARD_CODED})
    held.tree.write({"add.py": HONEST})
    site = held.tree.site(held=held.kept, path=SYSTEM_PATH)
    yield recorded("held_out", held.gate(CASES, *ADD), site)
    gate = Gate(name="check", kind=GateKind.PYTEST, protect=("tests",))
    # In a jail the control runs beside the session, else after it.
    for name, isolation in (("pytest", Isolation.JAIL), ("pytest after", Isolation.REAPER)):
        (home / name).mkdir()
        suite = Suite(home / name).write({"core.py": FIXED})
        site = suite.site(tools=tools(), isolation=isolation, path=SYSTEM_PATH)
        before = verify.baseline(Contract(title="t", gates=(gate,)), site)
        yield recorded(name, gate, site, before[0].evidence)


class Counting(Fault):
    """No fault, but how often there could have been one."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def tick(self) -> None:
        self.seen["tick"] += 1

    def touch(self, what: str) -> None:
        self.seen[what] += 1

    def end(self, role: str, ended: Ended, tick: Tick) -> Ended:  # noqa: ARG002 - of no matter
        if tick:
            tick()
        return ended


# --- what goes wrong


class Ends(Fault):
    """One process ends otherwise than it did."""

    def __init__(self, role: str, change: dict[str, Any]) -> None:
        self.role, self.change = role, change

    def end(self, role: str, ended: Ended, tick: Tick) -> Ended:  # noqa: ARG002 - nobody waits
        if role != self.role:
            return ended
        self.hit = True
        return replace(ended, **self.change)


class Writes(Fault):
    """One report is not what it was."""

    def __init__(self, role: str, how: str, change: Callable[[str, bytes], object]) -> None:
        self.role, self.how, self.change = role, how, change

    def write(self, role: str, place: str, data: bytes) -> None:
        if role != self.role:
            return super().write(role, place, data)
        self.hit = True
        self.change(place, data)
        return None


class Refuses(Fault):
    """One file can't be made, or be read."""

    def __init__(self, what: str, nth: int, number: int) -> None:
        self.what, self.left, self.number = what, nth, number

    def touch(self, what: str) -> None:
        if what == self.what:
            self.left -= 1
            if self.left == -1:
                self.hit = True
                raise OSError(self.number, os.strerror(self.number))


class Lost(Exception):
    """What a supervisor raises that has lost its lease."""


class Ticks(Fault):
    """The supervisor stops the gate: by a word, or by an error; at once, or in the control."""

    def __init__(self, word: str, role: str) -> None:
        self.word, self.role = word, role
        self.now = threading.Event()

    def tick(self) -> str | None:
        if not self.now.is_set():
            return None
        self.hit = True
        if not self.word:
            raise Lost
        return self.word

    def end(self, role: str, ended: Ended, tick: Tick) -> Ended:
        if role != self.role:
            return ended
        assert tick
        self.now.set()
        # A control beside the session has a tick of its own, and hears it from there.
        while not (word := tick()):
            time.sleep(0.002)
        return replace(ended, stopped=word.removeprefix("!"))


def _end(draw: random.Random, replay: Replay) -> Fault:
    role = draw.choice(sorted(replay.takes))
    code = replay.takes[role].ended.code
    text = draw.randbytes(40)
    changes: list[dict[str, Any]] = [
        {"code": None, "signal": draw.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])},
        {"code": None, "signal": 9, "oom": True},
        {"oom": True},
        {"stopped": draw.choice(LIMITS)},
        {"stopped": draw.choice(LIMITS), "code": None, "signal": 15},
        {"disk_full": True},
        {"launch_error": "no more processes can be started", "launch_errno": "EAGAIN"},
        {"launch_error": "the jail can't be set up", "code": None},
        {"code": None},
        {"code": draw.choice([each for each in range(256) if each != code])},
    ]
    if replay.name in ("tap", "held_out"):
        stdout = replay.takes[role].ended.stdout
        changes.append({"stdout": replace(stdout, truncated=True)})
    change = draw.choice(changes)
    if replay.name == "counted" and draw.random() < 0.3:
        was = replay.takes[role].ended.stdout.tail
        texts = (b"", text, was[: draw.randrange(was.index(b"Ran "))], _failing(was))
        change = {"stdout": output(draw.choice(texts))}
    return Ends(role, change)


def _failing(said: bytes) -> bytes:
    return re.sub(rb"\nOK", b"\nFAILED (failures=1)", said)


def _report(draw: random.Random, replay: Replay, large: Path) -> Fault:
    role = draw.choice(sorted(replay.reports))
    garbled = {
        "empty": lambda _: b"",
        "cut off": lambda data: data[: draw.randrange(len(data.rstrip()))],
        "noise": lambda _: draw.randbytes(draw.randrange(1, 2000)),
        "a byte": lambda data: _flipped(draw, data),
        "another suite": lambda data: _OWN_NAMES.sub(b"other", data),
        "of another": lambda _: draw.choice(_others(replay, role)),
    }
    if b"<testsuite" in replay.reports[role]:
        garbled["a document type"] = _with_doctype
        garbled["an outcome"] = lambda data: _turned(draw, data)
    instead = {
        "missing": clear,
        "a link": lambda place: os.symlink(f"{place}.good", place),
        "a folder": os.mkdir,
        "a pipe": os.mkfifo,
        "too large": lambda place: os.link(large, place),
    }
    how = draw.choice([*garbled, *instead])

    def write(place: str, data: bytes) -> None:
        if how in garbled:
            wrong = garbled[how](data)
            assert wrong != data, how
            put(place, wrong)
            return
        clear(place)
        put(f"{place}.good", data)
        instead[how](place)

    return Writes(role, how, write)


_OWN_NAMES = re.compile(rb"core|alpha|_one\b|3|" + SECRET_OUT.encode())


def _others(replay: Replay, role: str) -> list[bytes]:
    """Reports of other processes, and one that a guess at our names would give."""
    own = replay.reports[role]
    return [data for data in replay.reports.values() if data != own] or [b"1..0\n"]


_TELLING = re.compile(
    rb"<(testcase)\b|</?(failure)\b| name=\"(test_\w+)\"|^(ok)|^1\.\.(\d)|- (\w+)$|^(\d+)$",
    re.MULTILINE,
)


def _flipped(draw: random.Random, data: bytes) -> bytes:
    """Another letter in an outcome, in a name, in a plan, in an answer: all that a report says."""
    spans = [found.span(found.lastindex or 0) for found in _TELLING.finditer(data)]
    start, end = draw.choice(spans)
    at = draw.randrange(start, end)
    letters = [letter for letter in b"abcdefghijklmnopqrstuvwxyz0123456789" if letter != data[at]]
    return b"%b%c%b" % (data[:at], draw.choice(letters), data[at + 1 :])


def _turned(draw: random.Random, data: bytes) -> bytes:
    """Failures that are none any more, or tests that did not pass."""
    if b"<failure" in data:
        return data.replace(b"failure", draw.choice([b"failurf", b"skipped", b"system-out"]))
    mark = draw.choice([b"<failure/>", b"<error/>", b"<skipped/>", b"<rerunFailure/>"])
    tags = list(re.finditer(rb"(<testcase [^>]*?) ?/>", data))
    tag = draw.choice(tags)
    return data[: tag.start()] + tag[1] + b">" + mark + b"</testcase>" + data[tag.end() :]


def _with_doctype(data: bytes) -> bytes:
    at = data.index(b"<testsuite")
    return data[:at] + b"<!DOCTYPE testsuites>" + data[at:]


def _drawn(draw: random.Random, replay: Replay, seen: Counter[str], large: Path) -> Fault:
    kinds = ["end"] * 4 + ["make"] * 3 + (["report"] * 5 if replay.reports else [])
    kind = draw.choice([*kinds, "tick"])
    if kind == "end":
        return _end(draw, replay)
    if kind == "report":
        return _report(draw, replay, large)
    if kind == "make":
        return Refuses("make", draw.randrange(seen["make"]), draw.choice(NO_FILES))
    return Ticks(draw.choice(["", "cancel", "!lost"]), draw.choice(sorted(replay.takes)))


@pytest.fixture
def rooms() -> Iterator[Path]:
    """A folder in memory where there is one: a thousand rooms are much work for a disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - is made safely
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.mark.timeout(240)
@pytest.mark.criterion("E14", "E16")
def test_a_fault_at_any_step_of_a_gate_is_never_a_pass(tmp_path: Path, rooms: Path):
    need_jail()
    large = rooms / "large"
    large.write_bytes(b"\n" * (REPORT_BYTES + 1))
    staged = []
    for real, found in _replays(tmp_path):
        (rooms / real.name).mkdir()
        replay = real._replace(site=replace(real.site, scratch=str(rooms / real.name)))
        counted = Counting()
        again = replay.ask(counted)
        assert (found.outcome, again.outcome) == (PASSED, PASSED), (replay.name, found, again)
        assert (again.level, again.counts) == (found.level, found.counts), replay.name
        staged.append((replay, counted.seen))
    seed = random.SystemRandom().randrange(1 << 32)
    draw = random.Random(seed)  # noqa: S311 - no secret
    for n in range(DRAWS):
        replay, seen = draw.choice(staged)
        fault = _drawn(draw, replay, seen, large)
        said = f"seed {seed}, draw {n}: {replay.name}, {fault}"
        try:
            answer = replay.ask(fault)
        except Lost:
            assert isinstance(fault, Ticks), said
            assert not fault.word, said
        else:
            assert fault.hit, f"{said}: nothing went wrong"
            assert answer.outcome is not PASSED, f"{said}: {answer}"
            assert not (isinstance(fault, Ticks) and not fault.word), said
        assert not os.listdir(replay.site.scratch), f"{said}: a gate left its room behind"


# --- real processes

NAP_S = 1.2
SLEEPS = f"import time\ntime.sleep({NAP_S})\n"


class Blow:
    """Kills one process of a gate while none of them can have come to its end."""

    def __init__(self, delay: float, which: float) -> None:
        self.delay, self.which = delay, which
        self.hit = b""
        self.late = False
        self._over = threading.Event()

    @contextlib.contextmanager
    def falls(self) -> Iterator[None]:
        thread = threading.Thread(target=self._strike)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _strike(self) -> None:
        while not processes():
            if self._over.wait(0.005):
                return
        begun = time.monotonic()
        self._over.wait(self.delay)
        found = processes()
        if found:
            chosen = found[int(self.which * len(found))]
            with contextlib.suppress(ProcessLookupError):
                os.kill(chosen.pid, signal.SIGKILL)
                self.hit = str(chosen).encode()
        self.late = time.monotonic() - begun > NAP_S


@pytest.mark.timeout(240)
@pytest.mark.criterion("E14", "E16")
def test_a_gate_that_lost_a_process_has_not_passed(tmp_path: Path):
    """The nap keeps every command from ending well before the blow; later blows don't count."""
    need_jail()
    mind_the_bystanders()
    seed = random.SystemRandom().randrange(1 << 32)
    draw = random.Random(seed)  # noqa: S311 - no secret
    suite = Suite(tmp_path, {**FILES, "core.py": SLEEPS + CORE}).write({"core.py": SLEEPS + FIXED})
    tests = Gate(name="tests", kind=GateKind.PYTEST, protect=("tests",))
    sleep = run_gate(sys.executable, "-I", "-c", SLEEPS)
    site = suite.site(tools=tools())
    before = verify.baseline(Contract(title="t", gates=(tests,)), site)[0]
    for gate, level in product((tests, sleep), GUARDED):
        found = verify.check_gate(gate, replace(site, isolation=level), pinned=before.evidence)
        assert found.outcome is PASSED, found
    hits = 0
    for n in range(BLOWS):
        gate = draw.choice([tests, sleep, sleep])
        level = draw.choice(GUARDED)
        blow = Blow(draw.uniform(0, 0.7), draw.random())
        with blow.falls():
            found = verify.check_gate(gate, replace(site, isolation=level), pinned=before.evidence)
        said = f"seed {seed}, draw {n}: {gate.name} ({level}) lost {blow.hit!r}: {found}"
        if not blow.hit or blow.late:
            continue
        hits += 1
        assert found.outcome is not PASSED, said
        assert not processes(), said
    assert hits > BLOWS // 2
