"""The MCP face: tools for agents inside a run, for leads and for those who look.

The SDK is slow to load; nothing here loads it before a client is served. Async lives in `server`,
`stdio` and `http` alone.
"""

from __future__ import annotations

from importlib.util import find_spec

from truegreen.errors import Unavailable, install_command


def is_installed() -> bool:
    """Whether the SDK is there."""
    return find_spec("mcp") is not None


def check_installed() -> None:
    """Refuse with the command that helps."""
    if not is_installed():
        way = install_command("mcp")
        raise Unavailable(f"the MCP SDK is not installed here: {way}", allowed=(way,))
