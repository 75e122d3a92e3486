"""Models behind an API in the style of OpenAI's chat completions: OpenAI, gateways, local servers.

The answer's schema goes along as a strict response format. Models that think first take neither a
temperature nor the old name of the output limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from truegreen.work.judges.bundle import system, user
from truegreen.work.judges.provider import (
    CUT,
    NAME,
    OUTPUT_TOKENS,
    PLAIN_OUTPUT_TOKENS,
    REFUSED,
    TRUNCATED,
    Provider,
    Said,
    count,
    error_of,
    parsed,
    part,
    words,
)

_THINKS = re.compile(r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|1\d)).*", re.IGNORECASE)
_TROUBLE = {"length": TRUNCATED, "content_filter": REFUSED}


def url(base: str) -> str:
    """Where chats are sent."""
    return f"{base.rstrip('/')}/chat/completions"


def headers(key: str) -> dict[str, str]:
    """Who asks."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def body(model: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """The request."""
    form = {"name": NAME, "strict": True, "schema": document["answer_schema"]}
    limits: dict[str, Any] = {"max_tokens": PLAIN_OUTPUT_TOKENS, "temperature": 0}
    if _THINKS.fullmatch(model):
        limits = {"max_completion_tokens": OUTPUT_TOKENS}
    return {
        "model": model,
        "messages": [
            {"role": "system", "content": system(document)},
            {"role": "user", "content": user(document)},
        ],
        "response_format": {"type": "json_schema", "json_schema": form},
        "stream": False,
        **limits,
    }


def whole(found: dict[str, Any]) -> Said:
    """A completion in one piece."""
    choices = found.get("choices")
    choice = part(choices, 0)
    message, usage = part(choice, "message"), found.get("usage")
    return Said(
        text=words(part(message, "content")),
        model=words(found.get("model")),
        read=count(usage, "prompt_tokens"),
        written=count(usage, "completion_tokens"),
        trouble=_trouble(found, choices, choice, message),
    )


def _trouble(found: dict[str, Any], choices: object, choice: object, message: object) -> str:
    stop = part(choice, "finish_reason")
    if not isinstance(choices, list) or not choices:
        return error_of(found) or "it is no completion of a model"
    if len(choices) > 1:
        return "the model answered more than once"
    if part(message, "refusal"):
        return REFUSED
    if stop != "stop":
        return _TROUBLE.get(str(stop), f"the model stopped for another reason ({stop})")
    return ""


def stream(events: list[str]) -> Said:
    """A completion that comes in events; without a reason for its end it is none."""
    whole_one: dict[str, Any] = {"model": "", "usage": None}
    message = {"content": "", "refusal": ""}
    stop = None
    for event in (parsed(event) for event in events if event != "[DONE]"):
        if event is None:
            return Said(trouble=CUT)
        if part(event, "error"):
            return Said(trouble=error_of(event) or CUT)
        choice = part(part(event, "choices"), 0)
        for name in message:
            message[name] += words(part(part(choice, "delta"), name))
        stop = part(choice, "finish_reason") or stop
        whole_one = {name: event.get(name) or kept for name, kept in whole_one.items()}
    if not stop:
        return Said(model=words(whole_one["model"]), trouble=CUT)
    return whole({**whole_one, "choices": [{"message": message, "finish_reason": stop}]})


PROVIDER = Provider(
    base="https://api.openai.com/v1",
    base_env="OPENAI_BASE_URL",
    key_env="OPENAI_API_KEY",
    url=url,
    headers=headers,
    body=body,
    whole=whole,
    stream=stream,
)
