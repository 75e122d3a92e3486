"""The last steps of a guard's child before it is the command: streams, limits, a fence, exec.

Comes to the guard together with its code, into the same bare interpreter; so it imports next to
nothing and nothing of ours. What is fenced and why is for others to say.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any
else:
    import _signal  # `signal` loads enum, which costs a third of the start

RTTIME = 15  # RLIMIT_RTTIME; only real-time schedulers look at it
LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_NO_NEW_PRIVILEGES, _DROP_CAPABILITY, _PATH_BENEATH = 38, 24, 1
_KIND, _FOLDER = 0o170000, 0o040000  # `stat` has them, and costs a millisecond
_EACCES, _ELIBACC, _EISDIR, _ENOENT = 13, 79, 21, 2
FILE_RIGHTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
"""The rights of Landlock that a file can have; the others are for folders."""


class Spec:
    """What to start, as the supervisor wrote it."""

    jailed: bool
    word: str
    """Only a line that begins with it is the guard's; others write to the same pipe."""
    mark: int
    processes: int
    resident: int
    limits: list[tuple[int, int]]
    cwd: bytes
    argv: list[bytes]
    env: dict[bytes, bytes]
    fence: tuple[int, int, int, list[tuple[bytes, int, bool]], list[int]] | None
    """Rights that Landlock takes (files, network, scope), what is left to which paths, and the
    capabilities that go."""
    placed: list[tuple[bytes, int, int, bool]]
    until: float
    """When all of it is to be dead, unless a later moment is told; 0 for never."""
    clock: int

    def __init__(self, told: dict[str, Any]) -> None:
        """`told` is the fields by name."""
        self.__dict__.update(told)


def call(name: str, *words: Any) -> int:
    """A function of the C library; numbers go as int, bytes as an address."""
    import _ctypes  # noqa: PLC0415 - ctypes itself costs three times as much to load

    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # what is loaded already
    answer: int = _ctypes.call_function(_ctypes.dlsym(library, name), words)
    return answer


def become(spec: Spec, streams: tuple[int, int, int], tells: int) -> None:
    """Turn the forked child into the command; or tell at which step it failed."""
    step = "exec"
    try:
        os.setpgid(0, 0)
        for stream, number in zip(streams, (0, 1, 2), strict=True):
            os.dup2(stream, number)
        for number in set(range(1, 32)) - {_signal.SIGKILL, _signal.SIGSTOP}:
            _signal.signal(number, _signal.SIG_DFL)
        step = "cwd"
        os.chdir(spec.cwd)
        step = "limits"
        _limit(spec)
        step = "fence"
        _fence(spec)
        step = "exec"
        _execute(spec.argv, spec.env)
    except OSError as error:
        os.write(tells, f"{step} {error.errno}".encode())
    os._exit(127)


def _limit(spec: Spec) -> None:
    import resource  # noqa: PLC0415 - only the child needs it

    for number, value in spec.limits:
        _, hard = resource.getrlimit(number)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (most, most))
    if spec.mark:
        _, hard = resource.getrlimit(RTTIME)
        if hard == resource.RLIM_INFINITY or hard >= spec.mark:
            # Both: what is only soft, anybody puts back.
            resource.setrlimit(RTTIME, (spec.mark, spec.mark))


def _fence(spec: Spec) -> None:
    """Take rights from ourselves and all who come after us; whatever goes wrong is an error."""
    if not spec.fence:
        return
    files, network, scope, rules, lost = spec.fence
    rights = b"".join(number.to_bytes(8, sys.byteorder) for number in (files, network, scope))
    ruleset = call("syscall", LANDLOCK_CREATE, rights, len(rights), 0)
    if ruleset < 0:
        raise OSError(_EACCES, "")
    for path, access, must in rules:
        _leave(ruleset, path, access & files, must=must)
    for number in lost:
        call("prctl", _DROP_CAPABILITY, number, 0, 0, 0)  # who may not drop one does not have it
    nothing_gained = call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if nothing_gained or call("syscall", _LANDLOCK_RESTRICT, ruleset, 0):
        raise OSError(_EACCES, "")
    os.close(ruleset)


def _leave(ruleset: int, path: bytes, access: int, *, must: bool) -> None:
    """Leave rights on a path and all below. What is not there needs none, unless it must be."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        if must:
            raise
        return
    try:
        if os.fstat(handle).st_mode & _KIND != _FOLDER:
            access &= FILE_RIGHTS
        rule = access.to_bytes(8, sys.byteorder) + handle.to_bytes(4, sys.byteorder)
        if access and call("syscall", _LANDLOCK_ADD, ruleset, _PATH_BENEATH, rule, 0):
            raise OSError(_EACCES, "")
    finally:
        os.close(handle)


def _execute(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """As execvpe(3) does, but a file that is no program is never handed to a shell."""
    name = argv[0]
    if b"/" in name:
        places = [name]
    else:
        path = env.get(b"PATH", b"/usr/local/bin:/usr/bin:/bin")
        places = [(folder or b".") + b"/" + name for folder in path.split(b":")]
    worst = OSError(_ENOENT, "")
    for place in places:
        try:
            os.execve(place, argv, env)  # noqa: S606 - that is what it is for
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(place):
                worst = OSError(_ELIBACC, "")  # it is there, what should read it is not
        except PermissionError as error:
            worst = OSError(_EISDIR, "") if os.path.isdir(place) else error
        except OSError as error:
            worst = error
            break
    raise worst
