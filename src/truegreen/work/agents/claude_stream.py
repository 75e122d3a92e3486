"""The lines of Claude Code's stream, and what one run's lines add up to.

Key order is not fixed and unknown lines are normal: lines are parsed, never matched. Which ending
the facts amount to is said by the rules in `claude_code`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from truegreen.work.agents.conversation import Conversation, Denial, Message, ResultMeta, Used
from truegreen.work.agents.events import Lines
from truegreen.work.agents.reading import Expectation
from truegreen.work.agents.wording import one_line

SYNTHETIC = "<synthetic>"
_PARTIAL = b'{"type":"stream_event"'
_KNOWN = frozenset({"system", "assistant", "user", "result", "rate_limit_event"})
_MOST_TASKS = 1000
_TASK_FIELDS = ("task_id", "task_type", "subagent_type", "description")
_TASK_OVER = ("completed", "failed", "killed", "stopped", "cancelled", "canceled")

_OWN_BACK_OFF_S = 45.0
"""The client's own back-off ends at about 40 s; what is longer is the provider's word."""


class Server(Struct):
    """A connector in `init`."""

    name: str | None = None
    status: str | None = None
    source: str | None = None


class Use(Struct):
    """What one model used."""

    inputTokens: int | None = 0  # noqa: N815 - the client's spelling
    outputTokens: int | None = 0  # noqa: N815 - the client's spelling
    cacheReadInputTokens: int | None = 0  # noqa: N815 - the client's spelling
    cacheCreationInputTokens: int | None = 0  # noqa: N815 - the client's spelling
    costUSD: float | None = 0.0  # noqa: N815 - the client's spelling

    @property
    def tokens(self) -> int:
        """All of them."""
        parts = (self.inputTokens, self.outputTokens, self.cacheReadInputTokens)
        return sum(part or 0 for part in (*parts, self.cacheCreationInputTokens))


class Line(Struct):
    """One line of the stream; each kind of line fills some of the fields."""

    type: str | None = None
    subtype: str | None = None
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    # init
    claude_code_version: str | None = None
    model: str | None = None
    mcp_servers: list[Server] | None = None
    # assistant and user
    message: Message | str | None = None
    error: Any = None
    request_id: str | None = None
    isSynthetic: bool | None = None  # noqa: N815 - the client's spelling
    tool_result_meta: list[ResultMeta] | None = None
    tool_use_result: Any = None
    # notices
    content: Any = None
    key: str | None = None
    prompt_submit_outcome: Any = None
    retry_delay_ms: float | None = None
    error_status: int | None = None
    tool_use_id: str | None = None
    task_id: str | None = None
    task_type: Any = None
    subagent_type: Any = None
    description: Any = None
    status: Any = None
    patch: Any = None
    tasks: list[Any] | None = None
    rate_limit_info: Any = None
    # result
    is_error: bool | None = None
    num_turns: int | None = None
    result: Any = None
    stop_reason: str | None = None
    terminal_reason: str | None = None
    api_error_status: int | None = None
    api_error_type: str | None = None
    api_error: Any = None
    errors: list[Any] | None = None
    permission_denials: list[Denial] | None = None
    total_cost_usd: float | None = None
    modelUsage: dict[str, Use] | None = None  # noqa: N815 - the client's spelling
    model_usage_since_last_result: dict[str, Use] | None = None
    structured_output: Any = None
    result_index: int | None = None
    queued_turn_count: int | None = None
    safety_stops: int | None = None
    startup_failure_reason: Any = None

    @property
    def words(self) -> str:
        """What a result says: its text, else its errors."""
        said = self.result if isinstance(self.result, str) else ""
        return said or "; ".join(str(error) for error in self.errors or ())


class Stream(Conversation):
    """Everything that the lines of one run have said so far."""

    def __init__(self, expects: Expectation) -> None:
        super().__init__()
        self.expects = expects
        self.lines = Lines(Line, _KNOWN)
        self.started = False
        self.servers: dict[str, Server] = {}
        self.last: Line | None = None
        self.results = 0
        self.failure: Line | None = None
        """The synthetic message that reports an API failure, if the model has not spoken since."""
        self.refusal = ""
        self.gate_overridden = ""
        self.retry_s = 0.0
        self.resets_at = 0.0
        self._tasks: set[str] = set()
        self._listed = False

    @property
    def said(self) -> str:
        """The last result's words; else what was printed as plain text."""
        return self.last.words if self.last else self.lines.printed.text

    @property
    def notes(self) -> dict[str, Any]:
        """Several results, and gaps among them."""
        notes: dict[str, Any] = {"results": self.results} if self.results > 1 else {}
        index = self.last.result_index if self.last else None
        if index is not None and index + 1 != self.results:
            notes["results_expected"] = index + 1
        return notes

    def feed(self, line: bytes) -> None:
        """Take one line."""
        if line.startswith(_PARTIAL):
            self.lines.events += 1
            return
        for event in self.lines.several(line):
            self._take(event)

    def _take(self, event: Line) -> None:
        if event.type == "assistant":
            self._assistant(event)
        elif event.type == "user" and isinstance(event.message, Message):
            main = event.parent_tool_use_id is None
            synthetic = bool(event.isSynthetic)
            self.told(
                event.message,
                event.tool_result_meta,
                main=main,
                synthetic=synthetic,
                result=event.tool_use_result,
            )
        elif event.type == "result":
            self._result(event)
        elif event.type == "system":
            self._system(event)
        elif event.type == "rate_limit_event" and isinstance(event.rate_limit_info, dict):
            at = event.rate_limit_info.get("resetsAt")
            self.resets_at = float(at) if isinstance(at, int | float) else 0.0

    def _assistant(self, event: Line) -> None:
        message = event.message
        if not isinstance(message, Message):
            return
        if message.model == SYNTHETIC:
            self.failure = event
            if message.stop_reason == "refusal":
                self.refusal = self.refusal or "the model refused"
            return
        if event.parent_tool_use_id is None:
            self.failure, self.refusal = None, ""
        self.heard(message, main=event.parent_tool_use_id is None, session=event.session_id)

    def _system(self, event: Line) -> None:
        if event.subtype == "init":
            self._init(event)
        elif event.subtype == "api_retry":
            delay = (event.retry_delay_ms or 0.0) / 1000
            self.retry_s = delay if delay > _OWN_BACK_OFF_S else 0.0
        elif event.subtype == "permission_denied":
            said = event.message if isinstance(event.message, str) else "denied"
            self.hindered.deny(event.tool_use_id or "", one_line(said))
        elif (event.subtype or "").startswith("model_refusal"):
            self.refusal = self.refusal or "the model refused"
        elif event.subtype in ("informational", "notification"):
            self._notice(event)
        elif event.subtype == "background_tasks_changed":
            self._listed = True
            self.live.background = len(event.tasks or ())
            self.children.listed(event.tasks or [])
        elif (event.subtype or "").startswith("task_"):
            self._task(event)

    def _init(self, event: Line) -> None:
        self.started = True
        self.live.session = event.session_id or self.live.session
        self.sessions.of(event.session_id).streamed = True
        self.live.version = event.claude_code_version or self.live.version
        self.live.model = event.model or self.live.model
        self.servers = {server.name or "": server for server in event.mcp_servers or ()}

    def _notice(self, event: Line) -> None:
        said = event.content if isinstance(event.content, str) else ""
        if event.key == "stop-hook-block-cap" or "overriding and ending turn" in said:
            self.gate_overridden = one_line(said) or "a Stop gate was overridden"

    def _task(self, event: Line) -> None:
        """Older versions don't list background tasks; then starts and ends are counted."""
        patched = event.patch.get("status") if isinstance(event.patch, dict) else None
        if event.subtype == "task_started":
            self.children.task({name: getattr(event, name) for name in _TASK_FIELDS})
        else:
            self.children.is_over(event.task_id, event.status or patched)
        if self._listed:
            return
        if event.subtype == "task_started" and len(self._tasks) < _MOST_TASKS:
            self._tasks.add(event.task_id or "")
        elif event.status in _TASK_OVER or patched in _TASK_OVER:
            self._tasks.discard(event.task_id or "")
        self.live.background = len(self._tasks)

    def _result(self, event: Line) -> None:
        self.last = event
        self.results += 1
        self.live.session = event.session_id or self.live.session
        used = self.sessions.of(event.session_id)
        streamed = used.streamed if self.live.session else self.started
        if not streamed:  # --output-format json: there are no messages to count
            self.live.turns += event.num_turns or 0
        for denial in event.permission_denials or ():
            self.hindered.deny(denial.tool_use_id or "", f"{denial.tool_name} was denied")
        self._count(event, used)

    def _count(self, event: Line, used: Used) -> None:
        """Use since the last result is this run's own; totals go on counting after a resume."""
        since = event.model_usage_since_last_result
        if since is not None:
            used.cost_of_results += sum(use.costUSD or 0.0 for use in since.values())
            used.tokens_of_results += sum(use.tokens for use in since.values())
            cost, tokens = used.cost_of_results, used.tokens_of_results
        else:
            cost = event.total_cost_usd or 0.0
            tokens = sum(use.tokens for use in (event.modelUsage or {}).values())
        self.sessions.total(used, tokens=tokens, cost_usd=cost)
