"""What a guard is told and how it is called: its code, the command, limits, fences, what is placed.

Values in, words and bytes out. Starting it is the business of `process`.
"""

from __future__ import annotations

import marshal
import os
import resource
import sys
from collections.abc import Sequence
from functools import cache
from types import CodeType, ModuleType

from truegreen.contract.terms import Isolation
from truegreen.errors import Broken
from truegreen.work import become, deadman, jail, landlock, shim
from truegreen.work.launch import Launch
from truegreen.work.lifeline import Lifeline
from truegreen.work.tree import VARIABLE, mark_of

_BOOT = (
    "import marshal,os,sys;f=int(sys.argv[1]);"
    "first,then,told=marshal.loads(os.pread(f,os.fstat(f).st_size,0));"
    "exec(first);exec(then);main(told)"
)
"""The guard's code comes with its orders: compiled once, whatever the jail hides from it."""
_RLIMITS = {
    "memory": resource.RLIMIT_AS,
    "file_bytes": resource.RLIMIT_FSIZE,
    "cpu_s": resource.RLIMIT_CPU,
}


def environment(launch: Launch) -> dict[str, str]:
    """All that the command finds in its environment."""
    return {VARIABLE: launch.tag, **launch.env}


def limits(launch: Launch) -> list[tuple[int, int]]:
    """What the kernel is to hold each process to."""
    named = ((number, getattr(launch.limits, name)) for name, number in _RLIMITS.items())
    return [(number, value) for number, value in named if value]


def bare(given: Sequence[int]) -> list[str]:
    """The command line of a bare interpreter whose code comes with its orders."""
    python = os.path.realpath(sys.executable)
    return [python, "-I", "-S", "-B", "-c", _BOOT, *map(str, given)]


def guard(launch: Launch, isolation: Isolation, given: Sequence[int]) -> list[str]:
    """The command line of the guard, in a jail or on its own."""
    argv = bare(given)
    if isolation is not Isolation.JAIL:
        return argv
    return jail.wrap(
        jail.probe().bwrap or "bwrap",
        launch.jail,
        argv,
        cwd=launch.cwd,
        home=launch.env.get("HOME", ""),
        needs=(os.path.realpath(sys.base_prefix), argv[0]),
    )


def fence(launch: Launch, isolation: Isolation) -> landlock.Fence | None:
    """What the kernel itself can keep a command from where there is no jail."""
    if isolation is not Isolation.REAPER:
        return None
    return landlock.fence(launch.jail, launch.cwd, jail.landlock())


def written(
    launch: Launch,
    isolation: Isolation,
    word: str,
    fenced: landlock.Fence | None,
    lifeline: Lifeline | None = None,
) -> bytes:
    """What the guard is to start; through memory, so that no list of processes shows it."""
    env = {os.fsencode(name): os.fsencode(text) for name, text in environment(launch).items()}
    told = {
        "jailed": isolation is Isolation.JAIL,
        "word": word,
        "mark": mark_of(launch.tag),
        "processes": launch.limits.processes,
        "resident": launch.limits.resident,
        "limits": limits(launch),
        "cwd": os.fsencode(launch.cwd),
        "argv": list(map(os.fsencode, launch.argv)),
        "env": env,
        "fence": fenced.told if fenced else None,
        "placed": jail.seen(launch.jail) if isolation is Isolation.JAIL else [],
        **_bound(lifeline),
    }
    return marshal.dumps((_code_of(become), _code_of(shim), told))


def _bound(lifeline: Lifeline | None) -> dict[str, float]:
    until, clock = (lifeline.until, lifeline.clock) if lifeline else (0.0, 0)
    return {"until": until, "clock": clock}


def keeping(launch: Launch, lifeline: Lifeline) -> bytes:
    """What is told to whoever kills a bare group that nobody feeds."""
    told = {"tag": f"{VARIABLE}={launch.tag}".encode(), **_bound(lifeline)}
    return marshal.dumps((_code_of(become), _code_of(deadman), told))


@cache
def _code_of(module: ModuleType) -> CodeType:
    read = getattr(module.__loader__, "get_code", None)
    code = read(module.__name__) if read else None
    if not isinstance(code, CodeType):
        raise Broken("the guard's own code can't be read")
    return code
