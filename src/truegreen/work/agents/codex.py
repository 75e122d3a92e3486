"""Codex: `codex exec --json`, its events, its exit codes.

It gives no cause but in words, and leaves out what was denied: a refused command or a missing
connector shows on standard error alone. Items of type `error` are warnings; top-level errors that
begin with «Reconnecting» are notices of a retry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from truegreen.facts import AgentKind
from truegreen.model import ExitDetail
from truegreen.work.agents import prompts
from truegreen.work.agents.calling import Calling, Client
from truegreen.work.agents.children import Children
from truegreen.work.agents.events import Lines
from truegreen.work.agents.pointing import Pointed, by_variables, variables
from truegreen.work.agents.reading import Ending, Expectation, GatewayDoor, Live, Reader
from truegreen.work.agents.rules import Found, Rule, RuledReader, failed, limited, signalled
from truegreen.work.agents.signs import egress_denied, provider_failure
from truegreen.work.agents.wording import action, decoded, one_line

NAME = "codex"
_MOST = 64
_KNOWN = frozenset(
    {
        *("thread.started", "turn.started", "turn.completed", "turn.failed", "error"),
        *("item.started", "item.updated", "item.completed"),
    }
)
_TOOLS = ("command_execution", "mcp_tool_call", "file_change", "web_search", "collab_tool_call")
_ROUTER = r"tools::router: error=([^\n]{1,2000})"
_DENIED = r"(?i)blocked by \w+ hook|\brejected\b|\bdenied\b|not permitted|approval"
_UNKNOWN_CALL = r"unsupported call: (?:mcp__(\w+?)__)?(\S*)"
_REQUIRED = r"required MCP servers failed to initialize: ([^\n]{1,500})"
_SERVER_ERROR = "experiencing high demand, which may cause temporary errors"
"""Codex prints this sentence for HTTP 500 and no other status; a rate limit has its own text."""
_COMPLAINT = r"(?m)^(?:Error|error): [^\n]{1,2000}|^thread '[^\n]{1,500}panicked"


class Item(Struct):
    """Something that the agent did or said."""

    type: str | None = None
    text: str | None = None
    message: str | None = None
    command: Any = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    status: str | None = None
    server: str | None = None
    tool: str | None = None
    arguments: Any = None
    error: Any = None
    query: str | None = None
    prompt: Any = None
    receiver_thread_ids: Any = None
    agents_states: Any = None


class Usage(Struct):
    """What a turn cost in tokens."""

    input_tokens: int | None = 0
    output_tokens: int | None = 0


class Line(Struct):
    """One event."""

    type: str | None = None
    thread_id: str | None = None
    item: Item | None = None
    usage: Usage | None = None
    error: Any = None
    message: str | None = None


class Stream:
    """Everything that the lines of one run have said so far."""

    def __init__(self, expects: Expectation) -> None:
        self.expects = expects
        self.lines = Lines(Line, _KNOWN)
        self.live = Live()
        self.children = Children(self.live)
        self.in_turn = False
        self.over = ""
        """The turn's last event: `completed`, `failed`, or nothing yet."""
        self.failure = ""
        self.complaint = ""
        self.answer = ""
        self.egress = ""
        self.denied = ""
        self.connectors: dict[str, str] = {}
        self.used: set[str] = set()
        self._spoke = False

    @property
    def said(self) -> str:
        """The last answer."""
        return self.answer

    @property
    def notes(self) -> dict[str, Any]:
        """Nothing besides."""
        return {}

    def feed(self, line: bytes) -> None:
        """Take one line."""
        event = self.lines.event(line)
        if event is None:
            return
        if event.item is not None and event.type != "item.updated":
            self._item(event.item, over=event.type == "item.completed")
        elif event.type == "thread.started":
            self.live.session = event.thread_id
        elif event.type == "turn.started":
            self.in_turn, self.over, self.answer, self.complaint = True, "", "", ""
        elif event.type == "turn.completed":
            self.over, self.failure = "completed", ""
            if event.usage:
                spent = (event.usage.input_tokens or 0) + (event.usage.output_tokens or 0)
                self.live.tokens += spent
        elif event.type == "turn.failed":
            self.over, self.failure = "failed", _message(event.error)
        elif event.type == "error" and event.message:
            self.complaint = event.message

    def _item(self, item: Item, *, over: bool) -> None:
        if item.type == "agent_message" and over:
            self.live.turns += 1
            self._spoke = True
            self.answer = item.text or ""
            self.live.says(self.answer)
        elif item.type in _TOOLS:
            self._tool(item, over=over)
            self._threads(item)

    def _threads(self, item: Item) -> None:
        """Threads that it started, and how it says that they stand."""
        states = item.agents_states if isinstance(item.agents_states, dict) else {}
        named = item.receiver_thread_ids if isinstance(item.receiver_thread_ids, list) else []
        for thread in dict.fromkeys(each for each in [*named, *states] if isinstance(each, str)):
            state = states.get(thread)
            status = state.get("status") if isinstance(state, dict) else state
            self.children.began(AgentKind.SUBAGENT, thread, item.prompt)
            self.children.is_over(thread, status)

    def _tool(self, item: Item, *, over: bool) -> None:
        if not over:
            # Text and the calls after it are one round of the model; a call alone is its own.
            self.live.turns += 0 if self._spoke else 1
            self.live.tool_calls += 1
            self._spoke = False
            self.live.last_action = _action(item)
            return
        if item.status in ("declined", "denied", "rejected"):
            self.denied = self.denied or f"{_action(item)} was {item.status}"
        if item.type == "command_execution" and not self.egress:
            said = item.aggregated_output or ""
            self.egress = egress_denied(said, failed=bool(item.exit_code))
        elif item.type == "mcp_tool_call" and item.server and len(self.used) < _MOST:
            self._called(item.server, item)

    def _called(self, server: str, item: Item) -> None:
        if item.status != "failed" and not item.error:
            self.used.add(server)
            self.connectors.pop(server, None)
        elif len(self.connectors) < _MOST:
            self.connectors[server] = one_line(_message(item.error) or f"{item.tool} failed")


