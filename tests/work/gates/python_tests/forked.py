"""Sessions of the pytest gate without the start of an interpreter, for tests of what the gate says.

One process has loaded pytest, as the runner does before the tree is in sight, and has compiled the
patterns that every session needs; every session is a fork of it, which runs the runner, pytest, the
tests and the control as ever. There is no jail: the paths that a jail would show are replaced by
those of the copy, and back in report and output. Tests of the jail, of the start, of limits and of
the network use real sessions (`suites.Jailed`).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from truegreen.contract import Isolation
from truegreen.work import process
from truegreen.work.jail import choose
from truegreen.work.process import Ended, Launch, Output

TICK_S = 0.02
REPORT_BYTES = 1 << 20
Tick = Callable[[], str | None] | None

PROGRAM = """\
import gc, importlib, json, os, signal, socket, sys, tempfile, types
import pytest
from _pytest.config import default_plugins

for name in default_plugins:
    importlib.import_module(f"_pytest.{name}")
orders = socket.socket(fileno=int(sys.argv.pop()))


def rehearse():
    # One session with a failure: what it loads of Python's own, and compiles, every one needs.
    from _pytest.pytester import SysModulesSnapshot, SysPathsSnapshot

    modules = SysModulesSnapshot(lambda name: name.split(".")[0] in sys.stdlib_module_names)
    paths, environ, streams = SysPathsSnapshot(), dict(os.environ), (sys.stdin, sys.stdout)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nothing:
        with open(f"{folder}/test_it.py", "w") as file:
            file.write("def test_it():\\n    assert [1] == [2]\\n")
        sys.stdout = nothing
        words = ["-c", os.devnull, f"--rootdir={folder}", f"--junitxml={folder}/report.xml", folder]
        assert pytest.main([*words, "-o", f"cache_dir={folder}/cache"]) == 1
    sys.stdin, sys.stdout = streams
    os.environ.clear()
    os.environ.update(environ)
    paths.restore()
    modules.restore()


rehearse()
gc.collect()
gc.freeze()


def serve():
    while True:
        message, descriptors, _, _ = socket.recv_fds(orders, 1 << 20, 3)
        if not message:
            return
        if not os.fork():
            orders.close()
            watch(json.loads(message), *descriptors)
        for each in descriptors:
            os.close(each)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def watch(call, given, output, told):
    session = os.fork()
    if not session:
        os.close(told)
        return become(call, given, output)
    os.write(told, b"%d\\n" % session)
    _, status = os.waitpid(session, 0)
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.write(told, b"%d\\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def become(call, given, output):
    try:
        os.setsid()
        for number, descriptor in enumerate((given, output, output)):
            os.dup2(descriptor, number)
        os.close(given)
        os.close(output)
        os.chdir(call["cwd"])
        os.environ.clear()
        os.environ.update(call["env"])
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(call["code"], "<string>", "exec"), main.__dict__)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(1)


serve()
"""


class Loaded:
    """The process that has loaded pytest, as tests see it."""

    def __init__(self, python: str, environ: dict[str, str]) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [python, "-I", "-B", "-c", PROGRAM, str(theirs.fileno())],
                env=environ,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # a stream remembers whether it can seek; pipes can't
                stderr=subprocess.PIPE,
                start_new_session=True,
            )

    def close(self) -> None:
        """No session is asked for any more."""
        self._orders.close()
        self._process.communicate(timeout=10)

    @contextlib.contextmanager
    def session(self, launch: Launch) -> Iterator[int]:
        """A session that has begun; what it returns is the pipe that tells its pid and its end."""
        call = {"cwd": launch.cwd, "env": launch.env, "code": launch.argv[-1]}
        ours, told = os.pipe()
        given = os.memfd_create("spec")
        os.write(given, launch.stdin_bytes)
        os.lseek(given, 0, os.SEEK_SET)
        output = os.open(launch.stdout_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            with self._one_at_a_time:
                body = json.dumps(call).encode()
                socket.send_fds(self._orders, [body], [given, output, told])
            for descriptor in (given, output, told):
                os.close(descriptor)
            yield ours
        finally:
            os.close(ours)


@functools.cache
def loaded(python: str, environ: tuple[tuple[str, str], ...]) -> Loaded:
    """One for each interpreter and what it reads at its start, until the tests are over."""
    made = Loaded(python, dict(environ))
    atexit.register(made.close)
    return made


_real = process.run


@contextlib.contextmanager
def forked_sessions() -> Iterator[None]:
    """Sessions that would start in a jail are forks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "run", run)
        yield


def run(launch: Launch, *, tick: Tick = None) -> Ended:
    """As `process.run`."""
    in_jail = choose(launch.isolation) is Isolation.JAIL
    usual = launch.argv[:-1] == (sys.executable, "-I", "-B", "-c")
    if not (in_jail and usual and launch.stdin_bytes.startswith(b'{"args"')):
        return _real(launch, tick=tick)
    shown = {each.at: each.source for each in launch.jail.placed if each.at != "/dev/shm"}  # noqa: S108
    moved = _moved(launch, shown)
    begun = time.monotonic()
    # The rest of the environment is read by the session.
    at_start = tuple((name, text) for name, text in launch.env.items() if name in ("LANG", "PATH"))
    with loaded(launch.argv[0], at_start).session(moved) as told:
        code, stopped = _heard(told, tick, begun + launch.time_s)
    _shown_again(moved, shown)
    with open(launch.stdout_path, "rb") as file:
        text = file.read()
    return Ended(
        code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        stopped=stopped,
        seconds=time.monotonic() - begun,
        stdout=Output(
            size=len(text),
            stored=len(text),
            sha256=hashlib.sha256(text).hexdigest(),
            head=text,
            tail=text,
        ),
        isolation=Isolation.JAIL,
    )


def _moved(launch: Launch, shown: dict[str, str]) -> Launch:
    """With the paths of the copy in place of those that a jail would show."""

    def moved(text: str) -> str:
        for at, source in shown.items():
            text = text.replace(at, source)
        return text

    return msgspec.structs.replace(
        launch,
        cwd=moved(launch.cwd),
        env={name: moved(text) for name, text in launch.env.items()},
        stdin_bytes=moved(launch.stdin_bytes.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        ),
    )


def _heard(told: int, tick: Tick, until: float) -> tuple[int, str]:
    """How the session ended, and the word that stopped it."""
    with open(told, "rb", buffering=0, closefd=False) as pipe:
        pid = int(pipe.readline())
        word = ""
        while not word and not select.select([told], [], [], TICK_S)[0]:
            word = (tick() if tick else "") or ("time" if time.monotonic() > until else "")
        if word:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return int(pipe.readline()), word


def _shown_again(launch: Launch, shown: dict[str, str]) -> None:
    """Report and output with the paths that a jail would have shown."""
    spec: dict[str, Any] = msgspec.json.decode(launch.stdin_bytes)
    report = next(word for word in spec["args"] if word.startswith("--junitxml="))
    for path in (report.partition("=")[2], launch.stdout_path):
        with contextlib.suppress(FileNotFoundError):
            found = os.lstat(path)
            if not stat.S_ISREG(found.st_mode) or found.st_size > REPORT_BYTES:
                continue
            with open(path, "rb") as file:
                data = file.read()
            for at, source in shown.items():
                data = data.replace(source.encode(), at.encode())
            with open(path, "wb") as file:
                file.write(data)
