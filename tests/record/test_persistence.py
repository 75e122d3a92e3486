"""Terminated stays terminated: after a restart, a crash right after the answer, and an upgrade."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.record.lives import OPERATOR, declared, ended, judged, opened, started
from tests.record.raw_sql import raw_sql
from tests.record.torture_truth import check_truth
from tests.record.torture_verbs import HOLDER
from truegreen.errors import SchemaWrecked, Terminated
from truegreen.model import AgentStatus, ExitDetail, Outcome, TaskStatus
from truegreen.record import migrate
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

S = TaskStatus
ROOT = Path(__file__).parents[2]
DYING = """
import os, signal, sys
from tests.record.lives import OPERATOR
from truegreen.record.ledger import open_ledger
ledger = open_ledger(sys.argv[1])
if sys.argv[2] == "agent":
    ledger.terminate_agent(sys.argv[3], actor=OPERATOR)
else:
    ledger.terminate(sys.argv[4], actor=OPERATOR)
os.write(1, b"acknowledged")
os.kill(os.getpid(), signal.SIGKILL)
"""


class Worker(NamedTuple):
    """An agent that can be woken, and the task that it left."""

    agent: str
    task: str


def worker(ledger: Ledger) -> Worker:
    """A blocked task, its agent about to be woken, with a message and a child."""
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR, session="its own").id
    ledger.register_agent("kid", "sha256:2", actor=OPERATOR, parent=agent)
    ticket = started(ledger, agent_id=agent)
    ledger.end_run(ticket, ended(ExitDetail.REFUSED))
    ledger.send(agent, "go on", actor=OPERATOR, wake=True)
    return Worker(agent, ticket.task)


def check_stays_dead(ledger: Ledger, dead: Worker) -> None:
    """Nobody wakes, resumes, clones or writes to it."""
    refused: list[Callable[[], object]] = [
        lambda: ledger.send(dead.agent, "hello", actor=OPERATOR),
        lambda: ledger.send(dead.agent, "hello", actor=OPERATOR, wake=True),
        lambda: ledger.arm(dead.agent, actor=OPERATOR),
        lambda: ledger.start(opened(ledger).id, HOLDER._replace(agent=dead.agent)),
        lambda: ledger.register_agent("clone", "x", actor=OPERATOR, session="its own"),
        *(lambda wake=wake: ledger.wake(wake.id) for wake in ledger.wakes(dead.agent)),
    ]
    for act in refused:
        with pytest.raises(Terminated):
            act()
    assert ledger.due() == []
    assert {agent.status for agent in ledger.agents()} == {AgentStatus.TERMINATED}
    assert {wake.state for wake in ledger.wakes(dead.agent)} <= {"void"}
    assert dead.agent in ledger.fenced().agents
    assert "its own" in ledger.fenced().sessions
    check_truth(ledger)


@pytest.mark.criterion("G18", "G19")
def test_terminated_outlives_every_restart(store_url: str) -> None:
    ledger = open_ledger(store_url)
    dead = worker(ledger)
    ledger.terminate_agent(dead.agent, actor=OPERATOR)
    for _ in range(3):
        ledger.close()
        ledger = open_ledger(store_url)
        check_stays_dead(ledger, dead)
    ledger.close()


@pytest.mark.criterion("G18")
@pytest.mark.parametrize("what", ["agent", "task"])
def test_terminated_outlives_a_crash_right_after_the_answer(store_url: str, what: str) -> None:
    ledger = open_ledger(store_url)
    dead = worker(ledger)
    command = [sys.executable, "-c", DYING, store_url, what, dead.agent, dead.task]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=30)
    assert (done.stdout, done.returncode) == (b"acknowledged", -signal.SIGKILL), done.stderr
    check_stays_dead(ledger, dead)
    ledger.close()
    ledger = open_ledger(store_url)
    check_stays_dead(ledger, dead)
    if what == "task":
        assert ledger.task(dead.task).status is S.TERMINATED
    ledger.close()


# -- a store of the time before ------------------------------------------------------------------


def taken_back(url: str, version: int) -> None:
    """Undo a migration: what it created goes, and the store is as it was before it."""
    store = open_store(url)
    (step,) = [each for each in migrate.migrations(store.dialect) if each.version == version]
    text = "\n".join(step.statements)
    triggers = [name.removeprefix("trigger ") for name in store.objects() if "trigger " in name]
    undone = [f"DROP TRIGGER {each}" for each in triggers if store.dialect == "sqlite"]
    undone += [f"DROP INDEX {name}" for name in re.findall(r"INDEX (\w+)", text)]
    cascade = "" if store.dialect == "sqlite" else " CASCADE"
    if cascade:
        undone.append(
            "DO $$ DECLARE f record; BEGIN FOR f IN SELECT oid::regprocedure AS name FROM pg_proc"
            " WHERE proname LIKE 'truegreen_%' LOOP EXECUTE 'DROP FUNCTION ' || f.name ||"
            " ' CASCADE'; END LOOP; END $$"
        )
    undone += [f"DROP TABLE {name}{cascade}" for name in re.findall(r"TABLE (\w+) \(", text)]
    undone += [
        f"ALTER TABLE {table} DROP COLUMN {column}"
        for table, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", text)
    ]
    store.script(
        [
            *undone,
            f"DELETE FROM schema_migrations WHERE version >= {version}",
            "DELETE FROM schema_objects",
            f"INSERT INTO schema_objects (name, definition) {store.catalog}",
        ]
    )
    store.close()


@pytest.mark.criterion("G18", "G14")
def test_terminated_outlives_the_upgrade_of_a_store_from_before_wake_ups(store_url: str) -> None:
    ledger = open_ledger(store_url)
    dead = worker(ledger)
    ticket = started(ledger)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.PASSED)
    green = ledger.terminate(ticket.task, actor=OPERATOR)
    ledger.terminate_agent(dead.agent, actor=OPERATOR)
    tasks = {each: ledger.task(each) for each in (dead.task, ticket.task)}
    ledger.close()
    taken_back(store_url, 4)
    with pytest.raises(SchemaWrecked, match="truegreen migrate"):
        open_ledger(store_url)
    store = open_store(store_url)
    assert migrate.migrate(store) == ["applied 0004 doors"]
    store.close()
    ledger = open_ledger(store_url)
    check_stays_dead(ledger, dead)
    assert {each: ledger.task(each) for each in tasks} == tasks
    assert ledger.terminate(ticket.task, actor=OPERATOR).already_terminated
    assert ledger.task(ticket.task).fence == green.fence
    assert {agent.kind for agent in ledger.agents()} == {"agent"}
    with raw_sql(store_url) as raw:
        said = raw.tried(f"UPDATE agents SET status = 'pending' WHERE id = '{dead.agent}'")
    assert "terminated is final" in (said or "")
    ledger.close()
