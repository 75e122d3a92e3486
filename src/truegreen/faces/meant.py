"""What somebody may have meant who named something that is not there."""

from __future__ import annotations


def nearest(word: str, known: list[str]) -> list[str]:
    """The names that are spelled most alike."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

    return get_close_matches(word[:80], known, n=3)
