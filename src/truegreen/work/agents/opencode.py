"""OpenCode: `opencode run --format json`, its events, its exit codes.

There is no final event: the end is the process's exit, and the last step must have stopped by
itself. A connector that failed to start leaves no trace at all; the host must know it was wanted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from truegreen.model import ExitDetail
from truegreen.work.agents.calling import Calling, Client
from truegreen.work.agents.events import Lines
from truegreen.work.agents.pointing import Pointed, config_of, variables
from truegreen.work.agents.reading import Ending, Expectation, GatewayDoor, Live, Reader
from truegreen.work.agents.rules import Found, Rule, RuledReader, failed, limited, signalled
from truegreen.work.agents.signs import egress_denied, provider_failure, reaches_out
from truegreen.work.agents.wording import action, decoded, one_line

NAME = "opencode"
_MOST = 64
_KNOWN = frozenset({"step_start", "step_finish", "text", "tool_use", "reasoning", "error"})
_OWN_TOOLS = frozenset(
    {
        *("bash", "edit", "write", "read", "glob", "grep", "list", "patch", "apply_patch"),
        *("multiedit", "todowrite", "todoread", "webfetch", "websearch", "codesearch", "task"),
        *("skill", "question", "lsp", "batch", "plan_enter", "plan_exit", "invalid"),
    }
)
_UNAVAILABLE = r"unavailable tool '([^'\n]{1,200})'"
_NOT_ALLOWED = (
    r"(?i)rejected permission|rule which prevents|\bdenied\b|\bfenced\b|not allowed|\bblocked\b"
)
_OF_NAME = {
    "ContentFilterError": ExitDetail.REFUSED,
    "ProviderAuthError": ExitDetail.AUTH_INVALID,
    "ContextOverflowError": ExitDetail.CONTEXT_CAP,
    "MessageOutputLengthError": ExitDetail.TOKEN_CAP,
    "MessageAbortedError": ExitDetail.SIGNALED,
}


class Cache(Struct):
    """Tokens that were cached."""

    read: int | None = 0
    write: int | None = 0


class Tokens(Struct):
    """What a step cost in tokens."""

    total: int | None = None
    input: int | None = 0
    output: int | None = 0
    reasoning: int | None = 0
    cache: Cache | None = None

    @property
    def sum(self) -> int:
        """All of them."""
        if self.total is not None:
            return self.total
        cache = self.cache or Cache()
        parts = (self.input, self.output, self.reasoning, cache.read, cache.write)
        return sum(part or 0 for part in parts)


class State(Struct):
    """How a tool call went."""

    status: str | None = None
    input: Any = None
    output: Any = None
    error: Any = None
    metadata: Any = None

    @property
    def exit(self) -> int | None:
        """The exit code of a command that ran."""
        code = self.metadata.get("exit") if isinstance(self.metadata, dict) else None
        return code if isinstance(code, int) else None


class Part(Struct):
    """The body of an event."""

    text: str | None = None
    tool: str | None = None
    state: State | None = None
    reason: str | None = None
    tokens: Tokens | None = None
    cost: float | None = 0.0


class Line(Struct):
    """One event."""

    type: str | None = None
    sessionID: str | None = None  # noqa: N815 - the client's spelling
    part: Part | None = None
    error: Any = None


class Stream:
    """Everything that the lines of one run have said so far."""

    def __init__(self, expects: Expectation) -> None:
        self.expects = expects
        self.lines = Lines(Line, _KNOWN)
        self.live = Live()
        self.ended_step = ""
        """Why the last step ended; empty while one is open."""
        self.failure: Any = None
        self.answer = ""
        self.egress = ""
        self.denied = ""
        self.connectors: dict[str, str] = {}
        self.used: set[str] = set()

    @property
    def said(self) -> str:
        """The last answer."""
        return self.answer

    @property
    def notes(self) -> dict[str, Any]:
        """Whether the answer was cut short."""
        return {"truncated": True} if self.ended_step == "length" else {}

    def feed(self, line: bytes) -> None:
        """Take one line."""
        event = self.lines.event(line)
        if event is None:
            return
        self.live.session = event.sessionID or self.live.session
        part = event.part or Part()
        if event.type == "step_start":
            self.live.turns += 1
            self.ended_step, self.failure = "", None
        elif event.type == "text" and part.text:
            self.answer = part.text
            self.live.says(self.answer)
        elif event.type == "tool_use":
            self._tool(part.tool or "", part.state or State())
        elif event.type == "step_finish":
            self.ended_step = part.reason or "unknown"
            self.live.tokens += part.tokens.sum if part.tokens else 0
            self.live.cost_usd += part.cost or 0.0
        elif event.type == "error":
            self.failure = event.error or {}

    def _tool(self, tool: str, state: State) -> None:
        self.live.tool_calls += 1
        self.live.last_action = action(tool, state.input)
        said = state.error if isinstance(state.error, str) else ""
        output = state.output if isinstance(state.output, str) else said
        if reaches_out(tool) and not self.egress:
            self.egress = egress_denied(output, failed=bool(state.exit))
        if tool == "invalid":
            self._invalid(output)
        elif state.status == "error":
            self._went_wrong(tool, one_line(said) or "failed", ran=state.exit is not None)
        elif tool not in _OWN_TOOLS and len(self.used) < _MOST:
            self.used.add(tool)
            self.connectors.pop(tool, None)

    def _invalid(self, said: str) -> None:
        """A tool that is not there; one that was called wrongly is the model's own affair."""
        found = re.search(_UNAVAILABLE, said)
        if found and found[1] in _OWN_TOOLS:
            self.denied = self.denied or one_line(said)
        elif found and len(self.connectors) < _MOST:
            self.connectors[found[1]] = "unavailable"

    def _went_wrong(self, tool: str, said: str, *, ran: bool) -> None:
        """A command that ran never ends in an error here, whatever its exit code."""
        misused = "invalid arguments" in said
        if re.search(_NOT_ALLOWED, said) or (tool == "bash" and not ran and not misused):
            self.denied = self.denied or said
        elif tool not in _OWN_TOOLS and len(self.connectors) < _MOST:
            self.connectors[tool] = said


