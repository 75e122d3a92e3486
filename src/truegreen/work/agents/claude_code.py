"""Claude Code: how `claude -p` is called, and how its run ended.

`success` with `is_error` is the shape of an API failure, in every version; exit code 0 says little.
A result is a turn's end, not the run's: the last one counts, and every one's denials do. What the
client can't know (who sent a signal, whether a gate held) is for the host to know.
"""

from __future__ import annotations

from collections.abc import Sequence

from truegreen.model import ExitDetail
from truegreen.work.agents import prompts
from truegreen.work.agents.calling import Calling, Client
from truegreen.work.agents.claude_stream import Line, Stream
from truegreen.work.agents.events import json_object
from truegreen.work.agents.reading import Ending, Expectation, Reader
from truegreen.work.agents.rules import Found, Rule, RuledReader, failed, limited, signalled
from truegreen.work.agents.signs import of_status, provider_failure
from truegreen.work.agents.wording import counted, decoded

NAME = "claude-code"
_OF_ERROR = {
    "authentication_failed": ExitDetail.AUTH_INVALID,
    "oauth_org_not_allowed": ExitDetail.AUTH_INVALID,
    "account_on_hold": ExitDetail.AUTH_INVALID,
    "verification_required": ExitDetail.AUTH_INVALID,
    "cloud_credential_error": ExitDetail.AUTH_INVALID,
    "billing_error": ExitDetail.AUTH_INVALID,
    "rate_limit": ExitDetail.RATE_LIMITED,
    "overloaded": ExitDetail.RATE_LIMITED,
    "max_output_tokens": ExitDetail.TOKEN_CAP,
    "model_not_found": ExitDetail.CONFIG_INVALID,
}
_OF_TYPE = {
    "rate_limit_error": ExitDetail.RATE_LIMITED,
    "overloaded_error": ExitDetail.RATE_LIMITED,
}
_FULL = ("prompt_too_long", "blocking_limit", "rapid_refill_breaker")
_HELD_BACK = ("tool_deferred", "tool_deferred_unavailable", "hook_stopped", "stop_hook_prevented")
_SET_UP_FOR_THE_WORK = (None, "", "dynamic", "project", "local")
"""Sources of connectors that belong to the work, not to the person who runs it."""
_FORBIDDEN = 403


def _interrupted(seen: Stream, ending: Ending) -> Found | None:
    """The client reports an interruption with exit code 0, at times with no result at all."""
    last = seen.last
    if last is None:
        aborted = seen.interrupted
    else:
        cut = seen.interrupted and last.subtype == "error_during_execution"
        aborted = cut or (last.terminal_reason or "").startswith("aborted_")
    if aborted:
        return Found(ExitDetail.SIGNALED, "interrupted while it worked")
    return signalled(ending, by_code=True)


def _capped(seen: Stream, _: Ending) -> Found | None:
    last = seen.last
    if last is None:
        return None
    if last.subtype == "error_max_turns" or last.terminal_reason == "max_turns":
        return Found(ExitDetail.TURN_CAP, last.words or "its own cap on turns")
    if last.subtype == "error_max_budget_usd" or last.terminal_reason == "budget_exhausted":
        return Found(ExitDetail.COST_CAP, last.words or "its own cap on cost")
    if last.is_error and last.terminal_reason in _FULL:
        return Found(ExitDetail.CONTEXT_CAP, last.words)
    return None


def _refused(seen: Stream, _: Ending) -> Found | None:
    """A refusal that the client got over, by asking again or another model, is none."""
    last = seen.last
    if last is None:
        return None
    stopped = (last.safety_stops or 0) > 0 and last.api_error_status is None
    noted = bool(seen.refusal) or stopped
    if last.stop_reason == "refusal" or (last.is_error and noted):
        return Found(ExitDetail.REFUSED, last.words or "the model refused")
    return None


def _api_failed(seen: Stream, ending: Ending) -> Found | None:
    last = seen.last
    if last is None or not last.is_error:
        return None
    if last.subtype != "success" and seen.failure is None and last.api_error_status is None:
        return None
    detail = _of_failure(last, seen.failure)
    resets = max(seen.resets_at - ending.at, 0.0) if seen.resets_at else seen.retry_s
    return limited(detail, last.words or "the provider failed", ending, resets)


