"""Qwen Code: `qwen -p --output-format stream-json`, its Claude-like stream, its exit codes.

Caps end it without a result, with exit codes of their own. Rounds that a Stop gate sent back are
merged into one message; only the count of tokens tells how many there were.
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
from truegreen.work.agents.conversation import Conversation, Denial, Message, ResultMeta, Tokens
from truegreen.work.agents.events import Lines
from truegreen.work.agents.pointing import Pointed, by_variables, variables
from truegreen.work.agents.reading import Ending, Expectation, GatewayDoor, Reader
from truegreen.work.agents.rules import Found, Rule, RuledReader, failed, limited, signalled
from truegreen.work.agents.signs import provider_failure
from truegreen.work.agents.wording import decoded, one_line

NAME = "qwen"
_KNOWN = frozenset({"system", "assistant", "user", "result"})
_TURNS, _BUDGET = 53, 55
_GATE_ROUNDS = 6
"""Its cap on refusals of a Stop gate is 8; prompts that grow make the quotient smaller."""


class Server(Struct):
    """A connector in `init`."""

    name: str | None = None
    status: str | None = None


class Line(Struct):
    """One line of the stream; each kind of line fills some of the fields."""

    type: str | None = None
    subtype: str | None = None
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    qwen_code_version: str | None = None
    model: str | None = None
    mcp_servers: list[Server] | None = None
    message: Message | str | None = None
    isSynthetic: bool | None = None  # noqa: N815 - the client's spelling
    tool_result_meta: list[ResultMeta] | None = None
    is_error: bool | None = None
    num_turns: int | None = None
    result: Any = None
    error: Any = None
    usage: Tokens | None = None
    total_cost_usd: float | None = None
    permission_denials: list[Denial] | None = None

    @property
    def words(self) -> str:
        """What a result says: its text, else its error."""
        if isinstance(self.result, str) and self.result:
            return self.result
        said = self.error.get("message") if isinstance(self.error, dict) else self.error
        return said if isinstance(said, str) else ""


class Stream(Conversation):
    """Everything that the lines of one run have said so far."""

    def __init__(self, expects: Expectation) -> None:
        super().__init__()
        self.expects = expects
        self.lines = Lines(Line, _KNOWN)
        self.started = False
        self.servers: dict[str, str] = {}
        self.last: Line | None = None
        self.shown = 0
        """Input tokens that the messages of the run account for."""
        self.shown_last = 0
        self._in_round = False

    @property
    def said(self) -> str:
        """The last answer."""
        return self.last.words if self.last else self.lines.printed.text

    @property
    def notes(self) -> dict[str, Any]:
        """Nothing besides."""
        return {}

    def feed(self, line: bytes) -> None:
        """Take one line."""
        for event in self.lines.several(line):
            self._take(event)

    def _take(self, event: Line) -> None:
        main = event.parent_tool_use_id is None
        if not main:
            self.children.began(AgentKind.SUBAGENT, event.parent_tool_use_id)
        if event.type == "assistant" and isinstance(event.message, Message):
            self._said(event.message, main=main, session=event.session_id)
        elif event.type == "user" and isinstance(event.message, Message):
            self._in_round = self._in_round and not main
            synthetic = bool(event.isSynthetic)
            self.told(event.message, event.tool_result_meta, main=main, synthetic=synthetic)
        elif event.type == "system" and event.subtype == "init":
            self.started = True
            self.live.session, self.live.model = event.session_id, event.model
            self.live.version = event.qwen_code_version
            self.servers = {one.name or "": one.status or "" for one in event.mcp_servers or ()}
        elif event.type == "result":
            self._result(event)

    def _said(self, message: Message, *, main: bool, session: str | None) -> None:
        """Text and the calls after it are two messages, but one round of the model."""
        turns = self.live.turns
        self.heard(message, main=main, session=session)
        if not main:
            return
        self.live.turns = turns if self._in_round else turns + 1
        self._in_round = True
        spent = (message.usage.input_tokens or 0) if message.usage else 0
        self.shown += spent
        self.shown_last = spent or self.shown_last

    def _result(self, event: Line) -> None:
        self.last = event
        self.live.session = event.session_id or self.live.session
        used, tokens = self.sessions.of(event.session_id), event.usage.total if event.usage else 0
        self.sessions.total(used, tokens=tokens, cost_usd=event.total_cost_usd or 0.0)
        for denial in event.permission_denials or ():
            self.hindered.deny(denial.tool_use_id or "", f"{denial.tool_name} was denied")

    @property
    def merged_rounds(self) -> int:
        """How many rounds of the model the last message hides, as far as tokens tell."""
        used = self.last.usage.input_tokens if self.last and self.last.usage else 0
        if self.delegated or not used or not self.shown_last:
            return 0
        return (used - self.shown) // self.shown_last


def _signalled(_: Stream, ending: Ending) -> Found | None:
    """Its child may still print a success after the wrapper is dead."""
    return signalled(ending, by_code=True)


def _capped(_: Stream, ending: Ending) -> Found | None:
    if ending.code not in (_TURNS, _BUDGET):
        return None
    said = one_line(decoded(ending.stderr).strip().rsplit("\n", 1)[-1])
    if ending.code == _TURNS:
        return Found(ExitDetail.TURN_CAP, said or "its own cap on turns")
    timed = "wall" in said.lower() or " time" in said.lower()
    detail = ExitDetail.TIME_CAP if timed else ExitDetail.TURN_CAP
    return Found(detail, said or "its own cap")


def _api_failed(seen: Stream, ending: Ending) -> Found | None:
    last = seen.last
    if last is None or not last.is_error:
        return None
    detail = provider_failure(last.words)
    return limited(detail, last.words, ending) if detail else None


def _egress(seen: Stream, _: Ending) -> Found | None:
    said = seen.hindered.egress
    return Found(ExitDetail.EGRESS_DENIED, said) if said else None


def _connector(seen: Stream, _: Ending) -> Found | None:
    for name, said in seen.hindered.missing().items():
        return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: {said}")
    for name, status in seen.servers.items():
        ours = not seen.expects.connectors or name in seen.expects.connectors
        if ours and status in ("failed", "disconnected") and name not in seen.used:
            return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: {status}")
    if not seen.started:
        return None
    for name in seen.expects.connectors:
        if name not in seen.servers and name not in seen.used:
            return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: not there")
    return None


def _denied(seen: Stream, _: Ending) -> Found | None:
    for said in seen.hindered.denied.values():
        return Found(ExitDetail.PERMISSION_DENIED, said)
    last = seen.last
    if last is None or seen.answered:
        return None
    silent = not last.is_error and not seen.live.tokens
    if silent or re.search(r"(?i)blocked by[^\n]{0,80}hook", last.words[:500]):
        return Found(ExitDetail.PERMISSION_DENIED, last.words or "the prompt was held back")
    return None


def _gate_overridden(seen: Stream, _: Ending) -> Found | None:
    if seen.last is None or seen.last.is_error:
        return None
    if seen.gate_unanswered or seen.merged_rounds >= _GATE_ROUNDS:
        return Found(ExitDetail.REENTRY_CAP, "ended although its Stop gate had refused")
    return None


def _failed(seen: Stream, ending: Ending) -> Found | None:
    if seen.last is not None and seen.last.is_error:
        return Found(ExitDetail.AGENT_ERROR, seen.last.words or "it reports an error")
    if not failed(ending):
        return None
    if seen.started or seen.last is not None:
        return Found(ExitDetail.AGENT_ERROR, f"exit {ending.code} without a reason")
    words = decoded(ending.stderr).strip() or seen.lines.printed.text
    if not words:
        return Found(ExitDetail.LAUNCH_FAILED, f"exit {ending.code} without a word")
    access = provider_failure(words) is ExitDetail.AUTH_INVALID
    return Found(ExitDetail.AUTH_INVALID if access else ExitDetail.CONFIG_INVALID, words)


def _without_events(seen: Stream, ending: Ending) -> Found | None:
    if seen.lines.events or ending.code != 0:
        return None
    said = seen.lines.printed.text
    if not said:
        return Found(ExitDetail.ZERO_OUTPUT, "not a single line of output")
    if seen.expects.text:
        return Found(ExitDetail.COMPLETED, said)
    return Found(ExitDetail.UNCLAIMED, "it declared nothing")


def _unfinished(seen: Stream, ending: Ending) -> Found | None:
    if seen.last is None:
        return Found(ExitDetail.UNCLAIMED, "its stream ends without a result")
    if ending.survivors:
        return Found(ExitDetail.UNCLAIMED, f"{ending.survivors} processes may still act")
    if not seen.last.words.strip():
        return Found(ExitDetail.UNCLAIMED, "an empty answer")
    return None


def _done(seen: Stream, _: Ending) -> Found | None:
    last = seen.last
    if last is not None and last.subtype == "success" and last.is_error is False:
        return Found(ExitDetail.COMPLETED, last.words)
    return None


RULES: tuple[Rule[Stream], ...] = (
    *(_signalled, _capped, _api_failed, _egress, _connector, _denied, _gate_overridden),
    *(_failed, _without_events, _unfinished, _done),
)


def _reader(expects: Expectation) -> Reader:
    return RuledReader(Stream(expects), RULES, NAME)


def _expects(argv: Sequence[str]) -> Expectation:
    """Whether events were asked for."""
    chosen = prompts.value_of(argv, *CLIENT.calling.format_flags)
    return Expectation(text=chosen in (None, "text"))


def _pointed(argv: Sequence[str], env: Mapping[str, str], door: GatewayDoor) -> Pointed:
    """It asks its settings which provider to use, unless it is told."""
    told = prompts.value_of(argv, "--auth-type") is not None
    if told or not prompts.is_program(argv, CLIENT.program):
        return by_variables(argv, env, door)
    return prompts.inserted(argv, 1, "--auth-type", "openai"), variables(door)


CLIENT = Client(
    name=NAME,
    calling=Calling(
        program="qwen",
        prompt_flags=("-p", "--prompt"),
        valued=frozenset(
            {
                *("-m", "--model", "-p", "--prompt", "-i", "--prompt-interactive", "-o"),
                *("--output-format", "--input-format", "--approval-mode", "-r", "--resume"),
                *("--session-id", "--auth-type", "--max-session-turns", "--max-tool-calls"),
                *("--max-wall-time", "-e", "--extensions", "--include-directories"),
                *("--allowed-tools", "--exclude-tools", "--mcp-config", "--openai-api-key"),
                "--openai-base-url",
            }
        ),
        format_flags=("--output-format", "-o"),
        events=("--output-format", "stream-json"),
    ),
    passes=("QWEN_*", "OPENAI_*", "DASHSCOPE_*", "BAILIAN_*"),
    can=("events", "turns", "tokens", "resume", "connectors"),
    switches={},
    reading=_reader,
    expecting=_expects,
    apis=("openai",),
    pointing=_pointed,
)
