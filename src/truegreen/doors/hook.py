"""What a client calls at each of its events: `python -I -S hook.py CLIENT EVENT STATE_DIR`.

A script is compiled anew at each start, so what there is to do stands in `event.py`, and is taken
as Python keeps it compiled for every import; but only where nobody can have put it who could not
have written `event.py` itself. A file that stands alone but for this one. A doubt is a no.
"""

import posix
import sys
from _frozen_importlib_external import (  # built in
    SourceFileLoader,
    cache_from_source,
)

_BODY = "event"
_OTHERS_WRITE = 0o022


def _code(folder: str):  # type: ignore[no-untyped-def] # noqa: ANN202 - typing's names cost a start
    """The body: compiled already, or compiled now; never written by whoever calls."""
    sys.dont_write_bytecode = True
    file = f"{folder}/{_BODY}.py"
    loader = SourceFileLoader(_BODY, file)
    if _is_ours(folder, cache_from_source(file)):
        return loader.get_code(_BODY)
    return loader.source_to_code(loader.get_data(file), file)


def _is_ours(folder: str, kept: str) -> bool:
    """Whether what is kept compiled, and its folder, are as safe as the folder of the source."""
    source = posix.stat(folder)
    open_to = ~source.st_mode & _OTHERS_WRITE
    try:
        found = (posix.lstat(kept.rpartition("/")[0]), posix.lstat(kept))
    except OSError:
        return False
    return all(each.st_uid == source.st_uid and not each.st_mode & open_to for each in found)


if __name__ == "__main__":
    try:
        exec(_code(__file__.rpartition("/")[0] or "."))  # noqa: S102 - our own
    except BaseException as error:  # noqa: BLE001 - a client takes any other status for a yes
        posix.write(2, f"truegreen: the hook can't be loaded: {error!r}\n".encode())
        posix._exit(2)  # noqa: SLF001 - that is its name