def _signalled(_: Stream, ending: Ending) -> Found | None:
    return signalled(ending, by_code=True)


def _errored(seen: Stream, ending: Ending) -> Found | None:
    if seen.failure is None:
        if seen.ended_step == "content-filter":
            return Found(ExitDetail.REFUSED, "the answer was filtered")
        return None
    error = _object(seen.failure)
    data = _object(error.get("data"))
    said = str(data.get("message") or error.get("message") or error.get("name") or "it failed")
    status = data.get("statusCode")
    detail = _OF_NAME.get(str(error.get("name")))
    if detail is None:
        detail = provider_failure(said, status if isinstance(status, int) else None)
    after = _object(data.get("responseHeaders")).get("retry-after")
    least = float(after) if isinstance(after, str) and after.isdigit() else 0.0
    return limited(detail or ExitDetail.PROVIDER_ERROR, said, ending, least)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _not_started(seen: Stream, ending: Ending) -> Found | None:
    if seen.lines.events or not failed(ending):
        return None
    words = decoded(ending.stderr).strip() or seen.lines.printed.text
    if not words:
        return Found(ExitDetail.LAUNCH_FAILED, f"exit {ending.code} without a word")
    access = provider_failure(words) is ExitDetail.AUTH_INVALID
    return Found(ExitDetail.AUTH_INVALID if access else ExitDetail.CONFIG_INVALID, words)


def _egress(seen: Stream, _: Ending) -> Found | None:
    return Found(ExitDetail.EGRESS_DENIED, seen.egress) if seen.egress else None


def _connector(seen: Stream, _: Ending) -> Found | None:
    for tool, said in seen.connectors.items():
        return Found(ExitDetail.CONNECTOR_MISSING, f"{tool}: {said}")
    if not seen.ended_step:
        return None
    for name in seen.expects.connectors:
        if not any(tool.startswith(f"{name}_") for tool in seen.used):
            return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: never answered")
    return None


def _denied(seen: Stream, _: Ending) -> Found | None:
    return Found(ExitDetail.PERMISSION_DENIED, seen.denied) if seen.denied else None


def _failed(_: Stream, ending: Ending) -> Found | None:
    if failed(ending):
        return Found(ExitDetail.AGENT_ERROR, f"exit {ending.code} without a reason")
    return None


def _unfinished(seen: Stream, ending: Ending) -> Found | None:
    if not seen.lines.events and not seen.lines.printed.lines and ending.code == 0:
        return Found(ExitDetail.ZERO_OUTPUT, "not a single line of output")
    if seen.ended_step not in ("stop", "length"):
        return Found(ExitDetail.UNCLAIMED, f"its last step: {seen.ended_step or 'still open'}")
    if ending.survivors:
        return Found(ExitDetail.UNCLAIMED, f"{ending.survivors} processes may still act")
    if not seen.answer.strip():
        return Found(ExitDetail.UNCLAIMED, "an empty answer")
    return None


def _done(seen: Stream, ending: Ending) -> Found | None:
    return Found(ExitDetail.COMPLETED, seen.answer) if ending.code == 0 else None


RULES: tuple[Rule[Stream], ...] = (
    *(_signalled, _errored, _not_started, _egress, _connector, _denied),
    *(_failed, _unfinished, _done),
)


def _reader(expects: Expectation) -> Reader:
    return RuledReader(Stream(expects), RULES, NAME)


def _expects(_: Sequence[str]) -> Expectation:
    """Its connectors are in its configuration, not in the arguments."""
    return Expectation()


_CONFIG = "OPENCODE_CONFIG_CONTENT"
_PROVIDERS = {"anthropic": ("anthropic", "/v1"), "openai": ("openai", "/v1")}
_PROVIDERS |= {"gemini": ("google", "/v1beta")}


def _pointed(argv: Sequence[str], env: Mapping[str, str], door: GatewayDoor) -> Pointed:
    """Its providers are told where to go by its configuration, which a variable may hold."""
    config = config_of(env.get(_CONFIG, ""))
    mine = {
        name: {"options": {"baseURL": f"{door.url}{path}", "apiKey": door.key}}
        for name, path in (_PROVIDERS[api] for api in door.apis)
    }
    theirs = config.get("provider")
    providers = {**(theirs if isinstance(theirs, dict) else {}), **mine}
    text = msgspec.json.encode({**config, "provider": providers}).decode()
    return list(argv), {**variables(door), _CONFIG: text}


CLIENT = Client(
    name=NAME,
    calling=Calling(
        program="opencode",
        subcommands=("run",),
        valued=frozenset(
            {
                *("-m", "--model", "--agent", "--format", "-s", "--session", "-f", "--file"),
                *("--title", "--attach", "--port", "--variant", "--dir", "--command"),
                "--log-level",
            }
        ),
        format_flags=("--format",),
        events=("--format", "json"),
        resume_flag="--session",
    ),
    passes=(
        *("OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_GENERATIVE_AI_API_KEY"),
        *("OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY"),
        *("XAI_API_KEY", "AZURE_OPENAI_*"),
    ),
    can=("events", "turns", "tokens", "cost", "resume"),
    switches={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
    reading=_reader,
    expecting=_expects,
    apis=("anthropic", "openai", "gemini"),
    pointing=_pointed,
)
