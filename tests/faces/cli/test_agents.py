"""`agents`: the pool, and the clients that are installed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faces.conftest import SCRIPT, Furnished, Run
from tests.record.lives import OPERATOR, started
from truegreen.model import AgentStatus
from truegreen.record.ledger import open_ledger


def test_the_pool_is_listed_newest_first(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    busy = ledger.register_agent("busy", "sha256:2", actor=OPERATOR, session="s-2")
    started(ledger, agent_id=busy.id)
    gone = ledger.register_agent("gone", "sha256:3", actor=OPERATOR)
    ledger.terminate_agent(gone.id, actor=OPERATOR)
    ledger.close()
    listed = tg("agents", "--json").json()["agents"]
    assert [agent["name"] for agent in listed] == ["gone", "busy", "coder"]
    assert {agent["kind"] for agent in listed} == {"agent"}
    assert listed[1]["task"].startswith("tsk_")
    assert {"unread", "wakes", "parent"} <= listed[1].keys()
    lines = tg("agents").out.splitlines()
    assert re.split("  +", lines[1])[:3] == [gone.id, "○ terminated", "gone"]
    assert re.split("  +", lines[2])[-1] == "s-2"
    assert [a["id"] for a in tg("agents", "--limit", "1", "--json").json()["agents"]] == [gone.id]


@pytest.mark.parametrize("status", AgentStatus)
def test_the_pool_is_filtered_by_status(status: AgentStatus, tg: Run, furnished: Furnished):
    found = tg("agents", "--status", status, "--json").json()["agents"]
    assert {agent["status"] for agent in found} <= {status}
    assert len(found) == (status is AgentStatus.PENDING)


def test_an_empty_pool_is_said(tg: Run):
    assert tg("agents").out == "no agents\n"


def test_an_agent_is_never_green(on_terminal: Run, furnished: Furnished):
    assert "38;2;40;190;90" not in on_terminal(100, "agents").out


def test_adapters_are_listed_with_the_versions_that_were_found(tg: Run, tmp_path: Path):
    client = tmp_path / "bin" / "claude"
    client.parent.mkdir()
    client.write_text("#!/bin/sh\necho '9.8.7 (Claude Code)'\n")
    client.chmod(0o755)
    path = f"{client.parent}:/usr/bin:/bin"
    found = {
        a["adapter"]: a for a in tg("agents", "adapters", "--json", PATH=path).json()["adapters"]
    }
    assert found.keys() >= {"command", "claude-code", "codex", "gemini", "opencode", "qwen"}
    assert found["claude-code"]["path"] == str(client)
    assert "9.8.7" in found["claude-code"]["version"]
    line = next(x for x in tg("agents", "adapters", PATH=path).out.splitlines() if "9.8.7" in x)
    assert line.startswith("claude-code")


def test_a_slip_of_the_finger_below_agents_is_answered(tg: Run):
    answer = tg("agents", "adaptors")
    assert answer.status == 2
    assert "Did you mean adapters?" in answer.err


@pytest.mark.criterion("K11", "G03")
def test_a_message_is_sent_from_standard_input_and_says_what_became_of_it(
    furnished: Furnished, environ: Callable[..., dict[str, str]], tmp_path: Path
):
    ledger = open_ledger(furnished.url)
    agent = ledger.agents()[0].id

    def send(body: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
        line = [str(SCRIPT), "send", agent, "-", "--json", *words]
        return subprocess.run(
            line, input=body, env=environ(), cwd=tmp_path, check=False, capture_output=True
        )

    sent = send("größer\n".encode(), "--key", "k")
    assert json.loads(sent.stdout)["disposition"] == "delivered"
    assert json.loads(send("größer\n".encode(), "--key", "k").stdout)["disposition"] == "duplicate"
    assert [message.body for message in ledger.messages(agent)] == ["größer\n"]
    for wrong in (b"\xff\xfe", b" \n", b"x" * 70_000):
        refused = send(wrong)
        assert (refused.returncode, refused.stderr) == (2, b"")
        assert json.loads(refused.stdout)["error"]["code"] == "invalid_input"
    assert len(ledger.messages(agent)) == 1
    ledger.close()
