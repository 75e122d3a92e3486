"""The clients that can do a run: one module each behind one protocol, loaded when it is named.

An adapter says how its client is called and how its run ended, as far as its stream, exit code and
standard error can tell. It starts nothing, and never says who ended a run: that is the host's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from truegreen.errors import InvalidInput
from truegreen.work.agents.prompts import is_program
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

COMMAND = "command"
PROGRAMS = {
    COMMAND: "",
    "claude-code": "claude",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "qwen": "qwen",
}
"""The program of each client; its adapter is in a module that is called like the client."""


class _Adapters(Mapping[str, Adapter]):
    """Adapters by the name of their client."""

    def __getitem__(self, name: str) -> Adapter:
        if name not in PROGRAMS:
            raise KeyError(name)
        adapter: Adapter = import_module(f"{__name__}.{name.replace('-', '_')}").CLIENT
        return adapter

    def __iter__(self) -> Iterator[str]:
        return iter(PROGRAMS)

    def __len__(self) -> int:
        return len(PROGRAMS)


ADAPTERS = _Adapters()


def adapter_of(name: str, argv: Sequence[str]) -> Adapter:
    """The adapter for a contract: the one it names, or the one that knows the command it gives.

    Only the default, `command`, looks at the program; a named adapter is a decision.
    """
    if name not in ADAPTERS:
        raise InvalidInput(f"no adapter «{name}»", allowed=tuple(ADAPTERS))
    if name != COMMAND:
        return ADAPTERS[name]
    meant = (ADAPTERS[each] for each, program in PROGRAMS.items() if is_program(argv, program))
    known = (one for one in meant if one.has_claims and one.recognises(argv))
    return next(known, ADAPTERS[COMMAND])


def found_versions() -> list[FoundClient]:
    """Every adapter, with the client and the version that are installed here."""
    from truegreen.work.agents.versions import versions_of  # noqa: PLC0415 - runs don't need it

    return versions_of(ADAPTERS.values())
