"""Traps of Gemini CLI's stream that no single recording shows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.table import each_row
from tests.work.agents.streams import TOOLS, detail, egress, event, read_all
from truegreen.work.agents import ADAPTERS, Expectation, adapter_of

GEMINI = "gemini"
BEGIN = [
    event("init", session_id="g-1", model="gemini-2.5-pro"),
    event("message", role="user", content="do it"),
]
SAID = event("message", role="assistant", content="all ", delta=True)
MORE = event("message", role="assistant", content="done", delta=True)
END = event("result", status="success", stats={"total_tokens": 120})


def used(tool: str, **arguments: Any) -> bytes:
    return event("tool_use", tool_name=tool, tool_id="t", parameters=arguments)


def returned(output: str, kind: str = "") -> bytes:
    if not kind:
        return event("tool_result", tool_id="t", status="success", output=output)
    error = {"type": kind, "message": output}
    return event("tool_result", tool_id="t", status="error", output=output, error=error)


def failed(message: str, kind: str = "unknown") -> bytes:
    return event("result", status="error", error={"type": kind, "message": message})


def test_pieces_of_an_answer_are_one_claim():
    reader, reading = read_all(GEMINI, [*BEGIN, SAID, MORE, END])
    assert reading.claim
    assert reading.claim.reason == "all done"
    assert (reader.live.turns, reader.live.tokens, reading.session) == (1, 120, "g-1")


@each_row(
    ("code", "message", "expected"),
    [
        (144, '[API Error: {"error":{"code":400,"status":"INVALID_ARGUMENT"}}]', "provider_error"),
        (145, '[API Error: {"error":{"code":401,"status":"UNAUTHENTICATED"}}]', "auth_invalid"),
        (147, '[API Error: {"error":{"code":403,"status":"PERMISSION_DENIED"}}]', "auth_invalid"),
        (147, "[API Error: no way]", "egress_denied"),
        (173, '[API Error: {"error":{"code":429}}]', "rate_limited"),
        (173, "[API Error: something]", "rate_limited"),
        (1, "[API Error: RESOURCE_EXHAUSTED]", "rate_limited"),
        (244, '[API Error: {"error":{"code":500,"status":"INTERNAL"}}]', "provider_error"),
        (247, '[API Error: {"error":{"code":503,"status":"UNAVAILABLE"}}]', "rate_limited"),
        (1, "[API Error: exception TypeError: fetch failed]", "provider_error"),
        (0, "Response was blocked due to safety reasons", "refused"),
        (0, "The prompt was blocked", "refused"),
        (1, "something never heard of", "agent_error"),
    ],
)
@pytest.mark.criterion("N10")
def test_exit_codes_are_statuses_not_signals(code, message, expected):
    assert detail(GEMINI, [*BEGIN, failed(message)], code=code) == expected


@each_row(("code", "expected"), [(53, "turn_cap"), (41, "auth_invalid"), (52, "config_invalid")])
def test_its_own_exit_codes(code, expected):
    assert detail(GEMINI, BEGIN, code=code) == expected
    assert detail(GEMINI, [], code=code, stderr=b"no") == expected


@each_row(
    ("tool", "kind", "expected"),
    [
        ("run_shell_command", "policy_violation", "permission_denied"),
        ("run_shell_command", "tool_not_registered", "permission_denied"),
        ("run_shell_command", "stop_execution", "permission_denied"),
        ("run_shell_command", "shell_execute_error", "completed"),
        ("read_file", "file_not_found", "completed"),
        ("mcp_tracker_list", "tool_not_registered", "connector_missing"),
        ("mcp_tracker_list", "mcp_tool_error", "connector_missing"),
        ("mcp_tracker_list", "policy_violation", "permission_denied"),
        ("mcp_tracker_list", "invalid_tool_params", "completed"),
    ],
)
def test_what_an_error_of_a_tool_means(tool, kind, expected):
    assert detail(GEMINI, [*BEGIN, used(tool), returned("no", kind), SAID, END]) == expected


def test_a_command_that_the_tool_itself_refused_looks_like_a_success():
    refused = returned("Blocked: command substitution is not allowed")
    lines = [*BEGIN, used("run_shell_command"), refused, SAID, END]
    assert detail(GEMINI, lines) == "permission_denied"


@each_row("tool", TOOLS)
def test_denied_egress_shows_in_a_tools_output(tool):
    lines = [*BEGIN, used("run_shell_command", command="x"), returned(egress(tool)), SAID, END]
    assert detail(GEMINI, lines) == "egress_denied"


def test_an_exit_in_the_middle_is_no_success():
    assert detail(GEMINI, [*BEGIN, SAID]) == "signaled"
    assert detail(GEMINI, [*BEGIN, SAID], stopped="time") == "unclaimed"
    assert detail(GEMINI, [*BEGIN, SAID, END], code=None, signal=9) == "signaled"
    assert detail(GEMINI, []) == "zero_output"
    assert detail(GEMINI, [*BEGIN, END]) == "unclaimed"


def test_a_prompt_that_never_reached_the_model_was_held_back():
    nothing = event("result", status="success", stats={"total_tokens": 0})
    assert detail(GEMINI, [*BEGIN, nothing]) == "permission_denied"


def test_a_gate_that_was_refused_last_was_overridden():
    gate = event("error", severity="warning", message="Agent execution blocked: tests fail")
    assert detail(GEMINI, [*BEGIN, SAID, gate, END]) == "reentry_cap"
    assert detail(GEMINI, [*BEGIN, SAID, gate, SAID, END]) == "completed"
    loop = event("error", severity="warning", message="Loop detected, stopping execution")
    assert detail(GEMINI, [*BEGIN, SAID, loop, END]) == "turn_cap"


def test_one_json_object_instead_of_events():
    expects = ADAPTERS[GEMINI].expects(["gemini", "-p", "x", "--output-format", "json"])
    pretty = [b"{", b'  "session_id": "x",', b'  "response": "all done"', b"}"]
    reading = read_all(GEMINI, pretty, expects=expects)[1]
    assert str(reading.detail) == "completed"
    stderr = b'warning\n{\n  "error": {"type": "Error", "message": "API key not valid"}\n}\n'
    assert detail(GEMINI, [], code=145, stderr=stderr) == "auth_invalid"
    assert detail(GEMINI, pretty, expects=Expectation()) == "unclaimed"


@pytest.mark.criterion("N01")
def test_how_it_is_called():
    adapter = ADAPTERS[GEMINI]
    argv = adapter.argv(["gemini", "-m", "pro", "-p", "fix"], goal="", feedback="red")
    assert argv[:3] == ["gemini", "--output-format", "stream-json"]
    assert argv[-1].startswith("fix\n\n")
    assert adapter.argv(["gemini", "-o", "text", "fix"], goal="") == ["gemini", "-o", "text", "fix"]
    assert adapter.env() == {"GEMINI_CLI_NO_RELAUNCH": "true"}
    assert adapter.resume(["gemini", "fix"], [], session="s", message="m") == [
        *("gemini", "--output-format", "stream-json", "--resume", "s", "m")
    ]
    assert adapter_of("command", ["gemini"]).name == "command"


def test_sessions_one_after_another_add_up():
    started = [event("init", session_id=name, model="m") for name in "ab"]
    assert read_all(GEMINI, [started[0], END, started[1], END])[0].live.tokens == 240
    assert read_all(GEMINI, [started[0], END, started[0], END])[0].live.tokens == 120
