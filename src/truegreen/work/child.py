"""A started tree and what holds it together: a guard behind two pipes, or a bare process group.

Orders go in, an account of how it went comes out. When to give which order is the business of
`watch`; starting is that of `process`.
"""

from __future__ import annotations

import contextlib
import os
import select
from typing import Protocol

from truegreen.contract.terms import Isolation
from truegreen.work.lifeline import LAPSED, Lifeline
from truegreen.work.shim import Entry, entry_of, table
from truegreen.work.tree import Identity, Swept, cpu_seconds, family, hunted, printable

CHUNK = 1 << 16
_TROUBLE = 2000
_KILL, _TERM, _CONT = 9, 15, 18


class Account:
    """What is known so far about how it went."""

    def __init__(self, word: str = "") -> None:
        """`word` begins every line that is the guard's own."""
        self._word = word
        self.pid = 0
        self.astray = ""
        self.failed: tuple[str, int] | None = None
        self.code: int | None = None
        self.signal: int | None = None
        self.over = ""
        self.swept: list[Swept] = []
        self.left: list[int] = []
        self.empty = False
        self.cpu = 0.0
        self.trouble = ""
        self.guard_killed = False

    @property
    def ended(self) -> bool:
        """Whether the main process is known to have ended."""
        return self.code is not None or self.signal is not None

    def hear(self, line: str) -> None:
        """One line of a guard. What is none of its words is what went wrong in starting it.

        Bubblewrap and the interpreter write there too, and what they complain about may have been
        named by anybody.
        """
        word, _, rest = line.partition(" ")
        match rest.split() if word == self._word else []:
            case ["started", pid]:
                self.pid = int(pid)
            case ["failed", step, number]:
                self.failed = step, int(number)
            case ["ended", "exit", code]:
                self.code = int(code)
            case ["ended", "signal", number]:
                self.signal = int(number)
            case ["astray", path]:
                self.astray = os.fsdecode(bytes.fromhex(path))
            case ["over", what]:
                self.over = LAPSED if what == "lease" else what
            case ["swept", pid, *name]:
                self.swept.append(Swept(int(pid), printable(bytes.fromhex("".join(name)))))
            case ["left", pid]:
                self.left.append(int(pid))
            case ["empty" | "stuck" as word, cpu]:
                self.empty = word == "empty"
                self.cpu = float(cpu)
            case _:
                self.trouble = f"{self.trouble} {line}".strip()[-_TROUBLE:]


