"""People in the walk: an agent asks, somebody answers, and nothing else counts as an answer."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.walk.conftest import (
    Walk,
    answered,
    called,
    init,
    own,
    python,
    result,
    said,
    shell,
    until,
)
from truegreen.model import Mode, Move, TaskStatus
from truegreen.record.ledger.answers import Question

S = TaskStatus
ASK = own("checkpoint", "deploy")
DEPLOY = f"{ASK} && touch deployed"
ASSISTED = ("--mode", "assisted", "--gate", "test -f deployed")
AUTONOMOUS = ("--gate", "test -f deployed")


def status(walk: Walk) -> TaskStatus | None:
    """How the one task of the store stands."""
    tasks = walk.ledger().page().tasks
    return tasks[0].status if tasks else None


def the_task(walk: Walk, wanted: TaskStatus = S.AWAITING_APPROVAL) -> str:
    """The one task, as soon as it stands there."""
    ledger = walk.ledger()
    until(lambda: [task.status for task in ledger.page().tasks[:1]] == [wanted])
    return ledger.page().tasks[0].id


def events(walk: Walk, task: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = walk.tg("show", task, "--json").json()["events"]
    return told


@contextmanager
def under_way(walk: Walk, *words: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command that carries a task out while the test does something else."""
    with walk.beside(*words) as process:
        try:
            yield process
        finally:
            process.kill()


def is_still(beat: Path) -> bool:
    """Whether nobody writes there any more."""
    size = beat.stat().st_size
    time.sleep(0.5)
    return beat.stat().st_size == size


# --- assisted


@pytest.mark.criterion("D03", "D07", "B14")
def test_an_assisted_agent_is_held_with_its_clocks_until_a_person_says_yes(walk: Walk) -> None:
    caps = ("--cap", "time=4s,idle=1s")
    with under_way(walk, "run", *ASSISTED, *caps, *shell(DEPLOY)) as run:
        task = the_task(walk)
        waiting = walk.tg("wait", task, "--json")
        assert waiting.status == 3
        assert (waiting.json()["run_status"], waiting.json()["exit_reason"]) == ("paused", None)
        time.sleep(4.5)
        assert status(walk) is S.AWAITING_APPROVAL, "no cap runs while a person thinks"
        assert not (walk.folder / "deployed").exists()
        assert "approved: deploy" in walk.tg("approve", task, "--reason", "go").out
        run.communicate(timeout=30)
    assert run.returncode == 0
    asked, yes = (e for e in events(walk, task) if e["event"] in (Move.PAUSE, Move.RESUME))
    assert (asked["level"], asked["actor"].split(":")[0]) == ("info", "agent")
    assert (yes["actor"].split(":")[0], yes["reason"]) == ("operator", "go")
    assert asked["data"]["digest"] == yes["data"]["digest"] != ""


@pytest.mark.criterion("D03")
def test_a_no_ends_the_run_and_the_task_is_blocked(walk: Walk) -> None:
    with under_way(walk, "run", *ASSISTED, *shell(DEPLOY)) as run:
        task = the_task(walk)
        assert "rejected: not today" in walk.tg("reject", task, "--reason", "not today").out
        run.communicate(timeout=30)
    assert run.returncode == 3
    assert not (walk.folder / "deployed").exists()
    assert status(walk) is S.BLOCKED


# --- autonomous


@pytest.mark.criterion("D02", "D07", "C03")
def test_an_autonomous_agent_is_blocked_with_a_warning_and_all_of_it_is_dead(walk: Walk) -> None:
    beat = walk.folder / "beat"
    beats = f"setsid sh -c 'while :; do date >> {beat}; sleep 0.05; done' & sleep 0.3; {DEPLOY}"
    got = walk.run(*AUTONOMOUS, *shell(beats))
    assert (got.status, got.axes, got.exit) == (
        3,
        ("stopped", "blocked"),
        ("blocked", "approval_checkpoint"),
    )
    (warned,) = (e for e in got.task["events"] if e["level"] == "warn")
    assert (warned["event"], warned["to"], warned["reason"]) == ("block", "blocked", "deploy")
    assert is_still(beat)
    assert not (walk.folder / "deployed").exists()
    for verb in ("attempt", "approve"):
        assert walk.tg(verb, got.task["id"]).status == 2
    assert walk.tg("wait", got.task["id"]).status == 3
    assert status(walk) is S.BLOCKED, "nothing goes on by itself"


