"""Run a child tree to its end and say how it ended: the one place that starts programs.

How it ended is a value: a crash, a cap, a command that is not there. It knows neither agents nor
gates, and no store. The environment of a child is built by the caller, never inherited.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import select
import subprocess
import time
from collections.abc import Callable, Sequence

from msgspec import structs

from truegreen.contract.terms import Isolation
from truegreen.errors import Unavailable, unwritable
from truegreen.tuples import NamedTuple
from truegreen.work import jail, orders, shim
from truegreen.work.child import Child, Group, Guarded, Keeper, handle_of
from truegreen.work.launch import LOG_BYTES, Ended, Launch, Limits, launch_error
from truegreen.work.lifeline import LAPSED, is_late, lifeline_of
from truegreen.work.lines import LINE_BYTES, by_line
from truegreen.work.machine import machine_memory
from truegreen.work.pump import Output, Pump
from truegreen.work.redact import Redactor
from truegreen.work.tree import VARIABLE, Identity, Sweep, Swept, me, sweep
from truegreen.work.watch import HOLD, Watch

__all__ = [
    "LINE_BYTES",
    "LOG_BYTES",
    "Done",
    "Ended",
    "Identity",
    "Launch",
    "Limits",
    "Output",
    "Sweep",
    "Swept",
    "launch_error",
    "machine_memory",
    "me",
    "run",
    "spawn_detached",
    "sweep",
    "tool",
]

PIPE_BYTES = 1 << 20
TOOL_BYTES = 64 * 1024 * 1024
LINGER_MS = 100
"""How long a tool's pipe may stay open and silent behind it before we take its answer as whole."""
_SIGKILL = 9


def run(
    launch: Launch,
    *,
    line: Callable[[bytes], object] | None = None,
    block: Callable[[bytes], object] | None = None,
    tick: Callable[[], str | None] | None = None,
    tick_s: float = 0.2,
    started: Callable[[Identity], None] | None = None,
    idle: Callable[[float], None] | None = None,
) -> Ended:
    """Start a command, watch it, end all of it, and say how it went.

    `line` gets every line of the output, redacted and without its end; `block` many at once, with
    the ends between them. `tick` is called before the start and then about every `tick_s`; a word
    that it returns stops the tree: TERM, grace, KILL, and at once if it begins with «!»; before the
    start it keeps the command from being started. `started` gets the outermost process once the
    command runs, `idle`, before each tick, for how long the tree neither wrote nor computed. An
    exception from any of them kills the tree and goes on.
    """
    isolation, begun = jail.choose(launch.isolation), time.monotonic()
    problem = _problem(launch) or _unplaceable(launch, isolation)
    if problem:
        return Ended(launch_error=problem, launch_errno="EINVAL", isolation=isolation)
    if is_late(launch.tag):
        return Ended(signal=_SIGKILL, stopped=LAPSED, isolation=isolation)
    word = tick() if tick else None
    if word and word != HOLD:
        return Ended(signal=_SIGKILL, stopped=word.removeprefix("!"), isolation=isolation)
    if not launch.tag:
        launch = structs.replace(launch, tag=os.urandom(8).hex())
    with contextlib.ExitStack() as closing:
        pumps = _pumps(launch, by_line(line) if line else block, closing)
        kills = _oom_kills()
        streams: dict[int, Pump] = {}
        closing.callback(_close, streams)
        try:
            child = _start(launch, isolation, pumps, streams)
        except OSError as error:
            step = "cwd" if error.filename == launch.cwd != launch.argv[0] else "exec"
            name, sentence = launch_error(step, error.errno or 0, launch)
            return Ended(launch_error=sentence, launch_errno=name, isolation=isolation)
        closing.callback(child.close)
        watch = Watch(
            child,
            launch,
            streams,
            tick=tick,
            tick_s=tick_s,
            idle=idle,
            started=started,
            begun=begun,
        )
        confirmed = watch.follow()
        outputs = [pump.finish() for pump in pumps]
        ended = _account(child, launch, watch.stopped)
        return structs.replace(
            ended,
            oom=ended.signal == _SIGKILL and not ended.stopped and _ran_out(kills),
            disk_full=watch.disk_full or any(pump.trouble for pump in pumps),
            confirmed=confirmed,
            seconds=time.monotonic() - begun,
            stdout=outputs[0],
            stderr=outputs[1] if len(outputs) > 1 else Output(),
        )


