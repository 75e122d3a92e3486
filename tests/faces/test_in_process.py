"""A call of a command says what a process says, and leaves the process of the test as it was."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import in_process
from tests.faces.conftest import Furnished
from tests.forking import Forge
from tests.table import each_row
from truegreen import __main__ as door
from truegreen.model import TaskStatus

FAILED = "TASK"
LINES: list[tuple[str | bytes, ...]] = [
    (),
    ("--version",),
    ("--help",),
    ("list",),
    ("list", "--json"),
    ("list", "--help"),
    ("list", b"\xff"),
    ("show", FAILED),
    ("show", FAILED, "--json"),
    ("show", "tsk_nothing"),
    ("inbox",),
    ("events", FAILED),
    ("config", "--json"),
    ("config", "--config", "nowhere.toml"),
    ("matrix", "--json"),
    ("no-such-command",),
]


def state() -> list[object]:
    """What a command could leave behind in the process that calls it."""
    mask = os.umask(0o077)
    os.umask(mask)
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    streams = [sys.stdin, sys.stdout, sys.stderr, sys.argv, sys.excepthook]
    files = [os.readlink(f"/proc/self/fd/{each}") for each in _descriptors()]
    place = [os.getcwd(), dict(os.environ), time.tzname, mask, list(sys.path)]
    return [handlers, streams, gc.isenabled(), files, place, threading.enumerate()]


def _descriptors() -> list[str]:
    return [each for each in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{each}")]


@each_row("words", LINES)
def test_a_call_says_what_a_process_says_and_leaves_nothing(
    words: tuple[str | bytes, ...],
    forge: Forge,
    furnished: Furnished,
    environ: Callable[..., dict[str, str]],
    tmp_path: Path,
):
    line = [furnished.tasks[TaskStatus.FAILED] if word == FAILED else word for word in words]
    there = environ(TZ="Asia/Tokyo")
    assert in_process.can_be_called(line, there)
    before = state()
    frozen = gc.get_freeze_count()
    done = in_process.call(line, there, tmp_path)
    assert state() == before
    assert gc.get_freeze_count() <= frozen
    process = forge.run(line, there, tmp_path, 50)
    assert (done.returncode, done.stdout, done.stderr) == (
        process.returncode,
        process.stdout,
        process.stderr,
    )


def test_the_next_call_knows_nothing_of_the_one_before(
    environ: Callable[..., dict[str, str]], tmp_path: Path
):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    (here / "truegreen.toml").write_text("[nonsense]\n")
    one = environ(TRUEGREEN_STORE=f"sqlite://{here}/store.db")
    two = environ(TRUEGREEN_STORE=f"sqlite://{there}/store.db")
    assert b"nonsense" in in_process.call(["config"], one, here).stderr
    assert in_process.call(["add", "--title", "x", "--", "true"], one, there).returncode == 0
    shown = in_process.call(["list"], two, there)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"nothing has been recorded yet" in shown.stdout
    assert b"x" in in_process.call(["list", "--json"], one, there).stdout
    none = {name: text for name, text in two.items() if name != "TRUEGREEN_STORE"}
    ours = os.environ["TRUEGREEN_STORE"].encode()
    assert ours not in in_process.call(["config", "--json"], none, there).stdout


def test_an_error_of_the_command_leaves_nothing_either(
    environ: Callable[..., dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fails() -> int:
        gc.disable()
        raise ZeroDivisionError

    before = state()
    with monkeypatch.context() as patch:
        patch.setattr(door, "_guarded", fails)
        with pytest.raises(ZeroDivisionError):
            in_process.call(["list"], environ(), tmp_path)
    assert state() == before


def test_a_thread_or_a_handler_that_is_left_is_an_error(
    environ: Callable[..., dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    over = threading.Event()
    thread = threading.Thread(target=over.wait)

    def starts() -> int:
        thread.start()
        return 0

    monkeypatch.setattr(door, "_guarded", starts)
    with pytest.raises(AssertionError, match="a thread is left"):
        in_process.call(["list"], environ(), tmp_path)
    assert not in_process.can_be_called(["list"], environ()), "it would see another folder"
    over.set()
    thread.join()

    def handles() -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return 0

    monkeypatch.setattr(door, "_guarded", handles)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(AssertionError, match="a signal handler is left"):
            in_process.call(["list"], environ(), tmp_path)
    finally:
        signal.signal(signal.SIGTERM, before)


@each_row(
    "words, changes",
    [
        (("run", "--", "true"), {}),
        (("--json", "terminate", "x"), {}),
        (("log", "-f", "x"), {}),
        (("list",), {"LC_ALL": "C"}),
        (("list",), {"PYTHONWARNINGS": "error"}),
        ((), {"_TRUEGREEN_COMPLETE": "bash_complete"}),
    ],
)
def test_what_needs_a_process_is_one(
    words: tuple[str, ...], changes: dict[str, str], environ: Callable[..., dict[str, str]]
):
    assert not in_process.can_be_called(words, environ(**changes))