@pytest.mark.criterion("D05", "D07")
def test_in_another_mode_the_same_checkpoint_waits_instead(walk: Walk) -> None:
    task = walk.run(*AUTONOMOUS, *shell(DEPLOY)).task["id"]
    with under_way(walk, "unblock", task, "--mode", "assisted", "--now") as run:
        assert the_task(walk) == task
        assert not (walk.folder / "deployed").exists(), "changing the mode approves nothing"
        walk.tg("approve", task)
        run.communicate(timeout=30)
    assert run.returncode == 0
    (unblocked,) = (e for e in events(walk, task) if e["event"] == Move.UNBLOCK)
    assert unblocked["data"]["mode"] == Mode.ASSISTED
    assert unblocked["actor"].startswith("operator:")


@pytest.mark.criterion("D05")
def test_the_other_way_round_nothing_is_approved_either(walk: Walk) -> None:
    with under_way(walk, "run", *ASSISTED, *shell(DEPLOY)) as run:
        task = the_task(walk)
        walk.tg("reject", task, "--reason", "no")
        run.communicate(timeout=30)
    again = walk.tg("unblock", task, "--mode", "autonomous", "--now", "--json")
    assert (again.status, again.json()["task_status"]) == (3, "blocked")
    assert not (walk.folder / "deployed").exists()
    assert Move.RESUME not in [e["event"] for e in events(walk, task)]


# --- what changes after it was asked for


@pytest.mark.criterion("D08", "D07")
def test_a_change_after_the_question_voids_the_approval(walk: Walk) -> None:
    agent = f"(until test -f ../go; do sleep 0.05; done; echo evil > app.py) & {DEPLOY}"
    (walk.folder / "app.py").write_text("good\n")
    with under_way(walk, "run", *ASSISTED, *shell(agent)) as run:
        task = the_task(walk)
        first = question(walk, task)
        (walk.folder.parent / "go").touch()
        until(lambda: (walk.folder / "app.py").read_text() == "evil\n")
        assert walk.tg("approve", task, "--digest", first.digest).status == 0
        until(lambda: question(walk, task, first) != first)
        second = question(walk, task)
        assert not (walk.folder / "deployed").exists()
        assert walk.tg("approve", task, "--digest", first.digest).status == 2
        assert walk.tg("approve", task, "--digest", second.digest).status == 0
        _, err = run.communicate(timeout=30)
    assert run.returncode == 0
    assert b"! the approval is void, the work changed after it was asked for: deploy" in err
    (void,) = (e for e in events(walk, task) if "void" in e["data"])
    assert (void["event"], void["level"], void["to"]) == ("pause", "warn", "awaiting_approval")
    assert (void["data"]["void"], void["data"]["digest"]) == (first.digest, second.digest)


def question(walk: Walk, task: str, otherwise: Question | None = None) -> Question:
    """What the task waits for."""
    found = walk.ledger().question(task) or otherwise
    assert found is not None
    return found


# --- silence


@pytest.mark.criterion("D10")
def test_an_approval_that_nobody_gives_in_time_expires_into_blocked(walk: Walk) -> None:
    (walk.folder / "truegreen.toml").write_text('[defaults]\napproval_within = "1s"\n')
    got = walk.run(*ASSISTED, *shell(DEPLOY))
    assert (got.status, got.axes[1], got.exit) == (3, "blocked", ("blocked", "approval_expired"))
    last = got.task["events"][-1]
    assert (last["level"], last["reason"]) == ("warn", "nobody answered within 1s: deploy")
    assert not (walk.folder / "deployed").exists()
    assert walk.tg("approve", got.task["id"]).status == 2


