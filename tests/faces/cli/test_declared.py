"""What is read without click is what click reads, and what click would refuse is left to it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click
import pytest

from truegreen.faces.cli import declared
from truegreen.faces.cli.at_hand import Frame
from truegreen.faces.cli.catalogue import COMMANDS
from truegreen.faces.cli.declared import Declared, run_plain
from truegreen.faces.cli.frame import made
from truegreen.faces.cli.root import make_root

Said = tuple[dict[str, Any], str | None, str | None, bool]
NAMES = [name for name, (module, _) in COMMANDS.items() if module in declared._MODULES]
PLAIN = [
    ["list"],
    ["list", "--json"],
    ["--json", "--store", "sqlite:////x", "list"],
    ["list", "--store", "sqlite:////x", "--config", "c.toml", "--limit", "7"],
    ["list", "--status", "failed", "--cell", "silent_failure", "--status", "queued"],
    ["list", "--role", "planner", "--agent", "a", "--since", "7d", "--after", "x", "--search", "y"],
    ["list", "--limit", "3", "--limit", "4", "--exit-reason", "done"],
    ["show", "tsk_1"],
    ["show", "--json", "tsk_1"],
    ["attempt", "tsk_1", "--anyway", "--labels", "a,b"],
    ["run", "--", "true"],
    ["run", "true", "--json", "--", "-x"],
    ["run", "--no-wait", "--gate", "make", "--gate", "pytest -q", "--isolation", "none", "true"],
    ["run", "--gateway", "--max-attempts", "2", "--", "--", "x", ""],
    ["run", "--task", "fix"],
    ["add", "--priority", "5", "--label", "gpu", "--depends-on", "tsk_1", "--", "true"],
]
UNUSUAL = [
    [],
    ["states"],
    ["--help"],
    ["list", "--help"],
    ["list", "-h"],
    ["list", "extra"],
    ["list", "--", "--json"],
    ["list", "--limit"],
    ["list", "--limit", "0"],
    ["list", "--limit", "-1"],
    ["list", "--limit=3"],
    ["list", "--status", "done"],
    ["list", "--nothing"],
    ["list", "--role", ""],
    ["list", "--role", "-x"],
    ["list", "--role", "--json"],
    ["run", "--gate", "--", "true"],
    ["list", "--role", "x" * 1001],
    ["list", "--role", "\udcff"],
    ["list", "--store"],
    ["--nothing", "list"],
    ["show"],
    ["show", "a", "b"],
    ["run", "--no-gateway", "--", "true"],
    ["run", "--", "\udcff"],
    ["add", "--priority", "-5"],
]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[Said]:
    """What the functions of the commands are called with."""
    heard: list[Said] = []

    def hear(frame: Frame, **values: Any) -> int:
        heard.append((values, frame.store, frame.config, frame.json))
        return 4

    for name in NAMES:
        commands = import_module(f"truegreen.faces.cli.{COMMANDS[name][0]}").COMMANDS
        monkeypatch.setitem(commands, name, commands[name]._replace(function=hear))
    return heard


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_plain_words_mean_the_same_with_and_without_click(words: list[str], said: list[Said]):
    assert run_plain(words) == 4
    frame = Frame(words)
    with make_root().make_context("truegreen", list(words), obj=frame) as context:
        assert context.command.invoke(context) == 4
    plain, clicked = said
    assert plain == clicked
    assert {key: type(value) for key, value in plain[0].items()} == {
        key: type(value) for key, value in clicked[0].items()
    }


@pytest.mark.parametrize("words", UNUSUAL, ids=ascii)
def test_whatever_is_unusual_is_left_to_click(words: list[str], said: list[Said]):
    assert run_plain(words) is None
    assert said == []


def test_every_option_that_is_declared_is_one_of_click():
    for name in NAMES:
        found: Declared = import_module(f"truegreen.faces.cli.{COMMANDS[name][0]}").COMMANDS[name]
        params = {each.name: each for each in made(found).params}
        for option in found.options:
            param = params[option.parameter]
            assert isinstance(param, click.Option)
            assert option.flag in param.opts
            assert param.help == option.help
            assert param.multiple == option.many


def test_a_mistake_within_a_command_names_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(frame: Frame, **values: Any) -> int:
        raise click.UsageError(f"not so: {frame.words} {len(values)}")

    commands = import_module("truegreen.faces.cli.tasks").COMMANDS
    monkeypatch.setitem(commands, "list", commands["list"]._replace(function=refuse))
    assert run_plain(["list"]) == 2
    assert "next: truegreen list --help" in capsys.readouterr().err