class Child(Protocol):
    """A started tree, whatever holds it together."""

    account: Account
    pid: int
    pidfd: int
    identity: Identity | None
    status: int | None
    isolation: Isolation
    fences: tuple[str, ...]

    def ask(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """Kill all of it."""

    def hear(self) -> bool:
        """Read what its guard says; False when it will say no more."""

    def force(self) -> None:
        """It did not obey in time: do what can be done from outside."""

    def gone(self) -> bool:
        """Look at it when its outermost process has ended; False when some of it may live on."""

    def cpu_seconds(self) -> float:
        """The processor time that it has used so far; that of its guard does not count."""

    def close(self) -> None:
        """Let go of all that was opened for it."""


class Guarded:
    """A tree with a guard: orders go through one pipe, its account comes through another."""

    def __init__(
        self, pid: int, orders: int, status: int, isolation: Isolation, tag: str, word: str
    ) -> None:
        self.account = Account(word)
        self.pid = pid
        self.pidfd = handle_of(pid)
        self.isolation = isolation
        self.fences: tuple[str, ...] = ()
        self.status: int | None = status
        self._orders: int | None = orders
        self._tag = tag
        self._heard = b""
        self._lifeline: Lifeline | None = None
        self.identity = Identity.of(pid)
        os.set_blocking(status, False)
        os.set_blocking(orders, False)

    def hang(self, lifeline: Lifeline) -> None:
        """Let its guard be fed."""
        self._lifeline = lifeline
        if self._orders is not None:
            lifeline.attach(self._orders)

    def ask(self) -> None:
        """Ask it to end."""
        self._order(b"T")

    def kill(self) -> None:
        """Kill all of it; a guard that was stopped is woken for that."""
        self._order(b"K")
        entry = entry_of(self.pid)
        if entry and entry.state == b"T":
            os.kill(self.pid, _CONT)

    def _order(self, word: bytes) -> None:
        try:
            if self._orders is not None:
                os.write(self._orders, word)
        except (BrokenPipeError, BlockingIOError):
            return  # gone, or deaf: the caller's bound decides

    def hear(self) -> bool:
        """Read what the guard says; False when it will say no more."""
        try:
            data = os.read(self.status, CHUNK) if self.status is not None else b""
        except BlockingIOError:
            return True
        *lines, self._heard = (self._heard + data).split(b"\n")
        if not data:
            lines.append(self._heard)
        for line in lines:
            if line:
                self.account.hear(line.decode(errors="replace"))
        self._heard = self._heard[-_TROUBLE:]
        return bool(data)

    def gone(self) -> bool:
        """Whether nothing is left; what the guard could not end is hunted from outside."""
        self.account.guard_killed = _killed(self.pid)
        while self.status is not None and self.hear():
            if not _readable(self.status):
                break
        account = self.account
        if account.empty or account.failed or account.astray:
            return True
        found, left = hunted(self._tag, self.identity)
        self._add(found)
        account.left = [entry.pid for entry in left]
        # A namespace ends with its first process; elsewhere, nobody saw the last one go
        return self.isolation is Isolation.JAIL and not left

    def _add(self, found: list[Entry]) -> None:
        known = {one.pid for one in self.account.swept} | {self.account.pid}
        self.account.swept += [
            Swept(entry.pid, printable(entry.name)) for entry in found if entry.pid not in known
        ]

    def force(self) -> None:
        """The guard does not obey: kill the tree from outside, and the guard with it."""
        found, left = hunted(self._tag, self.identity)
        self._add([entry for entry in found if entry.pid != self.pid])
        self.account.left = [entry.pid for entry in left]

    def cpu_seconds(self) -> float:
        """Without the guard, which bubblewrap starts in a jail."""
        return cpu_seconds(self.pid, guards=2 if self.isolation is Isolation.JAIL else 1)

    def close(self) -> None:
        """Close the pipes: for a guard that still lives, the order to end all."""
        if self._lifeline and self._orders is not None:
            self._lifeline.detach(self._orders)
        for handle in (self._orders, self.status, self.pidfd):
            if handle is not None:
                os.close(handle)
        self._orders = self.status = None


class Keeper:
    """Whoever kills a bare group when its lifeline runs out."""

    def __init__(self, pid: int, orders: int, lifeline: Lifeline) -> None:
        os.set_blocking(orders, False)
        self._pid, self._orders, self._lifeline = pid, orders, lifeline
        lifeline.attach(orders)

    def mind(self, group: int) -> None:
        """This is what it may have to kill."""
        os.write(self._orders, b"\nG%d\n" % group)

    def strikes(self) -> bool:
        """Whether it was its turn to kill."""
        return self._lifeline.late()

    def close(self) -> None:
        """Its group is gone: let it go, too."""
        self._lifeline.detach(self._orders)
        with contextlib.suppress(OSError):
            os.write(self._orders, b"Q")
        os.close(self._orders)
        with contextlib.suppress(OSError):
            os.kill(self._pid, _KILL)
            os.waitpid(self._pid, 0)


class Group:
    """A tree without a guard: its process group is all that is known of it."""

    isolation = Isolation.NONE
    fences: tuple[str, ...] = ()
    status: int | None = None

    def __init__(self, pid: int, tag: str, keeper: Keeper | None = None) -> None:
        self._keeper = keeper
        self.account = Account()
        self.account.pid = self.pid = pid
        self.pidfd = handle_of(pid)
        self.identity = Identity.of(pid)
        self._tag = tag

    def ask(self) -> None:
        """Ask the group to end."""
        self._signal(_TERM)
        self._signal(_CONT)

    def kill(self) -> None:
        """Kill the group."""
        self._signal(_KILL)

    def force(self) -> None:
        """Nothing more can be done."""

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return  # all of it has ended

    def hear(self) -> bool:
        """Nobody speaks."""
        return False

    def gone(self) -> bool:
        """Kill the rest of the group while its leader's pid still keeps the number taken."""
        self.account.swept = [Swept(e.pid, printable(e.name)) for e in self._mates()]
        self._signal(_KILL)
        try:
            _, status, usage = os.wait4(self.pid, 0)
        except ChildProcessError:
            return False  # somebody else took the status: how it ended is not known
        self.account.cpu = usage.ru_utime + usage.ru_stime
        if os.WIFSIGNALED(status):
            self.account.signal = os.WTERMSIG(status)
            if self.account.signal == _KILL and self._keeper and self._keeper.strikes():
                self.account.over = LAPSED
        else:
            self.account.code = os.WEXITSTATUS(status)
        self.account.left = self._strays({one.pid for one in self.account.swept})
        return False

    def _mates(self) -> list[Entry]:
        """Who else lives in the group, as far as it can be seen."""
        with contextlib.suppress(OSError):
            everybody = table().values()
            return [e for e in everybody if e.group == self.pid != e.pid and e.alive]
        return []

    def _strays(self, killed: set[int]) -> list[int]:
        """Who left the group and carries the tag, as far as it can be seen."""
        with contextlib.suppress(OSError):
            kin = family(self._tag, self.identity)
            return [entry.pid for entry in kin if entry.pid not in killed]
        return []

    def cpu_seconds(self) -> float:
        """Of the group's leader and all beneath it."""
        return cpu_seconds(self.pid, guards=0)

    def close(self) -> None:
        """Close the handle."""
        if self._keeper:
            self._keeper.close()
        os.close(self.pidfd)


def handle_of(pid: int) -> int:
    """A file that becomes readable when a child of ours has ended."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:  # over already, and SIGCHLD is ignored here
        reads, writes = os.pipe()
        os.close(writes)
        return reads


def _killed(pid: int) -> bool:
    """Bury a guard; whether somebody killed it."""
    try:
        return os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return False  # somebody else took the status; the guard has told us all


def _readable(handle: int) -> bool:
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    return bool(poller.poll(0))
