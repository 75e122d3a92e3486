"""The root of the commands: finds the one that is meant, loads it alone, runs it to a status."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from truegreen.faces.cli.catalogue import COMMANDS, root_help
from truegreen.faces.cli.declared import Declared
from truegreen.faces.cli.faults import guarded
from truegreen.faces.cli.frame import Family, Frame, made, shared_options
from truegreen.faces.cli.output import lenient

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Root(Family):
    """Every command by name; only the one that is used is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"truegreen.faces.cli.{COMMANDS[cmd_name][0]}")
        gc.freeze()  # what is loaded stays: to look through it for garbage would take 6 ms
        gc.enable()
        found: click.Command | Declared = module.COMMANDS[cmd_name]
        return made(found) if isinstance(found, Declared) else found

    def get_help(self, ctx: click.Context) -> str:
        """The help of the whole, without loading a command."""
        frame = ctx.find_object(Frame)
        return super().get_help(ctx) if frame and frame.json else root_help().rstrip("\n")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names and options, without loading a command."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only at the Tab key

        names = [
            CompletionItem(name, help=words)
            for name, (_, words) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)


def make_root() -> Root:
    """The group of all commands."""
    return Root(
        "truegreen",
        params=[
            *shared_options(),
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_version,
                help="the version",
            ),
        ],
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        no_args_is_help=False,
    )


def _version(ctx: click.Context, _param: click.Parameter, value: object) -> None:
    if value:
        command = make_root().get_command(ctx, "version")
        if command:
            ctx.invoke(command)
        ctx.exit(0)


def run(words: list[str]) -> int:
    """Carry out one command line."""
    name = _called()
    completing = os.environ.get(f"_{name.upper()}_COMPLETE")
    if completing:
        from click.shell_completion import shell_complete  # noqa: PLC0415 - only at the Tab key

        return shell_complete(
            make_root(), {"obj": Frame(words)}, name, f"_{name.upper()}_COMPLETE", completing
        )
    lenient()
    frame = Frame(words)
    return guarded(frame, lambda: _carry_out(frame, name))


def _carry_out(frame: Frame, name: str) -> int | None:
    for number, word in enumerate(frame.words, 1):
        if not word.isascii() and any("\ud800" <= character <= "\udfff" for character in word):
            raise click.UsageError(f"Argument {number} is not valid UTF-8.")
    root = make_root()
    with root.make_context(name, list(frame.words), obj=frame) as context:
        status: int | None = root.invoke(context)
    return status


def _called() -> str:
    return "tg" if os.path.basename(sys.argv[0]) == "tg" else "truegreen"


def retold(frame: Frame, name: str, error: BaseException) -> int:
    """An error of a command that was read without click, told as if it had not been."""

    def again() -> int:
        if isinstance(error, click.UsageError) and error.ctx is None:
            root = make_root()
            above = click.Context(root, info_name=_called(), obj=frame)
            command = root.get_command(above, name) or root
            error.ctx = click.Context(command, above, name)
        raise error

    return guarded(frame, again)
