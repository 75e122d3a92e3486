"""Traps of OpenCode's stream that no single recording shows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.table import each_row
from tests.work.agents.streams import TOOLS, detail, egress, event, read_all
from truegreen.work.agents import ADAPTERS, Expectation

OPENCODE = "opencode"
START = event("step_start", sessionID="ses_1", part={})
SAID = event("text", part={"text": "all done"})


def finish(reason: str = "stop") -> bytes:
    return event("step_finish", part={"reason": reason, "tokens": {"total": 120}, "cost": 0.25})


def used(tool: str, **state: Any) -> bytes:
    return event("tool_use", part={"tool": tool, "state": {"status": "completed", **state}})


def test_the_last_step_must_have_stopped_by_itself():
    reader, reading = read_all(OPENCODE, [START, finish("tool-calls"), START, SAID, finish()])
    assert reading.claim
    assert (reading.claim.reason, reading.session) == ("all done", "ses_1")
    assert (reader.live.turns, reader.live.tokens, reader.live.cost_usd) == (2, 240, 0.5)
    assert detail(OPENCODE, [START, SAID, finish("tool-calls")]) == "unclaimed"
    assert detail(OPENCODE, [START, SAID]) == "unclaimed"
    assert detail(OPENCODE, [START, SAID, finish("something-new")]) == "unclaimed"
    assert detail(OPENCODE, [START, finish()]) == "unclaimed"
    assert detail(OPENCODE, []) == "zero_output"


def test_an_answer_that_was_cut_short_says_so_in_its_claim():
    reading = read_all(OPENCODE, [START, SAID, finish("length")])[1]
    assert reading.claim
    assert reading.claim.extra == {"truncated": True}


@each_row(
    ("error", "expected"),
    [
        ({"name": "APIError", "data": {"message": "x", "statusCode": 401}}, "auth_invalid"),
        ({"name": "APIError", "data": {"message": "x", "statusCode": 400}}, "provider_error"),
        ({"name": "APIError", "data": {"message": "x", "statusCode": 429}}, "rate_limited"),
        ({"name": "APIError", "data": {"message": "x", "statusCode": 500}}, "provider_error"),
        ({"name": "ContentFilterError", "data": {}}, "refused"),
        ({"name": "ProviderAuthError", "data": {}}, "auth_invalid"),
        ({"name": "ContextOverflowError"}, "context_cap"),
        ({"name": "UnknownError", "data": {"message": "Model not found: a/b"}}, "config_invalid"),
        ({"name": "SomethingNew"}, "provider_error"),
        ("not even an object", "provider_error"),
    ],
)
@pytest.mark.criterion("N10")
def test_an_error_says_its_kind(error, expected):
    assert detail(OPENCODE, [START, event("error", error=error)], code=1) == expected


def test_a_step_after_an_error_got_over_it():
    lines = [START, event("error", error={"name": "APIError"}), START, SAID, finish()]
    assert detail(OPENCODE, lines) == "completed"


def test_a_reset_time_is_read_off_the_headers():
    data = {"message": "slow down", "statusCode": 429, "responseHeaders": {"retry-after": "90"}}
    lines = [START, event("error", error={"name": "APIError", "data": data})]
    assert read_all(OPENCODE, lines, code=1)[1].not_before_s == 90


@each_row(
    ("tool", "said", "expected"),
    [
        ("bash", "The user rejected permission to use this specific tool call.", "denied"),
        ("bash", "whatever a fence says", "denied"),
        ("bash", "The bash tool was called with invalid arguments: command", ""),
        ("edit", "The user has specified a rule which prevents you from using this", "denied"),
        ("read", "File not found: /x", ""),
        ("tracker_list_issues", "MCP error -32000: Connection closed", "missing"),
        ("tracker_list_issues", "The user rejected permission to use this", "denied"),
    ],
)
def test_what_an_error_of_a_tool_means(tool, said, expected):
    lines = [START, used(tool, status="error", error=said), START, SAID, finish()]
    words = {"denied": "permission_denied", "missing": "connector_missing", "": "completed"}
    assert detail(OPENCODE, lines) == words[expected]


def test_a_tool_that_is_not_there():
    def invalid(tool: str) -> list[bytes]:
        said = f"Model tried to call unavailable tool '{tool}'. Available tools: edit."
        return [START, used("invalid", output=said), START, SAID, finish()]

    assert detail(OPENCODE, invalid("bash")) == "permission_denied"
    assert detail(OPENCODE, invalid("tracker_list_issues")) == "connector_missing"
    wrongly = [START, used("invalid", output="expected string"), START, SAID, finish()]
    assert detail(OPENCODE, wrongly) == "completed"


def test_a_wanted_connector_must_have_answered():
    wanted = Expectation(connectors=("tracker",))
    plain = [START, SAID, finish()]
    assert detail(OPENCODE, plain, expects=wanted) == "connector_missing"
    answered = [START, used("tracker_list_issues", output="2"), *plain]
    assert detail(OPENCODE, answered, expects=wanted) == "completed"


@each_row("tool", TOOLS)
def test_denied_egress_shows_in_a_tools_output(tool):
    ran = used("bash", output=egress(tool), metadata={"exit": 0})
    assert detail(OPENCODE, [START, ran, START, SAID, finish()]) == "egress_denied"


def test_a_client_that_never_started():
    assert detail(OPENCODE, [], code=1, stderr=b"Session not found: x") == "config_invalid"
    assert detail(OPENCODE, [START, SAID, finish()], code=1) == "agent_error"
    assert detail(OPENCODE, [START], code=None, signal=15) == "signaled"


@pytest.mark.criterion("N01")
def test_how_it_is_called():
    adapter = ADAPTERS[OPENCODE]
    argv = adapter.argv(["opencode", "run", "-m", "a/b", "fix"], goal="", feedback="red")
    assert argv[:6] == ["opencode", "run", "--format", "json", "-m", "a/b"]
    assert argv[6].startswith("fix\n\n")
    assert adapter.resume(["opencode", "run", "fix"], [], session="s", message="m") == [
        *("opencode", "run", "--format", "json", "--session", "s", "m")
    ]
