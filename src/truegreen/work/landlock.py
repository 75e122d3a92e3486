"""The kernel's own fence (Landlock), for where no jail can be had: what it leaves to a command.

It holds for the command and all who come after it, needs no privilege, and can't be lifted. Words
in, words out; `become` puts it up. Names stay visible, UDP and what is open already stay usable.
"""

from __future__ import annotations

import os

from truegreen.paths import is_named_inside
from truegreen.tuples import NamedTuple
from truegreen.work.jail import DEVICES, Profile, hidden_of

OLDEST = 2
"""Before that no file can be moved from one folder to another, which honest tools do."""
MOST_PATHS = 4000
"""More neighbours of hidden folders than that are too dear to name one by one."""
WRITE_FILE, READ_FILE, TRUNCATE, REFER = 1 << 1, 1 << 2, 1 << 14, 1 << 13
_MAKE = sum(1 << number for number in (7, 8, 9, 10, 12))
_DEVICES = 1 << 6 | 1 << 11
_REMOVE = 1 << 4 | 1 << 5
_WRITE = WRITE_FILE | _MAKE | _REMOVE | REFER | TRUNCATE
_TCP = 1 << 0 | 1 << 1
_SCOPES = 1 << 0 | 1 << 1
_WITH_TRUNCATE, _WITH_TCP, _WITH_SCOPES = 3, 4, 6
CAPABILITIES = {
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_SYS_MODULE": 16,
    "CAP_SYS_RAWIO": 17,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_BOOT": 22,
    "CAP_SYS_RESOURCE": 24,
    "CAP_SYS_TIME": 25,
    "CAP_MKNOD": 27,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
}
"""What root loses behind a fence, as in a jail: some of it would let him look over the fence."""
_HARMLESS = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


class Fence(NamedTuple):
    """What is taken, what is left, and the words for it."""

    told: tuple[int, int, int, list[tuple[bytes, int, bool]], list[int]]
    words: tuple[str, ...]


def fence(profile: Profile, cwd: str, version: int) -> Fence | None:
    """The fence that a profile asks for, as far as this kernel has it; None for none.

    Who may write everywhere and use the network gets none: it would also take sudo from him.
    """
    closed = profile.readonly_root or bool(profile.writable)
    shut = not profile.network and version >= _WITH_TCP
    if version < OLDEST or not (closed or shut):
        return None
    opened = {os.path.realpath(path) for path in (*profile.writable, *profile.bound)}
    cwd = os.path.realpath(cwd)
    if not profile.readonly_root:
        opened.add(cwd)
    files, rules, words = 0, [], [f"landlock {version}"]
    if closed:
        files |= _WRITE | _DEVICES
        rules += [(path, _WRITE | READ_FILE, True) for path in sorted(opened)]
        rules += [(f"/dev/{name}", _WRITE, False) for name in (*_HARMLESS, *DEVICES)]
        words.append("writes")
    beside = besides({path for path in hidden_of(profile) if path != cwd})
    if beside is not None:
        files |= READ_FILE
        rules += [(path, READ_FILE, False) for path in beside]
        # What a jail would lay over other places is read where it lies.
        laid = {os.path.realpath(each.source) for each in profile.placed if not each.writable}
        rules += [(path, READ_FILE, False) for path in {cwd, *opened, *laid}]
        words.append("hidden")
    words += ["tcp"] if shut else []
    scopes = _SCOPES if version >= _WITH_SCOPES else 0
    words += ["signals"] if scopes else []
    files &= ~TRUNCATE if version < _WITH_TRUNCATE else -1
    left = [(os.fsencode(path), access, must) for path, access, must in rules]
    lost = [] if os.geteuid() else list(CAPABILITIES.values())
    return Fence((files, _TCP if shut else 0, scopes, left, lost), tuple(words))


def besides(hidden: set[str]) -> list[str] | None:
    """All that lies beside the ways to some paths: rights can be left, not taken from a part.

    None where there is nothing to hide, or where that can't be told in a bearable number of paths.
    """
    hidden = {path for path in hidden if os.path.lexists(path)}
    ways = {way for path in hidden for way in _ways(path)}
    ways = {way for way in ways if not any(is_named_inside(way, path) for path in hidden)}
    found: list[str] = []
    try:
        for way in sorted(ways):
            with os.scandir(way) as entries:
                found += [entry.path for entry in entries if not entry.is_symlink()]
            if len(found) > MOST_PATHS:
                return None
    except OSError:
        return None
    return [path for path in found if path not in ways and path not in hidden] if hidden else None


def _ways(path: str) -> list[str]:
    ways = []
    while path != "/":
        path = os.path.dirname(path)
        ways.append(path)
    return ways
