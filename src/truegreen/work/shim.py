"""The guard of a child tree: starts it, reaps it, ends all of it, and says how it went.

It is a program of its own, run by a bare interpreter: as process 1 of a jail, or as a subreaper in
its own session. So it imports nothing of ours (what it needs of `become` comes along) and next to
nothing of the standard library. It knows pids and pipes, not what runs in them; `tree` borrows its
eyes.
"""

from __future__ import annotations

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from typing import Any

    from truegreen.work.become import Spec, become, call
else:
    import _signal  # `signal` loads enum, which costs a third of the start

CHUNK = 1 << 16
STAT = 4096
SETTLE = 0.15
"""How long what the main process left behind may take to end by itself, as a `| tee` does."""
KILL_BOUND = 2.0
DYING = 0.02
"""How long the killed may take to fall before we look for others."""
LOOK = 0.05
MOST_LOOK = 2.0
"""The longest time between two looks at all processes."""
FILL_RATE = 8 << 30
"""More bytes than processes can fill in a second."""
PAGE = os.sysconf("SC_PAGE_SIZE")
MARK = 1 << 62
_SUBREAPER, _DUMPABLE, _PARENT_DEATH = 36, 4, 1
ALONE = _signal.SIGUSR1
"""Comes when the supervisor is gone, also where a fork of it still holds the pipe of orders."""
_FATAL = {_signal.SIGSEGV, _signal.SIGBUS, _signal.SIGILL, _signal.SIGFPE, _signal.SIGABRT}
_UNTOUCHED = {_signal.SIGKILL, _signal.SIGSTOP, _signal.SIGCONT, _signal.SIGCHLD} | _FATAL


class Entry:
    """A line of the process table."""

    __slots__ = ("_head", "_words", "group", "parent", "pid", "session", "start", "state")

    def __init__(self, pid: int, text: bytes) -> None:
        # Hundreds are read in one look, so what hardly anybody asks for is worked out when asked.
        self._head, _, rest = text.rpartition(b") ")
        words = self._words = rest.split(None, 22)
        self.pid = pid
        self.state = words[0]
        self.parent, self.group, self.session = int(words[1]), int(words[2]), int(words[3])
        self.start = int(words[19])

    @property
    def name(self) -> bytes:
        """What it calls itself."""
        return self._head.partition(b" (")[2]

    @property
    def ticks(self) -> int:
        """The processor time of it and of those that it has waited for."""
        return sum(map(int, self._words[11:15]))

    @property
    def own_ticks(self) -> int:
        """The processor time of it alone."""
        return sum(map(int, self._words[11:13]))

    @property
    def pages(self) -> int:
        """What of it is in memory."""
        return int(self._words[21])

    @property
    def alive(self) -> bool:
        """A zombie acts no more, unless only its first thread has ended."""
        return self.state not in (b"Z", b"X") or int(self._words[17]) > 1


def read_all(path: str) -> bytes:
    """A small file of /proc, whole; OSError when its process is gone or not ours to see."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(handle, CHUNK):
            parts.append(part)
    finally:
        os.close(handle)
    return b"".join(parts)


def entry_of(pid: int) -> Entry | None:
    """The process, if it is in the table."""
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return Entry(pid, os.read(handle, STAT))  # one line, which the kernel gives out whole
        finally:
            os.close(handle)
    except (OSError, IndexError):
        return None


def table(known: dict[int, Entry] | None = None) -> dict[int, Entry]:
    """All processes that can be seen; those that are known are not read again."""
    known = known or {}
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    found = (known.get(pid) or entry_of(pid) for pid in pids)
    return {entry.pid: entry for entry in found if entry}


def last_pid() -> int:
    """The number that the youngest process or thread got; 0 where the kernel does not say."""
    try:
        return int(read_all("/proc/loadavg").split()[4])
    except (OSError, IndexError, ValueError):
        return 0


def pages_held(entry: Entry) -> int:
    """The memory that is a process's own, or its share of it, files aside; all where not shown."""
    try:
        text = read_all(f"/proc/{entry.pid}/smaps_rollup")
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has gone since it was seen
    except OSError:
        return entry.pages
    kib = [
        int(line.split()[1])
        for line in text.splitlines()
        if line.startswith((b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))
    ]
    return sum(kib) * 1024 // PAGE if len(kib) > 1 else entry.pages


