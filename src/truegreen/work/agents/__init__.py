"""The clients that can do a run: one module each behind one protocol, and a literal dict.

An adapter says how its client is called and how its run ended, as far as its stream, exit code and
standard error can tell. It starts nothing, and never says who ended a run: that is the host's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from truegreen.errors import InvalidInput
from truegreen.work.agents import claude_code, codex, command, gemini, opencode, qwen
from truegreen.work.agents.reading import (
    Adapter,
    Ending,
    Expectation,
    GatewayDoor,
    Live,
    Reader,
    Reading,
)

if TYPE_CHECKING:
    from truegreen.work.agents.versions import FoundClient

__all__ = [
    "ADAPTERS",
    "Adapter",
    "Ending",
    "Expectation",
    "GatewayDoor",
    "Live",
    "Reader",
    "Reading",
    "adapter_of",
    "found_versions",
]

ADAPTERS: dict[str, Adapter] = {
    "command": command.CLIENT,
    "claude-code": claude_code.CLIENT,
    "codex": codex.CLIENT,
    "gemini": gemini.CLIENT,
    "opencode": opencode.CLIENT,
    "qwen": qwen.CLIENT,
}


def adapter_of(name: str, argv: Sequence[str]) -> Adapter:
    """The adapter for a contract: the one it names, or the one that knows the command it gives.

    Only the default, `command`, looks at the program; a named adapter is a decision.
    """
    if name not in ADAPTERS:
        raise InvalidInput(f"no adapter «{name}»", allowed=tuple(ADAPTERS))
    if name != command.NAME:
        return ADAPTERS[name]
    known = (one for one in ADAPTERS.values() if one.has_claims and one.recognises(argv))
    return next(known, ADAPTERS[command.NAME])


def found_versions() -> list[FoundClient]:
    """Every adapter, with the client and the version that are installed here."""
    from truegreen.work.agents.versions import versions_of  # noqa: PLC0415 - runs don't need it

    return versions_of(ADAPTERS.values())
