"""What every command shares: `--json`, `--store`, `--config`, a ledger, and one way to answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import click

from truegreen.faces.cli.catalogue import SHARED
from truegreen.faces.cli.output import write_json

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from truegreen.config import Config
    from truegreen.errors import TruegreenError
    from truegreen.faces.cli.paper import Paper
    from truegreen.facts import Actor
    from truegreen.model import TaskStatus
    from truegreen.record.ledger import Ledger

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=click.Command)
Offer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]

_HELP = {name.split(" ")[0]: words for name, words in SHARED.items()}


class Frame:
    """What a command has at hand; nothing is loaded or opened before it is asked for."""

    def __init__(self, words: list[str]) -> None:
        before = words[: words.index("--")] if "--" in words else words
        self.words = words
        self.json = "--json" in before
        self._follows = "--follow" in before or "-f" in before
        self._answered = False
        self.store: str | None = None
        self.config: str | None = None
        self.settings: Config | None = None

    def load(self) -> Config:
        """The settings in force."""
        from truegreen.config import load_config  # noqa: PLC0415 - help and states need none

        try:
            here = os.getcwd()
        except OSError as error:
            message = f"the working directory can't be read: {error.strerror}"
            raise click.UsageError(message) from None
        self.settings = load_config(os.environ, here, store=self.store, config=self.config)
        return self.settings

    @contextmanager
    def ledger(self, *, makes: bool = False) -> Iterator[Ledger]:
        """The ledger of the store in force; `makes` creates one also where `--store` says."""
        from truegreen.app import ledger_of, put_right  # noqa: PLC0415 - help needs no record

        config = self.settings or self.load()
        if self.store and not makes:
            self.check_there(config)
        ledger = ledger_of(config)
        try:
            put_right(ledger)
            yield ledger
        finally:
            ledger.close()

    def check_there(self, config: Config) -> None:
        """Refuse a store that somebody named and that is not there: the name may be mistyped."""
        from truegreen.app import RUN_VARIABLE, is_missing, store_file  # noqa: PLC0415 - as above

        # To an agent it may be hidden; whoever opens it says that.
        if self.store and RUN_VARIABLE not in os.environ and is_missing(config):
            from shlex import quote  # noqa: PLC0415 - only a refusal needs them

            from truegreen.errors import NotFound  # noqa: PLC0415 - as above

            step = f"truegreen migrate --store {quote(self.store)}"
            words = f"there is no store at {store_file(config)}; is --store right?"
            message = f"{words} migrate, run, add and up make one there"
            raise NotFound(message, allowed=(step,), path="--store")

    @contextmanager
    def acting(self, *, makes: bool = False) -> Iterator[tuple[Ledger, Actor]]:
        """The ledger, and the person who changes something in it; nobody inside a run is one."""
        from truegreen.app import check_outside, operator  # noqa: PLC0415 - as above

        me = operator()
        with self.ledger(makes=makes) as ledger:
            check_outside(ledger)
            yield ledger, me

    def give(self, document: object, draw: Callable[[Paper], None] | None = None) -> None:
        """Answer: as one JSON document, or drawn for people."""
        self._answered = True
        if self.json or draw is None:
            write_json(document)
        else:
            draw(self.paper())

    @property
    def owes(self) -> bool:
        """Whether a program still waits for its document; who follows ends it with Ctrl-C."""
        return self.json and not self._answered and not self._follows

    @staticmethod
    def paper() -> Paper:
        """What people read."""
        from truegreen.faces.cli.paper import Paper  # noqa: PLC0415 - JSON needs none

        return Paper()


class Spoken(click.Command):
    """A command whose help ends with examples, and is JSON when that was asked for."""

    examples: tuple[str, ...] = ()

    def get_help(self, ctx: click.Context) -> str:
        """The help text."""
        text = super().get_help(ctx)
        frame = ctx.find_object(Frame)
        if not frame or not frame.json:
            return text
        from truegreen.faces.documents import encoded  # noqa: PLC0415 - as above

        return encoded({"help": text}).decode().rstrip("\n")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The examples, as they are typed."""
        if not self.examples:
            return
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Family(Spoken, click.Group):
    """A command with commands below it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; an unknown one is refused with the nearest."""
        name = args[0]
        known = self.list_commands(ctx)
        halfway = ctx.resilient_parsing  # at the Tab key nobody reads a refusal
        if name not in known and not name.startswith("-") and not halfway:
            raise UnknownCommand(name, known, ctx)
        return super().resolve_command(ctx, args)


