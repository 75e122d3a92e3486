"""Which settings a client needs so that its hooks fire, and how it is given them for one run.

Pure text and arguments. What a hook is answered, and whether one fires at all, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from truegreen.tuples import NamedTuple
from truegreen.work.agents import prompts

CLAUDE_CODE, CODEX, GEMINI, QWEN = "claude-code", "codex", "gemini", "qwen"
_CLAUDE_EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
    *("PostToolBatch", "SubagentStart", "Stop"),
)
EVENTS: dict[str, tuple[str, ...]] = {
    CLAUDE_CODE: _CLAUDE_EVENTS,
    CODEX: ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"),
    GEMINI: ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"),
    QWEN: ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"),
}
"""The events that matter, as each client calls them."""
FAIL_CLOSED = ("PreToolUse", "UserPromptSubmit")
"""Events of Claude Code that a hook which can't be started may hold up."""
_WITH_TOOL = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "BeforeTool", "AfterTool")
_SETTINGS_FLAG = "--settings"
_TRUST = "--dangerously-bypass-hook-trust"
_NOT_PER_RUN = {
    CODEX: f"Codex leaves out hooks that nobody has looked through, unless it gets {_TRUST}",
    GEMINI: "Gemini CLI takes hooks from its own settings alone",
    QWEN: "Qwen Code takes hooks from its own settings alone",
}
_LONGEST_S = 2_000_000  # a clock of 32 bits counts milliseconds for 24 days

Call = Callable[[str], Sequence[str]]
"""The command for an event."""


class Post(NamedTuple):
    """Where a client posts an event, and what it shows there."""

    url: str
    token: str


Calls = Callable[[str], Sequence[str] | Post]
"""What a client calls at an event: a command, or an address."""


class Dressed(NamedTuple):
    """A command whose client calls hooks, and the text of the settings file that it names."""

    argv: tuple[str, ...]
    settings: str = ""


def hook_command(python: str, file: str, client: str, event: str, state_dir: str) -> list[str]:
    """What a client calls at an event: an interpreter that loads nothing, and one file."""
    return [python, "-I", "-S", file, client, event, state_dir]


def settings(client: str, call: Calls, timeout_s: float) -> dict[str, Any]:
    """The client's settings with a hook at each event that matters."""
    hooks = {event: [_group(client, event, call, timeout_s)] for event in EVENTS[client]}
    return {"hooks": hooks}


def _group(client: str, event: str, call: Calls, timeout_s: float) -> dict[str, Any]:
    called = call(event)
    seconds = int(min(max(timeout_s, 1), _LONGEST_S))
    hook: dict[str, Any]
    if client == CLAUDE_CODE:
        hook = {**_called_by_claude_code(called), "timeout": seconds}
        hook |= {"onFailure": "block"} if event in FAIL_CLOSED else {}
    else:
        # Gemini and Qwen count in milliseconds.
        clock = seconds if client == CODEX else seconds * 1000
        hook = {"type": "command", "command": _shell_line(called), "timeout": clock}
    return {**({"matcher": "*"} if event in _WITH_TOOL else {}), "hooks": [hook]}


def _called_by_claude_code(called: Sequence[str] | Post) -> dict[str, Any]:
    if isinstance(called, Post):
        shown = {"Authorization": f"Bearer {called.token}"}
        return {"type": "http", "url": called.url, "headers": shown}
    # Without a shell in between: it is started faster, and no word is read twice.
    return {"type": "command", "command": called[0], "args": list(called[1:])}


def _shell_line(words: Sequence[str]) -> str:
    import shlex  # noqa: PLC0415 - Claude Code needs none, and most runs are its

    return shlex.join(words)


def dressed(
    client: str, argv: Sequence[str], *, start: int, path: str, call: Calls, timeout_s: float
) -> Dressed | str:
    """A run's command with hooks, among its flags from `start` on; or why it can't be given any.

    Nothing in the user's home is touched: Claude Code takes a file by a flag, Codex takes values.
    To let Codex trust ours would let it trust those of the work tree, too: that is not ours to say.
    """
    if client == CLAUDE_CODE:
        if prompts.value_of(argv, _SETTINGS_FLAG) is not None:
            return f"its command has {_SETTINGS_FLAG} of its own"
        text = msgspec.json.format(msgspec.json.encode(settings(client, call, timeout_s)))
        words = prompts.inserted(argv, start, _SETTINGS_FLAG, path)
        return Dressed(tuple(words), text.decode())
    if client == CODEX and _TRUST in argv:
        return Dressed(tuple(prompts.inserted(argv, start, *_codex_flags(call, timeout_s))))
    return _NOT_PER_RUN.get(client, "it has no hooks")


def _codex_flags(call: Calls, timeout_s: float) -> list[str]:
    flags: list[str] = []
    for event in EVENTS[CODEX]:
        group = _group(CODEX, event, call, timeout_s)
        flags += ["-c", f"hooks.{event}=[{_toml(group)}]"]
    return flags


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    # A text of JSON is one of TOML, too.
    return msgspec.json.encode(value).decode()
