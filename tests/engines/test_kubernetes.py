"""Jobs of Kubernetes against a double of its API; no real cluster was asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.engines.conftest import Played
from tests.engines.kubernetes_api import Api, served
from tests.record.lives import OPERATOR
from tests.stage import Stage, staged
from truegreen.contract.engines import Engine as Settings
from truegreen.contract.engines import EngineKind
from truegreen.engines.kubernetes import Kubernetes
from truegreen.engines.seam import Order, Seen
from truegreen.errors import Refused, Unavailable
from truegreen.facts import JobState, JobWord

HUSHED = "postgresql://u:hush@db/green"


@pytest.fixture
def api() -> Iterator[Api]:
    with served(Api()) as made:
        yield made


@pytest.fixture
def settings(api: Api, tmp_path: Path) -> Settings:
    (tmp_path / "token").write_text("t0ken\n")
    return Settings(
        kind=EngineKind.KUBERNETES,
        api=api.url,
        token_file=str(tmp_path / "token"),
        namespace="green",
        image="registry.example/agents:1",
        secret="green-store",  # noqa: S106 - the name of one
        labels=("gpu",),
    )


@pytest.fixture
def engine(settings: Settings) -> Kubernetes:
    made = Kubernetes(settings, {})
    made.check()
    return made


def order(job: str = "job_1", **changes: Any) -> Order:
    given: dict[str, Any] = {
        "job": job,
        "task": "tsk_1",
        "argv": ("truegreen", "attempt", "tsk_1", "--job", job, "--json"),
        "env": {"TRUEGREEN_STORE": HUSHED},
        "labels": ("gpu",),
        "seconds": 7200,
        "log": "/nowhere",
    }
    return Order(**{**given, **changes})


def test_a_job_is_one_pod_that_is_never_started_again_and_holds_no_secret(
    engine: Kubernetes, api: Api
) -> None:
    assert engine.submit(order()) == "job-1"
    (manifest,) = api.jobs.values()
    spec = manifest["spec"]
    assert (spec["backoffLimit"], spec["completions"], spec["parallelism"]) == (0, 1, 1)
    assert spec["activeDeadlineSeconds"] == 7200
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["automountServiceAccountToken"]) == ("Never", False)
    assert pod["nodeSelector"] == {"truegreen/gpu": "true"}
    (container,) = pod["containers"]
    assert container["command"] == list(order().argv)
    assert container["envFrom"] == [{"secretRef": {"name": "green-store"}}]
    assert "hush" not in repr(manifest)


def test_what_is_set_for_pods_is_taken_and_can_not_loosen_what_holds(
    settings: Settings, api: Api
) -> None:
    volume = {"name": "work", "persistentVolumeClaim": {"claimName": "work"}}
    loose = {"restartPolicy": "OnFailure", "automountServiceAccountToken": True}
    mine = {"image": "another", "command": ["sh"], "resources": {"limits": {"cpu": "2"}}}
    engine = Kubernetes(replace(settings, pod={"volumes": [volume], **loose}, container=mine), {})
    engine.submit(order())
    pod = api.jobs["job-1"]["spec"]["template"]["spec"]
    assert pod["volumes"] == [volume]
    assert (pod["restartPolicy"], pod["automountServiceAccountToken"]) == ("Never", False)
    container = pod["containers"][0]
    assert container["resources"] == {"limits": {"cpu": "2"}}
    assert (container["image"], container["command"][0]) == (settings.image, "truegreen")


def test_an_order_that_was_heard_twice_makes_one_job(engine: Kubernetes, api: Api) -> None:
    assert engine.submit(order()) == engine.submit(order()) == "job-1"
    assert len(api.jobs) == 1


@pytest.mark.parametrize(
    ("status", "seen"),
    [
        ({}, Seen(JobWord.QUEUED, "pending, no pod yet")),
        ({"active": 1}, Seen(JobWord.QUEUED, "pending, its pod is not ready")),
        ({"active": 1, "ready": 1}, Seen(JobWord.RUNNING, "running")),
        (
            {"conditions": [{"type": "Complete", "status": "True"}]},
            Seen(JobWord.GONE, "complete"),
        ),
        (
            {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]},
            Seen(JobWord.GONE, "failed: DeadlineExceeded"),
        ),
        (
            {"active": 1, "conditions": [{"type": "Failed", "status": "False"}]},
            Seen(JobWord.QUEUED, "pending, its pod is not ready"),
        ),
    ],
)
def test_what_the_api_says_of_a_job_becomes_one_word(
    engine: Kubernetes, api: Api, status: dict[str, Any], seen: Seen
) -> None:
    engine.submit(order())
    api.jobs["job-1"]["status"] = status
    assert engine.look(["job-1", "job-2"]) == {
        "job-1": seen,
        "job-2": Seen(JobWord.GONE, "the API knows it no more"),
    }


def test_a_long_list_is_read_to_its_end_and_from_its_start_when_it_expired(
    engine: Kubernetes, api: Api
) -> None:
    names = [engine.submit(order(f"job_{n}")) for n in range(5)]
    api.jobs["foreign"] = {"metadata": {"name": "foreign", "labels": {}}, "status": {}}
    api.page, api.expires = 2, True
    seen = engine.look([*names, "foreign"])
    assert [seen[name].word for name in names] == [JobWord.QUEUED] * 5
    assert seen["foreign"].word is JobWord.GONE
    assert not api.expires


def test_cancel_asks_for_the_pod_first_and_does_not_mind_what_is_gone(
    engine: Kubernetes, api: Api
) -> None:
    engine.submit(order())
    engine.cancel("job-1")
    assert api.asked[-1][::2] == ("DELETE", {"propagationPolicy": "Foreground"})
    assert "job-1" in api.jobs  # until the cluster says that its pod is gone
    engine.cancel("job-2")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ((400, "BadRequest"), Refused),
        ((422, "Invalid"), Refused),
        ((409, "Conflict"), Refused),
        ((401, "Unauthorized"), Unavailable),
        ((403, "Forbidden"), Unavailable),
        ((404, "NotFound"), Unavailable),
        ((429, "TooManyRequests"), Unavailable),
        ((500, "InternalError"), Unavailable),
        ((503, "ServiceUnavailable"), Unavailable),
    ],
)
def test_what_is_about_one_job_is_refused_and_anything_else_is_waited_for(
    engine: Kubernetes, api: Api, fault: tuple[int, str], error: type[Exception]
) -> None:
    api.faults = [fault]
    with pytest.raises(error, match=str(fault[0])):
        engine.submit(order())
    assert api.jobs == {}


def test_an_api_that_fails_says_nothing_of_any_job(engine: Kubernetes, api: Api) -> None:
    engine.submit(order())
    api.faults = [(503, "ServiceUnavailable")]
    with pytest.raises(Unavailable):
        engine.look(["job-1"])


def test_an_api_out_of_reach_is_waited_for(settings: Settings) -> None:
    engine = Kubernetes(replace(settings, api="http://127.0.0.1:1"), {})
    with pytest.raises(Unavailable, match="does not answer"):
        engine.look(["job-1"])


def test_a_token_that_the_cluster_changed_is_read_again(
    engine: Kubernetes, api: Api, settings: Settings
) -> None:
    engine.look([])
    api.token = "another"  # noqa: S105 - a double
    with pytest.raises(Unavailable, match="401"):
        engine.look([])
    Path(settings.token_file).write_text("another")
    assert engine.look([]) == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": ""}, "image is needed"),
        ({"secret": ""}, "secret is needed"),
        ({"api": ""}, "no pod of a cluster"),
        ({"api": "http://cluster.example:8080"}, "has to be https"),
        ({"env": ("KEY",)}, "env is not used"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_handed_over(
    settings: Settings, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refused, match=words):
        Kubernetes(replace(settings, **change), {}).check()


def test_inside_of_a_cluster_its_own_api_is_asked() -> None:
    inside = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
    settings = Settings(kind=EngineKind.KUBERNETES, image="i", secret="s")  # noqa: S106 - as above
    engine = Kubernetes(settings, inside)
    engine.check()
    assert engine._api == "https://10.0.0.1:6443"


def test_a_task_is_handed_over_and_its_pod_deleted_when_it_is_called_off(
    settings: Settings, api: Api, sqlite_url: str, tmp_path: Path, own_tools: None
) -> None:
    stage: Stage = staged(sqlite_url, tmp_path)
    played = Played(stage, settings)
    task = stage.add(labels=("gpu",))
    played.until(lambda: [job.word for job in played.jobs(task.id)] == [JobWord.QUEUED])
    (job,) = played.jobs(task.id)
    command = api.jobs[job.handle]["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command == ["truegreen", "attempt", task.id, "--job", job.id, "--json"]
    assert stage.ledger.store.url not in repr(api.jobs)
    stage.ledger.cancel(task.id, actor=OPERATOR)
    played.until(lambda: "deletionTimestamp" in api.jobs[job.handle]["metadata"])
    assert played.jobs(task.id)[0].state is JobState.PLACED
    del api.jobs[job.handle]
    played.until(lambda: played.idle)
    stage.ledger.close()