def _message(error: Any) -> str:
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""


def _action(item: Item) -> str:
    if item.type == "mcp_tool_call":
        return action(f"{item.server}.{item.tool}", item.arguments)
    told = item.command if isinstance(item.command, str) else item.query
    return action((item.type or "").replace("_", " "), {"command": told or ""})


def _signalled(seen: Stream, ending: Ending) -> Found | None:
    """After an interrupt it exits with 1 in the middle of a turn, and says nothing."""
    if found := signalled(ending, by_code=True):
        return found
    silent = not seen.complaint and not re.search(_COMPLAINT, decoded(ending.stderr))
    if failed(ending) and seen.in_turn and not seen.over and silent:
        return Found(ExitDetail.SIGNALED, "interrupted in the middle of a turn")
    return None


def _turn_failed(seen: Stream, ending: Ending) -> Found | None:
    said = seen.failure
    if seen.over != "failed" and failed(ending):
        said = seen.complaint
    if not said and seen.over != "failed":
        return None
    detail = None if _SERVER_ERROR in said else provider_failure(said)
    if detail is ExitDetail.TOKEN_CAP or detail is None:
        detail = ExitDetail.PROVIDER_ERROR  # one answer was cut short, and not by a cap of ours
    return limited(detail, said or "the turn failed", ending)


def _not_started(seen: Stream, ending: Ending) -> Found | None:
    if not failed(ending) or seen.in_turn:
        return None
    stderr = decoded(ending.stderr)
    if found := re.search(_REQUIRED, stderr):
        return Found(ExitDetail.CONNECTOR_MISSING, f"connector {found[1]}")
    said = re.search(_COMPLAINT, stderr)
    words = one_line(said[0]) if said else one_line(stderr.strip().rsplit("\n", 1)[-1])
    if not words:
        return Found(ExitDetail.LAUNCH_FAILED, f"exit {ending.code} without a word")
    access = provider_failure(words) is ExitDetail.AUTH_INVALID
    return Found(ExitDetail.AUTH_INVALID if access else ExitDetail.CONFIG_INVALID, words)


def _egress(seen: Stream, _: Ending) -> Found | None:
    return Found(ExitDetail.EGRESS_DENIED, seen.egress) if seen.egress else None


def _connector(seen: Stream, ending: Ending) -> Found | None:
    for name, said in seen.connectors.items():
        return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: {said}")
    for error in re.findall(_ROUTER, decoded(ending.stderr)):
        call = re.search(_UNKNOWN_CALL, error)
        if call and call[1] and call[1] not in seen.used:
            return Found(ExitDetail.CONNECTOR_MISSING, f"connector {call[1]}: {error}")
    if seen.over == "completed":
        for name in seen.expects.connectors:
            if name not in seen.used:
                return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: never answered")
    return None


def _denied(seen: Stream, ending: Ending) -> Found | None:
    if seen.denied:
        return Found(ExitDetail.PERMISSION_DENIED, seen.denied)
    for error in re.findall(_ROUTER, decoded(ending.stderr)):
        if re.search(_DENIED, error) or re.search(_UNKNOWN_CALL, error):
            return Found(ExitDetail.PERMISSION_DENIED, error)
    if seen.over == "completed" and not seen.answer and not seen.live.tokens:
        return Found(ExitDetail.PERMISSION_DENIED, "the prompt never reached the model")
    return None


