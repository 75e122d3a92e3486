"""Text that clients print, made small and safe: one line for people, a cut message, an action.

Knows no client and no meaning; `signs` reads what texts mean.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

from truegreen.work.agents.prompts import first_of

LINE = 200
ACTION = 120
MESSAGE = 4000
_SEQUENCE = r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b."
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff\u202a-\u202e\u2066-\u2069]"
_TELLING = (
    *("command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url"),
    *("description", "prompt"),
)


def cut(text: str, most: int = MESSAGE) -> str:
    """A text without controls, no longer than anybody reads; what is left out shows as dots."""
    text = text[: most * 2].strip()
    if not (text.isascii() and text.isprintable()):
        text = re.sub(_CONTROL, "", re.sub(_SEQUENCE, "", text)).replace("\r", "\n").strip()
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_line(text: str, most: int = LINE) -> str:
    """A text as one line."""
    return cut(" ".join(cut(text[: most * 4], most * 4).split()), most)


def decoded(data: bytes) -> str:
    """Bytes as text; what is no UTF-8 shows as a question mark in a box."""
    return data.decode("utf-8", "replace")


def action(tool: str, arguments: Any) -> str:
    """What a tool call does, as one line: `Bash: pytest -q`."""
    told = first_of(arguments, _TELLING) if isinstance(arguments, dict) else ""
    return one_line(f"{tool}: {told[: ACTION * 4]}" if told else tool, ACTION)


def text_of(content: Any) -> str:
    """The text of a message's or a tool result's content: a string, or a list of blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (block.get("text") for block in content if isinstance(block, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


class Printed:
    """Lines that are no events: the first and the last of them, within a bound."""

    def __init__(self) -> None:
        self.lines = 0
        self._room = 32 * 1024
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque(maxlen=64)

    def add(self, line: bytes) -> None:
        """Keep a line, or its beginning, and forget an older one for it."""
        self.lines += 1
        if self._room <= 0:
            self._tail.append(line[:512])
            return
        line = line[: self._room]
        self._room -= len(line) + 1
        self._head.append(line)

    @property
    def text(self) -> str:
        """What was kept."""
        return decoded(b"\n".join((*self._head, *self._tail)))


def counted(number: int, one: str, several: str) -> str:
    """A number with its noun: 1 turn, 2 turns."""
    return f"{number} {one if number == 1 else several}"
