"""Silence runs from outside, many at once: kill all of them, look again, and name who is left.

Each level of isolation has its own sure way: a jail dies with its outermost process, a guard ends
what it holds when it is told that it is alone. Where there is neither, what carries the mark is
hunted, and that nobody else is left stays unconfirmed. It knows runs by their names alone.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from truegreen.contract.terms import Isolation
from truegreen.work.shim import (
    ALONE,
    KILL_BOUND,
    Entry,
    all_dead,
    beneath,
    entry_of,
    read_all,
    send,
    silence,
    table,
)
from truegreen.work.tree import VARIABLE, Identity, Swept, ancestry, boot_id, mark_of, printable

_LOOK_SECONDS = 0.002
_BIRTH_SECONDS = 0.3
"""How long a process may take from its supervisor's last look at the fence to its mark."""
_OBEDIENCE = KILL_BOUND
"""How long a guard may take to end what it holds. One that takes longer was not sure of it."""


class Quarry(NamedTuple):
    """A run that has to be silent."""

    run: str
    isolation: str = ""
    process: Identity | None = None
    """The outermost process, if it was written down."""
    is_over: bool = False
    """Whether its supervisor saw the last process go."""


class Silence(NamedTuple):
    """Who was alive and is dead, who is alive, and whose end nobody can vouch for."""

    killed: tuple[Swept, ...]
    survivors: tuple[Swept, ...]
    unconfirmed: tuple[str, ...]


def silence_runs(runs: Iterable[Quarry]) -> Silence:
    """Kill whatever belongs to these runs, in bounded time; nothing else is touched."""
    quarries = [quarry for quarry in runs if quarry.run]
    if not quarries:
        return Silence((), (), ())
    roots = _rooted(quarries)
    everybody = table()
    met = _known(roots, everybody)
    for quarry, root in roots.items():
        send(root, ALONE if _has_guard(quarry) else signal.SIGKILL)
    obeyed = _wait_for([root for quarry, root in roots.items() if quarry.isolation])
    left: list[Entry] = []
    patience = time.monotonic() + (_BIRTH_SECONDS if any(map(_is_unborn, quarries)) else 0.0)
    while True:
        hunted, left = silence(lambda: kin_of(quarries), groups=False, gone=all_dead)
        met |= {(entry.pid, entry.start): entry for entry in hunted}
        if left or hunted or time.monotonic() >= patience:
            break
        time.sleep(_LOOK_SECONDS * 5)
    alive = {(entry.pid, entry.start) for entry in left}
    return Silence(
        tuple(_swept(entry) for key, entry in met.items() if key not in alive),
        tuple(_swept(entry) for entry in left),
        tuple(quarry.run for quarry in quarries if not _is_sure(quarry, roots, obeyed)),
    )


def living(runs: Iterable[Quarry]) -> dict[str, tuple[Swept, ...]]:
    """Who lives in each of these runs now, as far as it can be seen from outside."""
    return {one.run: tuple(_swept(entry) for entry in kin_of([one])) for one in runs}


def kin_of(quarries: Iterable[Quarry]) -> list[Entry]:
    """All living processes of these runs, as far as they can be known from outside."""
    wanted = list(quarries)
    everybody = table()
    words = {f"{VARIABLE}={one.run}".encode() for one in wanted}
    marks = {str(mark_of(one.run)).encode() for one in wanted}
    since = _since(wanted)
    young = [entry for entry in everybody.values() if entry.start >= since and entry.alive]
    roots = {entry.pid for entry in young if _carries(entry.pid, words, marks)}
    roots |= {root.pid for root in _rooted(wanted).values()}
    kin = {pid: everybody[pid] for pid in roots if pid in everybody}
    kin |= {entry.pid: entry for entry in beneath(roots, everybody)}
    spared = ancestry(os.getpid(), everybody)
    return [entry for entry in kin.values() if entry.alive and entry.pid not in spared]


def _rooted(quarries: Iterable[Quarry]) -> dict[Quarry, Entry]:
    """The outermost processes that are still there; a reused pid is somebody else."""
    found = {}
    for quarry in quarries:
        known = quarry.process
        entry = entry_of(known.pid) if known and known.boot == boot_id() else None
        if known and entry and entry.start == known.start and entry.alive:
            found[quarry] = entry
    return found


def _known(
    roots: Mapping[Quarry, Entry], everybody: dict[int, Entry]
) -> dict[tuple[int, int], Entry]:
    """Who can be seen to live, before anything is killed."""
    pids = {root.pid for root in roots.values()}
    kin = [*(everybody[pid] for pid in pids if pid in everybody), *beneath(pids, everybody)]
    return {(entry.pid, entry.start): entry for entry in kin if entry.alive}


def _has_guard(quarry: Quarry) -> bool:
    return quarry.isolation == Isolation.REAPER


def _wait_for(roots: list[Entry]) -> bool:
    """Whether all these processes ended in time."""
    return _until(lambda: all_dead(roots), _OBEDIENCE)


def _until(is_so: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _is_sure(quarry: Quarry, roots: Mapping[Quarry, Entry], obeyed: bool) -> bool:  # noqa: FBT001 - a fact
    """A namespace ends with its first process; a guard that obeyed saw the last one go."""
    if quarry.is_over:
        return True
    if quarry.isolation == Isolation.JAIL:
        return quarry.process is not None
    return _has_guard(quarry) and quarry in roots and obeyed


def _is_unborn(quarry: Quarry) -> bool:
    """Whether a supervisor may have been about to start it."""
    return quarry.process is None and not quarry.is_over


def _since(quarries: list[Quarry]) -> int:
    """Nobody who was there before the first of them began belongs to one."""
    starts = [
        one.process.start for one in quarries if one.process and one.process.boot == boot_id()
    ]
    return min(starts) if len(starts) == len(quarries) else 0


def _carries(pid: int, words: set[bytes], marks: set[bytes]) -> bool:
    try:
        if not marks.isdisjoint(read_all(f"/proc/{pid}/limits").split()):
            return True
        return not words.isdisjoint(read_all(f"/proc/{pid}/environ").split(b"\0"))
    except OSError:
        return False  # gone, or of another user: not one that we started


def _swept(entry: Entry) -> Swept:
    return Swept(entry.pid, printable(entry.name))
