r"""Wildcards as git reads them, turned into regular expressions over bytes.

`*` and `?` stay within one part of a path, `**` as a whole part spans any number of them, `[a-z]`,
`[!a]`, `[[:alpha:]]` and `\` work as in git. An agent may have written the pattern, so no
expression may need more than polynomial time: every piece after a star is atomic.
"""

from __future__ import annotations

import re
from functools import cache

from truegreen.patterns import late

_CLASSES = {
    b"alnum": rb"[0-9A-Za-z]",
    b"alpha": rb"[A-Za-z]",
    b"blank": rb"[ \t]",
    b"cntrl": rb"[\x00-\x1f\x7f]",
    b"digit": rb"[0-9]",
    b"graph": rb"[\x21-\x7e]",
    b"lower": rb"[a-z]",
    b"print": rb"[\x20-\x7e]",
    b"punct": rb"[!-/:-@\[-`{-~]",
    b"space": rb"[ \t\n\r]",
    b"upper": rb"[A-Z]",
    b"xdigit": rb"[0-9A-Fa-f]",
}
_NAMED_CLASS = late(rb"\[:([^\]]*):\]")
_SLASH = ord("/")
PATTERN_BYTES = 4096


class Malformed(ValueError):
    """A pattern that matches nothing, because it is cut off or names no class."""


def part_expression(pattern: bytes) -> bytes:
    """The expression for one part of a path: a pattern without a slash outside brackets."""
    pieces: list[bytes] = [b""]
    at = 0
    while at < len(pattern):
        sign = pattern[at : at + 1]
        if sign == b"*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append(b"")
            at += 1
        elif sign == b"[":
            at, members = _bracket(pattern, at + 1)
            pieces[-1] += _one_of(members)
        elif sign == b"\\":
            pieces[-1] += re.escape(_escaped(pattern, at))
            at += 2
        else:
            pieces[-1] += b"[^/]" if sign == b"?" else re.escape(sign)
            at += 1
    return _joined(pieces)


def path_expression(parts: list[bytes]) -> bytes:
    """The expression for a path; a part `**` spans any number of folders, at the end all below."""
    runs: list[list[bytes]] = [[]]
    for part in parts:
        if spans_folders(part):
            if runs[-1] or len(runs) == 1:
                runs.append([])
        else:
            runs[-1].append(part_expression(part))
    if len(runs) == 1:
        return b"/".join(runs[0])
    first, *middle, last = runs
    start = b"".join(run + b"/" for run in first)
    spans = b"".join(rb"(?>(?:[^/]*/)*?" + b"".join(run + b"/" for run in r) + b")" for r in middle)
    end = rb"(?:[^/]*/)*" + b"/".join(last) if last else b".*"
    return start + spans + end


def spans_folders(part: bytes) -> bool:
    """Whether a part is `**`; git takes more than two stars for the same."""
    return part.startswith(b"**") and not part.strip(b"*")


def split_path(pattern: bytes) -> list[bytes]:
    """A pattern's parts: split at slashes, escaped or not, but not within brackets."""
    parts, at, begun = [], 0, 0
    while at < len(pattern):
        sign = pattern[at : at + 1]
        separator = b"/" if sign == b"/" else b"\\/"
        if pattern.startswith(separator, at):
            parts.append(pattern[begun:at])
            at = begun = at + len(separator)
        elif sign == b"[":
            at, _ = _bracket(pattern, at + 1)
        else:
            at += 2 if sign == b"\\" else 1
    parts.append(pattern[begun:])
    return parts


def _joined(pieces: list[bytes]) -> bytes:
    """Pieces between stars. The first place where a piece fits is as good as any later one."""
    if len(pieces) == 1:
        return pieces[0]
    first, *middle, last = pieces
    return first + b"".join(rb"(?>[^/]*?" + p + b")" for p in middle) + b"[^/]*" + last


def _one_of(members: frozenset[int]) -> bytes:
    within = b"".join(b"\\x%02x" % member for member in sorted(members - {_SLASH}))
    return b"[" + within + b"]" if within else rb"(?!)"


def _escaped(pattern: bytes, at: int) -> bytes:
    if at + 1 >= len(pattern):
        raise Malformed("a backslash at the end")
    return pattern[at + 1 : at + 2]


def _bracket(pattern: bytes, at: int) -> tuple[int, frozenset[int]]:
    """Read a bracket expression from behind its `[`; gives where it ends and what it takes."""
    negated = pattern[at : at + 1] in {b"!", b"^"}
    begun = at = at + negated
    members: set[int] = set()
    previous = -1  # the last single member, from which a range can start
    while at == begun or pattern[at : at + 1] != b"]":
        if at >= len(pattern):
            raise Malformed("a bracket without an end")
        if named := _NAMED_CLASS.match(pattern, at):
            members |= _class(named[1])
            at, previous = named.end(), -1
            continue
        if pattern[at : at + 1] == b"-" and previous >= 0 and _goes_on(pattern, at + 1):
            at, end = _member(pattern, at + 1)
            members.update(range(previous, end + 1))
            previous = -1
            continue
        at, previous = _member(pattern, at)
        members.add(previous)
    return at + 1, frozenset(set(range(256)) - members if negated else members)


def _goes_on(pattern: bytes, at: int) -> bool:
    return at < len(pattern) and pattern[at : at + 1] != b"]"


def _member(pattern: bytes, at: int) -> tuple[int, int]:
    if at >= len(pattern):
        raise Malformed("a bracket without an end")
    if pattern[at : at + 1] == b"\\":
        return at + 2, _escaped(pattern, at)[0]
    return at + 1, pattern[at]


@cache
def _class(name: bytes) -> frozenset[int]:
    if name not in _CLASSES:
        raise Malformed("no such class")
    return frozenset(n for n in range(256) if re.fullmatch(_CLASSES[name], bytes([n])))