def beneath(roots: set[int], everybody: dict[int, Entry]) -> list[Entry]:
    """All descendants of some processes, parents first."""
    children: dict[int, list[Entry]] = {}
    for entry in everybody.values():
        children.setdefault(entry.parent, []).append(entry)
    found: list[Entry] = []
    front = [child for root in roots for child in children.get(root, ())]
    seen = set(roots)
    while front:
        front = [entry for entry in front if entry.pid not in seen]
        found += front
        seen.update(entry.pid for entry in front)
        front = [child for entry in front for child in children.get(entry.pid, ())]
    return found


def send(entry: Entry, number: int) -> None:
    """Signal exactly this process: a pid that was given to another one meanwhile is left alone."""
    try:
        handle = os.pidfd_open(entry.pid)
    except OSError:
        return
    try:
        now = entry_of(entry.pid)
        if now and now.start == entry.start:
            _signal.pidfd_send_signal(handle, number)
    except OSError:
        return  # it ended by itself, or is not ours to signal: the next look tells
    finally:
        os.close(handle)


def silence(
    find: Callable[[], list[Entry]],
    *,
    groups: bool,
    gone: Callable[[list[Entry]], bool],
    again: Callable[[], list[Entry]] | None = None,
    bound: float = KILL_BOUND,
) -> tuple[list[Entry], list[Entry]]:
    """Stop all, look again until nobody is new, kill; repeat until nobody is left.

    Killing one by one would let a shell run its next command. With `groups`, whole process groups
    are stopped at once, which overtakes a fork bomb. `again` may be a quicker look, for those who
    are new; that nobody is left is what `find` says. Gives what was met and what is left.
    """
    met: dict[tuple[int, int], Entry] = {}
    deadline = time.monotonic() + bound
    while found := find():
        fresh = found
        while fresh and time.monotonic() < deadline:
            _stop(fresh, groups=groups)
            met.update({(entry.pid, entry.start): entry for entry in fresh})
            found = (again or find)()
            fresh = [entry for entry in found if (entry.pid, entry.start) not in met]
        for entry in found:
            send(entry, _signal.SIGKILL)
        if time.monotonic() >= deadline:
            return list(met.values()), find()
        patience = time.monotonic() + DYING
        while not gone(found) and time.monotonic() < patience:
            time.sleep(0.001)
    return list(met.values()), []


def all_dead(entries: list[Entry]) -> bool:
    """Whether none of these acts any more."""
    return not any(_anew([entry]) for entry in entries)


def _anew(entries: list[Entry]) -> list[Entry]:
    """These processes as they are now, those that still act."""
    found = [(entry, entry_of(entry.pid)) for entry in entries]
    return [now for old, now in found if now and now.start == old.start and now.alive]


def _stop(entries: list[Entry], *, groups: bool) -> None:
    if groups:
        own = os.getpgrp()
        for group in {entry.group for entry in entries} - {own, 0}:
            try:
                os.killpg(group, _signal.SIGSTOP)
            except OSError:
                continue  # empty already, or with a member of another user
    for entry in entries:
        send(entry, _signal.SIGSTOP)


