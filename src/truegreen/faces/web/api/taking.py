"""What requests bring along, where several routes take the same: how many, since when, why.

What is too long, too many or no word at all is refused here; what it means is the record's to say.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from truegreen.errors import InvalidInput
from truegreen.faces import choosing
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE

Limit = Annotated[int, Meta(ge=1, le=LONGEST_PAGE, description="at most so many")]
Word = Annotated[str, Meta(max_length=200)]
Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9]+(_[A-Za-z0-9]+)?$", max_length=40)]
Words = Annotated[str, Meta(max_length=8000)]
Text = Annotated[str, Meta(max_length=65536)]
_AGE = "^([1-9][0-9]{0,3}[smh]|[1-9][0-9]{0,2}d)$"
Age = Annotated[
    str,
    Meta(
        max_length=40,
        description="how far to look back: 90m, 12h, 7d",
        examples=["7d"],
        extra_json_schema={"pattern": _AGE},  # looked at below, for the sake of the words
    ),
]
Many = Annotated[tuple[Annotated[str, Meta(max_length=4096)], ...], Meta(max_length=100)]


class Taken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request may say, and nothing else."""


class Reason(Taken, frozen=True):
    """Why, for the history."""

    reason: Words = ""


class Because(Taken, frozen=True):
    """Why: it must be said."""

    reason: Annotated[str, Meta(min_length=1, max_length=8000)]


class Ending(Reason, frozen=True):
    """Why something ends for ever, or what would end."""

    dry_run: bool = False


class Since(Taken, frozen=True):
    """From when on."""

    since: Age | None = None


class Listing(Taken, frozen=True):
    """How many."""

    limit: Limit = PAGE


def ago(age: str) -> int:
    """The instant so long ago."""
    if not re.fullmatch(_AGE, age):
        words = f'since: expected how far to look back, such as "90m", "12h" or "7d"; got "{age}"'
        raise InvalidInput(words, path="since")
    return choosing.ago(age)
