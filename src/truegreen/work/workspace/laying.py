"""Lays a tree down as files: a fresh folder, every blob named anew, nothing followed.

First it is decided what stands where (`composed`, pure): the tree that was left, with what is
protected taken whole from the base. Then it is written: only new names below one open folder,
links last, so that nothing is ever written through one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from truegreen import errors
from truegreen.tuples import NamedTuple
from truegreen.work.workspace.disk import FOLDER
from truegreen.work.workspace.globs import Globs
from truegreen.work.workspace.names import link_goal, shown, wrong_link, wrong_name
from truegreen.work.workspace.objects import LINK, PROGRAM, Entry

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_ALIASES = 100

Tree = dict[bytes, Entry]


class Change(NamedTuple):
    """A path that differs between two trees: `added`, `changed` or `deleted`."""

    path: str
    how: str


class Composed(NamedTuple):
    """What to lay down, and what an agent had changed where it should not have."""

    tree: Tree
    tampered: tuple[Change, ...]


def compared(before: Tree, after: Tree, paths: Iterable[bytes] | None = None) -> tuple[Change, ...]:
    """What differs, by path; a change of kind or of the executable bit counts."""
    at = sorted(before.keys() | after.keys() if paths is None else paths)
    return tuple(
        Change(shown(path), _how(before.get(path), after.get(path)))
        for path in at
        if before.get(path) != after.get(path)
    )


def _how(before: Entry | None, after: Entry | None) -> str:
    if before is None:
        return "added"
    return "changed" if after else "deleted"


def composed(
    left: Tree,
    base: Tree,
    protect: tuple[str, ...],
    read: Callable[[bytes], bytes],
    unless: tuple[str, ...] = (),
) -> Composed:
    """The tree that was left, with what is protected as it is in the base, whole.

    What `unless` covers stays as it was left.
    """
    if not protect:
        return Composed(left, ())
    globs, free = _with_aliases(protect, base, read), Globs(unless)
    ours = {path: e for path, e in base.items() if globs.cover(path) and not free.cover(path)}
    theirs = {
        path: entry
        for path, entry in left.items()
        if (not globs.cover(path) and not _brings_in(path, entry, base, globs)) or free.cover(path)
    }
    for path in _folders_above(ours) & theirs.keys():  # a file or link where a folder must be
        del theirs[path]
    for path in [path for path in theirs if _stands_below(path, ours)]:
        del theirs[path]
    dropped = left.keys() - theirs.keys()
    return Composed(theirs | ours, compared(base, left, dropped | ours.keys()))


def completed(tree: Tree, more: Tree) -> Tree:
    """A tree with further files where it has nothing: neither they nor what is in their way."""
    folders = _folders_above(tree)
    free = {
        path: entry
        for path, entry in more.items()
        if path not in folders and not _stands_below(path, tree)
    }
    return free | tree


def _brings_in(path: bytes, entry: Entry, base: Tree, globs: Globs) -> bool:
    """Whether a link that the agent made would put files under a protected name."""
    return entry.mode == LINK and base.get(path) != entry and globs.reach_below(path)


def _with_aliases(protect: tuple[str, ...], base: Tree, read: Callable[[bytes], bytes]) -> Globs:
    """Globs that also cover what links of the base under a protected name point to."""
    globs, goals = Globs(protect), set[bytes]()
    links = [path for path, entry in base.items() if entry.mode == LINK]
    for _ in range(_MOST_ALIASES):
        meant = [path for path in links if globs.cover(path) or globs.reach_below(path)]
        found = {link_goal(path, read(base[path].oid)) for path in meant} - {b""}
        if found <= goals:
            break
        goals |= found
        globs = Globs(protect, folders=sorted(goals))
    return globs


def _folders_above(paths: Iterable[bytes]) -> set[bytes]:
    return {b"/".join(parts[:n]) for parts in (p.split(b"/") for p in paths)
            for n in range(1, len(parts))}  # fmt: skip


def _stands_below(path: bytes, ours: Tree) -> bool:
    parts = path.split(b"/")
    return any(b"/".join(parts[:n]) in ours for n in range(1, len(parts)))


def lay(
    tree: Tree,
    into: str,
    read: Callable[[bytes], bytes],
    pieces: Callable[[bytes], Iterator[bytes]],
) -> None:
    """Write a tree into a folder that is new or empty; `pieces` gives and checks a blob."""
    os.makedirs(into, mode=0o700, exist_ok=True)
    with os.scandir(into) as entries:
        if any(entries):
            raise errors.InvalidInput(f"{into} is not empty; a clean copy needs a new folder")
    folders = _Folders(os.open(into, FOLDER))
    try:
        files = sorted(tree.items(), key=lambda item: (item[1].mode == LINK, item[0].split(b"/")))
        for path, entry in files:
            *above, name = path.split(b"/")
            folder = folders.go(above)
            _check(name)
            if entry.mode == LINK:
                _lay_link(folder, name, path, read(entry.oid))
            else:
                _lay_file(folder, name, entry, pieces)
    except (FileExistsError, NotADirectoryError) as error:
        raise errors.Broken(f"two entries of a snapshot want the same place in {into}") from error
    finally:
        folders.close()


def _check(name: bytes) -> None:
    if wrong := wrong_name(name):
        raise errors.Broken(f"a snapshot holds {shown(name)!r}, which {wrong}")


def _lay_file(
    folder: int, name: bytes, entry: Entry, pieces: Callable[[bytes], Iterator[bytes]]
) -> None:
    mode = 0o755 if entry.mode == PROGRAM else 0o644
    file = os.open(name, _NEW, mode, dir_fd=folder)
    try:
        for piece in pieces(entry.oid):
            view = memoryview(piece)
            while view:
                view = view[os.write(file, view) :]
    finally:
        os.close(file)


def _lay_link(folder: int, name: bytes, path: bytes, target: bytes) -> None:
    if reason := wrong_link(path, target):
        raise errors.Broken(f"a snapshot holds {reason}: {shown(path)}")
    os.symlink(target, name, dir_fd=folder)


class _Folders:
    """The open folders from the top to where we write; paths come sorted, so each opens once."""

    def __init__(self, top: int) -> None:
        self._open = [top]
        self._names: list[bytes] = []

    def go(self, names: list[bytes]) -> int:
        same = 0
        while same < min(len(names), len(self._names)) and names[same] == self._names[same]:
            same += 1
        while len(self._names) > same:
            self._names.pop()
            os.close(self._open.pop())
        for name in names[same:]:
            self._enter(name)
        return self._open[-1]

    def _enter(self, name: bytes) -> None:
        _check(name)
        try:
            inner = os.open(name, FOLDER, dir_fd=self._open[-1])
        except FileNotFoundError:
            os.mkdir(name, 0o755, dir_fd=self._open[-1])
            inner = os.open(name, FOLDER, dir_fd=self._open[-1])
        self._open.append(inner)
        self._names.append(name)

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())
