"""`wait`: until tasks are settled or need a person, and an exit status for scripts."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.faces.conftest import SCRIPT, Furnished, Run
from tests.record.lives import (
    BASE,
    OPERATOR,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
    verdict,
)
from truegreen.contract import Budget
from truegreen.faces.cli.outcome import worst
from truegreen.facts import Ticket
from truegreen.model import ExitDetail, FindingOutcome, Outcome, TaskStatus
from truegreen.record.ledger import Ledger, Start, open_ledger

S = TaskStatus
STATUSES = {
    S.SUCCEEDED: 0,
    S.FAILED: 1,
    S.NEEDS_REVIEW: 3,
    S.BLOCKED: 3,
    S.AWAITING_APPROVAL: 3,
    S.CANCELED: 6,
    S.TERMINATED: 6,
}
UNDER_WAY = [s for s in S if s not in STATUSES]


@pytest.mark.parametrize("status", STATUSES)
def test_what_is_over_is_answered_at_once(status: TaskStatus, tg: Run, furnished: Furnished):
    task = furnished.tasks[status]
    answer = tg("wait", task)
    assert answer.status == STATUSES[status]
    assert all(line.startswith(("next: ", "      ")) for line in answer.err.splitlines())
    assert [line[:4] for line in answer.out.splitlines()[:2]] == ["run ", "task"]
    document = tg("wait", task, "--json")
    assert document.status == STATUSES[status]
    assert document.json() == tg("show", task, "--json").json()


def test_whoever_waits_is_told_that_nobody_looks_for_work(tg: Run, furnished: Furnished):
    task, running = furnished.tasks[S.QUEUED], furnished.tasks[S.RUNNING]
    told = tg("wait", task, running, "--timeout", "0").err
    assert told.count("nobody looks for work") == 1
    assert f"here: truegreen attempt {task}\n" in told
    ledger = open_ledger(furnished.url)
    ledger.enlist("h/1", "here")
    assert "nobody" not in tg("wait", task, "--timeout", "0").err


@pytest.mark.parametrize("status", UNDER_WAY)
def test_what_is_not_settled_in_time_is_75_and_never_0(
    status: TaskStatus, tg: Run, furnished: Furnished
):
    answer = tg("wait", furnished.tasks[status], "--timeout", "0", "--json")
    assert answer.status == 75
    assert answer.err == ""
    assert answer.json()["task_status"] == status


def ended_in_vain(ledger: Ledger, review: Ticket) -> None:
    ledger.end_run(review, ended(ExitDetail.REFUSED))


def left_undecided(ledger: Ledger, review: Ticket) -> None:
    declared(ledger, review)
    judged(ledger, review, Outcome.UNKNOWN)


def called_off(ledger: Ledger, review: Ticket) -> None:
    ledger.cancel(review.task, actor=OPERATOR)


@pytest.mark.criterion("J12")
@pytest.mark.parametrize("settle", [ended_in_vain, left_undecided, called_off])
def test_a_review_that_gave_no_verdict_leaves_its_task_to_people(
    settle: Callable[[Ledger, Ticket], None], tg: Run, furnished: Furnished
):
    ledger = open_ledger(furnished.url)
    task = furnished.tasks[S.PENDING_QA]
    (review,) = ledger.reviews_of(task)
    ticket = ledger.start(review.id, Start("qa", base_digest=BASE))
    assert tg("wait", task, "--timeout", "0").status == 75, "the review is under way"
    settle(ledger, ticket)
    ledger.close()
    answer = tg("wait", task)
    assert answer.status == 3
    assert answer.out.splitlines()[1].startswith("task  ◑ pending_qa")


def cap_hit(ledger: Ledger) -> str:
    ticket = started(ledger, rescue=(), budget=Budget(attempts=1))
    return ledger.end_run(ticket, ended(ExitDetail.TURN_CAP)).id


def outage(ledger: Ledger) -> str:
    ticket = started(ledger, budget=Budget(attempts=1))
    return ledger.end_run(ticket, ended(ExitDetail.SIGNALED)).id


def unverified(ledger: Ledger) -> str:
    ticket = started(ledger)
    declared(ledger, ticket)
    return judged(ledger, ticket, Outcome.UNKNOWN).id


def broken_gate(ledger: Ledger) -> str:
    ticket = started(ledger)
    declared(ledger, ticket)
    said = finding(ledger, ticket, FindingOutcome.INCONCLUSIVE, reason="gate error: not found")
    ledger.record(ticket, [said])
    return ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE)).id


@pytest.mark.parametrize(
    ("make", "expected"), [(cap_hit, 4), (outage, 5), (unverified, 3), (broken_gate, 5)]
)
def test_caps_outages_and_unverified_work_have_a_status_of_their_own(
    make: Callable[[Ledger], str], expected: int, tg: Run, sqlite_url: str
):
    ledger = open_ledger(sqlite_url)
    task = make(ledger)
    ledger.close()
    assert tg("wait", task, "--store", sqlite_url).status == expected


def test_several_tasks_give_the_worst_and_all_of_them(tg: Run, furnished: Furnished):
    tasks = [furnished.tasks[s] for s in (S.CANCELED, S.FAILED, S.SUCCEEDED, S.BLOCKED)]
    answer = tg("wait", *tasks, "--json")
    assert answer.status == 1, "failed is worse than canceled, though 6 is the larger number"
    assert [task["id"] for task in answer.json()["tasks"]] == tasks
    plain = tg("wait", *tasks).out
    assert all(task in plain for task in tasks)
    only = furnished.tasks[S.SUCCEEDED]
    assert tg("wait", only, only, "--json").json()["id"] == only, "the same twice is one"


def test_the_worst_is_by_severity():
    order = [0, 75, 6, 3, 4, 5, 1, 130]
    for better, worse in itertools.combinations(order, 2):
        assert worst([better, worse]) == worst([worse, better]) == worse


@contextmanager
def waiting(environ: Callable[..., dict[str, str]], *words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [SCRIPT, "wait", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ(),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_wait_waits_and_tells_every_step(
    environ: Callable[..., dict[str, str]], furnished: Furnished
):
    ledger = open_ledger(furnished.url)
    task = opened(ledger).id
    with waiting(environ, task, furnished.tasks[S.SUCCEEDED]) as process:
        assert process.stderr
        assert process.stderr.readline().split()[:3] == [task, "○", "queued"]
        assert "nobody looks for work" in process.stderr.readline()
        ticket = started(ledger, task)
        assert process.stderr.readline().split()[:3] == [task, "◐", "running"]
        assert process.poll() is None
        declared(ledger, ticket)
        judged(ledger, ticket, Outcome.PASSED)
        out, err = process.communicate(timeout=20)
    ledger.close()
    assert process.returncode == 0
    assert "\ntask  ● succeeded" in out
    assert f"{task}  ● succeeded" in err


def test_a_task_that_needs_a_person_ends_the_wait(
    environ: Callable[..., dict[str, str]], furnished: Furnished
):
    ledger = open_ledger(furnished.url)
    ticket = started(ledger)
    with waiting(environ, ticket.task, "--json") as process:
        declared(ledger, ticket)
        judged(ledger, ticket, Outcome.INCONCLUSIVE)
        out, err = process.communicate(timeout=20)
    ledger.close()
    assert (process.returncode, err) == (3, "")
    assert '"task_status":"needs_review"' in out


def test_a_timeout_bounds_the_wait(tg: Run, furnished: Furnished):
    begun = time.monotonic()
    answer = tg("wait", furnished.tasks[S.RUNNING], "--timeout", "0.5")
    assert answer.status == 75
    assert time.monotonic() - begun >= 0.5


@pytest.mark.criterion("H08")
@pytest.mark.parametrize(("attempts", "expected"), [(1, 5), (3, 5)])
def test_a_run_of_a_dead_supervisor_does_not_hang_the_wait(
    attempts: int, expected: int, tg: Run, furnished: Furnished
):
    holder = subprocess.run(
        [
            SCRIPT.with_name("python"),
            "-c",
            "from truegreen.supervisor.holder import holder_name; print(holder_name())",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    ledger = open_ledger(furnished.url)
    task = opened(ledger, budget=Budget(attempts=attempts)).id
    ledger.start(task, Start(holder, lease_seconds=3600))
    ledger.close()
    answer = tg("wait", task, "--timeout", "20", "--json")
    assert answer.status == expected
    document = answer.json()
    assert document["task_status"] == ("failed" if attempts == 1 else "queued")
    assert document["run_status"] == "lost"
    assert document["exit_detail"] == "supervisor_crashed"


@pytest.mark.parametrize("timeout", ["soon", "-1", "nan", "inf", ""])
def test_a_time_that_is_none_is_refused(timeout: str, tg: Run, furnished: Furnished):
    answer = tg("wait", furnished.tasks[S.RUNNING], "--timeout", timeout)
    assert (answer.status, answer.out) == (2, "")


def test_what_waits_for_a_task_that_can_not_succeed_needs_a_person(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    needed = furnished.tasks[S.FAILED]
    first = opened(ledger, depends_on=(needed,))
    second = opened(ledger, depends_on=(first.id,))
    ledger.close()
    answer = tg("wait", first.id, "--timeout", "20")
    assert answer.status == 3
    assert f"waits for {needed} (failed)" in answer.out
    assert tg("wait", second.id, "--timeout", "20").status == 3
    waits_for = [{"task": needed, "status": "failed"}]
    assert tg("show", first.id, "--json").json()["waits_for"] == waits_for
    listed = tg("list", "--status", "queued", "--json").json()["tasks"]
    assert next(t for t in listed if t["id"] == first.id)["waits_for"] == waits_for
    assert f"waits for {needed} (failed)" in tg("list", "--status", "queued").out
