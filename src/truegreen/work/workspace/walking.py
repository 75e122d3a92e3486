"""Takes a folder as it is: walks it, names every file, and gives git's tree of it.

Never follows a link, not even one that is put in place while we walk: every step goes from an open
folder to a name in it. Each file is read once, and what was read is what is named. What can't be
taken is listed with its reason. Knows nothing of where the objects are kept.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol

from truegreen import errors
from truegreen.tuples import NamedTuple
from truegreen.work.workspace.disk import FOLDER as OPEN_FOLDER
from truegreen.work.workspace.disk import READING, read_bounded
from truegreen.work.workspace.ignoring import (
    EVERYTHING_IGNORED,
    NOTHING_IGNORED,
    RULES_BYTES,
    Ignoring,
)
from truegreen.work.workspace.names import (
    DEPTH,
    PATH_BYTES,
    is_git,
    shown,
    wrong_link,
    wrong_name,
)
from truegreen.work.workspace.objects import BLOB, FILE, FOLDER, LINK, PROGRAM, TREE, tree_body
from truegreen.work.workspace.packs import WHOLE, Moving

Progress = Callable[[int, int], None]
_STEP = 1000
_MOST_REFUSED = 1000
_PATIENCE = 3
_KINDS = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a pipe",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


class Limits(NamedTuple):
    """How much a snapshot may hold."""

    files: int = 200_000
    bytes: int = 4 << 30


LIMITS = Limits()


class TooMuch(errors.InvalidInput):
    """The folder holds more than a snapshot may."""


class Keeper(Protocol):
    """Where the objects go."""

    def add(self, kind: bytes, body: bytes) -> bytes:
        """Take an object; gives its id."""

    def add_file(self, file: int, size: int) -> bytes:
        """Take a blob from an open file; gives its id, raises Moving if the size is another."""


Rules = Mapping[bytes, bytes]
"""The text of each folder's .gitignore."""


class Choice(NamedTuple):
    """What belongs to the tree.

    A path is left out only if the rules of now *and* those of before ignore it and it is not
    tracked; so nobody hides a file from us by writing a rule, and one that is un-ignored counts.
    """

    now: Ignoring = NOTHING_IGNORED
    before: Ignoring | None = None
    texts_before: Rules = MappingProxyType({})
    reads_rules: bool = True
    tracked: Callable[[], Iterable[bytes]] = tuple
    never: frozenset[bytes] = frozenset()
    never_names: frozenset[bytes] = frozenset()


class Walked(NamedTuple):
    """What a walk took."""

    tree: bytes
    files: int
    bytes: int
    refused: tuple[str, ...]
    notes: tuple[str, ...]
    hidden_rules: Rules = MappingProxyType({})
    """Rules of folders that ignore their own .gitignore, so that no tree holds it."""