@pytest.mark.criterion("D10", "H08")
def test_a_supervisor_that_dies_while_somebody_thinks_leaves_nothing_to_approve(
    walk: Walk,
) -> None:
    with under_way(walk, "run", *ASSISTED, *shell(DEPLOY)) as run:
        task = the_task(walk)
        run.kill()
        run.communicate(timeout=30)
    walk.tg("approve", task, "--json").error("not_running")
    document = walk.tg("show", task, "--json").json()
    assert (document["task_status"], document["exit_detail"]) == ("blocked", "approval_expired")
    assert Move.RESUME not in [e["event"] for e in document["events"]]
    assert not (walk.folder / "deployed").exists()


# --- an agent is nobody's person

BARE = "setsid env -i PATH=$PATH HOME=$HOME"


@pytest.mark.criterion("D06", "D09", "D07", "O01")
@pytest.mark.parametrize("stripped", [False, True], ids=["plain", "stripped"])
@pytest.mark.parametrize("isolation", ["jail", "reaper", "none"])
def test_an_agent_does_not_approve_itself(walk: Walk, isolation: str, stripped: bool) -> None:
    tried = walk.folder / "tried"
    before = BARE if stripped else ""
    acts = "; ".join(
        f"{before} {own(*words, '--store', walk.store)} $TRUEGREEN_TASK {more} >>tried 2>&1;"
        " echo $? >>tried"
        for words, more in ((("approve",), ""), (("reject",), "--reason x"))
    )
    wait = "until test -f ../go; do sleep 0.05; done"
    agent = f"{ASK} & asker=$!; {wait}; {acts}; touch tried.all; wait $asker && touch deployed"
    options = (*ASSISTED, "--isolation", isolation)
    with under_way(walk, "run", *options, *shell(agent)) as run:
        task = the_task(walk)
        (walk.folder.parent / "go").touch()
        until((walk.folder / "tried.all").exists)
        lines = tried.read_text().splitlines()
        assert lines.count("0") == 0, lines
        if isolation != "jail" or not stripped:
            assert len([line for line in lines if "this is inside run_" in line]) == 2, lines
        assert status(walk) is S.AWAITING_APPROVAL
        walk.tg("reject", task, "--reason", "no")
        run.communicate(timeout=30)
    assert [e["event"] for e in events(walk, task)].count(Move.RESUME) == 0
    assert not (walk.folder / "deployed").exists()


@pytest.mark.criterion("D06", "D09")
def test_an_agent_neither_unblocks_nor_mints_nor_reviews(walk: Walk) -> None:
    blocked = own("blocked", "--reason", "stuck", "--detail", "refused")
    task = walk.run("--gate", "true", *shell(blocked)).task["id"]
    before = walk.ledger().task(task)
    assert before.status is S.BLOCKED
    acts = [
        own("unblock", task, "--store", walk.store),
        own("review", task, "--accept", "--reason", "fine", "--store", walk.store),
        own("token", "create", "--role", "operator", "--name", "x", "--store", walk.store),
    ]
    line = "; ".join(f"{BARE} {act} >>tried 2>&1; echo $? >>tried" for act in acts)
    walk.run("--isolation", "reaper", "--gate", "true", *shell(line))
    lines = (walk.folder / "tried").read_text().splitlines()
    assert [line for line in lines if line.isdigit()] == ["2", "2", "2"], lines
    assert walk.ledger().task(task) == before
    assert [token.role for token in walk.ledger().tokens() if token.role == "operator"] == []


# --- permissions


