"""What people do to tasks: retry, unblock, cancel, approve, reject, stop."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.faces.conftest import SCRIPT, Furnished, Run
from tests.record.lives import OPERATOR, brought, ended, started
from truegreen.contract import Budget
from truegreen.facts import Ticket
from truegreen.model import PALETTE, EndedBy, ExitDetail, Mode, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.lifecycle import SETTLED
from truegreen.record.rows import Task

S = TaskStatus
WORDS: dict[str, list[str]] = {
    "retry": ["--reason", "once more"],
    "unblock": [],
    "cancel": [],
    "approve": [],
    "reject": ["--reason", "not today"],
}
FROM: dict[str, tuple[TaskStatus, ...]] = {
    "retry": (S.FAILED, S.CANCELED, S.NEEDS_REVIEW),
    "unblock": (S.BLOCKED,),
    "cancel": (S.QUEUED, S.RUNNING, S.BLOCKED),
    "approve": (S.AWAITING_APPROVAL,),
    "reject": (S.AWAITING_APPROVAL,),
}
TO = {
    "retry": S.QUEUED,
    "unblock": S.QUEUED,
    "cancel": S.CANCELED,
    "approve": S.RUNNING,
    "reject": S.BLOCKED,
}


def task_of(furnished: Furnished, status: TaskStatus) -> Task:
    ledger = open_ledger(furnished.url)
    task = ledger.task(furnished.tasks[status])
    ledger.close()
    return task


@pytest.mark.parametrize(("verb", "status"), [(v, s) for v in FROM for s in FROM[v]])
def test_what_is_said_is_what_is_kept_and_leads_on(
    verb: str, status: TaskStatus, tg: Run, furnished: Furnished
):
    task = furnished.tasks[status]
    answer = tg(verb, task, *WORDS[verb])
    assert (answer.status, answer.err) == (0, "")
    after = task_of(furnished, status)
    assert after.status is TO[verb]
    first, *steps = answer.out.splitlines()
    assert first.startswith(f"{task}  {PALETTE[after.status].glyph} {after.status}  ")
    if verb in {"retry", "unblock"}:
        assert f"      truegreen attempt {task}" in steps


@pytest.mark.parametrize("verb", WORDS)
def test_the_answer_in_json_is_the_task(verb: str, tg: Run, furnished: Furnished):
    task = furnished.tasks[FROM[verb][0]]
    document = tg(verb, task, *WORDS[verb], "--json").json()
    assert (document["id"], document["task_status"]) == (task, TO[verb])
    if verb == "cancel":
        assert document.pop("wakes_called_off") == 0
    assert document == tg("show", task, "--json").json()


@pytest.mark.parametrize(
    ("verb", "status", "code"),
    [
        ("retry", S.RUNNING, "refused"),
        ("retry", S.BLOCKED, "illegal_move"),
        ("retry", S.QUEUED, "illegal_move"),
        ("unblock", S.FAILED, "illegal_move"),
        ("cancel", S.SUCCEEDED, "illegal_move"),
        ("approve", S.RUNNING, "not_running"),
        ("reject", S.BLOCKED, "not_running"),
    ],
)
def test_where_no_edge_leads_the_refusal_names_the_status_and_changes_nothing(
    verb: str, status: TaskStatus, code: str, tg: Run, furnished: Furnished
):
    before = task_of(furnished, status)
    answer = tg(verb, before.id, *WORDS[verb], "--json")
    assert answer.status == 2
    body = answer.error(code)
    assert body["details"]["status"] == status
    if code == "not_running":
        words = f"{before.id}: nothing waits for an answer (status: {status})"
        assert body["message"] == words
    assert task_of(furnished, status) == before


@pytest.mark.criterion("I06")
def test_a_reopened_task_has_a_reason_and_a_fresh_budget_in_its_history(
    tg: Run, furnished: Furnished
):
    task = furnished.tasks[S.FAILED]
    assert tg("retry", task).status == 2, "a reason is needed"
    assert tg("retry", task, "--reason", " ").status == 2
    answer = tg("retry", task, "--reason", "the registry is back", "--more-attempts", "2")
    assert "attempts used: 0 of 3" in answer.out
    document = tg("show", task, "--json").json()
    assert document["budget"]["attempts"] == [0, 3]
    last = document["events"][-1]
    assert (last["event"], last["reason"]) == ("reopen", "the registry is back")
    assert last["actor"].startswith("operator:")
    assert last["data"]["more_attempts"] == 2


def test_a_spent_budget_gets_one_more_attempt_from_whoever_unblocks(tg: Run, sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    ticket = started(ledger, budget=Budget(attempts=1))
    ledger.end_run(ticket, ended(ExitDetail.REFUSED))
    ledger.close()
    words = ("unblock", ticket.task, "--store", sqlite_url)
    document = tg(*words, "--json").json()
    assert (document["task_status"], document["budget"]["attempts"]) == ("queued", [1, 2])
    assert document["events"][-1]["data"]["more_attempts"] == 1


@pytest.mark.criterion("D05")
def test_unblocking_into_another_mode_is_kept(tg: Run, furnished: Furnished):
    task = furnished.tasks[S.BLOCKED]
    document = tg("unblock", task, "--mode", "assisted", "--json").json()
    assert (document["run_mode"], document["task_status"]) == ("assisted", "queued")
    assert document["events"][-1]["reason"] == "mode assisted"
    assert task_of(furnished, S.BLOCKED).mode is Mode.ASSISTED


@pytest.mark.criterion("C21")
def test_canceling_again_changes_nothing_and_says_so(tg: Run, furnished: Furnished):
    task = furnished.tasks[S.QUEUED]
    assert "was queued" in tg("cancel", task, "--reason", "not needed").out
    before = tg("events", task, "--json").out
    again = tg("cancel", task)
    assert again.status == 0
    assert "nothing changed" in again.out
    assert tg("events", task, "--json").out == before


def test_a_sealed_task_is_refused_every_verb(tg: Run, furnished: Furnished):
    task = furnished.tasks[S.SUCCEEDED]
    ledger = open_ledger(furnished.url)
    ledger.terminate(task, actor=OPERATOR)
    ledger.close()
    for verb, words in WORDS.items():
        tg(verb, task, *words, "--json").error("terminated")


def test_an_unknown_task_is_not_found(tg: Run, furnished: Furnished):
    for verb, words in {**WORDS, "stop": []}.items():
        tg(verb, "tsk_zzz", *words, "--json").error("not_found")


# --- stop


@pytest.mark.criterion("G11")
@pytest.mark.parametrize("status", [S.SUCCEEDED, S.QUEUED, S.PENDING_EVAL, S.TERMINATED])
def test_stop_is_refused_when_nothing_runs(status: TaskStatus, tg: Run, furnished: Furnished):
    task = furnished.tasks[status]
    answer = tg("stop", task)
    assert (answer.status, answer.out) == (2, "")
    said, leads_on = answer.err.splitlines()
    assert said == f"truegreen: task {task} is not running (status: {status})"
    assert leads_on == f"next: truegreen show {task}"
    tg("stop", task, "--json").error("not_running")
    assert task_of(furnished, status).status is status


@pytest.fixture
def stopping(environ: Callable[..., dict[str, str]]) -> Callable[..., subprocess.Popen[str]]:
    """A `stop` under way."""

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SCRIPT, "stop", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environ(),
        )

    return start


def asked(ledger: Ledger, ticket: Ticket) -> str:
    """Who asked a run to stop, as soon as somebody has."""
    while not (who := ledger.standing(ticket).stop_asked):
        pass
    return who


@pytest.mark.criterion("G11")
def test_stop_asks_the_supervisor_and_waits_until_the_run_has_ended(
    stopping: Callable[..., subprocess.Popen[str]], furnished: Furnished
):
    ledger = open_ledger(furnished.url)
    task, ticket = brought(ledger, S.RUNNING)
    assert ticket
    with stopping(task.id, "--reason", "enough") as process:
        try:
            who = asked(ledger, ticket)
            assert process.poll() is None, "it waits"
            ledger.end_run(ticket, ended(ExitDetail.STOPPED, ended_by=EndedBy.OPERATOR))
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    ledger.close()
    assert who.startswith("operator:")
    assert process.returncode == 0
    (run, state), steps = out.splitlines(), err.splitlines()
    assert run.startswith("run   ○ stopped     user_cancelled · stopped")
    assert state.startswith("task  ⊘ canceled")
    assert steps[-1].startswith("next: truegreen retry")


# --- stop --force


@pytest.mark.criterion("G09", "G14")
@pytest.mark.parametrize(
    "status", [S.QUEUED, S.RUNNING, S.AWAITING_APPROVAL, S.PENDING_EVAL, S.BLOCKED, S.SUCCEEDED]
)
def test_force_terminates_from_every_status(status: TaskStatus, tg: Run, furnished: Furnished):
    task = furnished.tasks[status]
    before = task_of(furnished, status)
    document = tg("stop", task, "--force", "--reason", "out of hand", "--json").json()
    live = status in (S.RUNNING, S.AWAITING_APPROVAL)
    assert document.keys() >= {
        *("task", "agents", "outcome", "prior_status", "already_terminated", "killed"),
        *("survivors", "fence"),
    }
    assert document["task"] == task
    assert document["outcome"] == ("interrupted" if live else "clean")
    assert document["prior_status"] == status
    assert document["already_terminated"] is False
    assert (document["killed"], document["survivors"]) == ([], [])
    after = task_of(furnished, status)
    assert after.sealed_at is not None
    assert after.fence == document["fence"] == before.fence + 1
    kept = status in SETTLED and status is not S.BLOCKED
    assert after.status is (status if kept else S.TERMINATED)


@pytest.mark.criterion("G05")
def test_force_again_changes_nothing_and_says_so(tg: Run, furnished: Furnished):
    task = furnished.tasks[S.RUNNING]
    assert "is terminated for ever (status before: running)" in tg("stop", task, "--force").out
    before = task_of(furnished, S.RUNNING)
    again = tg("stop", task, "--force")
    assert again.status == 0
    assert "was terminated already; nothing changed" in again.out
    assert tg("stop", task, "--force", "--json").json()["already_terminated"] is True
    assert task_of(furnished, S.RUNNING) == before


def test_cancel_says_what_it_called_off(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session="s-1")
    tickets = [started(ledger, agent_id=agent.id)]
    ledger.arm(agent.id, "more", actor=OPERATOR)
    answer = tg("cancel", tickets[0].task, "--json")
    assert answer.json()["wakes_called_off"] == 1
    ledger.arm(agent.id, "more", actor=OPERATOR)
    assert "a wake-up of its agent was called off" in tg("cancel", tickets[0].task).out
    assert tg("cancel", tickets[0].task, "--json").json()["wakes_called_off"] == 0
    assert ledger.due() == []
    ledger.close()


def test_a_task_that_is_over_says_what_leads_on_instead_of_cancel(tg: Run, furnished: Furnished):
    for status in (TaskStatus.FAILED, TaskStatus.SUCCEEDED):
        task = furnished.tasks[status]
        answer = tg("cancel", task)
        over = f"cancel is refused from {status}: the task is over already; allowed: reopen"
        assert (answer.status, over in answer.err) == (2, True)
    failed = furnished.tasks[TaskStatus.FAILED]
    assert tg("cancel", failed).err.endswith(
        f'next: truegreen retry {failed} --reason "try again"\n'
    )
    running = furnished.tasks[TaskStatus.RUNNING]
    way = f"next: truegreen stop {running} or truegreen terminate {running}\n"
    assert tg("unblock", running).err.endswith(way)