def _of_failure(last: Line, failure: Line | None) -> ExitDetail:
    if _before_the_provider(last, failure):
        return ExitDetail.EGRESS_DENIED
    error = failure.error if failure and isinstance(failure.error, str) else ""
    status = last.api_error_status
    told = _OF_ERROR.get(error) or _OF_TYPE.get(last.api_error_type or "")
    if told is not None:
        return told
    if error == "server_error" and status is None and not _unreachable(last):
        # The provider broke off in the middle of an answer: it does so when it is overloaded.
        return ExitDetail.RATE_LIMITED
    said = provider_failure(last.words, status)
    return said or of_status(status) or ExitDetail.PROVIDER_ERROR


def _before_the_provider(last: Line, failure: Line | None) -> bool:
    """A 403 with neither a request id nor an error type comes from somebody on the way."""
    bare = failure is not None and not failure.request_id and not last.api_error_type
    denied = last.api_error_status == _FORBIDDEN and bare
    return denied or provider_failure(last.words) is ExitDetail.EGRESS_DENIED


def _unreachable(last: Line) -> bool:
    said = last.words.lower()
    return last.api_error == "connection_failed" or "connection" in said or "timed out" in said


def _egress(seen: Stream, _: Ending) -> Found | None:
    said = seen.hindered.egress
    return Found(ExitDetail.EGRESS_DENIED, said) if said else None


def _connector(seen: Stream, _: Ending) -> Found | None:
    for name, said in seen.hindered.missing().items():
        return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: {said}")
    if not seen.started:
        return None
    wanted = seen.expects.connectors
    for name, server in seen.servers.items():
        ours = name in wanted or (
            server.status == "failed" and server.source in _SET_UP_FOR_THE_WORK
        )
        settled = server.status in ("connected", "disabled") or name in seen.used
        if ours and not settled:
            return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: {server.status}")
    for name in wanted:
        if name not in seen.servers:
            return Found(ExitDetail.CONNECTOR_MISSING, f"connector {name}: not there")
    return None


def _denied(seen: Stream, _: Ending) -> Found | None:
    for said in seen.hindered.denied.values():
        return Found(ExitDetail.PERMISSION_DENIED, said)
    last = seen.last
    if last is None or last.is_error:
        return None
    if last.terminal_reason in _HELD_BACK or last.stop_reason == "tool_deferred":
        return Found(ExitDetail.PERMISSION_DENIED, f"held back: {last.terminal_reason}")
    if last.num_turns == 0:
        return Found(ExitDetail.PERMISSION_DENIED, last.words or "the prompt was held back")
    return None


def _gate_overridden(seen: Stream, _: Ending) -> Found | None:
    """Without an answer to its gate the client ended: its cap on refusals overrode the gate."""
    if seen.last is None or seen.last.is_error:
        return None
    if seen.gate_overridden or seen.gate_unanswered:
        said = seen.gate_overridden or "ended although its Stop gate had refused"
        return Found(ExitDetail.REENTRY_CAP, said)
    return None


def _failed(seen: Stream, ending: Ending) -> Found | None:
    last = seen.last
    if last is not None and last.is_error:
        if last.startup_failure_reason or not (seen.started or last.num_turns):
            return Found(_of_startup(last.words), last.words)
        return Found(ExitDetail.AGENT_ERROR, last.words or "it reports an error")
    if failed(ending) and (last is not None or seen.lines.events):
        return Found(ExitDetail.AGENT_ERROR, f"exit {ending.code} without a reason")
    return None


def _of_startup(said: str) -> ExitDetail:
    access = provider_failure(said) is ExitDetail.AUTH_INVALID
    return ExitDetail.AUTH_INVALID if access else ExitDetail.CONFIG_INVALID


def _without_events(seen: Stream, ending: Ending) -> Found | None:
    """Plain text was asked for, or the client refused to start."""
    if seen.lines.events:
        return None
    said = seen.lines.printed.text
    if said.startswith("UserPromptSubmit operation blocked"):
        return Found(ExitDetail.PERMISSION_DENIED, said)
    if failed(ending):
        return _plain_failure(said, decoded(ending.stderr), ending)
    if not said and ending.code == 0:
        return Found(ExitDetail.ZERO_OUTPUT, "not a single line of output")
    if seen.expects.text and said and ending.code == 0:
        return Found(ExitDetail.COMPLETED, said)
    return Found(ExitDetail.UNCLAIMED, "it declared nothing")


