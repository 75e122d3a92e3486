"""`agents`: the pool, and the clients that are installed."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faces.conftest import ESCAPES, SCRIPT, Furnished, Run
from tests.record.lives import OPERATOR, started
from truegreen.facts import AgentKind, Child
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


def test_where_no_table_fits_every_cell_stands_in_one_column(
    on_terminal: Run, furnished: Furnished
):
    lines = ESCAPES.sub("", on_terminal(50, "agents").out).splitlines()
    starts = {len(line) - len(line[9:].lstrip()) for line in lines if line.strip()}
    assert starts == {10}, lines


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


@pytest.mark.criterion("K11")
def test_one_agent_is_shown_with_its_work_its_post_and_its_wake_ups(
    tg: Run, furnished: Furnished
) -> None:
    ledger = open_ledger(furnished.url)
    agent = ledger.register_agent("solver", "sha256:2", actor=OPERATOR, session="s-9")
    ticket = started(ledger, agent_id=agent.id)
    child = Child(AgentKind.SUBAGENT, "a1b2", "helper")
    ledger.converse(ticket, session="s-9", children=[child])
    ledger.send(agent.id, "first\nand more", actor=OPERATOR)
    ledger.deliver(ticket)
    ledger.send(agent.id, "second", actor=OPERATOR)
    wake = ledger.arm(agent.id, "look again", actor=OPERATOR, after_seconds=900)
    ledger.close()

    shown = tg("agents", "show", "s-9", "--json").json()
    assert (shown["id"], shown["status"], shown["parent"]) == (agent.id, "in_progress", None)
    assert [each["name"] for each in shown["children"]] == ["helper"]
    assert [(each["run"], each["task"]) for each in shown["runs"]] == [(ticket.run, ticket.task)]
    given = [(each["body"], each["given_to"]) for each in shown["messages"]]
    assert given == [("second", None), ("first\nand more", ticket.run)]
    assert [(each["id"], each["state"]) for each in shown["wakes"]] == [(wake.id, "armed")]

    out = tg("agents", "show", "solver").out
    assert f"given to {ticket.run}: first …" in out
    assert "unread: second" in out
    assert f"{wake.id}  armed, resume of operator:" in out
    assert tg("agents", "show", ticket.task).status == 2


@pytest.mark.criterion("K11")
def test_wake_ups_are_called_off_one_by_one_or_all_of_an_agent(
    tg: Run, furnished: Furnished
) -> None:
    ledger = open_ledger(furnished.url)
    agent = ledger.register_agent("solver", "sha256:2", actor=OPERATOR)
    wakes = [ledger.arm(agent.id, actor=OPERATOR, after_seconds=900) for _ in range(3)]
    one = tg("agents", "calloff", wakes[0].id, "--reason", "not needed")
    assert (one.status, one.out.endswith(": not needed\n")) == (0, True)
    rest = tg("agents", "calloff", "solver", "--reason", "none of them", "--json").json()
    assert {each["id"] for each in rest["called_off"]} == {wakes[1].id, wakes[2].id}
    assert {wake.why for wake in ledger.wakes(agent.id)} == {"not needed", "none of them"}
    again = tg("agents", "calloff", "solver", "--reason", "again")
    assert again.out == "no wake-up is armed; nothing changed\n"
    tg("agents", "calloff", "wak_zzz", "--reason", "x", "--json").error("not_found")
    ledger.close()


def test_send_and_resume_know_an_agent_by_what_terminate_knows_it_by(
    tg: Run, furnished: Furnished
) -> None:
    ledger = open_ledger(furnished.url)
    agent = ledger.register_agent("solver", "sha256:2", actor=OPERATOR, session="s-9")
    for name in ("s-9", "solver", agent.id[:-1]):
        assert tg("send", name, "hello", "--json").json()["agent"] == agent.id
    assert len(ledger.messages(agent.id)) == 3
    ledger.close()
    unknown = tg("resume", "nobody", "--in", "5m")
    assert (unknown.status, "next: truegreen agents" in unknown.err) == (2, True)
    a_task = tg("send", next(iter(furnished.tasks.values())), "hello").err
    assert "is a task, not an agent" in a_task


def test_too_much_is_refused_by_its_size_and_resume_reads_standard_input(
    furnished: Furnished, environ: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    ledger = open_ledger(furnished.url)
    agent = ledger.agents()[0].id
    ledger.close()

    def said(body: bytes, *words: str) -> str:
        done = subprocess.run(
            [str(SCRIPT), *words, "--json"],
            input=body,
            env=environ(),
            cwd=tmp_path,
            check=False,
            capture_output=True,
        )
        message: str = json.loads(done.stdout)["error"]["message"]
        return message

    assert "more than 65536 bytes" in said(b"x" * 70_000, "send", agent, "-")
    assert "not valid UTF-8" in said(b"\xff", "resume", agent, "--message", "-", "--in", "5m")
