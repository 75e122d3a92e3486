"""What the scheduler starts, in which order, how often, and what never ends it."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.record.lives import OPERATOR, REVIEWED, brought
from tests.stage import ACTS, Clock, Heard, Stage, staged
from truegreen.contract import Budget, Contract, Gate, GateKind
from truegreen.doors.marks import is_fenced
from truegreen.errors import StoreUnreachable
from truegreen.facts import WakeState
from truegreen.model import ExitDetail, TaskStatus
from truegreen.record.ledger import Ledger, Start
from truegreen.scheduler import Carried, Scheduler
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.holder import holder_name, host_name
from truegreen.work.exits import SHUT_DOWN
from truegreen.work.tree import Identity

S = TaskStatus


@pytest.fixture
def stage(sqlite_url: str, tmp_path: Path, own_tools: None) -> Iterator[Stage]:
    stage = staged(sqlite_url, tmp_path)
    yield stage
    stage.ledger.close()


@pytest.fixture
def both(store_url: str, tmp_path: Path, own_tools: None) -> Iterator[Stage]:
    stage = staged(store_url, tmp_path)
    yield stage
    stage.ledger.close()


def until(true: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


def status(stage: Stage, task: str) -> TaskStatus:
    return stage.ledger.task(task).status


def writing(stage: Stage, number: int, **terms: Any) -> str:
    """A task that writes its number, which was not there before."""
    gate = Gate(name="w", kind=GateKind.RUN, command=("grep", "-qxe", str(number), ACTS))
    return stage.add(f"echo {number} >> {ACTS}", gates=(gate,), **terms).id


def test_the_most_urgent_goes_first_and_seats_are_the_limit(both: Stage) -> None:
    names = {p: writing(both, p, priority=p) for p in (1, 5, -3)}
    heard = Heard()
    scheduler = both.scheduler(heard, seats=1)
    assert scheduler.tick() == [names[5]]
    scheduler.drain()
    assert scheduler.dispatch() == [names[1]]
    scheduler.drain()
    assert [each.task for each in scheduler.once()] == [names[-3]]
    scheduler.close()
    assert both.acts == ["5", "1", "-3"]
    assert [(c.status, c.error) for c in heard.carried] == [(S.SUCCEEDED, "")] * 3


@pytest.mark.criterion("K05")
@pytest.mark.parametrize("needed", [S.QUEUED, S.FAILED, S.CANCELED, S.SUCCEEDED, None])
def test_a_dependency_that_has_not_succeeded_holds_a_task(
    both: Stage, needed: TaskStatus | None
) -> None:
    other = brought(both.ledger, needed)[0].id if needed else "tsk_nowhere"
    if needed is S.QUEUED:
        both.ledger.reserve(other, "elsewhere")
    task = both.add(depends_on=(other,))
    assert both.play() == ([task.id] if needed is S.SUCCEEDED else [])


def test_held_tasks_do_not_stand_in_the_way_of_others(stage: Stage) -> None:
    for _ in range(120):
        stage.add(priority=9, depends_on=("tsk_nowhere",))
    task = stage.add()
    assert stage.play() == [task.id]


@pytest.mark.criterion("K07", "G08")
def test_schedulers_at_once_start_each_task_once(both: Stage) -> None:
    tasks = [writing(both, n) for n in range(8)]
    schedulers = [both.scheduler() for _ in range(3)]
    threads = [threading.Thread(target=scheduler.run) for scheduler in schedulers]
    for thread in threads:
        thread.start()
    until(lambda: all(status(both, task) is S.SUCCEEDED for task in tasks), 60)
    for scheduler in schedulers:
        scheduler.stop()
    for thread, scheduler in zip(threads, schedulers, strict=True):
        thread.join()
        scheduler.close()
    assert sorted(both.acts) == sorted(str(n) for n in range(8))
    assert [len(both.ledger.dossier(task).runs) for task in tasks] == [1] * 8


def test_a_task_that_somebody_is_about_to_carry_out_is_left_to_them(both: Stage) -> None:
    mine = both.ledger.open(
        Contract(title="mine", command=("true",), cwd=both.own("mine")),
        actor=OPERATOR,
        holder=holder_name(),
    )
    taken = both.add(cwd=both.own("taken"))
    assert both.ledger.reserve(taken.id, "host/1/boot/2/3")
    assert not both.ledger.reserve(taken.id, "host/1/boot/9/9")
    assert both.play() == []
    both.ledger.release(taken.id, "host/1/boot/9/9")
    assert both.play() == []
    both.ledger.release(taken.id, "host/1/boot/2/3")
    assert both.play() == [taken.id]
    assert status(both, mine.id) is S.QUEUED


def test_what_the_dead_were_about_to_do_is_done_by_others(stage: Stage) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        known = Identity.of(process.pid)
        process.kill()
    assert known is not None
    task = stage.add()
    stage.ledger.reserve(task.id, f"{host_name()}{known.boot}/{known.pid}/{known.start}")
    assert stage.play() == [task.id]


def test_a_reservation_whose_release_got_lost_is_let_go(
    both: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, away, release = both.add(), [StoreUnreachable("away")], Ledger.release

    def sometimes(ledger: Ledger, *words: Any, **more: Any) -> None:
        if away:
            raise away.pop()
        release(ledger, *words, **more)

    monkeypatch.setattr(Ledger, "release", sometimes)
    scheduler = both.scheduler()
    assert scheduler.tick() == [task.id]
    scheduler.drain()
    assert both.ledger.reservations("") == [(task.id, holder_name())]
    scheduler.keep_house()
    assert both.ledger.reservations("") == []
    scheduler.close()


def test_a_reservation_that_a_seat_stands_behind_is_kept(stage: Stage) -> None:
    stage.add("until test -e go; do sleep 0.02; done; echo acted >> acts.txt")
    scheduler = stage.scheduler()
    (task,) = scheduler.tick()
    scheduler.keep_house()
    assert stage.ledger.reservations("") == [(task, holder_name())]
    (stage.folder / "go").touch()
    scheduler.close()


@pytest.mark.criterion("H07")
@pytest.mark.parametrize("minutes", [-60, 60])
def test_a_crash_is_waited_for_by_the_stores_clock_however_wrong_the_hosts_is(
    both: Stage, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    Clock(both.ledger, monkeypatch).minutes(minutes)
    task = both.add(f"test -e tried && echo acted >> {ACTS} || {{ touch tried; kill -SEGV $$; }}")
    assert both.play() == [task.id]
    assert status(both, task.id) is S.SUCCEEDED
    crashed, second = both.ledger.dossier(task.id).runs
    assert crashed.ended_at is not None
    assert 1e6 <= second.created_at - crashed.ended_at < 30e6


def test_a_reservation_runs_out(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(stage.ledger, monkeypatch)
    task = stage.add()
    stage.ledger.reserve(task.id, "elsewhere/1/b/2/3", seconds=60)
    assert stage.play() == []
    clock.minutes(2)
    assert stage.play() == [task.id]


@pytest.mark.criterion("H08")
def test_what_a_dead_supervisor_left_is_ended_before_anything_starts(stage: Stage) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        known = Identity.of(process.pid)
        process.kill()
    assert known is not None
    holder = f"{host_name()}{known.boot}/{known.pid}/{known.start}"
    task = stage.add()
    stage.ledger.start(task.id, Start(holder))
    heard = Heard()
    scheduler = stage.scheduler(heard)
    scheduler.keep_house()
    assert status(stage, task.id) is S.QUEUED
    assert task.id in heard.words[0]
    scheduler.close()


@pytest.mark.criterion("G18")
def test_a_mark_that_was_lost_is_put_back(stage: Stage) -> None:
    done = stage.add()
    stage.play()
    agent = stage.agent_of(done)
    stage.ledger.terminate_agent(agent, actor=OPERATOR)
    assert not is_fenced(stage.place.state_dir, agent)
    stage.play()
    assert is_fenced(stage.place.state_dir, agent)


@pytest.mark.criterion("G22")
def test_nothing_starts_and_nobody_wakes_while_all_is_frozen(both: Stage) -> None:
    done = both.add()
    both.play()
    wake = both.ledger.arm(both.agent_of(done), "more", actor=OPERATOR)
    task = both.add()
    both.ledger.freeze(actor=OPERATOR, reason="stop")
    assert (both.play(), both.scheduler().once()) == ([], [])
    (kept,) = both.ledger.wakes(both.agent_of(done))
    assert (kept.id, kept.state) == (wake.id, WakeState.ARMED)
    both.ledger.thaw(actor=OPERATOR, reason="go on")
    scheduler = both.scheduler()
    assert len(scheduler.once()) == 2
    scheduler.close()
    assert status(both, task.id) is S.SUCCEEDED


class Lost(Scheduler):
    """A scheduler that looks, and is overtaken before it starts anything."""

    overtake: Callable[[], object] = staticmethod(lambda: None)

    def dispatch(self) -> list[str]:
        found = self._ready()
        type(self).overtake()
        return [due.task for due in found if self._give(due)]


@pytest.mark.criterion("G07", "G08", "K07")
@pytest.mark.parametrize("how", ["terminate", "cancel", "start", "freeze"])
def test_to_lose_a_race_is_a_value(both: Stage, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = both.add()
    ways: dict[str, Callable[[], object]] = {
        "terminate": lambda: both.ledger.terminate(task.id, actor=OPERATOR),
        "cancel": lambda: both.ledger.cancel(task.id, actor=OPERATOR),
        "start": lambda: both.ledger.start(task.id, Start("elsewhere/1/b/2/3")),
        "freeze": lambda: both.ledger.freeze(actor=OPERATOR, reason="stop"),
    }
    monkeypatch.setattr(Lost, "overtake", ways[how])
    heard = Heard()
    scheduler = Lost(both.ledger, both.place, heard)
    scheduler.tick()
    scheduler.close()
    (carried,) = heard.carried
    assert carried.refused
    assert carried.error
    assert both.acts == []


def test_what_another_is_about_to_carry_out_since_the_look_is_left_to_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()
    monkeypatch.setattr(Lost, "overtake", lambda: stage.ledger.reserve(task.id, "e/1/b/2/3"))
    heard = Heard()
    scheduler = Lost(stage.ledger, stage.place, heard)
    assert scheduler.tick() == []
    scheduler.close()
    assert heard.carried == []


def test_a_fault_of_one_task_ends_neither_the_seat_nor_the_scheduler(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = stage.add(priority=9, cwd=stage.own("bad"))
    good = stage.add(cwd=stage.own("good"))
    carry = Supervisor.carry

    def faulty(self: Supervisor, task: str) -> object:
        if task == bad.id:
            raise ZeroDivisionError("a bug")
        return carry(self, task)

    monkeypatch.setattr(Supervisor, "carry", faulty)
    heard = Heard()
    scheduler = stage.scheduler(heard, seats=1)
    scheduler.once()
    scheduler.close()
    assert [c.task for c in heard.carried] == [bad.id, good.id]
    assert "a bug" in heard.carried[0].error
    assert status(stage, good.id) is S.SUCCEEDED


def test_a_task_that_does_not_move_is_not_tried_again_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()

    def stand_still(_self: Supervisor, task: str) -> object:
        stage.ledger.release(task, holder_name())
        return stage.ledger.task(task)

    monkeypatch.setattr(Supervisor, "carry", stand_still)
    scheduler = stage.scheduler()
    looks = []
    for _ in range(3):
        looks += scheduler.tick()
        scheduler.drain()
    assert looks == [task.id]
    scheduler.close()


def test_a_store_out_of_reach_is_said_once_and_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    scheduler = stage.scheduler(heard)
    away = threading.Event()
    real = stage.ledger.frozen
    looks = []

    def frozen() -> object:
        looks.append(1)
        if not away.is_set():
            raise StoreUnreachable("away")
        return real()

    monkeypatch.setattr(stage.ledger, "frozen", frozen)
    thread = threading.Thread(target=scheduler.run)
    thread.start()
    until(lambda: len(looks) > 2)
    task = stage.add()
    away.set()
    until(lambda: status(stage, task.id) is S.SUCCEEDED)
    scheduler.stop()
    thread.join()
    scheduler.close()
    assert heard.words == ["the store is out of reach: away"]


@pytest.mark.criterion("M04")
def test_no_handle_left_is_said_once_and_is_not_the_end(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    scheduler = stage.scheduler(heard)
    looks = []

    def name() -> str:
        looks.append(1)
        if len(looks) < 3:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return holder_name()

    monkeypatch.setattr("truegreen.scheduler.holder_name", name)
    thread = threading.Thread(target=scheduler.run)
    thread.start()
    task = stage.add()
    until(lambda: status(stage, task.id) is S.SUCCEEDED)
    scheduler.stop()
    thread.join()
    scheduler.close()
    said = "nothing can be started now: Too many open files; it is tried again"
    assert heard.words == [said]


@pytest.mark.parametrize("at_once", [False, True])
def test_who_shuts_it_down_puts_its_work_back_into_the_queue(stage: Stage, at_once: bool) -> None:
    task = stage.add(f"echo begun >> {ACTS}; exec sleep 60", budget=Budget(attempts=3))
    others = threading.enumerate()
    scheduler = stage.scheduler()
    thread = threading.Thread(target=scheduler.run)
    thread.start()
    until(lambda: stage.acts)
    begun = time.monotonic()
    scheduler.stop(at_once=at_once)
    thread.join()
    scheduler.close()
    assert time.monotonic() - begun < 15
    dossier = stage.ledger.dossier(task.id)
    (run,) = dossier.runs
    assert (dossier.task.status, run.exit_detail) == (S.QUEUED, ExitDetail.SUPERVISOR_RESTARTED)
    assert (dossier.task.attempts, dossier.task.deferrals) == (0, 1)
    assert SHUT_DOWN in run.facts
    assert stage.ledger.reservations("") == []
    mine = [each for each in threading.enumerate() if each not in others]
    assert [each.name for each in mine if each.name.startswith("seat-")] == []


def test_an_idle_scheduler_finds_new_work_within_a_second_or_so(stage: Stage) -> None:
    scheduler = stage.scheduler()
    thread = threading.Thread(target=scheduler.run)
    thread.start()
    time.sleep(1.5)  # long enough for it to have backed off
    task = stage.add()
    begun = time.monotonic()
    until(lambda: status(stage, task.id) is not S.QUEUED)
    waited = time.monotonic() - begun
    until(lambda: status(stage, task.id) is S.SUCCEEDED)
    scheduler.stop()
    thread.join()
    scheduler.close()
    assert waited < 3


def test_agents_live_as_long_as_their_seat_not_as_the_look_that_started_them(stage: Stage) -> None:
    """A child dies with the thread that started it: so that must not be a passing one."""
    stage.add(f"sleep 0.7; echo lived >> {ACTS}", budget=Budget(attempts=1))
    scheduler = stage.scheduler()
    thread = threading.Thread(target=scheduler.tick)
    thread.start()
    thread.join()
    scheduler.close()
    assert stage.acts == ["lived"]


def test_a_review_that_nobody_carries_out_is_carried_out_with_its_task(stage: Stage) -> None:
    """As after a crash between the verdict and the review."""
    reviewer = REVIEWED.definition
    assert reviewer is not None
    verdict = "echo looked at it"
    qa = type(REVIEWED)(
        roles=("coder",),
        agent="reviewer",
        definition=type(reviewer)(command=("sh", "-c", verdict)),
    )
    task = stage.add(role="coder", qa=qa)
    Supervisor(stage.ledger, stage.place).attempt(task.id)
    assert status(stage, task.id) is S.PENDING_QA
    (review,) = stage.ledger.reviews_of(task.id)
    assert stage.play() == [review.id]
    assert stage.ledger.reviews_of(task.id)[0].attempt > 0


class Broken(Heard):
    """An audience that can't bear to hear how it ended."""

    def ended(self, carried: Carried) -> None:
        super().ended(carried)
        raise BrokenPipeError("nobody reads it")


def test_whatever_happens_to_who_looks_on_the_seat_becomes_free(stage: Stage) -> None:
    tasks = [stage.add().id for _ in range(2)]
    scheduler = stage.scheduler(Broken(), seats=1)
    carried = scheduler.once()
    scheduler.close()
    assert [(each.task, each.status) for each in carried] == [(t, S.SUCCEEDED) for t in tasks]
    assert all("nobody reads it" in each.unheard for each in carried)


def test_that_all_is_frozen_is_said_once_and_that_it_is_over(stage: Stage) -> None:
    heard = Heard()
    scheduler = stage.scheduler(heard)
    scheduler.tick()
    stage.ledger.freeze(actor=OPERATOR, reason="a leak")
    for _ in range(3):
        scheduler.tick()
    (frozen,) = heard.words
    assert "a leak" in frozen
    assert "truegreen thaw --reason" in frozen
    stage.ledger.thaw(actor=OPERATOR, reason="mended")
    for _ in range(3):
        scheduler.tick()
    assert [words.split(":")[0] for words in heard.words[1:]] == ["thawed"]
    scheduler.close()
