"""Artifacts of routines and of tasks whose artifact is their status: only this run's count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.walk.conftest import Walk

LAST_NIGHT = '{"task_status": "succeeded", "night": 1}\n'
NEW = """printf '{"task_status": "succeeded", "night": 2}' > report.json"""
GATED = 'gates = ["report"]'
BOTH = 'gates = ["report", "value"]'
SAME = "cp report.json draft; mv draft report.json"


def settings(walk: Walk, agent: str, gate: str = "", *, task: str = GATED) -> None:
    """A nightly routine with an agent that does this."""
    command = json.dumps(["sh", "-c", agent])
    (walk.folder / "truegreen.toml").write_text(
        f"[gates.report]\n{gate or EXISTS}\n[gates.value]\n{VALUE}\n"
        f"[tasks.report]\ncommand = {command}\nmax_attempts = 1\n"
        f"{task}\n"
        '[routines.nightly]\ntask = "report"\nschedule = "0 3 * * *"\n'
    )


EXISTS = 'kind = "exists"\npaths = ["report.json"]'
VALUE = 'kind = "json"\npath = "report.json"\npointer = "/task_status"\nequals = "succeeded"'


def night(walk: Walk) -> dict[str, Any]:
    """One occurrence of the routine, carried out."""
    queued = walk.tg("routine", "run", "nightly", "--json")
    assert queued.status == 0, queued
    done = walk.tg("scheduler", "--once", "--json")
    (task,) = done.json()["tasks"]
    shown: dict[str, Any] = walk.tg("show", task["id"], "--json").json()
    return shown


@pytest.mark.parametrize(
    ("agent", "status"),
    [
        ("true", "failed"),
        ("touch report.json", "failed"),
        ("mv report.json x; mv x report.json", "failed"),
        (NEW, "succeeded"),
        (SAME, "succeeded"),
    ],
)
def test_a_routine_passes_only_with_a_report_of_its_own_night(
    walk: Walk, agent: str, status: str
) -> None:
    """Two kinds of gates look at the report, and say the same of it."""
    (walk.folder / "report.json").write_text(LAST_NIGHT)
    settings(walk, agent, task=BOTH)
    task = night(walk)
    verdict = task["runs"][-1]["verdict"]
    assert task["task_status"] == status, verdict
    found = {f["check"]: f for f in verdict["findings"] if f["binding"]}
    assert found.keys() == {"report", "value"}
    if status == "failed":
        assert task["cell"] == "silent_failure"
        assert "report.json is from before this run" in verdict["reason"]
        for each in found.values():
            assert each["outcome"] == "failed", each
            assert "report.json is from before this run" in each["reason"]
    else:
        assert {each["outcome"] for each in found.values()} == {"passed"}
        assert verdict["proof"]["status"] == "shown"
        assert set(verdict["proof"]["by"]) == {"gate:report", "gate:value"}


def test_a_routine_can_do_without(walk: Walk) -> None:
    (walk.folder / "report.json").write_text(LAST_NIGHT)
    settings(walk, "true", EXISTS + "\nfresh = false")
    task = night(walk)
    (finding,) = (f for f in task["runs"][-1]["verdict"]["findings"] if f["binding"])
    assert (finding["outcome"], finding["before"]) == ("passed", "passed")


def test_outside_of_routines_artifacts_may_be_from_before(walk: Walk) -> None:
    (walk.folder / "report.json").write_text(LAST_NIGHT)
    settings(walk, "true")
    done = walk.run("--task", "report")
    (finding,) = (f for f in done.latest["verdict"]["findings"] if f["binding"])
    assert (finding["outcome"], finding["before"]) == ("passed", "passed")


@pytest.mark.parametrize(("agent", "passed"), [("true", False), (NEW, True)])
def test_an_artifact_that_is_the_status_is_never_last_nights(
    walk: Walk, agent: str, passed: bool
) -> None:
    (walk.folder / "report.json").write_text(LAST_NIGHT)
    settings(walk, agent, task='claim_file = "report.json"\nartifact_is_status = true')
    done = walk.run("--task", "report")
    assert (done.task["task_status"] == "succeeded") is passed
    if not passed:
        assert done.task["task_status"] in {"failed", "needs_review"}


def test_a_gate_by_itself_asks_for_no_fresh_artifact(walk: Walk) -> None:
    (walk.folder / "report.json").write_text(LAST_NIGHT)
    settings(walk, "true", EXISTS + "\nfresh = true")
    assert walk.tg("gate", "report").status == 0