_ALIKE = {
    "list": "ls ps status tasks",
    "stop": "kill delete rm remove",
    "retry": "restart reopen rerun again",
    "up": "serve server dashboard ui start",
    "demo": "init setup",
    "verify": "check test",
}
"""What other programs call the same."""


class UnknownCommand(click.UsageError):
    """There is no such command; `possibilities` are the nearest."""

    def __init__(self, name: str, known: list[str], ctx: click.Context) -> None:
        alike = [
            ours for ours, theirs in _ALIKE.items() if name in theirs.split() and ours in known
        ]
        self.possibilities = list(dict.fromkeys([*alike, *nearest(name, known)]))
        super().__init__(f"No such command '{name}'.{_hint(self.possibilities)}", ctx)
        if "show" in known and ctx.parent and not self.possibilities:
            self.step = f"{ctx.command_path} show {name}"


class Word(click.Choice[str]):
    """A word of one of the house's closed sets."""

    def __init__(self, words: type[StrEnum]) -> None:
        super().__init__([word.value for word in words])
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The member that is meant; anything else is refused with the nearest."""
        try:
            return self._words(value)
        except ValueError:
            known = [str(choice) for choice in self.choices]
            hint = _hint(nearest(str(value), known)) or f" It is one of {', '.join(known)}."
            self.fail(f"'{value}' is no such word.{hint}", param, ctx)


def offered(*kinds: str, statuses: Sequence[TaskStatus] = ()) -> Offer:
    """What the Tab key offers for a parameter, by the kinds that `offers` knows."""

    def offer(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
        from truegreen.faces.cli.offers import offers  # noqa: PLC0415 - only at the Tab key

        return offers(ctx.find_object(Frame) or Frame([]), kinds, statuses, typed)

    return offer


def unwritten(path: str, error: OSError) -> TruegreenError:
    """What to say of a file that could not be written."""
    from shlex import quote  # noqa: PLC0415 - only a refusal needs them

    from truegreen.errors import Unavailable  # noqa: PLC0415 - as above

    folder = os.path.dirname(path)
    step = "" if os.path.isdir(folder) else f"; make its folder first: mkdir -p {quote(folder)}"
    return Unavailable(f"{path} can't be written: {error.strerror}{step}")


def nearest(word: str, known: list[str]) -> list[str]:
    """What somebody may have meant."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

    return get_close_matches(word[:80], known, n=3)


def _hint(words: list[str]) -> str:
    return f" Did you mean {' or '.join(words)}?" if words else ""


def _keep(ctx: click.Context, param: click.Parameter, value: object) -> None:
    frame = ctx.find_object(Frame)
    if frame and value and param.name:
        setattr(frame, param.name, value)


def offering_here(function: F) -> F:
    """The options by which somebody carries a task out here that asks for a place of its own."""
    for option in (
        click.option("--anyway", is_flag=True, help="Whatever labels or host the task wants."),
        click.option("--labels", default="", metavar="LIST", help="What this machine offers."),
    ):
        function = option(function)
    return function


def shared_options() -> list[click.Option]:
    """The options that stand before or after the name of every command."""
    common: dict[str, Any] = {"expose_value": False, "callback": _keep, "is_eager": True}
    return [
        click.Option(["--json"], is_flag=True, help=_HELP["--json"], **common),
        click.Option(["--store"], metavar="URL", help=_HELP["--store"], **common),
        click.Option(["--config"], metavar="FILE", help=_HELP["--config"], **common),
    ]


def command(name: str, *examples: str) -> Callable[[F], Spoken]:
    """A command: a function that gets the frame and says its exit status."""

    def make(function: F) -> Spoken:
        made = click.command(name, cls=Spoken)(click.pass_obj(function))
        made.params += shared_options()
        made.examples = examples
        return made

    return make


def family(name: str, help_text: str, members: list[Spoken], *examples: str) -> Family:
    """A command that has others below it."""
    made = Family(name, help=help_text, params=list(shared_options()), no_args_is_help=False)
    for member in members:
        made.add_command(member)
    made.examples = examples
    return made
