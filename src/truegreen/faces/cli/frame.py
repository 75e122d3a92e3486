"""Click's commands as the house wants them: what all share, examples in the help, near misses."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import click

from truegreen.faces.cli.at_hand import Frame
from truegreen.faces.cli.catalogue import SHARED
from truegreen.faces.cli.declared import (
    OFFERING_HERE,
    Argument,
    Declared,
    Option,
)
from truegreen.faces.meant import empty_value, nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from truegreen.errors import TruegreenError
    from truegreen.model import TaskStatus

__all__ = ["Frame"]

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=click.Command)
Offer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]

_MAY_BE_EMPTY = ("--labels",)
"""A machine that offers no labels may say so."""
_HELP = {name.split(" ")[0]: words for name, words in SHARED.items()}


class Spoken(click.Command):
    """A command whose help ends with examples, and is JSON when that was asked for."""

    examples: tuple[str, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; an option with an empty value is refused, for it would say nothing."""
        if not ctx.resilient_parsing and any(not word.rpartition("=")[2].strip() for word in args):
            _check_not_empty(self, ctx, args)
        return super().parse_args(ctx, args)

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


def _check_not_empty(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Refuse an empty word, which an unset variable of a shell leaves; a free text may be empty."""
    given, _, _ = command.make_parser(ctx).parse_args(args=list(args))
    for param in command.get_params(ctx):
        value = given.get(param.name or "")
        empty = any(isinstance(each, str) and not each.strip() for each in _several(value))
        flag = max(param.opts, key=len)
        free = param.metavar == "TEXT" or flag in _MAY_BE_EMPTY
        if isinstance(param, click.Option) and empty and not free:
            from truegreen.errors import InvalidInput  # noqa: PLC0415 - only a refusal needs it

            message = empty_value(flag, flag.removeprefix("--"))
            raise InvalidInput(message, path=flag, allowed=(f"{ctx.command_path} --help",))


def _several(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def offered(*kinds: str, statuses: Sequence[TaskStatus] = ()) -> Offer:
    """What the Tab key offers for a parameter, by the kinds that `offers` knows."""

    def offer(ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
        from truegreen.faces.cli.offers import offers  # noqa: PLC0415 - only at the Tab key

        return offers(ctx.find_object(Frame) or Frame([]), kinds, statuses, typed)

    return offer


def unwritten(path: str, error: OSError) -> TruegreenError:
    """What to say of a file that could not be written."""
    from shlex import quote  # noqa: PLC0415 - only a refusal needs them

    from truegreen.errors import unwritable  # noqa: PLC0415 - as above

    folder = os.path.dirname(path)
    step = "" if os.path.isdir(folder) else f"; make its folder first: mkdir -p {quote(folder)}"
    return unwritable(f"{path} can't be written: {error.strerror}{step}", error)


def _hint(words: list[str]) -> str:
    return f" Did you mean {' or '.join(words)}?" if words else ""


def _keep(ctx: click.Context, param: click.Parameter, value: object) -> None:
    frame = ctx.find_object(Frame)
    if frame and value and param.name:
        setattr(frame, param.name, value)


def offering_here(function: F) -> F:
    """The options by which somebody carries a task out here that asks for a place of its own."""
    for option in reversed(OFFERING_HERE):
        names, told = _told(option)
        function = click.option(*names, **told)(function)
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


# --- commands that are declared as data


def made(declared: Declared) -> Spoken:
    """The same for click: its help, its refusals, and words that are not plain."""
    told, takes = map(_told, declared.options), declared.argument
    params: list[click.Parameter] = [click.Option(names, **more) for names, more in told]
    if takes:
        params.insert(len(params) if takes.rest else 0, _argument(takes))
    spoken = Spoken(
        declared.name,
        callback=click.pass_obj(declared.function),
        params=[*params, *shared_options()],
        help=declared.function.__doc__,
    )
    spoken.examples = declared.examples
    spoken.allow_interspersed_args = not (takes and takes.rest)
    return spoken


def _told(option: Option) -> tuple[list[str], dict[str, Any]]:
    """What click wants to know of an option; it knows several sorts of nothing."""
    names = ["/".join(filter(None, (option.flag, option.off))), option.parameter]
    names += [option.also] if option.also else []
    told: dict[str, Any] = {"help": option.help}
    if option.kind is bool:
        return names, told | ({"default": None} if option.off else {"is_flag": True})
    told |= {"type": _type_of(option.kind), "multiple": option.many, "metavar": option.metavar}
    if option.default is not None:
        told |= {"default": option.default, "show_default": bool(option.default)}
    if option.longest:
        told["callback"] = _checks(option)
    if option.offers:
        told["shell_complete"] = offered(*option.offers)
    return names, told


def _type_of(kind: Any) -> click.ParamType[Any] | None:
    if isinstance(kind, tuple):
        return click.IntRange(*kind)
    return Word(kind) if kind else None


def _checks(option: Option) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    from truegreen.contract import checked  # noqa: PLC0415 - help and states need none

    def check(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
        return value if value is None else checked(value, option.flag, option.longest)

    return check


def _argument(takes: Argument) -> click.Argument:
    if takes.rest:
        return click.Argument([takes.name], nargs=-1, metavar=takes.metavar, type=click.UNPROCESSED)
    offer = offered(*takes.offers, statuses=takes.statuses)
    return click.Argument([takes.name], shell_complete=offer)
