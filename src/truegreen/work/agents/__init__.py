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
from truegreen.work.agents.wrappers import behind_wrappers, in_shell

if TYPE_CHECKING:
    from truegreen.work.agents.calling import Client
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
        adapter: Adapter = import_module(_module(name)).CLIENT
        return adapter

    def __iter__(self) -> Iterator[str]:
        return iter(PROGRAMS)

    def __len__(self) -> int:
        return len(PROGRAMS)


ADAPTERS = _Adapters()


def adapter_of(name: str, argv: Sequence[str], cwd: str = "") -> Adapter:
    """The adapter for a contract: the one it names, or the one that knows the command it gives.

    Only the default, `command`, looks at the program, and through what starts it: `env`, `npx`, a
    shell, a script in `cwd` or on PATH. A named adapter is a decision.
    """
    if name not in ADAPTERS:
        raise InvalidInput(f"no adapter «{name}»", allowed=tuple(ADAPTERS))
    if name != COMMAND:
        return ADAPTERS[name]
    if client := _client(argv):
        return client
    by_wrapper = behind_wrappers(argv, lambda words: bool(_client(words)))
    in_text = [] if by_wrapper else in_shell(argv, cwd, lambda words: bool(_client(words)))
    client = _client(by_wrapper or in_text)
    if not client:
        return ADAPTERS[COMMAND]
    from truegreen.work.agents.wrapped import InShell, Wrapped  # noqa: PLC0415 - few need them

    return Wrapped(client=client) if by_wrapper else InShell(client=client)


def _client(argv: Sequence[str]) -> Client | None:
    """The client that a command is, called in a way that its adapter can read."""
    for name, program in PROGRAMS.items():
        if program and is_program(argv, program):
            client: Client = import_module(_module(name)).CLIENT
            return client if client.recognises(argv) else None
    return None


def _module(name: str) -> str:
    return f"{__name__}.{name.replace('-', '_')}"


def found_versions() -> list[FoundClient]:
    """Every adapter, with the client and the version that are installed here."""
    from truegreen.work.agents.versions import versions_of  # noqa: PLC0415 - runs don't need it

    return versions_of(ADAPTERS.values())
