"""The end of what an agent wrote, for a page: so many lines, as text that can do nothing.

Only operators see it as it is kept; for others it is masked as the API masks it, and what can't be
masked yet is left to that. The whole of it, byte for byte, is the API's to give.
"""

from __future__ import annotations

import os
import stat
import time
from typing import BinaryIO

import msgspec

from truegreen.app import place_of
from truegreen.config import Config
from truegreen.faces.web.api.masking import NAME_SECONDS, Mask
from truegreen.record.rows import Run
from truegreen.tuples import NamedTuple

LINES = 200
_MOST_BYTES = 128 * 1024
_MOST_MASKED = 4 << 20
"""Of a longer output only the end is masked, and nobody knows then where it goes on."""
_BEFORE = 64 * 1024
"""So much before the end is masked with it: a secret may have begun there."""
_LONGEST_LINE = 2000
_NAME = "stdout.log"


class Output(NamedTuple):
    """The last lines of a run's output, and how far into it they reach."""

    lines: tuple[str, ...] = ()
    size: int = 0
    cut: bool = False
    """Whether something came before these lines."""
    why_none: str = ""
    follow: int | None = None
    """Where the API goes on from here; None where that can't be said."""


def output_of(config: Config, run: Run, mask: Mask | None = None) -> Output:
    """What can be shown of a run's output; why there is nothing, if there is nothing."""
    try:
        handle = os.open(_path(config, run), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        live = run.exit_reason is None
        words = "has written nothing yet" if live else "its output is not on this machine"
        return Output(why_none=words, follow=0)
    with open(handle, "rb") as file:
        kind = os.fstat(handle)
        if not stat.S_ISREG(kind.st_mode):
            return Output(why_none="its output is not a file any more")
        if mask:
            return _masked(file, kind, run, mask)
        file.seek(max(0, kind.st_size - _MOST_BYTES))
        return _last(file.read(_MOST_BYTES), kind.st_size, kind.st_size)


def _path(config: Config, run: Run) -> str:
    facts = msgspec.json.decode(run.facts) if run.facts else {}
    # Written down when the run ends; it may have run under another state directory.
    return str(facts.get("log") or os.path.join(place_of(config).run_dir(run.id), _NAME))


def _masked(file: BinaryIO, kind: os.stat_result, run: Run, mask: Mask) -> Output:
    """The end of it without names and secrets."""
    mask.look()
    live, size = run.exit_reason is None, kind.st_size
    fresh = live and run.agent_key is not None and time.time() - kind.st_mtime < NAME_SECONDS
    whole = size <= _MOST_MASKED
    if fresh and not mask.names:
        return Output(why_none="is being written just now", follow=0 if whole else None)
    start = 0 if whole else size - _MOST_BYTES - _BEFORE
    file.seek(start)
    # What may become a secret when more comes is held back while more may come.
    out = mask.feed(file.read(size - start)) + (b"" if live else mask.flush())
    if whole:
        return _last(out[-_MOST_BYTES:], len(out), len(out))
    return _last(out[_BEFORE:].partition(b"\n")[2], size, None)


def _last(tail: bytes, size: int, follow: int | None) -> Output:
    found = tail.decode("utf-8", "replace").splitlines()
    shown = [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} …" for line in found]
    cut = len(shown) > LINES or len(tail) < size
    none = "" if size else "nothing was written"
    return Output(tuple(shown[-LINES:]), size, cut, none, follow)