def _failed(seen: Stream, ending: Ending) -> Found | None:
    if failed(ending):
        return Found(ExitDetail.AGENT_ERROR, seen.complaint or f"exit {ending.code}")
    return None


def _unfinished(seen: Stream, ending: Ending) -> Found | None:
    if not seen.lines.events and not seen.lines.printed.lines and ending.code == 0:
        return Found(ExitDetail.ZERO_OUTPUT, "not a single line of output")
    if seen.over != "completed":
        return Found(ExitDetail.UNCLAIMED, seen.complaint or "its stream ends in mid-turn")
    if ending.survivors:
        return Found(ExitDetail.UNCLAIMED, f"{ending.survivors} processes may still act")
    if not seen.answer.strip():
        return Found(ExitDetail.UNCLAIMED, "an empty answer")
    return None


def _done(seen: Stream, _: Ending) -> Found | None:
    return Found(ExitDetail.COMPLETED, seen.answer) if seen.over == "completed" else None


RULES: tuple[Rule[Stream], ...] = (
    *(_signalled, _turn_failed, _not_started, _egress, _connector, _denied),
    *(_failed, _unfinished, _done),
)


def _reader(expects: Expectation) -> Reader:
    return RuledReader(Stream(expects), RULES, NAME)


def _expects(_: Sequence[str]) -> Expectation:
    """Its connectors are in its configuration, not in the arguments."""
    return Expectation()


class CodexCalling(Calling, frozen=True, kw_only=True):
    """The shape of `codex exec`, where resuming is a subcommand of its own."""

    def start(self, command: Sequence[str]) -> int | None:
        """Behind `exec`, or behind `exec resume`."""
        start = super().start(command)
        if start is not None and command[start : start + 1] == ["resume"]:
            return start + 1
        return start

    def prompt(self, command: Sequence[str]) -> int | None:
        """The last argument; after `resume`, the one behind the session."""
        command = list(command)
        start = self.start(command)
        if start is None:
            return None
        named = command[start - 1] == "resume" and "--last" not in command
        return prompts.last_positional(command, self.valued, start, least=2 if named else 1)

    def streaming(self, argv: list[str]) -> list[str]:
        """With `--json`, unless it is there under another name."""
        start = self.start(argv)
        if start is None or {"--json", "--experimental-json"} & {*argv}:
            return argv
        return prompts.inserted(argv, start, *self.events)

    def resumed(self, command: list[str], session: str, message: str) -> list[str]:
        """`codex exec resume` with the same flags."""
        place, start = self.prompt(command), self.start(command)
        if place is None or start is None:
            return command
        if command[start - 1] == "resume":
            return prompts.replaced(command, place, message)
        command = [*command[:place], session, message, *command[place + 1 :]]
        return prompts.inserted(command, start, "resume")


def _pointed(argv: Sequence[str], env: Mapping[str, str], door: GatewayDoor) -> Pointed:
    """A provider of our own: its configuration would otherwise choose another one."""
    start = CLIENT.calling.start(argv)
    if start is None:
        return by_variables(argv, env, door)
    table = "model_providers.truegreen"
    settings = {
        "model_provider": "truegreen",
        f"{table}.name": "truegreen",
        f"{table}.base_url": f"{door.url}/v1",
        f"{table}.env_key": "OPENAI_API_KEY",
        f"{table}.wire_api": "responses",
    }
    words = [word for pair in settings.items() for word in ("-c", f'{pair[0]}="{pair[1]}"')]
    return prompts.inserted(argv, start, *words), variables(door)


CLIENT = Client(
    name=NAME,
    calling=CodexCalling(
        program="codex",
        subcommands=("exec", "e"),
        valued=frozenset(
            {
                *("-m", "--model", "-s", "--sandbox", "-C", "--cd", "-c", "--config", "-p"),
                *("--profile", "-i", "--image", "-o", "--output-last-message", "--color"),
                *("--output-schema", "--add-dir", "-a", "--ask-for-approval", "--enable"),
                *("--disable", "--local-provider"),
            }
        ),
        events=("--json",),
    ),
    passes=("OPENAI_*", "AZURE_OPENAI_*", "CODEX_*"),
    can=("events", "turns", "tokens", "resume", "hooks if trusted"),
    switches={},
    reading=_reader,
    expecting=_expects,
    apis=("openai",),
    pointing=_pointed,
)
