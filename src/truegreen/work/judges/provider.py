"""What all providers of models have in common: how they are asked, and what they say.

A provider is a value made of such facts; its module fills it in. Nothing here sends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from truegreen.work.documents import NotJson, read_document
from truegreen.work.gates.output import one_line

OUTPUT_TOKENS = 16_384
"""What a model may say, its thinking included."""
PLAIN_OUTPUT_TOKENS = 4096
"""The same for a model that answers at once."""
NAME = "verdict"
"""What the answer is called where it needs a name."""
REFUSED, TRUNCATED = "the model refused to answer", "the answer was cut off at the output limit"
CUT = "the stream of the answer was cut off"


class Said(Struct, frozen=True, kw_only=True):
    """What a model said: a text or an object that should answer, or why it is none."""

    text: str = ""
    found: dict[str, Any] | None = None
    model: str = ""
    read: int = 0
    written: int = 0
    """Tokens."""
    trouble: str = ""


class Provider(Struct, frozen=True, kw_only=True):
    """One kind of API."""

    base: str
    base_env: str
    key_env: str
    url: Callable[[str], str]
    headers: Callable[[str], dict[str, str]]
    body: Callable[[str, Mapping[str, Any]], dict[str, Any]]
    whole: Callable[[dict[str, Any]], Said]
    """Reads an answer in one piece."""
    stream: Callable[[list[str]], Said]
    """Reads the events of a streamed answer."""


def parsed(text: str | bytes) -> dict[str, Any] | None:
    """A JSON object, or nothing."""
    try:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        found = read_document(data)
    except NotJson:
        return None
    return found if isinstance(found, dict) else None


def part(found: object, name: str | int) -> Any:
    """A member of something that should be an object or a list; None if it is not there."""
    if isinstance(found, dict) and isinstance(name, str):
        return found.get(name)
    if isinstance(found, list) and isinstance(name, int) and len(found) > name:
        return found[name]
    return None


def words(value: object) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def count(usage: object, *names: str) -> int:
    """The sum of some counts of tokens; what is no count is none."""
    found = (part(usage, name) for name in names)
    counts = (n for n in found if isinstance(n, int) and not isinstance(n, bool))
    return sum(n for n in counts if 0 < n < 2**53)


def error_of(found: object) -> str:
    """What an API says of an error."""
    error = part(found, "error")
    said = words(part(error, "message")) or words(error) or words(part(found, "message"))
    kind = words(part(error, "type")) or words(part(error, "code"))
    return one_line(f"{kind}: {said}" if kind and said else said or kind, 200)
