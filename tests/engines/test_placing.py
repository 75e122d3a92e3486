"""What follows from an engine's words, and what never does; the one here says what it is told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.engines.conftest import Played
from tests.record.lives import OPERATOR
from tests.stage import Clock, Stage, staged
from truegreen.config import load_config
from truegreen.contract import Gate, read_toml
from truegreen.contract.engines import Engine as Settings
from truegreen.contract.engines import EngineKind
from truegreen.engines.seam import Order, Seen
from truegreen.errors import InvalidInput, Refused, Stale, Unavailable
from truegreen.faces.cli import root, scheduling
from truegreen.facts import JobState, JobWord
from truegreen.model import ExitDetail, TaskStatus
from truegreen.outlets.trust import _without, reach_of
from truegreen.record.ledger import Start
from truegreen.scheduler import placing
from truegreen.supervisor.corridor import Supervisor

S = TaskStatus
SETTINGS = Settings(kind=EngineKind.SLURM, most=2)


class Spoken:
    """An engine that runs nothing and says what it is told to say."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.cancelled: list[str] = []
        self.word = JobWord.QUEUED
        self.fault: Exception | None = None
        self.looks = 0

    def check(self) -> None:
        """It is always here."""

    def submit(self, order: Order) -> str:
        if self.fault:
            raise self.fault
        self.orders.append(order)
        return str(len(self.orders))

    def look(self, handles: Iterable[str]) -> dict[str, Seen]:
        self.looks += 1
        if self.fault:
            raise self.fault
        return {handle: Seen(self.word, "as it says") for handle in handles}

    def cancel(self, handle: str) -> None:
        self.cancelled.append(handle)


@pytest.fixture
def stage(sqlite_url: str, tmp_path: Path, own_tools: None) -> Iterator[Stage]:
    stage = staged(sqlite_url, tmp_path)
    yield stage
    stage.ledger.close()


@pytest.fixture
def engine() -> Spoken:
    return Spoken()


