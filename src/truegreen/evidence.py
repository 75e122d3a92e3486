"""Evidence of a review: what counts, and whether the reviewer's recorded run shows it.

An entry counts if it names a command or an artifact and says what that showed, both as texts of
more than a character or two, or with an exit code. A recording can confirm that a command was run
or a file opened; it can't show that a reviewer understood it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from truegreen.patterns import late

COMMAND = "command"
ARTIFACTS = ("artifact", "where", "file", "path", "url")
_SAW = ("saw", "output")
_CALLS = ("input", "parameters", "arguments", "command", "changes")
"""Keys of a client's events under which the arguments of a tool call stand."""
_DEEPEST = 20
_SHORTEST_SUBJECT = 3
_SHORTEST_OBSERVATION = 2
_VERDICT = late(r"""["'](?:verdict|evidence)\\?["']""")
_QUOTES = str.maketrans("", "", "'\"\\")


def evidence_in(entries: object) -> list[dict[str, Any]]:
    """Those entries that name a command or an artifact, and what it showed."""
    if not isinstance(entries, list | tuple):
        return []
    return [each for each in entries if isinstance(each, dict) and subject_of(each) and _saw(each)]


def subject_of(entry: dict[str, Any]) -> str:
    """The command or the artifact that an entry is about; empty where it names none."""
    named = (_words(entry.get(name), _SHORTEST_SUBJECT) for name in (COMMAND, *ARTIFACTS))
    return next(filter(None, named), "")


def _saw(entry: dict[str, Any]) -> bool:
    code = entry.get("exit_code")
    told = isinstance(code, int) and not isinstance(code, bool)
    return told or any(_words(entry.get(name), _SHORTEST_OBSERVATION) for name in _SAW)


def _words(value: object, shortest: int) -> str:
    """A text with a letter or a digit in it that is not too short; anything else says nothing."""
    text = value.strip() if isinstance(value, str) else ""
    enough = len("".join(text.split())) >= shortest
    return text if enough and any(map(str.isalnum, text)) else ""


# --- what a recording shows


def printed_before_verdict(text: str) -> str:
    """The part of a text before the verdict, which repeats the evidence and confirms nothing."""
    found = _VERDICT.search(text)
    if not found:
        return text
    return text[: max(text.rfind("{", 0, found.start()), 0)]


def tool_calls(lines: Iterable[bytes]) -> list[str] | None:
    """The arguments of the tool calls in a client's events; None if no line is an event."""
    events, calls = 0, []
    for line in lines:
        try:
            event = msgspec.json.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            events += 1
            calls += [printed_before_verdict(text) for text in _arguments(event, _DEEPEST)]
    return calls if events else None


def _arguments(value: object, depth: int, *, called: bool = False) -> Iterator[str]:
    if called and isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict):
        for name, each in value.items():
            yield from _arguments(each, depth - 1, called=called or name in _CALLS)
    elif depth and isinstance(value, list):
        for each in value:
            yield from _arguments(each, depth - 1, called=called)


def is_recorded(entry: dict[str, Any], recorded: Iterable[str]) -> bool:
    """Whether a recorded text contains what an entry is about, as whole words.

    Quotes and the number of spaces do not matter. What was seen is in the reviewer's own words.
    """
    wanted = _plain(subject_of(entry))
    if not wanted:
        return False
    whole = re.compile(rf"(?<![^\W_]){re.escape(wanted)}(?![^\W_])")
    return any(whole.search(_plain(text)) for text in recorded)


def _plain(text: str) -> str:
    return " ".join(text.translate(_QUOTES).split())
