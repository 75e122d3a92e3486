"""What an agent moves about between attempts decides nothing: the ground is taken once."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.faces.conftest import SCRIPT
from tests.walk.conftest import Walk, init, own, result, said, shell, until

ONCE = ("--max-attempts", "1")
GATE = ("--gate", "python3 -m unittest discover -s tests -t .")
TEST = (
    "import unittest, code_\nclass T(unittest.TestCase):\n"
    "    def test_f(self): self.assertEqual(code_.f(), 2)\n"
)
FORGED = "import unittest\nclass T(unittest.TestCase):\n    def test_f(self): pass\n"


def project(folder: Path) -> None:
    """A function that is wrong, and a test that says so."""
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "__init__.py").touch()
    (folder / "code_.py").write_text("def f(): return 1\n")
    (folder / "tests" / "test_f.py").write_text(TEST)


def forge(more: str = "true") -> list[str]:
    text = FORGED.replace("\n", "\\n")
    return shell(f"printf '{text}' > tests/test_f.py; {more}")


def commit(walk: Walk) -> None:
    git = "git -c user.name=t -c user.email=t@example.org"
    subprocess.run(
        ["sh", "-c", f"git init -q -b main . && git add -A && {git} commit -qm first"],
        cwd=walk.folder,
        check=True,
    )


@pytest.mark.criterion("E05", "E07")
@pytest.mark.parametrize("trick", ["[ -e .git ] || git init -q .", "mv ../.git ../../.git; true"])
def test_a_second_attempt_stands_on_the_first_ones_ground(walk: Walk, trick: str) -> None:
    project(walk.folder / "pkg")
    commit(walk)
    agent = forge(trick)
    got = walk.run(*GATE, "--protect", "tests/**", "--cwd", "pkg", "--max-attempts", "3", *agent)
    assert (got.status, got.task["task_status"]) == (1, "failed")
    assert len(got.task["runs"]) == 3


@pytest.mark.criterion("E07")
def test_protected_paths_are_those_of_the_folder_that_the_command_was_given_in(walk: Walk) -> None:
    project(walk.folder / "pkg")
    commit(walk)
    got = walk.run(*GATE, "--protect", "tests/**", "--cwd", "pkg", *ONCE, *forge())
    assert (got.status, got.cell) == (1, "silent_failure")
    reason = got.task["verdict"]["reason"]
    assert "passes only with the agent's edits to pkg/tests/test_f.py" in reason


def test_a_later_attempt_is_compared_with_what_was_there_before_the_first(walk: Walk) -> None:
    """What the first attempt left beside the base does not speak about the base."""
    (walk.folder / "truegreen.toml").write_text(
        "[gates.two]\ncommand = ['grep', '-q', 'two', 'out.txt']\nnetwork = true\n"
    )
    agent = shell("test -f out.txt && echo two >> out.txt || echo one > out.txt")
    got = walk.run("--gate", "two", "--max-attempts", "2", *agent)
    assert (got.status, len(got.task["runs"])) == (0, 2), got.task["verdict"]["reason"]
    before = [
        [f["outcome"] for f in run["verdict"]["findings"] if f["phase"] == "baseline"]
        for run in got.task["runs"]
    ]
    assert before == [["failed"], ["failed"]]


@pytest.mark.criterion("E05")
def test_a_gate_runs_where_the_task_was_given_and_not_where_a_link_leads(walk: Walk) -> None:
    project(walk.folder / "pkg")
    commit(walk)
    text = FORGED.replace("\n", "\\n")
    agent = shell(
        "cd ..; mkdir -p fake/tests; touch fake/tests/__init__.py;"
        f" printf '{text}' > fake/tests/test_f.py; rm -rf pkg; ln -s fake pkg"
    )
    got = walk.run(*GATE, "--protect", "tests/**", "--cwd", "pkg", *ONCE, *agent)
    assert got.status != 0
    assert got.task["task_status"] != "succeeded"


@pytest.mark.criterion("E05")
def test_a_persons_retry_does_not_bless_what_the_agent_did_to_the_tests(walk: Walk) -> None:
    project(walk.folder)
    commit(walk)
    got = walk.run(*GATE, "--protect", "tests/**", *ONCE, *forge())
    assert got.status == 1
    task = got.task["id"]
    walk.tg("retry", task, "--reason", "again", "--more-attempts", "1")
    assert walk.tg("attempt", task).status == 1


@pytest.mark.criterion("E30")
def test_a_remote_that_the_agent_made_up_was_never_pushed_to(walk: Walk) -> None:
    real = walk.folder.parent / "real.git"
    subprocess.run(["git", "init", "-q", "--bare", real], check=True)
    (walk.folder / "truegreen.toml").write_text("[gates.pushed]\nkind = 'git'\npushed = true\n")
    commit(walk)
    subprocess.run(["git", "remote", "add", "origin", real], cwd=walk.folder, check=True)
    who = "git -c user.name=a -c user.email=a@example.org"
    agent = shell(
        f"git init -q --bare {walk.folder.parent}/fake.git; date +%N > x; git add -A;"
        f" {who} commit -qm work; git remote set-url origin {walk.folder.parent}/fake.git;"
        " git push -q origin HEAD"
    )
    got = walk.run("--gate", "pushed", "--max-attempts", "2", *agent)
    assert (got.status, got.task["task_status"]) == (1, "failed")


def test_a_glob_that_protects_nothing_is_said(walk: Walk) -> None:
    project(walk.folder)
    answer = walk.tg("run", "--gate", "true", "--protect", "test/**", *shell("true"))
    assert "! --protect test/**: nothing of that name is there now" in answer.err
    assert walk.tg("run", "--gate", "true", "--protect", "../x", *shell("true")).status == 2


def test_half_a_character_in_a_stream_is_only_a_box(walk: Walk) -> None:
    lines = init(), said("fine \ud83d"), result("done \ud83d")
    client = walk.claude(*lines, before="open('made', 'w')")
    got = walk.run("--gate", "test -f made", *client)
    assert got.status == 0
    assert got.task["claim"]["reason"].startswith("done")


def test_a_door_that_the_agent_replaced_is_no_accident_of_ours(walk: Walk) -> None:
    agent = shell("rm -f $TRUEGREEN_SOCKET; mkdir $TRUEGREEN_SOCKET; touch x")
    got = walk.run("--gate", "test -f x", *agent)
    assert (got.status, got.task["task_status"]) == (0, "succeeded")


def test_work_that_is_too_much_to_keep_is_our_trouble_and_no_usage_error(walk: Walk) -> None:
    got = walk.run("--gate", "true", *shell("truncate -s 5G big"))
    assert (got.status, got.exit) == (5, ("fatal_error", "config_invalid"))
    assert len(got.task["runs"]) == 1


def test_a_task_that_is_canceled_while_it_is_checked_ends_so(walk: Walk) -> None:
    started = walk.start("--gate", "test -f x && sleep 62", *shell("touch x"))
    ledger = walk.ledger()

    until(lambda: ledger.page().tasks and ledger.page().tasks[0].status == "pending_eval")
    walk.tg("cancel", ledger.page().tasks[0].id)
    out, err = started.communicate(timeout=20)
    assert started.returncode == 6, (out, err)


def test_a_task_that_is_canceled_while_its_base_is_checked_starts_no_agent(walk: Walk) -> None:
    started = walk.start("--gate", "sleep 62", *shell("touch x"))
    ledger = walk.ledger()
    until(lambda: ledger.page().tasks and ledger.page().tasks[0].status == "running")
    time.sleep(1)
    walk.tg("cancel", ledger.page().tasks[0].id)
    out, err = started.communicate(timeout=20)
    assert started.returncode == 6, (out, err)
    assert not (walk.folder / "x").exists()


def test_nothing_is_left_of_the_rooms_of_gates(walk: Walk) -> None:
    got = walk.run("--gate", "true", *shell("touch x"))
    state = Path(got.latest["facts"]["log"]).parents[2]
    assert not any((state / "rooms").iterdir())


@pytest.mark.criterion("E31")
def test_what_ignored_itself_before_the_agent_is_no_work_of_its(git_walk: Walk) -> None:
    cache = git_walk.folder / ".pytest_cache"
    cache.mkdir()
    (cache / ".gitignore").write_text("*\n")
    (cache / "README.md").write_text("a cache\n")
    got = git_walk.run("--gate", "true", *ONCE, *shell("false"))
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert "no sign of work" in got.task["verdict"]["reason"]


def test_tests_that_nothing_protects_and_the_agent_rewrote_are_said(walk: Walk) -> None:
    project(walk.folder)
    commit(walk)
    got = walk.run(*GATE, *ONCE, *forge())
    assert (got.status, got.cell) == (1, "silent_failure")
    reason = got.task["verdict"]["reason"]
    assert "passes only with the agent's edits to tests/test_f.py" in reason
    (walk.folder / "tests" / "test_f.py").write_text(TEST)
    got = walk.run(*GATE, *ONCE, "--may-edit", "tests/**", *forge())
    assert (got.status, got.task["verdict"]["level"]) == (3, "A1")
    assert "tests/test_f.py" in got.task["verdict"]["reason"]


def test_a_paused_run_can_be_interrupted(walk: Walk) -> None:
    agent = shell(own("checkpoint", "deploy to staging"))
    started = walk.start("--mode", "assisted", "--gate", "true", *agent)
    ledger = walk.ledger()
    until(lambda: ledger.page().tasks and ledger.page().tasks[0].status == "awaiting_approval")
    time.sleep(0.5)
    started.terminate()
    _, err = started.communicate(timeout=20)
    assert started.returncode == 130
    assert b"waits for approval: deploy to staging" in err
    assert b"stopping; once more kills it at once" in err


def test_a_terminal_without_a_size_hangs_nobody(walk: Walk) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [SCRIPT, "run", "--gate", "test -f made", *shell("sleep 0.5; touch made")],
        env=walk.environ(TERM="xterm"),
        cwd=walk.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as started:
        os.close(theirs)
        assert started.wait(20) == 0
    os.close(ours)


def test_mistakes_are_said_before_an_agent_costs_anything(walk: Walk) -> None:
    (walk.folder / "truegreen.toml").write_text(
        "[gates.tests]\nkind = 'junit'\ncommand = ['x']\nreport = '../r.xml'\n"
        "[gates.held]\nkind = 'held_out'\ncommand = ['x']\ndata = 'cases'\n"
        "[agents.a]\nadapter = 'claude'\ncommand = ['x']\n"
    )
    mark = shell("touch ran")
    for words, hint in (
        (["--gate", "tets", *mark], "did you mean tests?"),
        (["--gate", "tests", *mark], "gates.tests.report: ../r.xml leads out"),
        (["--gate", "held", *mark], "lies in the workspace, where the agent could read it"),
        (["--agent", "a", "--gate", "true"], "no adapter"),
        (["--gate", "true"], "There is nothing to run"),
    ):
        answer = walk.tg("run", *words)
        assert (answer.status, hint in answer.err) == (2, True), answer
    assert not (walk.folder / "ran").exists()
    assert walk.ledger().page().tasks == []


def test_a_task_waits_for_what_it_depends_on(walk: Walk) -> None:
    made = ("--gate", "test -f made", "--", "touch", "made")
    first = walk.tg("add", "--json", *made).json()["id"]
    words = ("--depends-on", first[:12], "--gate", "test -f more", "--", "touch", "more")
    assert walk.tg("add", "--depends-on", "tsk_zzz", *words[2:]).status == 2
    second = walk.tg("add", "--json", *words).json()["id"]
    assert walk.tg("attempt", second).status == 2
    assert walk.tg("attempt", first).status == 0
    assert walk.tg("attempt", second).status == 0


@pytest.mark.parametrize("words", [("add",), ("run", "--no-wait")])
def test_what_was_just_ordered_has_every_key_of_a_task(walk: Walk, words: tuple[str, ...]) -> None:
    made = walk.tg(*words, "--json", "--gate", "true", "--", "true").json()
    assert walk.tg("wait", made["id"], "--timeout", "0" if words == ("add",) else "30").status >= 0
    assert made.keys() == walk.tg("show", made["id"], "--json").json().keys()
    assert {"claim", "runs", "agents", "next", "budget", "verdict"} <= made.keys()


def test_an_unknown_word_for_what_is_in_the_way_is_still_a_block(walk: Walk) -> None:
    agent = shell(own("blocked", "--reason", "no registry", "--detail", "foo"))
    got = walk.run("--gate", "false", *ONCE, *agent)
    assert (got.status, got.exit) == (3, ("blocked", "input_needed"))
    assert got.task["claim"]["extra"] == {"detail": "foo"}


def test_a_gate_can_look_at_what_a_run_left(walk: Walk) -> None:
    got = walk.run("--gate", "true", *shell("touch x"))
    (walk.folder / "x").unlink()
    assert walk.tg("gate", "test -f x").status == 1
    assert walk.tg("gate", "test -f x", "--tree", got.latest["id"]).status == 0


@pytest.mark.criterion("H10")
def test_a_run_whose_time_is_nearly_over_is_warned_of_and_ended_by_the_host(walk: Walk) -> None:
    answer = walk.tg("run", "--gate", "false", "--cap", "time=2s", *shell("sleep 30"))
    assert answer.status == 4
    assert answer.err.count("80% of its time (2s) is over") == 1


@pytest.mark.criterion("H14")
def test_a_later_attempt_works_where_the_first_one_did_or_not_at_all(walk: Walk) -> None:
    pwd = shell("pwd > where; exit 1")
    task = walk.tg("add", "--json", "--gate", "false", "--max-attempts", "2", *pwd).json()["id"]
    elsewhere = walk.folder.parent / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [SCRIPT, "attempt", task],
        cwd=elsewhere,
        env=walk.environ(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert (walk.folder / "where").read_text() == f"{walk.folder}\n"
    assert not any(elsewhere.iterdir())


@pytest.mark.criterion("H16")
def test_nothing_is_needed_but_git_and_what_the_agent_itself_calls(walk: Walk) -> None:
    for program in ("sh", "touch", "test", "git", "bwrap"):
        found = shutil.which(program)
        if found:
            (walk.bin / program).symlink_to(found)
    got = walk.run("--gate", "test -f x", *shell("touch x"), PATH=str(walk.bin))
    assert (got.status, got.task["task_status"]) == (0, "succeeded")


def test_where_no_further_attempt_can_be_made_none_is_suggested(git_walk: Walk, tmp_path: Path):
    """The files from before the first attempt are in another state directory."""
    walk = git_walk
    task = walk.run("--gate", "test -f made", "--", "true").task["id"]
    elsewhere = str(tmp_path / "elsewhere")
    answer = walk.tg("retry", task, "--reason", "again", "--now", XDG_STATE_HOME=elsewhere)
    assert answer.status == 5
    assert "use the state directory of that attempt (XDG_STATE_HOME), or open a new task" in (
        answer.out
    )
    shown = walk.tg("show", task, "--json", XDG_STATE_HOME=elsewhere).json()
    assert (shown["exit_detail"], shown["next"]) == ("config_invalid", [f"truegreen show {task}"])
    assert "truegreen retry" not in answer.out + answer.err
    done = walk.tg("retry", task, "--reason", "where it began", "--now", "--json").json()
    assert done["runs"][-1]["exit_detail"] == "completed"
