"""Marks of those who must not act any more: an empty file for each of their names.

A door that can afford nothing else looks for one with a single `stat`. The record is what is true;
marks are put back from it, and a mark that is missing opens no other door.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from os import path as paths

from truegreen.doors.event import marked
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.tripwires import Fenced

FOLDER = "fenced"


def folder_of(state_dir: str) -> str:
    """Where the marks are."""
    return paths.join(state_dir, FOLDER)


def make_folder(state_dir: str) -> str:
    """The folder of the marks, there in any case; all links resolved."""
    os.makedirs(folder_of(state_dir), mode=0o700, exist_ok=True)
    return paths.realpath(folder_of(state_dir))


def is_fenced(state_dir: str, name: str) -> bool:
    """Whether a session, agent or run of that name is marked."""
    return bool(name) and paths.lexists(paths.join(folder_of(state_dir), _mark(name)))


def write(state_dir: str, fenced: Fenced) -> int:
    """Mark all these names; says how many were not marked yet."""
    return _write(folder_of(state_dir), _marks(fenced))


def missing(ledger: Ledger, state_dir: str, since: int = 0) -> list[str]:
    """The marks that should be there and are not."""
    folder = folder_of(state_dir)
    there = set(os.listdir(folder)) if paths.isdir(folder) else set()
    return sorted(_marks(ledger.fenced(since)) - there)


def put_back(ledger: Ledger, state_dir: str, since: int = 0) -> int:
    """Mark whoever was terminated since an instant and is not marked; says how many that were."""
    return _write(folder_of(state_dir), missing(ledger, state_dir, since))


def _marks(fenced: Fenced) -> set[str]:
    names = {_mark(name) for name in (*fenced.agents, *fenced.sessions, *fenced.runs) if name}
    return names | {_mark(child, within) for within, child in fenced.children}


def _mark(name: str, within: str = "") -> str:
    """As hooks look for it; whoever lives inside of a conversation is marked under its name."""
    return marked(_bytes(name), _bytes(within))


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _write(folder: str, names: Iterable[str]) -> int:
    wanted = list(names)
    if not wanted:
        return 0
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return sum(_made(handle, name) for name in wanted)
    finally:
        os.close(handle)


def _made(folder: int, name: str) -> bool:
    """An empty file appears whole, and twice is once."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.close(os.open(name, flags, 0o600, dir_fd=folder))
    except FileExistsError:
        return False
    return True
