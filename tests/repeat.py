"""How often tests that look for rare failures repeat what they do."""

from __future__ import annotations

import os

FACTOR = int(os.environ.get("REPEAT", "1"))


def repeated(times: int) -> int:
    """So many times in every run, and as many times more as `REPEAT` says (`make nightly`)."""
    return times * FACTOR
