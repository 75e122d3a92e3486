"""A job is an order that is taken once, whatever its engine says or does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.record.lives import OPERATOR, opened
from truegreen.errors import NotFound, Stale, Terminated
from truegreen.facts import JobState, JobWord
from truegreen.record.holds import Hold
from truegreen.record.ledger import Ledger, Start
from truegreen.record.rows import Job


def ordered(ledger: Ledger, task: str) -> Job:
    job = ledger.order_job(task, "slurm")
    assert job
    return job


def test_a_task_is_ordered_once_and_is_nobodys_meanwhile(ledger: Ledger) -> None:
    task = opened(ledger).id
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda _: ledger.order_job(task, "slurm"), range(8)))
    (job,) = filter(None, jobs)
    assert (job.state, job.word, job.handle) == (JobState.PLACED, JobWord.UNKNOWN, "")
    assert ledger.dispatchable() == []
    assert ledger.claim_next(Start("somebody")) == []
    found = ledger.why(task)
    assert (found.hold, found.job) == (Hold.RESERVED, job)


@pytest.mark.criterion("K07")
def test_of_several_copies_of_a_job_one_begins(ledger: Ledger) -> None:
    task = opened(ledger).id
    job = ordered(ledger, task)

    def taken(number: int) -> bool:
        try:
            ledger.take_job(job.id, task, f"host/1/boot/{number}/1")
        except Stale:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(taken, range(8))).count(True) == 1
    (job,) = ledger.jobs_of(task)
    assert job.state is JobState.TAKEN
    assert [holder for _, holder in ledger.reservations("host/")] == [job.holder]


def test_whoever_took_it_may_ask_again_for_the_answer(ledger: Ledger) -> None:
    task = opened(ledger).id
    job = ordered(ledger, task)
    first = ledger.take_job(job.id, task, "host/1/boot/1/1")
    assert ledger.take_job(job.id, task, "host/1/boot/1/1") == first


def test_a_job_begins_neither_another_task_nor_one_that_somebody_took(ledger: Ledger) -> None:
    task, other = opened(ledger).id, opened(ledger).id
    job = ordered(ledger, task)
    with pytest.raises(Stale, match="nothing is started"):
        ledger.take_job(job.id, other, "host/1/boot/1/1")
    assert ledger.reserve(task, "a person's own attempt", take=True)
    with pytest.raises(Stale):
        ledger.take_job(job.id, task, "host/1/boot/1/1")
    with pytest.raises(NotFound):
        ledger.take_job("job_nowhere", task, "host/1/boot/1/1")


@pytest.mark.criterion("G20")
def test_a_job_of_a_terminated_task_begins_nothing(ledger: Ledger) -> None:
    task = opened(ledger).id
    job = ordered(ledger, task)
    ledger.terminate(task, actor=OPERATOR)
    with pytest.raises(Terminated):
        ledger.take_job(job.id, task, "host/1/boot/1/1")
    (left,) = ledger.open_jobs("slurm")
    assert not left.is_wanted


def test_a_lost_job_costs_nothing_is_counted_and_can_not_come_back(ledger: Ledger) -> None:
    task = opened(ledger)
    for number in (1, 2, 3):
        job = ordered(ledger, task.id)
        ledger.place_job(job.id, f"4{number}")
        assert ledger.lose_job(job.id, "NODE_FAIL", pauses=(-1,))[1] == number
        with pytest.raises(Stale):
            ledger.take_job(job.id, task.id, "host/1/boot/1/1")
        with pytest.raises(Stale):
            ledger.lose_job(job.id, "once more", pauses=(0,))
    now = ledger.task(task.id)
    assert (now.attempts, now.attempt, now.status) == (task.attempts, task.attempt, task.status)
    assert "slurm lost 43 before it started: NODE_FAIL" in ledger.events(task.id)[-1].event.reason
    assert ledger.open_jobs("slurm") == []


def test_a_lost_job_holds_its_task_for_a_moment(ledger: Ledger) -> None:
    task = opened(ledger).id
    job = ordered(ledger, task)
    ledger.lose_job(job.id, "NODE_FAIL", pauses=(60,))
    assert ledger.order_job(task, "slurm") is None
    found = ledger.why(task).job
    assert found
    assert (found.state, found.said) == (JobState.LOST, "NODE_FAIL")


def test_jobs_are_counted_anew_after_a_run(ledger: Ledger) -> None:
    task = opened(ledger).id
    assert ledger.lose_job(ordered(ledger, task).id, "gone", pauses=(-1,))[1] == 1
    ticket = ledger.start(task, Start("somebody"))
    ledger.lose(
        next(each for each in ledger.owned("") if each.run == ticket.run)._replace(gone=True)
    )
    ledger.reserve(task, "nobody", seconds=-1, take=True)
    assert ledger.lose_job(ordered(ledger, task).id, "gone", pauses=(-1,))[1] == 1


def test_gone_is_said_since_the_first_look_and_forgotten_when_it_is_seen_again(
    ledger: Ledger,
) -> None:
    task = opened(ledger).id
    job = ordered(ledger, task)
    first = ledger.see_job(job.id, JobWord.GONE, "COMPLETED").gone_at
    assert first
    assert ledger.see_job(job.id, JobWord.GONE).gone_at == first
    assert ledger.see_job(job.id, JobWord.QUEUED, "Resources").gone_at is None
    assert ledger.why(task).job == ledger.jobs_of(task)[0]


def test_a_job_that_waits_long_keeps_its_task(ledger: Ledger) -> None:
    task = opened(ledger).id
    job = ordered(ledger, task)
    ledger.reserve(task, job.reserves, seconds=-1)  # an hour has gone by
    assert [due.task for due in ledger.dispatchable()] == [task]
    ledger.see_job(job.id, JobWord.QUEUED)
    assert ledger.dispatchable() == []


def test_what_a_dead_supervisor_of_a_job_had_reserved_is_free_at_once(ledger: Ledger) -> None:
    task = opened(ledger).id
    job = ordered(ledger, task)
    ledger.take_job(job.id, task, "host/1/boot/1/1")
    assert ledger.dispatchable() == []
    ledger.lose_job(job.id, "gone", pauses=(60,))
    assert [due.task for due in ledger.dispatchable()] == [task]
