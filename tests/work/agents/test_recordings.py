"""Every recorded run of a real client is read as its label says; one test a file."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import missing
from tests.table import each_row
from tests.work.agents.recordings import CLIENTS, FOLDER, recording, rows
from truegreen.model import ClaimKind, ExitReason
from truegreen.work.agents import ADAPTERS, Ending, Expectation

ROWS = rows()
NAMES = [row["file"] for row in ROWS]
UNCLEAN = [row for row in ROWS if ["done", "completed"] not in row["expect"]]


@pytest.mark.criterion("N10")
def test_the_recordings_are_here():
    if not ROWS:
        missing(f"the recordings ({FOLDER})")


@pytest.mark.criterion("N10", "B22")
@each_row("row", ROWS, ids=NAMES)
def test_a_recording_is_read_as_its_label_says(row):
    run = recording(row)
    _, reading = run.played()
    assert (str(reading.reason), str(reading.detail)) in run.expect, reading


@each_row("row", ROWS, ids=NAMES)
def test_only_a_clean_end_makes_a_claim(row):
    _, reading = recording(row).played()
    if reading.reason is ExitReason.DONE:
        assert reading.claim
        assert reading.claim.kind is ClaimKind.DONE
    else:
        assert reading.claim is None


@each_row("row", ROWS, ids=NAMES)
def test_the_order_of_keys_and_unknown_lines_change_nothing(row):
    run = recording(row)
    shuffled = random.Random(row["file"])  # noqa: S311 - an order, not a secret
    lines: list[bytes] = []
    for line in run.lines:
        lines += [_shuffled(line, shuffled), b'{"type": "something_new", "subtype": "init2"}', b""]
    before, after = run.played()[1], run.played(lines)[1]
    assert (after.reason, after.detail) == (before.reason, before.detail)
    assert bool(after.claim) == bool(before.claim)


def _shuffled(line: bytes, chance: random.Random) -> bytes:
    try:
        value = json.loads(line)
    except ValueError:
        return line

    def mixed(part: Any) -> Any:
        if isinstance(part, dict):
            keys = list(part)
            chance.shuffle(keys)
            return {key: mixed(part[key]) for key in keys} | {"unknown_key": [1, {"x": None}]}
        return [mixed(one) for one in part] if isinstance(part, list) else part

    # Keys of a mapping by name (models, servers) would become another entry of it.
    for key in ("modelUsage", "model_usage_since_last_result"):
        value.pop(key, None) if isinstance(value, dict) else None
    return json.dumps(mixed(value)).encode()


@pytest.mark.criterion("B23", "N06")
@each_row("row", ROWS, ids=NAMES)
def test_a_stream_that_breaks_off_before_its_end_is_never_done(row):
    run = recording(row)
    for end in range(len(run.lines)):
        reader, reading = run.played(run.lines[:end])
        if reading.reason is ExitReason.DONE:
            assert reader.live.last_message or reader.live.turns
            assert _ended_once(run.adapter, run.lines[:end]), (end, reading)


def _ended_once(adapter: str, lines: list[bytes]) -> bool:
    """Whether the shown part has a successful final event: of an earlier turn, or the last one."""
    final = {
        "claude-code": (b'"subtype": "success"',),
        "qwen": (b'"subtype": "success"',),
        "codex": (b'"turn.completed"',),
        "gemini": (b'"status": "success", "stats"',),
        "opencode": (b'"reason": "stop"', b'"reason": "length"'),
    }[adapter]
    return any(mark in line for line in lines for mark in final)


@each_row("row", UNCLEAN, ids=[row["file"] for row in UNCLEAN])
def test_the_halves_of_its_lines_never_raise(row):
    run = recording(row)
    lines = [part for line in run.lines for part in (line[: len(line) // 2], line)]
    assert run.played(lines)[1].reason is not ExitReason.DONE


@pytest.mark.criterion("N10")
def test_turns_and_cost_are_counted_as_the_client_does():
    if not ROWS:
        missing("the recordings")
    for row in ROWS:
        run = recording(row)
        if run.adapter != "claude-code":
            continue
        results = [json.loads(line) for line in run.lines if b'"num_turns"' in line]
        live = run.played()[0].live
        clean = results and all(one.get("terminal_reason") == "completed" for one in results)
        if clean and not any(one["is_error"] for one in results) and live.turns:
            counted = sum(one["num_turns"] for one in results)
            assert abs(live.turns - counted) <= 1, row["file"]
        if results and "--resume" not in run.argv and "--continue" not in run.argv:
            assert live.cost_usd == pytest.approx(results[-1]["total_cost_usd"]), row["file"]


def test_every_rule_that_concludes_is_named():
    if not ROWS:
        missing("the recordings")
    fired = Counter(recording(row).played()[1].evidence["rule"] for row in ROWS)
    assert "none" not in fired
    assert len(fired) >= 10


words = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=8), parts, max_size=4)
    ),
    max_leaves=4,
)
FIELDS = (
    *("type", "subtype", "message", "content", "item", "part", "state", "error", "result"),
    *("usage", "stats", "status", "tool_name", "permission_denials", "mcp_servers", "tasks"),
    *("num_turns", "stop_reason", "terminal_reason", "tool_result_meta", "metadata", "tool"),
)
TYPES = (
    *("system", "assistant", "user", "init", "message", "tool_use", "tool_result", "error"),
    *("item.completed", "item.started", "turn.started", "turn.failed", "step_start", "text"),
    *("thread.started", "rate_limit_event", "stream_event", "command_lifecycle"),
)
events = st.builds(
    lambda kind, rest: json.dumps({**rest, "type": kind}).encode(),
    st.sampled_from(TYPES),
    st.dictionaries(st.sampled_from(FIELDS), words, max_size=4),
)
lines = st.one_of(
    events,
    st.binary(max_size=60),
    st.binary(max_size=30).map(lambda data: b"{" + data),
    st.sampled_from((b'{"type": "\\ud800"}', b"[", b"[{}]", b"{}", b"null", b'{"type": null}')),
)
endings = st.builds(
    Ending,
    code=st.sampled_from((None, 0, 1, 2, 41, 53, 55, 129, 143, 173, 247)),
    signal=st.sampled_from((None, 2, 9, 15)),
    stopped=st.sampled_from(("", "stop", "time")),
    stderr=st.binary(max_size=200),
    survivors=st.integers(0, 2),
)


@pytest.mark.criterion("B23", "N06")
@given(
    name=st.sampled_from(sorted({*CLIENTS.values()})),
    noise=st.lists(lines, max_size=8),
    ending=endings,
)
def test_noise_never_raises_and_never_ends_well(name, noise, ending):
    reader = ADAPTERS[name].reader(Expectation())
    for line in noise:
        reader.feed(line)
    reading = reader.read(ending)
    assert reading.reason is not ExitReason.DONE
    assert reading.claim is None
    json.dumps(reading.evidence)
    reading.message.encode()
    reader.live.last_message.encode()
    reader.live.last_action.encode()
