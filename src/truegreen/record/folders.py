"""One task per folder: how the folder of a run is written down, and when two of them overlap.

A lease names the folder that its run may write to, by its real path and its host, and ends in a
slash, so that a parent folder is a prefix of its children and `/a/b/` is none of `/a/bc/`. The
queue's hold and the rules of the database are made of these pieces.
"""

from __future__ import annotations

import os

from truegreen.record.fleet_rules import ONE_BY_ONE
from truegreen.record.rules import Guard, Rule

LONGEST = 20_000
_TAKEN = "another run works in this folder: truegreen list --status running"


def node() -> str:
    """What this machine calls itself."""
    return os.uname().nodename[:100]


def folder_key(path: str) -> str:
    """A folder as the store keeps it: its real path, with a slash at the end."""
    plain = os.fsencode(os.path.realpath(path)).decode("utf-8", "backslashreplace")
    return plain.rstrip("/") + "/"


def overlapping(one: str, other: str) -> str:
    """That two folders of one host are the same, or that one lies in the other."""
    return (
        f"{one}.folder_host = {other}.folder_host"
        f" AND (substr({one}.folder, 1, length({other}.folder)) = {other}.folder"
        f" OR substr({other}.folder, 1, length({one}.folder)) = {one}.folder)"
    )


def held(lease: str, now: str, boot: str) -> str:
    """That a lease holds a folder: one that ran out, or of an earlier boot, holds nothing."""
    return f"{lease}.folder <> '' AND {lease}.expires_at >= {now} AND {lease}.boot = {boot}"


# SQLite reads tables in the order of a CROSS JOIN: one task's demand first, then the few others.
# The demand of each other task is looked up by itself: PostgreSQL must not read those of all tasks.
def _overlaps(task: str) -> str:
    return (
        f"EXISTS (SELECT 1 FROM demands own WHERE own.task_key = {task}"
        f" AND {overlapping('own', 'demands')} {ONE_BY_ONE})"
    )


BETWEEN_ATTEMPTS = (
    "FROM demands CROSS JOIN tasks begun"
    " WHERE begun.status = 'queued' AND begun.attempt > 0 AND begun.sealed_at IS NULL"
    " AND demands.folder IS NOT NULL AND demands.task_key <> begun.key"
    f" AND {_overlaps('begun.key')}"
)
"""Tasks that have begun in the folder of another one (`demands`) and are queued to go on there."""
ABOUT_TO = (
    "FROM demands CROSS JOIN reservations"
    " WHERE reservations.expires_at > :now AND demands.folder IS NOT NULL"
    f" AND demands.task_key <> reservations.task_key AND {_overlaps('reservations.task_key')}"
)
"""Tasks that a supervisor is about to carry out in the folder of another one (`demands`)."""

_NOW = "(NEW.expires_at - NEW.lasts)"
"""The lease clock, which triggers can't read, as the lease that is written tells it."""
_OTHERS = (
    f"EXISTS (SELECT 1 FROM leases other WHERE other.run_key <> NEW.run_key"
    f" AND {held('other', _NOW, 'NEW.boot')} AND {overlapping('other', 'NEW')})"
)
_NAMED = "NEW.folder <> ''"
_RENEWED_LATE = (
    f"{_NAMED} AND (OLD.boot <> NEW.boot OR OLD.expires_at < {_NOW}"
    " OR OLD.folder <> NEW.folder OR OLD.folder_host <> NEW.folder_host)"
)
"""A renewal in time needs no look: nothing could have taken the folder meanwhile."""

_TURN = (
    "INSERT INTO folder_turns (host, turns) VALUES (NEW.folder_host, 1)"
    " ON CONFLICT (host) DO UPDATE SET turns = folder_turns.turns + 1"
)
"""A row lock: of two starts on one host at once the second waits here until the first is committed,
so that the rule that follows sees it. SQLite has one writer at a time anyway."""

FOLDERS = (
    Guard(
        "leases_folder_turn",
        "leases",
        "BEFORE INSERT",
        effects=(_TURN,),
        when=_NAMED,
    ),
    Guard(
        "leases_folder_free",
        "leases",
        "AFTER INSERT",
        (Rule("held", _OTHERS, _TAKEN),),
        when=_NAMED,
    ),
    Guard(
        "leases_folder_late_turn",
        "leases",
        "BEFORE UPDATE",
        effects=(_TURN,),
        when=_RENEWED_LATE,
    ),
    Guard(
        "leases_folder_kept",
        "leases",
        "AFTER UPDATE",
        (Rule("stale", _OTHERS, "its lease ran out, and another run works in its folder"),),
        when=_RENEWED_LATE,
    ),
)
