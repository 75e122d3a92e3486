"""Any command: it is given its goal by placeholders, and its exit code says how it ended.

It has no declaration of its own, so exit code 0 stands for one, and the last lines that it printed
are its words. A claim file or a declaration to the supervisor says more, and is read elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truegreen.facts import EXIT, OUTPUT, Claim
from truegreen.model import PARENT, ClaimKind, ExitDetail
from truegreen.work.agents import prompts
from truegreen.work.agents.pointing import Pointed, by_variables
from truegreen.work.agents.reading import (
    Ending,
    Expectation,
    GatewayDoor,
    Live,
    Reader,
    Reading,
)
from truegreen.work.agents.wording import MESSAGE, cut, decoded, one_line

NAME = "command"
_LAST_LINES = 20
"""How many lines at the end of its output are the words of a command."""
_TAIL = 4 * MESSAGE
"""Bytes of the output that are kept for them."""


class CommandReader:
    """Looks at the last line while it runs, and at the last lines and the exit code at the end."""

    def __init__(self) -> None:
        self._live = Live()
        self._last = b""
        self._tail = b""

    @property
    def has_events(self) -> bool:
        """It has none."""
        return False

    @property
    def live(self) -> Live:
        """The last line that it printed; only made readable when somebody looks."""
        self._live.said = one_line(decoded(self._last[:1000]))
        return self._live

    def feed(self, lines: bytes) -> None:
        """Remember the last line that says something, and the end of the output."""
        more = lines[-_TAIL:]
        self._tail = more if len(more) == _TAIL else b"\n".join((self._tail, more))[-_TAIL:]
        end = len(lines)
        while end >= 0:
            begin = lines.rfind(b"\n", 0, end) + 1
            line = lines[begin:end]
            if line and not line.isspace():
                self._last = line
                return
            end = begin - 1

    def read(self, ending: Ending) -> Reading:
        """Say what the exit code says, with the last lines for its words."""
        detail, message = _ended(ending)
        words = last_lines(decoded(self._tail))
        claim = None
        if detail is ExitDetail.COMPLETED:
            source = OUTPUT if words else EXIT
            claim = Claim(kind=ClaimKind.DONE, reason=words or "exit code 0", source=source)
        return Reading(
            reason=PARENT[detail],
            detail=detail,
            claim=claim,
            words=words,
            message=message,
            evidence={"rule": "exit"},
        )


def last_lines(text: str) -> str:
    """The last lines of an output that say something, made fit to be shown, within a bound."""
    shown = (cut(line, MESSAGE).rstrip() for line in text.splitlines()[-4 * _LAST_LINES :])
    kept: list[str] = []
    room = MESSAGE
    for line in reversed([line for line in shown if line][-_LAST_LINES:]):
        if len(line) > room:
            break
        kept.append(line)
        room -= len(line) + 1
    return "\n".join(reversed(kept))


def _ended(ending: Ending) -> tuple[ExitDetail, str]:
    if ending.stopped or (ending.code is None and ending.signal is None):
        return ExitDetail.UNCLAIMED, "it had no chance to end by itself"
    if ending.signal is not None:
        return ExitDetail.SIGNALED, f"ended by signal {ending.signal}"
    if ending.code:
        return ExitDetail.AGENT_ERROR, f"exit {ending.code}"
    if ending.survivors:
        return ExitDetail.UNCLAIMED, f"{ending.survivors} processes may still act"
    return ExitDetail.COMPLETED, "exit code 0"


class Command:
    """The adapter for everything that has none of its own."""

    name = NAME
    program = ""
    has_claims = False
    merged = True
    passes: tuple[str, ...] = ()
    apis = ("anthropic", "openai", "gemini")
    can = ("exit code", "claim file", "resume by its own command")

    def recognises(self, command: Sequence[str]) -> bool:
        """Anything that can be started."""
        return bool(command)

    def start(self, command: Sequence[str]) -> int | None:  # noqa: ARG002 - the protocol's
        """Its flags are not known."""
        return None

    def argv(
        self, command: Sequence[str], *, goal: str, feedback: str = "", session: str = ""
    ) -> list[str]:
        """The command with its placeholders filled; nothing else of it is touched."""
        return prompts.filled(
            command, goal=goal, feedback=feedback, session=session, message=feedback
        )

    def worded(self, command: Sequence[str]) -> tuple[list[str], str]:
        """Which of its words is a prompt is not known."""
        return list(command), ""

    def resume(
        self, command: Sequence[str], resume: Sequence[str], *, session: str, message: str
    ) -> list[str]:
        """As the definition says; else the command again, with the message for its feedback."""
        words = resume or command
        return prompts.filled(
            words, goal=message, feedback=message, session=session, message=message
        )

    def env(self) -> dict[str, str]:
        """Nothing is known about it."""
        return {}

    def expects(self, argv: Sequence[str]) -> Expectation:  # noqa: ARG002 - the protocol's
        """Nothing is known about it."""
        return Expectation()

    def reader(self, expects: Expectation) -> Reader:  # noqa: ARG002 - the protocol's
        """A fresh reader for one run."""
        return CommandReader()

    def pointed(self, argv: Sequence[str], env: Mapping[str, str], door: GatewayDoor) -> Pointed:
        """By the variables that every SDK reads."""
        return by_variables(argv, env, door)


CLIENT = Command()
