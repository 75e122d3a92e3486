"""Adapters for a client that another program starts.

Behind `env`, `timeout` or `npx` the client's own words are the end of the command: flags can be put
among them. In a line of shell or a script they can't be: the line may pipe or redirect the output.
There the client gets its variables, its events are read if it prints any, and otherwise its exit
code decides, as for any command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from truegreen.work.agents.calling import Client
from truegreen.work.agents.command import CLIENT as COMMAND
from truegreen.work.agents.command import CommandReader
from truegreen.work.agents.pointing import Pointed, by_variables
from truegreen.work.agents.reading import (
    Ending,
    Expectation,
    GatewayDoor,
    Live,
    Reader,
    Reading,
)
from truegreen.work.agents.wrappers import program_name, program_place


class Wrapped(Struct, frozen=True, kw_only=True):
    """A client whose words are the end of a command, behind `env`, `timeout`, `npx` and such."""

    client: Client
    has_claims: bool = True
    merged: bool = False

    @property
    def name(self) -> str:
        """The client's."""
        return self.client.name

    @property
    def program(self) -> str:
        """The client's."""
        return self.client.program

    @property
    def passes(self) -> tuple[str, ...]:
        """The client's."""
        return self.client.passes

    @property
    def can(self) -> tuple[str, ...]:
        """The client's."""
        return self.client.can

    @property
    def apis(self) -> tuple[str, ...]:
        """The client's."""
        return self.client.apis

    def _place(self, words: Sequence[str]) -> int | None:
        """Where the client stands; a command for resuming may do without the wrappers."""
        place = program_place(words)
        if place is None or program_name(words[place]) != self.program:
            return None
        return place

    def _own(self, words: Sequence[str]) -> list[str]:
        """The words of the client itself, from its program on."""
        place = self._place(words)
        return list(words) if place is None else [self.program, *words[place + 1 :]]

    def _behind(self, words: Sequence[str], own: list[str]) -> list[str]:
        """The words of the client, behind the wrappers of a command."""
        place = self._place(words)
        return own if place is None else [*words[: place + 1], *own[1:]]

    def recognises(self, command: Sequence[str]) -> bool:
        """Whether a command is this client behind other programs."""
        return self.client.recognises(self._own(command))

    def start(self, command: Sequence[str]) -> int | None:
        """Where the client's own flags begin."""
        start = self.client.start(self._own(command))
        return None if start is None else (self._place(command) or 0) + start

    def argv(
        self, command: Sequence[str], *, goal: str, feedback: str = "", session: str = ""
    ) -> list[str]:
        """The command with its placeholders filled and its events switched on."""
        own = self.client.argv(self._own(command), goal=goal, feedback=feedback, session=session)
        return self._behind(command, own)

    def worded(self, command: Sequence[str]) -> tuple[list[str], str]:
        """The command with `{goal}` in the place of its own prompt, and that prompt."""
        own, prompt = self.client.worded(self._own(command))
        return self._behind(command, own), prompt

    def resume(
        self, command: Sequence[str], resume: Sequence[str], *, session: str, message: str
    ) -> list[str]:
        """As the definition says; else the first command with another prompt, resumed."""
        words = resume or command
        own = self._own(words)
        given = own if resume else ()
        resumed = self.client.resume(own, given, session=session, message=message)
        return self._behind(words, resumed)

    def env(self) -> dict[str, str]:
        """The client's switches."""
        return self.client.env()

    def expects(self, argv: Sequence[str]) -> Expectation:
        """What the client's arguments ask for."""
        return self.client.expects(self._own(argv))

    def reader(self, expects: Expectation) -> Reader:
        """A fresh reader for one run."""
        return self.client.reader(expects)

    def pointed(self, argv: Sequence[str], env: Mapping[str, str], door: GatewayDoor) -> Pointed:
        """The command and the variables with which the client thinks through a door."""
        own, more = self.client.pointed(self._own(argv), env, door)
        return self._behind(argv, own), more


class InShell(Wrapped, frozen=True, kw_only=True):
    """A client that a line of shell or a script starts: its words are not touched."""

    has_claims: bool = False
    merged: bool = True

    def recognises(self, command: Sequence[str]) -> bool:
        """Anything that can be started."""
        return bool(command)

    def start(self, command: Sequence[str]) -> int | None:  # noqa: ARG002 - the protocol's
        """Flags can't be put into a line."""
        return None

    def argv(
        self, command: Sequence[str], *, goal: str, feedback: str = "", session: str = ""
    ) -> list[str]:
        """The command with its placeholders filled."""
        return COMMAND.argv(command, goal=goal, feedback=feedback, session=session)

    def worded(self, command: Sequence[str]) -> tuple[list[str], str]:
        """Which of its words is a prompt is not known."""
        return COMMAND.worded(command)

    def resume(
        self, command: Sequence[str], resume: Sequence[str], *, session: str, message: str
    ) -> list[str]:
        """As the definition says; else the command again."""
        return COMMAND.resume(command, resume, session=session, message=message)

    def expects(self, argv: Sequence[str]) -> Expectation:  # noqa: ARG002 - the protocol's
        """What its line asks for is not known."""
        return Expectation(text=True)

    def reader(self, expects: Expectation) -> Reader:
        """A reader of events, and of plain text where there are none."""
        return EventsOrText(self.client.reader(expects))

    def pointed(self, argv: Sequence[str], env: Mapping[str, str], door: GatewayDoor) -> Pointed:
        """By the variables that every SDK reads."""
        return by_variables(argv, env, door)


class EventsOrText:
    """Reads a client's events; an output without any is that of a plain command."""

    def __init__(self, events: Reader) -> None:
        self._events, self._text = events, CommandReader()

    @property
    def has_events(self) -> bool:
        """Whether an event of the client has come."""
        return self._events.has_events

    @property
    def live(self) -> Live:
        """How far the run has come."""
        return self._events.live if self.has_events else self._text.live

    def feed(self, lines: bytes) -> None:
        """Take some lines of output."""
        self._events.feed(lines)
        self._text.feed(lines)

    def read(self, ending: Ending) -> Reading:
        """Say how the run ended."""
        return (self._events if self.has_events else self._text).read(ending)
