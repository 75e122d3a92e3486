"""A client is found behind what starts it: `env`, `npx`, a line of shell, a script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from tests.work.agents.streams import event
from truegreen.model import ClaimKind
from truegreen.work.agents import Ending, Expectation, adapter_of
from truegreen.work.agents.reading import GatewayDoor, Reading
from truegreen.work.agents.wrappers import ShellText, commands_in, shell_text, variables_in

EVENTS = ("--verbose", "--output-format", "stream-json")
CLAUDE = ("claude", "-p", "x")
SCRIPT = """#!/bin/sh
# it's a wrapper
set -eu
export LEVEL=1 # don't change
exec claude --model m "$@"
"""


def script(folder: Path, name: str, text: str = SCRIPT) -> str:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return f"./{name}"


@each_row(
    "front",
    [
        ("env",),
        ("env", "-u", "OLD", "A=1", "B=a b"),
        ("timeout", "-k", "5", "60"),
        ("timeout", "--signal=INT", "10m"),
        ("nice", "-n", "5", "stdbuf", "-oL"),
        ("nice", "-10"),
        ("nohup", "setsid", "ionice", "-c", "3"),
        ("/usr/bin/env", "-i", "--"),
        ("npx",),
        ("npx", "--yes", "--package", "@anthropic-ai/claude-code", "--"),
        ("npm", "exec", "--"),
        ("uvx", "--from", "claude-agent-sdk"),
        ("uv", "tool", "run"),
    ],
)
def test_behind_a_wrapper_a_client_is_called_as_by_itself(front):
    command = [*front, *CLAUDE]
    adapter = adapter_of("command", command)
    assert (adapter.name, adapter.has_claims, adapter.merged) == ("claude-code", True, False)
    assert adapter.argv(command, goal="") == [*front, "claude", *EVENTS, "-p", "x"]
    assert adapter.start(command) == len(front) + 1
    assert adapter.worded(command) == ([*front, "claude", "-p", "{goal}"], "x")
    resumed = adapter.resume(command, (), session="s", message="again")
    assert resumed[: len(front) + 1] == [*front, "claude"]
    assert {"--resume", "s", "again", "stream-json"} <= {*resumed}
    own = adapter.resume(command, ("claude", "-p", "{message}"), session="s", message="more")
    assert own == ["claude", *EVENTS, "-p", "more"]


@each_row(
    ("command", "name"),
    [
        (["npx", "-y", "@anthropic-ai/claude-code", "-p", "x"], "claude-code"),
        (["npx", "-y", "@anthropic-ai/claude-code@2.1.325", "-p", "x"], "claude-code"),
        (["npx", "@openai/codex@latest", "exec", "x"], "codex"),
        (["bunx", "@google/gemini-cli", "-p", "x"], "gemini"),
        (["pnpm", "dlx", "opencode-ai", "run", "x"], "opencode"),
        (["npx", "@qwen-code/qwen-code", "-p", "x"], "qwen"),
    ],
)
def test_a_client_is_known_by_its_package(command, name):
    adapter = adapter_of("command", command)
    assert (adapter.name, adapter.has_claims) == (name, True)
    assert len(adapter.argv(command, goal="")) > len(command), "its events are switched on"


def test_codex_behind_a_wrapper_is_pointed_at_a_gateway():
    command = ["timeout", "60", "codex", "exec", "x"]
    adapter = adapter_of("command", command)
    door = GatewayDoor(url="http://127.0.0.1:1", key="k", apis=("openai",))
    argv, env = adapter.pointed(command, {}, door)
    assert argv[:4] == command[:4]
    assert 'model_provider="truegreen"' in argv
    assert env["OPENAI_API_KEY"] == "k"


LINES = [
    (["bash", "-c", 'claude -p "$GOAL"'], "claude-code"),
    (["sh", "-c", "cd sub && claude -p x | tee log"], "claude-code"),
    (["bash", "-euo", "pipefail", "-lc", "A=1 timeout 9 claude -p x 2>&1 > out"], "claude-code"),
    (["/bin/dash", "-ec", "exec codex exec 'do it'"], "codex"),
    (["env", "A=1", "bash", "-c", "npx -y @google/gemini-cli -p x"], "gemini"),
    (["sh", "-c", "if true; then # it's\n  qwen -p x\nfi"], "qwen"),
    (["sh", "-c", "bash -lc 'claude -p x'"], "claude-code"),
    (["sh", "-c", 'said=$(claude -p x)\necho "$said"'], "claude-code"),
    (["bash", "-c", 'exec claude "$@"', "name", "-p", "x"], "claude-code"),
    (["bash", "-c", "opencode run 'fix #3'"], "opencode"),
]


@each_row(("command", "name"), LINES)
def test_a_client_in_a_line_of_shell_gets_its_variables_and_no_flags(command, name):
    adapter, plain = adapter_of("command", command), adapter_of("command", ["true"])
    assert (adapter.name, adapter.has_claims, adapter.merged) == (name, False, True)
    assert adapter.passes
    assert adapter.argv(command, goal="g") == plain.argv(command, goal="g") == command
    assert adapter.resume(command, (), session="s", message="m") == command
    assert adapter.start(command) is None
    door = GatewayDoor(url="http://127.0.0.1:1", key="k", apis=adapter.apis)
    assert adapter.pointed(command, {}, door)[0] == command


@each_row(
    "command",
    [
        ["sh", "-c", "echo claude -p x"],
        ["sh", "-c", "'claude -p x"],
        ["sh", "-c", "claude mcp list"],
        ["sh", "-c", "$CLIENT -p x"],
        ["bash"],
        ["bash", "-c"],
        ["sh", "no-such-file"],
        ["env"],
        ["env", "A=1"],
        ["timeout", "60"],
        ["npx"],
        ["npm", "test"],
        ["make", "claude", "-p"],
        ["env"] * 50 + [*CLAUDE],
        ["git", "commit", "-m", "claude -p x"],
    ],
)
def test_other_commands_stay_plain_commands(command):
    assert adapter_of("command", command).name == "command"


def test_a_script_that_starts_a_client_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here, folder = tmp_path / "here", tmp_path / "bin"
    for each in (here, folder):
        each.mkdir()
    script(folder, "my-claude")
    script(here, "agent.sh")
    script(here, "outer", '#!/usr/bin/env bash\n./agent.sh -p "$1"\n')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    for command in (
        ["./agent.sh", "-p", "x"],
        [str(here / "agent.sh"), "-p", "x"],
        ["sh", "agent.sh", "-p", "x"],
        ["my-claude", "-p", "x"],
        ["env", "A=1", "my-claude", "-p", "x"],
        ["./outer", "x"],
    ):
        adapter = adapter_of("command", command, str(here))
        assert (adapter.name, adapter.has_claims) == ("claude-code", False), command
        assert adapter.argv(command, goal="") == command
    assert adapter_of("command", ["./agent.sh"], str(here)).name == "command", "not headless"


def test_what_is_no_script_of_a_shell_is_not_read_as_one(tmp_path: Path):
    script(tmp_path, "python", "#!/usr/bin/env python3\nclaude -p x\n")
    script(tmp_path, "bare", "claude -p x\n")
    script(tmp_path, "empty", "#!\nclaude -p x\n")
    script(tmp_path, "binary", "#!/bin/sh\n\0\nclaude -p x\n")
    script(tmp_path, "loop", "#!/bin/sh\n./loop\n./loop\n")
    os.mkfifo(tmp_path / "pipe", 0o755)
    (tmp_path / "folder").mkdir()
    for name in ("python", "bare", "empty", "binary", "loop", "pipe", "folder", "missing"):
        assert adapter_of("command", [f"./{name}"], str(tmp_path)).name == "command", name


def test_only_the_beginning_of_a_script_is_read(tmp_path: Path):
    script(tmp_path, "long", "#!/bin/sh\n" + "# filler\n" * 10_000 + "claude -p x\n")
    assert adapter_of("command", ["./long"], str(tmp_path)).name == "command"


def read(command: list[str], *lines: bytes, code: int = 0) -> Reading:
    adapter = adapter_of("command", command)
    reader = adapter.reader(adapter.expects(command))
    for line in lines:
        reader.feed(line)
    return reader.read(Ending(code=code))


RESULT = {"subtype": "success", "num_turns": 1, "result": "done", "session_id": "s"}


@each_row(("command", "name"), LINES)
def test_text_of_a_line_of_shell_is_that_of_a_plain_command(command, name):
    done = read(command, b"some words", b"all tests passed")
    assert done.claim
    assert (done.claim.kind, done.claim.source) == (ClaimKind.DONE, "output")
    assert done.words == "some words\nall tests passed"
    assert read(command, b"no key", code=1).detail == "agent_error"


def test_events_of_a_line_of_shell_are_read_as_those_of_its_client():
    line = ["bash", "-c", "claude -p x --output-format stream-json --verbose | tee log"]
    started = event("system", subtype="init", session_id="s", mcp_servers=[], tools=[])
    done = read(line, b"Installing", started, event("result", is_error=False, **RESULT))
    assert (done.detail, done.session) == ("completed", "s")
    assert done.claim
    assert done.claim.source == "claude-code"
    failed = event("result", is_error=True, api_error_status=401, **RESULT)
    assert read(line, started, failed).detail == "auth_invalid", "although the pipe ends with 0"


def test_what_is_live_comes_from_events_once_there_are_any():
    adapter = adapter_of("command", ["sh", "-c", "claude -p x"])
    reader = adapter.reader(Expectation())
    reader.feed(b"Installing")
    assert reader.live.last_message == "Installing"
    reader.feed(event("system", subtype="init", session_id="s", mcp_servers=[], tools=[]))
    assert reader.live.session == "s"


def test_the_variables_that_a_line_reads_are_known():
    line = ShellText('cd "$PWD" && my-agent "${GOAL:-none}" $LEVEL "$1" $? $GOAL')
    assert variables_in(line) == ["GOAL", "LEVEL"]


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_text_can_be_looked_through(text: str, more: list[str]):
    for words in commands_in(ShellText(text, tuple(more))):
        assert words
    shell_text(["sh", "-c", text, *more], "", "")
    adapter_of("command", ["sh", text.replace("\0", ""), *more])
