"""The goal contract: at every stop a fresh evaluator says whether it is reached, under a cap."""

from __future__ import annotations

import json

import pytest

from tests.walk.conftest import Walk, init, result, said
from tests.walk.judging import Judge, settings

TOML = """\
[agents.worker]
command = ["sh", "-c", "echo line >> out.txt"]
[evaluators.goal]
command = <judge>
goal_check = true
[gates.there]
command = ["test", "-s", "out.txt"]
[tasks.work]
agent = "worker"
gates = ["there"]
evaluators = ["goal"]
done_when = "out.txt has three lines"
budget = { reentries = 4 }
max_attempts = 1
"""
COUNTS = """\
lines = len(open(os.path.join(tree, "out.txt")).read().splitlines())
print(json.dumps({"done": lines >= %d, "reason": f"{lines} lines"}))
"""


@pytest.mark.criterion("F34", "E02")
def test_an_agent_is_sent_back_in_until_the_goal_is_reached(walk: Walk) -> None:
    judge = Judge(walk, COUNTS % 3)
    got = walk.run("--config", settings(walk, TOML, judge=judge.command), "--task", "work")
    assert (got.status, got.axes) == (0, ("exited", "succeeded"))
    assert (walk.folder / "out.txt").read_text().count("line") == 3
    assert len(got.task["runs"]) == 1
    assert got.task["budget"]["reentries"] == [2, 4]
    # The last answer counts; the same tree is not asked about twice.
    assert [shown["question"] for shown in judge.shown] == ["goal"] * 3
    assert judge.shown[0]["task"]["done_when"] == "out.txt has three lines"
    log = walk.tg("log", got.latest["id"])
    assert log.status == 0
    assert got.latest["facts"]["stints"] == 3


@pytest.mark.criterion("F34", "E03", "E04", "I18")
def test_the_cap_of_reentries_is_a_state_of_its_own(walk: Walk) -> None:
    judge = Judge(walk, COUNTS % 99)
    got = walk.run("--config", settings(walk, TOML, judge=judge.command), "--task", "work")
    assert (got.status, got.cell) == (4, "cap_hit")
    assert got.axes == ("capped", "failed")
    assert got.exit == ("max_iterations", "reentry_cap")
    assert got.task["budget"]["reentries"] == [4, 4]
    assert (walk.folder / "out.txt").read_text().count("line") == 5
    assert "sent back 4 times, and still: goal: 5 lines" in json.dumps(got.latest["facts"])
    (waiting,) = walk.ledger().inbox()
    assert waiting.item.cell == "cap_hit"


def test_work_that_is_found_done_at_the_cap_is_finished_at_the_cap(walk: Walk) -> None:
    """The goal judge stays unhappy, but is not required: the gate decides."""
    judge = Judge(walk, COUNTS % 99)
    toml = TOML.replace("goal_check = true", "goal_check = true\nrequired = false")
    got = walk.run("--config", settings(walk, toml, judge=judge.command), "--task", "work")
    assert (got.status, got.cell, got.task["rescued"]) == (0, "finished_at_the_cap", True)


@pytest.mark.criterion("E14")
def test_a_judge_that_fails_sends_nobody_back(walk: Walk) -> None:
    judge = Judge(walk, "sys.exit(3)")
    got = walk.run("--config", settings(walk, TOML, judge=judge.command), "--task", "work")
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert got.task["budget"]["reentries"] == [0, 4]
    assert (walk.folder / "out.txt").read_text() == "line\n"


@pytest.mark.criterion("E02", "E04")
def test_a_red_fast_gate_sends_the_agent_back_with_the_reason(walk: Walk) -> None:
    toml = """\
[agents.worker]
command = ["sh", "-c", "echo line >> out.txt; cp ${TRUEGREEN_FEEDBACK:-/dev/null} told.txt"]
[gates.three]
command = ["sh", "-c", "n=$(wc -l < out.txt); echo only $n lines; test $n -ge 3"]
fast = true
[tasks.work]
agent = "worker"
gates = ["three"]
max_attempts = 1
"""
    got = walk.run("--config", settings(walk, toml), "--task", "work")
    assert (got.status, got.axes, got.task["budget"]["reentries"]) == (
        0,
        ("exited", "succeeded"),
        [2, 5],
    )
    told = (walk.folder / "told.txt").read_text()
    assert "three" in told
    assert "only 2 lines" in told


