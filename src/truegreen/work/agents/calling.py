"""How clients are called: which arguments are the prompt, which switch events on, which resume.

A client is a value made of such facts; its module fills it in. Nothing here reads a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from truegreen.work.agents import prompts
from truegreen.work.agents.pointing import Pointed, by_variables
from truegreen.work.agents.reading import Expectation, GatewayDoor, Reader


class Calling(Struct, frozen=True, kw_only=True):
    """The shape of a client's command line."""

    program: str
    subcommands: tuple[str, ...] = ()
    """Words of which one must be there; the flags below belong behind it."""
    prompt_flags: tuple[str, ...] = ()
    only_with_flag: bool = False
    """The prompt stands right behind its flag, or is none of ours."""
    valued: frozenset[str] = frozenset()
    """Flags that take a value, which is then no prompt."""
    format_flags: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    resume_flag: str = "--resume"

    def start(self, command: Sequence[str]) -> int | None:
        """Where the client's own flags begin; None if this is another program or way to call it."""
        if not prompts.is_program(command, self.program):
            return None
        if not self.subcommands:
            return 1
        places = [n for n, word in enumerate(command) if n and word in self.subcommands]
        return places[0] + 1 if places else None

    def prompt(self, command: Sequence[str]) -> int | None:
        """Where the prompt stands."""
        start = self.start(command)
        if start is None:
            return None
        place = prompts.prompt_after(command, self.prompt_flags)
        if place is not None or self.only_with_flag:
            return place
        return prompts.last_positional(command, self.valued, start)

    def recognises(self, command: Sequence[str]) -> bool:
        """Headless only: nobody sits at a terminal here."""
        if self.start(command) is None:
            return False
        flagged = any(word in self.prompt_flags for word in command)
        return flagged or (not self.only_with_flag and self.prompt(command) is not None)

    def streaming(self, argv: list[str]) -> list[str]:
        """With events switched on; another format that somebody chose stays."""
        start = self.start(argv)
        if start is None or not self.recognises(argv):
            return argv
        if prompts.value_of(argv, *self.format_flags) is not None:
            return argv
        return prompts.inserted(argv, start, *self.events)

    def resumed(self, command: list[str], session: str, message: str) -> list[str]:
        """The same call with another prompt, in an earlier session."""
        place, start = self.prompt(command), self.start(command)
        if place is not None:
            command = prompts.replaced(command, place, message)
        if start is None:
            return command
        return prompts.inserted(command, start, self.resume_flag, session)


class Client(Struct, frozen=True, kw_only=True):
    """An adapter: a client's name, how it is called, and who reads its stream."""

    name: str
    calling: Calling
    passes: tuple[str, ...]
    can: tuple[str, ...]
    switches: dict[str, str]
    reading: Callable[[Expectation], Reader]
    expecting: Callable[[Sequence[str]], Expectation]
    has_claims: bool = True
    merged: bool = False
    apis: tuple[str, ...] = ()
    pointing: Callable[[Sequence[str], Mapping[str, str], GatewayDoor], Pointed] = by_variables

    @property
    def program(self) -> str:
        """The basename that it recognises."""
        return self.calling.program

    def recognises(self, command: Sequence[str]) -> bool:
        """Whether a command is this client, called in a way that this adapter can read."""
        return self.calling.recognises(command)

    def start(self, command: Sequence[str]) -> int | None:
        """Where its own flags begin; None if this is another program or way to call it."""
        return self.calling.start(command)

    def argv(
        self, command: Sequence[str], *, goal: str, feedback: str = "", session: str = ""
    ) -> list[str]:
        """The command with its placeholders filled and its events switched on."""
        place = self.calling.prompt(command)
        words = prompts.prompted(command, place, goal=goal, feedback=feedback, session=session)
        return self.calling.streaming(words)

    def worded(self, command: Sequence[str]) -> tuple[list[str], str]:
        """The command with `{goal}` in the place of its own prompt, and that prompt."""
        place = self.calling.prompt(command)
        if place is None or command[place] == "-" or prompts.asks(command, "goal"):
            return list(command), ""
        return prompts.replaced(command, place, "{goal}"), command[place]

    def resume(
        self, command: Sequence[str], resume: Sequence[str], *, session: str, message: str
    ) -> list[str]:
        """As the definition says; else the first command with another prompt, resumed."""
        if resume:
            words = prompts.filled(resume, session=session, message=message)
        else:
            words = prompts.filled(command, goal=message, session=session)
            words = self.calling.resumed(words, session, message)
        return self.calling.streaming(words)

    def env(self) -> dict[str, str]:
        """Switches that make the client behave under supervision."""
        return dict(self.switches)

    def expects(self, argv: Sequence[str]) -> Expectation:
        """What the arguments ask for."""
        return self.expecting(argv)

    def reader(self, expects: Expectation) -> Reader:
        """A fresh reader for one run."""
        return self.reading(expects)

    def pointed(self, argv: Sequence[str], env: Mapping[str, str], door: GatewayDoor) -> Pointed:
        """The command and the variables with which it thinks through a door."""
        return self.pointing(argv, env, door)
