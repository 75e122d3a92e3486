"""Globs over the paths of a tree: what is protected, and what a diff may touch. Pure.

A glob covers what it names and all below it: `tests`, `tests/` and `tests/**` cover the folder,
`*.toml` and `conftest.py` (without a slash) every file of that name at any depth, `/conftest.py`
only the one at the top, `src/**/test_*.py` any depth below `src`. Byte code counts as its source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from truegreen import errors
from truegreen.patterns import late
from truegreen.work.workspace.wildcards import (
    PATTERN_BYTES,
    Malformed,
    part_expression,
    path_expression,
    spans_folders,
    split_path,
)

_BYTE_CODE = late(rb"(.*/)?__pycache__/([^/]+?)\.[^/]*\.py[co]", re.DOTALL)


class Globs:
    """Several globs as one question."""

    def __init__(self, patterns: Iterable[str], *, folders: Iterable[bytes] = ()) -> None:
        """`folders` are covered besides: paths as they are, without wildcards."""
        self._parts = [_parts(pattern) for pattern in patterns]
        expressions = [path_expression(parts) for parts in self._parts]
        expressions += [re.escape(folder) for folder in folders]
        self._covers = re.compile(
            b"(?:" + b"|".join(expressions) + b")(?:/.*)?" if expressions else rb"(?!)", re.DOTALL
        ).fullmatch

    def cover(self, path: bytes | str) -> bool:
        """Whether a path is meant."""
        path = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
        if self._covers(path):
            return True
        compiled = _BYTE_CODE.fullmatch(path)
        return bool(compiled and self._covers((compiled[1] or b"") + compiled[2] + b".py"))

    def reach_below(self, path: bytes) -> bool:
        """Whether a glob goes on below a path, so that a link there would bring in what it means.

        A glob that starts with `**` means the same files at their own place, wherever a link is.
        """
        parts = path.split(b"/")
        return any(_reaches(glob, parts, begun=False) for glob in self._parts)


def _parts(pattern: str) -> list[bytes]:
    raw = pattern.encode("utf-8", "surrogateescape").removeprefix(b"./")
    try:
        parts = [part for part in split_path(raw) if part not in {b"", b"."}]
        path_expression(parts)
    except Malformed as wrong:
        raise errors.InvalidInput(f"{pattern!r} is not a glob: {wrong}") from None
    if not parts or b".." in parts or raw.startswith(b"!") or len(raw) > PATTERN_BYTES:
        raise errors.InvalidInput(f"{pattern!r} is not a path or a glob in the workspace")
    at_any_depth = len(parts) == 1 and not raw.startswith(b"/") and not spans_folders(parts[0])
    return [b"**", *parts] if at_any_depth else parts


def _reaches(glob: list[bytes], parts: list[bytes], *, begun: bool) -> bool:
    if not parts:
        return begun and bool(glob)
    if not glob:
        return False
    if spans_folders(glob[0]):
        return _reaches(glob[1:], parts, begun=begun) or _reaches(glob, parts[1:], begun=begun)
    fits = re.fullmatch(part_expression(glob[0]), parts[0], re.DOTALL)
    return bool(fits) and _reaches(glob[1:], parts[1:], begun=True)
