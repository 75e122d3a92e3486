"""How clients speak at their hooks: what an event says, and how an answer to it is written.

Pure. One table where the clients differ; what is to be answered is decided elsewhere.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

import msgspec

from truegreen.doors.actions import Action
from truegreen.doors.event import ADDRESSEE, MESSAGING, no
from truegreen.doors.frame import Answer
from truegreen.patterns import late
from truegreen.tuples import NamedTuple

TOOL = ("PreToolUse", "BeforeTool")
AFTER_TOOL = ("PostToolUse", "PostToolUseFailure", "AfterTool")
STOP = ("Stop", "AfterAgent")
_SHELLS = ("Bash", "run_shell_command", "Shell", "shell")
_COMMAND = ("command", "cmd", "script", "chars")
"""Where a tool is given a command line, or what is typed into a shell."""
_ARGUMENTS = ("file_path", "path", "notebook_path", "absolute_path", "url", "pattern", "to")
_ADDRESSEE = tuple(name.decode() for name in ADDRESSEE)
_FAILED = late(r"Exit code (-?\d+)")
_TOLD = late(r"^Exit Code: (-?\d+)\s*$", re.MULTILINE)
_CONTEXT = {
    "claude-code": ("UserPromptSubmit", "PostToolUse"),
    "qwen": (),
    "codex": (),
    "gemini": (),
}
"""Where a client is known to hand further words on to its model."""

_BLOCKED_BY_WORD = ("UserPromptSubmit", *STOP)

Payload = dict[str, Any]


class Executed(NamedTuple):
    """A command that a client ran; without a code where the client does not tell it."""

    call: str
    command: str
    code: int | None


def denied(client: str, event: str, why: str) -> Answer:
    """No, with the reason, as the client understands it."""
    code, out, err = no(client, event, why)
    return Answer(code, out.decode(), err.decode())


def sent_back(client: str, why: str) -> Answer:
    """The agent may not stop yet."""
    decision = "deny" if client == "gemini" else "block"
    return Answer(0, msgspec.json.encode({"decision": decision, "reason": why}).decode())


def posted(event: str, answer: Answer) -> bytes:
    """An answer as Claude Code takes it by HTTP, where there is no exit status to say no with."""
    if answer.code == 0:
        return answer.out.encode("utf-8", "replace")
    why = answer.err.strip()
    if event == "PreToolUse":
        no = {"permissionDecision": "deny", "permissionDecisionReason": why}
        return msgspec.json.encode({"hookSpecificOutput": {"hookEventName": event, **no}})
    if event in _BLOCKED_BY_WORD:
        return msgspec.json.encode({"decision": "block", "reason": why})
    return msgspec.json.encode({"continue": False, "stopReason": why})


def takes_words(client: str, event: str) -> bool:
    """Whether a client hands on what it is told at an event."""
    return event in _CONTEXT.get(client, ())


def told(event: str, words: str) -> Answer:
    """Further words for the model."""
    said = {"hookEventName": event, "additionalContext": words}
    return Answer(0, msgspec.json.encode({"hookSpecificOutput": said}).decode())


def action_of(payload: Payload) -> Action:
    """What a tool call is about to do; whatever tool is given a command is a shell."""
    tool, given = _tool(payload)
    line = "\n".join(filter(None, (_command(given, name) for name in _COMMAND)))
    argument = next((given[n] for n in _ARGUMENTS if isinstance(given.get(n), str)), None)
    if tool in _SHELLS or (line and argument is None):
        return Action(tool, line or _spelt(given), True)
    return Action(tool, _spelt(given) if argument is None else argument, False, line)


def _command(given: dict[str, Any], name: str) -> str:
    """One command line of a call, with the arguments that stand beside it."""
    command, more = given.get(name), given.get("args")
    words = [str(word) for word in command] if isinstance(command, list) else []
    line = command if isinstance(command, str) else shlex.join(words)
    if line and isinstance(more, list):
        line = f"{line} {shlex.join(str(word) for word in more)}"
    return line


def _spelt(given: dict[str, Any]) -> str:
    return msgspec.json.encode(given).decode() if given else ""


def addressees(payload: Payload) -> list[str]:
    """Whom a call speaks to, if it speaks to an agent."""
    tool, given = _tool(payload)
    if tool.rpartition("__")[2].encode("utf-8", "replace") not in MESSAGING:
        return []
    return [given[name] for name in _ADDRESSEE if isinstance(given.get(name), str)]


def executed(client: str, event: str, payload: Payload) -> Executed | None:
    """The command that an event says has run, with its exit code."""
    tool, _ = _tool(payload)
    if tool not in _SHELLS or event not in AFTER_TOOL:
        return None
    call = str(payload.get("tool_use_id") or "")
    return Executed(call, action_of(payload).argument, _code(client, event, payload))


def _code(client: str, event: str, payload: Payload) -> int | None:
    if event == "PostToolUseFailure":
        found = _FAILED.match(str(payload.get("error") or ""))
        return int(found[1]) if found else None
    response = payload.get("tool_response")
    if not isinstance(response, dict):
        return None  # Codex hands the output over, and the code to its stream alone
    if client == "claude-code":
        open_ended = response.get("backgroundTaskId") or response.get("interrupted")
        return None if open_ended else 0
    said = str(response.get("llmContent") or "")
    found = _TOLD.search(said)
    if found:
        return int(found[1])
    # Gemini tells the code of a command that failed, and nothing of one that did not.
    plain = client == "gemini" and "Output:" in said and "\nSignal:" not in said
    return 0 if plain and not payload.get("error") else None


def _tool(payload: Payload) -> tuple[str, dict[str, Any]]:
    tool, given = payload.get("tool_name"), payload.get("tool_input")
    return (tool if isinstance(tool, str) else ""), (given if isinstance(given, dict) else {})
