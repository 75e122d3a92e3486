"""Tools beside what they were before the agent: which file differs, if one does.

Where no sandbox shows our copies in place of the originals, the originals are compared with the
copies by content. The kernel's time of change spares reading: a file is read only if it, or a
folder on the way to it, was changed since the tools were taken.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Container

from truegreen.tuples import NamedTuple
from truegreen.work.toolchain import Pin, Toolchain
from truegreen.work.toolchain.pinning import PACKAGES, identity_of
from truegreen.work.toolchain.scanning import hash_of

_TICK_NS = 20_000_000
"""What was changed so shortly before the tools were taken is read, too."""
_BYTE_CODE = "__pycache__"
CACHES = frozenset({".cache", ".vite", ".vite-temp", ".vitest", ".tmp"})
"""In a folder of packages: written by every run of a tool, and not shown to gates."""
_CARGO_STATE = (".package-cache", ".global-cache", "registry/index", "registry/CACHEDIR.TAG")
_CARGO_STORES = ("registry/", "git/")
_CODE = (".py", ".so", ".pth", ".egg-link", ".pyc", ".pyd")
_SHOWN_MODE = 0o555


class Difference(NamedTuple):
    """The first file that is not what it was, and the first one of Python's byte code."""

    file: str = ""
    byte_code: str = ""


def difference(pin: Pin, tools: Toolchain) -> Difference:
    """What differs between an original and our copy of it."""
    if not tools.taken:
        return Difference(pin.path)
    walk = _Comparison(pin, tools.taken, _ignored_in(pin, tools))
    return walk.result()


def newest_code(
    folder: str, since: int, known: Container[str] = (), without: Container[str] = ()
) -> str:
    """A file of Python code in a folder that was changed since; byte code is left out.

    `known` are files that are compared otherwise, `without` are folders that are not looked into.
    """
    found = []
    pending = [folder]
    while pending:
        try:
            entries = os.scandir(pending.pop())
        except OSError:
            continue  # gone since its parent was read, or unreadable for a gate, too
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != _BYTE_CODE and entry.path not in without:
                        pending.append(entry.path)
                elif entry.name.endswith(_CODE) and _changed(entry, since):
                    found.append(entry.path)
    return min((path for path in found if path not in known), default="")


def _changed(entry: os.DirEntry[str], since: int) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_ctime_ns >= since
    except OSError:
        return False  # gone since its folder was read


def _ignored_in(pin: Pin, tools: Toolchain) -> Callable[[str, bool], bool]:
    """What of a tool changes whenever it is used: by its path in the pin, and whether it is new."""
    if os.path.basename(pin.path) == PACKAGES:
        return lambda path, _: path.split("/", 1)[0] in CACHES
    if pin.path == os.path.realpath(tools.homes.get("CARGO_HOME", "") or "/"):
        return lambda path, added: (
            path.startswith(_CARGO_STATE) or (added and path.startswith(_CARGO_STORES))
        )
    return lambda _, __: False


class _Comparison:
    """A walk through an original and our copy of it, side by side."""

    def __init__(self, pin: Pin, since: int, ignored: Callable[[str, bool], bool]) -> None:
        self._pin, self._taken, self._ignored = pin, since, ignored
        self._since = since - _TICK_NS
        self._byte_code = ""

    def result(self) -> Difference:
        pin = self._pin
        # Another folder of the same name is compared file by file, whatever its times say.
        known = bool(pin.identity) and pin.identity == identity_of(pin.path)
        if pin.file:
            found = "" if self._same_file(pin.copy, pin.path, known=known) else pin.path
        else:
            found = self._folder("", known=known)
        return Difference(found, self._byte_code)

    def _folder(self, path: str, *, known: bool) -> str:
        """The first difference in a folder; `known` says that it was not replaced or moved."""
        ours = os.path.join(self._pin.copy, path) if path else self._pin.copy
        theirs = os.path.join(self._pin.path, path) if path else self._pin.path
        try:
            known = known and os.stat(theirs).st_ctime_ns < self._since
            there = set(os.listdir(theirs))
        except OSError:
            return theirs
        copied = {entry.name: entry for entry in os.scandir(ours)}
        for name in sorted(there | copied.keys()):
            inner = f"{path}/{name}" if path else name
            entry = copied.get(name)
            if self._ignored(inner, entry is None):
                continue
            found = self._entry(inner, entry, known=known) if entry else self._added(inner)
            if found and _BYTE_CODE in inner.split("/"):
                self._byte_code = self._byte_code or found
            elif found:
                return found
        return ""

    def _entry(self, path: str, entry: os.DirEntry[str], *, known: bool) -> str:
        theirs = os.path.join(self._pin.path, path)
        if entry.is_symlink():
            same = os.path.islink(theirs) and os.readlink(theirs) == os.readlink(entry.path)
            return "" if same else theirs
        if entry.is_dir():
            # Behind a link, the folder's own times say nothing about the link
            known = known and not os.path.islink(theirs)
            return self._folder(path, known=known) if os.path.isdir(theirs) else theirs
        return "" if self._same_file(entry.path, theirs, known=known) else theirs

    def _same_file(self, ours: str, theirs: str, *, known: bool) -> bool:
        try:
            linked = os.path.islink(theirs)
            now, was = os.stat(theirs), os.stat(ours)
            if not stat.S_ISREG(now.st_mode) or now.st_size != was.st_size:
                return False
            if (now.st_mode ^ was.st_mode) & _SHOWN_MODE & ~stat.S_IRUSR:
                return False
            if known and not linked and now.st_ctime_ns < self._since:
                return True
            return hash_of(os.path.realpath(theirs)) == hash_of(ours)
        except OSError:
            return False

    def _added(self, path: str) -> str:
        """What our copy has not, if it was put there since; older things were left out of it."""
        place = os.path.join(self._pin.path, path)
        try:
            status = os.lstat(place)
        except OSError:
            return ""
        folder = stat.S_ISDIR(status.st_mode)
        if not folder and not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            return ""
        if status.st_ctime_ns < self._taken:
            return ""
        if not folder:
            return place
        # Folders that were left out of the copy are in it, and empty: this one is new.
        files = (os.path.join(top, name) for top, _, names in os.walk(place) for name in names)
        for file in sorted(files):
            if _BYTE_CODE not in file.split("/"):
                return file
            self._byte_code = self._byte_code or file
        return ""
