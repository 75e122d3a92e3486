"""What lives inside of a client's conversation is seen in its stream, under the client's names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import missing
from tests.table import each_row
from tests.work.agents.recordings import FOLDER, INDEX
from truegreen.facts import AgentKind, Child
from truegreen.work.agents import ADAPTERS, Expectation, Reader
from truegreen.work.agents.children import MOST
from truegreen.work.agents.reading import census

K = AgentKind


def lines_of(name: str) -> list[bytes]:
    if not INDEX.exists():
        missing("the recordings of real clients")
    return (FOLDER / name).read_bytes().splitlines()


def fed(adapter: str, *lines: bytes | dict[str, Any]) -> Reader:
    reader = ADAPTERS[adapter].reader(Expectation())
    for line in lines:
        reader.feed(line if isinstance(line, bytes) else json.dumps(line).encode())
    return reader


def seen(reader: Reader) -> list[tuple[AgentKind, str, bool]]:
    return [(child.kind, child.session, child.over) for child in reader.live.children]


@pytest.mark.criterion("G17")
@each_row(
    ("recording", "expected"),
    [
        ("claude-zombie-subagent-message", [(K.SUBAGENT, "a9ff311067af1b567", True)]),
        ("claude197-zombie-subagent-message", [(K.SUBAGENT, "add735881e1e29758", True)]),
        ("claude-subagent", [(K.SUBAGENT, "ac395c3276ff127a3", True)]),
        ("claude-background-bash", [(K.BACKGROUND, "bab4t7jos", True)]),
        ("claude-schedule-wakeup", [(K.WAKEUP, "toolu_9eb848864a664918b164db", False)]),
        ("claude-cron-create", [(K.CRON, "7685e733", False)]),
        ("claude-success", []),
    ],
)
def test_children_are_found_in_recordings(
    recording: str, expected: list[tuple[AgentKind, str, bool]]
) -> None:
    assert seen(fed("claude-code", *lines_of(f"{recording}.jsonl"))) == expected


@pytest.mark.criterion("G17")
@each_row("recording", ["claude-zombie-subagent-message", "claude-subagent"])
def test_a_subagent_has_the_name_that_hooks_send(recording: str) -> None:
    hooks = [json.loads(line) for line in lines_of(f"{recording}.hooks.jsonl")]
    named = {found for hook in hooks for found in _all_of(hook, "agent_id")}
    reader = fed("claude-code", *lines_of(f"{recording}.jsonl"))
    assert {session for _, session, _ in seen(reader)} == named != set()


def _all_of(value: Any, key: str) -> list[str]:
    if isinstance(value, dict):
        own = [value[key]] if isinstance(value.get(key), str) else []
        return own + [each for part in value.values() for each in _all_of(part, key)]
    return []


@pytest.mark.criterion("G17")
def test_a_subagent_that_is_woken_is_not_over() -> None:
    lines = lines_of("claude-zombie-subagent-message.jsonl")
    states = []
    reader = ADAPTERS["claude-code"].reader(Expectation())
    for line in lines:
        reader.feed(line)
        states += [over for _, _, over in seen(reader)]
    changes = [now for before, now in zip([None, *states], states, strict=False) if now != before]
    assert changes == [False, True, False, True]


def _tool(name: str, call: str, **given: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": call, "name": name, "input": given}
    return {"type": "assistant", "message": {"id": call, "model": "m", "content": [block]}}


def _result(call: str, told: Any, *, is_error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": "x", "is_error": is_error}
    return {"type": "user", "message": {"content": [block]}, "tool_use_result": told}


def test_a_cron_is_over_when_it_is_deleted_and_none_is_there_that_was_refused() -> None:
    reader = fed(
        "claude-code",
        _tool("CronCreate", "c1", cron="* * * * *"),
        _result("c1", {"id": "one"}),
        _tool("CronCreate", "c2", cron="* * * * *"),
        _result("c2", "Error: denied", is_error=True),
        _tool("ScheduleWakeup", "w1", reason="poll"),
        _result("w1", "Error: denied", is_error=True),
    )
    assert reader.live.children == [Child(K.CRON, "one", "* * * * *")]
    for line in (_tool("CronDelete", "c3", id="one"), _result("c3", {"id": "one"})):
        reader.feed(json.dumps(line).encode())
    assert seen(reader) == [(K.CRON, "one", True)]


@pytest.mark.criterion("G17")
def test_threads_that_codex_starts_are_found() -> None:
    item = {
        "type": "collab_tool_call",
        "tool": "spawn_agent",
        "receiver_thread_ids": ["t-1"],
        "prompt": "look\nhere",
        "agents_states": {"t-1": {"status": "running"}},
    }
    reader = fed("codex", {"type": "item.completed", "item": item})
    assert reader.live.children == [Child(K.SUBAGENT, "t-1", "look here")]
    over = {**item, "tool": "wait", "agents_states": {"t-1": {"status": "completed"}}}
    reader.feed(json.dumps({"type": "item.completed", "item": over}).encode())
    assert seen(reader) == [(K.SUBAGENT, "t-1", True)]


@pytest.mark.criterion("G17")
def test_subagents_of_qwen_are_found_by_the_call_that_started_them() -> None:
    inside = {**_tool("Bash", "b1"), "parent_tool_use_id": "a1"}
    reader = fed("qwen", _tool("agent", "a1", description="x"), inside)
    assert seen(reader) == [(K.SUBAGENT, "a1", False)]
    reader.feed(json.dumps(_result("a1", None)).encode())
    assert seen(reader) == [(K.SUBAGENT, "a1", True)]


ODD: list[Any] = [None, 7, [], {}, "", "x" * 5000, [["deep"]], {"task_id": {}}]


@each_row("odd", ODD)
def test_an_odd_stream_names_nobody_and_breaks_nothing(odd: Any) -> None:
    task = {"type": "system", "subtype": "task_started", "task_type": odd, "description": odd}
    listed = {"type": "system", "subtype": "background_tasks_changed", "tasks": [odd]}
    item = {"type": "collab_tool_call", "receiver_thread_ids": odd, "agents_states": odd}
    claude = fed("claude-code", task, listed, _tool("CronCreate", "c"), _result("c", odd))
    assert {child.kind for child in claude.live.children} <= {K.CRON}
    codex = fed("codex", {"type": "item.completed", "item": item})
    assert codex.live.children == [] or odd == {"task_id": {}}


def test_a_hostile_stream_fills_no_memory() -> None:
    tasks = [{"task_id": f"t{n}", "task_type": "local_agent"} for n in range(3 * MOST)]
    line = {"type": "system", "subtype": "background_tasks_changed", "tasks": tasks}
    assert len(fed("claude-code", line).live.children) == MOST


def _task(name: str, word: str) -> list[dict[str, Any]]:
    """A subagent of Claude Code from its start to its end; one without a word never says how."""
    event = {"type": "system", "task_id": name}
    start = {**event, "subtype": "task_started", "task_type": "local_agent", "description": name}
    end = {**event, "subtype": "task_notification", "status": word}
    return [start, end] if word else [start]


@pytest.mark.criterion("A23")
def test_children_are_counted_by_what_they_came_to_and_silence_is_not_done() -> None:
    ends = ["completed", "completed", "failed", "killed", "stopped", "cancelled", ""]
    lines = [line for n, word in enumerate(ends) for line in _task(f"t{n}", word)]
    reader = fed("claude-code", *lines, _tool("ScheduleWakeup", "w1"), _result("w1", {}))
    assert census(reader.live.children) == {"ok": 2, "failed": 2, "unknown": 1, "skipped": 2}
    assert census([]) == {}
    item = {"type": "collab_tool_call", "tool": "wait", "receiver_thread_ids": ["a", "b", "c"]}
    states = {"a": {"status": "completed"}, "b": {"status": "errored"}, "c": {"status": "shutdown"}}
    threads = fed("codex", {"type": "item.completed", "item": {**item, "agents_states": states}})
    assert census(threads.live.children) == {"ok": 1, "failed": 1, "unknown": 1, "skipped": 0}


@pytest.mark.criterion("A23")
def test_a_child_that_is_woken_has_not_come_to_anything_yet() -> None:
    ended = fed("claude-code", *_task("t", "completed"))
    assert census(ended.live.children)["ok"] == 1
    ended.feed(json.dumps(_task("t", "")[0]).encode())
    assert census(ended.live.children) == {"ok": 0, "failed": 0, "unknown": 1, "skipped": 0}


@each_row("recording", ["claude-subagent", "claude-background-bash"])
def test_real_children_that_ended_well_are_counted_so(recording: str) -> None:
    reader = fed("claude-code", *lines_of(f"{recording}.jsonl"))
    assert census(reader.live.children) == {"ok": 1, "failed": 0, "unknown": 0, "skipped": 0}
