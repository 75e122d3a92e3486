"""What an agent could change, which runs as the same user as we do; and paths by other names."""

from __future__ import annotations

import os
import stat


def within_reach(path: str) -> bool:
    """Whether this user could change what lies there, or put something else in its place."""
    place = os.path.realpath(path)
    user = os.geteuid()
    if _open_to(place, user):
        return True
    while (above := os.path.dirname(place)) != place:
        place = above
        if _open_to(place, user) and not os.stat(place).st_mode & stat.S_ISVTX:
            return True
    return False


def _open_to(place: str, user: int) -> bool:
    try:
        owner = os.stat(place).st_uid
    except OSError:
        return True
    # An owner without the right to write can take it
    return user in (0, owner) or os.access(place, os.W_OK)


def named_in(path: str, place: str) -> str:
    """A path below a folder by the folder's real name, though a link on the way there was used.

    What lies further down is taken at its word: links there may be the agent's.
    """
    above = path
    while (up := os.path.dirname(above)) != above:
        above = up
        if above != place and os.path.realpath(above) == place:
            return os.path.join(place, os.path.relpath(path, above))
    return path
