"""`log`: what an agent wrote, as it wrote it for a pipe, and as nothing but text for a terminal."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

import click
import msgspec

from truegreen.app import place_of
from truegreen.config import Config
from truegreen.errors import Ambiguous, NotFound, Refused
from truegreen.faces.clean import clean
from truegreen.faces.cli.frame import Frame, command, offered
from truegreen.faces.cli.lookout import Lookout
from truegreen.faces.cli.output import flush, write_bytes, write_json, write_text
from truegreen.faces.fleet import elsewhere
from truegreen.model import RunStatus, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.rows import Run
from truegreen.tuples import NamedTuple

_CHUNK = 65536
_LONGEST_LINE = 65536
_STDERR = "stderr.log"


class Log(NamedTuple):
    """The output of one run: where it lies, and what is known about the whole of it."""

    run: Run
    task: str
    path: str
    told: dict[str, Any]
    host: str = ""
    """The machine that has it, where it is not this one."""

    @property
    def live(self) -> bool:
        """Whether more may come."""
        return self.run.exit_reason is None


class Sink(Protocol):
    """Takes output piece by piece."""

    def feed(self, chunk: bytes) -> None:
        """The next piece."""

    def close(self) -> None:
        """There is no more."""


@command(
    "log",
    "truegreen log tsk_0c3k9              the output of its latest run",
    "truegreen log run_0c3kb --tail 20",
    "truegreen log tsk_0c3k9 --follow     until the run has ended",
    "truegreen log tsk_0c3k9 --stderr | less",
)
@click.argument("run", metavar="RUN|TASK", shell_complete=offered("tasks", "runs"))
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
@click.option("--stderr", is_flag=True, help="What the agent wrote to its standard error.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines.")
def log(frame: Frame, run: str, tail: int | None, *, follow: bool, stderr: bool) -> None:
    """Print what the agent of a RUN wrote; of a TASK, its latest run. With --json: one document.

    On a terminal it is shown as text that can do nothing; in a pipe it is byte for byte what is
    kept. With --follow --json: JSON Lines.
    """
    config = frame.load()
    with frame.ledger() as ledger:
        lookout = Lookout(ledger)
        if follow:
            lookout.until(lambda: _has_begun(config, ledger, run, stderr=stderr))
        found = _find(config, ledger, run, stderr=stderr)
        with _opened(found, stderr=stderr) as file:
            file.seek(_tail_offset(file, tail) if tail is not None else 0)
            if follow:
                _follow(frame, ledger, lookout, found, file)
            else:
                _once(frame, found, file)
    if not frame.json and not follow:
        _remark(found)


# --- which file


def _find(config: Config, ledger: Ledger, given: str, *, stderr: bool) -> Log:
    run, task = _run(ledger, given)
    facts = msgspec.json.decode(run.facts) if run.facts else {}
    path = facts.get("log")
    if not path:  # written down when the run ends
        path = os.path.join(place_of(config).run_dir(run.id), "stdout.log")
    host = elsewhere(facts)
    if stderr:
        return Log(run, task, os.path.join(os.path.dirname(path), _STDERR), {}, host)
    return Log(run, task, path, facts.get("output", {}), host)


def _run(ledger: Ledger, given: str) -> tuple[Run, str]:
    """A run by the beginning of its id, or the latest one of a task."""
    if not given.startswith("tsk_"):
        try:
            return ledger.run(ledger.find("run", given))
        except (NotFound, Ambiguous):
            if given.startswith("run_"):
                raise
    try:
        task = ledger.find("tsk", given)
    except NotFound:
        raise NotFound(f"no run and no task {given}") from None
    runs = ledger.dossier(task).runs
    if not runs:
        way = f"truegreen show {task}"
        raise NotFound(f"{task} has no run yet; what the record says: {way}", allowed=(way,))
    return runs[-1], task


def _has_begun(config: Config, ledger: Ledger, given: str, *, stderr: bool) -> bool:
    """Whether there is something to follow; a task that is queued may yet get its first run."""
    try:
        found = _find(config, ledger, given, stderr=stderr)
    except NotFound:
        if not _is_queued(ledger, given):
            raise
        return False
    # A process that was seen has its file: where that is not here, waiting would bring nothing.
    away = found.host and found.run.status is not RunStatus.STARTING
    return bool(away) or not found.live or os.path.lexists(found.path)


def _is_queued(ledger: Ledger, given: str) -> bool:
    try:
        return ledger.task(ledger.find("tsk", given)).status is TaskStatus.QUEUED
    except Refused:
        return False


@contextmanager
def _opened(log: Log, *, stderr: bool) -> Iterator[BinaryIO]:
    """The file, if it is one: whatever an agent may have put in its place is not waited for."""
    try:
        handle = os.open(log.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _absence(log, error, stderr=stderr) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotFound(f"{log.path} is not a file any more", path=log.path)
    with open(handle, "rb") as file:
        yield file


def _absence(log: Log, error: OSError, *, stderr: bool) -> NotFound:
    """Why there is nothing to read, with the command that leads to what there is."""
    run, beside = log.run.id, os.path.join(os.path.dirname(log.path), "stdout.log")
    if log.live and log.host:
        way, here = f"truegreen log {run} --follow", f"truegreen events {log.task} --follow"
        why = f"{run} is under way on {log.host}, which keeps what it writes: {way}, there"
        message = f"{why}; {here} tells from here what is recorded of it"
        return NotFound(message, path=log.path, allowed=(f"{way}, on {log.host}", here))
    if log.live:
        why, way = f"{run} has written nothing yet; wait for it", f"truegreen log {run} --follow"
    elif stderr and os.path.exists(beside):
        why = f"{run} has no {_STDERR}: its standard error is part of its output"
        way = f"truegreen log {run}"
    elif log.host:
        why = f"{run} was carried out on {log.host}, which keeps what it wrote"
        way = f"truegreen log {run}, on {log.host}"
    else:
        why = f"the output of {run} is not to be had at {log.path} ({error.strerror})"
        way = f"truegreen show {log.task}"
    return NotFound(f"{why}: {way}", path=log.path, allowed=(way,))


def _tail_offset(file: BinaryIO, lines: int) -> int:
    """Where the last lines begin."""
    size = position = file.seek(0, os.SEEK_END)
    left = lines
    while position > 0 and left > 0:
        step = min(_CHUNK, position)
        position -= step
        file.seek(position)
        block = file.read(step)
        # A newline at the very end ends the last line and begins none.
        end = step - 1 if position + step == size and block.endswith(b"\n") else step
        while left and (end := block.rfind(b"\n", 0, end)) >= 0:
            left -= 1
            if not left:
                return position + end + 1
    return 0 if lines else size


# --- what is shown


def _once(frame: Frame, log: Log, file: BinaryIO) -> None:
    if frame.json:
        write_json(_document(log, file))
        return
    sink = _sink(frame, log)
    _copy(file, sink)
    sink.close()


def _document(log: Log, file: BinaryIO) -> dict[str, Any]:
    size = os.fstat(file.fileno()).st_size
    return {
        "run": log.run.id,
        "path": log.path,
        "size": log.told.get("size", size),
        "truncated": log.told.get("truncated", False),
        "missing": log.told.get("missing", 0),
        "sha256": log.told.get("sha256"),
        "text": file.read().decode("utf-8", "replace"),
    }


def _follow(frame: Frame, ledger: Ledger, lookout: Lookout, log: Log, file: BinaryIO) -> None:
    sink = _sink(frame, log)

    def shown() -> bool:
        # Asked before the rest is read: what came before the end is in the file by then.
        ended = ledger.run(log.run.id)[0].exit_reason is not None
        _copy(file, sink)
        flush()
        return ended

    lookout.until(shown)
    sink.close()


def _copy(file: BinaryIO, sink: Sink) -> None:
    while chunk := file.read(_CHUNK):
        sink.feed(chunk)


def _sink(frame: Frame, log: Log) -> Sink:
    if frame.json:
        return Lines(lambda text: write_json({"run": log.run.id, "text": text}))
    if sys.stdout.isatty():
        return Lines(lambda text: write_text(f"{clean(text.expandtabs())}\n"))
    return Bytes()


class Bytes:
    """Passes everything on as it is."""

    def feed(self, chunk: bytes) -> None:
        """The next piece."""
        write_bytes(chunk)

    def close(self) -> None:
        """Nothing was held back."""


class Lines:
    """Passes on whole lines as text; one that is too long goes on as several."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """The next piece."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            self._tell(line)
        while len(self._rest) >= _LONGEST_LINE:
            self._tell(self._rest[:_LONGEST_LINE])
            self._rest = self._rest[_LONGEST_LINE:]

    def close(self) -> None:
        """The last line may have no end."""
        if self._rest:
            self._tell(self._rest)

    def _tell(self, line: bytes) -> None:
        self._show(line.removesuffix(b"\r").decode("utf-8", "replace"))


def _remark(log: Log) -> None:
    """What the output itself does not say, beside it."""
    if log.told.get("truncated"):
        missing = log.told.get("missing")
        cut = f"{missing:,} bytes in the middle are missing; " if missing else "cut; "
        click.echo(f"truegreen: {cut}{log.told['size']:,} bytes in all", err=True)
    elif os.path.getsize(log.path) == 0:
        click.echo(f"truegreen: {log.run.id} wrote nothing", err=True)


COMMANDS = {"log": log}
