"""Which names and links may stand in a tree: those that can never lead out of it, or into git.

A tree is data that an agent made. A name from it becomes a path of ours, so it is looked at when it
is taken and again when it is laid down. Knows no file system: bytes in, a reason or nothing out.
"""

from __future__ import annotations

import re

from truegreen.patterns import late

PATH_BYTES = 4096
NAME_BYTES = 255
DEPTH = 250

# What HFS+ leaves out when it compares names (U+200C to U+206F and U+FEFF), as UTF-8.
_UNSEEN = late(rb"\xe2\x80[\x8c-\x8f\xaa-\xae]|\xe2\x81[\xaa-\xaf]|\xef\xbb\xbf")
_GIT = frozenset({b".git", b"git~1"})
_MAY_START = frozenset({b".", b"g", b"G", b"\xe2", b"\xef"})  # nearly every name ends here


def is_git(name: bytes) -> bool:
    """Whether some file system or some git takes the name for `.git`."""
    if name[:1] not in _MAY_START:
        return False
    seen = _UNSEEN.sub(b"", name).lower()
    return re.split(rb"[:\\]", seen, maxsplit=1)[0].rstrip(b" .") in _GIT


def wrong_name(name: bytes) -> str:
    """Why one part of a path can't stand in a tree; empty if it can."""
    if name in {b"", b".", b".."}:
        return "is no name"
    if b"/" in name or b"\0" in name:
        return "holds a slash or NUL"
    if len(name) > NAME_BYTES:
        return f"is longer than {NAME_BYTES} bytes"
    if is_git(name):
        return "is a name that git keeps for itself"
    return ""


def wrong_link(path: bytes, target: bytes) -> str:
    """Why a link at a path can't stand in a tree; empty if it can.

    `..` may only lead the target: after a name it could climb out through another link.
    """
    if not target or b"\0" in target or len(target) > PATH_BYTES:
        return "a link to no usable path"
    if target.startswith(b"/"):
        return "a link to an absolute path"
    if path.rpartition(b"/")[2].lower() == b".gitmodules":
        return "a link where git allows none"
    parts = [part for part in target.split(b"/") if part not in {b"", b"."}]
    climbs = 0
    while climbs < len(parts) and parts[climbs] == b"..":
        climbs += 1
    if climbs > path.count(b"/"):
        return "a link that leaves the tree"
    if b".." in parts[climbs:]:
        return "a link that climbs after it went down"
    return ""


def link_goal(path: bytes, target: bytes) -> bytes:
    """The path in the tree that a right link points to; empty for the top."""
    parts = path.split(b"/")[:-1]
    for part in target.split(b"/"):
        if part == b"..":
            parts.pop()
        elif part not in {b"", b"."}:
            parts.append(part)
    return b"/".join(parts)


def shown(path: bytes) -> str:
    """A path as text that every encoder takes: bytes that are no UTF-8 appear as escapes."""
    return path.decode("utf-8", "backslashreplace")
