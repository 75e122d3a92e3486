"""Held-out cases through the installed command: an agent can neither see nor outwit them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.walk.conftest import Walk, python, shell
from tests.work.running import need_jail
from truegreen.model import Phase

pytestmark = pytest.mark.usefixtures("in_jail")

HONEST = "import sys; print(sum(map(int, sys.stdin.read().split())))"
HARD_CODED = "import sys; print({'1 2': 3}.get(sys.stdin.read().strip(), 0))"
CASES = [
    {"name": "small", "stdin": "1 2", "stdout": "3"},
    {"name": "large", "stdin": "31337 111", "stdout": "31448"},
]
SECRETS = ("31337", "31448")
ONCE = ("--max-attempts", "1")


@pytest.fixture
def in_jail() -> None:
    need_jail()


class Keeper:
    """Cases and settings outside of the workspace."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.folder = walk.folder.parent / "operator"
        self.folder.mkdir()
        self.data = self.folder / "cases.json"
        self.data.write_text(json.dumps(CASES))
        self.file = self.folder / "truegreen.toml"
        self.settings()
        (walk.folder / "add.py").write_text(HARD_CODED)

    def settings(self, data: str = "cases.json", more: str = "") -> None:
        command = json.dumps([f"{self.walk.python}/python", "-I", "add.py"])
        gate = f'kind = "held_out"\ncommand = {command}\ndata = {json.dumps(data)}\n'
        self.file.write_text(f"[gates.held]\n{gate}{more}")

    @property
    def options(self) -> tuple[str, ...]:
        return ("--config", str(self.file), "--gate", "held")

    def finding(self, task: dict[str, Any], check: str = "held") -> Any:
        """The latest finding after the agent, with its evidence."""
        ledger = self.walk.ledger()
        rows = [row.finding() for row in ledger.dossier(task["id"]).findings]
        return [f for f in rows if f.check == check and f.phase is Phase.AFTER][-1]


@pytest.fixture
def keeper(git_walk: Walk) -> Keeper:
    return Keeper(git_walk)


def writes(text: str) -> list[str]:
    return python(f"open('add.py', 'w').write({text!r})")


@pytest.mark.criterion("E05", "E15")
def test_an_honest_program_succeeds_from_outside(keeper: Keeper) -> None:
    got = keeper.walk.run(*keeper.options, *ONCE, *writes(HONEST))
    assert (got.status, got.task["task_status"]) == (0, "succeeded"), got.task["verdict"]
    assert got.task["verdict"]["level"] == "A4"
    assert keeper.finding(got.task).counts == {"passed": 2, "failed": 0, "skipped": 0}


def test_a_hard_coded_program_fails_and_the_agent_learns_names_alone(keeper: Keeper) -> None:
    spy = HARD_CODED.replace("3}", "3, '': 4}") + "; print(sys.argv, open(0).read())"
    told = 'cat "$TRUEGREEN_FEEDBACK" >> told 2>/dev/null; cp -r "$TRUEGREEN_FEEDBACK" copy;'
    agent = shell(f"{told} echo {shlex.quote(spy)} > add.py; true")
    got = keeper.walk.run(*keeper.options, "--max-attempts", "2", *agent)
    assert (got.status, got.cell) == (1, "silent_failure")
    assert len(got.task["runs"]) == 2
    feedback = (keeper.walk.folder / "told").read_text()
    assert "large (wrong output)" in feedback
    shown = json.dumps(got.task) + feedback
    assert not [secret for secret in SECRETS if secret in shown]


LOOK = """\
import os, subprocess, sys
for path in sys.argv[1:]:
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                text = open(os.path.join(folder, name), errors="replace").read()
            except OSError:
                continue
            open("seen", "a").write(f"{folder}/{name}: {text}\\n")
    if os.path.isfile(path):
        try:
            open("seen", "a").write(open(path, errors="replace").read())
        except OSError:
            pass
"""


