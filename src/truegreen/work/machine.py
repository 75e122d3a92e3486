"""What this machine has, and how much of it is used: memory, disk. Only looks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache

_CGROUPS = "/sys/fs/cgroup"
_BLOCK = 512


@cache
def machine_memory() -> int:
    """Bytes of memory that processes of ours can have together: the machine's, or a container's."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min((physical, *_granted(_CGROUPS, "/proc/self/cgroup")))


def _granted(top: str, listing: str) -> list[int]:
    """What control groups, ours and those around it, let us have."""
    try:
        with open(listing, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    limits = []
    for _, kinds, place in lines:
        if kinds and "memory" not in kinds.split(","):
            continue
        folder, name = (f"{top}/memory", "memory.limit_in_bytes") if kinds else (top, "memory.max")
        steps = place.strip("/").split("/")
        for depth in range(len(steps) + 1):
            text = _first_line(os.path.join(folder, *steps[:depth], name))
            limits += [int(text)] if text.isdigit() else []
    return limits


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def free_bytes(folder: str) -> int:
    """What its file system has left for us."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def holds_more(folders: Iterable[str], most: int) -> bool:
    """Whether the files in some folders take more room than that; looks no further than it must."""
    front = list(folders)
    seen: set[tuple[int, int]] = set()
    total = 0
    while front and total <= most:
        try:
            with os.scandir(front.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        front.append(entry.path)
                    elif found.st_nlink == 1 or (found.st_dev, found.st_ino) not in seen:
                        seen.add((found.st_dev, found.st_ino))
                        total += found.st_blocks * _BLOCK
        except OSError:
            continue  # it changes while we look
    return total > most
