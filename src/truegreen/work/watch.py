"""A child tree from its first byte to its last process: pumps, caps, and who is asked to end when.

One loop, no signal handlers: file descriptors tell everything. It starts nothing, and
what the output means is not its business.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from truegreen.work.child import Child
from truegreen.work.launch import Launch, Limits
from truegreen.work.machine import free_bytes, holds_more
from truegreen.work.pump import Pump
from truegreen.work.shim import KILL_BOUND, SETTLE
from truegreen.work.tree import Identity

CHUNK = 1 << 18
AT_ONCE = 4
"""How many chunks are taken from a pipe that is full before anything else is looked at."""
DRAIN = 1 << 24
"""What may come out of a pipe after the end; who still writes then is a survivor."""
ANSWER_SECONDS = 1.0
"""How long a guard may take to kill a tree before it is done from outside."""
LAST_SECONDS = 5.0
"""How long we wait for what was killed from outside before it counts as a survivor."""
BUSY = 0.01
"""The share of one processor that counts as being at work."""
ROOM_SECONDS = 0.25
"""How often the disk is looked at."""
HOLD = "~"
"""A tick's word for «it waits for somebody»: neither of its clocks runs meanwhile."""
_RUNS, _ASKED, _KILLED, _FORCED, _GIVEN_UP = range(5)
_NEVER = float("inf")


class Idle:
    """Notices that a tree neither writes nor computes. A long time alone is no reason."""

    def __init__(self, bound: float, now: float) -> None:
        self._bound = bound
        self._since = now
        self._every = min(max(bound / 10, 0.1), 30.0)
        self._next = now + self._every if bound else _NEVER
        self._cpu = 0.0
        self._sampled = now

    @property
    def next_look(self) -> float:
        """When to look again."""
        return self._next

    def wrote(self, now: float) -> None:
        """There was output."""
        self._since = now

    def seconds(self, now: float) -> float:
        """For how long it has neither written nor computed, as far as was looked."""
        return max(0.0, now - self._since)

    def too_long(self, now: float, child: Child) -> bool:
        """Whether nothing happened for the whole time. Looks into /proc only in silence."""
        if now < self._next:
            return False
        self._next = now + self._every
        if now - self._since < self._every:
            return False
        used = child.cpu_seconds()
        if abs(used - self._cpu) > BUSY * (now - self._sampled):
            self._since = now
        self._cpu, self._sampled = used, now
        return now - self._since >= self._bound


class Room:
    """Notices that a tree fills the disk: more than its share, or the last of it.

    Asking the file system costs nothing, but does not say who wrote; so only when it lost more than
    the tree's share are the tree's own folders counted, and not for longer than a tenth of the
    time. What is written to files without a name shows in the last of the disk.
    """

    def __init__(self, limits: Limits, folders: tuple[str, ...], now: float) -> None:
        self._most, self._spare = limits.room_bytes, limits.spare_bytes
        self._folders = [folder for folder in folders if self._most or self._spare]
        self._free = {folder: _free(folder) for folder in self._folders}
        self._next = now + ROOM_SECONDS if self._folders else _NEVER
        self._next_count = now

    @property
    def next_look(self) -> float:
        """When to look again."""
        return self._next

    def trouble(self, now: float) -> str:
        """«disk» where too little is left, «room» where the tree took too much."""
        if now < self._next:
            return ""
        self._next = now + ROOM_SECONDS
        if self.scarce():
            return "disk"
        free = {folder: _free(folder) for folder in self._folders}
        lost = max(self._free[folder] - free[folder] for folder in self._folders)
        if not self._most or lost <= self._most or now < self._next_count:
            return ""
        full = holds_more(self._folders, self._most)
        after = time.monotonic()
        self._next_count = after + 9 * (after - now)
        return "room" if full else ""

    def scarce(self) -> bool:
        """Whether a file system has less left than it must keep."""
        return any(_free(folder) < self._spare for folder in self._folders)


def _free(folder: str) -> float:
    """What is left on its disk; nobody can fill what is not there."""
    try:
        return free_bytes(folder)
    except OSError:
        return _NEVER