@pytest.fixture
def played(stage: Stage, engine: Spoken, monkeypatch: pytest.MonkeyPatch) -> Played:
    monkeypatch.setattr(placing, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(placing, "_PAUSES", (-1.0, -1.0))
    return Played(stage, SETTINGS, engine)


def look_again(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another look, long after the one before."""
    clock = Clock(played.stage.ledger, monkeypatch)
    clock.minutes(1)
    played.scheduler.tick()


def test_as_many_jobs_are_handed_over_as_there_is_room_for(stage: Stage, played: Played) -> None:
    for name in "abc":  # a folder has one task at a time
        (stage.folder / name).mkdir()
        stage.add(cwd=str(stage.folder / name))
    assert len(played.scheduler.tick()) == 2
    assert played.scheduler.tick() == []
    assert played.scheduler.at_once == 2


def test_nothing_is_handed_over_that_nobody_may_start(stage: Stage, played: Played) -> None:
    stage.add(depends_on=("tsk_nowhere",))
    stage.ledger.freeze(actor=OPERATOR, reason="a bad release")
    stage.add()
    assert played.scheduler.tick() == []


def test_an_order_says_what_is_needed_and_hides_what_is_secret(
    stage: Stage, played: Played, engine: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "for the agent")
    monkeypatch.setenv("OTHER_KEY", "for nobody")
    monkeypatch.setenv("DATABASE_URL", "for a gate")
    gate = Gate(name="tests", command=("true",), pass_env=("DATABASE_URL",))
    task = stage.add(pass_env=("MY_KEY",), gates=(gate,))
    played.scheduler.tick()
    (order,) = engine.orders
    (job,) = played.jobs(task.id)
    assert order.argv == (stage.place.program, "attempt", task.id, "--job", job.id, "--json")
    assert order.env["TRUEGREEN_STORE"] == stage.ledger.store.url
    assert (order.env["MY_KEY"], "OTHER_KEY" in order.env) == ("for the agent", False)
    assert order.env["DATABASE_URL"] == "for a gate"
    assert order.name == f"truegreen-{task.id}"
    assert order.seconds == 2 * 120 * 60 + 3600


@pytest.mark.parametrize("word", [JobWord.QUEUED, JobWord.RUNNING, JobWord.UNKNOWN])
def test_whatever_an_engine_says_short_of_gone_moves_nothing(
    stage: Stage,
    played: Played,
    engine: Spoken,
    word: JobWord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = stage.add()
    played.scheduler.tick()
    engine.word = word
    for _ in range(3):
        look_again(played, monkeypatch)
    (job,) = played.jobs(task.id)
    assert (job.state, job.word) == (JobState.PLACED, word)
    assert stage.ledger.dispatchable() == []


def test_gone_is_not_believed_at_the_first_look(
    stage: Stage, played: Played, engine: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()
    played.scheduler.tick()
    engine.word = JobWord.GONE
    played.scheduler.tick()
    assert [job.state for job in played.jobs(task.id)] == [JobState.PLACED]
    engine.word = JobWord.RUNNING
    look_again(played, monkeypatch)
    engine.word = JobWord.GONE
    look_again(played, monkeypatch)
    assert [job.state for job in played.jobs(task.id)] == [JobState.PLACED]
    look_again(played, monkeypatch)
    assert played.jobs(task.id)[0].state is JobState.LOST


@pytest.mark.criterion("I08")
def test_three_jobs_that_came_to_nothing_are_a_failed_launch_and_cost_one_attempt(
    stage: Stage, played: Played, engine: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()
    engine.word = JobWord.GONE
    while not stage.ledger.dossier(task.id).runs:
        assert stage.ledger.task(task.id).attempts == 0
        look_again(played, monkeypatch)
    states = [job.state for job in played.jobs(task.id)]
    assert states[:3] == [JobState.LOST] * 3
    (run,) = stage.ledger.dossier(task.id).runs
    assert run.exit_detail is ExitDetail.LAUNCH_FAILED
    assert "slurm lost 3 jobs before they started, the last: as it says" in json.dumps(
        [told.event.reason for told in stage.ledger.events(task.id)]
    )
    assert stage.ledger.task(task.id).attempts == 1


def test_a_task_whose_jobs_are_always_lost_fails_in_the_end_and_is_somebodys_to_see(
    stage: Stage, played: Played, engine: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()
    engine.word = JobWord.GONE
    for _ in range(40):
        look_again(played, monkeypatch)
    assert played.status(task.id) is S.FAILED
    assert len(played.jobs(task.id)) == 3
    assert [each.task for each in stage.ledger.inbox()] == [task.id]


@pytest.mark.criterion("K07", "H08")
def test_a_run_whose_job_the_engine_calls_gone_is_the_leases_to_end(
    stage: Stage, played: Played, engine: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()
    played.scheduler.tick()
    (job,) = played.jobs(task.id)
    stage.ledger.take_job(job.id, task.id, "node/1/boot/2/3")
    ticket = stage.ledger.start(task.id, Start("node/1/boot/2/3"))
    engine.word = JobWord.GONE
    for _ in range(3):
        look_again(played, monkeypatch)
    assert stage.ledger.run(ticket.run)[0].exit_reason is None
    assert [each.state for each in played.jobs(task.id)] == [JobState.TAKEN]
    said = [words for words in played.heard.words if "says that job 1 is gone" in words]
    assert len(said) == 1
    assert engine.cancelled == []


def test_a_supervisor_that_died_before_its_run_began_holds_its_task_no_longer(
    stage: Stage, played: Played, engine: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()
    played.scheduler.tick()
    (job,) = played.jobs(task.id)
    stage.ledger.take_job(job.id, task.id, "node/1/boot/2/3")
    engine.word = JobWord.GONE
    look_again(played, monkeypatch)
    look_again(played, monkeypatch)
    assert played.jobs(task.id)[0].state is JobState.LOST
    assert len(played.jobs(task.id)) == 2


def test_a_supervisor_that_does_not_leave_after_its_end_is_cancelled(
    stage: Stage, played: Played, engine: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()
    played.scheduler.tick()
    (job,) = played.jobs(task.id)
    stage.ledger.take_job(job.id, task.id, "node/1/boot/2/3")
    stage.ledger.terminate(task.id, actor=OPERATOR)
    engine.word = JobWord.RUNNING
    played.scheduler.tick()
    assert engine.cancelled == []
    monkeypatch.setattr(placing, "_TIDY_SECONDS", -1.0)
    played.scheduler.tick()
    assert engine.cancelled == ["1"]


def test_a_job_that_waits_for_nothing_any_more_is_cancelled_at_once_and_not_at_every_look(
    stage: Stage, played: Played, engine: Spoken
) -> None:
    task = stage.add()
    played.scheduler.tick()
    stage.ledger.terminate(task.id, actor=OPERATOR)
    for _ in range(3):
        played.scheduler.tick()
    assert engine.cancelled == ["1"]


def test_an_engine_out_of_reach_is_said_once_counts_for_nothing_and_is_not_asked_for_a_while(
    stage: Stage, played: Played, engine: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "_PAUSES", (60.0, 60.0))
    task, other = stage.add(), stage.add()
    engine.fault = Unavailable("slurm does not answer")
    assert played.scheduler.tick() == []
    third = stage.add()
    assert played.scheduler.tick() == []
    assert played.jobs(third.id) == []
    assert [job.state for job in played.jobs(task.id)] == [JobState.OVER]
    assert len(played.jobs(other.id)) <= 1
    assert len([words for words in played.heard.words if "does not answer" in words]) == 1


def test_what_an_engine_refuses_is_a_lost_job_with_its_words(
    stage: Stage, played: Played, engine: Spoken
) -> None:
    engine.fault = Refused("no such partition")
    task = stage.add()
    played.scheduler.tick()
    job = played.jobs(task.id)[0]
    assert (job.state, job.said) == (JobState.LOST, "no such partition")


def test_an_order_that_nobody_answered_is_given_up_and_can_not_come_back(
    stage: Stage, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()
    job = stage.ledger.order_job(task.id, "slurm")  # and then the scheduler died
    assert job
    played.scheduler.tick()
    assert [each.state for each in played.jobs(task.id)] == [JobState.PLACED]
    clock = Clock(stage.ledger, monkeypatch)
    clock.minutes(3)
    played.scheduler.tick()
    assert played.jobs(task.id)[0].state is JobState.LOST
    with pytest.raises(Stale):
        Supervisor(stage.ledger, stage.place).carry(task.id, job=job.id)
    assert stage.ledger.dossier(task.id).runs == []


@pytest.mark.criterion("K07")
def test_a_copy_of_a_job_that_comes_late_leaves_the_first_ones_run_and_reservation_alone(
    stage: Stage, played: Played, engine: Spoken
) -> None:
    task = stage.add()
    played.scheduler.tick()
    (job,) = played.jobs(task.id)
    stage.ledger.take_job(job.id, task.id, "node/1/boot/2/3")
    with pytest.raises(Stale):
        Supervisor(stage.ledger, stage.place).carry(task.id, job=job.id)
    assert stage.ledger.reservations("node/") == [(task.id, "node/1/boot/2/3")]
    assert stage.ledger.dossier(task.id).runs == []


def test_once_hands_over_waits_for_the_record_and_says_how_it_went(
    stage: Stage, played: Played, engine: Spoken, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = stage.add()

    def carried(order: Order) -> str:
        engine.orders.append(order)
        engine.word = JobWord.GONE
        stage.ledger.place_job(order.argv[4], "7")
        Supervisor(stage.ledger, stage.place).carry(order.task, job=order.argv[4])
        return "7"

    monkeypatch.setattr(engine, "submit", carried)
    monkeypatch.setattr(stage.ledger, "place_job", lambda *_: None)
    done = played.scheduler.once()
    assert [(each.task, each.status) for each in done] == [(task.id, S.SUCCEEDED)]
    assert played.idle


def test_why_says_which_job_a_task_was_handed_over_as(
    stage: Stage, played: Played, capsys: pytest.CaptureFixture[str]
) -> None:
    task = stage.add()
    played.scheduler.tick()
    played.scheduler.tick()
    url = stage.ledger.store.url
    assert root.run(["why", task.id, "--json", "--store", url]) == 3
    said = json.loads(capsys.readouterr().out)
    assert (said["hold"], said["reason"]) == ("reserved", "handed to slurm as job 1, as it says")


def test_the_command_line_refuses_an_engine_that_is_not_here_and_says_what_to_install(
    stage: Stage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    url = stage.ledger.store.url
    words = ["scheduler", "--once", "--json", "--executor", "slurm", "--store", url]
    assert root.run(words) == 2
    assert "install the Slurm client" in capsys.readouterr().out


def test_settings_choose_the_engine_and_an_option_goes_before_them(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "truegreen.toml"
    file.write_text('[engine]\nkind = "kubernetes"\n')
    task = stage.add()
    shared = ["--once", "--json", "--store", stage.ledger.store.url, "--config", str(file)]
    assert root.run(["scheduler", *shared]) == 2
    assert "this is no pod of a cluster" in capsys.readouterr().out
    assert root.run(["scheduler", "--executor", "local", *shared]) == 0
    assert stage.ledger.task(task.id).status is S.SUCCEEDED


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("kind = 'dask'", "engine.kind"),
        ("most = 0", "engine.most"),
        ("options = ['sh']", r"engine.options\[0\]"),
        ("env = ['A=B']", r"engine.env\[0\]"),
        ("labels = ['A B']", r"engine.labels\[0\]"),
        ("requeue = true", "requeue"),
    ],
)
def test_settings_of_an_engine_are_checked(line: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        read_toml(f"[engine]\n{line}\n", "truegreen.toml")


def test_an_engine_that_a_run_could_have_set_is_not_used_and_nothing_goes_elsewhere_instead(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "truegreen.toml"
    file.write_text('[engine]\nkind = "slurm"\n')
    config = load_config(os.environ, str(tmp_path), config=str(file))
    unset = _without(config, {"engine"})
    assert unset.contents.engine == Settings()
    monkeypatch.setattr(scheduling, "settle", lambda *_: unset)
    with pytest.raises(Refused, match="outlets trust"):
        scheduling.settled(stage.ledger, config, lambda _: None)
    assert "engine" in reach_of(config.contents)
    assert "engine" not in reach_of(unset.contents)


def test_what_is_shown_of_an_engine_has_no_values_of_pods(tmp_path: Path) -> None:
    file = tmp_path / "truegreen.toml"
    file.write_text(
        '[engine]\nenv = ["A"]\ncontainer = { env = [{ name = "K", value = "hush" }] }\n'
    )
    config = load_config(os.environ, str(tmp_path), config=str(file))
    shown = config.describe()["settings"]
    assert shown["engine.env"]["value"] == ["A"]
    assert "hush" not in json.dumps(shown) + json.dumps(str(reach_of(config.contents)))
