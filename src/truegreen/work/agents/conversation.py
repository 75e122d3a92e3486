"""The stream of messages that Claude Code and its like print, folded into facts.

Counts turns and tool calls, and remembers what was denied, which connectors failed, what showed
denied egress, and every result. What the facts amount to is for the client's own rules to say.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

from truegreen.work.agents.children import DELEGATING, Children
from truegreen.work.agents.reading import Live
from truegreen.work.agents.signs import egress_denied, reaches_out
from truegreen.work.agents.wording import action, one_line, text_of

MOST = 64
"""How many hindrances are kept; a stream may be hostile."""
_MOST_PENDING = 4096
_MOST_SESSIONS = 4096
_CONNECTOR = r"mcp__(.+?)__"
_NO_SUCH_TOOL = (
    r"No such tool available: ([\w.:-]+)|Tool \"?([\w.:-]+)\"? (?:is )?not (?:found|available)"
)
_HOOK_DENIED = r"\bPreToolUse:\S{1,200} hook (?:error|denied)"
_MISUSED = ("<tool_use_error>InputValidationError", "InputValidationError")


class Block(Struct):
    """A piece of a message: text, a tool call, or a tool's result."""

    type: str = ""
    id: str | None = None
    name: str | None = None
    input: Any = None
    text: str | None = None
    tool_use_id: str | None = None
    content: Any = None
    is_error: bool | None = None


class Tokens(Struct):
    """What a message cost in tokens."""

    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0

    @property
    def total(self) -> int:
        """All of them."""
        parts = (self.input_tokens, self.output_tokens, self.cache_creation_input_tokens)
        return sum(part or 0 for part in (*parts, self.cache_read_input_tokens))


class Message(Struct):
    """A message of the model, or of the user's side."""

    id: str | None = None
    model: str | None = None
    content: list[Block] | str | None = None
    stop_reason: str | None = None
    usage: Tokens | None = None

    @property
    def blocks(self) -> list[Block]:
        """Its pieces; a bare string is one piece of text."""
        if isinstance(self.content, str):
            return [Block(type="text", text=self.content)]
        return self.content or []


class Decision(Struct):
    """Whether a tool call was permitted, and by whom."""

    decision: str | None = None
    source: str | None = None
    reason_type: str | None = None


class ResultMeta(Struct):
    """What a client adds to a tool's result."""

    id: str | None = None
    non_execution_kind: str | None = None
    permission_decision: Decision | None = None


class Denial(Struct):
    """A tool call that a result reports as denied."""

    tool_name: str | None = None
    tool_use_id: str | None = None


class Hindrances(Struct):
    """What stood in the way of the work, whether or not the agent found another."""

    egress: str = ""
    denied: dict[str, str] = field(default_factory=dict)
    """Denied tool calls: what the tool result said, by the call's id."""
    connectors: dict[str, str] = field(default_factory=dict)
    """Connectors whose last call failed: what was said, by name."""
    failed_calls: dict[str, str] = field(default_factory=dict)
    """The call by which a connector failed: its id, by the connector's name."""

    def deny(self, call: str, said: str) -> None:
        """Remember a denied call."""
        if len(self.denied) < MOST:
            self.denied.setdefault(call, said)

    def missing(self) -> dict[str, str]:
        """Connectors that failed for another reason than a denial."""
        return {
            name: said
            for name, said in self.connectors.items()
            if self.failed_calls.get(name) not in self.denied
        }


class Used(Struct):
    """What one session has used so far."""

    tokens: int = 0
    cost_usd: float = 0.0
    tokens_of_results: int = 0
    cost_of_results: float = 0.0
    """The sum of what results say they used since the result before."""
    streamed: bool = False
    """Its messages are in the stream, and not only its results."""


