"""A command in the process of the test, for commands that only read or write the record.

A fork of the loaded command costs 10 ms, and twice as much where it opens a store; a call costs
what the command does. Commands that start, end or wait for processes are processes themselves.

A call must leave the process as it was: `call` puts back what it replaces, and fails where the
command left a thread or another signal handler.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tests.forking import SCRIPT, settings
from truegreen import __main__ as door
from truegreen.faces.cli.catalogue import COMMANDS

Words = Sequence[str | bytes | Path]

CALLED = {
    *("list", "show", "why", "breakers", "limits", "workers", "log", "events", "matrix", "inbox"),
    *("receipt", "audit", "agents", "junit", "retry", "waive", "unblock", "approve", "reject"),
    *("review", "ack", "snooze", "resolve", "cancel", "add", "send", "routine", "config"),
    *("completion", "token", "states", "version", "migrate", "backup"),
}
"""Commands that need no process of their own."""
_FOLLOWS = {"--follow", "-f"}
_COMPLETING = {"_TRUEGREEN_COMPLETE", "_TG_COMPLETE"}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE)
_OURS = frozenset(threading.enumerate())
"""Threads of pytest. Another thread would see the folder and the environment of the command."""


def can_be_called(words: Words, environ: Mapping[str, str]) -> bool:
    """Whether a call says and does what a process would."""
    name = next((word for word in words if word in COMMANDS), None)
    return (
        (name is None or name in CALLED)
        and not _FOLLOWS.intersection(words)
        and not _COMPLETING.intersection(environ)
        and settings(environ) == settings(os.environ)
        and _OURS.issuperset(threading.enumerate())
    )


def call(
    words: Words, environ: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[bytes]:
    """The command to its end, without input."""
    command = [os.fsdecode(word) for word in (SCRIPT, *words)]
    handlers = [signal.getsignal(number) for number in _SIGNALS]
    threads = threading.enumerate()
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    with open(os.devnull, encoding="utf-8") as nothing, _elsewhere(environ, folder):
        streams: dict[str, Any] = {"stdin": nothing, "stdout": out, "stderr": err, "argv": command}
        # Frozen objects are never collected: a process ends soon, this one does not.
        with mock.patch.multiple(sys, **streams), mock.patch.object(gc, "freeze"):
            try:
                status = door._guarded()
            finally:
                gc.enable()
    assert [signal.getsignal(number) for number in _SIGNALS] == handlers, "a signal handler is left"
    assert not set(threading.enumerate()).difference(threads), "a thread is left"
    return subprocess.CompletedProcess(command, status, _written(out), _written(err))


@contextmanager
def _elsewhere(environ: Mapping[str, str], folder: Path) -> Iterator[None]:
    here, mask = os.getcwd(), os.umask(0o022)
    os.umask(mask)
    # The standard library remembers the folder for temporary files.
    with (
        mock.patch.dict(os.environ, environ, clear=True),
        mock.patch.object(tempfile, "tempdir", None),
    ):
        try:
            os.chdir(folder)
            time.tzset()
            yield
        finally:
            os.chdir(here)
            os.umask(mask)
    time.tzset()


def _written(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue()
