"""A real Ray of two nodes: what it says, what the process table says, and what the record does."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.engines.conftest import Played, agents_of
from tests.record.lives import OPERATOR
from tests.stage import ACTS, Stage, staged
from truegreen.contract.engines import Engine as Settings
from truegreen.contract.engines import EngineKind
from truegreen.engines.seam import Order
from truegreen.facts import JobState, JobWord
from truegreen.model import TaskStatus
from truegreen.record.ledger.fencing import Whom
from truegreen.supervisor.termination import terminate

S = TaskStatus
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]
GATED = f"touch begun; while test ! -e go; do sleep 0.1; done; echo acted >> {ACTS}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes with a label each; the second one is added, so that a test can take it away."""
    if find_spec("ray") is None:
        missing("Ray (the extra `ray`)")
    import ray  # noqa: PLC0415 - slow to load
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - as above

    with (
        tempfile.TemporaryDirectory(
            prefix="tgray-", dir="/tmp", ignore_cleanup_errors=True
        ) as home,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RAY_TMPDIR", home)
        inside = os.path.join(home, "ray")
        os.mkdir(inside)  # where Ray notes its address, and does not make the folder itself
        node = {"num_cpus": 4, "temp_dir": inside, "resources": {"one": 1}}
        # Parts that no job needs: each is a Python of its own.
        spared = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
        made = Cluster(initialize_head=True, head_node_args={**node, **spared})
        try:
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


@pytest.fixture(scope="module")
def second(cluster: Any) -> Any:
    return cluster.add_node(num_cpus=4, resources={"two": 1})


@pytest.fixture
def stage(
    cluster: Any, second: Any, postgres_url: str, tmp_path: Path, own_tools: None
) -> Iterator[Stage]:
    stage = staged(postgres_url, tmp_path)
    yield stage
    stage.ledger.close()


@pytest.fixture
def played(stage: Stage, cluster: Any) -> Played:
    labels = ("one", "two")
    settings = Settings(kind=EngineKind.RAY, address=cluster.address, labels=labels, cpus=0.5)
    return Played(stage, settings)


def begun(stage: Stage, played: Played, **terms: Any) -> str:
    task = stage.add(GATED, **terms)
    played.until((stage.folder / "begun").exists)
    return task.id


def test_a_job_goes_to_a_node_with_its_labels_and_the_record_alone_says_how_it_went(
    stage: Stage, played: Played
) -> None:
    task, other = stage.add(labels=("two",)), stage.add(labels=("gpu",))
    played.until_status(task.id, S.SUCCEEDED)
    played.until(lambda: played.idle)
    (job,) = played.jobs(task.id)
    assert (job.state, job.word, job.said) == (JobState.OVER, JobWord.GONE, job.said)
    assert len(stage.ledger.dossier(task.id).runs) == 1
    assert (played.status(other.id), played.jobs(other.id)) == (S.QUEUED, [])


@pytest.mark.criterion("G01", "G14")
def test_after_terminate_no_process_of_the_agent_lives_and_its_job_is_gone(
    stage: Stage, played: Played
) -> None:
    task = begun(stage, played)
    assert agents_of(task)
    whom = Whom("task", task)
    ended = terminate(stage.ledger, whom, state_dir=stage.place.state_dir, actor=OPERATOR)
    assert ended.complete
    assert agents_of(task) == []
    played.until(lambda: played.idle)
    assert played.status(task) is S.TERMINATED


@pytest.mark.criterion("K07")
def test_a_second_copy_starts_nothing_and_cancel_ends_the_process_and_calls_nothing_off(
    stage: Stage, played: Played
) -> None:
    task = begun(stage, played)
    (job,) = played.jobs(task)
    again = Order(
        job=f"{job.id}-again",
        task=task,
        argv=(stage.place.program, "attempt", task, "--job", job.id, "--json"),
        env={**os.environ, "TRUEGREEN_STORE": stage.ledger.store.url},
        labels=(),
        seconds=60,
        log=str(stage.folder / "again.log"),
    )
    played.engine.submit(again)
    log = stage.folder / "again.log"
    played.until(lambda: log.exists() and "is no order for" in log.read_text())
    assert [each.exit_reason for each in stage.ledger.dossier(task).runs] == [None]
    played.engine.cancel(job.handle)
    played.until(lambda: not agents_of(task))
    (stage.folder / "go").touch()
    played.until_status(task, S.SUCCEEDED)
    first, second = stage.ledger.dossier(task).runs
    assert first.ended_at
    assert first.ended_at <= second.created_at
    assert [len(played.jobs(task)), stage.acts] == [2, ["acted"]]


def test_a_job_that_no_node_can_take_waits_and_is_cancelled_with_its_task(
    stage: Stage, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truegreen.engines import ray as engine  # noqa: PLC0415 - beside its use

    monkeypatch.setattr(engine, "_SECONDS", 0.5)
    task = stage.add(labels=("two",))
    monkeypatch.setattr(engine, "_SHARE", 2.0)
    played.until(lambda: [job.said for job in played.jobs(task.id)] == [engine._SILENT.said])
    assert played.status(task.id) is S.QUEUED
    stage.ledger.cancel(task.id, actor=OPERATOR)
    played.until(lambda: played.idle)
    assert stage.acts == []


@pytest.mark.criterion("K07", "H08")
def test_a_task_whose_node_is_lost_runs_once_more_and_never_twice_at_once(
    stage: Stage, played: Played, cluster: Any, second: Any
) -> None:
    """The second node is another one afterwards."""
    task = begun(stage, played, labels=("two",))
    cluster.remove_node(second, allow_graceful=False)
    played.until(lambda: not agents_of(task))
    played.until(lambda: len(played.jobs(task)) == 2)
    assert [each.exit_reason is None for each in stage.ledger.dossier(task).runs] == [False]
    (stage.folder / "go").touch()
    cluster.add_node(num_cpus=4, resources={"two": 1})
    played.until_status(task, S.SUCCEEDED)
    first, last = stage.ledger.dossier(task).runs
    assert first.ended_at
    assert first.ended_at <= last.created_at
    assert stage.acts == ["acted"]
