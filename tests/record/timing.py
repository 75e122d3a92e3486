"""A store's clock that a test moves."""

from __future__ import annotations

SECOND = 1_000_000


class Clock:
    """It stands still until somebody lets time pass."""

    def __init__(self) -> None:
        self.now = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.now

    def pass_(self, seconds: float) -> None:
        """So much time goes by."""
        self.now += int(seconds * SECOND)
