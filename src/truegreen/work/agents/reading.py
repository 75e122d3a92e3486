"""What an adapter is asked and what it answers: endings, expectations, live counts, readings.

Plain values and two protocols. They know no client; the clients' modules know them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from truegreen.facts import AgentKind, Child, Claim
from truegreen.model import ExitDetail, ExitReason
from truegreen.work.agents.wording import MESSAGE, cut


class Ending(Struct, frozen=True, kw_only=True):
    """What the host saw of the end of a client's process tree."""

    code: int | None = None
    signal: int | None = None
    stopped: str = ""
    """Why the host itself ended it; empty when it ended by itself."""
    stderr: bytes = b""
    """Standard error, or its last part."""
    survivors: int = 0
    swept: int = 0
    at: float = field(default_factory=time.time)
    """When it ended, in seconds since the epoch: reset times of rate limits count from here."""


class Expectation(Struct, frozen=True, kw_only=True):
    """What the host knows was asked of the client, so that its absence can be noticed."""

    connectors: tuple[str, ...] = ()
    """Names of MCP servers that the work needs."""
    structured: bool = False
    """A schema for the answer was given."""
    text: bool = False
    """Plain text was asked for instead of events: then the exit code is all there is."""


class Live(Struct, kw_only=True):
    """How far a run has come, as its stream says; grows while lines arrive."""

    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    tool_calls: int = 0
    background: int = 0
    """Open background tasks."""
    last_action: str = ""
    said: str = ""
    """The last message as it came, or as much of it as anybody reads."""
    session: str | None = None
    version: str | None = None
    model: str | None = None
    metered: bool = False
    """Whether tokens and cost were counted by the host, and not told by the client."""
    children: list[Child] = field(default_factory=list)
    """What lives inside of the conversation, as it was seen last; each stands here once."""

    def says(self, text: str) -> None:
        """A message came. Most are followed by another one before anybody looks."""
        self.said = text[: 2 * MESSAGE]

    @property
    def last_message(self) -> str:
        """The last message, made fit to be shown."""
        return cut(self.said)


CAME_TO = {
    "completed": "ok",
    **dict.fromkeys(("failed", "errored", "killed", "interrupted"), "failed"),
    **dict.fromkeys(("stopped", "cancelled", "canceled"), "skipped"),
    **dict.fromkeys(("shutdown", "not_found"), "unknown"),
}
"""Clients' words for a child that has ended, and what it came to."""


def census(children: Iterable[Child]) -> dict[str, int]:
    """What those came to that had work of their own; who did not say so is not known to be done."""
    working = (AgentKind.SUBAGENT, AgentKind.BACKGROUND)
    found = [CAME_TO.get(child.word, "unknown") for child in children if child.kind in working]
    words = ("ok", "failed", "unknown", "skipped")
    return {word: found.count(word) for word in words} if found else {}


class Reading(Struct, frozen=True, kw_only=True):
    """How a run ended, as far as its client can tell; who ended it is not the client's to say."""

    reason: ExitReason
    detail: ExitDetail
    claim: Claim | None = None
    words: str = ""
    """The agent's last message, or the last lines of a plain command; within a bound."""
    message: str = ""
    session: str | None = None
    not_before_s: float = 0.0
    """Seconds after the ending until a rate limit resets; 0 when nobody said."""
    evidence: dict[str, Any] = {}


class GatewayDoor(Struct, frozen=True, kw_only=True):
    """Where an agent is to think, and as whom; `apis` are those that are to be had there."""

    url: str
    key: str
    apis: tuple[str, ...]


class Reader(Protocol):
    """Folds the lines of one run."""

    @property
    def has_events(self) -> bool:
        """Whether an event of the client has come; the rest is plain text."""

    @property
    def live(self) -> Live:
        """How far the run has come."""

    def feed(self, lines: bytes) -> None:
        """Take one line of standard output, or several with the ends between; never raises."""

    def read(self, ending: Ending) -> Reading:
        """Say how the run ended; never raises."""


class Adapter(Protocol):
    """One client: how it is called, and how its stream is read."""

    @property
    def name(self) -> str:
        """As in `adapter = "…"`."""

    @property
    def program(self) -> str:
        """The basename that it recognises; empty for any."""

    @property
    def has_claims(self) -> bool:
        """Whether its stream declares the end, so that an exit code alone claims nothing."""

    @property
    def merged(self) -> bool:
        """Whether standard error goes into standard output."""

    @property
    def passes(self) -> tuple[str, ...]:
        """Environment variables that it needs; a final `*` means all that begin so."""

    @property
    def can(self) -> tuple[str, ...]:
        """What it can do, in words for people."""

    def recognises(self, command: Sequence[str]) -> bool:
        """Whether a command is this client, called in a way that this adapter can read."""

    def start(self, command: Sequence[str]) -> int | None:
        """Where the client's own flags begin; None where no flag can be added."""

    def argv(
        self, command: Sequence[str], *, goal: str, feedback: str = "", session: str = ""
    ) -> list[str]:
        """The command with its placeholders filled and its events switched on."""

    def worded(self, command: Sequence[str]) -> tuple[list[str], str]:
        """The command with `{goal}` in the place of its own prompt, and that prompt.

        One whose prompt is not among its arguments stays as it is, and has none.
        """

    def resume(
        self, command: Sequence[str], resume: Sequence[str], *, session: str, message: str
    ) -> list[str]:
        """The command that sends a message to an earlier session."""

    def env(self) -> dict[str, str]:
        """Switches that make the client behave under supervision."""

    def expects(self, argv: Sequence[str]) -> Expectation:
        """What the arguments ask for."""

    def reader(self, expects: Expectation) -> Reader:
        """A fresh reader for one run."""

    @property
    def apis(self) -> tuple[str, ...]:
        """The model APIs of which it needs one to think through a gateway; none: it can't."""

    def pointed(
        self, argv: Sequence[str], env: Mapping[str, str], door: GatewayDoor
    ) -> tuple[list[str], dict[str, str]]:
        """The command, and variables to lay over its own, with which it thinks through a door."""
