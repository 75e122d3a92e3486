"""One task per folder, through the installed command: refused, waited for, queued, checked out."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faces.conftest import SCRIPT
from tests.walk.conftest import Walk, shell, until

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def at_work(walk: Walk, seconds: float = 30) -> Iterator[str]:
    """A task that works in the folder of the test until `go` is there; its id."""
    command = (
        f"touch up; for n in $(seq {seconds * 10:.0f}); do test -f go && break; sleep 0.1; done"
    )
    first = walk.start("--gate", "test -f up", *shell(command))
    try:
        until((walk.folder / "up").exists)
        yield running(walk)
    finally:
        (walk.folder / "go").touch()
        first.communicate()


def running(walk: Walk) -> str:
    (task,) = walk.tg("list", "--status", "running", "--json").json()["tasks"]
    return str(task["id"])


def tasks(walk: Walk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = walk.tg("list", "--json").json()["tasks"]
    return found


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    return subprocess.run(
        ["git", "-C", folder, *names, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_run_in_a_folder_in_use_is_refused_before_it_is_a_task(walk: Walk) -> None:
    with at_work(walk) as first:
        below = walk.folder / "below"
        below.mkdir()
        for folder in (walk.folder, below, walk.folder.parent):
            got = walk.tg("run", "--cwd", folder, "--gate", "test -f x", *shell("touch x"))
            assert got.status == 2
            assert f"{first} works in {walk.folder}; a folder has one task at a time" in got.err
            assert "--wait-for-folder, or use --worktree" in got.err
        beside = walk.folder.with_name("work2")
        beside.mkdir()
        got = walk.tg("run", "--cwd", beside, "--gate", "test -f x", *shell("touch x"))
        assert got.status == 0, got.err
        error = walk.tg("run", "--json", *shell("true")).error("folder_in_use")
        assert error["details"] == {"task": first, "folder": str(walk.folder)}
        assert len(tasks(walk)) == 2, "what was refused is no task"


def test_a_run_waits_for_the_folder_and_is_judged_by_its_own_work_alone(walk: Walk) -> None:
    with at_work(walk) as first:
        waits = walk.start("--wait-for-folder", "--gate", "test -f mine", *shell("test -f go"))
        until(lambda: len(tasks(walk)) == 2)
        mine = next(each["id"] for each in tasks(walk) if each["id"] != first)
        assert waits.poll() is None
        (walk.folder / "mine").touch()  # as if the first one had made it
        (walk.folder / "go").touch()
        _, err = waits.communicate(timeout=30)
    assert f"waits  for {walk.folder}: {first} works there" in err.decode()
    assert waits.returncode == 3, "passed before the agent: that proves nothing"
    assert walk.tg("show", mine, "--json").json()["task_status"] == "needs_review"


def test_who_interrupts_the_wait_cancels_the_task(walk: Walk) -> None:
    with at_work(walk) as first:
        waits = walk.start("--wait-for-folder", "--gate", "test -f x", *shell("touch x"))
        until(lambda: len(tasks(walk)) == 2)
        mine = next(each["id"] for each in tasks(walk) if each["id"] != first)
        time.sleep(0.5)
        waits.send_signal(signal.SIGINT)
        waits.communicate(timeout=20)
        assert waits.returncode == 130
        assert walk.tg("show", mine, "--json").json()["task_status"] == "canceled"
    assert not (walk.folder / "x").exists()


def test_on_a_terminal_it_is_asked_whether_to_wait(walk: Walk) -> None:
    with at_work(walk) as first:
        ours, theirs = pty.openpty()
        words = [str(SCRIPT), "run", "--gate", "test -f x", *shell("touch x")]
        process = subprocess.Popen(
            words, stdin=theirs, stderr=theirs, env=walk.environ(), cwd=walk.folder
        )
        os.close(theirs)
        asked = b""
        while b"[Y/n]" not in asked:
            asked += os.read(ours, 1000)
        assert f"{first} works in {walk.folder}".encode() in asked
        os.write(ours, b"n\n")
        assert process.wait(timeout=20) == 2
        os.close(ours)
        assert len(tasks(walk)) == 1


def test_attempt_and_the_queue_take_turns_and_why_names_the_task(walk: Walk) -> None:
    queued = walk.tg("add", "--json", "--gate", "test -f x", *shell("touch x")).json()["id"]
    with at_work(walk) as first:
        refused = walk.tg("attempt", queued)
        assert (refused.status, first in refused.err) == (2, True)
        why = walk.tg("why", queued)
        assert why.status == 3
        assert why.out.startswith(f"folder  works in {walk.folder}: {first};")
        (shown,) = (each for each in tasks(walk) if each["id"] == queued)
        assert shown["hold"] == "folder"
        assert "another task works in its folder" in walk.tg("list").out
        once = walk.tg("scheduler", "--once", "--json").json()
        assert once["counts"] == {}
    assert walk.tg("why", queued).status == 0
    assert walk.tg("scheduler", "--once", "--json").json()["counts"] == {"succeeded": 1}


def test_queued_tasks_of_a_plain_folder_are_carried_out_one_after_another(walk: Walk) -> None:
    for number in range(3):
        alone = f"mkdir here || touch together; sleep 0.5; rmdir here; touch out{number}"
        walk.tg("add", "--gate", f"test -f out{number}", *shell(alone))
    done = walk.tg("scheduler", "--once", "--seats", "3", "--json")
    assert done.json()["counts"] == {"succeeded": 3}
    assert not (walk.folder / "together").exists()


def test_a_retry_after_the_work_of_another_task_is_refused(walk: Walk) -> None:
    first = walk.run("--gate", "test -f x", "--max-attempts", "3", *shell("true"))
    mine = first.task["id"]
    assert walk.tg("run", "--gate", "test -f x", *shell("touch x")).status == 0
    again = walk.tg("retry", mine, "--reason", "once more", "--now", "--json")
    run = again.json()["runs"][-1]
    assert (again.status, run["exit_detail"]) == (5, "config_invalid")
    assert "results can't be told apart" in run["facts"]["message"]


# -- checkouts of their own -----------------------------------------------------------------------


def test_queued_tasks_of_a_repository_work_beside_each_other_and_leave_branches(
    git_walk: Walk,
) -> None:
    folder = git_walk.folder
    (folder / "draft").write_text("in no commit\n")
    ids = [
        git_walk.tg(
            *("add", "--json", "--title", f"make {name}", "--gate", f"test -f {name}"),
            *shell(f"test -f draft && sleep 1 && echo work > {name} && git add . && git log -1"),
        ).json()["id"]
        for name in ("one", "two")
    ]
    done = git_walk.tg("scheduler", "--once", "--seats", "2")
    assert "2 succeeded" in done.out, done.err
    assert git(folder, "status", "--short") == "?? draft", "the folder is as it was"
    for task, name, other in ((ids[0], "one", "two"), (ids[1], "two", "one")):
        branch = f"truegreen/{task}"
        assert git(folder, "show", f"{branch}:{name}") == "work"
        assert git(folder, "show", f"{branch}:draft") == "in no commit"
        assert other not in git(folder, "ls-tree", "--name-only", branch).split()
        subjects = git(folder, "log", "--format=%s", f"HEAD..{branch}").splitlines()
        assert subjects == [
            f"make {name}",
            f"Changes that were in no commit when {task} started",
        ]
        facts = git_walk.tg("show", task, "--json").json()["runs"][-1]["facts"]
        assert (facts["branch"], facts["branch_commit"]) == (
            branch,
            git(folder, "rev-parse", branch),
        )
    git(folder, "fsck", "--full", "--strict")


def test_run_worktree_names_its_branch_in_the_line_of_the_task(git_walk: Walk) -> None:
    with at_work(git_walk):
        got = git_walk.tg(
            "run", "--worktree", "--gate", "test -f x", *shell("test ! -f up && touch x")
        )
        assert got.status == 0, got.err
        (task,) = [line for line in got.out.splitlines() if line.startswith("task ")]
        assert task.split(" · ")[-1].startswith("branch truegreen/tsk_")
        assert "starts from its last commit" in got.err
    assert not (git_walk.folder / "x").exists()


def test_here_and_settings_keep_a_task_in_its_folder(git_walk: Walk) -> None:
    made = git_walk.tg("add", "--json", "--here", "--gate", "test -f x", *shell("touch x"))
    assert git_walk.tg("attempt", made.json()["id"]).status == 0
    assert (git_walk.folder / "x").exists()
    (git_walk.folder / "truegreen.toml").write_text(
        '[tasks.stay]\ncommand = ["touch", "y"]\nworktree = false\n'
    )
    made = git_walk.tg("add", "--json", "--task", "stay", "--gate", "test -f y")
    assert git_walk.tg("attempt", made.json()["id"]).status == 0
    assert (git_walk.folder / "y").exists()
    assert git(git_walk.folder, "branch", "--list", "truegreen/*") == ""


def test_a_worktree_needs_a_repository(walk: Walk) -> None:
    for verb in ("run", "add"):
        refused = walk.tg(verb, "--worktree", "--json", *shell("true")).error("invalid_input")
        assert "lies in no git repository" in str(refused["message"])


def test_a_repository_without_a_commit_is_checked_out_as_it_is(walk: Walk) -> None:
    git(walk.folder, "init", "-q")
    (walk.folder / "a").write_text("a")
    got = walk.tg(
        "run", "--worktree", "--json", "--gate", "test -f x", *shell("test -f a && touch x")
    )
    assert got.status == 0
    branch = got.json()["runs"][-1]["facts"]["branch"]
    assert git(walk.folder, "ls-tree", "--name-only", branch).split() == ["a", "x"]


def test_a_second_attempt_moves_its_branch_and_leaves_those_of_others_alone(
    git_walk: Walk,
) -> None:
    folder = git_walk.folder
    command = "test -f half && touch whole || touch half"
    words = ("--worktree", "--max-attempts", "2", "--json", "--gate", "test -f whole")
    got = git_walk.tg("run", *words, *shell(command))
    runs = got.json()["runs"]
    assert (got.status, len(runs)) == (0, 2)
    branch = runs[-1]["facts"]["branch"]
    assert runs[0]["facts"]["branch"] == branch == f"truegreen/{got.json()['id']}"
    assert git(folder, "rev-parse", branch) == runs[1]["facts"]["branch_commit"]
    assert git(folder, "log", "--format=%s", f"HEAD..{branch}").count("\n") == 0


def test_an_agent_that_changes_nothing_leaves_no_branch(git_walk: Walk) -> None:
    got = git_walk.tg("run", "--worktree", "--json", "--gate", "test -f x", *shell("true"))
    assert got.status == 1
    assert "branch" not in json.dumps(got.json()["runs"][-1]["facts"])
    assert git(git_walk.folder, "branch", "--list", "truegreen/*") == ""


def test_gates_and_agents_find_the_environment_that_git_ignores(git_walk: Walk) -> None:
    folder = git_walk.folder
    (folder / ".gitignore").write_text(".venv\n__pycache__\n")
    (folder / "lib").mkdir()
    (folder / "lib" / "thing.py").write_text("VALUE = 1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "lib")
    subprocess.run(["python3", "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    (site,) = folder.glob(".venv/lib/python*/site-packages")
    (site / "thing.pth").write_text(f"{folder}/lib\n")
    script = folder / ".venv" / "bin" / "check"
    script.write_text(f"#!{folder}/.venv/bin/python\nimport thing\nassert thing.VALUE == 2\n")
    script.chmod(0o755)
    change = "echo 'VALUE = 2' > lib/thing.py; .venv/bin/check && touch .venv/mine"
    got = git_walk.tg("run", "--worktree", "--json", "--gate", ".venv/bin/check", *shell(change))
    assert got.status == 0, got.out
    assert (folder / "lib" / "thing.py").read_text() == "VALUE = 1\n"
    assert not (folder / ".venv" / "mine").exists(), "the agent's environment is a copy"
    branch = got.json()["runs"][-1]["facts"]["branch"]
    assert git(folder, "diff", "--name-only", f"HEAD..{branch}") == "lib/thing.py"
