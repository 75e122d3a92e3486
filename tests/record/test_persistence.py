"""Terminated stays terminated: after a restart, a crash right after the answer, and an upgrade."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from msgspec.structs import replace

from tests.record.lives import (
    OPERATOR,
    brought,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
)
from tests.record.raw_sql import raw_sql
from tests.record.torture_truth import check_truth
from tests.record.torture_verbs import HOLDER
from truegreen.contract import Breakers, Limit, Per
from truegreen.errors import SchemaWrecked, Stale, Terminated
from truegreen.model import AgentStatus, ExitDetail, FindingOutcome, Outcome, TaskStatus
from truegreen.record import migrate
from truegreen.record.holds import Hold
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.ledger.strikes import DENIED
from truegreen.record.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    """Undo all migrations from one on: what they created goes, and the store is as before."""
    store = open_store(url)
    steps = [each for each in migrate.migrations(store.dialect) if each.version >= version]
    triggers = [name.removeprefix("trigger ") for name in store.objects() if "trigger " in name]
    undone = [f"DROP TRIGGER {each}" for each in triggers if store.dialect == "sqlite"]
    if store.dialect == "postgres":
        undone.append(
            "DO $$ DECLARE f record; BEGIN FOR f IN SELECT oid::regprocedure AS name FROM pg_proc"
            " WHERE proname LIKE 'truegreen_%' LOOP EXECUTE 'DROP FUNCTION ' || f.name ||"
            " ' CASCADE'; END LOOP; END $$"
        )
    for step in reversed(steps):
        undone += _undone("\n".join(step.statements), store.dialect)
    undone += _as_before(migrate.migrations(store.dialect), version)
    store.script(
        [
            *undone,
            f"DELETE FROM schema_migrations WHERE version >= {version}",
            "DELETE FROM schema_objects",
            f"INSERT INTO schema_objects (name, definition) {store.catalog}",
        ]
    )
    store.close()


def _undone(text: str, dialect: str) -> list[str]:
    cascade = "" if dialect == "sqlite" else " CASCADE"
    return [
        *(f"DROP INDEX {name}" for name in re.findall(r"CREATE (?:UNIQUE )?INDEX (\w+)", text)),
        *(f"DROP TABLE {name}{cascade}" for name in re.findall(r"TABLE (\w+) \(", text)),
        *(
            f"ALTER TABLE {table} DROP COLUMN {column}"
            for table, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", text)
        ),
    ]


def _as_before(steps: Sequence[migrate.Migration], version: int) -> list[str]:
    """The tables and indexes that a later step replaces, as an earlier one made them."""
    earlier = [each for step in steps if step.version < version for each in step.statements]
    later = "\n".join(each for step in steps if step.version >= version for each in step.statements)
    replaced = re.findall(r"^DROP (TABLE|INDEX) (\w+)", later, re.MULTILINE)
    made = tuple(
        f"CREATE {kind} {name} {'(' if kind == 'TABLE' else 'ON'}" for kind, name in replaced
    )
    return [each for each in earlier if each.lstrip().startswith(made)] if made else []


def upgraded(url: str) -> list[str]:
    store = open_store(url)
    try:
        return migrate.migrate(store)
    finally:
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
    # Proofs were not recorded then.
    tasks = {each: replace(ledger.task(each), proof=None) for each in (dead.task, ticket.task)}
    ledger.close()
    taken_back(store_url, 4)
    with pytest.raises(SchemaWrecked, match="truegreen migrate"):
        open_ledger(store_url)
    assert upgraded(store_url)[:2] == ["applied 0004 doors", "applied 0005 faces"]
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


def lived(ledger: Ledger) -> None:
    """Something of everything that is counted."""
    smith = ledger.register_agent("smith", "sha256:1", actor=OPERATOR)
    for status in (S.SUCCEEDED, S.SUCCEEDED, S.BLOCKED, S.NEEDS_REVIEW):
        brought(ledger, status)
    failed, _ = brought(ledger, S.FAILED)
    ledger.retry(failed.id, actor=OPERATOR, reason="once more")
    ticket = started(ledger, agent_id=smith.id)
    ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED))
    unavailable = {"check": "judge", "kind": "evaluator", "reason": "evaluator_unavailable: no"}
    said = [{"outcome": "refuted", "text": "a \0 and a \\u0000"}, {"outcome": "confirmed"}]
    claim = {"check": "claims", "kind": "claim", "evidence": {"statements": [*said, said[0]]}}
    for terms in (unavailable, claim, {**claim, "check": "more", "evidence": {}}):
        given = {**terms, "binding": False, "duration_us": 1500}
        ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.INCONCLUSIVE, **given)])
    judged(ledger, ticket, Outcome.PASSED)
    for _ in range(3):
        with pytest.raises(Stale):
            declared(ledger, ticket)


def test_what_happened_before_the_upgrade_is_counted_once_and_what_follows_is_added(
    store_url: str,
) -> None:
    ledger = open_ledger(store_url)
    lived(ledger)
    ledger.terminate(brought(ledger, S.RUNNING)[0].id, actor=OPERATOR)
    # Retries that were denied are counted since there are breakers, and not in hindsight.
    counted = {name: n for name, n in ledger.meters().items() if n and name[0] != DENIED}
    ledger.close()
    taken_back(store_url, 5)
    with raw_sql(store_url) as raw:
        raw.do("DELETE FROM meters WHERE name <> 'terminate_called'")
    assert upgraded(store_url)[0] == "applied 0005 faces"
    ledger = open_ledger(store_url)
    found = {name: n for name, n in ledger.meters().items() if n}
    assert found == counted  # what was denied before anybody counted it is not known
    assert found["runs", "terminated|user_cancelled|terminated|"] == 1
    assert found["terminate_called", "running"] == 1  # it was counted in its time
    assert found["claims", "refuted|smith"] == 2
    assert found["claims", "confirmed|smith"] == 1
    assert found["refused", "stale"] == 3
    assert found["moved", "reopen"] == 1
    assert found["evaluator_unavailable", ""] == found["rescued", ""] == 1
    assert found["checks", "inconclusive|claim"] == 2
    assert found["check_us", "claim"] == 3000
    assert sum(n for (name, _), n in found.items() if name == "inbox") == 3
    lived(ledger)
    assert ledger.meters()["claims", "refuted|smith"] == 4
    assert ledger.meters()["moved", "reopen"] == 2
    ledger.close()


def test_a_task_from_before_limits_and_breakers_is_held_by_them_after_the_upgrade(
    store_url: str,
) -> None:
    ledger = open_ledger(store_url)
    first = opened(ledger, adapter="codex", agent="smith", labels=("night",)).id
    second = opened(ledger).id
    ledger.close()
    with raw_sql(store_url) as raw:
        before = raw.do("SELECT task_key, client, agent FROM demands ORDER BY task_key")
    taken_back(store_url, 6)
    assert upgraded(store_url)[0] == "applied 0006 queue"
    with raw_sql(store_url) as raw:
        after = raw.do("SELECT task_key, client, agent FROM demands ORDER BY task_key")
    assert [tuple(row) for row in after] == [tuple(row) for row in before]
    ledger = open_ledger(store_url)
    ledger.keep_terms("f", Breakers(), [Limit(per=Per.HOUR, label="night", runs=1)])
    assert ledger.why(first).labels == ("night",)
    ticket = started(ledger, first)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.PASSED)
    ledger.retry(first, actor=OPERATOR, reason="again")
    assert ledger.why(first).hold is Hold.SPENT
    assert ledger.why(second).hold is None
    ledger.close()
