"""Commands that must not run what an agent could have written: their files as they were before."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from os import path as paths

from truegreen.paths import name_inside

_END = r"(?=[/\s'\":;,&|<>()\]}]|$)"
"""What may follow a path in the midst of a word."""


def out_of_reach(
    words: Sequence[str], *, at: str, root: str, base: Callable[[], str]
) -> tuple[str, ...]:
    """A command whose files, looked for from `at`, are never those of the work tree at `root`.

    What names something there names the same in a copy from before the agent came, which `base`
    lays down: as a word, behind an option's `=`, or in the midst of a line for a shell. A word that
    names a file beside the settings is made whole. Others stay.
    """
    return tuple(_moved(word, at, root, base) for word in words)


def safe_path(path: str, root: str) -> str:
    """A PATH without the folders that an agent could fill: those of its work tree, and no names."""
    given = path.split(os.pathsep)
    return os.pathsep.join(
        each for each in given if paths.isabs(each) and not name_inside(each, root)
    )


def _moved(word: str, at: str, root: str, base: Callable[[], str]) -> str:
    option, mark, value = word.partition("=")
    if word.startswith("-"):
        return f"{option}={_moved(value, at, root, base)}" if mark and value else word
    place = paths.normpath(paths.join(at, word))
    if not word or not (paths.isabs(word) or "/" in word or paths.isfile(place)):
        return _renamed(word, root, base)
    # By its first name there: a link that the agent laid further down would lead elsewhere.
    theirs = name_inside(place, root)
    if not theirs:
        return place if paths.isfile(place) else _renamed(word, root, base)
    copy = paths.normpath(paths.join(base(), paths.relpath(theirs, root)))
    return copy if paths.lexists(copy) or paths.lexists(place) else word


def _renamed(word: str, root: str, base: Callable[[], str]) -> str:
    """A line in which every mention of the work tree is one of the copy."""
    mention = re.compile(re.escape(root) + _END)
    return mention.sub(lambda _: base(), word) if mention.search(word) else word
