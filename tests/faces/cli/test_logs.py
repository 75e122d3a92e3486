"""`log`: what an agent wrote, once or as it grows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from tests.faces.conftest import ESCAPES, SCRIPT, Furnished, Run
from tests.record.lives import OPERATOR, declared, ended, opened, started
from truegreen.facts import Ticket
from truegreen.model import TaskStatus
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.supervisor.holder import node

HOSTILE = (
    b"\x1b[2J\x1b]0;owned\x07\xc2\x9b31mall\tgood \xe2\x80\xae\xff\x1b]8;;http://evil\x1b\\\r\n"
)


@pytest.fixture
def ledger(furnished: Furnished) -> Iterator[Ledger]:
    """The ledger that the commands use too."""
    ledger = open_ledger(furnished.url)
    yield ledger
    ledger.close()


def folder_of(run: str) -> Path:
    """Where a supervisor keeps the files of a run."""
    folder = Path(os.environ["XDG_STATE_HOME"]) / "truegreen" / "runs" / run
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def finished(ledger: Ledger, text: bytes, **told: object) -> Ticket:
    """A run that ended, with what it wrote."""
    ticket = started(ledger)
    path = folder_of(ticket.run) / "stdout.log"
    path.write_bytes(text)
    output = {"size": len(text), "sha256": sha256(text).hexdigest(), "truncated": False, **told}
    ledger.end_run(ticket, ended(facts={"log": str(path), "output": output}))
    return ticket


def raw(environ: Callable[..., dict[str, str]], *words: str) -> bytes:
    done = subprocess.run([SCRIPT, "log", *words], capture_output=True, check=True, env=environ())
    return done.stdout


def test_a_pipe_gets_every_byte_by_the_id_of_the_run_or_of_its_task(
    environ: Callable[..., dict[str, str]], ledger: Ledger
):
    text = HOSTILE * 3000 + b"no end of line"
    ticket = finished(ledger, text)
    assert raw(environ, ticket.run) == text
    assert raw(environ, ticket.task) == text
    assert raw(environ, ticket.run.removeprefix("run_")) == text


def test_a_terminal_gets_text_that_can_do_nothing(on_terminal: Run, ledger: Ledger):
    ticket = finished(ledger, HOSTILE + b"second\n\nlast")
    out = on_terminal(100, "log", ticket.run).out
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", out)
    assert out.splitlines()[1:] == ["second", "", "last"]
    assert re.fullmatch(r"all +good �+", out.splitlines()[0])
    assert ESCAPES.sub("", out) == out


@pytest.mark.parametrize(
    ("text", "tail", "expected"),
    [
        (b"1\n2\n3\n", 2, b"2\n3\n"),
        (b"1\n2\n3", 2, b"2\n3"),
        (b"1\n2\n\n", 1, b"\n"),
        (b"1\n2\n", 0, b""),
        (b"1\n2\n", 99, b"1\n2\n"),
        (b"", 5, b""),
        (b"x" * 70_000 + b"\n" + b"y" * 70_000 + b"\nz\n", 2, b"y" * 70_000 + b"\nz\n"),
        (b"a\n" + b"x" * 65_534 + b"\n", 1, b"x" * 65_534 + b"\n"),
    ],
)
def test_tail_takes_the_last_lines(
    text: bytes,
    tail: int,
    expected: bytes,
    environ: Callable[..., dict[str, str]],
    ledger: Ledger,
):
    assert raw(environ, finished(ledger, text).run, "--tail", str(tail)) == expected


def test_json_is_one_document(tg: Run, ledger: Ledger):
    ticket = finished(ledger, HOSTILE, size=1 << 30, truncated=True)
    assert tg("log", ticket.task, "--json").json() == {
        "run": ticket.run,
        "path": str(folder_of(ticket.run) / "stdout.log"),
        "size": 1 << 30,
        "truncated": True,
        "missing": 0,
        "sha256": sha256(HOSTILE).hexdigest(),
        "text": HOSTILE.decode("utf-8", "replace"),
    }


def test_what_was_cut_is_said_beside_the_output(tg: Run, ledger: Ledger):
    answer = tg("log", finished(ledger, b"beginning\n", size=1 << 30, truncated=True).run)
    assert answer.out == "beginning\n"
    assert answer.err == "truegreen: cut; 1,073,741,824 bytes in all\n"
    both = finished(ledger, b"both ends\n", size=1 << 30, truncated=True, missing=1 << 20)
    words = "1,048,576 bytes in the middle are missing; 1,073,741,824 bytes in all"
    assert tg("log", both.run).err == f"truegreen: {words}\n"
    silent = finished(ledger, b"")
    assert tg("log", silent.run).err == f"truegreen: {silent.run} wrote nothing\n"


def test_standard_error_is_a_file_of_its_own(tg: Run, ledger: Ledger):
    ticket = finished(ledger, b"out\n")
    answer = tg("log", ticket.run, "--stderr")
    assert answer.status == 2
    assert "its standard error is part of its output" in answer.err
    assert answer.err.endswith(f"next: truegreen log {ticket.run}\n")
    (folder_of(ticket.run) / "stderr.log").write_bytes(b"warned\n")
    assert tg("log", ticket.run, "--stderr").out == "warned\n"
    assert tg("log", ticket.run, "--stderr", "--json").json()["size"] == len(b"warned\n")


def test_the_latest_run_of_a_task_is_meant(tg: Run, ledger: Ledger):
    first = finished(ledger, b"first\n")
    ledger.retry(first.task, actor=OPERATOR, reason="again")
    second = started(ledger, first.task)
    (folder_of(second.run) / "stdout.log").write_bytes(b"second\n")
    assert tg("log", first.task).out == "second\n", "also while it is still at work"
    assert tg("log", first.run).out == "first\n"


def test_a_file_that_is_gone_is_said_with_the_next_step(tg: Run, ledger: Ledger):
    ticket = finished(ledger, b"gone\n")
    path = folder_of(ticket.run) / "stdout.log"
    path.unlink()
    answer = tg("log", ticket.run)
    assert (answer.status, answer.out) == (2, "")
    assert str(path) in answer.err
    assert answer.err.endswith(f"next: truegreen show {ticket.task}\n")
    tg("log", ticket.run, "--json").error("not_found")


def test_nothing_but_a_file_is_read(tg: Run, ledger: Ledger, tmp_path: Path):
    (tmp_path / "secret").write_text("secret")
    for lay in (
        lambda path: path.symlink_to(tmp_path / "secret"),
        os.mkfifo,
        os.mkdir,
    ):
        ticket = finished(ledger, b"")
        path = folder_of(ticket.run) / "stdout.log"
        path.unlink()
        lay(path)
        answer = tg("log", ticket.run)
        assert (answer.status, answer.out) == (2, "")


def test_what_has_no_output_yet_is_said(tg: Run, furnished: Furnished, ledger: Ledger):
    answer = tg("log", furnished.tasks[TaskStatus.QUEUED])
    assert answer.status == 2
    assert "has no run yet" in answer.err
    ticket = started(ledger)
    answer = tg("log", ticket.run)
    assert answer.status == 2
    assert f"{ticket.run} has written nothing yet" in answer.err
    tg("log", "zzz", "--json").error("not_found")
    tg("log", "run_zzz", "--json").error("not_found")
    tg("log", "run_zzz", "--follow", "--json").error("not_found")


# --- follow


@contextmanager
def following(
    environ: Callable[..., dict[str, str]], *words: str
) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [SCRIPT, "log", "--follow", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ(PYTHONUNBUFFERED=""),  # else a line may come before the look that found it ends
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_follow_shows_what_comes_and_ends_with_the_run(
    environ: Callable[..., dict[str, str]], ledger: Ledger
):
    ticket = started(ledger)
    with (folder_of(ticket.run) / "stdout.log").open("wb", buffering=0) as log:
        log.write(b"old\nfirst\n")
        with following(environ, ticket.task, "--tail", "1") as process:
            assert process.stdout
            assert process.stdout.readline() == b"first\n"
            log.write(b"second\n")
            assert process.stdout.readline() == b"second\n"
            assert process.poll() is None
            log.write(b"the last words")
            declared(ledger, ticket)
            out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == (b"the last words", b"", 0)


def test_follow_in_json_is_json_lines(environ: Callable[..., dict[str, str]], ledger: Ledger):
    ticket = finished(ledger, b"one\ntwo\n" + b"x" * 100_000 + b"\nend")
    with following(environ, ticket.run, "--json") as process:
        out, err = process.communicate(timeout=30)
    lines = [json.loads(line) for line in out.splitlines()]
    assert (err, process.returncode) == (b"", 0)
    assert {line["run"] for line in lines} == {ticket.run}
    texts = [line["text"] for line in lines]
    assert texts[:2] == ["one", "two"]
    assert texts[-1] == "end"
    assert "".join(texts[2:-1]) == "x" * 100_000


def test_follow_waits_for_the_first_run_of_a_queued_task(
    environ: Callable[..., dict[str, str]], ledger: Ledger
):
    task = opened(ledger).id
    with following(environ, task) as process:
        time.sleep(1)  # long enough to have looked in vain; the claim is that it does not give up
        assert process.poll() is None
        ticket = started(ledger, task)
        (folder_of(ticket.run) / "stdout.log").write_bytes(b"hello\n")
        assert process.stdout
        assert process.stdout.readline() == b"hello\n"
        declared(ledger, ticket)
        assert process.wait(30) == 0


def test_what_another_host_keeps_is_looked_for_there(tg: Run, ledger: Ledger):
    ticket = started(ledger)
    facts = {"log": "/var/elsewhere/stdout.log", "restore": "git fetch /var/elsewhere.git left"}
    ledger.end_run(ticket, ended(facts={**facts, "ground": {"host": "far"}}))
    answer = tg("log", ticket.task)
    assert answer.err.endswith(f"next: truegreen log {ticket.run}, on far\n")
    shown = tg("show", ticket.task).out
    assert f"  output    on far: truegreen log {ticket.run}\n" in shown
    assert "  its work  on far: git fetch /var/elsewhere.git left\n" in shown


@pytest.mark.parametrize("words", [[], ["--follow"]])
def test_a_run_under_way_on_another_host_is_not_waited_for(
    tg: Run, ledger: Ledger, words: list[str]
):
    start = Start("far/1/b/1/1", facts={"ground": {"host": "far"}})
    ticket = ledger.start(opened(ledger).id, start)
    ledger.seen(ticket)
    answer = tg("log", ticket.task, *words)
    assert answer.status == 2
    assert f"{ticket.run} is under way on far, which keeps what it writes" in answer.err
    assert f"truegreen events {ticket.task} --follow" in answer.err


def test_what_this_host_keeps_is_named_without_it(tg: Run, ledger: Ledger):
    ticket = started(ledger)
    facts = {"log": "/nowhere/stdout.log", "ground": {"host": node()}}
    ledger.end_run(ticket, ended(facts=facts))
    assert f"  output    truegreen log {ticket.run}\n" in tg("show", ticket.task).out
    assert "is not to be had at /nowhere/stdout.log" in tg("log", ticket.run).err
