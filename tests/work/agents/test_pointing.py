"""How each client is pointed at a gateway: by its own means, and without any key but the run's."""

from __future__ import annotations

import itertools
import json
import tomllib

import pytest

from tests.table import each_row
from truegreen.work.agents import ADAPTERS, PROGRAMS, GatewayDoor
from truegreen.work.agents.pointing import detour, without_providers, without_proxy

URL, KEY = "http://127.0.0.1:4711", "tga_key_of_the_run"
COMMANDS = {
    "command": ["python", "agent.py"],
    "claude-code": ["claude", "-p", "do it"],
    "codex": ["codex", "exec", "do it"],
    "gemini": ["gemini", "-p", "do it"],
    "opencode": ["opencode", "run", "do it"],
    "qwen": ["qwen", "-p", "do it"],
}


def pointed(
    name: str, words: list[str] | None = None, **env: str
) -> tuple[list[str], dict[str, str]]:
    adapter = ADAPTERS[name]
    door = GatewayDoor(url=URL, key=KEY, apis=adapter.apis)
    return adapter.pointed(words or COMMANDS[name], env, door)


def test_the_table_that_is_read_before_an_adapter_is_loaded_says_what_it_says():
    assert {name: adapter.program for name, adapter in ADAPTERS.items()} == PROGRAMS
    assert [adapter.name for adapter in ADAPTERS.values()] == list(PROGRAMS)
    assert "cursor" not in ADAPTERS


@each_row("name", ADAPTERS)
@pytest.mark.criterion("O05")
def test_every_client_gets_the_key_by_its_environment_and_never_by_its_arguments(name: str):
    argv, env = pointed(name)
    assert KEY not in " ".join(argv)
    assert KEY in env.values()
    assert URL in " ".join([*argv, *env.values()])
    assert argv[-1] == COMMANDS[name][-1]
    assert ADAPTERS[name].recognises(argv)


def test_any_sdk_finds_what_it_needs():
    assert pointed("command")[1] == {
        "ANTHROPIC_BASE_URL": URL,
        "ANTHROPIC_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{URL}/v1",
        "OPENAI_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": URL,
        "GEMINI_API_KEY": KEY,
    }


def test_codex_is_given_a_provider_of_our_own_behind_its_subcommand():
    argv, env = pointed("codex", ["codex", "exec", "resume", "id", "go on"])
    assert argv[:3] == ["codex", "exec", "resume"]
    assert argv[-2:] == ["id", "go on"]
    given = [word for flag, word in itertools.pairwise(argv) if flag == "-c"]
    config = tomllib.loads("\n".join(given))
    assert config["model_provider"] == "truegreen"
    assert config["model_providers"]["truegreen"]["base_url"] == f"{URL}/v1"
    assert env[config["model_providers"]["truegreen"]["env_key"]] == KEY


def test_qwen_is_told_its_kind_of_login_unless_somebody_chose_one():
    assert pointed("qwen")[0][:3] == ["qwen", "--auth-type", "openai"]
    chosen = ["qwen", "--auth-type", "anthropic", "-p", "x"]
    assert pointed("qwen", chosen)[0] == chosen


def test_opencode_keeps_what_else_its_configuration_says():
    given = {"theme": "dark", "provider": {"mine": {"name": "m"}, "openai": {"name": "o"}}}
    _, env = pointed("opencode", OPENCODE_CONFIG_CONTENT=json.dumps(given))
    config = json.loads(env["OPENCODE_CONFIG_CONTENT"])
    assert config["theme"] == "dark"
    assert config["provider"]["mine"] == {"name": "m"}
    assert config["provider"]["openai"] == {"options": {"baseURL": f"{URL}/v1", "apiKey": KEY}}
    assert config["provider"]["google"]["options"]["baseURL"] == f"{URL}/v1beta"


TAKEN = [
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
    *("ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_BEDROCK_BASE_URL", "AWS_BEARER_TOKEN_BEDROCK"),
    *(
        "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
    ),
    *("CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"),
    *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GENERATIVE_AI_API_KEY", "OPENROUTER_API_KEY"),
    *("DEEPSEEK_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY", "DASHSCOPE_API_KEY"),
]
LEFT = [
    *("PATH", "HOME", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_MAX_OUTPUT_TOKENS"),
    *("CODEX_HOME", "GEMINI_MODEL", "GOOGLE_CLOUD_PROJECT", "OPENAI_MODEL", "MY_SERVICE_TOKEN"),
    *("TRUEGREEN_TOKEN_FILE", "GITHUB_TOKEN"),
]


@pytest.mark.criterion("O05")
def test_no_providers_key_is_left_under_any_name():
    env = dict.fromkeys([*TAKEN, *LEFT], "a value") | {"MINE": "Bearer sk-real-1", "X": "sk-real-1"}
    assert sorted(without_providers(env, ["sk-real-1"])) == sorted(LEFT)


@each_row("given", ["", "corp.example, 10.0.0.0/8", "127.0.0.1"])
def test_a_client_does_not_look_for_this_machine_behind_a_proxy(given: str):
    found = without_proxy({"NO_PROXY": given, "HTTP_PROXY": "http://proxy:3128"})
    for name in ("NO_PROXY", "no_proxy"):
        assert {"127.0.0.1", "localhost"} <= set(found[name].split(","))
    assert found["NO_PROXY"].startswith(given)
    assert found["NO_PROXY"].count("127.0.0.1") == 1


@each_row(("value", "leads"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_a_switch_to_another_cloud_is_seen(value: str, leads: bool):
    assert bool(detour("anthropic", {"CLAUDE_CODE_USE_BEDROCK": value})) is leads
