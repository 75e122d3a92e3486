"""Words that come from elsewhere: other spellings of a word, and other systems' names for it.

They are understood wherever a word is read, so that filters, scripts and agents that were written
for another system go on. What is written down and given out has one spelling, the house's own.
"""

from __future__ import annotations

ALIASES = {
    "open": "queued",
    "ready": "queued",
    "waiting": "queued",
    "incomplete": "queued",
    "claimed": "running",
    "in_progress": "running",
    "pending_validation": "needs_review",
    "abandoned": "canceled",
    "cancelled": "canceled",
}
"""What other systems call the status of a task. Not `done`, which is what an agent says."""


def own_word(word: object) -> str:
    """The house's word for what somebody wrote in capitals, with hyphens, or as others call it."""
    plain = str(word).lower().replace("-", "_")
    return ALIASES.get(plain, plain)
