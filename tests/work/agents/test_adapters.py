"""What all adapters share: recognition, placeholders, reset times; and `command` itself."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from tests.work.agents.streams import detail, read_all
from truegreen.errors import InvalidInput
from truegreen.model import ClaimKind
from truegreen.work.agents import ADAPTERS, Ending, Expectation, adapter_of, found_versions
from truegreen.work.agents.command import CLIENT
from truegreen.work.agents.prompts import filled, with_feedback
from truegreen.work.agents.waits import wait_in
from truegreen.work.agents.wording import ACTION, action, cut


@pytest.mark.criterion("N01")
def test_any_command_has_an_adapter_and_a_named_one_is_kept():
    assert adapter_of("command", ["make", "all"]).name == "command"
    assert adapter_of("claude-code", ["my-wrapper"]).name == "claude-code"
    with pytest.raises(InvalidInput) as refused:
        adapter_of("clawed-code", ["x"])
    assert "claude-code" in refused.value.allowed


def test_every_adapter_is_filed_under_its_own_name():
    assert all(adapter.name == name for name, adapter in ADAPTERS.items())
    assert [a.name for a in ADAPTERS.values() if not a.has_claims] == ["command"]


@each_row(
    ("code", "signal", "stopped", "expected"),
    [
        (0, None, "", "completed"),
        (1, None, "", "agent_error"),
        (137, None, "", "agent_error"),
        (None, 9, "", "signaled"),
        (None, 9, "time", "unclaimed"),
        (0, None, "stop", "unclaimed"),
        (None, None, "", "unclaimed"),
    ],
)
@pytest.mark.criterion("B22")
def test_a_commands_exit_code_is_all_that_it_can_say(code, signal, stopped, expected):
    lines = [b"TASK_COMPLETE", b'{"type": "result", "subtype": "success", "is_error": false}']
    assert detail("command", lines, code=code, signal=signal, stopped=stopped) == expected


def test_a_commands_claim_says_where_it_comes_from():
    reader, reading = read_all("command", [b"building", b"\x1b[32mall tests passed\x1b[0m", b"  "])
    assert reading.claim
    assert (reading.claim.kind, reading.claim.source) == (ClaimKind.DONE, "output")
    assert reading.claim.reason == reading.words == "building\nall tests passed"
    assert reader.live.last_message == "all tests passed"


def test_a_command_that_prints_nothing_has_only_its_exit_code():
    _, reading = read_all("command", [b"", b"  "])
    assert reading.claim
    assert (reading.claim.source, reading.claim.reason) == ("exit", "exit code 0")
    assert not reading.claim.speaks
    assert reading.words == ""


def test_a_commands_words_are_the_last_lines_within_a_bound():
    lines = [f"line {number}".encode() for number in range(5000)]
    _, reading = read_all("command", lines)
    assert reading.words.splitlines() == [f"line {number}" for number in range(4980, 5000)]
    _, reading = read_all("command", [b"x" * 3000, b"y" * 3000, b"\xff last"])
    assert reading.words == "y" * 3000 + "\n\ufffd last"
    _, reading = read_all("command", [b"first", b"z" * 100_000])
    assert len(reading.words) <= 4000


def test_a_command_that_failed_claims_nothing_and_its_last_lines_are_kept():
    _, reading = read_all("command", [b"could not write report.json"], code=3)
    assert reading.claim is None
    assert reading.words == "could not write report.json"


def test_a_commands_words_are_the_same_in_whatever_blocks_they_came():
    whole = CLIENT.reader(Expectation())
    whole.feed(b"one\ntwo\n\nthree")
    alone = CLIENT.reader(Expectation())
    for line in (b"one", b"two", b"", b"three"):
        alone.feed(line)
    assert whole.read(Ending(code=0)).words == alone.read(Ending(code=0)).words == "one\ntwo\nthree"


@each_row("name", list(ADAPTERS))
def test_no_adapter_says_who_ended_a_run(name):
    for signal in (1, 2, 9, 15):
        reading = read_all(name, [], code=None, signal=signal)[1]
        assert str(reading.detail) == "signaled"


def test_only_the_four_placeholders_are_filled_and_only_once():
    words = ["{goal}", "{feedback}!", "{}", "{other}", "{{goal}}", "awk '{print $1}'", "{goal"]
    got = filled(words, goal="{feedback}", feedback="{session}")
    assert got == [
        *("{feedback}", "{session}!", "{}", "{other}", "{{feedback}}", "awk '{print $1}'", "{goal")
    ]


@given(words=st.lists(st.text(max_size=20), max_size=5), goal=st.text(max_size=10))
def test_words_without_placeholders_stay_as_they_are(words, goal):
    plain = [word for word in words if "{" not in word]
    for adapter in ADAPTERS.values():
        if not adapter.recognises(plain):
            assert adapter.argv(plain, goal=goal) == plain


def test_a_command_gets_goal_and_feedback_where_it_asks_for_them():
    adapter = ADAPTERS["command"]
    words = ["agent", "--task={goal}", "--again", "{feedback}"]
    assert adapter.argv(words, goal="g", feedback="f") == ["agent", "--task=g", "--again", "f"]
    assert adapter.argv(["agent", "x"], goal="g", feedback="f") == ["agent", "x"]
    resumed = adapter.resume(words, ["agent", "{session}", "{message}"], session="s", message="m")
    assert resumed == ["agent", "s", "m"]


def test_feedback_follows_the_prompt_after_a_blank_line_and_only_if_there_is_any():
    assert with_feedback("fix it", "  ") == "fix it"
    told = with_feedback("fix it", "test_a failed\n")
    assert told.startswith("fix it\n\n")
    assert told.endswith("\n\ntest_a failed\n")


def test_feedback_goes_where_the_user_wants_it():
    argv = ADAPTERS["claude-code"].argv(
        ["claude", "-p", "{goal}", "--append-system-prompt", "{feedback}"], goal="g", feedback="f"
    )
    assert argv[-3:] == ["g", "--append-system-prompt", "f"]


NOW = time.mktime((2026, 11, 15, 12, 0, 0, 0, 0, -1))


@each_row(
    ("text", "expected"),
    [
        ("Please try again in 1s.", 1),
        ("Please try again in 250ms.", 0.25),
        ("try again in 1 day 2 hours 3 minutes", ((24 + 2) * 60 + 3) * 60),
        ("Your quota will reset after 15h35m20s.", (15 * 60 + 35) * 60 + 20),
        ("Please retry in 34.5s", 34.5),
        ("Retry-After: 30", 30),
        (f"Claude AI usage limit reached|{int(NOW) + 90}", 90),
        ("5-hour limit reached ∙ resets 3pm", 3 * 3600),
        ("limit reached · resets 11:30am", 23.5 * 3600),
        ("try again at Nov 16th, 2026 8:00 AM.", 20 * 3600),
        ("try again at Jan 1st, 2020 8:00 AM.", 0),
        ("try again at Foo 1st, 2020 8:00 AM.", 0),
        ("try again in 999999999 days", 35 * 86400),
        ("try again later", 0),
        ("", 0),
    ],
)
def test_reset_times_in_words(text, expected):
    assert wait_in(text, NOW) == pytest.approx(expected)


@given(st.text(max_size=300))
def test_reset_times_never_raise(text):
    assert 0 <= wait_in(f"try again {text}", NOW) <= 35 * 86400


@given(st.text(max_size=400), st.dictionaries(st.text(max_size=8), st.text(max_size=300)))
def test_an_action_is_one_short_line(tool, arguments):
    line = action(tool, arguments)
    assert len(line) <= ACTION
    assert "\n" not in line
    line.encode()
    cut(tool).encode()


def test_a_huge_line_is_read_within_a_bound():
    huge = b'{"type": "user", "x": "' + b"y" * (8 * 1024 * 1024)
    for name in ADAPTERS:
        reader = ADAPTERS[name].reader(Expectation())
        for _ in range(3):
            reader.feed(huge)
        reading = read_all(name, [huge, b"\xff" * 1000])[1]
        assert len(reading.message) <= 200


def test_clients_that_are_installed_are_found_with_their_version(tmp_path, monkeypatch):
    client = tmp_path / "codex"
    client.write_text("#!/bin/sh\necho codex-cli 0.166.0\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    found = {row.adapter: row for row in found_versions()}
    assert list(found) == list(ADAPTERS)
    assert (found["codex"].path, found["codex"].version) == (str(client), "0.166.0")
    assert (found["command"].path, found["command"].version) == (None, None)
    assert found["claude-code"].path is None
