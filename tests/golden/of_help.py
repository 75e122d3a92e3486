"""The help of the program, of every command, and of every command below one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.golden.scratch import Scratch, shown

_GROUP = re.compile(r"^\S.*\n((?:  \S.*\n)+)", re.MULTILINE)
_BELOW = re.compile(r"^Commands:\n((?:  .*\n)+)", re.MULTILINE)
_NAME = re.compile(r"^  ([a-z]+)(?= )", re.MULTILINE)
_COMMANDS_END = "\nEvery command takes\n"


def of_help(scratch: Scratch) -> dict[str, str]:
    """One document for each command."""
    return {f"help/{'-'.join(words) or 'truegreen'}.txt": text for words, text in _helps(scratch)}


def _helps(scratch: Scratch) -> Iterator[tuple[tuple[str, ...], str]]:
    """The words of every command, as the help itself lists them, and its help."""
    text = _help(scratch)
    yield (), text
    listed = text.partition(_COMMANDS_END)[0]
    for name in [name for group in _GROUP.findall(listed) for name in _NAME.findall(group)]:
        yield from _below(scratch, (name,))


def _below(scratch: Scratch, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    text = _help(scratch, *words)
    yield words, text
    for group in _BELOW.findall(text):
        for name in _NAME.findall(group):
            yield from _below(scratch, (*words, name))


def _help(scratch: Scratch, *words: str) -> str:
    line = [*words, "--help"]
    return shown(" ".join(["truegreen", *line]), scratch.tg(*line))
