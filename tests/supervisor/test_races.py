"""Three real supervisors and a real agent against terminate: it never acts after the answer.

Each agent writes down the instants at which it lived. What counts is the file that it leaves.
"""

from __future__ import annotations

import os
import random
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.record.lives import OPERATOR
from tests.record.torture_truth import check_truth
from tests.repeat import repeated
from tests.supervisor.torture_supervisor import Contender, Order
from truegreen.contract import Contract
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.supervisor.termination import terminate

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = repeated(12)
SUPERVISORS = 3
AGENT = """
import os, sys, time
line = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
until = time.monotonic() + 1.5
while time.monotonic() < until:
    os.write(line, b"%.6f\\n" % time.monotonic())
    time.sleep(0.002)
"""


class Field(NamedTuple):
    """A store, supervisors at it, and where their agents work."""

    ledger: Ledger
    supervisors: list[Contender]
    state_dir: str
    folder: Path


@pytest.fixture
def field(postgres_url: str, tmp_path: Path, own_tools: None) -> Iterator[Field]:
    """Three supervisors on one PostgreSQL, as on three machines."""
    state_dir = str(Path(os.environ["XDG_STATE_HOME"]) / "truegreen")
    ledger = open_ledger(postgres_url)
    with ExitStack() as stack:
        supervisors = [
            stack.enter_context(Contender(postgres_url, state_dir)) for _ in range(SUPERVISORS)
        ]
        yield Field(ledger, supervisors, state_dir, tmp_path)
    ledger.close()


class Round(NamedTuple):
    """What one round left: when it was answered, and when the agent lived."""

    task: str
    answered: float
    lived: list[float]
    complete: bool


def raced(field: Field, number: int, late: float) -> Round:
    """Everybody carries out the same task; somebody terminates it a little later.

    Every sixth time that is when the agent lives, however long its start takes.
    """
    work = field.folder / f"work {number}"
    work.mkdir()
    lines = work / "lived"
    command = (sys.executable, "-I", "-S", "-c", AGENT, str(lines))
    contract = Contract(title="live", command=command, cwd=str(work))
    task = field.ledger.open(contract, actor=OPERATOR).id
    at = time.monotonic() + 0.01
    for each in field.supervisors:
        each.send(Order(task, at))
    time.sleep(max(0.0, at + late - time.monotonic()))
    while number % 6 == 1 and not lines.exists():
        time.sleep(0.01)
    whom = field.ledger.whom(task)
    ended = terminate(field.ledger, whom, state_dir=field.state_dir, actor=OPERATOR)
    answered = time.monotonic()
    for each in field.supervisors:
        each.answer()
    lived = [float(line) for line in lines.read_text().split()] if lines.exists() else []
    return Round(task, answered, lived, ended.complete)


@pytest.mark.timeout(60 + 3 * ROUNDS)
@pytest.mark.criterion("G07", "G08", "G15", "G20", "K07")
def test_no_agent_of_three_supervisors_acts_after_terminate_was_answered(field: Field) -> None:
    dice = random.Random(8)  # noqa: S311 - no secret
    began = 0
    for number in range(ROUNDS):
        late = -0.01 if number % 6 == 0 else dice.uniform(0.0, 0.7)
        done = raced(field, number, late)
        late_lines = [at - done.answered for at in done.lived if at > done.answered]
        assert late_lines == [], (
            f"round {number}: it acted {max(late_lines):.3f} s after the answer"
        )
        assert done.complete, f"round {number}"
        runs = field.ledger.dossier(done.task).runs
        assert len(runs) <= 1, f"round {number}: it was started {len(runs)} times"
        assert runs or not done.lived, f"round {number}: it lived without a run"
        assert [run for run in runs if run.exit_reason is None] == []
        began += bool(done.lived)
    assert 0 < began < ROUNDS, "the agent always, or never, came to life: this race sees nothing"
    check_truth(field.ledger)
