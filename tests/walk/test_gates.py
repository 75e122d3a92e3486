"""What a gate is worth, through the installed command: proof, tampering, flips, and words."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import SCRIPT
from tests.walk.conftest import Outcome, Walk, init, result, said, shell

CHECK = "#!/bin/sh\ngrep -qx right answer || { echo the answer is $(cat answer); exit 1; }\n"
ONCE = ("--max-attempts", "1")


def project(walk: Walk, **files: str) -> None:
    """A repository with a wrong answer, and a branch with the right one."""
    for name, text in {"answer": "wrong\n", "check.sh": CHECK, **files}.items():
        (walk.folder / name).write_text(text)
    (walk.folder / "check.sh").chmod(0o755)
    git = "git -c user.name=t -c user.email=t@example.org"
    script = (
        f"git init -q -b main . && git add -A && {git} commit -qm wrong && git checkout -qb good"
        f" && echo right > answer && {git} commit -qam right && git checkout -q main"
    )
    subprocess.run(["sh", "-c", script], cwd=walk.folder, check=True)


def proof(walk: Walk, *words: str) -> tuple[int, dict[str, Any]]:
    answer = walk.tg("gate", "test", "--json", *words)
    return answer.status, answer.json()


def finding(got: Outcome, check: str = "check.sh") -> dict[str, Any]:
    found: list[dict[str, Any]] = got.latest["verdict"]["findings"]
    return next(f for f in reversed(found) if f["check"] == check)


# -- proof that a gate is one


@pytest.mark.criterion("E15")
def test_a_gate_is_proven_by_going_red_without_the_work_and_green_with_it(walk: Walk) -> None:
    project(walk)
    status, told = proof(walk, "./check.sh", "--good", "good")
    assert (status, told["proven"], told["goes_red"], told["goes_green"]) == (0, True, True, True)
    assert {t["trial"]: t["finding"]["outcome"] for t in told["trials"]} == {
        "nothing done": "failed",
        "seeded fault": "failed",
        "good": "passed",
    }
    assert told["level"] == "A2"
    assert told["unproven"]


@pytest.mark.criterion("E15")
@pytest.mark.parametrize("gate", ["true", "echo 212 passed", "test -f check.sh"])
def test_a_gate_that_passes_its_negative_control_is_refused(walk: Walk, gate: str) -> None:
    project(walk)
    status, told = proof(walk, gate)
    assert (status, told["proven"]) == (1, False)
    assert "passed on a tree without the work" in told["reason"]


def test_a_gate_that_never_passes_is_no_gate_either(walk: Walk) -> None:
    project(walk)
    status, told = proof(walk, "false", "--good", "good")
    assert (status, told["goes_green"]) == (1, False)


def test_a_gate_without_an_answer_proves_nothing(walk: Walk) -> None:
    project(walk)
    assert proof(walk, "no-such-program at all")[0] == 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["test", "true", "--good", "nowhere"], "is no run, task, commit, branch or tag"),
        (["test", "true", "--tree", "good"], "--tree without it"),
        (["true", "--good", "good"], "go with `gate test`"),
        (["some", "thing"], "quote a command"),
    ],
)
def test_words_that_make_no_sense_are_refused(walk: Walk, words: list[str], message: str) -> None:
    project(walk)
    answer = walk.tg("gate", *words)
    assert answer.status == 2
    assert message in answer.err


def test_a_gate_looks_at_a_commit_without_touching_the_workspace(walk: Walk) -> None:
    project(walk)
    assert walk.tg("gate", "./check.sh", "--tree", "good").status == 0
    assert walk.tg("gate", "./check.sh").status == 1
    assert (walk.folder / "answer").read_text() == "wrong\n"


# -- tampering


@pytest.mark.criterion("E07", "E05")
@pytest.mark.parametrize(
    ("policy", "status", "level"), [("restore", 0, "A2"), ("fail", 1, "A2"), ("allow", 3, "A1")]
)
def test_protected_files_that_were_changed_are_shown_with_a_diff(
    walk: Walk, policy: str, status: int, level: str
) -> None:
    project(walk, **{
        "expected": "x\n",
        "truegreen.toml": '[gates.check]\ncommand = ["./check.sh"]\nprotect = ["expected"]\n'
        f'tampering = "{policy}"\n',
    })  # fmt: skip
    agent = shell("echo right > answer; echo y > expected")
    got = walk.run("--gate", "check", *ONCE, *agent)
    assert got.status == status
    told = finding(got, "check")
    assert told["level"] == level
    assert told["evidence"]["tampered"] == ["changed expected"]
    assert "-x\n+y" in told["evidence"]["tampered_diff"]
    shown = walk.tg("show", got.task["id"]).out
    assert "check: protected files that the agent changed" in shown
    assert "    +y" in shown


def test_who_allows_changes_of_protected_files_may_ask_for_less(walk: Walk) -> None:
    project(walk, **{
        "expected": "x\n",
        "truegreen.toml": '[gates.check]\ncommand = ["./check.sh"]\nprotect = ["expected"]\n'
        'tampering = "allow"\n',
    })  # fmt: skip
    agent = shell("echo right > answer; echo y > expected")
    got = walk.run("--gate", "check", "--require", "A1", *agent)
    assert (got.status, got.task["verdict"]["level"]) == (0, "A1")


# -- flips


@pytest.mark.criterion("E27")
def test_pass_and_fail_on_the_same_tree_leave_the_task_to_a_person(
    walk: Walk, tmp_path: Path
) -> None:
    project(walk)
    switch = tmp_path / "switch"
    flips = tmp_path / "flips.sh"
    flips.write_text(f"#!/bin/sh\ntest -e {switch}\n")
    flips.chmod(0o755)
    got = walk.run("--gate", str(flips), *ONCE, *shell("echo right > answer"))
    assert got.status == 1
    switch.touch()
    again = walk.tg("retry", got.task["id"], "--reason", "again")
    assert again.status == 0, again
    walk.tg("attempt", got.task["id"])
    task = walk.tg("show", "--json", got.task["id"]).json()
    assert task["task_status"] == "needs_review"
    last = task["verdict"]["findings"][-1]
    assert last["evidence"]["flaky"]
    assert last["reason"].startswith("flaky: passed now, failed in an earlier run")


# -- levels in words


def test_every_level_is_shown_with_what_it_leaves_open(walk: Walk) -> None:
    project(walk)
    answer = walk.tg("run", "--gate", "./check.sh", *shell("echo right > answer"))
    assert "Level A2: the code could still cheat its own tests." in answer.err
    task = walk.tg("list", "--json").json()["tasks"][0]["id"]
    document = walk.tg("show", "--json", task).json()["verdict"]
    assert document["unproven"].startswith("the code could still cheat")
    assert document["findings"][-1]["unproven"] == document["unproven"]
    assert "Level A2: the code could" in walk.tg("show", task).out
    assert "Level A2: the code could" in walk.tg("gate", "./check.sh").out


# -- nothing that an agent can reach turns a gate off


OFF = {
    "a configuration without gates": "sed -i 's/.*command.*/command = [\"true\"]/' truegreen.toml",
    "a configuration of its home": "mkdir -p ~/.config && cp truegreen.toml ~/.config/",
    "variables in its profile": "echo 'export TRUEGREEN_GATE=off CI=0 SKIP=1' >> ~/.profile",
    "a file of variables": "echo TRUEGREEN_SKIP_GATES=1 > .env",
    "an answer in the tree": 'echo \'{"task_status": "succeeded"}\' > task-status.json',
    "words": "echo 'gate check passed'; echo TASK_COMPLETE",
    "the skip code": "exit 77",
    "a function for its shell": "echo 'grep() { true; }; export -f grep' >> ~/.bashrc",
}


@pytest.mark.criterion("E18", "E17")
@pytest.mark.parametrize("trick", OFF.values(), ids=OFF)
def test_nothing_in_reach_of_the_agent_disables_a_gate(walk: Walk, trick: str) -> None:
    config = '[gates.check]\ncommand = ["./check.sh"]\n'
    project(walk, **{"truegreen.toml": config})
    got = walk.run("--gate", "check", "--max-attempts", "2", *shell(trick))
    assert (got.status, got.task["task_status"]) == (1, "failed")
    assert {finding(got, "check")["outcome"]} == {"failed"}


@pytest.mark.criterion("E25")
def test_a_gate_in_a_git_hook_blocks_the_push_itself(walk: Walk, tmp_path: Path) -> None:
    project(walk)
    remote = tmp_path / "remote.git"
    hook = walk.folder / ".git" / "hooks" / "pre-push"
    hook.write_text(f"#!/bin/sh\nexec {SCRIPT} gate ./check.sh\n")
    hook.chmod(0o755)

    def git(*words: str) -> int:
        command = ["git", *words]
        done = subprocess.run(
            command, cwd=walk.folder, check=False, capture_output=True, env=walk.environ()
        )
        return done.returncode

    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    assert git("push", str(remote), "main") != 0
    assert git("ls-remote", "--exit-code", str(remote), "main") != 0
    git("checkout", "-q", "good")
    assert git("push", str(remote), "good") == 0
    assert git("ls-remote", "--exit-code", str(remote), "good") == 0


@pytest.mark.criterion("E04")
def test_a_client_that_ends_although_its_gate_refused_has_hit_a_cap(walk: Walk) -> None:
    project(walk)
    over = {"type": "system", "subtype": "notification", "key": "stop-hook-block-cap"}
    stream = [init(), said("all done"), over, result("all done")]
    got = walk.run("--gate", "./check.sh", *ONCE, *walk.claude(*stream))
    assert got.exit == ("max_iterations", "reentry_cap")
    assert (got.status, got.cell) == (4, "cap_hit")
    assert got.task["task_status"] not in {"succeeded", "queued"}
