"""P8: a child's output through parsing, redaction, hash and file, beside `cat > file` in a pipe."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import msgspec

from benchmarks.bench import Bench
from benchmarks.measure import Figure, Goal, at_most, interleaved, ratio_at_least, seconds
from truegreen.contract import Isolation
from truegreen.work import process
from truegreen.work.agents.command import CommandReader
from truegreen.work.process import Launch

PROSE, ONE_LINE = "plain text", "one line"
BARE = "cat to cat, into a file"
RATE = (Goal("≥", 250.0), ratio_at_least(0.4))
GROWTH = at_most(64.0)
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
SECRETS = (b"sk-ant-api03-not-a-real-key-0123456789", b"tg_agent_not-a-real-token-0123456789")
MEGABYTE = 1_000_000


class Usage(msgspec.Struct):
    """What a cap looks at."""

    input_tokens: int = 0
    output_tokens: int = 0


class Event(msgspec.Struct):
    """What a live view needs of a line, and no more."""

    type: str = ""
    usage: Usage | None = None


def run(bench: Bench) -> Iterator[Figure]:
    """Three kinds of output, each in turn with the bare pipe; then what it takes of memory."""
    folder = bench.folder(bench.folders[0])
    size = bench.scale.pick(1024, 256, 2) * MEGABYTE
    for what, make in (("events", events), (PROSE, prose), (ONE_LINE, one_line)):
        path = os.path.join(folder, what.replace(" ", "-"))
        fill(path, make(), size if what != ONE_LINE else min(size, 100 * MEGABYTE))
        yield from _rates(bench, what, path)
        os.unlink(path)
    path = os.path.join(folder, "flood")
    fill(path, events(), size)
    growth = [_growth(path) for _ in range(bench.scale.pick(3, 3, 1))]
    yield Figure(
        "memory growth of the supervisor", growth, "MB", (GROWTH,), note=f"{size // MEGABYTE} MB"
    )


def _rates(bench: Bench, what: str, path: str) -> Iterator[Figure]:
    bench.say(f"streaming {what}")
    out = f"{path}.out"
    samples = interleaved(
        bench.scale.repetitions,
        {BARE: partial(_bare, path, out), what: partial(ours, path, out, what)},
    )
    yield Figure(f"{what}: parsed, redacted, hashed, stored", samples[what], "MB/s", RATE,
                 samples[BARE], BARE)  # fmt: skip
    os.unlink(out)


def _bare(path: str, out: str) -> float:
    script = f"cat '{path}' | cat > '{out}'"
    took = seconds(lambda: subprocess.run(["sh", "-c", script], check=True))  # noqa: S603, S607 - ours
    return os.path.getsize(path) / MEGABYTE / took


def ours(path: str, out: str, what: str = "") -> float:
    """Megabytes a second of a child that writes a file to its output."""
    if what == PROSE:
        ended = process.run(stored(path, out), block=CommandReader().feed)
    else:
        ended = process.run(stored(path, out), line=_parsed)
    assert ended.code == 0, ended
    assert ended.stdout.size == ended.stdout.stored == os.path.getsize(path)
    return os.path.getsize(path) / MEGABYTE / ended.seconds


_decoder = msgspec.json.Decoder(Event)


def _parsed(line: bytes) -> None:
    if line.startswith(b"{"):
        _decoder.decode(line)


def stored(path: str, out: str) -> Launch:
    """A child that writes a file to its output, all of which is kept."""
    return Launch(
        argv=("cat", path),
        cwd="/",
        env=ENVIRONMENT,
        isolation=Isolation.REAPER,
        stdout_path=out,
        log_bytes=1 << 40,
        secrets=SECRETS,
    )


def _growth(path: str) -> float:
    """In a process of its own, so that its peak is the stream's."""
    script = (
        "import resource, sys; from benchmarks.stream import process, stored;"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "process.run(stored('/dev/null', ''), line=len); before = peak();"
        "process.run(stored(sys.argv[1], ''), line=len); print(peak() - before)"
    )
    words = [sys.executable, "-c", script, path]
    done = subprocess.run(words, check=True, capture_output=True)  # noqa: S603 - ours
    return int(done.stdout) * 1024 / MEGABYTE


# -- what is streamed ------------------------------------------------------------------------------


def fill(path: str, block: bytes, size: int) -> None:
    """A file of a block again and again."""
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(block)


def _words(count: int, source: random.Random) -> str:
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    weights = range(len(letters), 0, -1)
    lengths = source.choices(range(1, 12), k=count)
    return " ".join("".join(source.choices(letters, weights, k=length)) for length in lengths)


def events() -> bytes:
    """Lines such as a client writes: an id, some text, usage, a session."""
    source = random.Random(1)
    lines = []
    for n in range(400):
        text = _words(source.choice((20, 80, 400)), source)
        lines.append(
            f'{{"type":"assistant","message":{{"id":"msg_01{n:022}","content":[{{"type":"text",'
            f'"text":"{text}"}}]}},"usage":{{"input_tokens":{n},"output_tokens":7}},'
            '"session_id":"9f1c3a52-7f0b-4a0e-9d0e-0c2f3d7c5e11"}\n'
        )
    return "".join(lines).encode()


def prose() -> bytes:
    """What a build or a test run prints: a live view shows its last line."""
    source = random.Random(2)
    return "".join(f"{_words(12, source)}\n" for _ in range(4000)).encode()


def one_line() -> bytes:
    """No line end at all."""
    return _words(20_000, random.Random(3)).encode()
