"""What is copied from here works: a dashboard, an action and a hook, each tried for real."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.table import each_row
from truegreen.contract import read_toml
from truegreen.outlets.metrics import names

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GRAFANA = json.loads((EXAMPLES / "grafana" / "truegreen.json").read_text())
NAME = re.compile(r"truegreen_\w+")


# --- metrics in words


def queries() -> Iterator[str]:
    for panel in GRAFANA["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))


def test_every_query_of_the_dashboard_uses_metrics_that_exist():
    used = {name for query in queries() for name in NAME.findall(query)}
    assert used <= set(names())
    assert set(names()) - used == set(), "every metric has its place on the dashboard"


def test_the_dashboard_is_whole():
    panels = GRAFANA["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["targets"] for panel in panels if panel["type"] != "row")
    boxes = [panel["gridPos"] for panel in panels]
    assert all(box["x"] + box["w"] <= 24 for box in boxes)
    cells = [
        (x, y)
        for box in boxes
        for x in range(box["x"], box["x"] + box["w"])
        for y in range(box["y"], box["y"] + box["h"])
    ]
    assert len(set(cells)) == len(cells), "no panel lies on another"


@pytest.mark.criterion("L11")
def test_the_documentation_names_every_metric_and_no_other():
    text = (ROOT / "docs" / "manual" / "metrics.md").read_text()
    assert set(NAME.findall(text)) == set(names())
    alerts = (ROOT / "docs" / "manual" / "alerts.md").read_text()
    assert set(NAME.findall(alerts)) <= set(names())


TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.criterion("P06")
@each_row("page", ["alerts", "github", "otel"])
def test_the_settings_in_the_documentation_are_settings(page: str):
    blocks = TOML.findall((ROOT / "docs" / "manual" / f"{page}.md").read_text())
    assert blocks
    for block in blocks:
        read_toml(block, page)
        everything = re.sub(r"^# (?=\w+ = )", "", block, flags=re.MULTILINE)
        read_toml(everything, page)


# --- the hook


class Repository(NamedTuple):
    """A work tree with a remote beside it."""

    work: Path
    remote: Path
    environ: dict[str, str]

    def git(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *words],
            cwd=self.work,
            env=self.environ,
            check=check,
            capture_output=True,
            text=True,
            timeout=50,
        )

    def commit(self, text: str) -> str:
        (self.work / "work.txt").write_text(text)
        self.git("add", "work.txt")
        self.git("commit", "-q", "-m", text)
        return self.git("rev-parse", "HEAD").stdout.strip()

    def at_remote(self, branch: str = "main") -> str:
        words = ["git", "-C", str(self.remote), "rev-parse", "-q", "--verify", branch]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    work, remote = tmp_path / "work", tmp_path / "remote.git"
    script = Path(sys.executable).parent
    environ = {
        **os.environ,
        "PATH": f"{script}:{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True, env=environ)
    work.mkdir()
    made = Repository(work, remote, environ)
    made.git("init", "-q", "-b", "main")
    made.git("config", "user.name", "ana")
    made.git("config", "user.email", "ana@example.org")
    made.git("remote", "add", "origin", str(remote))
    hook = work / ".git" / "hooks" / "pre-push"
    shutil.copy(EXAMPLES / "pre-push", hook)
    return made


def test_a_push_goes_through_while_the_gate_is_green_and_stops_when_it_is_red(
    repository: Repository,
):
    repository.git("config", "--add", "truegreen.gate", "grep -q good work.txt")
    good = repository.commit("good\n")
    repository.git("push", "-q", "origin", "main")
    assert repository.at_remote() == good
    repository.commit("bad\n")
    # What lies in the work tree is not what is pushed.
    (repository.work / "work.txt").write_text("good\n")
    done = repository.git("push", "-q", "origin", "main", check=False)
    assert done.returncode != 0
    assert "pre-push: grep -q good work.txt is not green" in done.stderr
    assert repository.at_remote() == good


def test_a_gate_that_cannot_be_run_or_is_not_there_stops_a_push(repository: Repository):
    repository.commit("good\n")
    done = repository.git("push", "-q", "origin", "main", check=False)
    assert "no gate is set" in done.stderr
    repository.git("config", "--add", "truegreen.gate", "/nowhere/at/all")
    assert repository.git("push", "-q", "origin", "main", check=False).returncode != 0
    assert repository.at_remote() == ""


def test_every_gate_counts_and_a_deletion_needs_none(repository: Repository):
    repository.git("config", "--add", "truegreen.gate", "true")
    repository.git("config", "--add", "truegreen.gate", "false")
    repository.commit("good\n")
    repository.git("push", "-q", "--no-verify", "origin", "main:other")
    assert repository.git("push", "-q", "origin", "main", check=False).returncode != 0
    assert repository.git("push", "-q", "origin", ":other", check=False).returncode == 0
    assert repository.at_remote() == repository.at_remote("other") == ""


# --- the action


def action() -> dict[str, Any]:
    yaml = import_module("yaml")
    loaded: dict[str, Any] = yaml.safe_load((EXAMPLES / "github-action/action.yml").read_text())
    return loaded


def acted(repository: Repository, tmp_path: Path, **given: str) -> tuple[int, Path, str]:
    """Run the action's own script, as a runner would."""
    (step,) = [step for step in action()["runs"]["steps"] if step.get("id") == "run"]
    output = tmp_path / "output"
    output.touch()
    environ = {**repository.environ, "GITHUB_OUTPUT": str(output), "PROTECT": "", **given}
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(
        script,
        cwd=repository.work,
        env={**environ, "REPORT": str(tmp_path / "report.xml")},
        check=False,
        capture_output=True,
        text=True,
        timeout=50,
    )
    return done.returncode, tmp_path / "report.xml", output.read_text() + done.stdout + done.stderr


@pytest.mark.parametrize(("text", "status"), [("good", 0), ("bad", 1)])
def test_the_action_is_green_only_if_its_gates_are(
    repository: Repository, tmp_path: Path, text: str, status: int
):
    repository.commit("nothing\n")
    code, report, said = acted(
        repository, tmp_path, COMMAND=f"echo {text} > work.txt", GATES="grep -q good work.txt\n"
    )
    assert code == status, said
    assert re.search("^task=tsk_", said, re.MULTILINE)
    assert ("<failure" in report.read_text()) == (status == 1)


def test_the_action_without_a_gate_is_not_green(repository: Repository, tmp_path: Path):
    code, report, said = acted(repository, tmp_path, COMMAND="true", GATES="\n")
    assert code == 2
    assert "no gate is named" in said
    assert not report.exists()


def test_no_input_becomes_a_part_of_a_script():
    for step in action()["runs"]["steps"]:
        assert "${{" not in step["run"]
    yaml = import_module("yaml")
    flow = yaml.safe_load((EXAMPLES / "github-action/workflow.yml").read_text())
    steps = flow["jobs"]["agent"]["steps"]
    (used,) = [step for step in steps if step.get("uses") == "./examples/github-action"]
    assert set(used["with"]) <= set(action()["inputs"])
    assert "${{" not in used["with"]["command"]