class Watch:
    """The loop around one child."""

    def __init__(
        self,
        child: Child,
        launch: Launch,
        streams: dict[int, Pump],
        *,
        tick: Callable[[], str | None] | None,
        tick_s: float,
        idle: Callable[[float], None] | None,
        started: Callable[[Identity], None] | None,
        begun: float,
    ) -> None:
        self.stopped = ""
        self.disk_full = False
        self._child = child
        self._launch = launch
        self._streams = streams
        self._tick = tick
        self._tick_s = tick_s
        self._tell_idle = idle
        self._next_tick = begun + tick_s if tick else _NEVER
        self._ticked = begun
        self._started = started
        self._deadline = begun + launch.time_s if launch.time_s else _NEVER
        self._idle = Idle(launch.idle_s, begun)
        self._room = Room(launch.limits, launch.jail.writable, begun)
        self._step = _RUNS
        self._patience = _NEVER
        self._over = False
        self._poller = select.poll()
        for handle in (*streams, child.pidfd, *([] if child.status is None else [child.status])):
            self._poller.register(handle, select.POLLIN)

    def follow(self) -> bool:
        """Until the tree is gone; whether that is known. On any exception the tree dies first."""
        try:
            self._tell_start()
            while not self._over:
                self._turn()
            self._child.hear()
            self._tell_start()
        except BaseException:
            self._kill_at_once()
            raise
        if self._step == _GIVEN_UP:
            account = self._child.account
            account.left = account.left or [self._child.pid]
            gone = False
        else:
            gone = self._child.gone()
        for handle in list(self._streams):
            self._drain(handle)
        # What filled it in no time has ended by itself
        self.disk_full = self.stopped == "disk" or self._room.scarce()
        return gone

    def _turn(self) -> None:
        looks = (self._idle.next_look, self._room.next_look)
        soonest = min(self._next_tick, self._deadline, self._patience, *looks)
        wait = None if soonest == _NEVER else max(0.0, soonest - time.monotonic()) * 1000 + 1
        for handle, _ in self._poller.poll(wait):
            if handle in self._streams:
                self._read_on(handle)
            elif handle == self._child.pidfd:
                self._over = True
            elif not self._child.hear():
                self._poller.unregister(handle)
        self._tell_start()
        if not self._over:
            self._look(time.monotonic())

    def _tell_start(self) -> None:
        if self._started and self._child.account.pid and self._child.identity:
            tell, self._started = self._started, None
            tell(self._child.identity)

    def _read_on(self, handle: int) -> None:
        """What there is, within bounds: other streams and the clocks get their turn."""
        for _ in range(AT_ONCE):
            if self._read(handle) < CHUNK:
                return

    def _read(self, handle: int) -> int:
        """Pump once; gives how much there was."""
        try:
            data = os.read(handle, CHUNK)
        except BlockingIOError:
            return 0
        if data:
            self._idle.wrote(time.monotonic())
            self._streams[handle].take(data)
        else:
            self._forget(handle)
        return len(data)

    def _forget(self, handle: int) -> None:
        self._poller.unregister(handle)
        del self._streams[handle]
        os.close(handle)

    def _drain(self, handle: int) -> None:
        """What is left in the pipe of a tree that has ended; never waits."""
        room = DRAIN
        while room > 0 and (size := self._read(handle)):
            room -= size
        if handle in self._streams:
            self._forget(handle)

    def _look(self, now: float) -> None:
        account = self._child.account
        if account.ended and self._step == _RUNS and self._patience == _NEVER:
            self._patience = now + SETTLE + KILL_BOUND + ANSWER_SECONDS
        if any(pump.trouble for pump in self._streams.values()):
            self._stop("disk", now, at_once=True)
        full = self._room.trouble(now)
        if full:
            self._stop(full, now, at_once=True)
        if now >= self._deadline:
            self._deadline = _NEVER
            self._stop("time", now)
        if self._idle.too_long(now, self._child):
            self._stop("idle", now)
        self._ask_tick(now)
        if now >= self._patience:
            self._press(now)

    def _ask_tick(self, now: float) -> None:
        if not self._tick or now < self._next_tick:
            return
        if self._tell_idle:
            self._tell_idle(self._idle.seconds(now))
        word = self._tick()
        since, self._ticked = now - self._ticked, now
        self._next_tick = time.monotonic() + self._tick_s
        if word == HOLD:
            self._deadline += since
            self._idle.wrote(now)
        elif word:
            self._stop(word.removeprefix("!"), now, at_once=word.startswith("!"))

    def _stop(self, word: str, now: float, *, at_once: bool = False) -> None:
        """The first word is the reason; a later one can only make it faster."""
        if self._child.account.ended:
            return
        self.stopped = self.stopped or word
        if self._step == _RUNS:
            self._step = _ASKED
            self._patience = now + self._launch.grace_s
            if not at_once and self._launch.grace_s > 0:
                self._child.ask()
        if at_once and self._step == _ASKED:
            self._patience = now

    def _press(self, now: float) -> None:
        """Patience is over: what comes next."""
        if self._step < _KILLED and not self._child.account.ended:
            self._step = _KILLED
            self._patience = now + ANSWER_SECONDS
            self._child.kill()
        elif self._step < _FORCED:
            self._step = _FORCED
            self._patience = now + LAST_SECONDS
            self._child.force()
        else:
            self._step = _GIVEN_UP
            self._over = True

    def _kill_at_once(self) -> None:
        self._child.kill()
        poller = select.poll()
        poller.register(self._child.pidfd, select.POLLIN)
        if not poller.poll(ANSWER_SECONDS * 1000):
            self._child.force()
        if poller.poll(LAST_SECONDS * 1000):
            self._child.gone()
