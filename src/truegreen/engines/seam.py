"""What an engine is asked to do, and what it may say: one order, one word, no verdict.

Every engine is a module beside this one. It knows no record: what its words mean for a task is
decided where they are heard.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from truegreen.facts import JobWord
from truegreen.tuples import NamedTuple


class Order(NamedTuple):
    """One job: the command that begins with a task, and what its node must have."""

    job: str
    task: str
    argv: tuple[str, ...]
    env: dict[str, str]
    """Its whole environment. It may hold passwords: never a part of a command line or a name."""
    labels: tuple[str, ...]
    seconds: int
    """After so long the engine may end it; the caps themselves are truegreen's own to keep."""
    log: str
    """A file for what it prints, where its node can write it."""

    @property
    def name(self) -> str:
        """What people see in the engine's own lists."""
        return f"truegreen-{self.task}"


class Seen(NamedTuple):
    """What an engine says of a job."""

    word: JobWord
    said: str = ""
    """Its own words: pending (Resources)."""


class Engine(Protocol):
    """Somebody's scheduler. Refused: it does not take this. Unavailable: it can't be reached."""

    def check(self) -> None:
        """Refuse with what is missing here."""

    def submit(self, order: Order) -> str:
        """Hand a job over; says what the engine calls it."""

    def look(self, handles: Iterable[str]) -> dict[str, Seen]:
        """The engine's word about jobs; what is not in the answer it did not speak of."""

    def cancel(self, handle: str) -> None:
        """Ask the engine to end a job. What still lives afterwards is not the engine's to say."""
