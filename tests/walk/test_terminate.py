"""`truegreen run` in one process, terminate in another: it wins, it lasts, it tells the truth."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.conftest import SCRIPT
from tests.record.lives import OPERATOR
from tests.walk.conftest import Walk, init, own, said, shell, until
from tests.work import shapes
from tests.work.running import alive_with, need_jail
from truegreen.model import AgentStatus, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.fencing import Whom
from truegreen.supervisor.holder import process_of
from truegreen.supervisor.termination import Ended, terminate

LEVELS = ("jail", "reaper", "none")
SEVEN = ("child", "own_session", "double_fork", "respawn", "bomb", "daemon", "chain")
ESCAPES = {"daemon", "bomb", "respawn"}
"""What gets away where there is no isolation."""
BEHIND = "nohup sh -c 'while :; do echo . >> {0}; sleep 0.02; done' >/dev/null 2>&1 &"
CHAIN = f"{BEHIND} sleep 60; echo on > {{0}}.on"


@contextlib.contextmanager
def running(walk: Walk, *words: str | Path) -> Iterator[Ledger]:
    """A run under way; whatever is left of it afterwards is gone."""
    ledger = walk.ledger()
    process = walk.start("--gate", "true", "--max-attempts", "1", *words)
    try:
        yield ledger
    finally:
        process.kill()
        process.communicate()
        ledger.close()


def agent_of(shape: str, beats: Path) -> list[str]:
    if shape == "chain":
        return shell(CHAIN.format(beats))
    return ["--", sys.executable, "-I", "-S", shapes.__file__, shape, str(beats), "stay"]


def stands(beats: Path, ledger: Ledger) -> bool:
    """Whether an agent acts and its supervisor has written down which process that is."""
    live = ledger.owned("")
    return beats.exists() and bool(live and process_of(live[0].lease.process))


def only_task(ledger: Ledger) -> str:
    return ledger.page().tasks[0].id


def ended(walk: Walk, ledger: Ledger, whom: Whom | None = None) -> Ended:
    """Terminate, as the command does."""
    state = os.path.join(os.environ["XDG_STATE_HOME"], "truegreen")
    target = whom or Whom("task", only_task(ledger))
    return terminate(ledger, target, state_dir=state, actor=OPERATOR, reason="enough")


def acting(beats: Path) -> list[int]:
    """Who is there of an agent; its supervisor has the same words in its command line.

    A supervisor that ends between two looks has none: it is no agent for that.
    """
    found = []
    for pid in alive_with(str(beats)):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if str(beats).encode() in words and str(SCRIPT).encode() not in words:
                found.append(pid)
    return found


def is_silent(beats: Path) -> bool:
    before = beats.stat().st_size
    time.sleep(0.1)
    return beats.stat().st_size == before and not acting(beats)


def cleared(word: str) -> None:
    for pid in alive_with(word):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.criterion("G15", "G09", "G16")
@pytest.mark.parametrize("isolation", LEVELS)
@pytest.mark.parametrize("shape", SEVEN)
def test_no_tree_outlives_terminate_unnamed(walk: Walk, shape: str, isolation: str) -> None:
    if isolation == "jail":
        need_jail()
    beats = walk.folder / "beat"
    with running(walk, "--isolation", isolation, *agent_of(shape, beats)) as ledger:
        try:
            until(lambda: stands(beats, ledger))
            begun = time.monotonic()
            answer = ended(walk, ledger)
            assert time.monotonic() - begun < 10
            silent = is_silent(beats)
            if isolation == "none" and shape not in ESCAPES:
                until(lambda: is_silent(beats))  # the signal was sent, and nobody waited for it
        finally:
            cleared(str(beats))
    assert (answer.outcome, answer.prior_status) == ("interrupted", "running")
    assert answer.killed
    if isolation == "jail":
        assert (silent, answer.survivors, answer.unconfirmed, answer.complete) == (
            True,
            (),
            (),
            True,
        )
    elif isolation == "reaper":
        assert (silent, answer.survivors, answer.complete) == (True, (), True)
    else:
        assert answer.unconfirmed == answer.runs, "without isolation nobody can vouch for it"
    assert not Path(f"{beats}.on").exists(), "the shell went on"


BEAT = "while :; do date +%N >> {}; sleep 0.02; done"


@pytest.mark.criterion("G05", "G18", "G25", "G06")
def test_a_hundred_times_is_one_change_one_kill_one_event(walk: Walk) -> None:
    beats = walk.folder / "beat"
    with running(walk, *shell(BEAT.format(beats))) as ledger:
        until(lambda: stands(beats, ledger))
        answers = [ended(walk, ledger) for _ in range(100)]
        task = only_task(ledger)
        assert [a.already_terminated for a in answers] == [False] + [True] * 99
        assert [bool(a.killed) for a in answers] == [True] + [False] * 99
        assert all(a.complete for a in answers)
        told = [told.event.event for told in ledger.events(task)]
        assert told.count("terminate") == 1
        assert ledger.meters()["terminate_called", "terminated"] == 99
    answer = walk.tg("terminate", task, "--json")
    assert answer.json()["already_terminated"] is True
    assert walk.tg("list", "--json").json()["tasks"][0]["task_status"] == "terminated"


@pytest.mark.criterion("G29", "G10")
def test_a_dry_run_names_what_would_die_and_touches_nothing(walk: Walk) -> None:
    beats = walk.folder / "beat"
    with running(walk, *shell(f"sleep 60 & {BEAT.format(beats)}")) as ledger:
        until(beats.exists)
        until(lambda: ledger.dossier(only_task(ledger)).runs[-1].seen_at)
        task = ledger.task(only_task(ledger))
        answer = walk.tg("terminate", task.id, "--dry-run", "--json").json()
        assert (answer["dry_run"], answer["outcome"], answer["task"]) == (
            True,
            "interrupted",
            task.id,
        )
        (run,) = answer["would"]["runs"]
        assert {"sleep", "sh"} <= {process["name"] for process in run["processes"]}
        (agent,) = answer["would"]["agents"]
        assert (agent["kind"], agent["status"]) == ("agent", "in_progress")
        assert answer["would"]["tasks"] == [{"task": task.id, "status": "running"}]
        text = walk.tg("terminate", task.id, "--dry-run").out
        assert f"{run['processes'][0]['pid']}  " in text
        assert ledger.task(task.id).revision == task.revision
        assert not any(name == "terminate_called" for name, _ in ledger.meters())
        size = beats.stat().st_size
        until(lambda: beats.stat().st_size > size)


@contextlib.contextmanager
def gone(supervisor: subprocess.Popen[bytes], agent: str) -> Iterator[None]:
    """A supervisor dies, and the keeper that would end its agent does nothing."""
    children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text().split()
    keepers = [int(pid) for pid in children if agent not in command_of(pid)]
    assert keepers
    for pid in keepers:
        os.kill(pid, signal.SIGSTOP)
    supervisor.kill()
    supervisor.communicate()
    try:
        yield
    finally:
        for pid in keepers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def command_of(pid: str) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.criterion("G15", "G09")
def test_what_a_dead_supervisor_left_is_found_as_it_stood_and_killed(walk: Walk) -> None:
    beats = walk.folder / "beat"
    agent = shell(BEAT.format(beats))
    process = walk.start("--gate", "true", "--isolation", "none", *agent)
    ledger = walk.ledger()
    until(lambda: stands(beats, ledger))
    try:
        with gone(process, str(beats)):
            answer = walk.tg("terminate", only_task(ledger), "--json").json()
            assert (answer["prior_status"], answer["outcome"]) == ("running", "interrupted")
            assert answer["killed"]
            assert answer["unconfirmed"] == answer["runs"]
            assert is_silent(beats)
    finally:
        cleared(str(beats))


@pytest.mark.criterion("G15")
def test_a_call_that_was_killed_after_its_commit_is_finished_by_the_next(walk: Walk) -> None:
    beats = walk.folder / "beat"
    process = walk.start("--gate", "true", "--isolation", "none", *shell(BEAT.format(beats)))
    ledger = walk.ledger()
    until(lambda: stands(beats, ledger))
    try:
        with gone(process, str(beats)):
            ledger.terminate(only_task(ledger), actor=OPERATOR)  # and then the lights go out
            assert acting(beats)
            answer = walk.tg("terminate", only_task(ledger), "--json").json()
            assert answer["already_terminated"] is True
            assert answer["killed"]
            assert is_silent(beats)
    finally:
        cleared(str(beats))


@pytest.mark.criterion("G02", "G28", "G20")
def test_a_session_names_its_agent_and_its_conversation_is_sealed(walk: Walk) -> None:
    session = init()["session_id"]
    home = Path(os.environ["HOME"])
    transcript = home / ".claude" / "projects" / "-work" / f"{session}.jsonl"
    transcript.parent.mkdir(parents=True)
    keeps = f"open({str(transcript)!r}, 'w').write('{{}}')"
    done = walk.run(*walk.claude(init(), said("all done"), before=keeps))
    ledger = walk.ledger()
    answer = walk.tg("terminate", session, "--json").json()
    assert answer["task"] is None
    assert answer["sealed"] == [f"{transcript}.terminated"]
    assert not transcript.exists()
    assert ledger.agent(answer["agents"][0]).status is AgentStatus.TERMINATED
    assert ledger.task(done.task["id"]).status is not TaskStatus.TERMINATED
    state = Path(os.environ["XDG_STATE_HOME"]) / "truegreen" / "fenced"
    assert {session, *answer["agents"], done.latest["id"]} <= {
        path.name for path in state.iterdir()
    }


@pytest.mark.criterion("G07")
def test_a_run_that_is_terminated_before_its_agent_starts_never_starts_it(walk: Walk) -> None:
    (walk.folder / "wait").touch()
    gate = "sh -c 'while test -f wait; do sleep 0.02; done; exit 1'"
    (walk.folder / "truegreen.toml").write_text(
        f'[gates.slow]\ncommand = {json.dumps(["sh", "-c", gate[7:-1]])}\nbefore = "fail"\n'
    )
    made = walk.folder / "made"
    ledger = walk.ledger()
    process = walk.start("--gate", "slow", *shell(f"touch {made}; sleep 5"))
    try:
        until(lambda: ledger.page().tasks and ledger.page().tasks[0].status == "running")
        answer = ended(walk, ledger)
        assert answer.prior_status == "running"
        (walk.folder / "wait").unlink()
        process.communicate(timeout=30)
        assert not made.exists()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.criterion("G22", "G14")
def test_the_kill_switch_ends_all_and_lets_new_work_start(walk: Walk) -> None:
    done = walk.run("--gate", "test -f made", *shell("touch made")).task["id"]
    queued = walk.tg("add", "--gate", "true", "--json", *shell("true")).json()["id"]
    beats = walk.folder / "beat"
    with running(walk, *shell(BEAT.format(beats))) as ledger:
        until(lambda: stands(beats, ledger))
        refused = walk.tg("terminate", "--all")
        assert refused.status == 2
        assert "truegreen terminate --all --yes" in refused.err
        would = walk.tg("terminate", "--all", "--dry-run", "--json").json()["would"]
        assert {task["status"] for task in would["tasks"]} == {"running", "queued"}
        answer = walk.tg("terminate", "--all", "--yes", "--json").json()
        assert is_silent(beats)
        assert (answer["complete"], answer["frozen"], answer["left"]) == (True, False, 0)
        assert answer["killed"]
        outcomes = {task["task"]: task["outcome"] for task in answer["tasks"]}
        assert outcomes.pop(queued) == "clean"
        assert list(outcomes.values()) == ["interrupted"]
        assert ledger.task(done).status is TaskStatus.SUCCEEDED
        assert ledger.task(done).sealed_at is None
        assert {agent.status for agent in ledger.agents()} == {AgentStatus.TERMINATED}
    again = walk.tg("terminate", "--all", "--yes", "--json").json()
    assert (again["already_terminated"], again["frozen"]) == (True, False)
    assert walk.run("--gate", "test -f more", *shell("touch more")).status == 0


@pytest.mark.criterion("G22", "G18")
def test_frozen_on_request_nothing_starts_until_somebody_thaws(walk: Walk) -> None:
    assert walk.tg("terminate", "--all", "--yes", "--freeze").status == 0
    words = ("--gate", "test -f made", *shell("touch made"))
    refused = walk.tg("run", "--json", *words)
    refused.error("frozen")
    assert not (walk.folder / "made").exists()
    assert walk.tg("list", "--json").json()["frozen"]["reason"].startswith("terminate --all")
    assert "truegreen thaw" in walk.tg("list").out
    assert "truegreen thaw" in walk.tg("doctor").out
    assert walk.tg("thaw", "--reason", "all clear", "--json").json()["changed"] is True
    assert walk.run(*words).status == 0


@pytest.mark.criterion("G23", "O01")
def test_an_agent_terminates_nobody(walk: Walk) -> None:
    other = walk.tg("add", "--gate", "true", "--json", *shell("true")).json()["id"]
    script = f"{own('terminate', other)}; {own('terminate', '--all', '--yes')}; true"
    walk.run("--isolation", "reaper", "--gate", "true", *shell(script))
    assert walk.ledger().task(other).status is TaskStatus.QUEUED


def test_two_who_terminate_at_once_agree(walk: Walk) -> None:
    beats = walk.folder / "beat"
    with running(walk, *shell(BEAT.format(beats))) as ledger:
        until(lambda: stands(beats, ledger))
        words = [
            str(SCRIPT),
            "terminate",
            only_task(ledger),
            "--json",
        ]
        pair = [
            subprocess.Popen(words, stdout=subprocess.PIPE, env=walk.environ(), cwd=walk.folder)
            for _ in range(2)
        ]
        answers = [json.loads(each.communicate(timeout=50)[0]) for each in pair]
        assert sorted(a["already_terminated"] for a in answers) == [False, True]
        assert {each.returncode for each in pair} == {0}
        assert is_silent(beats)
