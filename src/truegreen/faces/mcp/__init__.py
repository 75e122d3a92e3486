"""The MCP face: tools for agents inside a run, for leads and for those who look.

The SDK is an extra; nothing here loads it before somebody serves. Async lives in `server`, `stdio`
and `http` alone.
"""

from __future__ import annotations

from importlib.util import find_spec

from truegreen.errors import Unavailable

INSTALL = "pip install 'truegreen[mcp]'"


def is_installed() -> bool:
    """Whether the SDK is there."""
    return find_spec("mcp") is not None


def check_installed() -> None:
    """Refuse with the command that helps."""
    if not is_installed():
        message = f"the MCP SDK is not installed here: {INSTALL}"
        raise Unavailable(message, allowed=(INSTALL,))