@pytest.mark.criterion("N04")
def test_who_is_sent_back_in_may_say_done_again(walk: Walk) -> None:
    """The first declaration stands, the second is kept as evidence, and neither is an error."""
    judge = Judge(walk, COUNTS % 2)
    done = "echo line >> out.txt; truegreen done --reason finished || exit 9"
    toml = TOML.replace("echo line >> out.txt", done)
    got = walk.run("--config", settings(walk, toml, judge=judge.command), "--task", "work")
    assert (got.status, got.axes, got.task["rescued"]) == (0, ("exited", "succeeded"), False)
    assert got.task["claim"]["kind"] == "done"
    assert [refusal["code"] for refusal in got.task["refusals"]] == ["already_declared"]
    toml = TOML.replace("echo line >> out.txt", f"{done}; truegreen fail --reason no || exit 0")
    other = walk.run("--config", settings(walk, toml, judge=judge.command), "--task", "work")
    assert other.task["claim"]["kind"] == "done"


@pytest.mark.parametrize("claim", ["fail --reason hard", "blocked --reason stuck"])
def test_an_agent_that_gave_up_is_not_sent_back(walk: Walk, claim: str) -> None:
    judge = Judge(walk, COUNTS % 3)
    toml = TOML.replace("echo line >> out.txt", f"echo line >> out.txt; truegreen {claim}")
    got = walk.run("--config", settings(walk, toml, judge=judge.command), "--task", "work")
    assert [shown for shown in judge.shown if shown["question"] == "goal"] == []
    assert got.task["budget"]["reentries"] == [0, 4]
    assert (walk.folder / "out.txt").read_text() == "line\n"


@pytest.mark.criterion("F34")
def test_a_client_is_resumed_in_its_own_conversation(walk: Walk) -> None:
    """A scripted client that writes its arguments down and a line at each call."""
    before = (
        "open('out.txt', 'a').write('line\\n');"
        "open('calls.txt', 'a').write(' '.join(sys.argv[1:]).replace('\\n', ' ') + '\\n')"
    )
    judge = Judge(walk, COUNTS % 2)
    toml = "[evaluators.goal]\ncommand = <judge>\ngoal_check = true\n"
    config = ("--config", settings(walk, toml, judge=judge.command))
    client = walk.claude(init(), said("x"), result("done"), before=before)
    got = walk.run(*config, "--evaluator", "goal", "--gate", "test -s out.txt", *client)
    assert (got.status, got.axes) == (0, ("exited", "succeeded"))
    first, second = (walk.folder / "calls.txt").read_text().splitlines()
    assert "--resume" not in first
    assert f"--resume {init()['session_id']}" in second
    assert "It is not done yet: - goal: 1 lines" in second
    assert got.latest["usage"]["turns"] == 2
    assert got.latest["usage"]["cost_usd"] == pytest.approx(0.08)


def test_caps_hold_over_all_stints_of_a_run(walk: Walk) -> None:
    """Each call takes two turns; the third would be beyond the cap."""
    judge = Judge(walk, "print(json.dumps({'done': False, 'reason': 'no'}))")
    toml = "[evaluators.goal]\ncommand = <judge>\ngoal_check = true\n"
    config = ("--config", settings(walk, toml, judge=judge.command), "--cap", "cost_usd=0.05")
    client = walk.claude(init(), result("done"))
    got = walk.run(*config, "--evaluator", "goal", "--max-attempts", "1", *client)
    assert got.exit == ("max_iterations", "cost_cap")
    assert got.task["budget"]["reentries"][0] == 1
