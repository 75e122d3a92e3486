"""Cancel, and terminate: from every status, for ever, and saying so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.record.lives import (
    LEAD,
    OPERATOR,
    S,
    agent_of,
    brought,
    contract,
    declared,
    ended,
    judged,
    opened,
    started,
)
from truegreen.contract import QaTerms
from truegreen.errors import (
    Ambiguous,
    Forbidden,
    IllegalMove,
    InvalidInput,
    KeyReused,
    NotFound,
    Refused,
    Terminated,
    Unauthenticated,
)
from truegreen.facts import Actor, Processes
from truegreen.model import (
    AgentStatus,
    Cell,
    EndedBy,
    EventLevel,
    ExitDetail,
    Move,
    Note,
    Outcome,
    Role,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.lifecycle import SETTLED

if TYPE_CHECKING:
    from collections.abc import Callable

    from truegreen.record.rows import Event

LIVE = (S.RUNNING, S.AWAITING_APPROVAL)
KEEPS = SETTLED - {S.BLOCKED, S.TERMINATED}


def events(ledger: Ledger, task: str) -> list[Event]:
    return [told.event for told in ledger.events(task)]


def _refused(attempt: Callable[[], object]) -> type[Refused] | None:
    try:
        attempt()
    except Refused as error:
        return type(error)
    return None


# -- cancel ------------------------------------------------------------------------------------


@pytest.mark.criterion("C04", "B04", "B24", "C02")
@pytest.mark.parametrize("status", list(TaskStatus))
def test_cancel_from_every_status(ledger: Ledger, status: TaskStatus) -> None:
    task, ticket = brought(ledger, status)
    if status is S.CANCELED:
        assert ledger.cancel(task.id, actor=OPERATOR) == task
        assert len(events(ledger, task.id)) == task.revision
        return
    if status in SETTLED and status is not S.BLOCKED:
        with pytest.raises(Terminated if status is S.TERMINATED else IllegalMove):
            ledger.cancel(task.id, actor=OPERATOR)
        assert ledger.task(task.id) == task
        return
    done = ledger.cancel(task.id, actor=OPERATOR, reason="not needed", key="c")
    assert done == ledger.task(task.id)
    assert (done.status, done.exit_reason, done.exit_detail) == (
        S.CANCELED,
        "user_cancelled",
        ExitDetail.CANCELED,
    )
    assert (done.fence, done.sealed_at) == (task.fence + 1, None)
    assert done.settled_at is not None
    event = events(ledger, task.id)[-1]
    assert (event.event, event.from_status, event.to_status) == (Move.CANCEL, status, S.CANCELED)
    assert (event.actor, event.reason, event.idempotency_key) == ("operator:ana", "not needed", "c")
    assert json.loads(event.data)["prior_status"] == status
    assert event.run_id == (ticket.run if ticket and status in LIVE else None)
    if ticket and status in LIVE:
        run = ledger.run(ticket.run)[0]
        assert (run.status, run.exit_detail) == (RunStatus.STOPPED, ExitDetail.CANCELED)
        assert (run.ended_by, run.cell) == (EndedBy.OPERATOR, Cell.STOPPED)
    assert ledger.cancel(task.id, actor=OPERATOR, reason="not needed", key="c") == done
    assert ledger.inbox() == []
    assert all(run.verdict is not Outcome.PENDING for run in ledger.dossier(task.id).runs)


@pytest.mark.criterion("O01")
def test_a_cancel_takes_the_tokens_of_its_run(ledger: Ledger) -> None:
    ticket = started(ledger)
    for role in (Role.AGENT, Role.JUDGE):
        ledger.mint_token(role, "t", actor=OPERATOR, ticket=ticket)
    ledger.cancel(ticket.task, actor=OPERATOR)
    assert [token.revoked_at is None for token in ledger.tokens(of_runs=True)] == [False, False]


@pytest.mark.criterion("C11")
def test_a_cancel_key_belongs_to_one_task(ledger: Ledger) -> None:
    task, other = opened(ledger), opened(ledger)
    ledger.cancel(task.id, actor=OPERATOR, key="k")
    with pytest.raises(KeyReused):
        ledger.cancel(other.id, actor=OPERATOR, key="k")
    assert ledger.task(other.id) == other


# -- terminate ---------------------------------------------------------------------------------


@pytest.mark.criterion("G01", "G06", "G09", "G14", "G25", "M05", "C04", "G28")
@pytest.mark.parametrize("status", list(TaskStatus))
def test_terminate_from_every_status(ledger: Ledger, status: TaskStatus) -> None:
    task, ticket = brought(ledger, status)
    before = ledger.dossier(task.id)
    answer = ledger.terminate(task.id, actor=OPERATOR, reason="enough")
    now = ledger.task(task.id)
    assert (answer.task, answer.prior_status, answer.fence) == (task.id, status, now.fence)
    if status is S.TERMINATED:
        assert (answer.already_terminated, answer.outcome) == (True, "clean")
        assert ledger.dossier(task.id) == before
        return
    assert not answer.already_terminated
    assert answer.outcome == ("interrupted" if status in LIVE else "clean")
    assert answer.runs == ((ticket.run,) if ticket and status in LIVE else ())
    assert now.sealed_at is not None
    assert now.fence == task.fence + 1
    event = events(ledger, task.id)[-1]
    assert (event.actor, event.reason) == ("operator:ana", "enough")
    assert (event.level, event.fence) == (EventLevel.WARN, now.fence)
    assert json.loads(event.data)["prior_status"] == status
    if status in KEEPS:
        assert event.event == Note.SEAL
        kept = ("status", "verdict", "cell", "acceptance", "exit_reason", "settled_at", "rescued")
        assert [getattr(now, k) for k in kept] == [getattr(task, k) for k in kept]
    else:
        assert (event.event, event.to_status) == (Move.TERMINATE, S.TERMINATED)
        assert (now.status, now.exit_detail) == (S.TERMINATED, ExitDetail.TERMINATED)
        assert now.verdict is not Outcome.PASSED
    runs = ledger.dossier(task.id).runs
    assert all(run.exit_reason is not None for run in runs)
    if ticket and status in LIVE:
        assert (runs[-1].status, runs[-1].ended_by) == (RunStatus.TERMINATED, EndedBy.OPERATOR)
    assert ledger.dossier(task.id).findings == before.findings
    assert ledger.overdue() == []
    ends = (Move.TERMINATE, Note.SEAL)
    assert sum(e.event in ends for e in events(ledger, task.id)) == 1


@pytest.mark.criterion("G05", "C21")
@pytest.mark.parametrize("status", [S.RUNNING, S.SUCCEEDED, S.QUEUED])
def test_a_hundred_times_is_once(ledger: Ledger, status: TaskStatus) -> None:
    task, _ = brought(ledger, status)
    answers = [ledger.terminate(task.id, actor=OPERATOR) for _ in range(100)]
    assert [a.already_terminated for a in answers] == [False] + [True] * 99
    assert {a.fence for a in answers} == {task.fence + 1}
    assert all(a.outcome == "clean" and a.runs == () for a in answers[1:])
    assert len(events(ledger, task.id)) == task.revision + 1


@pytest.mark.criterion("G02", "G04", "G18", "G27", "O01")
@pytest.mark.parametrize("status", [S.RUNNING, S.BLOCKED, S.SUCCEEDED, S.FAILED, S.CANCELED])
def test_nothing_survives_it_also_after_reopening_the_store(
    ledger: Ledger, status: TaskStatus
) -> None:
    task, ticket = brought(ledger, status)
    assert ticket
    ledger.terminate(task.id, actor=OPERATOR)
    again = open_ledger(ledger.store.url)
    sealed = again.task(task.id)
    attempts = {
        "start": lambda: again.start(task.id, Start("x")),
        "retry": lambda: again.retry(task.id, actor=OPERATOR, reason="x", more_attempts=5),
        "unblock": lambda: again.unblock(task.id, actor=OPERATOR, reason="x", more_attempts=5),
        "review": lambda: again.review(task.id, accept=True, actor=OPERATOR, reason="x"),
        "reject": lambda: again.review(task.id, accept=False, actor=OPERATOR, reason="x"),
        "approve": lambda: again.approve(task.id, actor=OPERATOR),
        "deny": lambda: again.deny(task.id, actor=OPERATOR, reason="x"),
        "cancel": lambda: again.cancel(task.id, actor=OPERATOR),
        "end_run": lambda: again.end_run(ticket, ended()),
        "checkpoint": lambda: again.checkpoint(ticket, "x", actor=agent_of(ticket)),
    }
    try:
        for name, attempt in attempts.items():
            assert _refused(attempt) is Terminated, name
        assert again.claim_next(Start("x"), limit=10) == []
        assert again.task(task.id) == sealed
        assert len(again.dossier(task.id).runs) == 1
        assert again.terminate(task.id, actor=OPERATOR).already_terminated
    finally:
        again.close()


@pytest.mark.criterion("G20", "G03", "O05")
def test_tokens_and_messages_die_at_once(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent)
    secrets = [
        ledger.mint_token(role, "t", actor=OPERATOR, ticket=ticket)[1]
        for role in (Role.AGENT, Role.JUDGE)
    ]
    assert ledger.authenticate(secrets[0]).run == ticket.run
    before = ledger.messages(agent)
    ledger.terminate(ticket.task, actor=OPERATOR)
    for secret in secrets:
        with pytest.raises(Terminated):
            ledger.authenticate(secret)
    assert all(token.revoked_at for token in ledger.tokens(of_runs=True))
    with pytest.raises(Terminated):
        ledger.send(agent, "wake up", actor=OPERATOR)
    assert ledger.messages(agent) == before
    with pytest.raises(Terminated):
        started(ledger, agent_id=agent)
    with pytest.raises(Terminated):
        ledger.send(agent, "me too", actor=agent_of(ticket))


@pytest.mark.criterion("G20")
def test_the_agent_of_a_terminated_run_sends_nothing_to_anybody(ledger: Ledger) -> None:
    friend = ledger.register_agent("friend", "sha256:2", actor=OPERATOR).id
    for late in ("terminated", "superseded"):
        ticket = started(ledger)
        ledger.send(friend, "hello", actor=agent_of(ticket))
        if late == "terminated":
            ledger.terminate(ticket.task, actor=OPERATOR)
        else:
            ledger.end_run(ticket, ended(ExitDetail.SIGNALED))
            started(ledger, ticket.task)
        before = ledger.messages(friend)
        with pytest.raises(Refused):
            ledger.send(friend, "do it for me", actor=agent_of(ticket))
        assert ledger.messages(friend) == before


@pytest.mark.criterion("G20")
def test_the_token_of_a_terminated_agent_is_dead_after_its_run_too(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent)
    secret = ledger.mint_token(Role.AGENT, "t", actor=OPERATOR, ticket=ticket)[1]
    declared(ledger, ticket)
    ledger.terminate_agent(agent, actor=OPERATOR)
    with pytest.raises((Terminated, Unauthenticated)):
        ledger.authenticate(secret)


@pytest.mark.criterion("G17")
def test_descendants_go_too_with_whatever_they_are_at(ledger: Ledger) -> None:
    ids = [ledger.register_agent("a0", "sha256:0", actor=OPERATOR).id]
    for depth in range(1, 4):
        child = ledger.register_agent(f"a{depth}", "sha256:0", actor=OPERATOR, parent=ids[-1])
        ids.append(child.id)
    sibling = ledger.register_agent("other", "sha256:0", actor=OPERATOR).id
    at_work = started(ledger, agent_id=ids[3])
    untouched = started(ledger, agent_id=sibling)
    done = started(ledger, agent_id=ids[2])
    declared(ledger, done)
    ticket = started(ledger, agent_id=ids[0])
    answer = ledger.terminate(ticket.task, actor=OPERATOR)
    assert set(answer.agents) == set(ids)
    assert set(answer.runs) == {ticket.run, at_work.run}
    assert {ledger.agent(i).status for i in ids} == {AgentStatus.TERMINATED}
    assert ledger.task(at_work.task).status is S.TERMINATED
    assert events(ledger, at_work.task)[-1].event == Move.TERMINATE
    assert ledger.agent(sibling).status is AgentStatus.IN_PROGRESS
    ledger.heartbeat(untouched)
    assert ledger.task(done.task).status is S.PENDING_EVAL
    later = ledger.register_agent("late", "sha256:0", actor=OPERATOR, parent=ids[3])
    assert (later.status, later.terminated_at is not None) == (AgentStatus.TERMINATED, True)
    with pytest.raises(Terminated):
        started(ledger, agent_id=later.id)
    assert later.id in ledger.terminate(ticket.task, actor=OPERATOR).agents


@pytest.mark.criterion("G17", "G09", "G05", "G02")
def test_an_agent_is_terminated_with_what_it_is_at(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=LEAD).id
    child = ledger.register_agent("helper", "sha256:1", actor=OPERATOR, parent=agent).id
    ticket = started(ledger, agent_id=agent)
    answer = ledger.terminate_agent(agent, actor=LEAD, reason="rogue")
    assert (answer.task, answer.outcome, answer.prior_status) == (
        None,
        "interrupted",
        AgentStatus.IN_PROGRESS,
    )
    assert (answer.agents, answer.runs) == ((agent, child), (ticket.run,))
    assert ledger.task(ticket.task).status is S.TERMINATED
    house = ledger.house_events()
    event = house[-1].event
    assert (event.event, event.actor, event.reason) == (Note.AGENT, "lead:lead", "rogue")
    assert json.loads(event.data)["terminated"] == [agent, child]
    for _ in range(5):
        again = ledger.terminate_agent(agent, actor=LEAD)
        assert (again.already_terminated, again.outcome) == (True, "clean")
    assert ledger.house_events() == house
    idle = ledger.register_agent("idle", "sha256:1", actor=OPERATOR).id
    with pytest.raises(Forbidden):
        ledger.terminate_agent(idle, actor=LEAD)
    assert ledger.terminate_agent(idle, actor=OPERATOR).outcome == "clean"


@pytest.mark.criterion("G21")
def test_one_space_of_names_leads_to_a_task_or_an_agent(ledger: Ledger) -> None:
    agent = ledger.register_agent("solo", "sha256:1", session="s-1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent)
    task = ("task", ticket.task)
    for given in (ticket.task, ticket.task[4:], ticket.run, ticket.run[4:], ticket.task[:-1]):
        assert ledger.whom(given) == task
    for given in (agent, agent[4:], "s-1", "solo"):
        assert ledger.whom(given) == ("agent", agent)
    for given in ("tsk_zzz", "zzz", "nobody at all", "s-2", "run_zzz", "../s-1"):
        with pytest.raises(NotFound):
            ledger.whom(given)
    with pytest.raises(InvalidInput):
        ledger.whom("")


@pytest.mark.criterion("G21")
def test_a_name_that_several_have_is_ambiguous_as_long_as_several_live(ledger: Ledger) -> None:
    first, second = (
        ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id for _ in range(2)
    )
    with pytest.raises(Ambiguous) as refused:
        ledger.whom("coder")
    assert set(refused.value.allowed) == {first, second}
    with pytest.raises(Ambiguous):
        ledger.whom("1m" if first[4:6] == "1m" else first[4:6])
    ledger.terminate_agent(first, actor=OPERATOR)
    assert ledger.whom("coder") == ("agent", second)


@pytest.mark.criterion("G29", "G10")
@pytest.mark.parametrize("status", list(TaskStatus))
def test_a_rehearsal_says_the_same_and_leaves_no_trace(ledger: Ledger, status: TaskStatus) -> None:
    task, _ = brought(ledger, status)
    before, meters = ledger.dossier(task.id), ledger.meters()
    would = ledger.terminate(task.id, actor=OPERATOR, rehearse=True)
    assert ledger.dossier(task.id) == before
    assert ledger.meters() == meters
    assert ledger.terminate(task.id, actor=OPERATOR) == would


@pytest.mark.criterion("G29", "G23")
def test_an_agents_end_can_be_rehearsed_by_those_who_may_bring_it_about(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent)
    would = ledger.terminate_agent(agent, actor=OPERATOR, rehearse=True)
    assert (would.runs, would.tasks) == ((ticket.run,), (ticket.task,))
    ledger.heartbeat(ticket)
    with pytest.raises(Forbidden):
        ledger.terminate_agent(agent, actor=LEAD, rehearse=True)
    assert ledger.terminate_agent(agent, actor=OPERATOR) == would


@pytest.mark.criterion("G22", "G02", "G10")
def test_agents_at_nothing_are_ended_in_heaps_and_those_at_a_run_are_not(ledger: Ledger) -> None:
    busy = ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=busy)
    idle = [ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id for _ in range(5)]
    armed = ledger.arm(idle[0], actor=OPERATOR)
    assert ledger.terminate_idle_agents(actor=OPERATOR, limit=3) == idle[:3]
    assert ledger.terminate_idle_agents(actor=OPERATOR, limit=3) == idle[3:]
    assert ledger.terminate_idle_agents(actor=OPERATOR) == []
    assert {ledger.agent(agent).status for agent in idle} == {AgentStatus.TERMINATED}
    assert ledger.agent(busy).status is AgentStatus.IN_PROGRESS
    assert [(w.id, w.state) for w in ledger.wakes(idle[0])] == [(armed.id, "void")]
    assert ledger.meters()["terminate_called", "pending"] == 5
    ledger.heartbeat(ticket)
    for actor in (LEAD, Actor(Role.AGENT, "x", ticket.run, ticket.fence)):
        with pytest.raises(Forbidden):
            ledger.terminate_idle_agents(actor=actor)


@pytest.mark.criterion("G15", "G18")
def test_who_had_a_run_is_known_after_its_lease_is_gone(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent)
    ledger.heartbeat(ticket, process={"boot": "b", "pid": 1, "start": 2})
    ledger.terminate(ticket.task, actor=OPERATOR)
    assert ledger.owned("") == []
    (held,) = ledger.held(task=ticket.task)
    assert (held.run, held.task, held.holder) == (ticket.run, ticket.task, "test")
    assert json.loads(held.process) == {"boot": "b", "pid": 1, "start": 2}
    assert (held.was_live, held.is_over) == (True, False)
    assert ledger.held(agents=[agent]) == [held]
    at = ledger.task(ticket.task).sealed_at
    assert at
    assert (ledger.held_since(at), ledger.held_since(at + 1)) == ([held], [])
    ledger.tell(ticket, {}, processes=Processes.UNCONFIRMED)
    (held,) = ledger.held(task=ticket.task)
    assert (held.is_over, held.doubtful) == (True, True)


@pytest.mark.criterion("G21")
def test_unknown_is_not_terminated(ledger: Ledger) -> None:
    with pytest.raises(NotFound):
        ledger.terminate("tsk_nowhere", actor=OPERATOR)
    with pytest.raises(NotFound):
        ledger.terminate_agent("agt_nobody", actor=OPERATOR)
    with pytest.raises(NotFound):
        ledger.cancel("tsk_nowhere", actor=OPERATOR)


@pytest.mark.criterion("G19")
def test_a_terminated_conversation_does_not_come_back_under_a_new_id(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", session="s-1", actor=OPERATOR).id
    ledger.terminate_agent(agent, actor=OPERATOR)
    with pytest.raises(Terminated):
        ledger.register_agent("coder", "sha256:1", session="s-1", actor=OPERATOR)


@pytest.mark.criterion("G23", "O01", "O03")
@pytest.mark.parametrize("role", [Role.AGENT, Role.JUDGE, Role.VIEWER])
def test_who_may_not_end_others_ends_nobody(ledger: Ledger, role: Role) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent)
    before = ledger.task(ticket.task)
    actor = Actor(role, "x", ticket.run, ticket.fence)
    for attempt in (
        lambda: ledger.terminate(ticket.task, actor=actor),
        lambda: ledger.terminate_agent(agent, actor=actor),
        lambda: ledger.cancel(ticket.task, actor=actor),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert ledger.task(ticket.task) == before
    ledger.heartbeat(ticket)


@pytest.mark.criterion("G23", "O01")
def test_a_lead_ends_its_own_tree_only(ledger: Ledger) -> None:
    mine = ledger.open(contract(), actor=LEAD)
    below = ledger.open(contract(), actor=OPERATOR, parent=mine.id)
    foreign = opened(ledger)
    for verb in (ledger.cancel, ledger.terminate):
        with pytest.raises(Forbidden):
            verb(foreign.id, actor=LEAD)
    assert ledger.task(foreign.id) == foreign
    running = started(ledger, below.id)
    ledger.cancel(below.id, actor=LEAD)
    assert ledger.run(running.run)[0].ended_by is EndedBy.LEAD
    ledger.terminate(mine.id, actor=LEAD)


def test_terminating_takes_the_review_along(ledger: Ledger) -> None:
    ticket = started(ledger, role="coder", qa=QaTerms(roles=("coder",)))
    declared(ledger, ticket)
    task = judged(ledger, ticket, Outcome.PASSED)
    qa = next(t for t in ledger.page().tasks if t.qa_of_key == task.key)
    review = ledger.start(qa.id, Start("qa"))
    answer = ledger.terminate(task.id, actor=OPERATOR)
    assert answer.runs == (review.run,)
    assert ledger.task(qa.id).status is S.TERMINATED
    with pytest.raises(Terminated):
        ledger.heartbeat(review)


@pytest.mark.criterion("G25", "M05")
def test_a_start_has_one_terminal_event(ledger: Ledger) -> None:
    terminal = {S.SUCCEEDED, S.FAILED, S.CANCELED, S.TERMINATED, S.BLOCKED}
    for status in terminal:
        task, _ = brought(ledger, status)
        for verb in (ledger.terminate, ledger.terminate):
            verb(task.id, actor=OPERATOR)
        moves = [e.to_status for e in events(ledger, task.id) if e.to_status in terminal]
        assert len(moves) == (2 if status is S.BLOCKED else 1)