class Walk:
    """One walk over one folder."""

    def __init__(
        self, keeper: Keeper, choice: Choice, limits: Limits, progress: Progress | None = None
    ) -> None:
        self._keeper = keeper
        self._choice = choice
        self._limits = limits
        self._progress = progress
        self._files = self._bytes = self._seen = 0
        self._refused: list[str] = []
        self._notes: list[str] = []
        self._hidden_rules: dict[bytes, bytes] = {}
        self._known: tuple[frozenset[bytes], frozenset[bytes]] | None = None

    def take(self, root: int) -> Walked:
        """Walk an open folder."""
        choice = self._choice
        before = choice.now if choice.before is None else choice.before
        tree = self._folder(root, b"", choice.now, before)
        refused = sorted(self._refused[:_MOST_REFUSED])
        if more := len(self._refused) - len(refused):
            refused.append(f"… and {more} more")
        return Walked(
            tree or self._keeper.add(TREE, b""),
            self._files,
            self._bytes,
            tuple(refused),
            tuple(sorted(self._notes[:_MOST_REFUSED])),
            self._hidden_rules,
        )

    def _folder(self, folder: int, prefix: bytes, now: Ignoring, before: Ignoring) -> bytes | None:
        """The tree of an open folder; None if there is nothing in it, as git knows no empty one."""
        now, before = self._rules(folder, prefix, now, before)
        entries = []
        for entry in self._listed(folder, prefix):
            name = os.fsencode(entry.name)
            path = prefix + name
            is_folder = entry.is_dir(follow_symlinks=False)
            if path in self._choice.never or (is_folder and name in self._choice.never_names):
                continue
            gone_now = now.ignored(path, folder=is_folder)
            gone_before = gone_now if before is now else before.ignored(path, folder=is_folder)
            if gone_now and gone_before and not self._is_tracked(path, folder=is_folder):
                self._pass_over(folder, prefix, name)
                continue
            if prefix == b"" and name == b".git":
                continue
            if reason := self._reserved(name, path):
                self._refuse(path, reason)
            elif is_folder:
                inner_now = EVERYTHING_IGNORED if gone_now else now
                inner_before = EVERYTHING_IGNORED if gone_before else before
                if before is now:
                    inner_before = inner_now
                if oid := self._below(folder, name, path, inner_now, inner_before):
                    entries.append((name, FOLDER, oid))
            elif taken := self._leaf(folder, entry, name, path):
                entries.append((name, *taken))
        return self._keeper.add(TREE, tree_body(entries)) if entries else None

    def _pass_over(self, folder: int, prefix: bytes, name: bytes) -> None:
        """Leave something out; a folder that ignores even its own rules had them all the same."""
        if name == b".gitignore":
            self._hidden_rules[prefix] = read_bounded(name, RULES_BYTES, within=folder) or b""

    def _listed(self, folder: int, prefix: bytes) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._seen += 1
                    if self._seen > 4 * self._limits.files:
                        raise self._too_much()
                    yield entry
        except OSError as error:
            self._refuse(prefix.rstrip(b"/") or b".", f"a folder that {_why(error)}")

    def _rules(
        self, folder: int, prefix: bytes, now: Ignoring, before: Ignoring
    ) -> tuple[Ignoring, Ignoring]:
        """The rules within a folder, with its own .gitignore of now and of before."""
        choice = self._choice
        if not choice.reads_rules or (now.whole and before.whole):
            return now, before
        text = read_bounded(b".gitignore", RULES_BYTES, within=folder) or b""
        if choice.before is None:
            both = now.within(prefix, text)
            return both, both
        earlier = choice.texts_before.get(prefix, b"")
        if text != earlier and (text.strip() or earlier.strip()):
            self._notes.append(
                f"{shown(prefix)}.gitignore changed; what only the new rules ignore is taken"
            )
        if text == earlier and now is before:
            both = now.within(prefix, text)
            return both, both
        return now.within(prefix, text), before.within(prefix, earlier)

    def _reserved(self, name: bytes, path: bytes) -> str:
        if is_git(name) and name == b".git":
            return "a repository of its own; its files are taken as plain files, its history is not"
        if len(path) > PATH_BYTES:
            return f"a path of more than {PATH_BYTES} bytes"
        return f"a name that {wrong}" if (wrong := wrong_name(name)) else ""

    def _below(
        self, folder: int, name: bytes, path: bytes, now: Ignoring, before: Ignoring
    ) -> bytes | None:
        if path.count(b"/") >= DEPTH:
            self._refuse(path, f"more than {DEPTH} folders deep")
            return None
        try:
            inner = os.open(name, OPEN_FOLDER, dir_fd=folder)
        except OSError as error:
            self._refuse(path, f"a folder that {_why(error)}")
            return None
        try:
            return self._folder(inner, path + b"/", now, before)
        finally:
            os.close(inner)

    def _leaf(
        self, folder: int, entry: os.DirEntry[str], name: bytes, path: bytes
    ) -> tuple[bytes, bytes] | None:
        try:
            if entry.is_symlink():
                taken = self._link(folder, name, path)
            elif entry.is_file(follow_symlinks=False):
                taken = self._file(folder, name, path)
            else:  # to open a device can have an effect
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                self._refuse(path, _KINDS.get(stat.S_IFMT(mode), "not a file"))
                return None
        except OSError as error:
            self._refuse(path, _why(error))
            return None
        except Moving:
            self._refuse(path, "kept changing while it was read")
            return None
        if taken:
            self._files += 1
            if self._files > self._limits.files:
                raise self._too_much()
            if self._progress and self._files % _STEP == 0:
                self._progress(self._files, self._bytes)
        return taken

    def _link(self, folder: int, name: bytes, path: bytes) -> tuple[bytes, bytes] | None:
        target = os.readlink(name, dir_fd=folder)
        if reason := wrong_link(path, target):
            self._refuse(path, reason)
            return None
        return LINK, self._keeper.add(BLOB, target)

    def _file(self, folder: int, name: bytes, path: bytes) -> tuple[bytes, bytes] | None:
        file = os.open(name, READING, dir_fd=folder)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                self._refuse(path, _KINDS.get(stat.S_IFMT(status.st_mode), "not a file"))
                return None
            oid = self._read(file, status.st_size)
            return (PROGRAM if status.st_mode & stat.S_IXUSR else FILE), oid
        finally:
            os.close(file)

    def _read(self, file: int, size: int) -> bytes:
        self._weigh(size)
        if size <= WHOLE:
            data = os.read(file, size + 1)
            if len(data) == size:
                self._bytes += size
                return self._keeper.add(BLOB, data)
        for _ in range(_PATIENCE):  # big, or not of the size that it had a moment ago
            os.lseek(file, 0, os.SEEK_SET)
            size = os.fstat(file).st_size
            self._weigh(size)
            try:
                oid = self._keeper.add_file(file, size)
            except Moving:
                continue
            self._bytes += size
            return oid
        raise Moving

    def _weigh(self, size: int) -> None:
        if self._bytes + size > self._limits.bytes:
            raise self._too_much()

    def _is_tracked(self, path: bytes, *, folder: bool) -> bool:
        if self._known is None:
            paths = frozenset(self._choice.tracked())
            self._known = paths, frozenset(_folders_of(paths))
        return path in self._known[folder]

    def _refuse(self, path: bytes, reason: str) -> None:
        self._refused.append(f"{shown(path)}: {reason}")

    def _too_much(self) -> TooMuch:
        return TooMuch(
            f"the workspace holds more than {self._limits.files:,} files or "
            f"{self._limits.bytes >> 20:,} MiB that are not ignored; name what is not work in "
            ".gitignore before the agent starts, or run in a smaller folder",
            files=self._files,
            bytes=self._bytes,
        )


def _folders_of(paths: Iterable[bytes]) -> set[bytes]:
    folders: set[bytes] = set()
    for path in paths:
        above = path.rpartition(b"/")[0]
        while above and above not in folders:
            folders.add(above)
            above = above.rpartition(b"/")[0]
    return folders


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "vanished while it was read"
    return f"can't be read ({(error.strerror or 'unknown reason').lower()})"
