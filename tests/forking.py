"""The command without its start: one process has loaded it, and every call is a fork of that one.

The interpreter and its imports are most of what a short command costs, and the same each time. A
fork has descriptors, surroundings and an end of its own, like any process. Where an interpreter
would look at other settings when it starts, it is started.

Run as a program this module is the process that is forked. It serves until its socket closes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec

from truegreen.contract import ConfigFile
from truegreen.contract.reading import convert

ROOT = Path(__file__).parents[1]
SCRIPT = Path(sys.executable).with_name("truegreen")
COMMANDS = "truegreen.faces.cli"
LOADED = ("truegreen.__main__", "truegreen.record.sqlite", COMMANDS)
"""What nearly every command needs; the rest is imported by the command that uses it, as ever."""
AT_THE_START = ("PYTHON", "LC_", "LANG", "LD_")
"""Settings that are read when an interpreter starts, and never again."""
HEAD = 8


class Call(NamedTuple):
    """What to do, in bytes, as the system knows it."""

    words: list[bytes]
    environ: list[tuple[bytes, bytes]]
    folder: bytes
    anew: bool


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """What of an environment a fork could not take over."""
    return {name: text for name, text in environ.items() if name.startswith(AT_THE_START)}


class Forge:
    """The process that is forked, as tests see it."""

    def __init__(self, program: str = __name__, environ: Mapping[str, str] = os.environ) -> None:
        self._ours, theirs = socket.socketpair()
        self._one_at_a_time = threading.Lock()
        self._born_with = settings(environ)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", program, str(theirs.fileno())],
                env=environ,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # a stream remembers whether it can seek; pipes can't
                stderr=subprocess.PIPE,
                cwd=ROOT,
            )

    def run(
        self,
        words: Sequence[str | bytes | Path],
        environ: Mapping[str, str],
        folder: Path,
        seconds: float,
        terminal: tuple[int, int] | None = None,
        script: Path = SCRIPT,
    ) -> subprocess.CompletedProcess[bytes]:
        """The command to its end: without input, or on a terminal, given as our side and its.

        That of another environment is started, not forked.
        """
        command = [script, *words]
        call = Call(
            [os.fsencode(word) for word in command],
            [(os.fsencode(name), os.fsencode(text)) for name, text in environ.items()],
            os.fsencode(folder),
            script != SCRIPT or settings(environ) != self._born_with,
        )
        with _pipes(terminal) as (ours, theirs):
            self._send(msgspec.msgpack.encode(call), theirs)
            _close(theirs)
            pid = _line(ours[-1])  # its time begins when it does, however long that takes here
            out, err, status = _heard(ours, time.monotonic() + seconds)
        if not status:
            os.kill(int(pid), signal.SIGKILL)
            raise subprocess.TimeoutExpired(command, seconds, out, err)
        return subprocess.CompletedProcess(command, int(status), out, err)

    def start(
        self, words: Sequence[str | bytes | Path], environ: Mapping[str, str], folder: Path
    ) -> Started:
        """The command without input, beside the test: what `subprocess.Popen` gives with pipes."""
        command = [SCRIPT, *words]
        call = Call(
            [os.fsencode(word) for word in command],
            [(os.fsencode(name), os.fsencode(text)) for name, text in environ.items()],
            os.fsencode(folder),
            settings(environ) != self._born_with,
        )
        with _pipes(None) as (ours, theirs):
            self._send(msgspec.msgpack.encode(call), theirs)
            _close(theirs)
            pid = int(_line(ours[-1]))
            started = Started(command, pid, *ours)
            ours.clear()
        return started

    def _send(self, body: bytes, descriptors: list[int]) -> None:
        with self._one_at_a_time:
            socket.send_fds(self._ours, [len(body).to_bytes(HEAD)], descriptors)
            self._ours.sendall(body)

    def close(self) -> None:
        """Nobody calls any more."""
        self._ours.close()
        self._process.communicate(timeout=10)


class Started(subprocess.Popen[bytes]):
    """A fork that runs. Its parent is the process that is forked, and says how it ended."""

    def __init__(self, args: list[str | bytes | Path], pid: int, out: int, err: int, end: int):
        self.args = args
        self.pid = pid
        self.returncode: int | None = None
        self.stdin = None
        self.stdout = open(out, "rb")  # noqa: SIM115 - closed by `communicate` or at the end
        self.stderr = open(err, "rb")  # noqa: SIM115 - as above
        self._end = open(end, "rb", buffering=0)  # noqa: SIM115 - as above
        self._child_created = True
        self._communication_started = False
        self._input = None
        self._waitpid_lock = threading.Lock()
        self.text_mode = self.encoding = self.errors = None
        self.universal_newlines = False

    def poll(self) -> int | None:
        """How it ended, if it did."""
        return self._internal_poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        if self.returncode is None:
            ready, _, _ = select.select([self._end], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self._ended()
        assert self.returncode is not None
        return self.returncode

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        with self._waitpid_lock:
            if self.returncode is None and select.select([self._end], [], [], 0)[0]:
                self._ended()
        return self.returncode

    def _ended(self) -> None:
        self.returncode = int(_line(self._end.fileno()))
        self._end.close()


@contextlib.contextmanager
def _pipes(terminal: tuple[int, int] | None) -> Iterator[tuple[list[int], list[int]]]:
    """What to read (output, errors, what became of it), and the other ends with an input."""
    pairs = [terminal or os.pipe(), os.pipe(), os.pipe()]
    ours, theirs = [list(side) for side in zip(*pairs, strict=True)]
    theirs.insert(0, os.dup(theirs[0]) if terminal else os.open(os.devnull, os.O_RDONLY))
    try:
        yield ours, theirs
    finally:
        _close(theirs)
        _close(ours)


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


def _line(pipe: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(pipe, 1)
        assert part, "the process that is forked is gone"
        line += part
    return line


def _heard(pipes: list[int], until: float) -> list[bytes]:
    """What came until all were closed, or until the time was up."""
    heard = {pipe: bytearray() for pipe in pipes}
    with selectors.DefaultSelector() as waiting:
        for pipe in pipes:
            waiting.register(pipe, selectors.EVENT_READ)
        while waiting.get_map() and (left := until - time.monotonic()) > 0:
            for key, _ in waiting.select(left):
                part = b""
                with contextlib.suppress(OSError):  # EIO: nobody holds the terminal any more
                    part = os.read(key.fd, 1 << 16)
                heard[key.fd] += part
                if not part:
                    waiting.unregister(key.fd)
    return [bytes(heard[pipe]) for pipe in pipes]


# --- the process that is forked


def prepare() -> None:
    """Load every command, and let each type of the settings be understood once for all."""
    for module in LOADED:
        import_module(module)
    if find_spec("psycopg"):  # an extra; every command on PostgreSQL would load it anew, in 140 ms
        import_module("truegreen.record.postgres")
    for command in pkgutil.iter_modules(import_module(COMMANDS).__path__, f"{COMMANDS}."):
        import_module(command.name)
    convert({}, ConfigFile, "")
    gc.freeze()  # what all forks share is not looked through, and so not copied, by any


def serve(orders: socket.socket) -> None:
    """Fork for every call, and say how each command ended."""
    prepare()
    running: dict[int, tuple[int, int]] = {}  # by its handle: whom to tell, and the process
    with selectors.DefaultSelector() as waiting:
        waiting.register(orders, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fd in running:
                    waiting.unregister(key.fd)
                    bury(key.fd, *running.pop(key.fd))
                    continue
                head, descriptors, _, _ = socket.recv_fds(orders, HEAD, 4)
                if not head:
                    return
                body = orders.recv(int.from_bytes(head), socket.MSG_WAITALL)
                pid = os.fork()
                if not pid:
                    waiting.close()
                    orders.close()
                    _close(
                        [each for handle, (told, _) in running.items() for each in (handle, told)]
                    )
                    os.close(descriptors.pop())
                    become(msgspec.msgpack.decode(body, type=Call), descriptors)
                told, handle = descriptors.pop(), os.pidfd_open(pid)
                _close(descriptors)
                os.write(told, b"%d\n" % pid)
                running[handle] = told, pid
                waiting.register(handle, selectors.EVENT_READ)


def bury(handle: int, told: int, pid: int) -> None:
    """Say how a command ended."""
    _, status = os.waitpid(pid, 0)
    os.close(handle)
    with contextlib.suppress(BrokenPipeError):  # whoever called has given up
        os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
    os.close(told)


def become(call: Call, descriptors: list[int]) -> None:
    """Be the command; what it does not catch ends it, as it would end an interpreter."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    _close(descriptors)
    try:
        os.chdir(call.folder)
        if call.anew:
            os.execve(call.words[0], call.words, dict(call.environ))  # noqa: S606 - the script
        os.environ.clear()
        os.environ.update({os.fsdecode(name): os.fsdecode(text) for name, text in call.environ})
        time.tzset()
        sys.argv = [os.fsdecode(word) for word in call.words]
        sys.path.pop(0)
        sys.modules["truegreen.__main__"].main()
    except BaseException:  # noqa: BLE001 - nothing may go back to the loop
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as orders:
        serve(orders)
