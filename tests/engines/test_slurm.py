"""A real Slurm of two nodes: what it says, what the process table says, what the record does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.engines.conftest import Played, agents_of
from tests.record.lives import OPERATOR
from tests.slurm_cluster import Slurm, missing_part, slurm
from tests.stage import ACTS, Stage, staged
from truegreen.contract.engines import Engine as Settings
from truegreen.contract.engines import EngineKind
from truegreen.errors import Refused
from truegreen.facts import JobState, JobWord
from truegreen.model import ExitDetail, TaskStatus
from truegreen.record.ledger.fencing import Whom
from truegreen.supervisor.termination import terminate

S = TaskStatus
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
SETTINGS = Settings(kind=EngineKind.SLURM, labels=("one", "two", "linux"))
LONG = f"touch begun; sleep 300; echo late >> {ACTS}"
GATED = f"touch begun; while test ! -e go; do sleep 0.1; done; echo acted >> {ACTS}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    if part := missing_part():
        missing(f"Slurm ({part}; `make slurm` installs it)")
    with slurm(tmp_path_factory.mktemp("slurm")) as made:
        yield made


@pytest.fixture
def nodes(cluster: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """Both nodes up, no job left, and found by our own commands."""
    for name, value in cluster.environ.items():
        monkeypatch.setenv(name, value)
    cluster.mend()
    yield cluster
    cluster.clear()


@pytest.fixture
def stage(nodes: Slurm, postgres_url: str, tmp_path: Path, own_tools: None) -> Iterator[Stage]:
    stage = staged(postgres_url, tmp_path)
    yield stage
    stage.ledger.close()


def where(nodes: Slurm, handle: str) -> str:
    return nodes.ask("squeue", "-h", "-t", "all", "-j", handle, "-o", "%T %N").strip()


def test_a_job_goes_to_a_node_with_its_labels_and_the_record_alone_says_how_it_went(
    stage: Stage, nodes: Slurm
) -> None:
    played = Played(stage, SETTINGS)
    task = stage.add(
        f"echo $SLURMD_NODENAME >> {ACTS}", labels=("two",), pass_env=("SLURMD_NODENAME",)
    )
    other = stage.add(labels=("gpu",))
    played.until_status(task.id, S.SUCCEEDED)
    assert stage.acts == ["n2"]
    assert len(stage.ledger.dossier(task.id).runs) == 1
    played.until(lambda: played.idle)
    (job,) = played.jobs(task.id)
    assert (job.state, job.engine) == (JobState.OVER, "slurm")
    assert "COMPLETED n2" in where(nodes, job.handle)
    assert played.status(other.id) is S.QUEUED
    assert played.jobs(other.id) == []


@pytest.mark.criterion("O05")
def test_the_stores_password_is_in_no_argument_no_list_and_no_log(
    stage: Stage, nodes: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = stage.ledger.store.url
    hushed = f"{url}&password=hush-hush"
    assert hushed != url
    played = Played(stage, SETTINGS)
    placing = played.scheduler._placing
    assert placing
    monkeypatch.setattr(placing, "_store", hushed)
    task = stage.add(GATED)
    played.until((stage.folder / "begun").exists)
    (job,) = played.jobs(task.id)
    commands = subprocess.run(
        ["ps", "-ww", "-eo", "args"], capture_output=True, check=True, text=True
    )
    assert f"attempt {task.id} --job {job.id}" in commands.stdout
    listed = nodes.ask("scontrol", "show", "job", "-dd", job.handle)
    assert f"truegreen-{task.id}" in listed
    script = nodes.ask("scontrol", "write", "batch_script", job.handle, "-")
    assert job.id in script
    (stage.folder / "go").touch()
    played.until_status(task.id, S.SUCCEEDED)
    log = Path(stage.place.state_dir, "engine", f"{job.id}.log")
    played.until(log.read_text)
    assert log.parent.stat().st_mode & 0o077 == 0
    for text in (commands.stdout, listed, script, log.read_text()):
        assert "hush" not in text


@pytest.mark.criterion("G01", "G14")
def test_after_terminate_no_process_of_the_agent_lives_and_its_job_is_gone(
    stage: Stage, nodes: Slurm
) -> None:
    played = Played(stage, SETTINGS)
    task = stage.add(LONG)
    played.until((stage.folder / "begun").exists)
    assert agents_of(task.id)
    whom = Whom("task", task.id)
    ended = terminate(stage.ledger, whom, state_dir=stage.place.state_dir, actor=OPERATOR)
    assert ended.complete
    assert agents_of(task.id) == []
    played.until(lambda: played.idle)
    assert not any("asked slurm to cancel" in words for words in played.heard.words)
    assert played.status(task.id) is S.TERMINATED


def test_a_job_that_waits_is_cancelled_when_its_task_is_called_off(
    stage: Stage, nodes: Slurm
) -> None:
    played = Played(stage, Settings(kind=EngineKind.SLURM, options=("--hold",)))
    task = stage.add()
    played.until(lambda: [job.word for job in played.jobs(task.id)] == [JobWord.QUEUED])
    (job,) = played.jobs(task.id)
    assert job.said == "pending (JobHeldUser)"
    stage.ledger.cancel(task.id, actor=OPERATOR)
    played.until(lambda: played.idle)
    assert where(nodes, job.handle).startswith("CANCELLED")
    assert stage.acts == []


def test_scancel_by_somebody_calls_nothing_off_the_task_is_done_by_the_next_job(
    stage: Stage, nodes: Slurm
) -> None:
    played = Played(stage, SETTINGS)
    task = stage.add(f"if test -e begun; then echo acted >> {ACTS}; else {LONG}; fi")
    played.until((stage.folder / "begun").exists)
    nodes.ask("scancel", played.jobs(task.id)[0].handle)
    played.until_status(task.id, S.SUCCEEDED)
    assert agents_of(task.id) == []
    first, second = stage.ledger.dossier(task.id).runs
    assert first.exit_detail is ExitDetail.SUPERVISOR_CRASHED
    assert second.exit_detail is ExitDetail.COMPLETED
    assert stage.acts == ["acted"]


@pytest.mark.criterion("K07", "H08")
def test_a_node_that_slurm_calls_lost_keeps_its_run_while_its_lease_lives(
    stage: Stage, nodes: Slurm
) -> None:
    played = Played(stage, SETTINGS)
    task = stage.add(GATED, labels=("one",))
    played.until((stage.folder / "begun").exists)
    (job,) = played.jobs(task.id)
    nodes.kill("slurmd-n1")
    nodes.declare_down("n1")
    played.until(lambda: any("says that job" in words for words in played.heard.words))
    assert "NODE_FAIL" in where(nodes, job.handle)
    assert agents_of(task.id)
    assert played.status(task.id) is S.RUNNING
    assert len(played.jobs(task.id)) == 1
    (stage.folder / "go").touch()
    played.until_status(task.id, S.SUCCEEDED)
    assert stage.acts == ["acted"]
    assert len(stage.ledger.dossier(task.id).runs) == 1


@pytest.mark.criterion("K07")
def test_a_job_that_slurm_starts_again_while_its_first_copy_runs_starts_nothing(
    stage: Stage, nodes: Slurm
) -> None:
    played = Played(stage, SETTINGS)
    task = stage.add(GATED)
    played.until((stage.folder / "begun").exists)
    (job,) = played.jobs(task.id)
    node = where(nodes, job.handle).split()[1]
    nodes.ask("scontrol", "update", f"JobId={job.handle}", "Requeue=1")
    nodes.kill(f"slurmd-{node}")
    nodes.declare_down(node)
    log = Path(stage.place.state_dir, "engine", f"{job.id}.log")

    def came_again() -> bool:
        nodes.ask("scontrol", "update", f"JobId={job.handle}", "StartTime=now")
        return "is no order for" in log.read_text()

    played.until(came_again)
    assert "Restarts=1" in nodes.ask("scontrol", "show", "job", job.handle)
    assert agents_of(task.id)
    assert [run.exit_reason for run in stage.ledger.dossier(task.id).runs] == [None]
    (stage.folder / "go").touch()
    played.until_status(task.id, S.SUCCEEDED)
    assert stage.acts == ["acted"]
    assert len(stage.ledger.dossier(task.id).runs) == 1


def test_what_slurm_does_not_take_is_refused_in_its_words(stage: Stage, nodes: Slurm) -> None:
    played = Played(stage, Settings(kind=EngineKind.SLURM, labels=("gpu",)))
    task = stage.add(labels=("gpu",))
    played.until(lambda: played.jobs(task.id))
    (job,) = played.jobs(task.id)
    assert (job.state, job.handle) == (JobState.LOST, "")
    assert "Invalid feature specification" in job.said


def test_a_slurm_out_of_reach_costs_nothing_and_is_said_once(
    stage: Stage, nodes: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = nodes.config.read_text()
    port = next(line for line in text.splitlines() if line.startswith("SlurmctldPort"))
    elsewhere = tmp_path / "slurm.conf"
    elsewhere.write_text(text.replace(port, "SlurmctldPort=1") + "\nMessageTimeout=1\n")
    monkeypatch.setenv("SLURM_CONF", str(elsewhere))
    played = Played(stage, SETTINGS)
    task = stage.add()
    played.until(lambda: played.jobs(task.id))
    played.scheduler.tick()
    (job,) = played.jobs(task.id)
    assert job.state is JobState.OVER
    assert sum("slurm does not answer" in words for words in played.heard.words) == 1
    assert played.status(task.id) is S.QUEUED


def test_without_its_commands_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from truegreen.engines import engine_of  # noqa: PLC0415 - beside the claim

    with pytest.raises(Refused, match=r"sbatch, squeue, scancel not found.*slurm-client"):
        engine_of(SETTINGS, {**os.environ, "PATH": "/nowhere"})