@pytest.mark.criterion("E05")
def test_neither_the_agent_nor_other_gates_see_the_cases_or_the_state(keeper: Keeper) -> None:
    state = Path(keeper.walk.environ()["XDG_STATE_HOME"])
    (state / "truegreen" / "tools").unlink()  # nothing is shared: the agent looks at all of it
    store = Path(keeper.walk.store.removeprefix("sqlite://"))
    places = [str(keeper.data), str(keeper.folder), str(state), str(store)]
    cat = f'cat {shlex.quote(str(keeper.data))}; test -n "$(cat add.py)"'
    agent = ["--", sys.executable, "-c", LOOK, *places]
    got = keeper.walk.run(*keeper.options, "--gate", cat, *ONCE, *agent)
    assert got.status == 1
    seen = keeper.walk.folder / "seen"
    text = seen.read_text() if seen.exists() else ""
    assert "truegreen.toml" in text, "the agent did look"
    assert not [secret for secret in SECRETS if secret in text]
    said = keeper.finding(got.task, "cat").evidence["output"]
    assert not [secret for secret in SECRETS if secret in said]
    found = list(state.rglob("held/*.json"))
    assert len(found) == 1
    assert found[0].stat().st_mode & 0o777 == 0o600


def test_cases_in_the_workspace_are_refused_before_a_task_is_there(keeper: Keeper) -> None:
    inside = keeper.walk.folder / "cases.json"
    inside.write_text(json.dumps(CASES))
    keeper.settings(str(inside))
    for words in (("run",), ("add",), ("gate",)):
        gate = ("--gate", "held", "--", "true") if words != ("gate",) else ("held",)
        answer = keeper.walk.tg(*words, "--json", "--config", str(keeper.file), *gate)
        assert answer.status == 2, answer
        assert "gates.held.data" in answer.out
        assert "lies in the workspace, where the agent could read it" in answer.out
    assert keeper.walk.ledger().page().tasks == []


@pytest.mark.criterion("E15")
def test_cases_that_can_not_fail_are_refused(keeper: Keeper) -> None:
    keeper.data.write_text(json.dumps([{"name": "a", "stdin": "1", "stdout": "1"}]))
    answer = keeper.walk.tg("run", *keeper.options, "--", "true")
    assert answer.status == 2
    assert "the cases can't fail" in answer.err


def test_a_task_keeps_the_cases_that_it_was_created_with(keeper: Keeper) -> None:
    got = keeper.walk.run(*keeper.options, *ONCE, *writes(HONEST))
    assert got.status == 0
    keeper.data.write_text(json.dumps([{"name": "other", "stdin": "1", "stdout": "2"}]))
    again = keeper.walk.tg("verify", "--json", got.task["id"]).json()["again"]
    assert (again["outcome"], again["level"]) == ("passed", "A4"), again
    keeper.data.unlink()
    again = keeper.walk.tg("verify", "--json", got.task["id"]).json()["again"]
    assert (again["outcome"], again["level"]) == ("passed", "A4"), again


@pytest.mark.criterion("E25")
def test_one_gate_can_be_asked_here_and_now(keeper: Keeper) -> None:
    words = ("gate", "held", "--json", "--config", str(keeper.file))
    red = keeper.walk.tg(*words)
    assert (red.status, red.json()["reason"]) == (1, "1 failed of 2: large (wrong output)")
    (keeper.walk.folder / "add.py").write_text(HONEST)
    green = keeper.walk.tg(*words)
    assert (green.status, green.json()["counts"]["passed"]) == (0, 2)


def test_an_agent_without_a_jail_lowers_the_level(keeper: Keeper) -> None:
    got = keeper.walk.run(*keeper.options, *ONCE, "--isolation", "reaper", *writes(HONEST))
    assert got.status == 0
    assert got.task["verdict"]["level"] == "A2"
    assert "without a jail (reaper)" in keeper.finding(got.task).evidence["short"][0]
