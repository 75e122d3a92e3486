"""Gemini CLI: `gemini -p --output-format stream-json`, its events, its exit codes.

Exit codes above 128 are HTTP statuses modulo 256 here, not signals. After a signal it exits with 0
and without a result. A tool that failed may well say `success`; only denials are told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from truegreen.model import ExitDetail
from truegreen.work.agents import prompts
from truegreen.work.agents.calling import Calling, Client
from truegreen.work.agents.conversation import Sessions
from truegreen.work.agents.events import Lines, json_object
from truegreen.work.agents.reading import Ending, Expectation, Live, Reader
from truegreen.work.agents.rules import Found, Rule, RuledReader, failed, limited, signalled
from truegreen.work.agents.signs import egress_denied, of_status, provider_failure, reaches_out
from truegreen.work.agents.wording import MESSAGE, action, decoded, one_line, text_of

NAME = "gemini"
_MOST = 64
_KNOWN = frozenset({"init", "message", "tool_use", "tool_result", "error", "result"})
_HELD_BACK = ("policy_violation", "stop_execution", "tool_not_registered", "execution_denied")
_GATE = "Agent execution blocked"
_OF_CODE = {
    41: ExitDetail.AUTH_INVALID,
    42: ExitDetail.CONFIG_INVALID,
    44: ExitDetail.CONFIG_INVALID,
    52: ExitDetail.CONFIG_INVALID,
    53: ExitDetail.TURN_CAP,
}
_STATUS_OF_CODE = {status % 256: status for status in (*range(400, 430), *range(500, 512), 529)}
_FORBIDDEN = 403


class Failure(Struct):
    """An error of a tool or of the run."""

    type: str | None = None
    message: str | None = None


class Stats(Struct):
    """What the run used."""

    total_tokens: int | None = 0


class Line(Struct):
    """One event."""

    type: str | None = None
    session_id: str | None = None
    model: str | None = None
    role: str | None = None
    content: Any = None
    delta: bool | None = None
    tool_id: str | None = None
    tool_name: str | None = None
    parameters: Any = None
    status: str | None = None
    output: Any = None
    error: Failure | str | None = None
    severity: str | None = None
    message: str | None = None
    stats: Stats | None = None

    @property
    def failure(self) -> Failure:
        """Its error, as kind and words."""
        if isinstance(self.error, Failure):
            return self.error
        return Failure(message=self.error)


class Stream:
    """Everything that the lines of one run have said so far."""

    def __init__(self, expects: Expectation) -> None:
        self.expects = expects
        self.lines = Lines(Line, _KNOWN)
        self.live = Live()
        self.sessions = Sessions(self.live)
        self.last: Line | None = None
        self.answer = ""
        self.egress = ""
        self.denied = ""
        self.gate_refused = ""
        self.looping = ""
        self.complaint = ""
        self.connectors: dict[str, str] = {}
        self.used: set[str] = set()
        self._in_round = False
        self._saying = False
        self._pending: dict[str, str] = {}

    @property
    def said(self) -> str:
        """The last answer."""
        return self.answer or self.lines.printed.text

    @property
    def notes(self) -> dict[str, Any]:
        """Nothing besides."""
        return {}

    def feed(self, line: bytes) -> None:
        """Take one line."""
        event = self.lines.event(line)
        if event is None:
            return
        if event.type == "message":
            self._message(event)
        elif event.type == "tool_use":
            self._use(event)
        elif event.type == "tool_result":
            self._result(event)
        elif event.type == "error":
            self._warning(event.message or "")
        elif event.type == "init":
            self.live.session, self.live.model = event.session_id, event.model
        elif event.type == "result":
            self.last = event
            if event.stats:
                used = self.sessions.of(event.session_id)
                self.sessions.total(used, tokens=event.stats.total_tokens or 0)

    def _round(self) -> None:
        if not self._in_round:
            self.live.turns += 1
        self._in_round = True

    def _message(self, event: Line) -> None:
        if event.role != "assistant":
            self._in_round = False
            return
        self._round()
        said = text_of(event.content)
        self.answer = f"{self.answer}{said}"[-MESSAGE:] if self._saying and event.delta else said
        self._saying = True
        self.live.says(self.answer)
        self.gate_refused = self.looping = ""

    def _use(self, event: Line) -> None:
        self._round()
        self._saying = False
        self.live.tool_calls += 1
        self.live.last_action = action(event.tool_name or "", event.parameters)
        if len(self._pending) < _MOST * _MOST:
            self._pending[event.tool_id or ""] = event.tool_name or ""

    def _result(self, event: Line) -> None:
        self._in_round = self._saying = False
        tool = self._pending.pop(event.tool_id or "", "")
        said = text_of(event.output) or event.failure.message or ""
        if reaches_out(tool) and not self.egress:
            self.egress = egress_denied(said)
        connector = tool[4:] if tool.startswith("mcp_") else ""
        if event.status != "error":
            if said.startswith("Blocked:"):
                self.denied = self.denied or one_line(said)
            if connector and len(self.used) < _MOST:
                self.used.add(connector)
            self.connectors.pop(connector, None)
        else:
            self._went_wrong(connector, event.failure.type or "", one_line(said))

    def _went_wrong(self, connector: str, kind: str, said: str) -> None:
        if connector and kind not in ("policy_violation", "stop_execution", "execution_denied"):
            if len(self.connectors) < _MOST and kind != "invalid_tool_params":
                self.connectors[connector] = said
        elif kind in _HELD_BACK or said.startswith("Tool execution blocked"):
            self.denied = self.denied or said or kind

    def _warning(self, said: str) -> None:
        self._in_round = self._saying = False
        self.complaint = one_line(said)
        if said.startswith(_GATE):
            self.gate_refused = one_line(said)
        elif said.startswith("Loop detected"):
            self.looping = one_line(said)


def _signalled(seen: Stream, ending: Ending) -> Found | None:
    """Its exit codes above 128 are no signals; after one it exits with 0 and says no more."""
    if found := signalled(ending, by_code=False):
        return found
    if ending.code in (0, 130) and seen.lines.events and seen.last is None:
        return Found(ExitDetail.SIGNALED, "ended in the middle of its work, as after a signal")
    return None


def _failure(seen: Stream, ending: Ending) -> tuple[str, str]:
    """Kind and words of the failure: from the result, else from standard error."""
    if seen.last is not None:
        return seen.last.failure.type or "", seen.last.failure.message or seen.complaint
    stderr = decoded(ending.stderr)
    error = json_object(stderr[f"\n{stderr}".rfind("\n{") :]).get("error")
    if isinstance(error, dict):
        return str(error.get("type") or ""), str(error.get("message") or "")
    return "", stderr


def _failed(seen: Stream, ending: Ending) -> Found | None:
    broken = seen.last is not None and seen.last.status == "error"
    if not broken and not failed(ending):
        return None
    kind, said = _failure(seen, ending)
    words = one_line(said.strip().rsplit("\n", 1)[-1] if seen.last is None else said)
    words = words or f"exit {ending.code}"
    fixed = _OF_CODE.get(ending.code or 0)
    if kind == "FatalTurnLimitedError" or fixed is ExitDetail.TURN_CAP:
        return Found(ExitDetail.TURN_CAP, words)
    if fixed is not None:
        return Found(fixed, words)
    if seen.last is None and not seen.lines.events:
        return Found(_not_started(said, ending), words)
    return limited(_of_failure(said, ending), words, ending)


def _not_started(said: str, ending: Ending) -> ExitDetail:
    status = _STATUS_OF_CODE.get(ending.code or 0)
    if status is not None:
        return provider_failure(said, status) or ExitDetail.PROVIDER_ERROR
    return ExitDetail.CONFIG_INVALID if said.strip() else ExitDetail.LAUNCH_FAILED


def _of_failure(said: str, ending: Ending) -> ExitDetail:
    status = _STATUS_OF_CODE.get(ending.code or 0)
    if status == _FORBIDDEN and '"error"' not in said:
        return ExitDetail.EGRESS_DENIED  # the provider answers with an error object
    detail = provider_failure(said, status) or of_status(status) or ExitDetail.AGENT_ERROR
    if ending.code == 0 and detail in (ExitDetail.PROVIDER_ERROR, ExitDetail.AGENT_ERROR):
        return ExitDetail.REFUSED  # an error with exit code 0: the answer was withheld
    return detail


def _egress(seen: Stream, _: Ending) -> Found | None:
    return Found(ExitDetail.EGRESS_DENIED, seen.egress) if seen.egress else None


def _connector(seen: Stream, ending: Ending) -> Found | None:
    for name, said in seen.connectors.items():
        return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: {said}")
    if not seen.expects.connectors or "MCP issues detected" not in decoded(ending.stderr):
        return None
    for name in seen.expects.connectors:
        if not any(tool.startswith(f"{name}_") for tool in seen.used):
            return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: not connected")
    return None


def _denied(seen: Stream, _: Ending) -> Found | None:
    if seen.denied:
        return Found(ExitDetail.PERMISSION_DENIED, seen.denied)
    if seen.last is not None and not seen.live.tokens and not seen.live.turns:
        return Found(ExitDetail.PERMISSION_DENIED, "the prompt never reached the model")
    return None


def _gate_overridden(seen: Stream, _: Ending) -> Found | None:
    if seen.last is None:
        return None
    if seen.gate_refused:
        return Found(
            ExitDetail.REENTRY_CAP, f"ended although its gate refused: {seen.gate_refused}"
        )
    return Found(ExitDetail.TURN_CAP, seen.looping) if seen.looping else None


def _without_events(seen: Stream, ending: Ending) -> Found | None:
    """Text, or one JSON object, was asked for instead of events."""
    if seen.last is not None or seen.lines.events > 0:
        return None
    said = seen.lines.printed.text
    if not said and ending.code == 0:
        return Found(ExitDetail.ZERO_OUTPUT, "not a single line of output")
    if seen.expects.text and said and ending.code == 0:
        answer = json_object(said).get("response", said)
        if isinstance(answer, str) and answer.strip():
            return Found(ExitDetail.COMPLETED, answer)
    return Found(ExitDetail.UNCLAIMED, "it declared nothing")


def _unfinished(seen: Stream, ending: Ending) -> Found | None:
    if seen.last is None:
        return Found(ExitDetail.UNCLAIMED, seen.gate_refused or "its stream ends without a result")
    if ending.survivors:
        return Found(ExitDetail.UNCLAIMED, f"{ending.survivors} processes may still act")
    if not seen.answer.strip():
        return Found(ExitDetail.UNCLAIMED, "an empty answer")
    return None


def _done(seen: Stream, _: Ending) -> Found | None:
    if seen.last is not None and seen.last.status == "success":
        return Found(ExitDetail.COMPLETED, seen.answer)
    return None


RULES: tuple[Rule[Stream], ...] = (
    *(_signalled, _failed, _egress, _connector, _denied, _gate_overridden),
    *(_without_events, _unfinished, _done),
)


def _reader(expects: Expectation) -> Reader:
    return RuledReader(Stream(expects), RULES, NAME)


def _expects(argv: Sequence[str]) -> Expectation:
    """Whether events were asked for."""
    chosen = prompts.value_of(argv, *CLIENT.calling.format_flags)
    return Expectation(text=chosen in (None, "text", "json"))


CLIENT = Client(
    name=NAME,
    calling=Calling(
        program="gemini",
        prompt_flags=("-p", "--prompt"),
        valued=frozenset(
            {
                *("-m", "--model", "-p", "--prompt", "-i", "--prompt-interactive", "-o"),
                *("--output-format", "--approval-mode", "-r", "--resume", "--session-id", "-e"),
                *("--session-file", "--extensions", "--include-directories", "--policy"),
                *("--allowed-tools", "--allowed-mcp-server-names", "--admin-policy"),
            }
        ),
        format_flags=("--output-format", "-o"),
        events=("--output-format", "stream-json"),
    ),
    passes=("GEMINI_*", "GOOGLE_*"),
    can=("events", "turns", "tokens", "resume"),
    switches={"GEMINI_CLI_NO_RELAUNCH": "true"},  # its launcher swallows signals
    reading=_reader,
    expecting=_expects,
    apis=("gemini",),
)
