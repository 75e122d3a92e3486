"""Every way a run can end has its reason, through the real runner: B04 and what hangs on it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import SCRIPT
from tests.record.lives import OPERATOR
from tests.walk.conftest import Outcome, Walk, init, own, python, result, said, shell, until
from truegreen.model import TaskStatus

ONCE = ("--max-attempts", "1")
THRICE = ("--max-attempts", "3")
SLEEP = "echo started; sleep 60"


def task_of(walk: Walk) -> str:
    """The one task of the store, as soon as it runs."""
    ledger = walk.ledger()
    until(lambda: ledger.page().tasks and ledger.page().tasks[0].run_status == "running")
    return ledger.page().tasks[0].id


def shown(walk: Walk, task: str) -> Outcome:
    return Outcome(0, walk.tg("show", "--json", task).json())


@pytest.mark.criterion("B04")
@pytest.mark.parametrize(
    ("agent", "status", "run_status", "exit_", "by"),
    [
        ("touch made", 0, "exited", ("done", "completed"), "agent"),
        ("exit 3", 3, "crashed", ("fatal_error", "agent_error"), "agent"),
        ("kill -TERM $$", 5, "crashed", ("fatal_error", "signaled"), "machine"),
        ("kill -9 $$", 5, "crashed", ("fatal_error", "signaled"), "machine"),
        (own("fail", "--reason", "no way"), 1, "exited", ("done", "declared_failure"), "agent"),
        (own("noop", "--reason", "nothing"), 3, "exited", ("done", "noop"), "agent"),
        (
            own("blocked", "--reason", "no registry", "--detail", "egress_denied"),
            3,
            "exited",
            ("blocked", "egress_denied"),
            "agent",
        ),
        (
            own("checkpoint", "merge"),
            3,
            "stopped",
            ("blocked", "approval_checkpoint"),
            "supervisor",
        ),
    ],
)
def test_each_exit_path_records_its_reason(
    walk: Walk, agent: str, status: int, run_status: str, exit_: tuple[str, str], by: str
) -> None:
    gate = "test -f made" if "made" in agent else "true"
    got = walk.run("--gate", gate, *ONCE, *shell(agent))
    assert (got.axes[0], got.exit, got.latest["ended_by"]) == (run_status, exit_, by)
    assert got.task["refusals"] == []
    assert got.status == status, got.task["verdict"]


@pytest.mark.parametrize("gates", [(), ("--gate", "true")], ids=["no gate", "a gate that passes"])
def test_an_agent_that_says_blocked_and_shows_no_work_is_blocked(
    walk: Walk, gates: tuple[str, ...]
) -> None:
    got = walk.run(*gates, *shell(own("blocked", "--reason", "no registry")))
    assert (got.status, got.axes, got.cell) == (3, ("exited", "blocked"), "blocked")
    assert got.exit == ("blocked", "input_needed")
    assert walk.tg("unblock", got.task["id"], "--json").json()["task_status"] == "queued"


@pytest.mark.criterion("B04", "I09")
def test_a_command_that_is_not_there_fails_once_with_a_sentence(walk: Walk) -> None:
    answer = walk.tg("run", "--gate", "true", "--", "no-such-agent", "-p", "x")
    assert answer.status == 5
    assert "'no-such-agent' is not on the PATH" in answer.out
    (task,) = walk.ledger().page().tasks
    assert (task.exit_detail, task.attempts, task.status) == ("launch_failed", 1, "failed")


def test_what_is_no_program_is_said_so(walk: Walk) -> None:
    (walk.folder / "notes").write_text("hello\n")
    (walk.folder / "notes").chmod(0o644)
    got = walk.run("--gate", "true", "--", "./notes")
    assert (got.status, got.exit) == (5, ("fatal_error", "launch_failed"))
    assert "not executable" in got.latest["facts"]["message"]
    got = walk.run("--gate", "true", "--", "./")
    assert "is a directory" in got.latest["facts"]["message"]


@pytest.mark.criterion("B04")
def test_a_canceled_run_is_ended_and_says_so(walk: Walk) -> None:
    started = walk.start("--gate", "true", *shell(SLEEP))
    task = task_of(walk)
    walk.tg("cancel", task)
    out, _ = started.communicate(timeout=20)
    assert started.returncode == 6
    got = shown(walk, task)
    assert (got.task["task_status"], got.exit) == ("canceled", ("user_cancelled", "canceled"))
    assert b"canceled" in out


@pytest.mark.criterion("B04", "G11", "G01")
def test_stop_force_terminates_and_nothing_of_it_lives_on(walk: Walk) -> None:
    marker = walk.folder / "beat"
    started = walk.start(
        "--gate", "true", *shell(f"while :; do date >> {marker}; sleep 0.05; done")
    )
    task = task_of(walk)
    until(marker.exists)
    answer = walk.tg("stop", task, "--force", "--json")
    assert answer.json()["outcome"] == "interrupted"
    started.communicate(timeout=20)
    assert started.returncode == 6
    silent(marker)
    assert shown(walk, task).exit == ("user_cancelled", "terminated")


@pytest.mark.criterion("B04", "G11", "B24")
def test_stop_ends_a_run_gracefully_and_names_who_asked(walk: Walk) -> None:
    agent = "trap 'echo bye > bye.txt; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    started = walk.start("--gate", "true", *shell(agent))
    task = task_of(walk)
    until(lambda: "up" in walk.tg("log", task).out)
    assert walk.tg("stop", task).status == 0
    started.communicate(timeout=20)
    got = shown(walk, task)
    assert (got.axes, got.exit) == (("stopped", "canceled"), ("user_cancelled", "stopped"))
    assert got.latest["ended_by"] == "operator"
    assert (walk.folder / "bye.txt").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_stops_its_agent_and_says_130(walk: Walk, number: int) -> None:
    marker = walk.folder / "beat"
    agent = f"while :; do date >> {marker}; sleep 0.05; done"
    started = walk.start("--gate", "true", *shell(agent))
    task = task_of(walk)
    until(marker.exists)
    started.send_signal(number)
    started.communicate(timeout=20)
    assert started.returncode == 130
    silent(marker)
    assert shown(walk, task).exit == ("user_cancelled", "stopped")


def test_a_second_interrupt_does_not_wait_for_an_agent_that_ignores_it(walk: Walk) -> None:
    agent = python(
        "import signal,time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"
    )
    started = walk.start("--gate", "true", *agent)
    task = task_of(walk)
    until(lambda: "up" in walk.tg("log", task).out)
    begun = time.monotonic()
    started.send_signal(signal.SIGINT)
    time.sleep(0.3)
    started.send_signal(signal.SIGINT)
    started.communicate(timeout=20)
    assert time.monotonic() - begun < 4
    assert started.returncode == 130


SLOW_GATE = "sleep 4; test -s out.txt"
"""It still runs when the signal comes, before the agent."""
LARGE = 1 << 28
WRITES = "echo work > out.txt; touch {}"


def in_baseline(walk: Walk, tmp_path: Path, *words: str) -> subprocess.Popen[bytes]:
    """A `run` that asks its gate about the base; its agent would leave `acted`."""
    options = ("--gate", SLOW_GATE, *words, *shell(WRITES.format(tmp_path / "acted")))
    started = walk.start(*options)
    ledger = walk.ledger()
    until(lambda: ledger.page().tasks and ledger.page().tasks[0].run_status == "starting")
    time.sleep(0.5)
    return started


def in_snapshot(walk: Walk, tmp_path: Path) -> subprocess.Popen[bytes]:
    """A `run` that takes a snapshot of a large file, which lasts a second or more."""
    with (walk.folder / "large").open("wb") as file:
        file.truncate(LARGE)
    started = walk.start("--gate", "test -s out.txt", *shell(WRITES.format(tmp_path / "acted")))
    until(lambda: reads_large(started.pid))
    return started


def reads_large(pid: int) -> bool:
    """Whether a process has the large file open."""
    for handle in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if os.readlink(f"/proc/{pid}/fd/{handle}").endswith("/large"):
                return True
    return False


def assert_canceled(walk: Walk, tmp_path: Path, started: subprocess.Popen[bytes]) -> None:
    """The task is canceled, nothing of it runs, and its agent never started."""
    _, err = started.communicate(timeout=20)
    assert started.returncode == 130, err.decode()
    assert b"Traceback" not in err
    (task,) = walk.ledger().page().tasks
    assert (task.status, task.exit_reason) == ("canceled", "user_cancelled")
    assert not (tmp_path / "acted").exists()
    assert not (walk.folder / "out.txt").exists()
    again = walk.tg("scheduler", "--once", "--json")
    assert again.json()["counts"] == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("before", ["any", "fail"])
def test_a_signal_during_the_baseline_keeps_the_agent_from_starting(
    walk: Walk, tmp_path: Path, number: int, before: str
) -> None:
    begun = time.monotonic()
    started = in_baseline(walk, tmp_path, "--before", before)
    started.send_signal(number)
    assert_canceled(walk, tmp_path, started)
    assert time.monotonic() - begun < 15
    (task,) = walk.ledger().page().tasks
    (run,) = walk.ledger().dossier(task.id).runs
    assert (run.status, run.exit_detail, run.ended_by) == ("stopped", "stopped", "operator")
    assert "stopped on request before the agent started" in walk.tg("show", task.id).out


def test_no_further_gate_of_the_baseline_starts_after_a_signal(walk: Walk, tmp_path: Path) -> None:
    started = in_baseline(walk, tmp_path, "--gate", "sleep 30", "--gate", "sleep 31")
    begun = time.monotonic()
    started.send_signal(signal.SIGINT)
    assert_canceled(walk, tmp_path, started)
    assert time.monotonic() - begun < 10


def test_a_stop_during_the_baseline_keeps_the_agent_from_starting(
    walk: Walk, tmp_path: Path
) -> None:
    started = in_baseline(walk, tmp_path)
    (task,) = walk.ledger().page().tasks
    assert walk.tg("stop", task.id).status == 0
    started.communicate(timeout=20)
    assert walk.ledger().task(task.id).status is TaskStatus.CANCELED
    assert not (tmp_path / "acted").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_snapshot_keeps_the_agent_from_starting(
    git_walk: Walk, tmp_path: Path, number: int
) -> None:
    started = in_snapshot(git_walk, tmp_path)
    started.send_signal(number)
    assert_canceled(git_walk, tmp_path, started)
    (task,) = git_walk.ledger().page().tasks
    assert "interrupted before the agent started" in git_walk.tg("show", task.id).out


@pytest.mark.parametrize("phase", ["snapshot", "baseline"])
def test_a_second_interrupt_before_the_agent_ends_at_once(
    git_walk: Walk, tmp_path: Path, phase: str
) -> None:
    if phase == "snapshot":
        started = in_snapshot(git_walk, tmp_path)
    else:
        started = in_baseline(git_walk, tmp_path)
    begun = time.monotonic()
    started.send_signal(signal.SIGINT)
    time.sleep(0.1)
    started.send_signal(signal.SIGINT)
    started.wait(timeout=20)
    assert time.monotonic() - begun < 3
    assert_canceled(git_walk, tmp_path, started)


def test_no_gate_starts_after_an_interrupt_behind_the_agent(walk: Walk, tmp_path: Path) -> None:
    """The signal comes while the snapshot of what the agent left is taken."""
    acted = tmp_path / "acted"
    agent = f"echo work > out.txt; truncate -s {LARGE} large; touch {acted}"
    started = walk.start("--gate", "test -s out.txt", *shell(agent))
    until(acted.exists)
    until(lambda: reads_large(started.pid))
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=40)
    assert started.returncode == 130
    (task,) = walk.ledger().page().tasks
    assert task.status is TaskStatus.NEEDS_REVIEW, err.decode()
    assert "gate test passed" not in err.decode()


def test_an_attempt_that_is_interrupted_before_its_agent_is_canceled(
    walk: Walk, tmp_path: Path
) -> None:
    words = ("--gate", SLOW_GATE, *shell(WRITES.format(tmp_path / "acted")))
    task = walk.tg("add", "--json", *words).json()["id"]
    program = [SCRIPT, "attempt", task]
    with subprocess.Popen(
        program, env=walk.environ(), cwd=walk.folder, stderr=subprocess.PIPE
    ) as started:
        ledger = walk.ledger()
        until(lambda: ledger.task(task).run_status == "starting")
        time.sleep(0.3)
        started.send_signal(signal.SIGINT)
        assert_canceled(walk, tmp_path, started)


@pytest.mark.criterion("H05")
def test_no_output_at_all_until_the_idle_cap_is_zero_output(walk: Walk) -> None:
    script = walk.claude(before="import time; time.sleep(60)")
    got = walk.run("--gate", "true", "--cap", "idle=1s", *ONCE, *script)
    assert (got.status, got.exit) == (5, ("fatal_error", "zero_output"))
    quiet = walk.run("--gate", "false", "--cap", "idle=1s", *ONCE, *shell("sleep 60"))
    assert (quiet.status, quiet.exit) == (4, ("max_iterations", "idle_cap"))


@pytest.mark.criterion("N14", "H15", "E28")
def test_what_an_agent_leaves_running_is_swept_and_written_down(walk: Walk) -> None:
    marker = walk.folder / "beat"
    beat = f"while :; do date >> {marker}; sleep 0.05; done"
    got = walk.run(
        "--gate", "true", *shell(f"setsid nohup sh -c '{beat}' >/dev/null 2>&1 & sleep 0.3")
    )
    silent(marker)
    assert got.latest["facts"]["swept"]


def silent(marker: Path) -> None:
    """Nobody writes there any more."""
    time.sleep(0.2)
    size = marker.stat().st_size
    time.sleep(0.5)
    assert marker.stat().st_size == size


# --- what the agent can and can't do to the host


@pytest.mark.criterion("O04")
def test_a_jailed_agent_sees_neither_the_store_nor_other_processes(walk: Walk) -> None:
    store = walk.store.removeprefix("sqlite://")
    look = f"cat {store} > stolen; ls /proc | grep -c '^[0-9]' > seen; echo $TRUEGREEN_STORE > told"
    walk.run("--isolation", "jail", "--gate", "true", *shell(look))
    assert not (walk.folder / "stolen").read_bytes()
    assert int((walk.folder / "seen").read_text()) < 10
    assert (walk.folder / "told").read_text() == "\n"


@pytest.mark.criterion("O04", "E29")
def test_what_can_not_be_confirmed_dead_is_recorded_and_what_lives_lowers_the_level(
    walk: Walk,
) -> None:
    for isolation in ("jail", "reaper", "none"):
        new = f"x-{isolation}"
        got = walk.run("--isolation", isolation, "--gate", f"test -f {new}", *shell(f"touch {new}"))
        assert (got.status, got.task["verdict"]["level"]) == (0, "A2"), isolation
        facts = got.latest["facts"]
        assert (got.latest["isolation"], "unconfirmed" in facts) == (isolation, isolation == "none")
    agent = "touch y; setsid sleep 30 > /dev/null 2>&1 & sleep 0.3"
    got = walk.run("--isolation", "none", "--gate", "test -f y", *shell(agent))
    assert (got.status, got.task["verdict"]["level"]) == (3, "A1")
    assert "the agent may still be running" in got.task["verdict"]["reason"]
    for pid in got.latest["facts"]["survivors"]:
        os.kill(pid, signal.SIGKILL)
    again = walk.tg("verify", got.task["id"], "--json").json()
    assert again["verdict"]["level"] == "A1"


@pytest.mark.criterion("N09", "H15")
def test_a_long_output_is_kept_bounded_with_its_true_size_and_its_end(walk: Walk) -> None:
    """Many lines, one that is longer than all that is kept, and many lines."""
    lines = "seq 1 3000000"
    agent = f"{lines}; head -c 100000000 /dev/zero | tr '\\0' x; echo; {lines}; echo all done"
    got = walk.run("--gate", "true", *shell(agent))
    kept = got.latest["facts"]["output"]
    assert (kept["size"], kept["truncated"]) == (145_777_802, True)
    assert os.path.getsize(got.latest["facts"]["log"]) < 70_000_000
    answer = walk.tg("log", got.task["id"], "--tail", "3")
    assert answer.out == "2999999\n3000000\nall done\n"
    assert f"{kept['missing']:,} bytes in the middle are missing" in answer.err
    log = Path(got.latest["facts"]["log"]).read_bytes()
    note = f"[truegreen: {kept['missing']:,} of {kept['size']:,} bytes are missing here]".encode()
    head, _, tail = log.partition(note)
    assert head.startswith(b"1\n2\n3\n")
    assert 250_000 < len(tail) <= 256 * 1024 + 1


def test_secrets_of_the_environment_do_not_reach_the_log(walk: Walk) -> None:
    secret = "s3cr3t-value-of-mine"  # noqa: S105 - made up
    agent = shell('echo "key $MY_API_KEY"; cat $TRUEGREEN_TOKEN_FILE')
    got = walk.run("--pass-env", "MY_API_KEY", "--gate", "true", *agent, MY_API_KEY=secret)
    text = Path(got.latest["facts"]["log"]).read_text()
    assert secret not in text
    assert "tg_agent_" not in text
    assert text.startswith("key [redacted]")


def test_invalid_bytes_are_only_bytes(walk: Walk) -> None:
    got = walk.run(
        *("--gate", "test -f made"),
        *python("import os; open('made', 'w'); os.write(1, b'\\xff\\xfe\\x00 \\x1b[31m')"),
    )
    assert got.status == 0
    assert "\x1b" not in walk.tg("show", got.task["id"]).out


def test_an_agent_that_deletes_its_own_folder_left_nothing(walk: Walk) -> None:
    got = walk.run("--gate", "true", *ONCE, *shell(f"rm -rf {walk.folder}"))
    walk.folder.mkdir()
    assert got.status in (0, 1, 3)
    assert "nothing was left" in str(got.latest["facts"].get("refused"))


@pytest.mark.parametrize(
    "check", ["no-such-gate-program", "sleep 30", "kill -9 $$"], ids=["missing", "hanging", "dead"]
)
@pytest.mark.criterion("E14")
def test_a_gate_that_can_not_answer_is_nobodys_pass_and_not_the_agents_fault(
    walk: Walk, check: str
) -> None:
    (walk.folder / "check.sh").write_text(f"{check}\n")
    (walk.folder / "truegreen.toml").write_text(
        "[gates.g]\ncommand = ['sh', 'check.sh']\ntimeout = '1s'\n"
    )
    got = walk.run("--gate", "g", *THRICE, *shell("true"))
    assert (got.status, got.task["task_status"]) == (5, "needs_review")
    assert "gate error" in got.task["verdict"]["reason"]
    assert got.task["attempt"] == 1


@pytest.mark.criterion("E14")
def test_a_gate_whose_program_is_missing_costs_no_agent(walk: Walk) -> None:
    (walk.folder / "truegreen.toml").write_text("[gates.g]\ncommand = ['no-such-gate-program']\n")
    answer = walk.tg("run", "--json", "--gate", "g", *shell("touch started"))
    error = answer.error("invalid_input")
    assert (answer.status, "no-such-gate-program" in str(error["message"])) == (2, True)
    assert not (walk.folder / "started").exists()
    assert walk.ledger().page().tasks == []


@pytest.mark.criterion("E12", "E11")
def test_zero_tests_are_no_pass_and_counts_are_kept(walk: Walk) -> None:
    empty = walk.run("--gate", "python3 -m unittest discover -q", *ONCE, *shell("true"))
    assert empty.status != 0
    assert empty.task["task_status"] != "succeeded"
    (walk.folder / "test_x.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): import made\n"
    )
    full = walk.run("--gate", "python3 -m unittest discover", *ONCE, *shell("touch made.py"))
    assert full.status == 0
    assert full.task["verdict"]["findings"][-1]["counts"]["passed"] == 1


@pytest.mark.criterion("E09", "J23")
def test_what_counts_is_the_tree_that_the_agent_left_last(walk: Walk) -> None:
    late = "touch ok; (sleep 0.1; rm -f ok) & wait"
    got = walk.run("--gate", "test -f ok", *ONCE, *shell(late))
    assert (got.status, got.cell) == (1, "silent_failure"), got.task["verdict"]


@pytest.mark.criterion("N03", "J21")
def test_text_in_the_output_means_nothing(walk: Walk) -> None:
    got = walk.run("--gate", "false", *ONCE, *shell("echo TASK_COMPLETE; echo succeeded; exit 3"))
    assert (got.status, got.task["claim"]) == (1, None)
    assert got.exit == ("fatal_error", "agent_error")


@pytest.mark.criterion("F02", "F03")
def test_an_agent_that_dies_without_a_word_is_rescued_by_its_work_alone(walk: Walk) -> None:
    good = walk.run("--gate", "test -f out.txt", *ONCE, *shell("touch out.txt; exit 1"))
    assert (good.status, good.task["rescued"], good.cell) == (0, True, "rescued")
    bad = walk.run("--gate", "test -f nope", *ONCE, *shell("touch bad.txt; exit 1"))
    assert (bad.status, bad.task["rescued"], bad.cell) == (1, False, "failed")


@pytest.mark.criterion("F36")
def test_rescue_can_be_switched_off(walk: Walk) -> None:
    options = ("--rescue", "none", "--gate", "test -f out.txt", *ONCE)
    got = walk.run(*options, *shell("touch out.txt; exit 1"))
    assert (got.status, got.task["task_status"]) == (5, "failed")


# --- budgets


@pytest.mark.criterion("I01", "I02", "I03", "P04")
def test_the_night_of_319_retries_ends_after_three(walk: Walk) -> None:
    agent = shell("echo x >> tries; echo 'retry me, I am sure it works now'; exit 0")
    got = walk.run("--gate", "test -f nope", *THRICE, *agent)
    assert (got.status, got.task["task_status"]) == (1, "failed")
    assert got.task["budget"]["attempts"] == [3, 3]
    assert (walk.folder / "tries").read_text() == "x\n" * 3
    assert len(walk.ledger().inbox()) == 1
    assert walk.tg("attempt", got.task["id"]).status == 2


@pytest.mark.criterion("I08")
def test_a_rate_limit_is_a_deferral_that_honours_the_reset(walk: Walk) -> None:
    failed = {"is_error": True, "api_error_status": 429, "terminal_reason": "api_error"}
    error = said("API Error: 429", error="rate_limit", is_api_error_message=True)
    got = walk.run("--gate", "true", *walk.claude(init(), error, result("", **failed), code=1))
    assert (got.status, got.task["task_status"]) == (75, "queued")
    assert got.exit == ("fatal_error", "rate_limited")
    assert got.task["budget"]["deferrals"] == [1, 3]
    assert got.task["budget"]["attempts"] == [0, 1]
    assert walk.tg("attempt", got.task["id"]).status == 75


def test_what_failed_is_told_to_the_next_attempt(walk: Walk) -> None:
    agent = shell('cat "$TRUEGREEN_FEEDBACK" > told 2>/dev/null; test -s told && touch ok; true')
    got = walk.run("--gate", "test -f ok", *THRICE, *agent)
    assert got.status == 0
    assert "These checks failed" in (walk.folder / "told").read_text()


@pytest.mark.criterion("I07")
def test_a_crash_is_tried_again_after_a_short_while(walk: Walk) -> None:
    agent = shell("echo x >> tries; test $(wc -l < tries) -gt 1 || kill -9 $$")
    begun = time.monotonic()
    got = walk.run("--gate", "test -f tries", *THRICE, *agent)
    assert (got.status, got.task["budget"]["attempts"]) == (0, [1, 3])
    assert time.monotonic() - begun > 1


# --- checkpoints


@pytest.mark.criterion("D02", "D07", "P04", "C05")
def test_an_autonomous_agent_at_a_checkpoint_is_blocked_and_dead(walk: Walk) -> None:
    marker = walk.folder / "acted"
    agent = f"{own('checkpoint', 'merge to main')}; touch {marker}"
    got = walk.run("--gate", "true", *shell(agent))
    assert (got.status, got.axes) == (3, ("stopped", "blocked"))
    assert got.exit == ("blocked", "approval_checkpoint")
    warned = [e for e in got.task["events"] if e["level"] == "warn"]
    assert [e["to"] if "to" in e else e["to_status"] for e in warned] == ["blocked"]
    assert not marker.exists()


@pytest.mark.criterion("D03", "D07", "B14")
def test_an_assisted_agent_waits_for_a_person_and_goes_on(walk: Walk) -> None:
    agent = f"{own('checkpoint', 'merge to main')} && touch merged"
    options = ("--mode", "assisted", "--gate", "test -f merged", "--cap", "idle=1s")
    started = walk.start(*options, *shell(agent))
    ledger = walk.ledger()
    until(lambda: ledger.page().tasks and ledger.page().tasks[0].status == "awaiting_approval")
    (task,) = ledger.page().tasks
    assert (task.exit_reason, task.run_status) == (None, "paused")
    time.sleep(1.5)  # longer than the idle cap: nobody's clock runs while a person thinks
    assert ledger.task(task.id).status is TaskStatus.AWAITING_APPROVAL
    assert walk.tg("approve", task.id).status == 0
    started.communicate(timeout=20)
    assert started.returncode == 0


def test_a_denied_agent_is_blocked(walk: Walk) -> None:
    started = walk.start("--mode", "assisted", "--gate", "true", *shell(own("checkpoint", "merge")))
    ledger = walk.ledger()
    until(lambda: ledger.page().tasks and ledger.page().tasks[0].status == "awaiting_approval")
    ledger.deny(ledger.page().tasks[0].id, actor=OPERATOR, reason="not today")
    started.communicate(timeout=20)
    assert started.returncode == 3


# --- where partial work is


@pytest.mark.criterion("G28", "I17")
def test_partial_work_of_a_failed_run_can_be_had_back(git_walk: Walk) -> None:
    got = git_walk.run("--gate", "false", *ONCE, *shell("echo half > half.txt; exit 1"))
    (git_walk.folder / "half.txt").unlink()
    shown_text = git_walk.tg("show", got.task["id"]).out
    command = next(line for line in shown_text.splitlines() if "git fetch" in line)
    fetch = command[command.index("git fetch") :].strip()
    subprocess.run(fetch, shell=True, check=True, cwd=git_walk.folder)  # noqa: S602 - as told
    ref = fetch.rpartition(":")[2]
    kept = subprocess.run(
        ["git", "show", f"{ref}:half.txt"], cwd=git_walk.folder, check=True, capture_output=True
    )
    assert kept.stdout == b"half\n"


CRASHES = {
    "a plain command": "echo 'Not logged in · Please run /login'; exit 1",
    "on standard error": "echo 'Not logged in · Please run /login' >&2; exit 1",
}


@pytest.mark.parametrize("how", CRASHES)
def test_the_last_words_of_a_crashed_agent_stand_before_the_gate(walk: Walk, how: str) -> None:
    answer = walk.tg("run", "--gate", "test -s out.txt", *ONCE, *shell(CRASHES[how]))
    err = answer.err
    assert err.index("Not logged in · Please run /login") < err.index("✗ gate test failed")
    assert "exit 1 (fatal_error/agent_error)" in err
    first, second = answer.out.splitlines()[:2]
    assert "Not logged in · Please run /login" in first
    assert "gate test" in second
    (task,) = walk.ledger().page().tasks
    shown = walk.tg("show", task.id).out
    assert shown.index("Not logged in · Please run /login") < shown.index("gate test")
    facts = walk.tg("show", "--json", task.id).json()["runs"][-1]["facts"]
    assert facts["last_words"] == "Not logged in · Please run /login"


def test_a_client_that_can_not_log_in_says_so_in_run(walk: Walk) -> None:
    before = "print('Not logged in · Please run /login', file=sys.stderr); sys.exit(1)"
    answer = walk.tg("run", "--gate", "test -s out.txt", *ONCE, *walk.claude(before=before))
    assert "    │ Not logged in · Please run /login" in answer.err
    assert "Not logged in · Please run /login" in answer.out


def test_background_processes_that_were_swept_are_named_in_run(walk: Walk) -> None:
    agent = shell("sleep 60 & echo work > out.txt")
    answer = walk.tg("run", "--gate", "test -s out.txt", *agent)
    assert "! the agent left processes behind, which were killed: sleep (" in answer.err


def test_one_turn_is_one_turn(walk: Walk) -> None:
    one = walk.tg("run", *walk.claude(init(), said("one"), result("done")))
    assert " · 1 turn · " in one.out
    two = walk.tg("run", *walk.claude(init(), said("one", 1), said("two", 2), result("done")))
    assert " · 2 turns · " in two.out


def limited(seconds: float) -> list[dict[str, Any]]:
    """The stream of a client that met a rate limit which ends after so many seconds."""
    failed = {"is_error": True, "api_error_status": 429, "terminal_reason": "api_error"}
    error = said("API Error: 429", error="rate_limit", is_api_error_message=True)
    retry = {"type": "system", "subtype": "api_retry", "retry_delay_ms": seconds * 1000}
    return [init(), retry, error, result("API Error: 429", **failed)]


def test_a_rate_limit_says_when_it_is_tried_again_and_by_what(walk: Walk) -> None:
    answer = walk.tg("run", "--gate", "true", *walk.claude(*limited(3600), code=1))
    assert answer.status == 75
    assert "the next attempt starts after 20" in answer.err
    assert "if `truegreen up`, `scheduler` or `worker` runs then; none runs now" in answer.err
    assert "next: truegreen up\n" in answer.err
    (task,) = walk.ledger().page().tasks
    assert f"next: truegreen attempt {task.id} --wait\n" in answer.err


@pytest.mark.timeout(120)
def test_a_rate_limit_is_waited_for_with_wait(walk: Walk) -> None:
    """Longer than a back-off that is waited for anyway."""
    lines = json.dumps(limited(3600))
    before = (
        "import json, os, time\n"
        "if not os.path.exists('limited'):\n"
        "    open('limited', 'w').close()\n"
        "    until = {'resetsAt': int(time.time()) + 34}\n"
        "    reset = {'type': 'rate_limit_event', 'rate_limit_info': until}\n"
        f"    lines = json.loads({lines!r})\n"
        "    for line in [lines[0], reset, *lines[2:]]: print(json.dumps(line), flush=True)\n"
        "    sys.exit(1)\n"
        "open('out.txt', 'w').write('work')\n"
    )
    client = walk.claude(init(), said("did it"), result("done"), before=before)
    answer = walk.tg("run", "--wait", "--gate", "test -s out.txt", *client, timeout=90)
    assert answer.status == 0, answer
    assert "  waits  until " in answer.err
    assert len(walk.ledger().dossier(walk.ledger().page().tasks[0].id).runs) == 2