class Sessions:
    """What each session of a run has used: a line of shell can start a client several times.

    The totals of one session go on counting. Those of different sessions add up.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._used: dict[str, Used] = {}

    def of(self, session: str | None) -> Used:
        """The use of a session, of the latest one without an id. Without any, it is a new one."""
        key = session or self._live.session
        if not key or (key not in self._used and len(self._used) >= _MOST_SESSIONS):
            return Used()
        return self._used.setdefault(key, Used())

    def total(self, used: Used, *, tokens: int = 0, cost_usd: float = 0.0) -> None:
        """A result says what a session has used in all: what was not known of it yet is added."""
        self._live.tokens += max(tokens - used.tokens, 0)
        self._live.cost_usd += max(cost_usd - used.cost_usd, 0.0)
        used.tokens, used.cost_usd = max(used.tokens, tokens), max(used.cost_usd, cost_usd)


class Conversation:
    """Folds messages; the client's reader feeds it what its lines hold."""

    def __init__(self) -> None:
        self.live = Live()
        self.sessions = Sessions(self.live)
        self.hindered = Hindrances()
        self.answered = False
        """A model spoke in the main conversation."""
        self.delegated = False
        self.gate_unanswered = False
        """The last thing said was a Stop gate's refusal."""
        self.interrupted = False
        self.used: set[str] = set()
        """Connectors that answered a call."""
        self.children = Children(self.live)
        self._last_id: str | None = None
        self._last_tokens = 0
        self._pending: dict[str, Block] = {}

    def heard(self, message: Message, *, main: bool, session: str | None) -> None:
        """The model spoke."""
        tokens = message.usage.total if message.usage else 0
        more = tokens
        if message.id is None or message.id != self._last_id:
            self.live.turns += 1 if main else 0
        else:
            more = max(tokens - self._last_tokens, 0)
        self.live.tokens += more
        self.sessions.of(session).tokens += more
        self._last_id, self._last_tokens = message.id, tokens
        if main:
            self.answered, self.gate_unanswered, self.interrupted = True, False, False
        for block in message.blocks:
            if block.type == "tool_use":
                self._called(block)
            elif block.type == "text" and block.text and main:
                self.live.says(block.text)

    def _called(self, block: Block) -> None:
        name = block.name or ""
        self.live.tool_calls += 1
        self.live.last_action = action(name, block.input)
        self.delegated = self.delegated or name in DELEGATING
        if len(self._pending) >= _MOST_PENDING:
            self._pending.pop(next(iter(self._pending)))
        self._pending[block.id or ""] = block

    def told(
        self,
        message: Message,
        metas: list[ResultMeta] | None,
        *,
        main: bool,
        synthetic: bool,
        result: Any = None,
    ) -> None:
        """The user's side spoke: tool results, a gate's feedback, an interruption.

        `result` is what a client adds to the one tool result of a message.
        """
        by_id = {meta.id: meta for meta in metas or ()}
        for block in message.blocks:
            if block.type == "tool_result":
                self._returned(block, by_id.get(block.tool_use_id), result)
            elif block.type == "text" and block.text and main:
                self.gate_unanswered = synthetic and block.text.startswith("Stop hook feedback")
                self.interrupted = block.text.startswith("[Request interrupted by user")

    def _returned(self, block: Block, meta: ResultMeta | None, result: Any) -> None:
        call = block.tool_use_id or ""
        asked = self._pending.pop(call, None)
        tool = (asked.name if asked else None) or ""
        if asked and not block.is_error:
            self.children.answered(tool, call, asked.input, result)
        said = text_of(block.content)
        wrong = bool(block.is_error)
        if reaches_out(tool) and not self.hindered.egress:
            self.hindered.egress = egress_denied(said, failed=wrong)
        connector = re.match(_CONNECTOR, tool)
        if not wrong:
            if connector and len(self.used) < MOST:
                self.used.add(connector[1])
                self.hindered.connectors.pop(connector[1], None)
            return
        self._went_wrong(call, connector[1] if connector else "", said, meta)

    def _went_wrong(self, call: str, connector: str, said: str, meta: ResultMeta | None) -> None:
        line = one_line(said)
        unknown = re.search(_NO_SUCH_TOOL, said[:1000])
        removed = unknown and not (connector or re.match(_CONNECTOR, unknown[1] or unknown[2]))
        if removed or _rejected(meta) or re.search(_HOOK_DENIED, said[:300]):
            self.hindered.deny(call, line)
        elif connector and not said.startswith(_MISUSED) and len(self.hindered.connectors) < MOST:
            self.hindered.connectors[connector] = line
            self.hindered.failed_calls[connector] = call


def _rejected(meta: ResultMeta | None) -> bool:
    if meta is None:
        return False
    decision = meta.permission_decision
    return bool(meta.non_execution_kind or (decision and decision.decision in ("reject", "deny")))
