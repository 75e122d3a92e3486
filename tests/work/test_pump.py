"""Whatever comes out of a command, memory stays bounded and the account of it is true."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.work.running import launch
from truegreen.work.agents.command import CommandReader
from truegreen.work.lines import Lines, by_line
from truegreen.work.process import LINE_BYTES, Output, run
from truegreen.work.pump import ENDS, Pump
from truegreen.work.redact import Redactor
from truegreen.work.sink import BUSY_BYTES, WAITING, Carrier, Sink


def noise(size: int) -> bytes:
    """Bytes of every kind, the same in each run: chance can make an address with a key in it."""
    return random.Random(size).randbytes(size)  # noqa: S311 - noise


def pumped(path: str, pieces: list[bytes], cap: int = 1 << 30) -> tuple[Output, list[bytes]]:
    lines: list[bytes] = []
    pump = Pump(path, cap, Redactor(), by_line(lines.append))
    for piece in pieces:
        pump.take(piece)
    return pump.finish(), lines


@given(pieces=st.lists(st.binary(max_size=50) | st.sampled_from([b"\n", b"\n\n", b"a"])))
def test_lines_are_those_of_the_whole_text(pieces: list[bytes]):
    text = b"".join(pieces)
    redactor = Redactor()
    assume(redactor.feed(text) + redactor.flush() == text)
    output, lines = pumped("", pieces)
    whole = text.split(b"\n")
    assert lines == (whole if whole[-1] else whole[:-1])
    assert (output.size, output.head, output.tail) == (len(text), text, text)
    assert output.sha256 == hashlib.sha256(text).hexdigest()


@given(
    pieces=st.lists(st.binary(max_size=50) | st.sampled_from([b"\n", b"x" * 300, b" \n"])),
)
def test_a_chunk_is_given_on_in_two_pieces_at_most_however_many_lines_it_has(pieces: list[bytes]):
    blocks: list[bytes] = []
    lines = Lines(blocks.append)
    reader = CommandReader()
    for piece in pieces:
        before = len(blocks)
        lines.take(piece)
        assert len(blocks) - before <= 2
    lines.finish()
    text = b"".join(pieces)
    assert b"\n".join(blocks) == text.removesuffix(b"\n") or (text == b"\n" and blocks == [b""])
    for block in blocks:
        reader.feed(block)
    spoken = [line for line in text.split(b"\n") if line.strip()]
    one_by_one = CommandReader()
    one_by_one.feed(spoken[-1] if spoken else b"")
    assert reader.live.last_message == one_by_one.live.last_message


@pytest.mark.parametrize("size", [BUSY_BYTES - 1, BUSY_BYTES, 3 * BUSY_BYTES])
def test_a_long_stream_is_stored_and_hashed_as_a_short_one_is(tmp_path: Path, size: int):
    text = noise(size)
    before = threading.active_count()
    output, _ = pumped(
        str(tmp_path / "log"), [text[n : n + 100_000] for n in range(0, size, 100_000)], size - 7
    )
    begin, end = size - 7 - ENDS, text[-ENDS:].split(b"\n", 1)[1]
    stored = begin + len(end)
    note = f"\n[truegreen: {size - stored:,} of {size:,} bytes are missing here]\n".encode()
    assert (tmp_path / "log").read_bytes() == text[:begin] + note + end
    assert (output.size, output.stored, output.truncated) == (size, stored, True)
    assert output.sha256 == hashlib.sha256(text).hexdigest()
    assert threading.active_count() == before


@pytest.mark.parametrize("size", [4 * ENDS - 1, 4 * ENDS, 3 * ENDS, 3 * ENDS + 1])
def test_a_stream_within_its_cap_is_stored_whole(tmp_path: Path, size: int):
    text = noise(size)
    output, _ = pumped(str(tmp_path / "log"), [text], 4 * ENDS)
    assert (tmp_path / "log").read_bytes() == text
    assert (output.stored, output.truncated) == (size, False)


def test_each_stream_of_a_file_keeps_its_end(tmp_path: Path):
    path = str(tmp_path / "log")
    for number in range(2):
        pump = Pump(path, 4 * ENDS, Redactor(), append=bool(number))
        pump.take(b"line\n" * ENDS)
        pump.take(b"last %d\n" % number)
        pump.finish()
    text = (tmp_path / "log").read_bytes()
    assert text.count(b"bytes are missing here]") == 2
    assert text.endswith(b"line\nlast 1\n")
    assert b"line\nlast 0\nline\n" in text


def test_a_disk_that_is_full_gets_no_end(tmp_path: Path):
    sink = Sink(str(tmp_path / "log"), 10)
    sink.put(b"0123456789abc")
    sink.settle()
    sink.trouble = OSError(errno.ENOSPC, "full")
    sink.append(b"note", b"end")
    sink.close()
    assert (tmp_path / "log").read_bytes() == b"0123456789"


def test_no_more_waits_for_the_disk_than_a_few_pieces(tmp_path: Path):
    sink = Sink(str(tmp_path / "log"), 1 << 30)
    gate, given_on = threading.Semaphore(0), [0]

    def slow(data: bytes) -> None:
        gate.acquire()
        sink.take(data)

    def give() -> None:
        for count in range(1, 21):
            carrier.give(b"x")
            given_on.append(count)

    carrier = Carrier(slow)
    giver = threading.Thread(target=give, daemon=True)
    giver.start()
    giver.join(0.3)
    assert given_on[-1] == WAITING
    gate.release(20)
    giver.join()
    carrier.stop()
    sink.close()
    assert sink.stored == 20


def test_a_full_disk_shows_while_a_thread_writes():
    sink = Sink("/dev/full", 1 << 30, append=True)
    for _ in range(3):
        sink.put(b"x" * BUSY_BYTES)
    sink.close()
    assert sink.trouble is not None
    assert sink.trouble.errno == errno.ENOSPC
    assert sink.digest() == hashlib.sha256(b"x" * 3 * BUSY_BYTES).hexdigest()


def test_what_goes_wrong_in_the_thread_goes_wrong_for_whoever_finishes(tmp_path: Path):
    before, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    sink = Sink(str(tmp_path / "log"), 1 << 30)
    sink.put(b"x" * BUSY_BYTES)

    def fail(data: bytes) -> None:
        raise MemoryError(len(data))

    sink.take = fail  # type: ignore[method-assign]
    for _ in range(2 * WAITING):
        sink.put(b"x")
    with pytest.raises(MemoryError):
        sink.close()
    assert threading.active_count() == before
    assert len(os.listdir("/proc/self/fd")) == files


def test_a_stream_that_never_pauses_leaves_the_clock_its_turn(tmp_path: Path):
    """The pipe is full again whenever it is read, since what is read is looked at slowly."""
    ended = run(
        launch(tmp_path, "sh", "-c", "yes | head -c 50000000", time_s=0.3, grace_s=0.1),
        block=lambda _: time.sleep(0.05),
    )
    assert ended.stopped == "time"
    assert ended.seconds < 5, "all of it takes ten"


@pytest.mark.parametrize("cap", [0, 1, 9, 10, 11])
def test_the_file_has_no_more_than_its_cap(tmp_path: Path, cap: int):
    output, _ = pumped(str(tmp_path / "log"), [b"01234", b"56789"], cap)
    stored = min(cap, 10)
    assert (tmp_path / "log").read_bytes() == b"0123456789"[:stored]
    assert (output.size, output.stored, output.truncated) == (10, stored, cap < 10)


def test_head_and_tail_are_the_first_and_last_quarter_of_a_mebibyte():
    pieces = [noise(100_003 + n) for n in range(40)]
    output, _ = pumped("", pieces)
    text = b"".join(pieces)
    assert (output.head, output.tail) == (text[:ENDS], text[-ENDS:])


def test_a_long_line_is_cut_at_a_known_length_and_the_next_one_is_whole():
    lines: list[bytes] = []
    taker = Lines(lines.append)
    for _ in range(20):
        taker.take(b"x" * 1_000_000)
    taker.take(b"\nnext\n")
    taker.finish()
    assert [len(line) for line in lines] == [LINE_BYTES, 4]


@pytest.mark.criterion("H15")
@pytest.mark.parametrize("shape", ["lines", "one line", "noise"])
def test_a_flood_takes_little_memory(tmp_path: Path, shape: str):
    """In a process of its own, so that its peak is the flood's."""
    script = """
import resource, sys
from pathlib import Path
from tests.work.running import launch
from truegreen.work.process import run
run(launch(Path("/"), "true"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = 0
def line(text):
    global count
    count += 1
ended = run(launch(Path("/"), sys.executable, "-c", sys.argv[1],
                   stdout_path=sys.argv[2], log_bytes=1 << 20), line=line)
out = ended.stdout
print(out.size, out.stored, out.truncated, count, ended.code)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    chunk = {
        "lines": 'b\'{"type": "text"}\\n\' * 3856',
        "one line": "b'x' * 65552",
        "noise": "bytes(range(256)) * 256 + b'\\xff' * 16",
    }[shape]
    flood = f"import os\nfor _ in range(2000):\n  left = memoryview({chunk})\n"
    flood += "  while left: left = left[os.write(1, left):]\n"
    done = run(launch(Path.cwd(), sys.executable, "-c", script, flood, str(tmp_path / "log")))
    told, grown = done.stdout.head.decode().splitlines()
    size, stored, truncated, count, code = told.split()
    assert (size, truncated, code) == ("131104000", "True", "0")
    assert (1 << 20) - 300 < int(stored) <= 1 << 20
    assert int(count) == {"lines": 3856 * 2000, "one line": 1, "noise": 256 * 2000 + 1}[shape]
    assert int(grown) < 64 * 1024