def _problem(launch: Launch) -> str:
    """What no kernel would take."""
    words = [*launch.argv, launch.cwd, *launch.env, *launch.env.values()]
    if not launch.argv or not launch.argv[0]:
        return "there is no command: name a program"
    if any("\0" in word for word in words):
        return "a word of the command or of its environment has a zero byte: leave it out"
    if any("=" in name or not name for name in launch.env):
        return "the name of a variable is empty or has a «=» in it: mend the environment"
    return ""


def _unplaceable(launch: Launch, isolation: Isolation) -> str:
    """Why a command would not find things where they are to be placed."""
    astray = jail.led_astray(launch.jail, launch.cwd)
    if astray and isolation is not Isolation.NONE:
        return astray
    if isolation is Isolation.JAIL:
        return jail.misplaced(launch.jail, launch.cwd, launch.env.get("HOME", ""))
    # Read-only ones shield; a writable one is the room itself, and another would be worked in.
    room = next((each for each in launch.jail.placed if each.writable), None)
    return f"{room.at!r} can be shown only in a jail: ask for one" if room else ""


def _pumps(
    launch: Launch, block: Callable[[bytes], object] | None, closing: contextlib.ExitStack
) -> list[Pump]:
    """One for the output, and one for errors if they go their own way."""
    pumps: list[Pump] = []
    paths = [launch.stdout_path, launch.stderr_path] if launch.stderr_path else [launch.stdout_path]
    for path in paths:
        taker = block if not pumps else None
        try:
            pump = Pump(
                path, launch.log_bytes, Redactor(launch.secrets), taker, append=launch.append
            )
        except OSError as error:
            message = f"the log {path!r} can't be written: {error.strerror}"
            raise unwritable(message, error) from error
        closing.callback(pump.close)
        pumps.append(pump)
    return pumps


def _close(streams: dict[int, Pump]) -> None:
    for handle in streams:
        os.close(handle)


def _oom_kills() -> int | None:
    """How often this machine ran out of memory and killed for it; None where it can't be read."""
    try:
        found = shim.read_all("/proc/vmstat").partition(b"\noom_kill ")[2]
    except OSError:
        return None
    return int(found.split()[0]) if found else None


def _ran_out(before: int | None) -> bool:
    now = _oom_kills()
    return before is not None and now is not None and now > before


def _account(child: Child, launch: Launch, stopped: str) -> Ended:
    """The guard's account as a value. Whatever is not known to be well is not well."""
    account = child.account
    if account.failed:
        name, sentence = launch_error(*account.failed, launch)
        return Ended(launch_error=sentence, launch_errno=name, isolation=child.isolation)
    if account.astray:
        sentence = f"{account.astray!r} shows something else than what was laid there: try again"
        return Ended(launch_error=sentence, isolation=child.isolation)
    if not account.pid and not stopped and not account.over and not account.guard_killed:
        what = "the jail can't be set up" if child.isolation is Isolation.JAIL else "the guard died"
        said = account.trouble or "it said nothing"
        sentence = f"{what} ({said}): mend that, or ask for another isolation"
        return Ended(launch_error=sentence, isolation=child.isolation)
    return Ended(
        code=account.code,
        signal=account.signal if account.ended else _SIGKILL,
        stopped=stopped or account.over,
        swept=tuple(account.swept),
        survivors=tuple(account.left),
        cpu_seconds=account.cpu,
        isolation=child.isolation,
        fences=child.fences,
    )


# -- starting --------------------------------------------------------------------------------------


