"""Terminate against every other verb, and every ending against every other: the first one wins.

The same race with a read and a write by id alone, on a schema without triggers, must bring
terminated tasks back: it proves that this test would see it.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import LEAD, OPERATOR, S, agent_of, ended, finding, opened, started, verdict
from tests.record.torture_racer import TERMINATE, Order, Report, race, two_racers
from tests.record.torture_truth import check_truth, is_terminal, stories
from tests.record.torture_verbs import DONE, EXPIRED, HOLDER, VERBS, Trial, done, prepared
from tests.repeat import repeated
from truegreen.contract import Budget
from truegreen.errors import Refused, TruegreenError
from truegreen.facts import Ticket
from truegreen.model import AgentStatus, ExitDetail, FindingOutcome, Outcome
from truegreen.record.ledger import Ledger, Overdue, open_ledger
from truegreen.record.lifecycle import SETTLED
from truegreen.record.migrate import migrations
from truegreen.record.rows import Lease
from truegreen.record.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truegreen.record.store import Store

ROUNDS_IN_THREADS = repeated(2)
ROUNDS_IN_PROCESSES = repeated(2)
TOGETHER = 0.004  # far enough ahead for both sides to be there


@pytest.fixture
def dice() -> random.Random:
    """Chance that can be repeated."""
    return random.Random(20)  # noqa: S311 - no secret


def check_terminated(ledger: Ledger, trial: Trial, acts: list[Report], end: Report) -> None:
    """The task is sealed, and nothing that began after the acknowledgement was accepted."""
    name = f"{trial.verb} against terminate"
    assert end.refused == "", f"{name}: terminate was refused: {end.refused}"
    late = [act for act in acts if act.began >= end.ended]
    assert [act for act in late if not act.refused] == [], f"{name}: accepted after it"
    with pytest.raises(Refused):
        done(ledger, trial)
    task = ledger.task(trial.task)
    assert task.sealed_at is not None, f"{name}: {task.status} and not sealed"
    assert task.status in SETTLED, f"{name}: {task.status}"
    for agent in ledger.dossier(trial.task).agents:
        assert agent.status is AgentStatus.TERMINATED, f"{name}: {agent.id} is {agent.status}"


def check_nothing_lives(ledger: Ledger, tasks: set[str]) -> None:
    """No run, lease or token of a sealed task is alive."""
    check_truth(ledger, tasks)
    keys = {story.task.key for story in stories(ledger, tasks)}
    for story in stories(ledger, tasks):
        assert [run.id for run in story.runs if run.exit_reason is None] == []
        assert Counter(e.event for e in story.events)["terminate"] <= 1
    assert [
        t.id for t in ledger.tokens(of_runs=True) if t.task_key in keys and not t.revoked_at
    ] == []
    assert {late.task for late in ledger.overdue()} & tasks == set()


@pytest.mark.timeout(180)
@pytest.mark.criterion("G07", "G08")
@pytest.mark.slow
def test_no_verb_in_a_thread_outlives_terminate(ledger: Ledger, dice: random.Random) -> None:
    trials = []
    with ThreadPoolExecutor(2) as pool:
        for _ in range(ROUNDS_IN_THREADS):
            for verb in dice.sample(sorted(VERBS), len(VERBS)):
                trial = prepared(ledger, verb)
                at = time.monotonic() + TOGETHER
                act = pool.submit(race, ledger, Order(trial, at, times=3))
                end = Order(Trial(TERMINATE, trial.task), at + dice.uniform(-0.003, 0.004))
                ending = pool.submit(race, ledger, end)
                check_terminated(ledger, trial, act.result(), ending.result()[0])
                trials.append(trial)
    check_nothing_lives(ledger, {trial.task for trial in trials})


@pytest.mark.timeout(180)
@pytest.mark.criterion("G07", "G08", "M07")
@pytest.mark.slow
def test_no_verb_in_a_process_outlives_terminate(
    ledger: Ledger, store_url: str, dice: random.Random
) -> None:
    trials = []
    with two_racers(store_url) as (actor, ender):
        for _ in range(ROUNDS_IN_PROCESSES):
            for verb in dice.sample(sorted(VERBS), len(VERBS)):
                trial = prepared(ledger, verb)
                at = time.monotonic() + TOGETHER
                actor.send(Order(trial, at, times=3))
                late = dice.uniform(-0.003, 0.004)
                ender.send(Order(Trial(TERMINATE, trial.task), at + late))
                check_terminated(ledger, trial, actor.answer(), ender.answer()[0])
                trials.append(trial)
    check_nothing_lives(ledger, {trial.task for trial in trials})


# -- the control that must fail ------------------------------------------------------------------


@pytest.fixture
def bare(store_url: str, tmp_path: Any) -> Iterator[Store]:
    """The same tables without a trigger."""
    if store_url.startswith("sqlite"):
        store_url = f"sqlite://{tmp_path}/bare.db"
    store = open_store(store_url)
    if store.dialect == "sqlite":
        store.script([text for step in migrations("sqlite") for text in step.statements])
    else:
        tables = ("tasks", "agents", "messages", "wakes")
        store.script([f"ALTER TABLE {table} DISABLE TRIGGER ALL" for table in tables])
    yield store
    store.close()


def raw(store: Any, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """One statement by itself, past the ledger."""
    with store._lent() as connection:
        if store.dialect == "sqlite":
            for _ in range(20000):
                try:
                    return connection.execute(statement, values).fetchall()  # type: ignore[no-any-return]
                except Exception as error:
                    if type(error).__name__ != "BusyError":
                        raise
                    time.sleep(0.0002)
        cursor = connection.execute(statement.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []


QUEUED_TASK = (
    "INSERT INTO tasks (id, title, goal, role, mode, status, revision, head, attempts_max,"
    " deferrals_max, qa_rounds_max, created_by, contract, contract_digest, created_at, updated_at)"
    " VALUES (?, '', '', '', 'autonomous', 'queued', 1, ?, 3, 3, 2, '', '{}', '', 0, 0)"
)
END_BY_ID = (
    "UPDATE tasks SET status = 'terminated', sealed_at = 1, exit_reason = 'user_cancelled',"
    " exit_detail = 'terminated' WHERE id = ?"
)
START_BY_ID = "UPDATE tasks SET status = 'running' WHERE id = ?"
STATUS_BY_ID = "SELECT status FROM tasks WHERE id = ?"


def race_by_id(store: Any, task: str, pool: ThreadPoolExecutor, dice: random.Random) -> None:
    """Start against terminate as many programs do it: look, think, then write by id."""
    barrier = threading.Barrier(2)
    wait, thinks = (dice.uniform(0, 0.002) for _ in range(2))

    def start() -> None:
        barrier.wait()
        ((status,),) = raw(store, STATUS_BY_ID, task)
        time.sleep(thinks)
        if status == "queued":
            raw(store, START_BY_ID, task)

    def terminate() -> None:
        barrier.wait()
        time.sleep(wait)
        raw(store, END_BY_ID, task)

    for each in [pool.submit(start), pool.submit(terminate)]:
        try:
            each.result()
        except TruegreenError:
            continue  # a trigger stood in the way


def test_the_race_without_guards_brings_terminated_tasks_back(
    bare: Any, dice: random.Random
) -> None:
    tasks = [f"tsk_{number:018}" for number in range(150)]
    with ThreadPoolExecutor(2) as pool:
        for task in tasks:
            raw(bare, QUEUED_TASK, task, b"")
            race_by_id(bare, task, pool, dice)
    revived = raw(bare, "SELECT id FROM tasks WHERE status <> 'terminated'")
    assert len(revived) > 0, "the control found nothing: this race can't see a revival"
    assert len(revived) < len(tasks)


@pytest.mark.criterion("G08")
def test_the_same_race_by_id_is_refused_by_the_triggers(
    ledger: Ledger, dice: random.Random
) -> None:
    store: Any = ledger.store
    tasks = [opened(ledger).id for _ in range(40)]
    with ThreadPoolExecutor(2) as pool:
        for task in tasks:
            race_by_id(store, task, pool, dice)
            ledger.terminate(task, actor=OPERATOR)
            with pytest.raises(TruegreenError):
                raw(store, START_BY_ID, task)
    assert {story.task.status for story in stories(ledger)} == {S.TERMINATED}
    check_truth(ledger)


# -- starts --------------------------------------------------------------------------------------


def attempted(act: Callable[[], Any]) -> Any:
    """The answer, or the refusal as a value."""
    try:
        return act()
    except Refused as refused:
        return refused


@pytest.mark.criterion("K07", "C08")
def test_of_four_starters_of_one_task_exactly_one_wins(ledger: Ledger) -> None:
    barrier = threading.Barrier(4)

    def start(task: str) -> Any:
        barrier.wait()
        return attempted(lambda: ledger.start(task, HOLDER))

    with ThreadPoolExecutor(4) as pool:
        for _ in range(30):
            task = opened(ledger).id
            answers = [each.result() for each in [pool.submit(start, task) for _ in range(4)]]
            won = [answer for answer in answers if isinstance(answer, Ticket)]
            assert len(won) == 1, answers
            assert {a.code for a in answers if isinstance(a, Refused)} <= {"illegal_move", "stale"}
            assert ledger.task(task).attempt == 1
    check_truth(ledger)


@pytest.mark.criterion("K07", "M07")
def test_two_processes_never_start_the_same_task(ledger: Ledger, store_url: str) -> None:
    with two_racers(store_url) as (one, two):
        for verb in ("start", "claim_next") * 10:
            trial = prepared(ledger, verb)
            order = Order(trial, time.monotonic() + TOGETHER)
            one.send(order)
            two.send(order)
            refused = sorted(bool(r.refused) for r in one.answer() + two.answer())
            assert refused == [False, True], verb
            assert ledger.task(trial.task).attempt == 1
    check_truth(ledger)


@pytest.mark.criterion("K07")
def test_claims_of_many_workers_share_the_queue_out_without_overlap(ledger: Ledger) -> None:
    tasks = {opened(ledger).id for _ in range(60)}

    def work() -> list[str]:
        mine: list[str] = []
        for _ in range(200):
            got = ledger.claim_next(HOLDER, limit=2)
            mine += [ticket.task for ticket in got]
            if not got and ledger.page(limit=1).tasks[0].status is not S.QUEUED:
                break
        return mine

    with ThreadPoolExecutor(4) as pool:
        claimed = [t for each in [pool.submit(work) for _ in range(4)] for t in each.result()]
    claimed += [ticket.task for ticket in ledger.claim_next(HOLDER, limit=1000)]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) == tasks
    check_truth(ledger)


# -- the first ending wins -----------------------------------------------------------------------


def succeed(ledger: Ledger, ticket: Ticket) -> None:
    """All the way to green."""
    ledger.end_run(ticket, ended(), claim=DONE)
    ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.PASSED)])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))


def lose(ledger: Ledger, ticket: Ticket) -> None:
    """Its lease ran out and its process is gone."""
    run, _ = ledger.run(ticket.run)
    lease = Lease(run.key, ticket.lease, "torture", "", 0, "{}")
    ledger.lose(Overdue(ticket.task, ticket.run, S.RUNNING, ticket.fence, lease))


ENDINGS: dict[str, tuple[S, Callable[[Ledger, Ticket], object]]] = {
    "success": (S.SUCCEEDED, succeed),
    "fail": (
        S.FAILED,
        lambda book, k: book.end_run(k, ended(ExitDetail.SIGNALED)),
    ),
    "lost": (S.FAILED, lose),
    "park": (S.BLOCKED, lambda book, k: book.checkpoint(k, "push", actor=agent_of(k))),
    "cancel": (S.CANCELED, lambda book, k: book.cancel(k.task, actor=OPERATOR)),
    "terminate": (S.TERMINATED, lambda book, k: book.terminate(k.task, actor=OPERATOR)),
}
LATE = {("park", "cancel"): S.CANCELED, ("park", "terminate"): S.TERMINATED}
"""A blocked task has no outcome yet: people may still call it off. Nothing else may."""


def last_attempt(ledger: Ledger) -> Ticket:
    """A running task whose failure is final, with a lease that has run out."""
    return ledger.start(opened(ledger, budget=Budget(attempts=1)).id, EXPIRED)


@pytest.mark.criterion("C09")
def test_the_first_of_two_endings_wins(ledger: Ledger) -> None:
    for first, second in permutations(ENDINGS, 2):
        check_first_wins(ledger, first, second)
    check_truth(ledger)


def check_first_wins(ledger: Ledger, first: str, second: str) -> None:
    """One ending, then the other, of one task."""
    ticket, name = last_attempt(ledger), f"{first}, then {second}"
    ENDINGS[first][1](ledger, ticket)
    before = ledger.task(ticket.task)
    assert before.status is ENDINGS[first][0], name
    answer = attempted(lambda: ENDINGS[second][1](ledger, ticket))
    after = ledger.task(ticket.task)
    assert after.status is LATE.get((first, second), before.status), name
    if (first, second) in LATE:
        return
    assert (after.exit_detail, after.verdict) == (before.exit_detail, before.verdict), name
    if second == "terminate":
        assert after.sealed_at is not None, name
    else:
        assert isinstance(answer, Refused), name
        assert after.revision == before.revision, name


@pytest.mark.criterion("C09", "G25")
def test_of_two_endings_at_once_exactly_one_ends_the_run(ledger: Ledger) -> None:
    barrier = threading.Barrier(2)

    def end(name: str, ticket: Ticket) -> Any:
        barrier.wait()
        return attempted(lambda: ENDINGS[name][1](ledger, ticket))

    with ThreadPoolExecutor(2) as pool:
        for pair in list(permutations(ENDINGS, 2)) * 2:
            ticket = last_attempt(ledger)
            for each in [pool.submit(end, name, ticket) for name in pair]:
                each.result()
            (story,) = stories(ledger, {ticket.task})
            final = {ENDINGS[name][0] for name in pair} | {LATE.get(pair), LATE.get(pair[::-1])}
            assert story.task.status in final, f"{pair}: {story.task.status}"
            assert [e.run_id for e in story.events if is_terminal(e)].count(ticket.run) == 1
            if "terminate" in pair:
                assert story.task.sealed_at is not None, pair
    check_truth(ledger)


@pytest.mark.criterion("G05")
def test_a_hundred_terminates_from_eight_threads_change_one_thing(ledger: Ledger) -> None:
    ticket = started(ledger)
    before = ledger.task(ticket.task)
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: ledger.terminate(ticket.task, actor=OPERATOR), range(100))
        )
    assert sum(not answer.already_terminated for answer in answers) == 1
    after = ledger.task(ticket.task)
    assert (after.revision, after.fence) == (before.revision + 1, before.fence + 1)
    assert {answer.fence for answer in answers} == {after.fence}
    assert [told.event.event for told in ledger.events(ticket.task)].count("terminate") == 1
    check_truth(ledger)


# -- families ------------------------------------------------------------------------------------


@pytest.mark.criterion("G17")
def test_a_child_registered_while_its_parent_is_terminated_is_terminated_too(
    ledger: Ledger, dice: random.Random
) -> None:
    with ThreadPoolExecutor(2) as pool:
        for _ in range(40):
            top = ledger.register_agent("top", "sha256:1", actor=OPERATOR)
            middle = ledger.register_agent("mid", "sha256:2", actor=OPERATOR, parent=top.id)
            ticket = started(ledger, agent_id=top.id)
            barrier = threading.Barrier(2)
            wait = dice.uniform(0, 0.002)

            def register(parent: str, barrier: threading.Barrier = barrier) -> str:
                barrier.wait()
                return ledger.register_agent("kid", "sha256:3", actor=LEAD, parent=parent).id

            kid = pool.submit(register, dice.choice([top.id, middle.id]))
            barrier.wait()
            time.sleep(wait)
            ledger.terminate(ticket.task, actor=OPERATOR)
            assert ledger.agent(middle.id).status is AgentStatus.TERMINATED
            assert ledger.agent(kid.result()).status is AgentStatus.TERMINATED
    check_truth(ledger)


@pytest.mark.criterion("G17")
def test_terminate_finds_a_child_that_was_being_registered_when_it_looked(
    postgres_url: str,
) -> None:
    """The child's transaction holds the parent, terminate waits for it; then the child stands."""
    ledger, other = open_ledger(postgres_url), open_ledger(postgres_url)
    top = ledger.register_agent("top", "sha256:1", actor=OPERATOR)
    middle = ledger.register_agent("mid", "sha256:2", actor=OPERATOR, parent=top.id)
    ticket = started(ledger, agent_id=top.id)
    held, go = threading.Event(), threading.Event()
    slow: Any = other
    event = slow._event

    def waiting_event(*values: Any) -> bytes:
        held.set()
        go.wait(10)
        return event(*values)  # type: ignore[no-any-return]

    slow._event = waiting_event
    with ThreadPoolExecutor(2) as pool:
        kid = pool.submit(
            lambda: slow.register_agent("kid", "sha256:3", actor=LEAD, parent=middle.id)
        )
        assert held.wait(10)
        ending = pool.submit(ledger.terminate, ticket.task, actor=OPERATOR)
        time.sleep(0.2)
        assert not ending.done(), "terminate did not wait for the family"
        go.set()
        ending.result(10)
        assert ledger.agent(kid.result(10).id).status is AgentStatus.TERMINATED
    ledger.close()
    other.close()
