"""Who is who among processes: identities that survive reused pids, marks, and sweeps by them.

A pid alone names nobody; boot, pid and start time do. It starts nothing, and it kills only what
carries a run's mark or descends from a known process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

import msgspec

from truegreen.work.shim import MARK, Entry, all_dead, beneath, entry_of, read_all, silence, table

VARIABLE = "TRUEGREEN_RUN"
_REALTIME = b"Max realtime timeout"
_TICKS = os.sysconf("SC_CLK_TCK")
_boot = ""


def boot_id() -> str:
    """This boot of this machine; no other has the same."""
    global _boot  # noqa: PLW0603 - it can't change while we run
    if not _boot:
        _boot = read_all("/proc/sys/kernel/random/boot_id").decode().strip()
    return _boot


class Identity(NamedTuple):
    """A process that can be recognised: a reused pid has another start time."""

    boot: str
    pid: int
    start: int

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """Who has that pid now, if anybody."""
        entry = entry_of(pid)
        return cls(boot_id(), pid, entry.start) if entry else None

    def alive(self) -> bool:
        """Whether exactly this process still acts. What can't be looked at counts as alive."""
        if self.boot != boot_id():
            return False
        entry = entry_of(self.pid)
        if entry:
            return entry.alive and entry.start == self.start
        return _hidden(self.pid)


def me() -> Identity:
    """This process."""
    mine = Identity.of(os.getpid())
    if mine is None:
        raise ProcessLookupError("/proc does not show this process")
    return mine


def _hidden(pid: int) -> bool:
    """Whether a process exists that /proc does not show us."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return entry_of(pid) is None


class Swept(msgspec.Struct, frozen=True):
    """A process that was still alive when its run was over."""

    pid: int
    name: str


class Sweep(NamedTuple):
    """What a sweep killed, and what it could not."""

    swept: tuple[Swept, ...]
    survivors: tuple[int, ...]


def printable(name: bytes) -> str:
    """A process may call itself anything; what is shown is harmless text."""
    return "".join(c if c.isprintable() else "?" for c in name.decode(errors="replace"))


def mark_of(tag: str) -> int:
    """A number that a run's processes inherit as a limit nobody looks at.

    A child can drop its environment, its session and its parents; it keeps its limits.
    """
    return MARK | int.from_bytes(sha256(tag.encode()).digest()[:6]) << 4 if tag else 0


def marked(tag: str, everybody: dict[int, Entry], since: int) -> list[Entry]:
    """The processes that carry a run's tag in their environment or its mark in their limits.

    Whoever was there before the run began is not looked at.
    """
    word = f"{VARIABLE}={tag}".encode()
    number = str(mark_of(tag)).encode()
    young = (entry for entry in everybody.values() if entry.start >= since)
    return [entry for entry in young if tag and _carries(entry.pid, word, number)]


def _carries(pid: int, word: bytes, number: bytes) -> bool:
    try:
        if number in read_all(f"/proc/{pid}/limits"):
            return True
        return word in read_all(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return False  # gone, or of another user: not one that we started


def own_tag(runs: Mapping[str, Identity | None], keepers: Iterable[Identity | None] = ()) -> str:
    """Which of these runs this process belongs to, by its limits or its parents; empty for none.

    An agent can drop its environment. At isolation `none` it can drop its parents too. Its mark it
    can only make smaller: a limit that its keepers, the supervisors, don't have came with a run.
    """
    try:
        limits = read_all("/proc/self/limits")
    except OSError:
        return ""  # where there is no /proc nobody can be known again
    line = ancestry(os.getpid(), table())
    for tag, root in runs.items():
        descends = root is not None and root.pid in line and root.alive()
        if descends or str(mark_of(tag)).encode() in limits:
            return tag
    mine = _hard_limit(limits)
    if not mine.isdigit() or mine in {_limit_of(each) for each in keepers if each}:
        return ""
    return next(iter(runs), "")


def _hard_limit(limits: bytes) -> bytes:
    line = next((each for each in limits.splitlines() if each.startswith(_REALTIME)), b"")
    words = line.removeprefix(_REALTIME).split()
    return words[1] if len(words) > 1 else b""


def _limit_of(process: Identity) -> bytes:
    try:
        return _hard_limit(read_all(f"/proc/{process.pid}/limits")) if process.alive() else b""
    except OSError:
        return b""


def family(tag: str, identity: Identity | None) -> list[Entry]:
    """All living processes of a run, as far as they can be known from outside.

    `identity` is its outermost process, which was there first.
    """
    everybody = table()
    known = identity is not None and identity.boot == boot_id()
    since = identity.start if identity and known else 0
    roots = {entry.pid for entry in marked(tag, everybody, since)}
    if identity and identity.alive():
        roots.add(identity.pid)
    kin = {pid: everybody[pid] for pid in roots if pid in everybody}
    kin |= {entry.pid: entry for entry in beneath(roots, everybody)}
    spared = ancestry(os.getpid(), everybody)
    return [entry for entry in kin.values() if entry.alive and entry.pid not in spared]


def ancestry(pid: int, everybody: dict[int, Entry]) -> set[int]:
    """A process and those it descends from: a sweep must not turn on its sender."""
    line: set[int] = set()
    while pid in everybody and pid not in line:
        line.add(pid)
        pid = everybody[pid].parent
    return line


def sweep(tag: str, identity: Identity | None = None) -> Sweep:
    """Kill whatever carries the tag or descends from the process, until nothing is found."""
    met, left = hunted(tag, identity)
    swept = tuple(Swept(entry.pid, printable(entry.name)) for entry in met)
    return Sweep(swept, tuple(entry.pid for entry in left))


def hunted(tag: str, identity: Identity | None) -> tuple[list[Entry], list[Entry]]:
    """Who was killed, and who is left."""
    return silence(lambda: family(tag, identity), groups=False, gone=all_dead)


def cpu_seconds(root: int) -> float:
    """The processor time that a process and all beneath it, dead ones included, have used."""
    everybody = table()
    kin = beneath({root}, everybody)
    if root in everybody:
        kin.append(everybody[root])
    return sum(entry.ticks for entry in kin) / _TICKS
