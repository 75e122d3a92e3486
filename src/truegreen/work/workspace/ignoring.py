"""What git would leave out: the rules of .gitignore files and of info/exclude, as pure data.

A set of rules is asked about one folder's entries at a time, from the top down; whoever asks has
not gone into a folder that was ignored. Knows no file system: the texts are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from truegreen.patterns import late
from truegreen.tuples import NamedTuple
from truegreen.work.workspace.wildcards import (
    PATTERN_BYTES,
    Malformed,
    part_expression,
    path_expression,
    split_path,
)

RULES_BYTES = 1 << 20
_MOST_RULES = 20_000
_TEXT = late(rb"[^*?\[\\]*")
_BOM = b"\xef\xbb\xbf"


class _Rule(NamedTuple):
    expression: bytes
    ignores: bool
    folders_only: bool


class Rules:
    """The rules of one file; the last one that fits decides."""

    def __init__(self, text: bytes) -> None:
        rules = list(_read(text))[-_MOST_RULES:]
        rules.reverse()
        self._folders = _Matcher(rules)
        self._files = _Matcher([rule for rule in rules if not rule.folders_only])

    def say(self, path: bytes, *, folder: bool) -> bool | None:
        """True: ignored. False: taken back by a `!` rule. None: no rule speaks of the path."""
        return (self._folders if folder else self._files).say(path)


class _Matcher:
    """All expressions as one: the first alternative that fits is the one that decides."""

    def __init__(self, rules: list[_Rule]) -> None:
        self._ignores = [rule.ignores for rule in rules]
        alternatives = b"|".join(b"(" + rule.expression + b")" for rule in rules)
        self._fits = re.compile(alternatives, re.DOTALL).fullmatch if rules else None

    def say(self, path: bytes) -> bool | None:
        if self._fits is None or not (found := self._fits(path)):
            return None
        return self._ignores[(found.lastindex or 1) - 1]


class Ignoring(NamedTuple):
    """The rules in force within one folder: its own and those of the folders above, nearest first.

    `whole` means that the folder itself is ignored, so everything below is, whatever rules say.
    """

    layers: tuple[tuple[int, Rules], ...] = ()
    whole: bool = False

    def within(self, prefix: bytes, text: bytes) -> Ignoring:
        """The rules for the entries of a folder that has a .gitignore with this text."""
        if self.whole or not text.strip():
            return self
        return self._replace(layers=((len(prefix), Rules(text)), *self.layers))

    def ignored(self, path: bytes, *, folder: bool) -> bool:
        """Whether an entry of the folder is left out."""
        if self.whole:
            return True
        for start, rules in self.layers:
            said = rules.say(path[start:], folder=folder)
            if said is not None:
                return said
        return False


NOTHING_IGNORED = Ignoring()
EVERYTHING_IGNORED = Ignoring(whole=True)


def ignoring(exclude: bytes) -> Ignoring:
    """The rules that hold at the top before its own .gitignore: those of info/exclude."""
    return NOTHING_IGNORED.within(b"", exclude)


def _read(text: bytes) -> Iterator[_Rule]:
    for line in text.removeprefix(_BOM).split(b"\n"):
        if line.startswith(b"#"):
            continue
        pattern = _without_trailing_spaces(line.removesuffix(b"\r").split(b"\0")[0])
        ignores = not pattern.startswith(b"!")
        pattern = pattern if ignores else pattern[1:]
        folders_only = pattern.endswith(b"/")
        pattern = pattern[:-1] if folders_only else pattern
        if pattern and len(pattern) <= PATTERN_BYTES and (expression := _expression(pattern)):
            yield _Rule(expression, ignores, folders_only)


def _expression(pattern: bytes) -> bytes:
    """The pattern over a path below its file's folder; empty if it can match nothing."""
    try:
        if b"/" not in pattern:
            return b"(?:[^/]*/)*" + part_expression(pattern)
        # Git compares the text before the first wildcard apart, and takes the rest for a pattern.
        anchored = pattern.removeprefix(b"/")
        text = _TEXT.match(anchored)
        start = text.end() if text else 0
        return re.escape(anchored[:start]) + path_expression(split_path(anchored[start:]))
    except Malformed:
        return b""


def _without_trailing_spaces(line: bytes) -> bytes:
    """Spaces at the end don't count unless a backslash stands before them."""
    kept = line.rstrip(b" ")
    slashes = len(kept) - len(kept.rstrip(b"\\"))
    return kept + b" " if slashes % 2 and len(kept) < len(line) else kept
