"""Kills what has no guard when nobody says in time that it may live on.

A program of its own in a bare interpreter, like the guard, and as poor: it imports nothing of ours.
It is there before what it may have to kill, and knows that by the tag in its environment and by its
process group.
"""

from __future__ import annotations

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any
else:
    import _signal  # as in the guard

CHUNK = 1 << 16
BOUND = 2.0
_LEFT_ALONE = {_signal.SIGKILL, _signal.SIGSTOP, _signal.SIGCONT, _signal.SIGCHLD}


def told_after(mark: bytes, heard: bytes) -> list[int]:
    """The numbers of words that begin with a letter."""
    words = [word[1:] for word in heard.split(b"\n") if word[:1] == mark]
    return [int(word) for word in words if word.isdigit()]


def tagged(tag: bytes) -> list[int]:
    """Living processes with the tag in their environment."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if tag in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue  # gone, or of another user: not one of ours
    return found


def strike(tag: bytes, group: int) -> None:
    """Stop all of them and then kill them, so that no shell runs its next command."""
    deadline = time.monotonic() + BOUND
    signal_group(group, _signal.SIGKILL)
    while (found := tagged(tag)) and time.monotonic() < deadline:
        for number in (_signal.SIGSTOP, _signal.SIGKILL):
            for pid in found:
                try:
                    os.kill(pid, number)
                except OSError:
                    continue  # gone meanwhile
        time.sleep(0.001)


def signal_group(group: int, number: int) -> None:
    """A signal to a whole group, if it is known and there is anybody in it."""
    try:
        if group:
            os.killpg(group, number)
    except OSError:
        return


def main(told: dict[str, Any]) -> None:
    """Until it is told to go, or to kill; its supervisor's end is an order to kill, too."""
    memory, orders = map(int, sys.argv[1:])
    os.close(memory)
    for number in set(range(1, 32)) - _LEFT_ALONE:
        _signal.signal(number, _signal.SIG_IGN)
    until, group = told["until"], 0
    poller = select.poll()
    poller.register(orders, select.POLLIN)
    while (left := until - time.clock_gettime(told["clock"])) > 0:
        if not poller.poll(left * 1000 + 1):
            continue
        heard = os.read(orders, CHUNK)
        if b"Q" in heard:
            return
        if not heard:
            break
        until = max([until, *(moment / 1000 for moment in told_after(b"F", heard))])
        group = max([group, *told_after(b"G", heard)])
    strike(told["tag"], group)
