"""Settings files that an agent could reach: shown read-only in a jail, looked at before and after.

It knows where such files would be found, and whether the bytes there are the same; what they say,
and what follows from a change, is the business of others.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from os import path as paths

from truegreen.config import FILE_BYTES, FILE_NAME, spot
from truegreen.paths import is_inside, name_inside
from truegreen.tuples import NamedTuple
from truegreen.work.jail import Placed

FACT = "settings"
"""The fact of a run: settings files, and whether each was the same after its agent as before."""
_ABSENT = ""


def around(files: Iterable[str], folder: str) -> tuple[str, ...]:
    """The files that anybody uses, and every place upward where one would be found."""
    found = [spot(paths.join(above, FILE_NAME)) for above in _upward(paths.realpath(folder))]
    return tuple(dict.fromkeys((*(spot(file) for file in files if file), *found)))


def signed(files: Iterable[str]) -> dict[str, str]:
    """What each file is known by now; one that is not there, too."""
    return {file: _signature(file) for file in files}


def compared(before: Mapping[str, str], top: str, used: Iterable[str] = ()) -> dict[str, bool]:
    """Which are the same as before: all that are used or in the tree, else those that aren't."""
    named = {spot(file) for file in used if file}
    same = {file: signature == _signature(file) for file, signature in before.items()}
    return {
        file: kept
        for file, kept in same.items()
        if not kept or file in named or name_inside(file, top)
    }


class Life(NamedTuple):
    """From when to when somebody could do something, in microseconds; maybe until now."""

    began: int
    ended: int | None
    skew: int = 0
    """By how much the clock of the record and that of the files may differ."""

    def includes(self, at: int) -> bool:
        """Whether a moment lies in it."""
        over = self.ended is not None and at > self.ended + self.skew
        return at >= self.began - self.skew and not over


def changed_at(file: str) -> tuple[int, ...]:
    """When a file, and what it leads to, last became what it is; nobody but root can set that.

    Of one that is gone: when its folder last changed.
    """
    places = dict.fromkeys((spot(file), paths.realpath(file)))
    return tuple(_ctime(place) for place in places)


def could_write(same: Mapping[str, bool], file: str, times: Iterable[int], life: Life) -> bool:
    """Whether a run could have written a file: by what was seen of it, else by its times."""
    seen = same.get(spot(file))
    return any(map(life.includes, times)) if seen is None else not seen


def still(files: Iterable[str], top: str, covered: Iterable[str] = ()) -> tuple[Placed, ...]:
    """Those files, read-only over themselves; not where something else covers them.

    Nothing can be laid over a link or over what is not there: an agent can make one. That is seen
    when it has gone.
    """
    covers = [paths.realpath(each) for each in covered]
    return tuple(
        Placed(file, file)
        for file in files
        if paths.isfile(file)
        and paths.realpath(file) == file
        and (is_inside(file, top) or not any(is_inside(file, each) for each in covers))
    )


def _ctime(path: str) -> int:
    while True:
        try:
            return os.lstat(path).st_ctime_ns // 1000
        except OSError:
            if path == paths.dirname(path):
                raise
            path = paths.dirname(path)


def _signature(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            return hashlib.sha256(stream.read(FILE_BYTES + 1)).hexdigest()
    except FileNotFoundError:
        return _ABSENT
    except OSError as error:
        return f"unread {error.errno}"


def _upward(folder: str) -> Iterator[str]:
    yield folder
    while (above := paths.dirname(folder)) != folder:
        folder = above
        yield folder