class Guard:
    """One child tree, from its start to its last process."""

    def __init__(self, spec: Spec, orders: int, status: int, streams: tuple[int, int, int]) -> None:
        self.spec = spec
        self.orders = orders
        self.status = status
        self.streams = streams
        self.main = 0
        self.ended = False
        self.childless = False
        self.cpu = 0.0
        self.next_weighing = 0.0
        self.known: list[Entry] = []
        self.born = 0
        self.next_look = 0.0
        self.until = spec.until
        self.wake = _wake_up_pipe()

    def tell(self, *words: object) -> None:
        """One line to the supervisor, if it still listens."""
        try:
            line = " ".join(map(str, (self.spec.word, *words)))
            os.write(self.status, f"{line}\n".encode())
        except OSError:
            return

    def run(self) -> None:
        """From the start to the end of the last process."""
        if not self.start():
            return
        try:
            self.watch()
        finally:
            self.end()

    def start(self) -> bool:
        """Start the command; an error says at which step and why."""
        astray = next((each[0] for each in self.spec.placed if not _in_place(*each)), None)
        if astray is not None:
            self.tell("astray", astray.hex())
            return False
        if self.late():  # a supervisor that was frozen until now has lost its right
            self.tell("empty", 0)
            return False
        told, tells = os.pipe()
        self.main = os.fork()
        if not self.main:
            become(self.spec, self.streams, tells)
        os.close(tells)
        for stream in set(self.streams):
            os.close(stream)
        trouble = os.read(told, CHUNK)
        os.close(told)
        if trouble:
            os.waitpid(self.main, 0)
            self.tell("failed", trouble.decode())
            return False
        self.tell("started", self.main)
        return True

    def watch(self) -> None:
        """Until the main process has ended and the rest had its moment, or an order to kill."""
        poller = select.poll()
        poller.register(self.orders, select.POLLIN)
        poller.register(self.wake, select.POLLIN)
        settled = None
        while True:
            self.reap()
            if self.ended:
                settled = settled or time.monotonic() + SETTLE
                if time.monotonic() >= settled or self.childless:
                    return
            for handle, _ in poller.poll(self.patience()):
                heard = os.read(handle, CHUNK)
                if handle == self.wake and ALONE in heard:
                    return
                if handle == self.orders and not self.heed(heard):
                    return
            if self.late():
                return
            excess = self.excess() if self.bounded else ""
            if excess:
                self.tell("over", excess)
                return

    def patience(self) -> float | None:
        """How many milliseconds to wait for news."""
        limits = [0.01] if self.ended else [LOOK] if self.bounded else []
        if self.until:
            limits.append(max(0.0, self.until - time.clock_gettime(self.spec.clock)))
        return min(limits) * 1000 + 1 if limits else None

    def heed(self, heard: bytes) -> bool:
        """Hear orders: to end, to ask, and until when it may live. False for the end of all."""
        if not heard or b"K" in heard:
            return False
        if b"T" in heard:
            self.ask()
        told = [word[1:] for word in heard.split(b"\n") if word[:1] == b"F" and word[1:].isdigit()]
        self.until = max([self.until, *(int(word) / 1000 for word in told)])
        return True

    def late(self) -> bool:
        """Whether the supervisor has not been heard of for too long; if so, said."""
        late = bool(self.until) and time.clock_gettime(self.spec.clock) >= self.until
        if late:
            self.tell("over lease")
        return late

    @property
    def bounded(self) -> bool:
        """Whether there is something to count."""
        return bool(self.spec.processes or self.spec.resident)

    def excess(self) -> str:
        """What there is too much of.

        Reading all of /proc costs milliseconds. It is read when so many processes were born that
        the bound could be passed, or when there was time to fill the memory that was left.
        """
        born, now = last_pid(), time.monotonic()
        fresh = born - self.born
        known = bool(born and self.born) and fresh >= 0
        few = not self.spec.processes or len(self.known) + fresh <= self.spec.processes
        if known and few and now < self.next_look:
            return ""
        again = known and not fresh
        self.born = born
        self.known = _anew(self.known) if again else self.living()
        if self.spec.processes and len(self.known) > self.spec.processes:
            return "processes"
        wait = MOST_LOOK
        if self.spec.resident:
            held = sum(entry.pages for entry in self.known) * PAGE
            wait = min(MOST_LOOK, (self.spec.resident - held) / FILL_RATE)
        self.next_look = now + wait
        return "memory" if self.spec.resident and self.too_heavy(self.known) else ""

    def too_heavy(self, living: list[Entry]) -> bool:
        """Whether they hold too much memory together.

        The table counts what is shared for each of them and files that are only mapped. That costs
        nothing; the truth costs a walk through their pages, so we ask for it seldom.
        """
        most = self.spec.resident // PAGE
        now = time.monotonic()
        if sum(entry.pages for entry in living) <= most or now < self.next_weighing:
            return False
        held = sum(pages_held(entry) for entry in living)
        self.next_weighing = time.monotonic() + 9 * (time.monotonic() - now)
        return held > most

    def ask(self) -> None:
        """Ask the main process and its group to end."""
        if not self.ended:
            for number in (_signal.SIGTERM, _signal.SIGCONT):  # what is stopped hears nothing
                try:
                    os.killpg(self.main, number)
                except ProcessLookupError:
                    os.kill(self.main, number)  # it went to another group

    def reap(self) -> None:
        """Bury the dead; say how the main process ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True  # and so, since orphans come to us, nobody is left
                return
            if not pid:
                return
            self.cpu += usage.ru_utime + usage.ru_stime
            if pid == self.main:
                self.ended = True
                if os.WIFSIGNALED(status):
                    self.tell("ended signal", os.WTERMSIG(status))
                else:
                    self.tell("ended exit", os.WEXITSTATUS(status))

    def living(self) -> list[Entry]:
        """Everybody else in the jail, or all descendants."""
        if self.childless:
            return []
        me = os.getpid()
        everybody = table()
        if self.spec.jailed:
            kin = [entry for entry in everybody.values() if entry.pid != me]
        else:
            kin = beneath({me}, everybody)
        return [entry for entry in kin if entry.alive]

    def end(self) -> None:
        """Kill what is left, name it, and say that nothing is."""
        if self.spec.jailed:
            met, left = self.empty_jail()
        else:
            met, left = silence(self.found, groups=True, gone=self.buried)
        self.reap()
        for entry in met:
            if entry.pid != self.main:
                self.tell("swept", entry.pid, entry.name.hex())
        for entry in left:
            self.tell("left", entry.pid)
        empty = self.childless or (self.spec.jailed and not left)
        self.tell("empty" if empty else "stuck", f"{self.cpu:.6f}")

    def found(self) -> list[Entry]:
        """The living, with the dead buried first, so that an orphan shows up below us."""
        self.reap()
        return self.living() or self.caught()

    def buried(self, _: list[Entry]) -> bool:
        """Whether all of them are, and nobody else is left."""
        self.reap()
        return self.childless

    def caught(self) -> list[Entry]:
        """Who forks and ends faster than all of /proc can be read is stopped on sight.

        A child's pid can't be anybody else's before we bury it, so there is no need to look twice.
        """
        me = os.getpid()
        while not self.childless:
            try:
                pids = [int(pid) for pid in read_all(f"/proc/{me}/task/{me}/children").split()]
            except OSError:
                return []  # a kernel without that list: the end stays unconfirmed
            for pid in pids:
                os.kill(pid, _signal.SIGSTOP)
            found = [entry for pid in pids if (entry := entry_of(pid)) and entry.alive]
            if found:
                return found
            self.reap()
        return []

    def empty_jail(self) -> tuple[list[Entry], list[Entry]]:
        """In a namespace of its own one signal reaches everybody at once, forks under way too."""
        if not self.childless:
            _all(_signal.SIGSTOP)
        met = self.living()
        deadline = time.monotonic() + KILL_BOUND
        while not self.childless and time.monotonic() < deadline:
            _all(_signal.SIGKILL)
            self.reap()
            if not self.childless:
                time.sleep(0.001)
        return met, self.living()


def _in_place(path: bytes, device: int, number: int, writable: bool) -> bool:  # noqa: FBT001 - told so
    """Whether what is seen here is what was to be laid here, and read-only if it should be."""
    try:
        found, mount = os.stat(path), os.statvfs(path)
    except OSError:
        return False
    closed = bool(mount.f_flag & os.ST_RDONLY)
    return (found.st_dev, found.st_ino) == (device, number) and (writable or closed)


def _all(number: int) -> None:
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        return  # nobody is left


def _wake_up_pipe() -> int:
    """A pipe that becomes readable when a child ends. Nothing but a kill ends the guard."""
    reads, writes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    _signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    for number in set(range(1, 32)) - _UNTOUCHED:
        _signal.signal(number, _signal.SIG_IGN)
    for number in (_signal.SIGCHLD, ALONE):
        _signal.signal(number, lambda *_: None)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    return reads


def _keep_to_ourselves(*, jailed: bool) -> None:
    """Take orphans in, and let no process of the same user reach into our pipes and memory.

    In a jail, bubblewrap has seen to orphans and to a supervisor that dies.
    """
    if not jailed:
        call("prctl", _SUBREAPER, 1, 0, 0, 0)
        call("prctl", _PARENT_DEATH, int(ALONE), 0, 0, 0)
    call("prctl", _DUMPABLE, 0, 0, 0, 0)


def main(told: dict[str, Any]) -> None:
    """Guard what is told; the words after the first are numbers of open files.

    These are: where orders come from, where the account goes, and what the command gets as its
    input, output and errors.
    """
    spec = Spec(told)
    for number in {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2}:
        try:
            os.set_inheritable(number, False)
        except OSError:
            continue  # the listing's own
    memory, orders, status, stdin, stdout, stderr = map(int, sys.argv[1:])
    os.close(memory)
    _keep_to_ourselves(jailed=spec.jailed)
    Guard(spec, orders, status, (stdin, stdout, stderr)).run()
