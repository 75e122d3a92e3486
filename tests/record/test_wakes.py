"""Wake-ups, deliveries, what lives inside of a conversation, and who is about to do what."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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
from truegreen.contract import Budget, read_contract
from truegreen.errors import (
    Forbidden,
    Frozen,
    InvalidInput,
    KeyReused,
    NotFound,
    NotRunning,
    Refused,
    Stale,
    Terminated,
)
from truegreen.facts import AgentKind, Child, WakeCause, WakeState
from truegreen.model import AgentStatus, ExitDetail, Outcome, TaskStatus
from truegreen.record.holds import Hold
from truegreen.record.ledger import Ledger, Start
from truegreen.record.ledger.dispatch import Due
from truegreen.record.rows import Agent, Task, Wake

K = AgentKind
LEFT = {
    S.SUCCEEDED: Outcome.PASSED,
    S.NEEDS_REVIEW: Outcome.INCONCLUSIVE,
    S.FAILED: Outcome.FAILED,
}


def worked(ledger: Ledger, left: TaskStatus = S.SUCCEEDED, **terms: Any) -> tuple[Agent, Task]:
    """An agent that has left its task in a status."""
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session="s-1")
    if left is S.FAILED:
        terms.setdefault("budget", Budget(attempts=1))
    ticket = started(ledger, agent_id=agent.id, **terms)
    if left in LEFT:
        declared(ledger, ticket)
        judged(ledger, ticket, LEFT[left])
    elif left is S.BLOCKED:
        ledger.end_run(ticket, ended(ExitDetail.REFUSED))
    elif left is S.QUEUED:
        ledger.end_run(ticket, ended(ExitDetail.SIGNALED))
    else:
        ledger.cancel(ticket.task, actor=OPERATOR)
    task = ledger.task(ticket.task)
    assert task.status is left
    return ledger.agent(agent.id), task


def armed(ledger: Ledger, agent: Agent, body: str = "go on", **more: Any) -> Wake:
    return ledger.arm(agent.id, body, actor=OPERATOR, **more)


def fired(ledger: Ledger, agent: Agent, wake: Wake) -> Any:
    task = ledger.wake(wake.id)
    return ledger.start(task.id, Start("test", agent=agent.id, wake=wake.id))


@pytest.mark.parametrize(
    "left", [S.QUEUED, S.BLOCKED, S.NEEDS_REVIEW, S.FAILED, S.CANCELED, S.SUCCEEDED]
)
def test_the_task_that_was_left_goes_on_and_one_that_succeeded_is_followed(
    ledger: Ledger, left: TaskStatus
) -> None:
    agent, before = worked(ledger, left)
    wake = armed(ledger, agent, "one more\nthing")
    assert [w.id for w in ledger.due()] == [wake.id]
    task = ledger.wake(wake.id)
    assert task.status is S.QUEUED
    assert ledger.due() == []
    woken = ledger.waking(task.id)
    assert woken is not None
    assert (woken.agent, woken.session, woken.wake.body) == (agent.id, "s-1", "one more\nthing")
    if left is S.SUCCEEDED:
        assert ledger.task(before.id) == before
        terms = read_contract(ledger.dossier(task.id).contract)
        assert (task.parent_key, terms.goal) == (before.key, "one more\nthing")
        assert task.title == "fix the parser · one more thing"
        assert terms.gates == read_contract(ledger.dossier(before.id).contract).gates
    else:
        assert task.id == before.id
    ticket = ledger.start(task.id, Start("test", agent=agent.id, wake=wake.id))
    (now,) = ledger.wakes(agent.id)
    assert (now.state, now.run_id) == (WakeState.FIRED, ticket.run)
    assert ledger.waking(task.id) is None


def test_a_wake_up_is_used_once_however_many_try(ledger: Ledger) -> None:
    agent, _ = worked(ledger)
    wake = armed(ledger, agent)

    def attempt(_: int) -> str:
        try:
            return ledger.wake(wake.id).id
        except Refused as refused:
            return refused.code

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(attempt, range(12)))
    assert sum(answer.startswith("tsk_") for answer in answers) == 1
    assert len(ledger.page().tasks) == 2


def test_an_agent_is_woken_by_one_at_a_time(ledger: Ledger) -> None:
    agent, _ = worked(ledger)
    first, second = armed(ledger, agent), armed(ledger, agent, "again")
    ticket = fired(ledger, agent, first)
    assert ledger.due() == []
    with pytest.raises(Stale, match="another run"):
        ledger.wake(second.id)
    declared(ledger, ticket)
    assert ledger.due() == []  # its work is being checked
    judged(ledger, ticket, Outcome.PASSED)
    assert [w.id for w in ledger.due()] == [second.id]
    ledger.wake(second.id)
    third = armed(ledger, agent, "once more")
    assert ledger.due() == []
    with pytest.raises(Stale, match="about to be woken"):
        ledger.wake(third.id)


def test_nobody_else_can_be_given_the_task_that_is_to_wake_an_agent(ledger: Ledger) -> None:
    agent, _ = worked(ledger)
    other = ledger.register_agent("other", "sha256:2", actor=OPERATOR)
    wake = armed(ledger, agent)
    task = ledger.wake(wake.id)
    for start in (Start("x"), Start("x", agent=other.id), Start("x", agent=other.id, wake=wake.id)):
        with pytest.raises(Stale):
            ledger.start(task.id, start)
    assert ledger.task(task.id).status is S.QUEUED
    assert ledger.agent(other.id).status is AgentStatus.PENDING


@pytest.mark.criterion("G02", "G03", "G07")
@pytest.mark.parametrize("state", [WakeState.ARMED, WakeState.READY])
def test_terminate_makes_every_wake_up_void(ledger: Ledger, state: WakeState) -> None:
    agent, _ = worked(ledger)
    wake = armed(ledger, agent)
    task = ledger.wake(wake.id) if state is WakeState.READY else None
    ledger.terminate_agent(agent.id, actor=OPERATOR)
    (now,) = ledger.wakes(agent.id)
    assert (now.state, now.run_id) == (WakeState.VOID, "")
    if task:
        assert ledger.task(task.id).status is S.TERMINATED
        with pytest.raises(Refused):
            ledger.start(task.id, Start("x", agent=agent.id, wake=wake.id))
    with pytest.raises(Terminated):
        ledger.wake(wake.id)
    with pytest.raises(Terminated):
        armed(ledger, agent)
    assert ledger.due() == []


def test_a_wake_up_that_leads_nowhere_is_called_off_and_says_why(ledger: Ledger) -> None:
    agent, _ = worked(ledger)
    wake = armed(ledger, agent)
    assert ledger.call_off(wake.id, "gone").why == "gone"
    assert ledger.call_off(wake.id, "again").why == "gone"
    assert ledger.due() == []
    with pytest.raises(Stale):
        ledger.wake(wake.id)
    ready = armed(ledger, agent)
    ledger.wake(ready.id)
    with pytest.raises(Refused):
        ledger.call_off(ready.id, "too late")
    with pytest.raises(NotFound):
        ledger.call_off("wak_nothing", "gone")


def test_who_never_worked_is_not_due_and_can_not_be_woken(ledger: Ledger) -> None:
    agent = ledger.register_agent("new", "sha256:1", actor=OPERATOR)
    wake = armed(ledger, agent)
    assert ledger.due() == []
    with pytest.raises(NotRunning, match="not worked"):
        ledger.wake(wake.id)
    assert ledger.last_work(agent.id) is None


def test_a_wake_up_for_later_is_not_due(ledger: Ledger) -> None:
    agent, _ = worked(ledger)
    wake = armed(ledger, agent, cause=WakeCause.SCHEDULE, after_seconds=600)
    assert ledger.due() == []
    with pytest.raises(Stale, match="not due"):
        ledger.wake(wake.id)
    for seconds in (-1, float("nan"), 1e12):
        with pytest.raises(InvalidInput):
            armed(ledger, agent, after_seconds=seconds)


# -- messages --------------------------------------------------------------------------------------


@pytest.mark.criterion("K10", "K12")
def test_a_message_is_given_once_and_in_order(ledger: Ledger) -> None:
    agent, _ = worked(ledger)
    sent = [ledger.send(agent.id, f"m{n}", actor=OPERATOR).id for n in range(3)]
    ticket = fired(ledger, agent, armed(ledger, agent))
    assert ledger.unread(ticket.run) == 3
    with ThreadPoolExecutor(4) as pool:
        given = list(pool.map(lambda _: ledger.deliver(ticket), range(8)))
    assert [[m.id for m in each] for each in given if each] == [sent]
    assert ledger.unread(ticket.run) == 0
    late = ledger.send(agent.id, "late", actor=OPERATOR)
    assert [m.id for m in ledger.deliver(ticket, actor=agent_of(ticket))] == [late.id]
    declared(ledger, ticket)
    ledger.send(agent.id, "too late", actor=OPERATOR)
    assert ledger.deliver(ticket) == []
    assert ledger.at_hand([agent])[agent.key].unread == 1


def test_a_run_is_given_nothing_under_another_fence(ledger: Ledger) -> None:
    agent, _ = worked(ledger)
    ledger.send(agent.id, "hello", actor=OPERATOR)
    ticket = fired(ledger, agent, armed(ledger, agent))
    ledger.terminate(ticket.task, actor=OPERATOR)
    with pytest.raises(Refused):
        ledger.deliver(ticket)
    assert ledger.unread(ticket.run) == 1


# -- what lives inside -----------------------------------------------------------------------------


@pytest.mark.criterion("G17")
def test_children_are_known_by_parent_kind_and_name(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR)
    ticket = started(ledger, agent_id=agent.id)
    both = [Child(K.SUBAGENT, "a1", "sub job"), Child(K.CRON, "a1", "* * * * *")]
    first = ledger.converse(ticket, session="s-9", children=both)
    again = ledger.converse(ticket, session="s-9", children=both)
    assert [a.id for a in first] == [a.id for a in again]
    assert [a.kind for a in first] == [K.SUBAGENT, K.CRON]
    assert {a.parent_key for a in first} == {agent.key}
    assert ledger.agent(agent.id).session == "s-9"
    (over,) = ledger.converse(ticket, children=[Child(K.SUBAGENT, "a1", over=True)])
    assert (over.status, over.name) == (AgentStatus.COMPLETED, "sub job")
    (woken,) = ledger.converse(ticket, children=[Child(K.SUBAGENT, "a1")])
    assert woken.status is AgentStatus.IN_PROGRESS
    for child in (Child(K.AGENT, "x"), Child(K.SUBAGENT, "")):
        with pytest.raises(InvalidInput):
            ledger.converse(ticket, children=[child])
    with pytest.raises(Forbidden):
        ledger.arm(first[0].id, "wake", actor=OPERATOR)
    assert ledger.at_hand([first[0]])[first[0].key].parent == agent.id
    assert {a.id for a in ledger.dossier(ticket.task).agents} >= {a.id for a in first}


@pytest.mark.criterion("G17", "G19")
def test_children_go_with_their_parent_and_a_late_one_inherits(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR)
    ticket = started(ledger, agent_id=agent.id)
    (early,) = ledger.converse(ticket, session="s-9", children=[Child(K.SUBAGENT, "a1")])
    gone = ledger.terminate(ticket.task, actor=OPERATOR)
    assert set(gone.agents) == {agent.id, early.id}
    (same,) = ledger.converse(ticket, children=[Child(K.SUBAGENT, "a1")])
    (late,) = ledger.converse(ticket, children=[Child(K.BACKGROUND, "b1")])
    assert (same.id, same.status) == (early.id, AgentStatus.TERMINATED)
    assert (late.status, late.terminated_at is not None) == (AgentStatus.TERMINATED, True)
    for who in (agent.id, early.id, late.id):
        with pytest.raises(Terminated):
            ledger.send(who, "hello", actor=OPERATOR)


@pytest.mark.criterion("G19")
def test_the_conversation_of_a_terminated_agent_is_nobodys(ledger: Ledger) -> None:
    agent, _ = worked(ledger)
    ledger.terminate_agent(agent.id, actor=OPERATOR)
    clone = ledger.register_agent("clone", "sha256:1", actor=OPERATOR)
    ticket = started(ledger, agent_id=clone.id)
    with pytest.raises(Terminated, match=agent.id):
        ledger.converse(ticket, session="s-1")
    assert ledger.agent(clone.id).session is None


# -- who is about to do what -----------------------------------------------------------------------


@pytest.mark.criterion("K07")
def test_a_task_is_reserved_by_one(ledger: Ledger) -> None:
    task = opened(ledger)
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(lambda n: ledger.reserve(task.id, f"holder-{n}"), range(8)))
    assert sum(won) == 1
    assert ledger.dispatchable() == []
    assert ledger.reserve(task.id, "mine", take=True)
    assert ledger.reservations("min") == [(task.id, "mine")]
    ledger.release(task.id, "other")
    assert ledger.dispatchable() == []
    ledger.release(task.id, "mine")
    assert [due.task for due in ledger.dispatchable()] == [task.id]
    assert not ledger.reserve("tsk_nowhere", "mine")


@pytest.mark.criterion("K07", "H01")
def test_of_many_who_take_what_is_due_each_gets_what_nobody_else_has(ledger: Ledger) -> None:
    tasks = {opened(ledger).id for _ in range(12)}
    with ThreadPoolExecutor(4) as pool:
        took = list(pool.map(lambda n: ledger.take_due(f"holder-{n}", list), range(8)))
    assert sorted(due.task for each in took for due in each) == sorted(tasks)
    assert ledger.take_due("late", list) == []
    assert {task for task, _ in ledger.reservations("holder-")} == tasks


@pytest.mark.criterion("K07")
def test_what_another_one_reserved_between_the_look_and_the_taking_is_not_taken(
    ledger: Ledger,
) -> None:
    lost, free = opened(ledger, priority=1).id, opened(ledger).id
    seen: list[Due] = []

    def overtaken(found: list[Due]) -> list[Due]:
        if not seen:
            seen.extend(found)
            assert ledger.reserve(lost, "quicker")
        return seen

    assert [due.task for due in ledger.take_due("mine", overtaken)] == [free]
    assert ledger.reservations("quicker") == [(lost, "quicker")]


@pytest.mark.criterion("K09")
def test_only_what_is_chosen_of_what_is_due_is_taken_and_nothing_while_all_is_frozen(
    ledger: Ledger,
) -> None:
    first, second = opened(ledger, priority=1).id, opened(ledger).id
    assert [due.task for due in ledger.take_due("mine", lambda due: due[:1])] == [first]
    assert [due.task for due in ledger.dispatchable()] == [second]
    ledger.freeze(actor=OPERATOR, reason="night")
    assert ledger.take_due("mine", list) == []


def test_what_is_opened_or_woken_for_somebody_is_reserved_from_its_first_moment(
    ledger: Ledger,
) -> None:
    agent, _ = worked(ledger)
    ledger.open(contract(), actor=OPERATOR, holder="mine")
    ledger.wake(armed(ledger, agent).id, holder="mine")
    assert ledger.dispatchable() == []
    assert len(ledger.reservations("mine")) == 2


def test_what_could_start_is_in_the_order_of_urgency(ledger: Ledger) -> None:
    ids = {n: opened(ledger, priority=n).id for n in (0, 7, -7)}
    brought(ledger, S.RUNNING)
    sealed = opened(ledger, priority=9)
    ledger.terminate(sealed.id, actor=OPERATOR)
    opened(ledger, priority=8, depends_on=(ids[0],))
    found = ledger.dispatchable()
    assert [due.task for due in found] == [ids[7], ids[0], ids[-7]]
    assert [due.chain for due in found] == [None] * 3
    assert len(ledger.dispatchable(limit=1)) == 1


def test_a_review_comes_with_the_task_that_it_is_about(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.PENDING_QA)
    (review,) = ledger.reviews_of(task.id)
    assert [(due.task, due.chain) for due in ledger.dispatchable()] == [(review.id, task.id)]
    ledger.reserve(task.id, "its own supervisor")
    assert ledger.dispatchable() == []


@pytest.mark.criterion("G13")
def test_the_life_of_an_agent_can_be_followed_in_the_events(ledger: Ledger) -> None:
    agent, _ = worked(ledger)
    ledger.send(agent.id, "hello", actor=OPERATOR)
    off = armed(ledger, agent)
    ledger.call_off(off.id, "not needed")
    ticket = fired(ledger, agent, armed(ledger, agent))
    (child,) = ledger.converse(ticket, children=[Child(K.SUBAGENT, "a1")])
    ledger.terminate_agent(agent.id, actor=OPERATOR)
    told = [json.loads(each.event.data) for each in ledger.house_events()]
    words = [
        word for data in told for word in ("registered", "armed", "called_off") if word in data
    ]
    assert words == ["registered", "armed", "called_off", "armed", "registered"]
    assert set(told[-1]["terminated"]) == {agent.id, child.id}
    assert len(ledger.feed()) > len(told)


# -- stop and cancel --------------------------------------------------------------------------


def states(ledger: Ledger, agent: Agent) -> list[tuple[WakeState, str]]:
    return [(wake.state, wake.why) for wake in ledger.wakes(agent.id)]


@pytest.mark.parametrize("verb", ["stop", "cancel"])
def test_what_ends_a_task_calls_off_what_was_to_wake_its_agent(ledger: Ledger, verb: str) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session="s-1")
    ticket = started(ledger, agent_id=agent.id)
    armed(ledger, agent)
    armed(ledger, agent, after_seconds=900)
    ends = ledger.ask_stop if verb == "stop" else ledger.cancel
    after = ends(ticket.task, actor=OPERATOR, reason="enough")
    assert states(ledger, agent) == [(WakeState.VOID, f"stopped by {OPERATOR}: enough")] * 2
    (told,) = ledger.events(ticket.task, after=after.revision - 1)
    assert json.loads(told.event.data)["wakes_called_off"] == 2
    if verb == "stop":
        assert told.event.run_id == ticket.run
        ledger.end_run(ticket, ended(ExitDetail.STOPPED))
    assert ledger.task(ticket.task).status is S.CANCELED
    assert ledger.due() == []
    # A new wish is a new wish; to cancel once more is one, too.
    again = armed(ledger, agent)
    assert [wake.id for wake in ledger.due()] == [again.id]
    ledger.cancel(ticket.task, actor=OPERATOR)
    assert ledger.due() == []
    assert ledger.cancel(ticket.task, actor=OPERATOR) == ledger.task(ticket.task)


def test_a_task_that_was_queued_to_wake_somebody_is_called_off_whole(ledger: Ledger) -> None:
    agent, before = worked(ledger, S.BLOCKED)
    task = ledger.wake(armed(ledger, agent).id)
    later = armed(ledger, agent)
    after = ledger.cancel(task.id, actor=OPERATOR)
    assert [state for state, _ in states(ledger, agent)] == [WakeState.VOID] * 2
    (told,) = ledger.events(before.id, after=after.revision - 1)
    assert json.loads(told.event.data)["wakes_called_off"] == 2
    with pytest.raises(Stale):
        ledger.wake(later.id)


def test_an_agent_that_went_on_to_another_task_keeps_its_wake_ups(ledger: Ledger) -> None:
    agent, first = worked(ledger, S.BLOCKED)
    ledger.start(opened(ledger).id, Start("test", agent=agent.id))
    armed(ledger, agent)
    ledger.cancel(first.id, actor=OPERATOR)
    assert [state for state, _ in states(ledger, agent)] == [WakeState.ARMED]


# -- what is told -----------------------------------------------------------------------------


def test_no_more_messages_are_given_than_there_is_room_for(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session="s-1")
    ticket = started(ledger, agent_id=agent.id)
    sent = [ledger.send(agent.id, f"{n}" * 60_000, actor=OPERATOR).id for n in range(3)]
    assert [m.id for m in ledger.waiting(ticket.run)] == sent[:1]
    assert ledger.unread(ticket.run) == 3
    assert ledger.waiting(ticket.run, room=50_000) == []
    assert [m.id for m in ledger.deliver(ticket)] == sent[:1]
    assert [m.id for m in ledger.deliver(ticket, only=sent[2:])] == sent[2:]
    assert [m.id for m in ledger.deliver(ticket)] == sent[1:2]
    assert ledger.unread(ticket.run) == 0


def test_follow_ups_are_called_after_the_first_task(ledger: Ledger) -> None:
    agent, task = worked(ledger, title="fix · the parser")
    for words in ("one\nmore", "", "two", "two"):
        wake = armed(ledger, agent, words)
        ticket = fired(ledger, agent, wake)
        declared(ledger, ticket)
        judged(ledger, ticket, Outcome.PASSED)
        follow = ledger.task(ticket.task)
        assert follow.id != task.id
        assert follow.title == f"fix · the parser · {' '.join(words.split()) or 'goes on'}"


def test_what_a_task_was_queued_with_is_known_whether_it_was_used_or_not(ledger: Ledger) -> None:
    agent, before = worked(ledger)
    assert ledger.told(before) == ([], [])
    message = ledger.send(agent.id, "mind the gap", actor=OPERATOR)
    wake = armed(ledger, agent, "once more")
    ticket = fired(ledger, agent, wake)
    ledger.deliver(ticket)
    told = ledger.told(ledger.task(ticket.task))
    assert ([w.id for w in told.wakes], [m.id for m in told.messages]) == ([wake.id], [message.id])
    assert ledger.told(before) == ([], [])
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.PASSED)
    void = armed(ledger, agent, "not any more")
    task = ledger.wake(void.id)
    ledger.cancel(task.id, actor=OPERATOR)
    assert [w.id for w in ledger.told(task).wakes] == [void.id]


def test_who_would_begin_while_all_is_frozen_is_told_how_to_go_on(ledger: Ledger) -> None:
    ledger.check_thawed()
    ledger.freeze(actor=OPERATOR, reason="stop")
    with pytest.raises(Frozen, match="thaw --reason") as refused:
        ledger.check_thawed()
    assert refused.value.allowed == ("thaw",)
    with pytest.raises(Frozen, match="thaw --reason"):
        started(ledger)


# -- what waits for others --------------------------------------------------------------------


def test_what_a_queued_task_waits_for_is_said_with_how_it_stands(ledger: Ledger) -> None:
    done, failed = brought(ledger, S.SUCCEEDED)[0], brought(ledger, S.FAILED)[0]
    other = opened(ledger)
    ids = (done.id, failed.id, other.id, "tsk_nowhere")
    task = opened(ledger, depends_on=ids)
    needs = ledger.dossier(task.id).needs
    assert needs == [(failed.id, S.FAILED), (other.id, S.QUEUED), ("tsk_nowhere", None)]
    assert [need.is_lost for need in needs] == [True, False, True]
    assert ledger.needs([task, other, done]) == {task.key: needs}
    assert ledger.dossier(other.id).needs == []
    assert ledger.held_back().counts == {Hold.DEPENDS_ON: 1}


# -- the same wake-up again ----------------------------------------------------------------------


@pytest.mark.criterion("C11")
def test_the_same_wake_up_under_one_key_is_armed_once_whatever_has_become_of_it(
    ledger: Ledger,
) -> None:
    agent, _ = worked(ledger)
    first = armed(ledger, agent, key="k")
    assert armed(ledger, agent, key="k") == ledger.armed("k") == first
    fired(ledger, agent, first)
    again = armed(ledger, agent, key="k")
    assert (again.id, again.state) == (first.id, WakeState.FIRED)
    ledger.terminate_agent(agent.id, actor=OPERATOR)
    assert armed(ledger, agent, key="k").id == first.id
    with pytest.raises(Terminated):
        armed(ledger, agent, key="another")
    assert [wake.id for wake in ledger.wakes(agent.id)] == [first.id]
    assert ledger.armed("another") is None


@pytest.mark.criterion("C11")
def test_a_key_that_was_used_for_something_else_arms_nothing(ledger: Ledger) -> None:
    agent, task = worked(ledger, S.FAILED)
    other, _ = worked(ledger)
    armed(ledger, agent, key="k")
    for who, body, later in ((other, "go on", 0), (agent, "else", 0), (agent, "go on", 60)):
        with pytest.raises(KeyReused):
            armed(ledger, who, body, key="k", after_seconds=later)
    ledger.retry(task.id, actor=OPERATOR, reason="again", key="r")
    for verb in (lambda: armed(ledger, agent, key="r"), lambda: ledger.armed("r")):
        with pytest.raises(KeyReused):
            verb()
    for key in ("", "x" * 201, "a\0b"):
        with pytest.raises(InvalidInput):
            armed(ledger, agent, key=key)
    assert (len(ledger.wakes(agent.id)), ledger.wakes(other.id)) == (1, [])


def test_many_who_arm_under_one_key_at_once_arm_one_wake_up(ledger: Ledger) -> None:
    agent, _ = worked(ledger)
    with ThreadPoolExecutor(8) as crowd:
        found = {wake.id for wake in crowd.map(lambda _: armed(ledger, agent, key="k"), range(16))}
    assert len(found) == len(ledger.wakes(agent.id)) == 1


# -- a lead's own tree ---------------------------------------------------------------------------


@pytest.mark.criterion("O01")
def test_a_lead_writes_to_and_wakes_whom_it_has_at_work_and_nobody_else(ledger: Ledger) -> None:
    foreign, _ = worked(ledger)
    registered = ledger.register_agent("mine", "sha256:1", actor=LEAD)
    child = ledger.register_agent("child", "sha256:1", actor=OPERATOR, parent=registered.id)
    employed = ledger.register_agent("hired", "sha256:1", actor=OPERATOR)
    started(ledger, ledger.open(contract(), actor=LEAD).id, agent_id=employed.id)
    for verb in (
        lambda agent: ledger.send(agent, "hi", actor=LEAD),
        lambda agent: ledger.send(agent, "hi", actor=LEAD, wake=True),
        lambda agent: ledger.arm(agent, "hi", actor=LEAD),
    ):
        for own in (registered, child, employed):
            assert verb(own.id).agent_key == own.key
        with pytest.raises(Forbidden, match="its own tree"):
            verb(foreign.id)
    assert (ledger.messages(foreign.id), ledger.wakes(foreign.id)) == ([], [])
    assert ledger.agent(foreign.id) == foreign  # and it may read


@pytest.mark.criterion("O01")
def test_a_lead_learns_nothing_of_anothers_message_by_its_key(ledger: Ledger) -> None:
    foreign, _ = worked(ledger)
    ledger.send(foreign.id, "secret", actor=OPERATOR, key="k")
    with pytest.raises(Forbidden):
        ledger.send(foreign.id, "secret", actor=LEAD, key="k")


def test_what_a_stream_tells_of_a_child_is_printable_and_ends_no_run(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR)
    ticket = started(ledger, agent_id=agent.id)
    told = Child(K.SUBAGENT, "s-2", "tidy\x1b[2J \u202eup")
    (child,) = ledger.converse(ticket, children=[told])
    assert child.name == "tidy?[2J ?up"
