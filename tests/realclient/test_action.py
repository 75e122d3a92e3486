"""The GitHub action and the CI step, executed with the real client and a scripted model."""

from __future__ import annotations

import os
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml  # type: ignore[import-untyped]

from tests.realclient.clients import Client
from tests.realclient.endpoint import Endpoint, Step

pytestmark = [pytest.mark.realclient, pytest.mark.usefixtures("own_tools")]

EXAMPLES = Path(__file__).parents[2] / "examples"
ACTION = EXAMPLES / "github-action"
GOAL = "write hello into out.txt"
CHECK = "def test_out():\n    assert open('out.txt').read() == 'hello\\n'\n"
_EXPRESSION = re.compile(r"\$\{\{ (\w+)\.([\w.]+) \}\}")


class Job(NamedTuple):
    """A job that uses the action: its steps are carried out here as a runner would."""

    folder: Path
    environ: dict[str, str]

    def bash(self, script: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A script as GitHub's `shell: bash` runs it."""
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.folder,
            env={**self.environ, **more},
            check=False,
            capture_output=True,
            text=True,
            timeout=100,
        )

    def action(self, given: dict[str, str], **env: str) -> subprocess.CompletedProcess[str]:
        """All steps of the action; the first that fails ends it."""
        action = yaml.safe_load((ACTION / "action.yml").read_text())
        known = action["inputs"]
        assert set(given) <= set(known), "an input that the action does not have"
        inputs = {name: given.get(name, each.get("default", "")) for name, each in known.items()}
        missing = [
            name for name, each in known.items() if each.get("required") and name not in given
        ]
        assert missing == []
        done = subprocess.CompletedProcess[str]([], 1)
        for step in action["runs"]["steps"]:
            assert step["shell"] == "bash"
            own = {name: filled(text, inputs=inputs) for name, text in step["env"].items()}
            done = self.bash(step["run"], **{**env, **own})
            if done.returncode:
                break
        return done


def filled(text: str, **values: dict[str, str]) -> str:
    """A text with its `${{ … }}` filled in."""
    return _EXPRESSION.sub(lambda found: values[found[1]][found[2]], text)


@pytest.fixture
def job(folder: Path, small_python: Path) -> Job:
    """An empty checkout with one test, and a Python that has truegreen already."""
    checkout = folder / "checkout"
    checkout.mkdir()
    (checkout / "test_out.py").write_text(CHECK)
    pip = find_spec("pip")
    assert pip
    assert pip.origin
    (folder / "pip").mkdir()
    (folder / "pip" / "pip").symlink_to(Path(pip.origin).parent)
    outside = {
        name: text
        for name, text in os.environ.items()
        if name.startswith(("XDG_", "TRUEGREEN_", "LANG", "LC_"))
    }
    return Job(
        checkout,
        {
            **outside,
            "HOME": str(folder),
            "PATH": f"{small_python.parent}:{os.environ['PATH']}",
            "GITHUB_OUTPUT": str(folder / "output"),
            # What it is to install is there already, and no index is asked.
            "PYTHONPATH": str(folder / "pip"),
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "CI_SECRET": "a secret of the job",
        },
    )


def with_client(job: Job, client: Client, url: str) -> Job:
    """The job in an environment where the client can think; its key is the only one."""
    own = client.surroundings(str(job.folder.parent / "home"), url, {})
    path = f"{os.path.dirname(client.package.path)}:{job.environ['PATH']}"
    return job._replace(environ={**own, **job.environ, "HOME": own["HOME"], "PATH": path})


def used() -> tuple[dict[str, str], dict[str, str]]:
    """What the workflow beside the action gives it: its inputs, and its environment."""
    workflow: dict[str, Any] = yaml.safe_load((ACTION / "workflow.yml").read_text())
    steps = workflow["jobs"]["agent"]["steps"]
    (step,) = [step for step in steps if "github-action" in step.get("uses", "")]
    return step["with"], step["env"]


def script(client: Client) -> list[Step]:
    """A model that looks at the environment, does the work, and says so."""
    look = client.shell("env | cut -d= -f1 | sort > seen.txt; echo hello > out.txt")
    return [Step("I write it.", (look,)), Step("It is written.")]


@pytest.mark.timeout(120)
def test_the_workflow_of_the_action_takes_the_real_client_to_green(claude_code: Client, job: Job):
    given, env = used()
    # The scripted model works with the shell, which acceptEdits does not allow.
    given["command"] = given["command"].replace(
        "--permission-mode acceptEdits", "--allowedTools Bash"
    )
    with Endpoint(script(claude_code)) as endpoint:
        here = with_client(job, claude_code, endpoint.url)
        assert set(env) == {"GOAL", "ANTHROPIC_API_KEY"}
        done = here.action(given, GOAL=GOAL)
    assert done.returncode == 0, done
    assert "task  ● succeeded" in done.stdout
    assert "withheld" not in done.stdout
    assert "2 turns" in done.stdout, "its events were read"
    (first, *_) = endpoint.turns
    assert GOAL in str(first), "the goal reached the model"
    seen = (job.folder / "seen.txt").read_text().split()
    assert {"GOAL", "ANTHROPIC_API_KEY"} <= {*seen}
    assert not {"CI_SECRET", "GITHUB_OUTPUT"} & {*seen}
    task = (job.folder.parent / "output").read_text().strip().removeprefix("task=")
    assert task.startswith("tsk_")
    assert "<testcase" in (job.folder / "truegreen.xml").read_text()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("passed", ["GOAL", ""])
def test_the_ci_step_takes_the_real_client_to_its_verdict(
    claude_code: Client, job: Job, passed: str
):
    with Endpoint(script(claude_code)) as endpoint:
        here = with_client(job, claude_code, endpoint.url)
        done = here.bash(
            str(EXAMPLES / "ci-step" / "run.sh"),
            COMMAND='claude -p "$GOAL" --allowedTools Bash',
            GATES="pytest -q",
            GOAL=GOAL,
            PASS_ENV=passed,
        )
    if passed:
        assert done.returncode == 0, done
        assert "task  ● succeeded" in done.stdout
        assert GOAL in str(endpoint.turns[0])
    else:
        assert done.returncode == 1, done
        assert "withheld  GOAL: not passed to the agent (--env NAME passes one)" in done.stdout


def test_the_action_without_a_gate_is_not_green(job: Job):
    done = job.action({"command": "true", "gates": "\n"})
    assert (done.returncode, "::error::no gate is named" in done.stdout) == (2, True), done
