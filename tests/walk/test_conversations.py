"""Agents as conversations: taken up again where they stopped, and only as long as they may be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.record.lives import OPERATOR
from tests.walk.conftest import Outcome, Walk, init, result, said, shell, until
from tests.walk.judging import settings
from truegreen.errors import Terminated
from truegreen.facts import AgentKind, WakeState
from truegreen.model import AgentStatus

SESSION = init()["session_id"]
ARGUMENTS = (
    "open('out.txt', 'a').write('line\\n');"
    "open('calls.txt', 'a').write(' '.join(sys.argv[1:]).replace('\\n', ' ') + '\\n')"
)
GATE = ("--gate", "test -s out.txt")
TASK = {"type": "system", "subtype": "task_started", "task_id": "a1b2", "description": "sub job"}
SUBAGENT = {**TASK, "task_type": "local_agent"}
SHELL = {**TASK, "task_id": "b7", "task_type": "local_bash"}


def calls(walk: Walk) -> list[str]:
    return (walk.folder / "calls.txt").read_text().splitlines()


def begun(walk: Walk, *lines: dict[str, Any], options: tuple[str, ...] = ()) -> tuple[Outcome, str]:
    """A task that a scripted client has done, and its agent."""
    client = walk.claude(init(), *lines, said("x"), result("done"), before=ARGUMENTS)
    got = walk.run(*GATE, *options, *client)
    assert (got.status, got.axes) == (0, ("exited", "succeeded"))
    (agent,) = [a["id"] for a in got.task["agents"] if a["kind"] == "agent"]
    return got, agent


@pytest.mark.criterion("K10", "K11")
def test_an_agent_goes_on_in_its_own_conversation_and_is_given_what_was_sent(walk: Walk) -> None:
    got, agent = begun(walk, options=("--proof", "regression"))
    sent = walk.tg("send", agent, "the parser moved", "--json").json()
    assert sent["disposition"] == "queued_for_resume"
    answer = walk.tg("resume", agent, "--message", "fix it too", "--json")
    assert answer.status == 0
    follow = Outcome(0, answer.json())
    assert follow.task["id"] != got.task["id"]
    assert follow.task["title"].endswith("fix it too")
    assert [a["id"] for a in follow.task["agents"]] == [agent]
    second = calls(walk)[1]
    assert f"--resume {SESSION}" in second
    assert "fix it too" in second
    assert "the parser moved" in second
    # What was given is not given again.
    assert walk.tg("resume", agent).status == 0
    assert "the parser moved" not in calls(walk)[2]
    listed = {a["id"]: a for a in walk.tg("agents", "--json").json()["agents"]}
    assert (listed[agent]["unread"], listed[agent]["wakes"]) == (0, 0)
    before = walk.ledger().task(got.task["id"])
    assert before.status == "succeeded"


def test_what_follows_on_done_work_is_not_proven_by_the_gate_of_that_work(walk: Walk) -> None:
    _, agent = begun(walk)
    answer = walk.tg("resume", agent, "--message", "fix it too", "--json")
    follow = answer.json()
    assert (answer.status, follow["task_status"]) == (3, "needs_review")
    assert follow["verdict"]["reason"].startswith("unproven: test passed before the agent started")


@pytest.mark.criterion("G02", "G03", "G19", "G21")
def test_a_terminated_agent_is_neither_written_to_nor_resumed(walk: Walk) -> None:
    got, agent = begun(walk)
    ledger = walk.ledger()
    ledger.terminate(got.task["id"], actor=OPERATOR)
    for words in (
        ["send", agent, "wake up"],
        ["send", agent, "wake up", "--wake"],
        ["resume", agent],
        ["resume", agent, "--in", "15m"],
    ):
        answer = walk.tg(*words, "--json")
        assert answer.status == 2
        answer.error("terminated")
    assert walk.tg("send", "agt_nobody", "x", "--json").error("not_found")
    assert walk.tg("resume", "agt_nobody", "--json").error("not_found")
    assert walk.tg("scheduler", "--once", "--json").json()["tasks"] == []
    # Nor does its conversation come back under another name.
    client = walk.claude(init(), said("x"), result("done"), before=f"{ARGUMENTS};import time")
    body = walk.bin / "claude"
    body.write_text(body.read_text().replace("sys.exit(0)", "time.sleep(30)"))
    again = walk.run(*GATE, "--max-attempts", "1", *client)
    assert (again.status, again.exit) == (5, ("fatal_error", "config_invalid"))
    assert "terminated" in again.latest["facts"]["message"]
    assert len(calls(walk)) == 2
    # However quick it is: what it did does not count, and nobody is known by its conversation.
    body.write_text(body.read_text().replace("time.sleep(30)", "sys.exit(0)"))
    quick = walk.run(*GATE, "--max-attempts", "1", *client)
    assert (quick.task["task_status"], quick.exit) == ("failed", ("fatal_error", "config_invalid"))
    assert [a["session"] for a in quick.task["agents"]] == [None]
    with pytest.raises(Terminated):
        ledger.register_agent("clone", "sha256:1", actor=OPERATOR, session=SESSION)


@pytest.mark.criterion("G17")
def test_what_lives_inside_is_registered_and_goes_with_its_parent(walk: Walk) -> None:
    got, agent = begun(
        walk, SUBAGENT, SHELL, {**SUBAGENT, "subtype": "task_notification", "status": "completed"}
    )
    kinds = {a["session"]: (a["kind"], a["status"], a["name"]) for a in got.task["agents"]}
    assert kinds["a1b2"] == (AgentKind.SUBAGENT, AgentStatus.COMPLETED, "sub job")
    assert kinds["b7"] == (AgentKind.BACKGROUND, AgentStatus.COMPLETED, "sub job")
    lines = walk.tg("agents").out.splitlines()
    assert lines[1].startswith(agent)
    assert [line.startswith("  agt_") for line in lines[2:]] == [True, True]
    child = next(a["id"] for a in got.task["agents"] if a["session"] == "a1b2")
    assert walk.tg("resume", child, "--json").error("forbidden")
    ledger = walk.ledger()
    gone = ledger.terminate_agent(agent, actor=OPERATOR)
    assert len(gone.agents) == 3
    assert {a.status for a in ledger.dossier(got.task["id"]).agents} == {AgentStatus.TERMINATED}
    assert walk.tg("show", got.task["id"]).out.count("subagent") == 1


@pytest.mark.criterion("G17")
def test_the_session_and_the_children_stand_in_the_record_while_the_run_is_live(walk: Walk) -> None:
    client = walk.claude(init(), SUBAGENT, before="import time")
    body = walk.bin / "claude"
    body.write_text(body.read_text().replace("sys.exit(0)", "time.sleep(60)"))
    process = walk.start(*GATE, *client)
    ledger = walk.ledger()
    until(lambda: any(a.kind is AgentKind.SUBAGENT for a in ledger.agents()))
    child, parent = ledger.agents()
    assert (parent.session, parent.status) == (SESSION, AgentStatus.IN_PROGRESS)
    assert (child.session, child.parent_key) == ("a1b2", parent.key)
    ledger.terminate_agent(parent.id, actor=OPERATOR)
    process.communicate(timeout=30)
    assert {a.status for a in ledger.agents()} == {AgentStatus.TERMINATED}


@pytest.mark.criterion("G17")
def test_a_stream_full_of_children_fills_no_record(walk: Walk) -> None:
    tasks = [{"task_id": f"t{n}", "task_type": "local_agent"} for n in range(500)]
    listed = {"type": "system", "subtype": "background_tasks_changed", "tasks": tasks}
    none = {**listed, "tasks": []}
    client = walk.claude(init(), listed, none, said("x"), result("done"), before=ARGUMENTS)
    answer = walk.tg("run", *GATE, *client)
    assert answer.status == 0
    assert answer.err.count("more than 200 live inside of it") == 1
    assert len(walk.ledger().agents(limit=1000)) == 201


@pytest.mark.criterion("K10")
def test_a_live_agent_is_given_its_messages_at_its_next_stop(walk: Walk) -> None:
    agent = "echo line >> out.txt; cat ${TRUEGREEN_FEEDBACK:-/dev/null} >> told.txt; sleep 1.5"
    process = walk.start("--json", *GATE, *shell(agent))
    ledger = walk.ledger()
    until(lambda: any(a.status is AgentStatus.IN_PROGRESS for a in ledger.agents()))
    (known,) = ledger.agents()
    until((walk.folder / "out.txt").exists)
    task = ledger.page().tasks[0]
    until(lambda: ledger.dossier(task.id).runs[-1].seen_at)
    task = ledger.task(task.id)
    message = ledger.send(known.id, "mind the gap", actor=OPERATOR)
    assert message.disposition == "delivered"
    assert ledger.task(task.id).revision == task.revision
    out, _ = process.communicate(timeout=30)
    got = json.loads(out)
    assert got["budget"]["reentries"] == [1, 5]
    assert len(got["runs"]) == 1
    assert (walk.folder / "told.txt").read_text().count("mind the gap") == 1
    assert (walk.folder / "out.txt").read_text().count("line") == 2


def test_a_message_that_nobody_could_give_waits_and_makes_no_work_undone(walk: Walk) -> None:
    toml = """\
