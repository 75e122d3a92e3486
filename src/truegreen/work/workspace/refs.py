"""Every ref of a repository as data: what its branches, tags and tracked remotes name now.

An agent can write all of it: reads are bounded in depth and number, and what is odd counts as
absent. Folders behind links are read, for git does so, too. Refs in git's binary table are not
read. Knows nothing of why somebody looks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from msgspec import Struct

from truegreen.patterns import late
from truegreen.work.workspace.disk import read_bounded
from truegreen.work.workspace.dotgit import Repository, head_of, repository_of

HEADS, TAGS, TRACKED = "refs/heads/", "refs/tags/", "refs/remotes/"
MOST = 5000
_ENTRIES = 20_000
_SMALL = 1 << 12
_PACKED_BYTES = 64 << 20
_DEPTH = 12
_PACKED = late(rb"^([0-9a-f]{40}(?:[0-9a-f]{24})?) (refs/[^\x00-\x20\x7f]+)$", re.MULTILINE)
_ID = late(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\n?")


class Standing(Struct, frozen=True, kw_only=True):
    """Where a repository stands: what is checked out, and what every ref names."""

    branch: str = ""
    """The ref that HEAD follows; empty while it follows none."""
    head: str = ""
    refs: dict[str, str] = {}


def standing_of(root: str) -> Standing | None:
    """Where the repository of a work tree stands; nothing where there is none."""
    repository = repository_of(root)
    if repository is None:
        return None
    head = head_of(repository)
    branch = f"{HEADS}{head.branch}" if head.branch else ""
    return Standing(branch=branch, head=head.commit, refs=refs_of(repository))


def heads_at(address: str, root: str) -> dict[str, str]:
    """The branches of a remote that lies on this machine; none of one that has to be called."""
    from urllib.parse import unquote  # noqa: PLC0415 - few repositories have such an address

    place = unquote(address.removeprefix("file://"))
    if "\0" in place or (not os.path.isabs(place) and re.match(r"[^/]*:", place)):
        return {}
    path = os.path.join(root, place)
    repository = repository_of(path) or Repository(path, path)
    return {name: at for name, at in refs_of(repository).items() if name.startswith(HEADS)}


def refs_of(repository: Repository) -> dict[str, str]:
    """Ref → id, the loose before the packed; of too many the branches are kept."""
    packed = read_bounded(os.path.join(repository.common, "packed-refs"), _PACKED_BYTES) or b""
    found = {_text(name): at.decode() for at, name in _PACKED.findall(packed)}
    found.update(_loose(repository.common))
    if len(found) <= MOST:
        return found
    order = (HEADS, TRACKED)
    first = sorted(
        found, key=lambda name: (not name.startswith(order[0]), not name.startswith(order))
    )
    return {name: found[name] for name in first[:MOST]}


def _loose(common: str) -> Iterator[tuple[str, str]]:
    waiting = [("refs", 0)]
    left = _ENTRIES
    while waiting:
        below, depth = waiting.pop()
        folder = os.path.join(common, below)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        left -= len(entries)
        for entry in entries if left >= 0 else ():
            name = f"{below}/{entry.name}"
            if entry.is_dir():
                waiting += [(name, depth + 1)] if depth < _DEPTH else []
            elif _ID.fullmatch(text := read_bounded(entry.path, _SMALL) or b""):
                yield _text(os.fsencode(name)), text.strip().decode()


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
