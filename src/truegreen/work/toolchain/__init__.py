"""The tool chain of gates: taken before the agent starts, and laid over the originals afterwards.

Interpreters, packages and other things that git ignores are what a check runs with. Copies of ours
are pinned, so that nothing an agent does to the originals counts. Knows no verdict and no store.
"""

from __future__ import annotations

import os

from msgspec import Struct

__all__ = ["PLAIN", "Pin", "Python", "Toolchain"]

PLAIN = frozenset(
    {
        *("test", "[", "[[", "grep", "egrep", "fgrep", "rg", "diff", "cmp", "cat", "head", "true"),
        *("tail", "wc", "ls", "stat", "file", "find", "sort", "jq", "cd", "echo", "printf", "exit"),
        *("sha256sum", "md5sum", "false", ":"),
    }
)
"""Programs that need nothing but themselves, and start nothing."""


class Pin(Struct, frozen=True, kw_only=True):
    """A folder or a file as it was before the agent; `copy` is laid over `path`."""

    path: str
    copy: str
    digest: str
    file: bool = False
    seal: str = ""
    """The signature of our copy: while it is the same, the contents need not be read again."""
    product: bool = False
    """Perhaps no tool but something built: of no use once the original is another one."""
    identity: str = ""
    """Device and inode of the original."""

    def covers(self, path: str) -> bool:
        """Whether a path is this one or lies in it."""
        return path == self.path or path.startswith(f"{self.path}/")


class Python(Struct, frozen=True, kw_only=True):
    """An interpreter as gates call it, and what its environment holds."""

    program: str
    version: str
    pytest: str = ""
    plugins: tuple[str, ...] = ()
    stdlib: str = ""
    sites: tuple[str, ...] = ()
    """Where its packages come from, in their order: folders, or archives."""


class Toolchain(Struct, frozen=True, kw_only=True):
    """All that gates run with. `programs` are found outside of the pins, by their signature."""

    pins: tuple[Pin, ...] = ()
    pythons: dict[str, Python] = {}
    programs: dict[str, str] = {}
    found: dict[str, str] = {}
    """Where the programs that commands name were found on the PATH."""
    taken: int = 0
    """When the taking began, in nanoseconds; what is newer may be the agent's."""
    watched: tuple[str, ...] = ()
    """Folders of packages that a script may use unseen: not copied, only looked at for changes."""
    unwatched: tuple[str, ...] = ()
    """Folders of packages inside of them that the Python of the script does not load."""
    settings: dict[str, str] = {}
    """Settings of tools in folders above the copies, by what they were before the agent."""
    homes: dict[str, str] = {}
    """Variables by which tools find what they keep in a person's home."""
    digest: str = ""
    missing: dict[str, str] = {}
    """By a gate's word for Python: why there is none, and what to do."""
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    """Why nothing may run with it any more."""

    def pin_of(self, path: str) -> Pin | None:
        """The pin that covers a path, the innermost if there are several."""
        found = [pin for pin in self.pins if pin.covers(path)]
        return max(found, key=lambda pin: len(pin.path), default=None)

    def copy_of(self, path: str) -> str:
        """Where our copy has what gates see at a path; empty if that is not pinned."""
        pin = self.pin_of(path)
        if pin is None:
            return ""
        return pin.copy if path == pin.path else os.path.join(pin.copy, path[len(pin.path) + 1 :])
