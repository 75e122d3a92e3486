"""Programs that are not pinned: found on the PATH, and known again by what they were.

Only what an agent could change is looked at. The time of its last change tells most; where that
differs, the contents decide.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from truegreen.work.jail import find_program
from truegreen.work.toolchain.python import interpreter_of
from truegreen.work.toolchain.reach import within_reach
from truegreen.work.toolchain.scanning import hash_of

_DEPTH = 3
_GONE = "gone"


def chain_of(program: str, path: str) -> list[str]:
    """A program and what runs it, if it is a script: paths, as far as they can be found."""
    found = program if os.path.isabs(program) else find_program(program, path)
    chain: list[str] = []
    while found and os.path.isfile(found) and found not in chain and len(chain) < _DEPTH:
        chain.append(found)
        found = next(iter(interpreter_of(found, path)), "")
    return chain


def signatures(programs: list[str]) -> dict[str, str]:
    """What programs are known by, of those that an agent could change."""
    return {program: _signature(program) for program in programs if within_reach(program)}


def same(program: str, signature: str) -> bool:
    """Whether a program is still what it was."""
    looks, _, contents = signature.partition(" ")
    return _looks(program) == looks or _contents(program) == contents


def contents_of(signature: str) -> str:
    """The part of a signature that is the same wherever the program lies."""
    return signature.partition(" ")[2]


def _signature(program: str) -> str:
    return f"{_looks(program)} {_contents(program)}"


def _looks(program: str) -> str:
    try:
        seen = os.stat(program)
    except OSError:
        return _GONE
    return f"{seen.st_ino}:{seen.st_size}:{seen.st_mtime_ns}:{seen.st_ctime_ns}"


def _contents(program: str) -> str:
    try:
        return hash_of(os.path.realpath(program)).hex()
    except OSError:
        return _GONE


def newer(folders: Iterable[str], since: int) -> str:
    """A program on the PATH that an agent could have put there or changed since; empty for none."""
    for folder in dict.fromkeys(map(os.path.realpath, folders)):
        if not within_reach(folder):
            continue
        with contextlib.suppress(OSError), os.scandir(folder) as found:
            for entry in found:
                if entry.stat(follow_symlinks=False).st_ctime_ns > since:
                    return entry.path
    return ""
