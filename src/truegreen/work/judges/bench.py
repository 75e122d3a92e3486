"""What a judge is asked with: surroundings, a tree to read, a folder to write in, and its purse.

Values only. Who asks, and what becomes of the answer, is for others.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from truegreen.contract import Isolation


class Bench(Struct, frozen=True, kw_only=True):
    """One judge's place of work."""

    environ: dict[str, str]
    tree: str
    """A clean copy of what the agent left, for reading."""
    scratch: str
    """A folder for this judge alone."""
    hidden: tuple[str, ...] = ()
    secrets: tuple[bytes, ...] = ()
    isolation: Isolation = Isolation.AUTO
    log: str = ""
    """A file for the whole output; without it only the ends are kept."""
    tick: Callable[[], str | None] | None = None
    shown: tuple[str, ...] = ()
    """What of the hidden it may see all the same: copies that were made for it."""
    at: str = ""
    """The folder of truegreen.toml: programs and modules of judges are looked for there."""
    place: str = ""
    """Where the agent worked: no part of a judge may come from there."""
    run: str = ""
    """The run that is judged: its supervisor's heir finds what is left of a judge by it."""


class Spent(Struct, frozen=True, kw_only=True):
    """What a judge has used on a task so far."""

    tokens: int = 0
    cost_usd: float = 0.0


class Heartbeat:
    """The supervisor's tick. What it raises is not the judge's, and must come through."""

    def __init__(self, tick: Callable[[], str | None]) -> None:
        """Wrap a tick."""
        self._tick = tick
        self.raised: Exception | None = None

    def __call__(self) -> str | None:
        """Beat once; remembers what was raised."""
        try:
            return self._tick()
        except Exception as error:
            self.raised = error
            raise
