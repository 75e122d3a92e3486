"""The commits above HEAD in an agent's repository, read as data: no git runs there.

An object is what its hash says or it is not there. What lies in a pack is not looked for, and then
the walk says that it does not know the rest.
"""

from __future__ import annotations

import os.path
import re
import zlib

from msgspec import Struct

from truegreen.work.workspace.disk import read_bounded
from truegreen.work.workspace.dotgit import Repository, repository_of, resolve
from truegreen.work.workspace.objects import COMMIT, name_of

_OBJECT_BYTES = 1 << 20
_MOST_COMMITS = 500
_PARENT = re.compile(rb"^parent ([0-9a-f]{40})$", re.MULTILINE)


class History(Struct, frozen=True, kw_only=True):
    """What was committed since a base, as far as it can be seen."""

    commits: tuple[str, ...] = ()
    whole: bool = False
    """Every commit down to the base was seen."""
    branches: tuple[str, ...] = ()
    """Which of the names that were asked for are branches."""


def history_of(root: str, head: str, base: str, branches: tuple[str, ...] = ()) -> History:
    """Walk from HEAD down to the commit that the agent started from."""
    repository = repository_of(root)
    if repository is None:
        return History()
    commits, whole = _walked(repository, head, base)
    there = [name for name in branches if _is_branch(repository, name)]
    return History(commits=commits, whole=whole, branches=tuple(there))


def _walked(repository: Repository, head: str, base: str) -> tuple[tuple[str, ...], bool]:
    seen: dict[str, None] = {}
    waiting, whole = [head] if head else [], True
    while waiting and len(seen) < _MOST_COMMITS:
        commit = waiting.pop()
        if commit in seen or commit == base:
            continue
        body = _commit(repository, commit)
        if body is None:
            whole = False
            continue
        seen[commit] = None
        waiting += [parent.decode() for parent in _PARENT.findall(body.partition(b"\n\n")[0])]
    return tuple(seen), whole and not waiting


def _commit(repository: Repository, commit: str) -> bytes | None:
    """A loose commit, if it is what its name says."""
    path = os.path.join(repository.common, "objects", commit[:2], commit[2:])
    pressed = read_bounded(path, _OBJECT_BYTES)
    if pressed is None or not re.fullmatch(r"[0-9a-f]{40}", commit):
        return None
    try:
        data = zlib.decompressobj().decompress(pressed, _OBJECT_BYTES)
    except zlib.error:
        return None
    head, _, body = data.partition(b"\0")
    named = head.startswith(b"commit ") and name_of(COMMIT, body).hex() == commit
    return body if named else None


def _is_branch(repository: Repository, name: str) -> bool:
    if not re.fullmatch(r"\w[\w./-]{0,200}", name) or ".." in name:
        return False
    return bool(resolve(repository, f"refs/heads/{name}".encode()))
