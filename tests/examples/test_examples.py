"""Every example runs as its README says; the record says afterwards what the README promises."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TOLD = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))
README_LINES = 40

pytestmark = pytest.mark.usefixtures("own_tools", "on_path")


@pytest.fixture
def on_path(small_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example calls truegreen and python3 by name."""
    monkeypatch.setenv("PATH", f"{small_python.parent}:{os.environ['PATH']}")


def environ(**changes: str) -> dict[str, str]:
    """Ours, without the settings of git that are somebody's own."""
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return {**os.environ, **quiet, **changes}


def play(script: str, cwd: Path | None = None, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run an example to its end."""
    words = ["python3"] if script.endswith(".py") else []
    return subprocess.run(
        [*words, EXAMPLES / script],
        env=environ(**changes),
        cwd=cwd,
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
    )


def asked(*words: str) -> Any:
    """What the record says."""
    done = subprocess.run(
        ["truegreen", *words, "--json"], env=environ(), check=True, capture_output=True, timeout=60
    )
    return json.loads(done.stdout)


def cells() -> dict[str, str]:
    """The tasks by title, and where they ended."""
    return {task["title"]: task["cell"] for task in asked("list")["tasks"]}


def test_every_example_has_a_short_readme_that_names_its_script() -> None:
    assert {"nightly-triage", "fix-with-proof", "lead-and-workers"} <= set(TOLD)
    assert {"cycle-with-rescue", "python-agent", "ci-step"} <= set(TOLD)
    for name in TOLD:
        text = (EXAMPLES / name / "README.md").read_text()
        assert len(text.splitlines()) <= README_LINES
        (script,) = set(re.findall(rf"examples/{name}/(run\.\w+)", text))
        assert (EXAMPLES / name / script).is_file()
        files = re.findall(r"^\| `([\w-]+\.\w+)` \|", text, re.MULTILINE)
        assert [file for file in files if not (EXAMPLES / name / file).is_file()] == []


def test_the_record_takes_no_success_without_evidence_and_proof() -> None:
    done = play("the_record.py")
    assert done.returncode == 0, done
    assert "refused: a success that no check proves\n" in done.stdout
    assert "nothing is wrong" in done.stdout


@pytest.mark.timeout(300)
def test_a_night_without_its_tracker_is_a_silent_failure_and_in_the_inbox() -> None:
    done = play("nightly-triage/run.sh")
    assert done.returncode == 0, done
    tasks = asked("list")["tasks"]
    assert sorted(task["cell"] for task in tasks) == ["silent_failure", "true_green"], done
    assert {task["run_status"] for task in tasks} == {"exited"}
    (item,) = asked("inbox")["inbox"]
    assert "typo in the help" in item["reason"]
    assert asked("routine", "list")["routines"][0]["rollup"] == "red"


@pytest.mark.timeout(300)
def test_only_the_fix_that_mends_the_parser_is_green() -> None:
    done = play("fix-with-proof/run.sh")
    assert done.returncode == 0, done
    assert cells() == {
        "fix the parser: lie": "silent_failure",
        "fix the parser: honest": "true_green",
    }
    (honest,) = [task for task in asked("list")["tasks"] if "honest" in task["title"]]
    assert honest["verdict"]["level"] == "A3"


@pytest.mark.timeout(300)
def test_a_lead_over_mcp_ends_its_liar_for_ever() -> None:
    done = play("lead-and-workers/run.sh")
    assert done.returncode == 0, done
    assert "liar: run exited, task failed (silent_failure)" in done.stdout
    assert "honest: run exited, task succeeded (true_green)" in done.stdout
    tasks = {task["title"]: asked("show", task["id"]) for task in asked("list")["tasks"]}
    assert {task["created_by"].split(":")[0] for task in tasks.values()} == {"lead"}
    assert f"liar: sealed at {tasks['liar']['sealed_at']}" in done.stdout
    words = ["truegreen", "retry", tasks["liar"]["id"], "--reason", "one more chance", "--json"]
    again = subprocess.run(words, env=environ(), check=False, capture_output=True, timeout=60)
    assert json.loads(again.stdout)["error"]["code"] == "terminated"


@pytest.mark.timeout(300)
def test_a_cycle_goes_on_after_a_rescue_and_converges() -> None:
    done = play("cycle-with-rescue/run.sh")
    assert done.returncode == 0, done
    tasks = sorted(asked("list")["tasks"], key=lambda task: task["created_at"])
    assert [task["rescued"] for task in tasks] == [False, True, False, False], done
    assert {task["task_status"] for task in tasks} == {"succeeded"}
    assert "Splash! Silence again" in done.stdout


@pytest.mark.timeout(300)
def test_a_python_agent_is_judged_by_its_work_and_not_by_its_claim() -> None:
    done = play("python-agent/run.py")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert lines[0] == "run exited, claim done, task succeeded: true_green"
    assert lines[1] == "run exited, claim done, task failed: silent_failure"
    assert "claim blocked, task blocked" in lines[2]


def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.mark.parametrize(("text", "status"), [("good", 0), ("bad", 1)])
def test_the_ci_step_is_green_only_if_its_gates_are_and_leaves_a_report(
    text: str, status: int, tmp_path: Path
) -> None:
    place = folder(tmp_path)
    given = {"COMMAND": f"echo {text} > work.txt", "GATES": "grep -q good work.txt"}
    done = play("ci-step/run.sh", place, REPORT=str(tmp_path / "report.xml"), **given)
    assert done.returncode == status, done
    assert ("<failure" in (tmp_path / "report.xml").read_text()) == (status == 1)


def test_the_ci_step_without_a_gate_is_not_green(tmp_path: Path) -> None:
    done = play("ci-step/run.sh", folder(tmp_path), COMMAND="true", GATES="")
    assert (done.returncode, "set GATES" in done.stderr) == (2, True)


def test_the_ci_step_calls_truegreen_as_the_action_does() -> None:
    call = re.compile(r"truegreen (?:run|junit|show)[^\n>|)]*")
    step = call.findall((EXAMPLES / "ci-step" / "run.sh").read_text())
    action = call.findall((EXAMPLES / "github-action" / "action.yml").read_text())
    assert [words.strip() for words in step if "$task" in words or "words[@]" in words] == [
        words.strip() for words in action
    ]
