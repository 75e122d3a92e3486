"""Models behind the Messages API of Anthropic.

Models up to 4.6 are made to call one tool, whose input is the answer, at temperature 0. Later ones
refuse both; they get the schema as output format.
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

VERSION = "2023-06-01"
_PLAIN = re.compile(r"claude-(?:3(?!\d).*|[a-z]+-4(?:[-.][0-6])?(?:[-@]\d{8}|-latest)?)")
"""Models that take a temperature, and a tool that must be called."""
_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_TROUBLE = {
    "refusal": REFUSED,
    "max_tokens": TRUNCATED,
    "model_context_window_exceeded": TRUNCATED,
}
_ENDED = ("end_turn", "tool_use", "stop_sequence")


def url(base: str) -> str:
    """Where messages are sent."""
    return f"{base.rstrip('/').removesuffix('/v1')}/v1/messages"


def headers(key: str) -> dict[str, str]:
    """Who asks, and by which version of the API."""
    return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}


def body(model: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """The request."""
    asked: dict[str, Any] = {
        "model": model,
        "system": system(document),
        "messages": [{"role": "user", "content": user(document)}],
        "stream": False,
    }
    schema = document["answer_schema"]
    if not _PLAIN.fullmatch(model):
        form = {"type": "json_schema", "schema": schema}
        return {**asked, "max_tokens": OUTPUT_TOKENS, "output_config": {"format": form}}
    tool = {"name": NAME, "description": "Give your judgement.", "input_schema": schema}
    return {
        **asked,
        "max_tokens": PLAIN_OUTPUT_TOKENS,
        "temperature": 0,
        "tools": [tool],
        "tool_choice": {"type": "tool", "name": NAME, "disable_parallel_tool_use": True},
    }


def whole(found: dict[str, Any]) -> Said:
    """A message in one piece."""
    blocks = found.get("content")
    parts = (
        [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    )
    calls = [block.get("input") for block in parts if block.get("type") == "tool_use"]
    text = "".join(words(block.get("text")) for block in parts if block.get("type") == "text")
    usage, stop = found.get("usage"), found.get("stop_reason")
    return Said(
        text=text,
        found=calls[0] if len(calls) == 1 and isinstance(calls[0], dict) else None,
        model=words(found.get("model")),
        read=count(usage, *_READ),
        written=count(usage, "output_tokens"),
        trouble=_trouble(found, stop, calls),
    )


def _trouble(found: dict[str, Any], stop: object, calls: list[Any]) -> str:
    if found.get("type") != "message":
        return error_of(found) or "it is no message of a model"
    if stop not in _ENDED:
        return _TROUBLE.get(str(stop), f"the model stopped for another reason ({stop})")
    return "the model answered more than once" if len(calls) > 1 else ""


def stream(events: list[str]) -> Said:
    """A message that comes in events; without its end it is none."""
    message: dict[str, Any] = {"type": "message"}
    blocks: dict[int, dict[str, Any]] = {}
    ended = False
    for event in map(parsed, events):
        kind = part(event, "type")
        if kind == "error":
            return Said(trouble=error_of(event) or CUT)
        if kind == "message_start":
            message.update(part(event, "message") or {})
        elif kind == "content_block_start":
            blocks[_index(event)] = dict(part(event, "content_block") or {})
        elif kind == "content_block_delta":
            _add(blocks.setdefault(_index(event), {}), part(event, "delta"))
        elif kind == "message_delta":
            message.update(part(event, "delta") or {})
            message["usage"] = {**(message.get("usage") or {}), **(part(event, "usage") or {})}
        ended = ended or kind == "message_stop"
    if not ended:
        return Said(model=words(message.get("model")), trouble=CUT)
    return whole({**message, "content": [_closed(blocks[n]) for n in sorted(blocks)]})


def _index(event: object) -> int:
    index = part(event, "index")
    return index if isinstance(index, int) else -1


def _add(block: dict[str, Any], delta: object) -> None:
    for name in ("text", "partial_json"):
        block[name] = words(block.get(name)) + words(part(delta, name))


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    written = words(block.get("partial_json"))
    return {**block, "input": parsed(written)} if written else block


PROVIDER = Provider(
    base="https://api.anthropic.com",
    base_env="ANTHROPIC_BASE_URL",
    key_env="ANTHROPIC_API_KEY",
    url=url,
    headers=headers,
    body=body,
    whole=whole,
    stream=stream,
)