@pytest.mark.criterion("D13")
def test_a_permission_that_nobody_is_there_to_give_blocks_within_bounds(walk: Walk) -> None:
    denied = {"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "deploy"}}
    words = "This command requires approval"
    script = walk.claude(
        init(),
        called("deploy"),
        answered(words, is_error=True),
        said("All done!", 2),
        result("All done!", permission_denials=[denied]),
    )
    begun = time.monotonic()
    got = walk.run(*AUTONOMOUS, *script)
    assert time.monotonic() - begun < 30
    assert (got.status, got.axes) == (3, ("exited", "blocked"))
    assert got.exit == ("blocked", "permission_denied")
    assert got.task["budget"]["attempts"][0] == 0, "no retry will cure it"


# --- reviews


@pytest.mark.criterion("E19")
def test_unverified_work_is_accepted_by_a_person_and_says_so_for_ever(walk: Walk) -> None:
    got = walk.run(*shell("echo done > out.txt"))
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    task, digest = got.task["id"], got.task["verdict"]["digest"]
    words = ("review", task, "--accept", "--reason", "I read it")
    assert walk.tg(*words, "--digest", "f" * 40).status == 2
    answer = walk.tg(*words, "--digest", digest)
    assert answer.status == 0
    assert "no check has passed" in answer.out.splitlines()[0]
    document = walk.tg("show", task, "--json").json()
    assert document["task_status"] == "succeeded"
    (opinion,) = document["verdict"]["findings"]
    assert (opinion["kind"], opinion["reason"]) == ("person", "I read it")
    assert walk.tg("wait", task).status == 0


@pytest.mark.criterion("F28")
def test_a_person_fails_it_while_its_checks_are_under_way(walk: Walk) -> None:
    options = ("--max-attempts", "1", "--gate", "test -f x && sleep 20")
    with under_way(walk, "run", *options, *python("open('x', 'w'); exit(1)")) as run:
        task = the_task(walk, S.FAILED_PENDING_EVAL)
        answer = walk.tg("review", task, "--reject", "--reason", "enough", "--json")
        assert (answer.status, answer.json()["task_status"]) == (0, "failed")
        run.communicate(timeout=40)
    assert run.returncode == 1
    document = walk.tg("show", task, "--json").json()
    assert (document["task_status"], document["verdict"]["outcome"]) == ("failed", "failed")


@pytest.mark.criterion("E19")
def test_green_work_that_a_person_overturns_is_never_called_true_again(walk: Walk) -> None:
    got = walk.run("--gate", "test -f out.txt", *shell("date +%s%N > out.txt"))
    task = got.task["id"]
    walk.tg("review", task, "--reject", "--reason", "it broke production")
    answer = walk.tg("attempt", task, "--json")
    assert (answer.status, answer.json()["task_status"]) == (0, "succeeded")
    assert answer.json()["badges"] == ["falsified"]


# --- a no about work that checks had passed


@pytest.mark.criterion("F28")
def test_the_same_gate_on_the_same_tree_does_not_undo_a_persons_no(walk: Walk) -> None:
    task = walk.run("--gate", "test -f c", *shell("echo 3 > c")).task["id"]
    assert status(walk) is S.SUCCEEDED
    assert walk.tg("review", task, "--reject", "--reason", "it was wrong").status == 0
    walk.tg("attempt", task)
    told = walk.tg("show", task, "--json").json()
    first, second = (run["verdict"] for run in told["runs"])
    assert first["digest"] == second["digest"]
    assert (told["task_status"], second["outcome"]) == ("needs_review", "inconclusive")
    assert "rejected this very tree: it was wrong (1 gate passed: test)" in second["reason"]
    after = [found["outcome"] for found in second["findings"] if found["phase"] == "after"]
    assert after == ["passed"], "the gate's own word"
    walk.tg("verify", task)
    assert status(walk) is S.NEEDS_REVIEW
    assert walk.tg("review", task, "--accept", "--reason", "it was right").status == 0
    assert status(walk) is S.SUCCEEDED
