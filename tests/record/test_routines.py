"""Routines in the record: each slot once, what was missed, overlap, cycles; on both databases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.record.lives import (
    LEAD,
    OPERATOR,
    contract,
    declared,
    ended,
    judged,
    opened,
    started,
)
from tests.stage import Clock
from truegreen.contract import CatchUp, Overlap, Repeat, Routine
from truegreen.contract.reading import parse_duration
from truegreen.errors import NotFound, Refused
from truegreen.facts import Claim
from truegreen.model import (
    Cell,
    ClaimKind,
    ExitDetail,
    ExitReason,
    Outcome,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.ledger.occurrences import Happened, told
from truegreen.record.ledger.routines import Definition, Known
from truegreen.record.recurrence import Fate, Rollup

S = TaskStatus
HOURLY = "0 * * * *"
START = Start("test")
SOURCE = "here:/etc/truegreen.toml"


class Stage:
    """A ledger whose clock stands just before the full hour, and one routine."""

    def __init__(self, ledger: Ledger, patch: pytest.MonkeyPatch) -> None:
        self.ledger, self.clock = ledger, Clock(ledger, patch)
        seconds = datetime.now(UTC).timestamp() % 3600
        self.clock.minutes(60 - seconds / 60 - 1)

    def take(self, name: str = "nightly", *, ends: bool = True, **settings: Any) -> list[str]:
        """Take one routine over."""
        settings = {
            "task": "t",
            **({} if "repeat" in settings else {"schedule": HOURLY}),
        } | settings
        given = Definition(name, Routine(**settings), contract(title=name))
        return [each.change for each in self.ledger.take_routines(SOURCE, [given], ends=ends)]

    def look(self) -> list[Happened]:
        """One look of a scheduler."""
        return [each for n in self.ledger.due_routines() for each in self.ledger.tend_routine(n)]

    def fates(self) -> list[str | None]:
        """What one look came to."""
        return [each.fate for each in self.look()]

    @property
    def known(self) -> Known:
        """The routine as it stands."""
        return self.ledger.routine("nightly", limit=100)

    def comes_to(self) -> Rollup:
        """What all of it comes to."""
        return self.known.rollup

    def rows(self) -> list[tuple[str, int]]:
        """State and number of every occurrence, oldest first."""
        return [(each.row.state, each.row.times) for each in reversed(self.known.recent)]

    def bring(self, task: str, status: TaskStatus, kind: ClaimKind = ClaimKind.DONE) -> None:
        """Bring a queued task somewhere."""
        if status is S.CANCELED:
            self.ledger.cancel(task, actor=OPERATOR)
            return
        ticket = started(self.ledger, task)
        if status is S.BLOCKED:
            self.ledger.end_run(ticket, ended(ExitDetail.REFUSED))
        elif status is S.TERMINATED:
            self.ledger.terminate(task, actor=OPERATOR)
        elif status is not S.RUNNING:
            self.ledger.end_run(ticket, ended(), claim=Claim(kind=kind, reason="said"))
            outcome = {S.FAILED: Outcome.FAILED, S.NEEDS_REVIEW: Outcome.INCONCLUSIVE}
            judged(self.ledger, ticket, outcome.get(status, Outcome.PASSED))
        found = self.ledger.task(task).status
        if found is S.QUEUED and status is S.FAILED:  # another attempt
            self.bring(task, status, kind)
        else:
            assert found is status


@pytest.fixture
def stage(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(ledger, monkeypatch)


@pytest.mark.criterion("K01")
def test_a_slot_fires_once_however_often_somebody_looks(stage: Stage):
    assert stage.take() == ["new"]
    assert stage.fates() == []
    stage.clock.minutes(2)
    (happened,) = stage.look()
    assert stage.look() == []
    assert stage.ledger.tend_routine("nightly") == []
    task = stage.ledger.task(happened.task)
    assert (task.status, task.title, happened.fate) == (S.QUEUED, "nightly", Fate.FIRED)
    assert stage.rows() == [("fired", 1)]
    assert happened.slot == told(stage.known.recent[0].row.due_at)
    assert happened.slot.endswith(":00:00Z")
    assert stage.ledger.routine_of(task) == "nightly"
    assert stage.ledger.routine_of(opened(stage.ledger)) is None


@pytest.mark.criterion("K01")
def test_eight_schedulers_on_one_store_fire_each_slot_once(store_url: str, monkeypatch):
    with_clock = open_ledger(store_url)
    stage = Stage(with_clock, monkeypatch)
    stage.take(overlap=Overlap.PARALLEL)
    ledgers = [open_ledger(store_url) for _ in range(8)]
    store: Any = with_clock.store
    if store.dialect == "sqlite":
        for each in ledgers:
            monkeypatch.setattr(each.store, "clock", store.clock)
    stage.clock.minutes(2)
    line = threading.Barrier(8)

    def tend(ledger: Ledger) -> list[Happened]:
        line.wait(20)
        return ledger.tend_routine("nightly")

    with ThreadPoolExecutor(8) as crowd:
        for _ in range(3):
            happened = [each for found in crowd.map(tend, ledgers) for each in found]
            assert [each.fate for each in happened] == [Fate.FIRED]
            stage.clock.minutes(60)
    assert stage.rows() == [("fired", 1)] * 3
    assert len(stage.ledger.page().tasks) == 3
    for each in (*ledgers, with_clock):
        each.close()


@pytest.mark.criterion("K02")
def test_what_could_not_start_within_its_grace_is_missed_on_both_axes(stage: Stage):
    stage.take()
    stage.clock.minutes(17)
    (happened,) = stage.look()
    dossier = stage.ledger.dossier(happened.task)
    task, (run,) = dossier.task, dossier.runs
    assert (task.status, task.run_status, task.cell) == (S.FAILED, RunStatus.MISSED, Cell.OUTAGE)
    assert (run.status, run.cell, run.verdict) == (
        RunStatus.MISSED,
        Cell.OUTAGE,
        Outcome.UNKNOWN,
    )
    assert (task.exit_reason, run.exit_reason) == (ExitReason.FATAL_ERROR, ExitReason.FATAL_ERROR)
    assert "no scheduler ran, or the machine slept" in run.verdict_reason
    assert task.attempts == 0
    assert stage.look() == []
    assert stage.rows() == [("missed", 1)]
    (item,) = stage.ledger.inbox()
    assert (item.item.cell, item.item.times, item.task) == ("outage", 1, task.id)
    assert item.item.next == "truegreen routine show nightly"
    assert stage.ledger.claim_next(START) == []


@pytest.mark.criterion("K02")
def test_the_next_miss_of_a_routine_counts_in_the_same_inbox_item(stage: Stage):
    stage.take()
    stage.clock.minutes(17)
    stage.look()
    stage.clock.minutes(60)
    stage.look()
    assert stage.rows() == [("missed", 1)] * 2
    assert [each.item.times for each in stage.ledger.inbox()] == [2]
    assert stage.known.missed == 2


@pytest.mark.criterion("K02", "H07")
def test_a_long_sleep_is_one_row_and_at_most_one_start(stage: Stage):
    stage.take()
    stage.clock.minutes(60 * 24 * 9 + 17)
    assert stage.fates() == [Fate.MISSED]
    assert stage.rows() == [("missed", 9 * 24 + 1)]
    stage.clock.minutes(60 * 24 + 45)
    assert stage.fates() == [Fate.MISSED, Fate.FIRED]
    assert stage.rows()[1:] == [("missed", 24), ("fired", 1)]
    assert len(stage.ledger.page().tasks) == 3
    assert stage.known.missed == 9 * 24 + 1 + 24


@pytest.mark.criterion("K02")
def test_catching_up_starts_the_newest_late_and_misses_the_others(stage: Stage):
    stage.take(catch_up=CatchUp.LATEST)
    stage.clock.minutes(60 * 3 + 30)
    assert stage.fates() == [Fate.MISSED, Fate.FIRED]
    assert stage.rows() == [("missed", 3), ("fired", 1)]
    assert stage.known.recent[0].row.cause.startswith("started late, due ")


@pytest.mark.criterion("H07")
def test_a_clock_that_jumps_and_comes_back_fires_nothing_twice(stage: Stage):
    stage.take()
    stage.clock.minutes(2)
    assert stage.fates() == [Fate.FIRED]
    stage.clock.minutes(-5)
    assert stage.ledger.realign_routines() == ["nightly"]
    assert stage.ledger.realign_routines() == []
    stage.clock.minutes(5)
    assert stage.fates() == []
    assert stage.rows() == [("fired", 1)]


@pytest.mark.criterion("H07")
def test_a_clock_that_is_set_back_and_on_again_makes_nothing_missed_that_has_fired(stage: Stage):
    stage.take(overlap=Overlap.PARALLEL)
    stage.clock.minutes(2)
    for _ in range(3):
        assert stage.fates() == [Fate.FIRED]
        stage.clock.minutes(60)
    stage.clock.minutes(-220)
    assert stage.ledger.realign_routines() == ["nightly"]
    stage.clock.minutes(220)
    assert stage.fates() == [Fate.FIRED], "the hour that nobody has seen to"
    assert stage.rows() == [("fired", 1)] * 4
    stage.clock.minutes(-220)
    stage.ledger.realign_routines()
    stage.clock.minutes(220)
    assert stage.fates() == []
    assert (stage.known.row.next_at or 0) > stage.known.recent[0].row.due_at
    stage.clock.minutes(-220)
    stage.ledger.realign_routines()
    stage.clock.minutes(220 + 180)
    assert stage.fates() == [Fate.MISSED, Fate.FIRED]
    assert stage.rows()[4:] == [("missed", 2), ("fired", 1)], "only what nobody has seen to"


@pytest.mark.criterion("H07")
def test_a_clock_that_was_years_ahead_does_not_silence_a_routine_for_years(stage: Stage):
    stage.take(catch_up=CatchUp.LATEST, overlap=Overlap.PARALLEL)
    year = 60 * 24 * 365
    stage.clock.minutes(3 * year)
    stage.look()
    stage.clock.minutes(-3 * year + 2)
    assert stage.fates() == []
    stage.ledger.realign_routines()
    stage.clock.minutes(60)
    assert stage.fates() == [Fate.FIRED]


def test_what_is_frozen_starts_nothing_and_says_so_when_it_was_missed(stage: Stage):
    stage.take()
    stage.ledger.freeze(actor=OPERATOR, reason="an incident")
    stage.clock.minutes(17)
    assert stage.fates() == []
    stage.clock.minutes(60)
    (happened,) = stage.look()
    assert happened.fate is Fate.MISSED
    assert happened.cause == "frozen by operator:ana: an incident"
    stage.ledger.thaw(actor=OPERATOR, reason="over")
    stage.clock.minutes(60)
    assert Fate.FIRED not in stage.fates()
    stage.clock.minutes(45)
    assert stage.fates() == [Fate.FIRED]


@pytest.mark.criterion("K03")
@pytest.mark.parametrize("policy", Overlap)
def test_an_occurrence_that_overlaps_is_skipped_queued_or_runs_beside(
    stage: Stage, policy: Overlap
):
    stage.take(overlap=policy)
    stage.clock.minutes(2)
    (first,) = stage.look()
    stage.clock.minutes(60)
    (second,) = stage.look()
    wanted = {
        Overlap.SKIP: Fate.SKIPPED,
        Overlap.QUEUE: Fate.WAITING,
        Overlap.PARALLEL: Fate.FIRED,
    }[policy]
    assert second.fate is wanted
    assert stage.rows() == [("fired", 1), (wanted, 1)]
    assert (
        stage.known.recent[0].row.cause
        == {
            Overlap.SKIP: f"{first.task} is still under way",
            Overlap.QUEUE: f"waits for {first.task}",
            Overlap.PARALLEL: "",
        }[policy]
    )
    assert stage.look() == []
    stage.bring(first.task, S.SUCCEEDED)
    assert stage.fates() == ([Fate.FIRED] if policy is Overlap.QUEUE else [])
    assert stage.look() == []


def test_what_waits_is_over_when_the_schedule_becomes_a_cycle_and_stays_so_when_it_is_back(
    stage: Stage,
):
    stage.take(overlap=Overlap.QUEUE)
    stage.clock.minutes(2)
    (first,) = stage.look()
    stage.clock.minutes(60)
    assert stage.fates() == [Fate.WAITING]
    stage.take(repeat=Repeat(max_iterations=2))
    assert stage.known.waiting == 0
    [over] = [each.row for each in stage.known.recent if each.row.state == "skipped"]
    assert over.cause == "it is a cycle by now"
    stage.bring(first.task, S.SUCCEEDED)
    stage.take(overlap=Overlap.QUEUE)
    assert [each for each in stage.look() if each.slot == over.slot] == []


@pytest.mark.criterion("K03")
def test_what_waits_goes_one_by_one_in_its_order_and_is_bounded(stage: Stage):
    stage.take(overlap=Overlap.QUEUE)
    stage.clock.minutes(2)
    (first,) = stage.look()
    for _ in range(11):
        stage.clock.minutes(60)
        stage.look()
    states = [state for state, _ in stage.rows()]
    assert states == ["fired"] + ["waiting"] * 10 + ["skipped"]
    assert stage.known.waiting == 10
    stage.bring(first.task, S.SUCCEEDED)
    (next_one,) = stage.look()
    assert next_one.slot == stage.known.recent[-2].row.slot
    assert stage.look() == []


def test_a_task_that_waits_for_a_judgement_holds_up_no_later_night(stage: Stage):
    stage.take()
    stage.clock.minutes(2)
    (first,) = stage.look()
    stage.bring(first.task, S.NEEDS_REVIEW)
    stage.clock.minutes(60)
    assert stage.fates() == [Fate.FIRED]


def test_a_paused_routine_starts_nothing_and_makes_nothing_up(stage: Stage):
    stage.take()
    stage.ledger.pause_routine("nightly", actor=OPERATOR, reason="holidays")
    again = stage.ledger.pause_routine("nightly", actor=OPERATOR)
    assert again.paused_by == "operator:ana"
    stage.clock.minutes(60 * 5)
    assert stage.look() == []
    stage.ledger.resume_routine("nightly", actor=OPERATOR)
    assert stage.look() == []
    stage.clock.minutes(2)
    assert stage.fates() == [Fate.FIRED]
    assert stage.rows() == [("fired", 1)]


def test_what_the_settings_pause_is_resumed_there_alone(stage: Stage):
    stage.take(paused=True)
    stage.clock.minutes(90)
    assert stage.look() == []
    with pytest.raises(Refused, match="paused in the settings"):
        stage.ledger.resume_routine("nightly", actor=OPERATOR)
    assert stage.take() == ["changed"]
    assert stage.look() == []
    stage.clock.minutes(40)
    assert stage.fates() == [Fate.FIRED]


def test_somebody_runs_a_routine_now_beside_its_schedule(stage: Stage):
    stage.take()
    stage.ledger.pause_routine("nightly", actor=OPERATOR)
    task = stage.ledger.run_routine("nightly", actor=LEAD, key="once")
    assert stage.ledger.run_routine("nightly", actor=LEAD, key="once") == task
    assert (task.status, task.created_by) == (S.QUEUED, "lead:lead")
    assert stage.rows() == [("fired", 1)]
    assert stage.known.recent[0].row.cause == "run by lead:lead"
    with pytest.raises(NotFound):
        stage.ledger.run_routine("weekly", actor=LEAD)


def test_a_routine_that_the_settings_name_no_more_is_kept_and_over(stage: Stage):
    stage.take(overlap=Overlap.QUEUE)
    stage.clock.minutes(2)
    stage.look()
    stage.clock.minutes(60)
    assert stage.fates() == [Fate.WAITING]
    assert [each.change for each in stage.ledger.take_routines(SOURCE, [])] == ["gone"]
    assert stage.ledger.take_routines(SOURCE, []) == []
    assert stage.rows() == [("fired", 1), ("skipped", 1)]
    stage.clock.minutes(60)
    assert stage.look() == []
    with pytest.raises(Refused, match="not in the settings any more"):
        stage.ledger.run_routine("nightly", actor=OPERATOR)
    assert stage.take(overlap=Overlap.QUEUE) == ["back"]
    assert stage.look() == []
    stage.clock.minutes(60)
    assert stage.fates() == [Fate.WAITING]


def test_another_file_ends_nothing_and_the_last_definition_wins(stage: Stage):
    stage.take()
    other = Definition("weekly", Routine(task="t", schedule="@weekly"), contract(title="w"))
    elsewhere = "there:/etc/truegreen.toml"
    assert [each.change for each in stage.ledger.take_routines(elsewhere, [other])] == ["new"]
    assert stage.known.row.gone_at is None
    mine = Definition("nightly", Routine(task="t", schedule="@daily"), contract(title="n"))
    assert [each.change for each in stage.ledger.take_routines(elsewhere, [other, mine])] == [
        "changed"
    ]
    assert (stage.known.terms.schedule, stage.known.row.source) == ("@daily", elsewhere)
    (event,) = [e.event for e in stage.ledger.house_events() if '"changed"' in e.event.data]
    assert f'"was_source":"{SOURCE}"' in event.data
    assert stage.ledger.take_routines(elsewhere, [other, mine]) == []


def test_a_change_of_the_schedule_does_not_hide_what_was_missed_before_it(stage: Stage):
    stage.take()
    stage.clock.minutes(60 * 2 + 30)
    assert stage.take(schedule="@daily") == ["changed"]
    assert stage.rows() == [("missed", 3)]
    assert stage.look() == []


# -- cycles --------------------------------------------------------------------------------------


def cycle(stage: Stage, most: int = 3, failures: int = 2) -> None:
    stage.take(repeat=Repeat(max_iterations=most, stop_after_failures=failures))


def iterate(stage: Stage, *outcomes: TaskStatus) -> None:
    """Let iterations end one after the other."""
    for status in outcomes:
        (happened,) = stage.look()
        assert stage.look() == []
        stage.bring(happened.task, status)


@pytest.mark.criterion("K06", "F25")
def test_the_next_iteration_starts_once_when_the_one_before_has_succeeded(stage: Stage):
    cycle(stage)
    (first,) = stage.look()
    assert (first.slot, first.cause) == ("1/1", "iteration 1 of 3")
    assert stage.look() == []
    ticket = started(stage.ledger, first.task)
    assert stage.look() == []
    declared(stage.ledger, ticket)
    assert stage.look() == []
    judged(stage.ledger, ticket, Outcome.PASSED)
    assert [each.slot for each in stage.look()] == ["1/2"]
    assert stage.look() == []
    again = open_ledger(stage.ledger.store.url)  # a restart
    assert again.tend_routine("nightly") == []
    again.close()
    assert stage.rows() == [("fired", 1)] * 2


@pytest.mark.criterion("F25")
def test_a_rescued_iteration_counts_as_success_and_the_next_starts_once(stage: Stage):
    cycle(stage, failures=1)
    (first,) = stage.look()
    ticket = started(stage.ledger, first.task)
    stage.ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED))
    assert judged(stage.ledger, ticket, Outcome.PASSED).rescued
    with ThreadPoolExecutor(4) as crowd:
        found = list(crowd.map(lambda _: stage.ledger.tend_routine("nightly"), range(4)))
    assert [each.slot for happened in found for each in happened] == ["1/2"]
    assert stage.known.row.failures == 0


@pytest.mark.criterion("K06", "F25")
@pytest.mark.parametrize("bad", [S.FAILED, S.CANCELED, S.BLOCKED])
def test_failures_in_a_row_end_a_cycle_and_a_success_forgives(stage: Stage, bad: TaskStatus):
    cycle(stage, most=9)
    iterate(stage, bad, S.SUCCEEDED, bad)
    assert stage.fates() == [Fate.FIRED]
    stage.bring(stage.known.recent[0].task or "", bad)
    (happened,) = stage.look()
    assert (happened.fate, happened.cause) == (None, "stopped after 2 failures in a row")
    assert stage.look() == []
    assert len(stage.rows()) == 4


@pytest.mark.criterion("K06")
def test_a_cycle_ends_at_its_last_iteration(stage: Stage):
    cycle(stage, most=2)
    iterate(stage, S.SUCCEEDED, S.SUCCEEDED)
    assert [each.cause for each in stage.look()] == ["all 2 iterations are done"]
    assert stage.look() == []
    assert stage.comes_to() is Rollup.GREEN
    new = stage.ledger.run_routine("nightly", actor=OPERATOR)
    assert stage.known.recent[0].row.slot == "2/1"
    assert stage.known.recent[0].task == new.id
    assert stage.comes_to() is Rollup.UNKNOWN


@pytest.mark.criterion("K06")
def test_a_terminated_iteration_ends_the_cycle(stage: Stage):
    cycle(stage)
    iterate(stage, S.TERMINATED)
    assert [each.cause for each in stage.look()] == ["iteration 1 was terminated"]


@pytest.mark.criterion("K06")
def test_nothing_left_to_do_ends_a_cycle_only_where_the_checks_carry_it(stage: Stage):
    cycle(stage)
    (first,) = stage.look()
    stage.bring(first.task, S.FAILED, ClaimKind.NOOP)
    (second,) = stage.look()
    stage.bring(second.task, S.SUCCEEDED, ClaimKind.NOOP)
    assert [each.cause for each in stage.look()] == [
        "converged: iteration 2 found nothing left to do"
    ]
    assert stage.look() == []


def test_a_cycle_under_way_is_not_run_beside_itself(stage: Stage):
    cycle(stage)
    (first,) = stage.look()
    with pytest.raises(Refused, match=f"no outcome yet: {first.task}"):
        stage.ledger.run_routine("nightly", actor=OPERATOR)
    stage.ledger.pause_routine("nightly", actor=OPERATOR)
    stage.bring(first.task, S.SUCCEEDED)
    assert stage.look() == []
    second = stage.ledger.run_routine("nightly", actor=OPERATOR, key="k")
    assert stage.ledger.run_routine("nightly", actor=OPERATOR, key="k").id == second.id
    assert stage.known.recent[0].row.slot == "1/2"


# -- what all of them come to ---------------------------------------------------------------------


@pytest.mark.criterion("K04")
def test_how_the_latest_run_ended_and_what_the_latest_task_is_worth_stand_apart(stage: Stage):
    stage.take()
    stage.clock.minutes(2)
    iterate(stage, S.FAILED)
    latest = stage.known.latest
    assert latest is not None
    assert (latest.run_status, latest.status, latest.cell) == (
        RunStatus.EXITED,
        S.FAILED,
        Cell.SILENT_FAILURE,
    )


@pytest.mark.criterion("A24")
def test_a_routine_is_green_only_if_every_member_is(stage: Stage):
    stage.take()
    assert stage.comes_to() is Rollup.UNKNOWN
    stage.clock.minutes(2)
    iterate(stage, S.SUCCEEDED)
    assert stage.comes_to() is Rollup.GREEN
    stage.clock.minutes(60)
    (happened,) = stage.look()
    assert stage.comes_to() is Rollup.UNKNOWN
    stage.bring(happened.task, S.FAILED)
    assert stage.comes_to() is Rollup.RED
    stage.clock.minutes(60)
    iterate(stage, S.SUCCEEDED)
    assert stage.comes_to() is Rollup.RED


@pytest.mark.criterion("A24", "K02")
def test_a_missed_night_keeps_a_routine_from_being_green(stage: Stage):
    stage.take(grace=parse_duration("5m"))
    stage.clock.minutes(8)
    stage.look()
    assert stage.comes_to() is Rollup.RED


def test_what_was_missed_can_be_run_late_by_hand(stage: Stage):
    stage.take()
    stage.clock.minutes(17)
    (happened,) = stage.look()
    stage.ledger.retry(happened.task, actor=OPERATOR, reason="all the same")
    stage.bring(happened.task, S.SUCCEEDED)
    assert [run.status for run in stage.ledger.dossier(happened.task).runs] == [
        RunStatus.MISSED,
        RunStatus.EXITED,
    ]
    assert stage.comes_to() is Rollup.GREEN
    assert stage.rows() == [("missed", 1)]


def test_a_missed_night_stands_in_the_matrix_and_in_the_list(stage: Stage):
    stage.take()
    stage.clock.minutes(17)
    stage.look()
    (count,) = stage.ledger.counts()
    assert (count.cell, count.run_status, count.tasks) == (Cell.OUTAGE, RunStatus.MISSED, 1)
    assert sum(each.runs for each in stage.ledger.ended_since(0)) == 1
    assert any("missed|fatal_error" in label for _, label in stage.ledger.meters())


def test_neither_skips_nor_a_short_look_hide_a_task_that_failed(stage: Stage) -> None:
    stage.take(schedule="* * * * *")
    stage.clock.minutes(1)
    stage.bring(stage.look()[0].task, S.FAILED)
    stage.clock.minutes(1)
    long = stage.look()[0].task
    ticket = started(stage.ledger, long)
    for _ in range(15):
        stage.clock.minutes(1)
        assert stage.fates() == [Fate.SKIPPED]
    stage.ledger.end_run(ticket, ended(), claim=Claim(kind=ClaimKind.DONE, reason="said"))
    judged(stage.ledger, ticket, Outcome.PASSED)
    assert stage.ledger.task(long).status is S.SUCCEEDED
    assert {stage.ledger.routine("nightly", limit=n).rollup for n in (1, 14, 100)} == {Rollup.RED}
