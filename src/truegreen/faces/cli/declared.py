"""Commands as data: plain words are read here, without click, which takes a sixth of a start.

Only what click would read the same way is read. Whatever is unusual, wrong, or a question about the
command itself is left to click, which knows how to say so; `frame` makes its commands of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from truegreen.faces.cli.at_hand import Frame
from truegreen.faces.cli.catalogue import COMMANDS
from truegreen.faces.cli.output import lenient
from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    from truegreen.model import TaskStatus

_MODULES = ("tasks", "run")
"""Where the commands are that scripts call again and again."""
_SHARED = ("--store", "--config")


class Option(NamedTuple):
    """An option of a command: text, unless its kind is a set of words, two bounds, or bool."""

    flag: str
    help: str
    metavar: str = ""
    kind: type[StrEnum | bool] | tuple[int, int] | None = None
    called: str = ""
    default: object = None
    many: bool = False
    offers: tuple[str, ...] = ()
    off: str = ""
    """The flag that says no."""
    also: str = ""
    """Another spelling of the flag."""
    longest: int = 0
    """How many bytes of text are taken, where that is checked."""

    @property
    def parameter(self) -> str:
        """What the function calls it."""
        return self.called or self.flag.removeprefix("--").replace("-", "_")


class Argument(NamedTuple):
    """What stands without a flag: one word, or all words that are left."""

    name: str
    metavar: str = ""
    rest: bool = False
    offers: tuple[str, ...] = ()
    statuses: Sequence[TaskStatus] = ()


class Declared(NamedTuple):
    """A command: its function gets the frame and what was given, and says its exit status."""

    name: str
    function: Callable[..., int | None]
    options: tuple[Option, ...]
    argument: Argument | None = None
    examples: tuple[str, ...] = ()


OFFERING_HERE = (
    Option("--labels", "What this machine offers.", "LIST", default=""),
    Option("--anyway", "Whatever labels or host the task wants.", kind=bool),
)
"""By which somebody carries a task out here that asks for a place of its own."""


class _UnusualError(Exception):
    """Click has to look at it."""


def run_plain(words: list[str]) -> int | None:
    """Carry out a plain command line; nothing has happened where there is no status."""
    frame = Frame(words)
    rest = iter(words)
    try:
        name = _before(frame, rest)
        declared = _load(name)
        values = _read(declared, frame, rest)
    except _UnusualError:
        return None
    lenient()
    try:
        return declared.function(frame, **values) or 0
    except BaseException as error:  # noqa: BLE001 - told by the one handler
        from truegreen.faces.cli.root import retold  # noqa: PLC0415 - only a refusal needs click

        return retold(frame, name, error)


def _load(name: str) -> Declared:
    if name not in COMMANDS or COMMANDS[name][0] not in _MODULES:
        raise _UnusualError
    import gc  # noqa: PLC0415 - built in
    from importlib import import_module  # noqa: PLC0415 - only now

    try:
        module = import_module(f"truegreen.faces.cli.{COMMANDS[name][0]}")
    except Exception as error:  # it is told where it happens again, under the one handler
        raise _UnusualError from error
    gc.freeze()  # what is loaded stays: to look through it for garbage would take 6 ms
    gc.enable()
    found: Declared = module.COMMANDS[name]
    return found


def _before(frame: Frame, rest: Iterator[str]) -> str:
    """The name of the command; what all commands share may stand before it."""
    for word in rest:
        if not word.startswith("-"):
            return word
        if not _shared(frame, word, rest):
            break
    raise _UnusualError


def _shared(frame: Frame, word: str, rest: Iterator[str]) -> bool:
    if word in _SHARED:
        setattr(frame, word.removeprefix("--"), _value(rest))
    return word in _SHARED or word == "--json"


def _read(declared: Declared, frame: Frame, rest: Iterator[str]) -> dict[str, Any]:
    """What the function is called with."""
    options = {flag: o for o in declared.options for flag in (o.flag, o.also) if flag}
    values = {o.parameter: () if o.many else o.default for o in declared.options}
    values |= {o.parameter: False for o in declared.options if o.kind is bool and not o.off}
    takes, free = declared.argument, []
    for word in rest:
        if takes and takes.rest and (word == "--" or not word.startswith("-")):
            free = [*([] if word == "--" else [word]), *rest]
        elif not word.startswith("-"):
            free.append(word)
        elif word in options:
            option = options[word]
            value = True if option.kind is bool else _converted(option, _value(rest))
            known: Any = values[option.parameter]
            values[option.parameter] = (*known, value) if option.many else value
        elif not _shared(frame, word, rest):
            raise _UnusualError
    return values | _argument(takes, free)


def _argument(takes: Argument | None, free: list[str]) -> dict[str, Any]:
    if not all(word.isascii() for word in free):
        raise _UnusualError  # it may be no text at all
    if takes and takes.rest:
        return {takes.name: tuple(free)}
    if len(free) != (1 if takes else 0) or not all(free):
        raise _UnusualError
    return {takes.name: free[0]} if takes else {}


def _value(rest: Iterator[str]) -> str:
    value = next(rest, "")
    if not value or not value.isascii() or value.startswith("-"):
        raise _UnusualError
    return value


def _converted(option: Option, value: str) -> object:
    kind = option.kind
    if isinstance(kind, tuple):
        least, most = kind
        if not value.isdigit() or not least <= int(value) <= most:
            raise _UnusualError
        return int(value)
    if kind:
        try:
            return kind(value)
        except ValueError:
            raise _UnusualError from None
    if option.longest and len(value) > option.longest:
        raise _UnusualError
    return value
