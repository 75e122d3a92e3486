"""Traps of Codex's stream that no single recording shows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.table import each_row
from tests.work.agents.streams import TOOLS, detail, egress, event, read_all
from truegreen.work.agents import ADAPTERS, Expectation, adapter_of
from truegreen.work.agents.prompts import with_feedback

CODEX = "codex"
AGAIN = with_feedback("fix", "red")
BEGIN = [event("thread.started", thread_id="th-1"), event("turn.started")]
SPENT = {"input_tokens": 100, "output_tokens": 20}
END = event("turn.completed", usage=SPENT)


def item(kind: str, *, over: bool = True, **fields: Any) -> bytes:
    return event(f"item.{'completed' if over else 'started'}", item={"type": kind, **fields})


HTTP_500 = "We\u2019re currently experiencing high demand, which may cause temporary errors."
"""What Codex prints for HTTP 500, and for no other status."""
SAID = item("agent_message", text="all done")


def test_warnings_and_retries_fail_nothing():
    warned = item("error", message="Model metadata for `x` not found.")
    retried = event("error", message="Reconnecting... 1/5 (unexpected status 500)")
    reader, reading = read_all(CODEX, [*BEGIN, warned, retried, SAID, END])
    assert reading.claim
    assert (reading.claim.reason, reading.session) == ("all done", "th-1")
    assert reader.live.tokens == 120


@each_row(
    ("message", "expected"),
    [
        ("unexpected status 401 Unauthorized: bad key, url: http://x", "auth_invalid"),
        ("unexpected status 403 Forbidden: no, url: http://x", "auth_invalid"),
        ("unexpected status 403 Forbidden: Host not in allowlist, url: x", "egress_denied"),
        ("unexpected status 400 Bad Request: nonsense", "provider_error"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limited"),
        (HTTP_500, "provider_error"),
        ("unexpected status 400 Bad Request: the model is in high demand", "rate_limited"),
        ("unexpected status 503 Service Unavailable: x", "rate_limited"),
        ("unexpected status 500 Internal Server Error", "provider_error"),
        ("You've hit your usage limit. Try again in 2 days 3 hours.", "rate_limited"),
        ("stream disconnected before completion: idle timeout", "provider_error"),
        ("Codex ran out of room in the model's context window.", "context_cap"),
        ("Incomplete response returned, reason: content_filter", "refused"),
        ("Incomplete response returned, reason: max_output_tokens", "provider_error"),
        ("This request violates our usage policies", "refused"),
        ("something never heard of", "provider_error"),
    ],
)
@pytest.mark.criterion("N10")
def test_a_failed_turn_says_why_only_in_words(message, expected):
    failed = event("turn.failed", error={"message": message})
    assert detail(CODEX, [*BEGIN, failed], code=1) == expected


def test_a_reset_time_is_read_off_the_words():
    message = "You've hit your usage limit. Try again in 2 days 3 hours 5 minutes."
    failed = event("turn.failed", error={"message": message})
    assert read_all(CODEX, [*BEGIN, failed], code=1)[1].not_before_s == (51 * 60 + 5) * 60


@each_row("tool", TOOLS)
def test_denied_egress_shows_in_a_commands_output(tool):
    ran = item("command_execution", command="x", aggregated_output=egress(tool), exit_code=0)
    assert detail(CODEX, [*BEGIN, ran, SAID, END]) == "egress_denied"


def test_a_connector_that_answers_at_last_is_there():
    lost = item("mcp_tool_call", server="tracker", tool="list", status="failed")
    found = item("mcp_tool_call", server="tracker", tool="list", status="completed")
    assert detail(CODEX, [*BEGIN, lost, SAID, END]) == "connector_missing"
    assert detail(CODEX, [*BEGIN, lost, found, SAID, END]) == "completed"
    wanted = Expectation(connectors=("tracker",))
    assert detail(CODEX, [*BEGIN, SAID, END], expects=wanted) == "connector_missing"
    assert detail(CODEX, [*BEGIN, found, SAID, END], expects=wanted) == "completed"


@each_row(
    ("error", "expected"),
    [
        ("unsupported call: mcp__mail__send", "connector_missing"),
        ("unsupported call: apply_patch", "permission_denied"),
        ("Command blocked by PreToolUse hook: no. Command: ls", "permission_denied"),
        ("exec_command failed: rejected by user approval settings", "permission_denied"),
        ("failed to parse function arguments: missing field", "completed"),
    ],
)
def test_what_it_leaves_out_of_its_stream_is_on_standard_error(error, expected):
    stderr = f"2026-11-15T20:08Z ERROR codex_core::tools::router: error={error}\n".encode()
    assert detail(CODEX, [*BEGIN, SAID, END], stderr=stderr) == expected


def test_a_declined_command_is_a_denial():
    declined = item("command_execution", command="rm", status="declined")
    assert detail(CODEX, [*BEGIN, declined, SAID, END]) == "permission_denied"


def test_a_turn_without_an_answer_claims_nothing():
    assert detail(CODEX, [*BEGIN, event("turn.completed", usage={})]) == "permission_denied"
    assert detail(CODEX, [*BEGIN, END]) == "unclaimed"


@each_row(
    ("lines", "code", "stderr", "expected"),
    [
        ([*BEGIN], 1, b"Reading additional input from stdin...\n", "signaled"),
        ([*BEGIN], 1, b"thread 'main' (1) panicked at x.rs:1\n", "agent_error"),
        ([*BEGIN], 1, b"Error: cannot write\n", "agent_error"),
        ([*BEGIN], 0, b"", "unclaimed"),
        ([*BEGIN, SAID, END], 1, b"", "agent_error"),
        ([], 2, b"error: unexpected argument '--nope' found\n", "config_invalid"),
        ([], 1, b"Error: no rollout found for thread id x\n", "config_invalid"),
        ([], 1, b"Error: Not logged in\n", "auth_invalid"),
        ([], 1, b"", "launch_failed"),
        ([], 0, b"", "zero_output"),
    ],
)
def test_ends_without_a_final_event(lines, code, stderr, expected):
    assert detail(CODEX, lines, code=code, stderr=stderr) == expected


def test_rounds_of_the_model_are_counted():
    ran = [item("command_execution", over=over, command="ls") for over in (False, True)]
    still = event("item.updated", item={"type": "command_execution", "command": "ls"})
    live = read_all(CODEX, [*BEGIN, SAID, *ran, still, *ran, SAID, END])[0].live
    assert (live.turns, live.tool_calls) == (3, 2)
    assert live.last_action == "command execution: ls"


@pytest.mark.criterion("N01")
@each_row(
    ("command", "expected"),
    [
        (["codex", "exec", "fix"], ["codex", "exec", "--json", AGAIN]),
        (["codex", "exec", "--json", "fix"], ["codex", "exec", "--json", AGAIN]),
        (
            ["codex", "-m", "o3", "exec", "-s", "read-only", "fix", "-C", "sub"],
            ["codex", "-m", "o3", "exec", "--json", "-s", "read-only", AGAIN, "-C", "sub"],
        ),
        (["codex", "exec", "-"], ["codex", "exec", "--json", "-"]),
        (["codex", "exec", "resume", "id"], ["codex", "exec", "resume", "--json", "id"]),
        (["codex", "login"], ["codex", "login"]),
    ],
)
def test_how_it_is_called(command, expected):
    assert ADAPTERS[CODEX].argv(command, goal="", feedback="red") == expected


def test_how_it_is_resumed():
    argv = ADAPTERS[CODEX].resume(["codex", "exec", "-s", "x", "fix"], [], session="s", message="m")
    assert argv == ["codex", "exec", "resume", "--json", "-s", "x", "s", "m"]
    assert adapter_of("command", ["codex", "exec", "x"]).name == CODEX
    assert adapter_of("command", ["codex"]).name == "command"