def _plain_failure(said: str, complaint: str, ending: Ending) -> Found:
    words = said or complaint
    lower = words.lower()
    if "max turns" in lower or "maximum number of turns" in lower:
        return Found(ExitDetail.TURN_CAP, words)
    if "budget" in lower:
        return Found(ExitDetail.COST_CAP, words)
    if not said:
        detail = _of_startup(complaint) if complaint else ExitDetail.LAUNCH_FAILED
        return Found(detail, complaint or f"exit {ending.code} without a word")
    detail = provider_failure(words) or ExitDetail.AGENT_ERROR
    return limited(detail, words, ending)


def _unfinished(seen: Stream, ending: Ending) -> Found | None:
    if seen.last is None:
        return Found(ExitDetail.UNCLAIMED, "its stream ends without a result")
    if seen.live.background:
        open_tasks = counted(seen.live.background, "background task", "background tasks")
        return Found(ExitDetail.UNCLAIMED, f"{open_tasks} still open")
    if queued := seen.last.queued_turn_count:
        return Found(ExitDetail.UNCLAIMED, f"{counted(queued, 'turn', 'turns')} still queued")
    if ending.survivors:
        return Found(
            ExitDetail.UNCLAIMED,
            f"{counted(ending.survivors, 'process', 'processes')} may still act",
        )
    return None


def _without_answer(seen: Stream, _: Ending) -> Found | None:
    last = seen.last
    if last is None or last.structured_output is not None:
        return None
    if seen.expects.structured:
        return Found(ExitDetail.UNCLAIMED, "the structured answer that was asked for is missing")
    if not last.words.strip():
        return Found(ExitDetail.UNCLAIMED, "an empty answer")
    return None


def _done(seen: Stream, _: Ending) -> Found | None:
    last = seen.last
    if last is not None and last.subtype == "success" and last.is_error is False:
        return Found(ExitDetail.COMPLETED, last.words)
    return None


RULES: tuple[Rule[Stream], ...] = (
    *(_interrupted, _capped, _refused, _api_failed),
    *(_egress, _connector, _denied, _gate_overridden),
    *(_failed, _without_events, _unfinished, _without_answer, _done),
)


class ClaudeCalling(Calling, frozen=True, kw_only=True):
    """The shape of `claude -p`."""

    def streaming(self, argv: list[str]) -> list[str]:
        """It refuses to print events unless it may be verbose."""
        argv = super().streaming(argv)
        events = prompts.value_of(argv, *self.format_flags) == "stream-json"
        if not events or "--verbose" in argv or not self.recognises(argv):
            return argv
        return prompts.inserted(argv, 1, "--verbose")


def _reader(expects: Expectation) -> Reader:
    return RuledReader(Stream(expects), RULES, NAME)


def _expects(argv: Sequence[str]) -> Expectation:
    """A schema, a text format, and connectors that are written out in the arguments."""
    names: list[str] = []
    for given in prompts.values_of(argv, "--mcp-config"):
        servers = json_object(given).get("mcpServers")
        names += [*servers] if isinstance(servers, dict) else []
    return Expectation(
        connectors=tuple(names),
        structured=prompts.value_of(argv, "--json-schema") is not None,
        text=prompts.value_of(argv, "--output-format") in (None, "text"),
    )


CLIENT = Client(
    name=NAME,
    calling=ClaudeCalling(
        program="claude",
        prompt_flags=("-p", "--print"),
        only_with_flag=True,
        format_flags=("--output-format",),
        events=("--output-format", "stream-json"),
    ),
    # Not all of CLAUDE_*: a session around this one would lend it its own identity.
    passes=(
        *("ANTHROPIC_*", "IS_SANDBOX", "API_TIMEOUT_MS", "MAX_THINKING_TOKENS", "DISABLE_*"),
        *("MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "MAX_MCP_OUTPUT_TOKENS"),
        *("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_*"),
        *("CLAUDE_CODE_USE_*", "CLAUDE_CODE_SKIP_*", "CLAUDE_CODE_DISABLE_*"),
        *("CLAUDE_CODE_ENABLE_*", "CLAUDE_CODE_EXPERIMENTAL_*", "CLAUDE_CODE_SUBAGENT_MODEL"),
        *("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS"),
    ),
    can=("events", "turns", "tokens", "cost", "resume", "connectors", "background tasks", "hooks"),
    switches={
        "CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "1",  # refusals to start become results
        "CLAUDE_CODE_DISABLE_AGENT_VIEW": "1",  # no daemon that keeps sessions alive
        "DISABLE_AUTOUPDATER": "1",
    },
    reading=_reader,
    expecting=_expects,
    apis=("anthropic",),
)
