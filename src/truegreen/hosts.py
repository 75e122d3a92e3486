"""What this machine calls itself."""

from __future__ import annotations

import os


def node() -> str:
    """What this machine calls itself."""
    return os.uname().nodename[:100]
