"""Which clients are installed here, and which versions of them.

Starts `PROGRAM --version` of each, within a bound; the rest of the folder starts nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from shutil import which

from msgspec import Struct

from truegreen.work.agents.reading import Adapter
from truegreen.work.agents.wording import decoded, one_line
from truegreen.work.process import tool

_VERSION = r"\d+(?:\.\d+)+[\w.+-]*"
_PATIENCE = 20.0
_MOST = 64 * 1024


class FoundClient(Struct, frozen=True, kw_only=True):
    """An adapter, and the client that it would start."""

    adapter: str
    program: str
    path: str | None
    version: str | None
    can: tuple[str, ...]


def versions_of(adapters: Iterable[Adapter]) -> list[FoundClient]:
    """One row for each adapter, whether or not its client is here."""
    return [_found(adapter) for adapter in adapters]


def _found(adapter: Adapter) -> FoundClient:
    path = which(adapter.program) if adapter.program else None
    return FoundClient(
        adapter=adapter.name,
        program=adapter.program,
        path=path,
        version=_version(path) if path else None,
        can=adapter.can,
    )


def _version(path: str) -> str | None:
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = tool([path, "--version"], env=env, timeout=_PATIENCE, limit=_MOST)
    said = decoded(done.stdout)
    found = re.search(_VERSION, said)
    return found[0] if found else one_line(said, 60) or None
