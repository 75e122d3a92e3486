"""How clients are given hooks for one run, and when they are not."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence

from tests.table import each_row
from truegreen.work.agents import ADAPTERS
from truegreen.work.agents.hooks import (
    EVENTS,
    FAIL_CLOSED,
    Dressed,
    dressed,
    hook_command,
    settings,
)

TRUST = "--dangerously-bypass-hook-trust"


def call(event: str) -> list[str]:
    return hook_command("/opt/py thon", "/opt/hook.py", "codex", event, "/state dir")


def given(client: str, argv: Sequence[str], start: int = 1) -> Dressed | str:
    return dressed(client, argv, start=start, path="/run/h.json", call=call, timeout_s=90)


def test_claude_code_gets_a_file_and_keeps_its_prompt():
    got = given("claude-code", ["claude", "-p", "do it"])
    assert isinstance(got, Dressed)
    assert got.argv == ("claude", "--settings", "/run/h.json", "-p", "do it")
    hooks = json.loads(got.settings)["hooks"]
    assert tuple(hooks) == EVENTS["claude-code"]
    for event, (group,) in hooks.items():
        (hook,) = group["hooks"]
        assert [hook["command"], *hook["args"]] == call(event)
        assert hook["timeout"] == 90
        assert (hook.get("onFailure") == "block") is (event in FAIL_CLOSED)


@each_row("own", [["--settings", "mine.json"], ["--settings=mine.json"]])
def test_settings_of_its_own_are_left_alone(own: list[str]):
    assert "of its own" in given("claude-code", ["claude", *own, "-p", "do it"])


def test_codex_gets_values_only_where_somebody_trusts_hooks_already():
    assert "looked through" in given("codex", ["codex", "exec", "do it"], 2)
    got = given("codex", ["codex", "exec", TRUST, "do it"], 2)
    assert isinstance(got, Dressed)
    assert got.argv[:2] == ("codex", "exec")
    assert got.argv[-2:] == (TRUST, "do it")
    values = [word for word in got.argv[2:-2] if word != "-c"]
    read = tomllib.loads("\n".join(values))["hooks"]
    assert tuple(read) == EVENTS["codex"]
    (hook,) = read["PreToolUse"][0]["hooks"]
    assert hook["command"] == "'/opt/py thon' -I -S /opt/hook.py codex PreToolUse '/state dir'"


@each_row("client", ["gemini", "qwen", "opencode", "command"])
def test_other_clients_get_none_for_a_run(client: str):
    assert isinstance(given(client, [client, "-p", "do it"]), str)


@each_row("client", EVENTS)
def test_every_client_with_hooks_has_an_adapter_and_settings_to_install(client: str):
    assert client in ADAPTERS
    made = settings(client, call, 10**9)["hooks"]
    assert set(made) == set(EVENTS[client])
    for (group,) in made.values():
        assert group["hooks"][0]["timeout"] <= 2_000_000 * 1000


def test_adapters_say_which_client_is_given_hooks():
    told = {name: [word for word in one.can if "hooks" in word] for name, one in ADAPTERS.items()}
    assert {name: words for name, words in told.items() if words} == {
        "claude-code": ["hooks"],
        "codex": ["hooks if trusted"],
    }
