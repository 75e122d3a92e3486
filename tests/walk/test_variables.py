"""Which variables reach an agent, and what is said of those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.walk.conftest import Walk, init, result

GATE = ("--gate", "grep -q fix goal.txt")
SEEN = "import os\nopen('goal.txt', 'w').write(' '.join([*sys.argv, *os.environ]))"
KEYS: dict[str, Any] = {
    "ANTHROPIC_API_KEY": "sk-no-worth",
    "GOAL": "fix it",
    "CI_SECRET": "x",
    "OTHER": "y",
}


def line(walk: Walk, *options: str) -> list[str]:
    """A CI step: the client is called in a line of shell."""
    walk.client("claude", init(), result("done"), before=SEEN)
    return [*GATE, *options, "--", "bash", "-c", 'claude -p "$GOAL"']


def test_a_client_in_a_line_of_shell_gets_its_keys_and_the_variables_that_are_named(walk: Walk):
    got = walk.run(*line(walk, "--env", "GOAL"), **KEYS)
    assert (got.status, got.latest["exit_detail"]) == (0, "completed")
    facts = got.latest["facts"]
    assert (facts["adapter"], facts.get("withheld")) == ("claude-code", None)
    seen = (walk.folder / "goal.txt").read_text().split()
    assert {"fix", "it", "ANTHROPIC_API_KEY", "GOAL"} <= {*seen}
    assert not {"CI_SECRET", "OTHER"} & {*seen}


def test_the_older_spelling_of_env_is_the_same(walk: Walk):
    assert walk.run(*line(walk, "--pass-env", "GOAL"), **KEYS).status == 0


def test_withheld_variables_are_named_once_with_the_option_that_passes_them(walk: Walk):
    command = ["bash", "-c", 'my-agent "$GOAL" "$UNSET" "$HOME"']
    walk.client("my-agent", before=SEEN)
    answer = walk.tg("run", "--max-attempts", "2", *GATE, "--", *command, **KEYS)
    assert answer.status == 1
    said = [each for each in answer.err.splitlines() if "not passed to the agent" in each]
    assert len(said) == 1, answer.err
    assert "GOAL, ANTHROPIC_API_KEY. To pass: --env GOAL --env ANTHROPIC_API_KEY" in said[0]
    assert "CI_SECRET" not in said[0]
    (task,) = walk.tg("list", "--json").json()["tasks"]
    assert "withheld  GOAL, ANTHROPIC_API_KEY" in walk.tg("show", task["id"]).out


@pytest.mark.parametrize(
    "passed", [("GOAL", "ANTHROPIC_API_KEY"), ("GOAL", "ANTHROPIC_API_KEY", "OTHER")]
)
def test_what_is_passed_is_not_named(walk: Walk, passed: tuple[str, ...]):
    walk.client("my-agent", before=SEEN)
    options = [word for name in passed for word in ("--env", name)]
    command = ["--", "bash", "-c", 'my-agent "$GOAL"']
    answer = walk.tg("run", *GATE, *options, *command, **KEYS)
    assert (answer.status, "not passed" in answer.err) == (0, False), answer.err


def test_a_script_in_the_folder_is_looked_through(walk: Walk):
    walk.client("claude", init(), result("done"), before=SEEN)
    script = Path(walk.folder / "agent.sh")
    script.write_text('#!/bin/sh\nexec claude "$@"\n')
    script.chmod(0o755)
    got = walk.run(*GATE, "--", "./agent.sh", "-p", "fix", **KEYS)
    assert (got.status, got.latest["facts"]["adapter"]) == (0, "claude-code")
    assert "ANTHROPIC_API_KEY" in (walk.folder / "goal.txt").read_text()
