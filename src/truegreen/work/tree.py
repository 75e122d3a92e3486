"""Who is who among processes: identities that survive reused pids, marks, and sweeps by them.

A pid alone names nobody; boot, pid and start time do. It starts nothing, and it kills only what
carries a run's mark or descends from a known process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterable, Mapping
from hashlib import sha256

import msgspec

from truegreen.tuples import NamedTuple
from truegreen.work.shim import MARK, Entry, all_dead, beneath, entry_of, read_all, silence, table

VARIABLE = "TRUEGREEN_RUN"
_REALTIME = b"Max realtime timeout"
_NONE = (b"unlimited", b"unlimited")
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
    """This process; asked once, so that a moment without a free handle does not make it unknown."""
    global _me  # noqa: PLW0603 - it can't change while we run, and a fork is another process
    pid = os.getpid()
    if _me is None or _me.pid != pid:
        _me = Identity.of(pid)
    if _me is None:
        raise ProcessLookupError("/proc does not show this process")
    return _me


_me: Identity | None = None


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
    """The living that carry a run's tag in their environment or its mark in their limits.

    Whoever was there before the run began is not looked at.
    """
    word = f"{VARIABLE}={tag}".encode()
    number = str(mark_of(tag)).encode()
    young = (entry for entry in everybody.values() if entry.start >= since and entry.alive)
    return [entry for entry in young if tag and _carries(entry.pid, word, number)]


def _carries(pid: int, word: bytes, number: bytes) -> bool:
    try:
        if number in read_all(f"/proc/{pid}/limits"):
            return True
        return word in read_all(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return False  # gone, or of another user: not one that we started


def own_tag(
    runs: Mapping[str, Identity | None],
    keepers: Iterable[Identity | None] = (),
    jailed: Container[str] = (),
) -> str:
    """Which of these runs this process belongs to, by its limits or its parents; empty for none.

    An agent can drop its environment. At isolation `none` it can drop its parents too. Its mark it
    can only make smaller: a limit that its keepers, the supervisors, don't have came with a run.
    """
    line = ancestry(os.getpid(), table())
    for tag, root in runs.items():
        if root is not None and root.pid in line and root.alive():
            return tag
    return Marks.of(runs, keepers, jailed).borne_by("self")


class Marks(NamedTuple):
    """What tells the processes of some runs by their limits, which nobody can lift."""

    tags: dict[bytes, str]
    kept: frozenset[bytes]
    """The limits of supervisors say nothing."""
    loose: str
    """A run whose processes can get away from their parents, if there is one."""

    @classmethod
    def of(
        cls,
        runs: Iterable[str],
        keepers: Iterable[Identity | None],
        jailed: Container[str] = (),
    ) -> Marks:
        """The marks of these runs, and what their supervisors have instead."""
        tags = {str(mark_of(tag)).encode(): tag for tag in runs}
        kept = frozenset(_limit_of(each) for each in keepers if each)
        return cls(tags, kept, next((tag for tag in tags.values() if tag not in jailed), ""))

    def borne_by(self, pid: int | str) -> str:
        """The run that a process bears the mark of; of a smaller mark a loose one is named.

        Who is in a jail is known by its parents. So while all are, a smaller limit is what many
        programs have that play sound.
        """
        soft, hard = _limits(pid)
        named = self.tags.get(hard) or self.tags.get(soft, "")
        if named or not hard.isdigit() or hard in self.kept:
            return named
        return self.loose


def _limits(pid: int | str) -> tuple[bytes, bytes]:
    """The soft and the hard limit that marks are kept in."""
    try:
        lines = read_all(f"/proc/{pid}/limits").splitlines()
    except OSError:
        return b"", b""  # gone; and where there is no /proc nobody can be known again
    line = next((each for each in lines if each.startswith(_REALTIME)), b"")
    soft, hard, *_ = (*line.removeprefix(_REALTIME).split(), b"", b"")
    return soft, hard


def _limit_of(process: Identity) -> bytes:
    return _limits(process.pid)[1] if process.alive() else b""


def members(runs: Mapping[str, Identity | None], marks: Marks) -> dict[int, str]:
    """All processes that belong to one of these runs, each with its run.

    Whoever was there before the first of them began is not looked at.
    """
    everybody = table()
    kin: dict[int, str] = {}
    for tag, root in runs.items():
        if root is not None and root.alive():
            kin |= dict.fromkeys((root.pid, *(e.pid for e in beneath({root.pid}, everybody))), tag)
    begun = [root.start if root and root.boot == boot_id() else 0 for root in runs.values()]
    young = [e for e in everybody.values() if e.start >= min(begun, default=0)]
    strangers = [e for e in young if e.pid not in kin and not _is_free(e)]
    return kin | {e.pid: tag for e in strangers if (tag := marks.borne_by(e.pid))}


_free: set[tuple[int, int]] = set()
_MOST_FREE = 10_000
_YOUNG_SECONDS = 5.0


def is_young(entry: Entry) -> bool:
    """Whether a process was born a moment ago, so that a look may have come before its birth."""
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - entry.start / _TICKS
    return age < _YOUNG_SECONDS


def _is_free(entry: Entry) -> bool:
    """Whether a process has no limit, and so belongs to no run, ever. It is looked up once.

    A child gets its mark a moment after it was born; so young ones are looked at again.
    """
    known = (entry.pid, entry.start)
    if known not in _free and not is_young(entry) and _limits(entry.pid) == _NONE:
        if len(_free) >= _MOST_FREE:
            _free.clear()
        _free.add(known)
    return known in _free


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


def cpu_seconds(root: int, guards: int) -> float:
    """The processor time that a process and all beneath it, dead ones included, have used.

    The first `guards` processes of the tree are ours: their own time does not count.
    """
    everybody = table()
    kin = [*([everybody[root]] if root in everybody else []), *beneath({root}, everybody)]
    ticks = sum(entry.ticks for entry in kin)
    return (ticks - sum(entry.own_ticks for entry in kin[:guards])) / _TICKS
