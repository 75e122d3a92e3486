"""Traps of Qwen Code's stream that no single recording shows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.table import each_row
from tests.work.agents.streams import TOOLS, detail, egress, event, read_all
from truegreen.work.agents import ADAPTERS, Expectation

QWEN = "qwen"
INIT = event("system", subtype="init", session_id="q-1", mcp_servers=[], qwen_code_version="0.24")


def says(text: str, spent: int = 100, message: str = "m1") -> bytes:
    body = {"id": message, "content": [{"type": "text", "text": text}]}
    return event("assistant", message={**body, "usage": {"input_tokens": spent}})


def calls(tool: str) -> bytes:
    block = {"type": "tool_use", "id": "t1", "name": tool, "input": {"command": "x"}}
    return event("assistant", message={"id": "m2", "content": [block]})


def returns(text: str, *, wrong: bool = False) -> bytes:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": wrong}
    return event("user", message={"role": "user", "content": [block]})


def result(text: str = "done", spent: int = 100, **more: Any) -> bytes:
    told = {"subtype": "success", "is_error": False, "num_turns": 1, "result": text}
    return event("result", **{**told, "usage": {"input_tokens": spent}, **more})


def broken(message: str) -> bytes:
    told = {"subtype": "error_during_execution", "is_error": True, "num_turns": 1}
    return event("result", **told, error={"message": message})


@each_row(
    ("code", "stderr", "expected"),
    [
        (53, b"Reached max session turns for this session.", "turn_cap"),
        (55, b"Reached max tool calls.", "turn_cap"),
        (55, b"Reached max wall time of 60s.", "time_cap"),
        (1, b"", "agent_error"),
        (0, b"", "unclaimed"),
    ],
)
def test_caps_end_it_without_a_result(code, stderr, expected):
    assert detail(QWEN, [INIT, says("x")], code=code, stderr=stderr) == expected


@each_row(
    ("message", "expected"),
    [
        ("[API Error: 401 bad key]", "auth_invalid"),
        ("[API Error: 429 slow down]", "rate_limited"),
        ("[API Error: 500 oops]", "provider_error"),
        ("[API Error: Connection error.]", "provider_error"),
        ("[API Error: content_filter]", "refused"),
        ("something never heard of", "agent_error"),
    ],
)
@pytest.mark.criterion("N10")
def test_an_api_error_is_in_the_results_words(message, expected):
    assert detail(QWEN, [INIT, broken(message)], code=1) == expected


def test_rounds_that_a_gate_sent_back_show_only_in_the_tokens():
    assert detail(QWEN, [INIT, says("done" * 8), result("done" * 8, spent=800)]) == "reentry_cap"
    assert detail(QWEN, [INIT, says("done"), result("done", spent=200)]) == "completed"
    helped = [INIT, calls("agent"), returns("ok"), says("done"), result("done", spent=5000)]
    assert detail(QWEN, helped) == "completed"


def test_the_child_of_a_dead_wrapper_is_not_believed():
    lines = [INIT, says("late"), result("late")]
    assert detail(QWEN, lines, code=None, signal=15) == "signaled"
    assert detail(QWEN, lines) == "completed"


def test_tools_that_are_not_there():
    gone = 'Tool "run_shell_command" not found in registry.'
    lost = 'Tool "mcp__tracker__list" not found in registry.'
    lines = [INIT, calls("run_shell_command"), returns(gone, wrong=True), says("x"), result()]
    assert detail(QWEN, lines) == "permission_denied"
    lines = [INIT, calls("mcp__tracker__list"), returns(lost, wrong=True), says("x"), result()]
    assert detail(QWEN, lines) == "connector_missing"
    wanted = Expectation(connectors=("tracker",))
    assert detail(QWEN, [INIT, says("x"), result()], expects=wanted) == "connector_missing"


def test_a_prompt_that_was_held_back():
    assert detail(QWEN, [INIT, result("", spent=0)]) == "permission_denied"
    assert detail(QWEN, [INIT, broken("Prompt blocked by UserPromptSubmit hook: no")], code=1) == (
        "permission_denied"
    )


@each_row("tool", TOOLS)
def test_denied_egress_shows_in_a_tools_output(tool):
    lines = [INIT, calls("run_shell_command"), returns(egress(tool)), says("x"), result()]
    assert detail(QWEN, lines) == "egress_denied"


def test_text_and_calls_are_one_turn():
    lines = [INIT, says("I will"), calls("run_shell_command"), returns("ok"), says("x", 1, "m3")]
    live = read_all(QWEN, [*lines, result()])[0].live
    assert (live.turns, live.tool_calls, live.session, live.version) == (2, 1, "q-1", "0.24")


@pytest.mark.criterion("N01")
def test_how_it_is_called():
    adapter = ADAPTERS[QWEN]
    argv = adapter.argv(["qwen", "-p", "fix", "--yolo"], goal="", feedback="red")
    assert argv[:4] == ["qwen", "--output-format", "stream-json", "-p"]
    assert argv[4].startswith("fix\n\n")
    assert adapter.expects(["qwen", "-p", "x"]).text
    assert not adapter.expects(argv).text


def test_sessions_one_after_another_add_up():
    lines = []
    for name in "ab":
        started = event("system", subtype="init", session_id=name, mcp_servers=[])
        spent = [result(spent=150, total_cost_usd=0.5), result(spent=250, total_cost_usd=0.75)]
        lines += [started, says("x", 100, name), *spent]
    live = read_all(QWEN, lines)[0].live
    assert (live.tokens, live.cost_usd) == (500, 1.5)
