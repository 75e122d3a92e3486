"""Terminate among a crowd: dispatch, messages, wake-ups, children and verdicts at the same moment.

Eight processes on SQLite, three supervisors and the one who terminates on PostgreSQL. `RACES` says
how many rounds both databases see together (`RACES=200000` for a night); those of `test_races`,
verb by verb, come to some 600 more. What counts is what the record says afterwards.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import OPERATOR, opened
from tests.record.raw_sql import raw_sql
from tests.record.test_races import bare
from tests.record.test_races import raw as raw_statement
from tests.record.torture_crowd import Crowd
from tests.record.torture_racer import Order, two_racers
from tests.record.torture_scenes import SCENES, Scene, acts, may_go_on, staged
from tests.record.torture_truth import check_truth
from tests.record.torture_verbs import HOLDER, prepared
from truegreen.errors import Frozen, Refused, TruegreenError
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from tests.record.torture_racer import Report

__all__ = ["bare"]

ROUNDS = int(os.environ.get("RACES", "1400"))
CROWD = {"sqlite": 8, "postgres": 4}
CODES = {"terminated", "stale", "illegal_move", "refused", "not_running", "budget_spent"}
CODES |= {"already_declared", "frozen", "held"}
LIFE_AFTER_DEATH = {
    "a terminated agent has a live run": (
        "SELECT r.id FROM runs r JOIN agents a ON a.key = r.agent_key"
        " WHERE a.status = 'terminated' AND r.exit_reason IS NULL"
    ),
    "a sealed task has a live run": (
        "SELECT r.id FROM runs r JOIN tasks t ON t.key = r.task_key"
        " WHERE t.sealed_at IS NOT NULL AND r.exit_reason IS NULL"
    ),
    "somebody holds a sealed task": (
        "SELECT t.id FROM leases l JOIN runs r ON r.key = l.run_key"
        " JOIN tasks t ON t.key = r.task_key WHERE t.sealed_at IS NOT NULL"
    ),
    "a terminated agent is to be woken": (
        "SELECT w.id FROM wakes w JOIN agents a ON a.key = w.agent_key"
        " WHERE a.status = 'terminated' AND w.state IN ('armed', 'ready')"
    ),
    "a task is queued to wake a terminated agent": (
        "SELECT t.id FROM wakes w JOIN agents a ON a.key = w.agent_key"
        " JOIN tasks t ON t.key = w.task_key WHERE a.status = 'terminated'"
        " AND w.state = 'void' AND t.sealed_at IS NULL"
    ),
    "a run that woke a terminated agent is not over": (
        "SELECT r.id FROM wakes w JOIN agents a ON a.key = w.agent_key"
        " JOIN runs r ON r.id = w.run_id WHERE a.status = 'terminated'"
        " AND r.exit_reason IS NULL"
    ),
    "a child of a terminated agent is not": (
        "SELECT c.id FROM agents c JOIN agents a ON a.key = c.parent_key"
        " WHERE a.status = 'terminated' AND c.status <> 'terminated'"
    ),
    "a token speaks for a sealed task": (
        "SELECT k.id FROM tokens k JOIN tasks t ON t.key = k.task_key"
        " WHERE t.sealed_at IS NOT NULL AND k.revoked_at IS NULL"
    ),
    "something was written after the seal": (
        "SELECT e.id FROM events e JOIN events s ON s.task_key = e.task_key"
        " AND s.event IN ('terminate', 'seal') WHERE e.revision > s.revision"
    ),
    "a task was sealed twice": (
        "SELECT task_key FROM events WHERE event IN ('terminate', 'seal')"
        " GROUP BY task_key HAVING COUNT(*) > 1"
    ),
}
"""What the record must not say of anybody, whoever was first."""


@pytest.fixture
def dice() -> random.Random:
    """Chance that can be repeated."""
    return random.Random(6)  # noqa: S311 - no secret


def check_answers(scene: Scene, end: Report, tried: dict[int, list[Report]]) -> Counter[str]:
    """Nothing that began after the acknowledgement was accepted; says how often each was before."""
    assert end.refused == "", f"{scene.name}: terminate was refused: {end.refused}"
    seen: Counter[str] = Counter()
    for number, reports in tried.items():
        act = acts(scene)[number]
        for report in reports:
            assert report.refused in {"", *CODES}, f"{act.__name__}: {report.refused}"
            late = report.began >= end.ended
            if late and not may_go_on(scene, act):
                assert report.refused, f"{scene.name}: {act.__name__} was accepted after it"
            seen["late" if late else "early"] += 1
            seen["accepted"] += not report.refused
    return seen


def check_nobody_came_back(url: str) -> None:
    """The whole record, after all rounds."""
    with raw_sql(url) as raw:
        found = {claim: raw.do(query) for claim, query in LIFE_AFTER_DEATH.items()}
    assert {claim: rows for claim, rows in found.items() if rows} == {}


def circles(url: str) -> list[list[int]]:
    """How often PostgreSQL has found writers that waited for each other, in this database."""
    query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    if not url.startswith("postgres"):
        return []
    with raw_sql(url) as raw:
        return raw.do(query)


def check_is_over(ledger: Ledger, scene: Scene) -> None:
    """Whoever was terminated is, and nothing can be done about it any more."""
    assert ledger.agent(scene.agent).status == "terminated" or not scene.by_agent
    assert scene.by_agent or ledger.task(scene.task).sealed_at is not None
    for act in acts(scene):
        if not may_go_on(scene, act):
            with pytest.raises(Refused):
                act(ledger, scene)


@pytest.mark.timeout(60 + ROUNDS)
@pytest.mark.criterion("G07", "G08", "G17", "G20", "K07", "K10", "K12", "M07")
@pytest.mark.slow
def test_nothing_that_a_crowd_of_processes_tries_is_accepted_after_terminate(
    store_url: str, dice: random.Random
) -> None:
    ledger = open_ledger(store_url)
    before = circles(store_url)
    rounds = ROUNDS // 2
    kinds = cycle(product(sorted(SCENES), (True, False)))
    seen: Counter[str] = Counter()
    with Crowd(store_url, CROWD[ledger.store.dialect]) as crowd:
        for number, (name, by_agent) in zip(range(rounds), kinds, strict=False):
            scene = staged(ledger, name, by_agent=by_agent)
            end, tried = crowd.play(scene, dice.uniform(-0.003, 0.009))
            seen += check_answers(scene, end, tried)
            if number % 25 == 0:
                check_is_over(ledger, scene)
    check_nobody_came_back(store_url)
    # Tasks are held before agents, so PostgreSQL never has to choose a victim, after a second.
    assert circles(store_url) == before
    check_truth(ledger)
    ledger.close()
    assert min(seen["late"], seen["early"], seen["accepted"]) > rounds / 4, seen


# -- the switch ----------------------------------------------------------------------------------


@pytest.mark.criterion("G22")
def test_no_run_starts_after_the_freeze_was_acknowledged(
    ledger: Ledger, store_url: str, dice: random.Random
) -> None:
    early = 0
    with two_racers(store_url) as (one, two):
        for number in range(40):
            trial = prepared(ledger, ("start", "claim_next")[number % 2])
            at = time.monotonic() + 0.004
            for racer in (one, two):
                racer.send(Order(trial, at, times=4))
            time.sleep(max(0.0, at + dice.uniform(-0.002, 0.003) - time.monotonic()))
            ledger.freeze(actor=OPERATOR, reason="look first")
            frozen = time.monotonic()
            tried = one.answer() + two.answer()
            assert [r for r in tried if r.began >= frozen and not r.refused] == []
            early += sum(not r.refused for r in tried)
            ledger.thaw(actor=OPERATOR, reason="go on")
            ledger.terminate(trial.task, actor=OPERATOR)
    assert early > 0, "nothing ever started: this race sees nothing"


@pytest.mark.criterion("G22")
def test_a_freeze_waits_for_whoever_is_just_starting(postgres_url: str) -> None:
    """Else it would be acknowledged, and the run would start after it."""
    ledger, other = open_ledger(postgres_url), open_ledger(postgres_url)
    task = opened(ledger).id
    held, go = threading.Event(), threading.Event()
    slow: Any = other
    start = slow._start

    def waiting(*values: Any) -> Any:
        ticket = start(*values)
        values[0].one("frozen")  # everything before it has reached the database
        held.set()
        go.wait(10)
        return ticket

    slow._start = waiting
    with ThreadPoolExecutor(2) as pool:
        starting = pool.submit(slow.start, task, HOLDER)
        assert held.wait(10)
        freezing = pool.submit(ledger.freeze, actor=OPERATOR, reason="look first")
        assert not wait([freezing], timeout=0.3).done, "the freeze did not wait"
        go.set()
        starting.result(10)
        freezing.result(10)
        with pytest.raises(Frozen):
            ledger.start(opened(ledger).id, HOLDER)
    ledger.close()
    other.close()


# -- the control that must fail ------------------------------------------------------------------

LOOK = "SELECT status FROM agents WHERE id = ?"
END = "UPDATE agents SET status = 'terminated', terminated_at = 1 WHERE id = ?"
AGENT = (
    "INSERT INTO agents (id, name, definition, registered_by, status, created_at, updated_at)"
    " VALUES (?, '', '', '', 'completed', 0, 0)"
)
BY_ID = {
    "message": (
        "INSERT INTO messages (id, agent_key, sender, body, disposition, at)"
        " SELECT 'msg_' || id, key, '', '', 'queued_for_resume', 0 FROM agents WHERE id = ?"
    ),
    "wake": (
        "INSERT INTO wakes (id, agent_key, cause, body, due_at, state, armed_by, created_at,"
        " updated_at) SELECT 'wak_' || id, key, 'resume', '', 0, 'armed', '', 0, 0"
        " FROM agents WHERE id = ?"
    ),
    "child": (
        "INSERT INTO agents (id, name, definition, registered_by, parent_key, status, created_at,"
        " updated_at) SELECT 'kid_' || id, '', '', '', key, 'pending', 0, 0 FROM agents"
        " WHERE id = ?"
    ),
    "resume": "UPDATE agents SET status = 'in_progress', terminated_at = NULL WHERE id = ?",
}
"""What many programs do: look at the status, then write by id."""


def late_writes(store: Any, write: str, rounds: int, dice: random.Random) -> int:
    """How often such a write was accepted after the end was acknowledged."""
    late = 0
    with ThreadPoolExecutor(2) as pool:
        for number in range(rounds):
            agent, pause = f"agt_{os.urandom(6).hex()}{number}", dice.uniform(0, 0.002)
            thought = dice.uniform(0, 0.008)  # whatever a program does between look and write
            raw_statement(store, AGENT, agent)
            barrier = threading.Barrier(2)

            def act(
                agent: str = agent, barrier: threading.Barrier = barrier, thought: float = thought
            ) -> float:
                barrier.wait()
                ((status,),) = raw_statement(store, LOOK, agent)
                if status == "terminated":
                    return 0.0
                time.sleep(thought)
                began = time.monotonic()
                raw_statement(store, write, agent)
                return began

            def end(
                agent: str = agent, barrier: threading.Barrier = barrier, pause: float = pause
            ) -> float:
                barrier.wait()
                time.sleep(pause)
                raw_statement(store, END, agent)
                return time.monotonic()

            acting, ending = pool.submit(act), pool.submit(end)
            try:
                late += acting.result() > ending.result()
            except TruegreenError:
                ending.result()  # a trigger stood in the way
    return late


@pytest.mark.parametrize("what", BY_ID)
def test_without_guards_a_terminated_agent_is_written_to_woken_and_resumed(
    bare: Any, dice: random.Random, what: str
) -> None:
    assert late_writes(bare, BY_ID[what], 60, dice) > 0, "this race can't see a late write"


@pytest.mark.criterion("G08", "G19", "K10")
@pytest.mark.parametrize("what", BY_ID)
def test_the_same_writes_are_refused_by_the_triggers(
    ledger: Ledger, dice: random.Random, what: str
) -> None:
    assert late_writes(ledger.store, BY_ID[what], 30, dice) == 0
