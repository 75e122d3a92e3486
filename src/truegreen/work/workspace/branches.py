"""Leaves a snapshot as a branch in a user's repository, without running git there.

An agent may have written that repository's settings, hooks and filters, so nothing is started in
it: new objects go into a pack of their own, and the branch is one file, written under git's own
lock. A branch that is not ours any more is left alone, and another name is taken.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from truegreen import errors
from truegreen.tuples import NamedTuple
from truegreen.work.workspace import Snapshot, Workspace, dotgit
from truegreen.work.workspace.disk import read_bounded, room, sync_folder
from truegreen.work.workspace.mirror import Mirror
from truegreen.work.workspace.objects import BLOB, COMMIT, FOLDER, TREE, commit_body, tree_entries
from truegreen.work.workspace.packs import Packer, Packs

PREFIX = "truegreen"
_NAMES = 9
_SMALL = 1 << 16


class Published(NamedTuple):
    """A branch, and the commit that it names."""

    branch: str
    commit: str


class Work(NamedTuple):
    """What is left on the branch: the base, and the work on top of it."""

    base: Snapshot
    left: Snapshot
    head: str
    """The commit that the base was made from; empty where there was none."""
    head_tree: str
    message: str


def publish(top: str, workspace: Workspace, task: str, work: Work, ours: str = "") -> Published:
    """Leave work on the branch of its task; `ours` is the commit that we last left there.

    Changes that were in no commit when the task started get a commit of their own below it.
    """
    repository = dotgit.repository_of(top)
    if repository is None:
        raise errors.InvalidInput(f"{top} is no git work tree any more")
    if problem := dotgit.unwritable_format(repository):
        raise errors.InvalidInput(f"{top} keeps its {problem}; the work is kept by truegreen alone")
    common = os.path.realpath(repository.common)
    with _packer(common) as packer:
        for tree in (work.base, work.left):
            _copy_tree(_tree(tree), workspace.mirror, packer)
        parents = [bytes.fromhex(work.head)] if work.head else []
        now = int(time.time())
        if work.base.digest != f"tree:{work.head_tree}":
            message = f"Changes that were in no commit when {task} started\n"
            body = commit_body(_tree(work.base), parents, now, message.encode())
            parents = [packer.add(COMMIT, body)]
        body = commit_body(_tree(work.left), parents, now, work.message.encode("utf-8", "replace"))
        commit = packer.add(COMMIT, body)
        packer.finish()
    branch = _point(repository._replace(common=common), task, commit.hex(), ours)
    return Published(branch, commit.hex())


def _tree(snapshot: Snapshot) -> bytes:
    return bytes.fromhex(snapshot.digest.partition(":")[2])


# -- objects --------------------------------------------------------------------------------------


@contextlib.contextmanager
def _packer(common: str) -> Iterator[Packer]:
    objects = os.path.join(common, "objects")
    folder = os.path.join(objects, "pack")
    if os.path.islink(objects) or os.path.islink(folder):
        raise errors.InvalidInput(f"{folder} is a link: nothing is written there")
    os.makedirs(folder, exist_ok=True)
    packer = Packer(folder, _known(objects))
    try:
        with room(f"the repository {common}"):
            yield packer
    finally:
        packer.abandon()


def _known(objects: str) -> Callable[[bytes], bool]:
    """Whether the repository itself has an object, loose or packed; what it borrows is copied."""
    packs = Packs(os.path.join(objects, "pack"))
    with contextlib.suppress(errors.Broken, OSError, ValueError):  # then more is copied than needed
        packs.refresh()

    def has(oid: bytes) -> bool:
        name = oid.hex()
        return os.path.isfile(os.path.join(objects, name[:2], name[2:])) or packs.has(oid)

    return has


def _copy_tree(tree: bytes, mirror: Mirror, packer: Packer) -> None:
    """Every object below a tree that the repository does not have yet."""
    seen: set[bytes] = set()
    waiting = [tree]
    while waiting:
        oid = waiting.pop()
        if oid in seen:
            continue
        seen.add(oid)
        body = mirror.tree(oid)
        packer.add(TREE, body)
        for _, mode, below in tree_entries(body):
            if mode == FOLDER:
                waiting.append(below)
            elif below not in seen:
                seen.add(below)
                if not packer.has(below):
                    packer.add(BLOB, mirror.read(below, BLOB))


# -- the branch -----------------------------------------------------------------------------------


def _point(repository: dotgit.Repository, task: str, commit: str, ours: str) -> str:
    """Let the first name that is free, or ours, name a commit."""
    plain = f"{PREFIX}/{task}"
    if dotgit.resolve(repository, f"refs/heads/{PREFIX}".encode()):
        plain = f"{PREFIX}-{task}"  # a branch `truegreen` leaves no room for names below it
    for name in (plain, *(f"{plain}-{number}" for number in range(2, _NAMES + 1))):
        if _set(repository, name, commit, ours):
            return name
    raise errors.InvalidInput(f"{plain} and its like are taken by other branches")


def _set(repository: dotgit.Repository, branch: str, commit: str, ours: str) -> bool:
    """Set a branch under git's lock, if it does not exist or still names our own commit."""
    path = os.path.join(repository.common, "refs", "heads", *branch.split("/"))
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    if os.path.realpath(folder) != folder:
        raise errors.InvalidInput(f"{folder} is a link: nothing is written there")
    lock = f"{path}.lock"
    try:
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    except FileExistsError:
        return False  # another git process holds the lock
    try:
        with open(handle, "wb") as file:
            file.write(commit.encode("ascii") + b"\n")
            file.flush()
            os.fsync(file.fileno())
        now = dotgit.resolve(repository, f"refs/heads/{branch}".encode())
        if (now and now != ours) or branch in _checked_out(repository) or os.path.islink(path):
            return False
        os.replace(lock, path)
        sync_folder(folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(lock)
    return True


def _checked_out(repository: dotgit.Repository) -> set[str]:
    """Branches that a work tree of the repository stands on: theirs are not moved."""
    trees = os.path.join(repository.common, "worktrees")
    others = os.listdir(trees) if os.path.isdir(trees) else []
    heads = [repository.common, *(os.path.join(trees, name) for name in others)]
    found = set()
    for folder in heads:
        text = read_bounded(os.path.join(folder, "HEAD"), _SMALL) or b""
        found.add(os.fsdecode(text.strip().removeprefix(b"ref: refs/heads/")))
    return found
