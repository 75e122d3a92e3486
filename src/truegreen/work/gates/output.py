"""What a check printed, made fit for people: the last line, the tail, without control characters.

A check runs the agent's code, so its output is the agent's text. It may say something here, and do
nothing: no escape sequence, no direction mark and no line break survives into a reason.
"""

from __future__ import annotations

import unicodedata

from truegreen.patterns import late

REASON_CHARACTERS = 300
TAIL_BYTES = 8 * 1024

_SEQUENCE = late(
    r"\x1b[PX\]^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # operating system commands and the like
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\x1b[ -/]*[0-~]"
)
_NODE_VERSION = late(r"Node\.js v[\d.]+")  # the last line of every error that Node.js prints
_HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def text_of(data: bytes) -> str:
    """Output as lines of plain text; what a carriage return overwrote is not there any more."""
    plain = _SEQUENCE.sub("", data.decode("utf-8", "replace"))
    lines = plain.replace("\r\n", "\n").split("\n")
    return "\n".join(_printable(line.rstrip("\r").rpartition("\r")[2]) for line in lines)


def one_line(text: str, most: int = REASON_CHARACTERS) -> str:
    """A sentence that is safe to print: one line, no controls, not longer than `most`."""
    line = " ".join(_printable(_SEQUENCE.sub("", text)).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def last_line(text: str) -> str:
    """The last line that says something; it is the reason that people read."""
    for line in reversed(text.split("\n")):
        said = line.strip().strip("=─━").strip()
        if said and not _NODE_VERSION.fullmatch(said):
            return one_line(said)
    return ""


def tail_of(text: str, most: int = TAIL_BYTES) -> str:
    """The end of a text in at most so many bytes, from the start of a line where that is near."""
    data = text.rstrip().encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode()
    kept = data[-most:].decode("utf-8", "ignore")
    first, _, rest = kept.partition("\n")
    return rest if rest and len(first) < most // 2 else kept


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        " " if character in "\t\n\r\v\f" else character
        for character in text
        if character in "\t\n\r\v\f" or unicodedata.category(character) not in _HARMFUL
    )
