"""Commands that must not run what an agent could have written: their files as they were before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import path as paths

from truegreen.work.documents import inside


def out_of_reach(
    words: Sequence[str], *, at: str, root: str, base: Callable[[], str]
) -> tuple[str, ...]:
    """A command whose files, looked for from `at`, are never those of the work tree at `root`.

    A word that names a file there names the same file in a copy from before the agent came, which
    `base` lays down; one that names a file beside the settings is made whole. Others stay.
    """
    return tuple(_moved(word, at, root, base) for word in words)


def _moved(word: str, at: str, root: str, base: Callable[[], str]) -> str:
    if not word or word.startswith("-"):
        return word
    place = paths.normpath(paths.join(at, word))
    named = paths.isabs(word) or "/" in word or paths.isfile(place)
    if not named:
        return word
    if not inside(place, root):
        return place if paths.isfile(place) else word
    below = paths.relpath(paths.realpath(paths.dirname(place)), paths.realpath(root))
    copy = paths.normpath(paths.join(base(), below, paths.basename(place)))
    known = paths.isfile(copy) or paths.isfile(place)
    return copy if known else word
