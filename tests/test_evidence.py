"""Evidence of a review: which entries count, and what a recording of the reviewer confirms."""

from __future__ import annotations

import json
from typing import Any

from tests.table import each_row
from truegreen.evidence import evidence_in, is_recorded, printed_before_verdict, tool_calls

RAN = {"command": "cat out.txt", "saw": "hello"}
VERDICT = json.dumps({"verdict": "pass", "evidence": [RAN]})
CALLS: dict[str, dict[str, Any]] = {
    "claude": {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "input": {"command": "cd x; cat out.txt"}}]},
    },
    "codex": {
        "type": "item.completed",
        "item": {"type": "command_execution", "command": "/bin/bash -lc 'cat \"out.txt\"'"},
    },
    "gemini": {
        "type": "tool_use",
        "tool_name": "run_shell_command",
        "parameters": {"command": "cat  out.txt"},
    },
    "opencode": {
        "type": "tool_use",
        "part": {"type": "tool", "tool": "bash", "state": {"input": {"command": "cat out.txt"}}},
    },
}


@each_row(
    "entry",
    [
        RAN,
        {"artifact": "report.html", "saw": "3 of 3"},
        {"where": "a.py:3", "saw": "the guard"},
        {"command": "pytest -q", "exit_code": 0},
        {"command": "wc -l out.txt", "saw": "12"},
        {"command": "a b c", "output": "ok"},
        {"command": "ls", "artifact": "out.txt", "saw": "it is there"},
    ],
)
def test_an_entry_counts_that_names_its_subject_and_what_it_showed(entry: dict[str, Any]) -> None:
    assert evidence_in([entry]) == [entry]


@each_row(
    "given",
    [
        None,
        "x",
        RAN,
        ["x"],
        [{"text": "I tried it"}],
        [{"command": "", "saw": ""}],
        [{"command": " ", "saw": "fine"}],
        [{"command": "pytest -q"}],
        [{"command": "pytest -q", "saw": "…"}],
        [{"command": "pytest -q", "exit_code": True}],
        [{"saw": "fine"}],
        [{"command": ["pytest"], "saw": {"a": 1}}],
        [{"command": "a", "saw": "0"}],
        [{"command": "l  s", "saw": "out.txt"}],
        [{"command": "wc -l out.txt", "saw": " 1 "}],
        [{"command": "wc -l out.txt", "saw": 12}],
        [{"command": 1000, "saw": "all is well"}],
        [{"command": 0, "saw": 1}],
        [{"command": "pytest -q", "exit_code": "0"}],
    ],
)
def test_what_shows_nothing_does_not_count(given: object) -> None:
    assert evidence_in(given) == []


@each_row("event", CALLS.values(), ids=CALLS)
def test_a_tool_call_of_each_client_confirms_its_command(event: dict[str, Any]) -> None:
    calls = tool_calls([b"no event", json.dumps(event).encode()])
    assert calls is not None
    assert is_recorded(RAN, calls)
    assert not is_recorded({"command": "pytest -q", "saw": "1 passed"}, calls)


@each_row(
    "event",
    [
        {"type": "result", "result": VERDICT},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "cat out.txt"}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": VERDICT}]}},
        {"message": {"content": [{"type": "tool_use", "input": {"content": VERDICT}}]}},
        {"item": {"command": f"bash -lc 'echo {json.dumps(VERDICT)} > verdict.json'"}},
    ],
)
def test_the_verdict_and_words_confirm_nothing(event: dict[str, Any]) -> None:
    calls = tool_calls([json.dumps(event).encode()])
    assert calls is not None
    assert not is_recorded(RAN, calls)


def test_what_ran_before_the_verdict_in_the_same_call_is_confirmed() -> None:
    call = {"item": {"command": f"cat out.txt && echo '{VERDICT}' > verdict.json"}}
    assert is_recorded(RAN, tool_calls([json.dumps(call).encode()]) or [])


@each_row(
    ("recorded", "confirmed"),
    [
        ("+ cat out.txt", True),
        ("$(cat out.txt)", True),
        ("cat out.txt; true", True),
        ("_cat out.txt_", True),
        ("concat out.txt", False),
        ("cat out.txt2", False),
        ("cat out.txté", False),
        ("cat out", False),
        ("concat out.txt && cat out.txt", True),
        ("", False),
    ],
)
def test_a_recording_confirms_whole_words_only(recorded: str, confirmed: bool) -> None:
    assert is_recorded(RAN, [recorded]) is confirmed


def test_output_without_events_is_no_stream_of_a_client() -> None:
    assert tool_calls([b"+ cat out.txt", b"[1]", b"\xff", b"[" * 100_000]) is None
    assert printed_before_verdict(f"+ cat out.txt\n{VERDICT}\n") == "+ cat out.txt\n"
    assert printed_before_verdict("+ cat out.txt\n") == "+ cat out.txt\n"
