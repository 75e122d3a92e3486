"""Text of agents made safe for a terminal: no escape sequence, control or direction survives.

An agent chooses titles, reasons and names. On a terminal they must be able to say something, and to
do nothing: not move the cursor, not set a title, not write a link, not turn a line around.
"""

from __future__ import annotations

import re
import unicodedata

_STRING = r"(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])"
_STRING_END = r"(?:\x07|\x1b\\|\x9c)"
_SEQUENCE = (
    rf"{_STRING}[^\x07\x1b\x9c]{{0,4096}}{_STRING_END}"  # OSC, DCS, APC, PM, SOS with their end
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[ -/]+[0-~]"  # charsets and the like
    r"|\x1b[0-Z\\^-~]"  # two-character sequences
)
_SPACE = r"[\t\n\v\f\r\x85\u2028\u2029]+"
# Without a place on the screen, or with one that moves others: controls, formats (bidi, zero
# width, tags), surrogates, private use, unassigned.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKS = frozenset({"Mn", "Me", "Mc"})
_FORMATS_WITH_WIDTH = frozenset(
    {"\u115f", "\u1160", "\u3164", "\uffa0"}
)  # fillers look like nothing
_MOST_MARKS = 3


def clean(text: str) -> str:
    """One line that a terminal only shows; what is left out leaves no hole that could mislead."""
    if text.isascii() and text.isprintable():
        return text
    without = re.sub(_SPACE, " ", re.sub(_SEQUENCE, "", text))
    return "".join(_kept(without))


def _kept(text: str) -> list[str]:
    kept: list[str] = []
    marks = 0
    for character in text:
        kind = unicodedata.category(character)
        marks = marks + 1 if kind in _MARKS else 0
        if kind == "Cs":
            kept.append("\ufffd")
        elif (
            kind not in _INVISIBLE and marks <= _MOST_MARKS and character not in _FORMATS_WITH_WIDTH
        ):
            kept.append(character)
    return kept


def width(text: str) -> int:
    """How many columns clean text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in _MARKS or character == "\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shortened(text: str, most: int) -> str:
    """A text with its middle left out, where it is longer than anybody reads."""
    if len(text) <= most:
        return text
    half = (most - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"
