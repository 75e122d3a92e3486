"""Path containment: whether a path is a folder or lies in it.

The three functions differ in what links and `..` mean for the question. All of them compare whole
components, count the folder itself as inside, and take relative paths from the current folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

_MOST_LINKS = 40
"""Linux gives up after as many."""


def is_inside(path: str, folder: str) -> bool:
    """Whether what a path leads to, links followed, lies in a folder."""
    return _is_below(os.path.realpath(path), os.path.realpath(folder))


def is_named_inside(path: str, folder: str) -> bool:
    """Whether a path lies in a folder by its name alone.

    For paths that this process can't look up: places in the view of a sandbox.
    """
    return _is_below(os.path.abspath(path), os.path.abspath(folder))


def name_inside(path: str, folder: str) -> str:
    """The first name below a folder under which a path is looked up; empty if there is none.

    Who can write in the folder can change what such a path leads to, wherever its last link ends.
    """
    top = os.path.realpath(folder)
    for location, rest in _lookups(path):
        if _is_below(location, top) and (location != top or not rest):
            return os.path.join(location, rest) if rest else location
    return ""


def _lookups(path: str) -> Iterator[tuple[str, str]]:
    """Each location on the way to a path as the kernel walks it, and what is left to walk.

    Locations have no links above them. What does not exist is taken by its name.
    """
    # The current folder may have been deleted: it is asked for only where the path needs it.
    location, rest = "/", path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    links = 0
    while True:
        name, _, rest = rest.lstrip("/").partition("/")
        rest = rest.strip("/")
        if name == "..":
            location = os.path.dirname(location)
        elif name not in {"", "."}:
            location = os.path.join(location, name)
        yield location, rest
        try:
            target = os.readlink(location)
        except OSError:
            target = ""
        if target:
            links += 1
            if links > _MOST_LINKS:
                return
            location = "/" if target.startswith("/") else os.path.dirname(location)
            rest = os.path.join(target, rest)
        if not rest:
            return


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
