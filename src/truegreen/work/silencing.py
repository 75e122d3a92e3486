"""Silence runs from outside, many at once: kill all of them, look again, and name who is left.

Each level of isolation has its own sure way: a jail dies with its outermost process, a guard ends
what it holds when it is told that it is alone. Where there is neither, what carries the mark is
hunted, and that nobody else is left stays unconfirmed. It knows runs by their names alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Container, Iterable

from truegreen.contract.terms import Isolation
from truegreen.tuples import NamedTuple
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
_ORDERS: dict[str, int] = {Isolation.JAIL: signal.SIGKILL, Isolation.REAPER: ALONE}
"""What ends all of a run at once. Without isolation, its first process is what its kin is known by:
it dies with them, and not before."""
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
    everybody = table()
    mine = ancestry(os.getpid(), everybody)
    roots = {one: root for one, root in _rooted(quarries).items() if root.pid not in mine}
    seen = _below({root.pid for root in roots.values()}, everybody).values()
    met = {_key(entry): entry for entry in seen if entry.alive}
    guards = {one: root for one, root in roots.items() if one.isolation in _ORDERS}
    for quarry, root in guards.items():
        send(root, _ORDERS[quarry.isolation])
    _wait(lambda: all_dead(list(guards.values())), _OBEDIENCE)
    obeyed = {one for one, root in guards.items() if all_dead([root])}
    patience = time.monotonic() + (_BIRTH_SECONDS if any(map(_is_unborn, quarries)) else 0.0)
    hunt = Hunt(quarries, {} if guards else everybody)
    while True:
        hunted, left = silence(hunt.afresh, groups=False, gone=hunt.are_dead, again=hunt.again)
        met |= {_key(entry): entry for entry in (*hunted, *left)}
        if left or hunted or time.monotonic() >= patience:
            break
        time.sleep(_LOOK_SECONDS * 5)
    rest = _finished(entry for key, entry in met.items() if key not in hunt.dead)
    alive = {_key(entry) for entry in rest}
    return Silence(
        tuple(_swept(entry) for key, entry in met.items() if key not in alive),
        tuple(_swept(entry) for entry in rest),
        tuple(one.run for one in quarries if not _is_sure(one, obeyed)),
    )


class Hunt:
    """Looks at some runs, one after the other; hundreds of processes take a while to be read."""

    def __init__(self, quarries: list[Quarry], everybody: dict[int, Entry]) -> None:
        """`everybody` are those that were read just now, for the first look; or nobody."""
        self._quarries = quarries
        self._just_read = everybody
        self._everybody = everybody
        self._kin: list[Entry] = []
        self.dead: set[tuple[int, int]] = set()

    def afresh(self) -> list[Entry]:
        """All who live."""
        self._everybody, self._just_read = self._just_read or table(), {}
        self._kin = kin_of(self._quarries, self._everybody)
        return self._kin

    def again(self) -> list[Entry]:
        """Who lived at the last look, and who was born since, below them or with the mark.

        Who is not new is not read again. A number goes round too slowly to be somebody else's by
        now; if it were, that one is not signalled, and has no children here.
        """
        before, now = self._everybody, table(self._everybody)
        new = [entry for pid, entry in now.items() if pid not in before]
        for pid in {entry.parent for entry in new}.intersection(before):
            parent = entry_of(pid)
            now |= {pid: parent} if parent else {}
        still = set(map(_key, now.values()))
        kin = {entry.pid for entry in self._kin if _key(entry) in still}
        found = _below(kin | _marked(self._quarries, new), now)
        spared = ancestry(os.getpid(), now)
        self._everybody = now
        self._kin = [e for e in found.values() if e.alive and e.pid not in spared]
        return self._kin

    def are_dead(self, entries: list[Entry]) -> bool:
        """Whether none of these acts any more; then nobody needs to ask again."""
        if not all_dead(entries):
            return False
        self.dead.update(map(_key, entries))
        return True


def _key(entry: Entry) -> tuple[int, int]:
    return entry.pid, entry.start


def living(runs: Iterable[Quarry]) -> dict[str, tuple[Swept, ...]]:
    """Who lives in each of these runs now, as far as it can be seen from outside."""
    return {one.run: tuple(_swept(entry) for entry in kin_of([one])) for one in runs}


def kin_of(quarries: Iterable[Quarry], everybody: dict[int, Entry] | None = None) -> list[Entry]:
    """All living processes of these runs, as far as they can be known from outside."""
    wanted = list(quarries)
    everybody = everybody or table()
    kin = _below({root.pid for root in _rooted(wanted).values()}, everybody)
    kin |= _below(_marked(wanted, [e for e in everybody.values() if e.pid not in kin]), everybody)
    spared = ancestry(os.getpid(), everybody)
    return [entry for entry in kin.values() if entry.alive and entry.pid not in spared]


def _marked(quarries: list[Quarry], strangers: Iterable[Entry]) -> set[int]:
    """Which of these carry a mark; who was there before the first of the runs is not looked at."""
    words = {f"{VARIABLE}={one.run}".encode() for one in quarries}
    marks = {str(mark_of(one.run)).encode() for one in quarries}
    since = _since(quarries)
    young = [entry for entry in strangers if entry.start >= since and entry.alive]
    return {entry.pid for entry in young if _carries(entry.pid, words, marks)}


def _finished(met: Iterable[Entry]) -> list[Entry]:
    """Whoever was seen dies, also if nothing ties it to its run any more; says who does not."""
    rest = [entry for entry in met if not all_dead([entry])]
    for entry in rest:
        send(entry, signal.SIGKILL)
    _wait(lambda: all_dead(rest), KILL_BOUND if rest else 0.0)
    return [entry for entry in rest if not all_dead([entry])]


def _rooted(quarries: Iterable[Quarry]) -> dict[Quarry, Entry]:
    """The outermost processes that are still there; a reused pid is somebody else."""
    found = {}
    for quarry in quarries:
        known = quarry.process
        entry = entry_of(known.pid) if known and known.boot == boot_id() else None
        if known and entry and entry.start == known.start and entry.alive:
            found[quarry] = entry
    return found


def _below(roots: set[int], everybody: dict[int, Entry]) -> dict[int, Entry]:
    """Some processes and all that descend from them."""
    kin = {pid: everybody[pid] for pid in roots if pid in everybody}
    return kin | {entry.pid: entry for entry in beneath(roots, everybody)}


def _wait(is_so: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)


def _is_sure(quarry: Quarry, obeyed: Container[Quarry]) -> bool:
    """A namespace ends with its first process; a guard that obeyed saw the last one go."""
    if quarry.is_over:
        return True
    if quarry.isolation == Isolation.JAIL:
        return quarry.process is not None
    return quarry.isolation == Isolation.REAPER and quarry in obeyed


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


def ask_to_end(process: Identity) -> None:
    """Ask a program of ours that lives on by itself to end; one that has ended is no error."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(process.pid)
        try:
            if process.alive():  # and not another one that has its number now
                signal.pidfd_send_signal(handle, signal.SIGTERM)
        finally:
            os.close(handle)
