"""Options with an empty value, as an unset variable of a shell leaves them: refused."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tests.faces.conftest import Run
from tests.table import each_row
from truegreen.errors import InvalidInput
from truegreen.faces.cli.frame import Frame
from truegreen.faces.cli.root import make_root

FREE = {"--labels"}


def commands(group: click.Group, ctx: click.Context) -> Iterator[click.Command]:
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        assert found
        yield found
        if isinstance(found, click.Group):
            yield from commands(found, ctx)


def options(command: click.Command) -> Iterator[click.Option]:
    for param in command.params:
        if isinstance(param, click.Option) and not param.is_flag and not param.count:
            yield param


def test_every_option_that_takes_a_word_refuses_an_empty_one() -> None:
    root = make_root()
    ctx = click.Context(root, info_name="truegreen", obj=Frame([]))
    every = [root, *commands(root, ctx)]
    found = [(each, option) for each in every for option in options(each)]
    assert len(found) > 100
    taken = set()
    for command, option in found:
        flag = max(option.opts, key=len)
        for words in ([flag, ""], [flag, " "], [f"{flag}="]):
            if flag in FREE or option.metavar == "TEXT":
                continue
            try:
                command.make_context(command.name, words, parent=ctx)
            except InvalidInput as error:
                said = error.message
            except click.UsageError as error:
                said = error.message
            else:
                said = "taken"
            if not said.startswith(f"{flag} is empty"):
                taken.add((command.name, flag, said))
    assert taken == set()


@each_row("verb", ["run", "add"])
@each_row(
    ("option", "way"),
    [
        ("--rescue", "write --rescue none to turn it off, or leave it out"),
        ("--cap", "for none, leave --cap out"),
        ("--agent", "for none, leave --agent out"),
        ("--task", "for none, leave --task out"),
    ],
)
def test_nothing_is_ordered_by_an_empty_word(tg: Run, verb: str, option: str, way: str) -> None:
    refused = tg(verb, option, "", "--json", "--", "true")
    assert refused.status == 2
    assert way in refused.error("invalid_input")["message"]
    assert tg("list", "--json").json()["tasks"] == []


def test_an_argument_of_the_agent_may_be_empty(tg: Run) -> None:
    assert tg("add", "--rescue", "none", "--", "sh", "-c", "true", "").status == 0
    assert tg("add", "--", "").status == 2
