"""A pattern over English words, compiled when it is first asked: most commands never need one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property


class Words:
    """Like a compiled pattern; capital letters make no difference."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._text, re.IGNORECASE)

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        """The first place where it fits."""
        return self._compiled.search(text, start, len(text) if end is None else end)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """Whether it fits at a place."""
        return self._compiled.match(text, start)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Whether it fits the whole."""
        return self._compiled.fullmatch(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Every place where it fits."""
        return self._compiled.finditer(text)