def _start(
    launch: Launch, isolation: Isolation, pumps: list[Pump], streams: dict[int, Pump]
) -> Child:
    """Start the child with a pipe per pump; OSError when not even its guard starts."""
    with contextlib.ExitStack() as closing:
        outs = []
        for pump in pumps:
            reads, writes = os.pipe()
            streams[reads] = pump
            closing.callback(os.close, writes)
            os.set_blocking(reads, False)
            with contextlib.suppress(OSError):  # a bigger pipe is only faster
                fcntl.fcntl(reads, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            outs.append(writes)
        stdin = _stdin(launch.stdin_bytes)
        closing.callback(os.close, stdin)
        stdio = (stdin, outs[0], outs[-1])
        if isolation is Isolation.NONE:
            return _start_bare(launch, stdio)
        return _start_guarded(launch, isolation, stdio)


def _stdin(data: bytes) -> int:
    return _in_memory("stdin", data) if data else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _in_memory(name: str, data: bytes) -> int:
    """A file that nobody else can find, for a child to read at its own pace."""
    handle = os.memfd_create(name, os.MFD_CLOEXEC)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _start_bare(launch: Launch, stdio: tuple[int, int, int]) -> Group:
    keeper = _start_keeper(launch)
    try:
        return _start_group(launch, stdio, keeper)
    except OSError:
        if keeper:
            keeper.close()
        raise


def _start_group(launch: Launch, stdio: tuple[int, int, int], keeper: Keeper | None) -> Group:
    process = subprocess.Popen(  # noqa: S603 - the command is the caller's
        launch.argv,
        cwd=launch.cwd,
        env=orders.environment(launch),
        stdin=stdio[0],
        stdout=stdio[1],
        stderr=stdio[2],
        start_new_session=True,
    )
    pid = _adopted(process)
    for number, value in orders.limits(launch):
        with contextlib.suppress(ProcessLookupError):  # it ended before it could be limited
            resource.prlimit(pid, number, (value, value))
    try:
        if keeper:
            keeper.mind(pid)
        return Group(pid, launch.tag, keeper)
    except OSError:
        _bury(pid)
        raise


def _start_keeper(launch: Launch) -> Keeper | None:
    """Whoever kills a bare group when we are not there to do it; there before the group is."""
    bound = lifeline_of(launch.tag)
    if bound is None:
        return None
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        told = _in_memory("keeper", orders.keeping(launch, bound))
        theirs.callback(os.close, told)
        heeds, commands = os.pipe()
        theirs.callback(os.close, heeds)
        ours.callback(os.close, commands)
        given = (told, heeds)
        process = subprocess.Popen(  # noqa: S603 - our own
            orders.bare(given),
            cwd="/",
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=set(given),
            start_new_session=True,
        )
        ours.pop_all()
        return Keeper(_adopted(process), commands, bound)


def _adopted(process: subprocess.Popen[bytes]) -> int:
    """From here on we wait for the pid ourselves: the object takes a lost status for a 0."""
    process.returncode = 0
    return process.pid


def _start_guarded(launch: Launch, isolation: Isolation, stdio: tuple[int, int, int]) -> Guarded:
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        word, fence = os.urandom(8).hex(), orders.fence(launch, isolation)
        bound = lifeline_of(launch.tag)
        spec = _in_memory("spec", orders.written(launch, isolation, word, fence, bound))
        theirs.callback(os.close, spec)
        heeds, commands = os.pipe()
        theirs.callback(os.close, heeds)
        ours.callback(os.close, commands)
        status, tells = os.pipe()
        theirs.callback(os.close, tells)
        ours.callback(os.close, status)
        given = (spec, heeds, tells, *stdio)
        process = subprocess.Popen(  # noqa: S603 - our own guard
            orders.guard(launch, isolation, given),
            cwd="/",
            env={VARIABLE: launch.tag},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=tells,
            pass_fds=set(given),
            start_new_session=True,
        )
        pid = _adopted(process)
        try:
            child = Guarded(pid, commands, status, isolation, launch.tag, word)
        except OSError:
            ours.close()  # for the guard that is the order to end all
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            raise
        ours.pop_all()
        child.fences = fence.words if fence else ()
        if bound:
            child.hang(bound)
        return child


# -- our own programs ------------------------------------------------------------------------------


class Done(NamedTuple):
    """What a tool answered. It has no code when it was killed for a bound."""

    code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    truncated: bool = False


def tool(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 60,
    limit: int = TOOL_BYTES,
) -> Done:
    """Run a program that we trust, such as git, within bounds; its group dies with it.

    Unavailable says that it can't be started. Without `env` it has our own environment.
    """
    with contextlib.ExitStack() as closing:
        process = _start_tool(argv, cwd, env, stdin)
        pid = _adopted(process)
        closing.callback(_bury, pid)
        outs = [stream for stream in (process.stdout, process.stderr) if stream]
        for stream in outs:
            closing.enter_context(stream)
        said = {stream.fileno(): bytearray() for stream in outs}
        late = _listen(pid, said, time.monotonic() + timeout, limit)
        closing.pop_all()
        for stream in outs:
            stream.close()
        status = _bury(pid)
    size = sum(map(len, said.values()))
    out, err = (bytes(text[:limit]) for text in said.values())
    whole = not late and size <= limit
    return Done(status if whole else None, out, err, late, size > limit)


def _start_tool(
    argv: Sequence[str], cwd: str | None, env: dict[str, str] | None, stdin: bytes
) -> subprocess.Popen[bytes]:
    source = _stdin(stdin)
    try:
        return subprocess.Popen(  # noqa: S603 - trusted by the caller
            argv,
            cwd=cwd,
            env=env,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        about = Launch(argv=tuple(argv), cwd=cwd or "", env=dict(env or os.environ))
        step = "cwd" if cwd and error.filename == cwd else "exec"
        raise Unavailable(launch_error(step, error.errno or 0, about)[1]) from error
    finally:
        os.close(source)


def _listen(pid: int, said: dict[int, bytearray], deadline: float, limit: int) -> bool:
    """Read until the process has ended and its pipes are silent; True when it took too long."""
    pidfd = handle_of(pid)
    try:
        poller = select.poll()
        for handle in (*said, pidfd):
            poller.register(handle, select.POLLIN)
        open_ones = {*said, pidfd}
        while open_ones and sum(map(len, said.values())) <= limit:
            left = max(0.0, deadline - time.monotonic()) * 1000
            ready = poller.poll(left if pidfd in open_ones else min(left, LINGER_MS))
            if not ready:
                return pidfd in open_ones
            for handle, _ in ready:
                data = os.read(handle, PIPE_BYTES) if handle in said else b""
                if data:
                    said[handle] += data
                else:
                    poller.unregister(handle)
                    open_ones.discard(handle)
        return False
    finally:
        os.close(pidfd)


def _bury(pid: int) -> int | None:
    """Kill what is left of a group and take its leader's status: negative for a signal."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, _SIGKILL)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return None  # somebody else took it: not known


_detached: list[int] = []


def spawn_detached(argv: Sequence[str], env: dict[str, str], cwd: str, log: str) -> Identity:
    """Start a program of ours in its own session, to live on after us; Unavailable if it can't."""
    _detached[:] = [pid for pid in _detached if not _ended_already(pid)]
    about = Launch(argv=tuple(argv), cwd=cwd, env=env)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        output = os.open(log, flags, 0o600)
    except OSError as error:
        raise unwritable(f"the log {log!r} can't be written: {error.strerror}", error) from error
    try:
        process = subprocess.Popen(  # noqa: S603 - one of our own
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    except OSError as error:
        step = "cwd" if error.filename == cwd else "exec"
        raise Unavailable(launch_error(step, error.errno or 0, about)[1]) from error
    finally:
        os.close(output)
    pid = _adopted(process)
    _detached.append(pid)
    identity = Identity.of(pid)
    if identity is None:
        raise Unavailable(f"{argv[0]!r} ended at once: {log!r} may say why")
    return identity


def _ended_already(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
