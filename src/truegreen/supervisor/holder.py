"""The name under which a supervisor holds a lease: machine, boot, process and its start time."""

from __future__ import annotations

import os

import msgspec

from truegreen.record.folders import node
from truegreen.work.tree import Identity, me

__all__ = ["holder_name", "host_name", "node", "process_of", "read_holder"]


def host_name() -> str:
    """The beginning of every holder's name on this machine.

    A process namespace counts as a machine of its own: from inside, its supervisors can't be seen.
    """
    return f"{node()}/{os.stat('/proc/self/ns/pid').st_ino}/"


def holder_name() -> str:
    """This process, as a holder of leases."""
    boot, pid, start = me()
    return f"{host_name()}{boot}/{pid}/{start}"


def read_holder(name: str) -> Identity | None:
    """The process behind a holder's name; names of others say nothing."""
    *_, boot, pid, start = ("", "", *name.split("/"))
    return Identity(boot, int(pid), int(start)) if pid.isdigit() and start.isdigit() else None


def process_of(kept: str) -> Identity | None:
    """The process that a supervisor wrote down beside its lease."""
    known = msgspec.json.decode(kept) if kept else None
    return Identity(**known) if known else None
