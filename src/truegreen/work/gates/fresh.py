"""Artifacts that have to come from this run: last night's report is no result of tonight.

Judged by content and by the file's identity (inode and time of birth), never by the time of its
last change: a touch, a rewrite of the same bytes in place and a move there and back count nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from truegreen.errors import InvalidInput
from truegreen.work.births import birth_of
from truegreen.work.documents import inside
from truegreen.work.gates.scene import Scene

EVIDENCE = "artifacts"
_MOST_FILES = 2000
_CHUNK = 1 << 20


def on_base(scene: Scene) -> bool:
    """Whether a gate is asked about the tree from before the agent, and not about its work."""
    same = not scene.changes and scene.left.digest == scene.base.digest
    return same and EVIDENCE not in scene.pinned


def recorded(paths: Iterable[str], scene: Scene) -> dict[str, list[str]]:
    """Files of the copy by what they are known by: digest of the content, and identity."""
    found = sorted(set(paths))
    if len(found) > _MOST_FILES:
        raise InvalidInput(f"fresh = true with more than {_MOST_FILES} files: name fewer")
    return {path: [_digest(path, scene), _identity(path, scene)] for path in found}


def is_fresh(path: str, scene: Scene) -> bool:
    """Whether this run created or changed a file."""
    pinned: dict[str, Any] | None = scene.pinned.get(EVIDENCE)
    if pinned is None:
        return any(change.path == path and change.how != "deleted" for change in scene.changes)
    was = pinned.get(path)
    if was is None:
        return True
    digest, identity = was
    if digest != _digest(path, scene):
        return True
    now = _identity(path, scene)
    return bool(now) and now != identity


def _digest(path: str, scene: Scene) -> str:
    whole = sha256()
    with open(os.path.join(scene.root, path), "rb") as file:
        while data := file.read(_CHUNK):
            whole.update(data)
    return f"sha256:{whole.hexdigest()}"


def _identity(path: str, scene: Scene) -> str:
    """Which file lies in the workspace; empty if none does, or a link leads out of it."""
    place = os.path.realpath(os.path.join(scene.place, path))
    try:
        if not inside(place, scene.place):
            return ""
        status = os.lstat(place)
        return f"{status.st_dev}:{status.st_ino}:{birth_of(place)}"
    except OSError:
        return ""
