"""How clients are pointed at a gateway: the variables that name a model API and its key.

The key goes by the environment and never into the arguments, which everybody on the machine reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from truegreen.patterns import late
from truegreen.work.agents.events import json_object
from truegreen.work.agents.reading import GatewayDoor

Pointed = tuple[list[str], dict[str, str]]

_OF_PROVIDERS = late(
    r"(?:ANTHROPIC|OPENAI|AZURE_OPENAI|CODEX|GEMINI|GOOGLE|GOOGLE_GENERATIVE_AI|OPENROUTER|DEEPSEEK"
    r"|GROQ|MISTRAL|XAI|DASHSCOPE|BAILIAN|QWEN|CLAUDE_CODE|OPENCODE|AWS_BEARER|COHERE|TOGETHER"
    r"|FIREWORKS|CEREBRAS|MOONSHOT|ZAI|LITELLM)_"
    r"(?:.*_)?(?:KEY|APIKEY|TOKEN|TOKEN_BEDROCK|BASE|URL|HOST|ENDPOINT|HEADERS|CREDENTIALS"
    r"|FILE_DESCRIPTOR)"
)
_KEY = late(r".*(?:KEY|TOKEN|TOKEN_BEDROCK|CREDENTIALS)")
DETOURS = {
    "anthropic": (
        *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
        *("CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_ANTHROPIC_AWS"),
    ),
    "openai": (),
    "gemini": ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
}
"""Switches that send a client to another cloud, past any gateway."""
_OFF = ("", "0", "false", "no", "off")
_LOOPBACK = ("127.0.0.1", "localhost")


def without_providers(env: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """An environment without any provider's key or address, under whatever name a key goes."""
    return {
        name: value
        for name, value in env.items()
        if not _OF_PROVIDERS.fullmatch(name) and not any(key in value for key in keys)
    }


def provider_keys(names: Iterable[str]) -> list[str]:
    """The names among these that are a model provider's key."""
    return [name for name in names if _OF_PROVIDERS.fullmatch(name) and _KEY.fullmatch(name)]


def detour(api: str, environ: Mapping[str, str]) -> str:
    """The switch that would lead past the gateway; empty if there is none."""
    return next((name for name in DETOURS[api] if environ.get(name, "").lower() not in _OFF), "")


def without_proxy(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that keep a client from looking for this machine behind a proxy."""
    found = {}
    for name in ("NO_PROXY", "no_proxy"):
        spared = [each for each in env.get(name, "").split(",") if each.strip()]
        found[name] = ",".join(dict.fromkeys([*spared, *_LOOPBACK]))
    return found


def by_variables(argv: Sequence[str], _: Mapping[str, str], door: GatewayDoor) -> Pointed:
    """As every SDK takes it."""
    return list(argv), variables(door)


def variables(door: GatewayDoor) -> dict[str, str]:
    """Address and key of each API that is to be had."""
    known = {
        "anthropic": {"ANTHROPIC_BASE_URL": door.url, "ANTHROPIC_API_KEY": door.key},
        "openai": {"OPENAI_BASE_URL": f"{door.url}/v1", "OPENAI_API_KEY": door.key},
        "gemini": {"GOOGLE_GEMINI_BASE_URL": door.url, "GEMINI_API_KEY": door.key},
    }
    return {name: text for api in door.apis for name, text in known[api].items()}


def config_of(text: str) -> dict[str, object]:
    """Settings that came by a variable."""
    return json_object(text) if text else {}