[agents.worker]
command = ["sh", "-c", "echo line >> out.txt; sleep 1"]
[gates.there]
command = ["test", "-s", "out.txt"]
[tasks.work]
agent = "worker"
gates = ["there"]
budget = { reentries = 0 }
"""
    config = settings(walk, toml)
    process = walk.start("--json", "--config", config, "--task", "work")
    ledger = walk.ledger()
    until((walk.folder / "out.txt").exists)
    (known,) = ledger.agents()
    ledger.send(known.id, "too late", actor=OPERATOR)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert ledger.at_hand([known])[known.key].unread == 1
    assert (walk.folder / "out.txt").read_text() == "line\n"


CONTINUES = """\
[defaults]
continues = true
[gates.two]
command = ["sh", "-c", "n=$(wc -l < out.txt); echo only $n lines; test $n -ge 2"]
[agents.worker]
adapter = "claude-code"
command = ["claude", "-p", "{goal}"]
[tasks.work]
agent = "worker"
goal = "do it"
gates = ["two"]
max_attempts = 3
"""


@pytest.mark.parametrize("continues", [True, False])
def test_a_retry_goes_on_in_the_same_conversation_where_the_contract_says_so(
    walk: Walk,
    continues: bool,
) -> None:
    walk.claude(init(), said("x"), result("done"), before=ARGUMENTS)
    toml = CONTINUES if continues else CONTINUES.replace("continues = true", "")
    got = walk.run("--config", settings(walk, toml), "--task", "work")
    assert (got.status, len(got.task["runs"])) == (0, 2)
    first, second = calls(walk)
    assert "--resume" not in first
    assert (f"--resume {SESSION}" in second) is continues
    assert "only 1 lines" in second
    agents = {run["agent"] for run in got.task["runs"]}
    assert len(agents) == (1 if continues else 2)


@pytest.mark.criterion("H14")
def test_an_agent_is_resumed_in_its_own_work_tree_or_not_at_all(walk: Walk, tmp_path: Path) -> None:
    _, agent = begun(walk)
    elsewhere = tmp_path / "elsewhere"
    shutil.move(walk.folder, elsewhere)
    walk.folder.symlink_to(elsewhere)
    moved = walk.tg("resume", agent, "--json")
    assert "worked in" in moved.error("invalid_input")["message"]
    walk.folder.unlink()
    (elsewhere / "gone").mkdir()
    walk.folder = elsewhere
    gone = walk.tg("resume", agent, "--json")
    assert "is gone" in gone.error("invalid_input")["message"]
    ledger = walk.ledger()
    wake = ledger.arm(agent, "more", actor=OPERATOR)
    assert walk.tg("scheduler", "--once", "--json").json()["tasks"] == []
    (kept,) = ledger.wakes(agent)
    assert (kept.id, kept.state) == (wake.id, WakeState.VOID)
    assert "is gone" in kept.why
    assert len((elsewhere / "calls.txt").read_text().splitlines()) == 1


def test_a_client_that_never_said_its_name_can_not_be_resumed(walk: Walk) -> None:
    client = walk.claude(said("x"), result("done", session_id=None), before=ARGUMENTS)
    walk.run(*GATE, *client)
    agent = walk.ledger().agents()[0].id
    answer = walk.tg("resume", agent, "--json")
    assert "has not said the name" in answer.error("invalid_input")["message"]
    assert walk.ledger().wakes(agent) == []


def test_a_wake_up_for_later_waits_for_the_scheduler(walk: Walk) -> None:
    _, agent = begun(walk)
    for words in (["--in", "15m"], ["--at", "2099-01-01T00:00"]):
        status = walk.tg("resume", agent, *words, "--json")
        expected = 0 if words[0] == "--in" else 2
        assert status.status == expected, status
    assert walk.tg("resume", agent, "--at", "2020-01-01").status == 2
    assert walk.tg("resume", agent, "--at", "soon").status == 2
    assert walk.tg("resume", agent, "--in", "1m", "--at", "2099-01-01").status == 2
    assert walk.tg("scheduler", "--once", "--json").json()["tasks"] == []
    (wake,) = walk.ledger().wakes(agent)
    assert (wake.state, wake.cause) == (WakeState.ARMED, "schedule")
    assert len(calls(walk)) == 1


@pytest.mark.criterion("K10")
def test_a_message_alone_wakes_nobody_and_one_that_wakes_is_read_once(walk: Walk) -> None:
    _, agent = begun(walk)
    assert walk.tg("send", agent, "hello").status == 0
    assert walk.tg("scheduler", "--once", "--json").json()["tasks"] == []
    for text in ("one", "two"):
        assert "wakes" in walk.tg("send", agent, text, "--wake", "--key", text).out
    assert "duplicate" in walk.tg("send", agent, "two", "--wake", "--key", "two").out
    done = walk.tg("scheduler", "--once")
    assert done.status == 0
    assert len(calls(walk)) == 2
    assert all(word in calls(walk)[1] for word in ("hello", "one", "two"))
    assert walk.tg("scheduler", "--once", "--json").json()["tasks"] == []
    states = [(wake.state, wake.why) for wake in walk.ledger().wakes(agent)]
    assert states == [
        (WakeState.FIRED, ""),
        (WakeState.VOID, "its messages have been read already"),
    ]
