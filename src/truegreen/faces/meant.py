"""What somebody may have meant who named something that is not there."""

from __future__ import annotations

SAYS_NONE = ("rescue",)
"""Options whose empty list has a word of its own."""


def empty_value(field: str, name: str) -> str:
    """The refusal of an option, or a field, whose value is empty."""
    if name in SAYS_NONE:
        none = f"write {field} none" if field.startswith("--") else "give an empty list"
        return f"{field} is empty: {none} to turn it off, or leave it out"
    return f"{field} is empty: give it a value; for none, leave {field} out"


def nearest(word: str, known: list[str]) -> list[str]:
    """The names that are spelled most alike."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

    return get_close_matches(word[:80], known, n=3)
