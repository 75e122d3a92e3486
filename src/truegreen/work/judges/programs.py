"""Which program a judge is: one of the machine, or one beside truegreen.toml.

Never one from where the agent worked, or from the tree that is judged: an agent would write its own
judge. It looks, and starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct

from truegreen.paths import name_inside
from truegreen.work.jail import find_program
from truegreen.work.judges.bench import Bench


class Found(Struct, frozen=True, kw_only=True):
    """A command as it can be started, or why it can't."""

    words: tuple[str, ...] = ()
    path: str = ""
    trouble: str = ""


def found(command: Sequence[str], bench: Bench) -> Found:
    """The command with its program and files looked up; PATH without what an agent could fill."""
    given = bench.environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(e for e in given if os.path.isabs(e) and not theirs(e, bench))
    at = os.path.realpath(bench.at) if bench.at else ""
    first = _program(command[0], path, at)
    if not first:
        why = f"{command[0]!r} is not on the PATH: install it, or give its full path"
        return Found(trouble=why)
    words = (first, *(_beside(word, at) for word in command[1:]))
    stolen = next((word for word in words if os.path.isabs(word) and theirs(word, bench)), "")
    if stolen:
        why = f"{stolen!r} lies where the agent worked: have the judge elsewhere"
        return Found(trouble=why)
    return Found(words=words, path=path)


def theirs(path: str, bench: Bench) -> bool:
    """Whether an agent could have written what lies at a path."""
    folders = [folder for folder in (bench.place, bench.tree) if folder]
    return any(name_inside(path, folder) for folder in folders)


def _program(name: str, path: str, at: str) -> str:
    if "/" not in name:
        return find_program(name, path) or ""
    return os.path.normpath(os.path.join(at, name)) if at or os.path.isabs(name) else ""


def _beside(word: str, at: str) -> str:
    """A word that names a file beside truegreen.toml is that file, wherever the judge runs."""
    place = os.path.join(at, word)
    relative = at and word and not os.path.isabs(word)
    return os.path.normpath(place) if relative and os.path.isfile(place) else word
