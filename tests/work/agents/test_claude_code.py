"""Traps of Claude Code's stream that no single recording shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.table import each_row
from tests.work.agents.recordings import recording, rows
from tests.work.agents.streams import TOOLS, detail, egress, event, read_all
from truegreen.model import ExitReason
from truegreen.work.agents import ADAPTERS, Expectation, adapter_of

CLAUDE = "claude-code"
CLAUDE_ROWS = [row for row in rows() if row["client"].startswith("claude")]
INIT = event("system", subtype="init", session_id="s-1", mcp_servers=[], claude_code_version="2")


def says(text: str, message: str = "m1", **more: Any) -> bytes:
    content = [{"type": "text", "text": text}]
    return event("assistant", message={"id": message, "model": "opus", "content": content}, **more)


def calls(tool: str, call: str = "t1", **arguments: Any) -> bytes:
    content = [{"type": "tool_use", "id": call, "name": tool, "input": arguments}]
    return event("assistant", message={"id": f"m-{call}", "model": "opus", "content": content})


def returns(text: Any, call: str = "t1", *, wrong: bool = False, **more: Any) -> bytes:
    block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": wrong}
    return event("user", message={"role": "user", "content": [block]}, **more)


def result(text: str = "done", **more: Any) -> bytes:
    told = {"subtype": "success", "is_error": False, "num_turns": 1, "result": text}
    return event("result", **{**told, "terminal_reason": "completed", **more})


def failure(error: str, text: str = "API Error", **more: Any) -> bytes:
    content = [{"type": "text", "text": text}]
    message = {"id": "x", "model": "<synthetic>", "content": content}
    return event("assistant", message=message, error=error, **more)


def test_an_interruption_without_a_result_is_a_signal_not_a_denial():
    """Seen of the real client now and then: exit 0, the tool «rejected», and not a line more."""
    why = [{"id": "t1", "non_execution_kind": "user-rejected"}]
    words = "The user doesn't want to proceed with this tool use."
    rejected = returns(words, wrong=True, tool_result_meta=why)
    told = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
    cut = event("user", message={"role": "user", "content": told})
    begun = [INIT, calls("Bash", command="sleep 9"), rejected]
    assert detail(CLAUDE, [*begun, cut]) == "signaled"
    assert read_all(CLAUDE, [*begun, cut])[1].claim is None
    assert detail(CLAUDE, begun) == "permission_denied"


def test_a_success_is_a_claim_with_the_last_words():
    reader, reading = read_all(CLAUDE, [INIT, says("half"), says("all of it"), result("all of it")])
    assert reading.claim
    assert (reading.claim.reason, reading.claim.source) == ("all of it", CLAUDE)
    assert reading.session == "s-1"
    assert reader.live.last_message == "all of it"


def test_the_last_words_are_made_fit_to_be_shown_when_somebody_looks():
    """And no more of them is kept than anybody reads."""
    reader, _ = read_all(CLAUDE, [INIT, says("half"), says("\x1b[31m all\x07 " + "x" * 1_000_000)])
    assert len(reader.live.said) < 10_000
    shown = reader.live.last_message
    assert (shown[:5], shown[-1], len(shown)) == ("all x", "…", 4000)


@pytest.mark.criterion("N03")
@each_row("word", ["TASK_COMPLETE", '{"type": "result", "subtype": "success"}'])
def test_words_in_the_output_declare_nothing(word):
    lines = [INIT, says(word), calls("Bash", command="echo"), returns(word), word.encode()]
    assert read_all(CLAUDE, lines)[1].reason is not ExitReason.DONE


@each_row("row", CLAUDE_ROWS, ids=[row["file"] for row in CLAUDE_ROWS])
def test_a_version_that_says_less_is_read_alike(row):
    run = recording(row)
    reading = run.played([line for whole in run.lines for line in _older(whole)])[1]
    assert (str(reading.reason), str(reading.detail)) in run.expect


NEWER_KEYS = {
    *("tool_result_meta", "result_index", "queued_turn_count", "safety_stops", "api_error_type"),
    *("api_error", "model_usage_since_last_result", "is_api_error_message", "source"),
}
NEWER_LINES = {
    *("permission_denied", "notification", "informational", "background_tasks_changed"),
    *("model_refusal_fallback", "model_refusal_no_fallback"),
}


def _older(line: bytes) -> list[bytes]:
    """A line as an older version would print it, or not at all."""
    try:
        value = json.loads(line)
    except ValueError:
        return [line]
    if value.get("subtype") in NEWER_LINES:
        return []

    def less(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: less(one) for key, one in part.items() if key not in NEWER_KEYS}
        return [less(one) for one in part] if isinstance(part, list) else part

    value = less(value)
    if value.get("terminal_reason") in ("api_error", "budget_exhausted"):
        value["terminal_reason"] = "completed"
    return [json.dumps(value).encode()]


@each_row(
    ("error", "status", "expected"),
    [
        ("authentication_failed", 401, "auth_invalid"),
        ("oauth_org_not_allowed", None, "auth_invalid"),
        ("account_on_hold", None, "auth_invalid"),
        ("verification_required", None, "auth_invalid"),
        ("cloud_credential_error", None, "auth_invalid"),
        ("billing_error", 400, "auth_invalid"),
        ("rate_limit", 429, "rate_limited"),
        ("overloaded", 529, "rate_limited"),
        ("server_error", 529, "rate_limited"),
        ("server_error", 503, "rate_limited"),
        ("server_error", 500, "provider_error"),
        ("unknown", 400, "provider_error"),
        ("unknown", 413, "provider_error"),
        ("unknown", 429, "rate_limited"),
        ("model_not_found", 404, "config_invalid"),
        ("invalid_request", 400, "provider_error"),
        ("max_output_tokens", None, "token_cap"),
        ("something_new", None, "provider_error"),
    ],
)
@each_row("reason", ["api_error", "completed", None])
def test_an_api_failure_is_a_success_with_is_error(error, status, expected, reason):
    told = {"is_error": True, "api_error_status": status, "terminal_reason": reason}
    lines = [INIT, failure(error, request_id="req"), result("API Error", **told)]
    assert detail(CLAUDE, lines, code=1) == expected


def test_a_403_that_the_provider_did_not_send_is_denied_egress():
    told = {"is_error": True, "api_error_status": 403}
    ended = result("Failed to authenticate. API Error: 403 no", **told)
    from_the_way = [INIT, failure("authentication_failed"), ended]
    from_the_provider = [INIT, failure("authentication_failed", request_id="req"), ended]
    assert detail(CLAUDE, from_the_way, code=1) == "egress_denied"
    assert detail(CLAUDE, from_the_provider, code=1) == "auth_invalid"


@each_row("tool", TOOLS)
def test_denied_egress_shows_in_a_tools_output_even_when_it_succeeds(tool):
    lines = [INIT, calls("Bash", command="x"), returns(egress(tool)), says("ok"), result()]
    assert detail(CLAUDE, lines) == "egress_denied"


def test_a_file_that_tells_of_denied_egress_denies_nothing():
    lines = [INIT, calls("Read", file_path="a.md"), returns(egress("curl")), says("ok"), result()]
    assert detail(CLAUDE, lines) == "completed"


def test_a_bare_403_counts_only_when_the_command_failed():
    said = "Exit code 22\ncurl: (22) The requested URL returned error: 403"
    used = [INIT, calls("Bash", command="curl -f x")]
    assert detail(CLAUDE, [*used, returns(said, wrong=True), says("x"), result()]) == (
        "egress_denied"
    )
    assert detail(CLAUDE, [*used, returns(said), says("x"), result()]) == "completed"


def test_a_denial_in_an_earlier_result_still_counts():
    denial = {"tool_name": "Bash", "tool_use_id": "t1"}
    lines = [INIT, says("a"), result(permission_denials=[denial]), says("b", "m2"), result("b")]
    assert detail(CLAUDE, lines) == "permission_denied"


def test_the_last_result_counts():
    broken = result("", subtype="error_during_execution", is_error=True)
    assert detail(CLAUDE, [INIT, broken, says("again"), result("again")]) == "completed"
    assert detail(CLAUDE, [INIT, says("fine"), result("fine"), broken], code=1) == "agent_error"


def test_a_denied_call_of_a_connector_is_no_missing_connector():
    used = [INIT, calls("mcp__tracker__list"), returns("not granted yet", wrong=True), says("x")]
    denial = {"tool_name": "mcp__tracker__list", "tool_use_id": "t1"}
    assert detail(CLAUDE, [*used, result(permission_denials=[denial])]) == "permission_denied"
    assert detail(CLAUDE, [*used, result()]) == "connector_missing"


def test_a_connector_that_answers_at_last_is_there():
    lines = [INIT, calls("mcp__tracker__list"), returns("Connection closed", wrong=True)]
    lines += [calls("mcp__tracker__list", "t2"), returns("3 issues", "t2"), says("x"), result()]
    assert detail(CLAUDE, lines) == "completed"


@each_row(
    ("server", "wanted", "expected"),
    [
        ({"name": "tracker", "status": "failed"}, (), "connector_missing"),
        ({"name": "tracker", "status": "failed", "source": "project"}, (), "connector_missing"),
        ({"name": "tracker", "status": "failed", "source": "user"}, (), "completed"),
        ({"name": "mail", "status": "needs-auth", "source": "claudeai"}, (), "completed"),
        ({"name": "mail", "status": "needs-auth"}, ("mail",), "connector_missing"),
        ({"name": "mail", "status": "pending"}, ("mail",), "connector_missing"),
        ({"name": "other", "status": "connected"}, ("mail",), "connector_missing"),
        ({"name": "mail", "status": "connected"}, ("mail",), "completed"),
    ],
)
def test_a_connector_that_the_work_needs_must_be_connected(server, wanted, expected):
    lines = [event("system", subtype="init", mcp_servers=[server]), says("x"), result()]
    assert detail(CLAUDE, lines, expects=Expectation(connectors=wanted)) == expected


@each_row(
    ("told", "expected"),
    [
        ({"terminal_reason": "tool_deferred", "result": ""}, "permission_denied"),
        ({"terminal_reason": "tool_deferred_unavailable"}, "permission_denied"),
        ({"terminal_reason": None, "stop_reason": "tool_deferred"}, "permission_denied"),
        ({"terminal_reason": "hook_stopped", "result": ""}, "permission_denied"),
        ({"terminal_reason": "stop_hook_prevented"}, "permission_denied"),
        ({"num_turns": 0, "terminal_reason": None}, "permission_denied"),
        ({"result": ""}, "unclaimed"),
        ({"result": "  \n"}, "unclaimed"),
        ({"queued_turn_count": 1}, "unclaimed"),
        ({"subtype": "error_max_turns", "is_error": True}, "turn_cap"),
        ({"subtype": "error_max_budget_usd", "is_error": True}, "cost_cap"),
        ({"terminal_reason": "blocking_limit", "is_error": True}, "context_cap"),
        ({"terminal_reason": "prompt_too_long", "is_error": True}, "context_cap"),
        ({"terminal_reason": "aborted_tools", "is_error": True}, "signaled"),
        ({"stop_reason": "refusal", "is_error": True}, "refused"),
        (
            {"subtype": "error_max_structured_output_retries", "is_error": True},
            "agent_error",
        ),
        ({"subtype": "something_new"}, "unclassified"),
        ({"is_error": None}, "unclassified"),
    ],
)
def test_how_the_last_result_ends(told, expected):
    assert detail(CLAUDE, [INIT, says("x"), result(**told)]) == expected


def test_a_refusal_that_was_got_over_is_none():
    noted = event("system", subtype="model_refusal_fallback")
    lines = [INIT, noted, says("fine after all"), result("fine after all", safety_stops=1)]
    assert detail(CLAUDE, lines) == "completed"


def test_a_failure_after_a_refusal_that_was_got_over_is_a_failure():
    noted = event("system", subtype="model_refusal_fallback")
    ended = result("API Error: 500", is_error=True, api_error_status=500)
    lines = [INIT, noted, says("going on"), failure("server_error"), ended]
    assert detail(CLAUDE, lines, code=1) == "provider_error"
    assert detail(CLAUDE, [INIT, noted, failure("unknown"), ended], code=1) == "refused"


@each_row(
    ("said", "expected"),
    [
        ("API Error: Server error mid-response. It may be incomplete.", "rate_limited"),
        ("API Error: Connection closed mid-response. It may be incomplete.", "provider_error"),
        ("API Error: Connection refused (ECONNREFUSED)", "provider_error"),
        ("API Error: Request timed out.", "provider_error"),
    ],
)
def test_a_provider_that_breaks_off_is_overloaded_and_a_line_that_does_is_not(said, expected):
    lines = [INIT, says("half"), failure("server_error"), result(said, is_error=True)]
    assert detail(CLAUDE, lines, code=1) == expected


def test_a_refusal_in_prose_is_a_claim_that_the_gates_must_judge():
    lines = [INIT, says("I cannot do this."), result("I cannot do this.")]
    assert detail(CLAUDE, lines) == "completed"


def test_a_gate_that_was_refused_last_was_overridden():
    text = {"type": "text", "text": "Stop hook feedback:\ngate failed"}
    refused = event("user", message={"role": "user", "content": [text]}, isSynthetic=True)
    assert detail(CLAUDE, [INIT, says("done"), refused, result("")]) == "reentry_cap"
    answered = [INIT, says("done"), refused, says("really", "m2"), result("really")]
    assert detail(CLAUDE, answered) == "completed"
    quoted = event("user", message={"role": "user", "content": [text]})
    assert detail(CLAUDE, [INIT, says("done"), quoted, result()]) == "completed"
    inner = event(
        "user",
        message={"role": "user", "content": [text]},
        isSynthetic=True,
        parent_tool_use_id="t1",
    )
    assert detail(CLAUDE, [INIT, says("done"), inner, result()]) == "completed"


@pytest.mark.criterion("N14")
def test_open_background_work_is_not_done():
    tasks = event("system", subtype="background_tasks_changed", tasks=[{"task_id": "b"}])
    none = event("system", subtype="background_tasks_changed", tasks=[])
    assert detail(CLAUDE, [INIT, says("x"), tasks, result()]) == "unclaimed"
    assert detail(CLAUDE, [INIT, says("x"), tasks, result(), none]) == "completed"
    started = event("system", subtype="task_started", task_id="b")
    ended = event("system", subtype="task_notification", task_id="b", status="completed")
    reader, reading = read_all(CLAUDE, [INIT, started, says("x"), result()])
    assert (reader.live.background, str(reading.detail)) == (1, "unclaimed")
    assert detail(CLAUDE, [INIT, started, ended, says("x"), result()]) == "completed"
    assert detail(CLAUDE, [INIT, says("x"), result()], survivors=1) == "unclaimed"


@each_row(("code", "signal"), [(129, None), (143, None), (137, None), (None, 9)])
def test_a_signal_comes_before_a_result(code, signal):
    lines = [INIT, says("x"), result()]
    assert detail(CLAUDE, lines, code=code, signal=signal) == "signaled"


def test_what_the_host_stopped_is_not_done_even_after_a_result():
    lines = [INIT, says("x"), result()]
    assert detail(CLAUDE, lines, code=None, signal=9, stopped="time") == "unclaimed"
    assert detail(CLAUDE, [INIT], code=143, stopped="stop") == "unclaimed"


@each_row(
    ("code", "stderr", "expected"),
    [
        (1, b"error: unknown option '--nope'\n", "config_invalid"),
        (1, b"Error: Session ID 1 is already in use.\n", "config_invalid"),
        (1, b"Invalid API key\n", "auth_invalid"),
        (1, b"", "launch_failed"),
        (0, b"", "zero_output"),
    ],
)
def test_a_client_that_never_started(code, stderr, expected):
    assert detail(CLAUDE, [], code=code, stderr=stderr) == expected


def test_other_formats_are_read_as_far_as_they_go():
    text, as_list = Expectation(text=True), b"[" + b",".join([INIT, says("x"), result()]) + b"]"
    assert detail(CLAUDE, [b"All done.", b"Really."], expects=text) == "completed"
    assert detail(CLAUDE, [b'{"answer": 42}'], expects=text) == "completed"
    assert detail(CLAUDE, [b"All done."]) == "unclaimed"
    assert detail(CLAUDE, [b"Error: Reached max turns (3)"], code=1, expects=text) == "turn_cap"
    assert detail(CLAUDE, [result()]) == "completed"
    assert detail(CLAUDE, [as_list]) == "completed"


def test_a_missing_structured_answer_is_no_answer():
    expects = ADAPTERS[CLAUDE].expects(["claude", "-p", "x", "--json-schema", "{}"])
    assert detail(CLAUDE, [INIT, says("x"), result()], expects=expects) == "unclaimed"
    given = result(structured_output={"ok": True})
    assert detail(CLAUDE, [INIT, says("x"), given], expects=expects) == "completed"


def test_reset_times_are_read_off_the_stream():
    told = {"is_error": True, "api_error_status": 429}
    retry = event("system", subtype="api_retry", retry_delay_ms=90000.5, error_status=429)
    own = event("system", subtype="api_retry", retry_delay_ms=39000, error_status=429)
    limit = event("rate_limit_event", rate_limit_info={"resetsAt": 1000600})
    ended = result("limit reached", **told)
    waits = [read_all(CLAUDE, [INIT, *more, ended], code=1, at=1000000.0)[1].not_before_s
             for more in ([retry], [own], [limit])]  # fmt: skip
    assert waits == [90.0005, 0, 600]


def test_live_counts_do_not_count_twice():
    usage = {"input_tokens": 100, "output_tokens": 1}
    block = {"id": "m1", "model": "opus", "usage": usage, "content": [{"type": "text"}]}
    inner = event("assistant", message={**block, "id": "s1"}, parent_tool_use_id="t1")
    lines = [INIT, event("assistant", message=block), event("assistant", message=block), inner]
    lines += [calls("Bash", command="pytest -q\n\x1b[31m--color"), result(total_cost_usd=0.5)]
    live = read_all(CLAUDE, [*lines, result(total_cost_usd=0.75)])[0].live
    assert (live.turns, live.tokens, live.cost_usd, live.tool_calls) == (2, 202, 0.75, 1)
    assert live.last_action == "Bash: pytest -q --color"


def test_a_resumed_session_costs_only_what_this_run_used():
    use = {"opus": {"inputTokens": 10, "outputTokens": 5, "costUSD": 0.25}}
    told: dict[str, Any] = {"total_cost_usd": 9.5, "model_usage_since_last_result": use}
    live = read_all(CLAUDE, [INIT, says("x"), result(**told), result(**told)])[0].live
    assert (live.cost_usd, live.tokens) == (0.5, 30)


def session(name: str, *lines: bytes) -> list[bytes]:
    return [json.dumps({**json.loads(line), "session_id": name}).encode() for line in lines]


def test_sessions_one_after_another_add_up():
    """`claude -p x; claude -p y`: totals are cumulative within one session only."""
    use = {"opus": {"inputTokens": 10, "outputTokens": 5}}
    spent = result(total_cost_usd=0.5, modelUsage=use, num_turns=2)
    more = result(total_cost_usd=0.75, modelUsage=use, num_turns=1)
    printed = [line for name in "abc" for line in session(name, spent)]
    live = read_all(CLAUDE, printed)[0].live
    assert (live.cost_usd, live.tokens, live.turns) == (1.5, 45, 6)
    streamed = [line for name in "ab" for line in session(name, INIT, says("x", name), spent, more)]
    live = read_all(CLAUDE, [*streamed, *session("c", spent)])[0].live
    assert (live.cost_usd, live.tokens, live.turns) == (2.0, 45, 4)


def test_a_session_that_was_cut_short_adds_up_with_the_next_one():
    usage = {"input_tokens": 100, "output_tokens": 1}
    spoke = event("assistant", message={"id": "m1", "model": "opus", "usage": usage, "content": []})
    use = {"opus": {"inputTokens": 10, "outputTokens": 5}}
    lines = [*session("a", INIT, spoke), *session("b", result(modelUsage=use))]
    assert read_all(CLAUDE, lines)[0].live.tokens == 116


@each_row(
    ("lines", "survivors", "said"),
    [
        ([result(queued_turn_count=1)], 0, "1 turn still queued"),
        ([result(queued_turn_count=2)], 0, "2 turns still queued"),
        ([result()], 1, "1 process may still act"),
    ],
)
def test_what_is_unfinished_is_counted_in_words(lines: list[bytes], survivors: int, said: str):
    reading = read_all(CLAUDE, [INIT, says("x"), *lines], survivors=survivors)[1]
    assert said in reading.message


def test_half_a_character_loses_no_line():
    cut_short = result("ok").replace(b'"ok"', rb'"ok \ud83d"')
    not_utf8 = returns("x").replace(b'"x"', b'"\xff\xfe"')
    reading = read_all(CLAUDE, [INIT, not_utf8, says("x"), cut_short])[1]
    assert reading.claim
    assert reading.claim.reason == "ok"


@pytest.mark.criterion("N01")
def test_how_it_is_called():
    adapter = ADAPTERS[CLAUDE]
    argv = adapter.argv(["claude", "-p", "fix it"], goal="ignored")
    assert argv == ["claude", "--verbose", "--output-format", "stream-json", "-p", "fix it"]
    again = adapter.argv(["/opt/claude", "-p", "{goal}", "--", "x"], goal="g", feedback="red")
    assert again[:5] == ["/opt/claude", "--verbose", "--output-format", "stream-json", "-p"]
    assert again[5].startswith("g\n\n")
    assert again[5].rstrip().endswith("red")
    own = ["claude", "-p", "x", "--output-format", "json"]
    assert adapter.argv(own, goal="") == own
    assert adapter.argv(["my-wrapper", "x"], goal="") == ["my-wrapper", "x"]


def test_how_it_is_resumed():
    adapter = ADAPTERS[CLAUDE]
    command = ["claude", "-p", "{goal}", "--max-turns", "3"]
    assert adapter.resume(command, [], session="s-1", message="go on") == [
        *("claude", "--verbose", "--output-format", "stream-json", "--resume", "s-1"),
        *("-p", "go on", "--max-turns", "3"),
    ]
    own = ["claude", "-p", "{message}", "--resume", "{session}", "--output-format", "json"]
    assert adapter.resume(command, own, session="s", message="m") == [
        *("claude", "-p", "m", "--resume", "s", "--output-format", "json")
    ]


def test_connectors_are_read_off_the_arguments():
    config = '{"mcpServers": {"tracker": {"command": "x"}, "mail": {}}}'
    argv = ["claude", "-p", "x", "--mcp-config", config, "other.json", "--strict-mcp-config"]
    assert ADAPTERS[CLAUDE].expects(argv).connectors == ("tracker", "mail")


def test_only_a_headless_call_is_recognised():
    assert adapter_of("command", ["claude", "--print", "x"]).name == CLAUDE
    assert adapter_of("command", ["/usr/bin/claude", "-p", "x"]).name == CLAUDE
    assert adapter_of("command", ["claude"]).name == "command"
    assert adapter_of("command", ["not-claude", "-p", "x"]).name == "command"
