"""`config`, `completion` and `version`: what this program is set to, and how to type less of it."""

from __future__ import annotations

import os
import sys

import click

from truegreen import __version__
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.output import write_text
from truegreen.faces.cli.paper import Column, Ink, Paper, Row

SHELLS = ("bash", "zsh", "fish")


@command(
    "config",
    "truegreen config                             every setting, its value and its source",
    "truegreen config --json",
    "truegreen config --schema > truegreen.schema.json",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of truegreen.toml instead.")
def config(frame: Frame, *, schema: bool) -> None:
    """Print the settings in force, all defaults spelled out, each with where it comes from."""
    if schema:
        from truegreen.contract import json_schema  # noqa: PLC0415 - a long way to a rare page

        frame.give(json_schema())
        return
    described = frame.load().describe()

    def draw(paper: Paper) -> None:
        for warning in described["warnings"]:
            paper.say(Ink(f"warning: {warning}", "bold"))
        rows = [
            Row([name, entry["source"], _value(entry["value"])])
            for name, entry in described["settings"].items()
        ]
        heads = [Column("SETTING"), Column("SOURCE", grows=True), Column("VALUE", grows=True)]
        paper.table(heads, rows)

    frame.give(described, draw)


def _value(value: object) -> str:
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return ", ".join(value) or "none"
    from truegreen.contract import canonical  # noqa: PLC0415 - next to its use

    return "-" if value is None else canonical(value)


@command(
    "completion",
    'bash   add to ~/.bashrc:   eval "$(truegreen completion bash)"',
    'zsh    add to ~/.zshrc:    eval "$(truegreen completion zsh)"',
    "fish   truegreen completion fish > ~/.config/fish/completions/truegreen.fish",
    "       (the same with tg for the short name)",
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(frame: Frame, shell: str) -> None:
    """Print the completion script for SHELL: bash, zsh or fish. See below how to install it."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - only here

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    name = "tg" if os.path.basename(sys.argv[0]) == "tg" else "truegreen"
    root = click.get_current_context().find_root().command
    made = kind(root, {}, name, f"_{name.upper()}_COMPLETE")
    script = made.source_template % made.source_vars()
    frame.give({"shell": shell, "script": script}, lambda _: write_text(f"{script}\n"))


@command("version", "truegreen version", "truegreen version --json")
def version(frame: Frame) -> None:
    """Print the version."""
    python = ".".join(map(str, sys.version_info[:3]))
    document = {"version": __version__, "python": python}
    frame.give(document, lambda paper: paper.say(f"truegreen {__version__}"))


COMMANDS = {"config": config, "completion": completion, "version": version}
