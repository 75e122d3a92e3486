"""What a queued task waits for beside other tasks: messages, a person's word, files, times."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.record.lives import LEAD, OPERATOR, S, agent_of, brought, opened, started
from truegreen.contract.waits import WaitKind
from truegreen.errors import (
    CircularWait,
    Forbidden,
    Held,
    InvalidInput,
    KeyReused,
    NotFound,
    NotRunning,
    Refused,
    Stale,
    Terminated,
)
from truegreen.facts import Actor
from truegreen.model import EventLevel, InboxState, Role, TaskStatus
from truegreen.record.holds import Hold
from truegreen.record.ids import new_id
from truegreen.record.ledger import Ledger, Start, tasks

WAITS = ("message:built", "human:deploy it?", "file:/tmp/out.csv")


def last_event(ledger: Ledger, task: str) -> tuple[str, str, dict[str, Any]]:
    event = ledger.events(task)[-1].event
    return event.actor, event.reason, json.loads(event.data)


def waits_of(ledger: Ledger, task: str) -> list[str]:
    """What a task still waits for."""
    return [str(each.wait) for each in ledger.conditions(task) if each.met_at is None]


# -- held back


@pytest.mark.criterion("K13")
@pytest.mark.parametrize("wait", WAITS)
def test_what_has_not_happened_keeps_a_task_from_everybody_who_starts(
    ledger: Ledger, wait: str
) -> None:
    task = opened(ledger, wait_for=(wait,))
    found = ledger.why(task.id)
    assert found.hold is Hold.WAITS
    assert [str(each.wait) for each in found.conditions] == [wait]
    assert ledger.dispatchable() == []
    assert ledger.claim_next(Start("x")) == []
    assert ledger.holds([task]) == {task.key: Hold.WAITS}
    with pytest.raises(Held, match="truegreen why"):
        ledger.start(task.id, Start("x"))
    assert ledger.task(task.id).status is S.QUEUED


@pytest.mark.criterion("K13")
def test_a_task_starts_when_all_that_it_waits_for_has_happened(ledger: Ledger) -> None:
    task = opened(ledger, wait_for=WAITS)
    ledger.announce("built", actor=OPERATOR)
    ledger.approve(task.id, actor=OPERATOR)
    assert ledger.why(task.id).hold is Hold.WAITS
    (file,) = ledger.awaited_files("here")
    ledger.see_file(file.condition.id, host="here", size=3, changed_at=7)
    assert ledger.why(task.id).hold is None
    assert ledger.claim_next(Start("x"))[0].task == task.id


@pytest.mark.criterion("K13")
def test_a_time_that_is_waited_for_is_when_a_task_may_start(ledger: Ledger) -> None:
    task = opened(ledger, wait_for=("time:2h",))
    assert task.not_before - task.created_at == 2 * 3600 * 1_000_000
    assert ledger.why(task.id).hold is Hold.NOT_BEFORE
    instant = opened(ledger, wait_for=("time:2999-01-01T00:00:00+01:00",))
    assert instant.not_before == 32472140400 * 1_000_000
    assert ledger.conditions(task.id) == []
    later = ledger.hold(task.id, ["time:3h"], actor=OPERATOR)
    assert later.not_before > task.not_before
    assert ledger.hold(task.id, ["time:1s"], actor=OPERATOR).not_before == later.not_before


@pytest.mark.criterion("K13")
def test_a_task_that_is_waited_for_is_one_that_is_depended_on(ledger: Ledger) -> None:
    needed = opened(ledger)
    task = opened(ledger, wait_for=(f"task:{needed.id}",))
    found = ledger.why(task.id)
    assert (found.hold, [need.task for need in found.needs]) == (Hold.DEPENDS_ON, [needed.id])
    with pytest.raises(InvalidInput, match="frozen"):
        ledger.hold(task.id, [f"task:{needed.id}"], actor=OPERATOR)


# -- messages


@pytest.mark.criterion("K13", "K10", "K11")
def test_a_message_ends_the_waits_that_are_there_and_no_later_one(ledger: Ledger) -> None:
    assert ledger.announce("built", actor=OPERATOR).tasks == ()
    first = opened(ledger, wait_for=("message:built",))
    second = opened(ledger, wait_for=("message:built", "message:signed"))
    other = opened(ledger, wait_for=("message:other",))
    told = ledger.announce("built", "version 7", actor=OPERATOR)
    assert (told.topic, told.tasks) == ("built", (first.id, second.id))
    assert waits_of(ledger, second.id) == ["message:signed"]
    assert ledger.why(other.id).hold is Hold.WAITS
    (met,) = ledger.conditions(first.id)
    assert (met.met_by, met.facts()) == (str(OPERATOR), {"text": "version 7"})
    actor, reason, data = last_event(ledger, first.id)
    assert (actor, reason) == (str(OPERATOR), "version 7")
    assert (data["met"], data["condition"]) == ("message:built", met.id)
    assert ledger.announce("built", actor=OPERATOR).tasks == ()


@pytest.mark.criterion("K13")
def test_the_agent_of_a_run_speaks_for_its_own_task(ledger: Ledger) -> None:
    ticket, stranger = started(ledger), started(ledger)
    task = opened(ledger, wait_for=(f"message:{ticket.task}",))
    agent = agent_of(ticket)
    ledger.announce("built", actor=agent_of(stranger))
    assert ledger.why(task.id).hold is Hold.WAITS
    with pytest.raises(Forbidden, match="its own task"):
        ledger.announce(ticket.task, actor=agent_of(stranger))
    assert ledger.announce("any-topic", "half of it is done", actor=agent).tasks == (task.id,)
    assert ledger.conditions(task.id)[0].met_by == str(agent)
    assert last_event(ledger, ticket.task)[2]["met"] == [task.id]


@pytest.mark.criterion("K13", "D02")
def test_an_agent_whose_run_is_over_ends_no_wait(ledger: Ledger) -> None:
    ticket = started(ledger)
    task = opened(ledger, wait_for=(f"message:{ticket.task}", "message:built"))
    ledger.cancel(ticket.task, actor=OPERATOR)
    with pytest.raises(Refused):
        ledger.announce("built", actor=agent_of(ticket))
    dead = started(ledger)
    ledger.terminate(dead.task, actor=OPERATOR)
    with pytest.raises(Terminated):
        ledger.announce("built", actor=agent_of(dead))
    assert len(waits_of(ledger, task.id)) == 2


@pytest.mark.criterion("K13")
def test_a_person_may_speak_in_the_place_of_a_task(ledger: Ledger) -> None:
    sender = opened(ledger)
    task = opened(ledger, wait_for=(f"message:{sender.id}",))
    assert ledger.announce(sender.id, "by hand", actor=OPERATOR).tasks == (task.id,)
    with pytest.raises(NotFound):
        ledger.announce("tsk_nowhere", actor=OPERATOR)


@pytest.mark.criterion("K13")
def test_a_leads_message_counts_in_its_own_tree(ledger: Ledger) -> None:
    theirs = opened(ledger, wait_for=("message:built",))
    assert ledger.announce("built", actor=LEAD).tasks == ()
    assert ledger.why(theirs.id).hold is Hold.WAITS
    with pytest.raises(Forbidden):
        ledger.hold(theirs.id, ["message:x"], actor=LEAD)


def test_the_same_message_under_the_same_key_is_one(ledger: Ledger) -> None:
    first = opened(ledger, wait_for=("message:built",))
    told = ledger.announce("built", "7", actor=OPERATOR, key="once")
    second = opened(ledger, wait_for=("message:built",))
    assert ledger.announce("built", "7", actor=OPERATOR, key="once") == told
    assert told.tasks == (first.id,)
    assert ledger.why(second.id).hold is Hold.WAITS
    with pytest.raises(KeyReused):
        ledger.announce("built", "8", actor=OPERATOR, key="once")


@pytest.mark.criterion("K13")
def test_of_many_messages_at_once_one_ends_a_wait(ledger: Ledger) -> None:
    task = opened(ledger, wait_for=("message:built",))
    before = ledger.task(task.id).revision
    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda _: ledger.announce("built", actor=OPERATOR), range(6)))
    assert [each.tasks for each in told if each.tasks] == [(task.id,)]
    assert ledger.task(task.id).revision == before + 1


@pytest.mark.parametrize("status", [S.CANCELED, S.TERMINATED])
def test_who_is_not_queued_takes_no_message(ledger: Ledger, status: TaskStatus) -> None:
    task = opened(ledger, wait_for=("message:built",))
    end = ledger.cancel if status is S.CANCELED else ledger.terminate
    end(task.id, actor=OPERATOR)
    assert ledger.announce("built", actor=OPERATOR).tasks == ()
    assert waits_of(ledger, task.id) == ["message:built"]


# -- a person's word


@pytest.mark.criterion("K13")
def test_what_a_person_is_asked_stands_in_the_inbox_until_it_is_answered(ledger: Ledger) -> None:
    task = opened(ledger, wait_for=("human:deploy it?", "human:and tell everybody?"))
    for question in ("and tell everybody?", "deploy it?"):
        (item,) = ledger.inbox()
        assert (item.task, item.item.reason) == (task.id, question)
        assert item.item.next == f"truegreen approve {task.id}"
        assert item.question
        assert (item.question.action, item.question) == (question, ledger.question(task.id))
        ledger.approve(task.id, actor=OPERATOR, question=item.question.id, reason="yes")
    assert ledger.inbox() == []
    assert ledger.why(task.id).hold is None
    assert {each.met_by for each in ledger.conditions(task.id)} == {str(OPERATOR)}
    assert ledger.conditions(task.id)[0].facts() == {"reason": "yes"}


@pytest.mark.criterion("K13")
@pytest.mark.parametrize("role", [Role.AGENT, Role.LEAD, Role.JUDGE, Role.VIEWER, Role.SYSTEM])
def test_nobody_but_a_person_answers_what_a_person_is_asked(ledger: Ledger, role: Role) -> None:
    ticket = started(ledger)
    task = opened(ledger, wait_for=("human",))
    actor = Actor(role, "x", ticket.run, ticket.fence)
    with pytest.raises(Forbidden):
        ledger.approve(task.id, actor=actor)
    with pytest.raises(Forbidden):
        ledger.deny(task.id, actor=actor, reason="no")
    with pytest.raises((Forbidden, InvalidInput)):
        ledger.waive(task.id, "human:may it start?", actor=actor, reason="x")
    assert waits_of(ledger, task.id) == ["human:may it start?"]
    assert ledger.task(task.id).status is S.QUEUED


@pytest.mark.criterion("K13")
def test_a_no_before_the_start_calls_the_task_off_and_a_reopened_one_asks_again(
    ledger: Ledger,
) -> None:
    task = opened(ledger, wait_for=("human:deploy it?",))
    denied = ledger.deny(task.id, actor=OPERATOR, reason="not on a Friday")
    assert denied.status is S.CANCELED
    actor, reason, data = last_event(ledger, task.id)
    assert (actor, reason, data["denied"]) == (str(OPERATOR), "not on a Friday", "deploy it?")
    assert ledger.inbox() == []
    with pytest.raises(Refused):
        ledger.approve(task.id, actor=OPERATOR)
    ledger.retry(task.id, actor=OPERATOR, reason="it is Monday")
    assert ledger.why(task.id).hold is Hold.WAITS
    assert ledger.inbox()[0].item.state is InboxState.OPEN
    ledger.approve(task.id, actor=OPERATOR)
    assert ledger.why(task.id).hold is None


def test_an_answer_to_another_question_is_none(ledger: Ledger) -> None:
    task = opened(ledger, wait_for=("human:deploy it?",))
    for answer in (ledger.approve, ledger.deny):
        with pytest.raises(Stale):
            answer(task.id, actor=OPERATOR, reason="x", question="cnd_other")
    with pytest.raises(NotRunning):
        ledger.approve(opened(ledger).id, actor=OPERATOR)
    assert ledger.why(task.id).hold is Hold.WAITS


def test_a_yes_before_the_start_is_counted_like_any_other(ledger: Ledger) -> None:
    for _ in range(20):
        ledger.approve(opened(ledger, wait_for=("human",)).id, actor=OPERATOR)
    with pytest.raises(Refused, match="within a minute"):
        ledger.approve(opened(ledger, wait_for=("human",)).id, actor=OPERATOR)


# -- files


@pytest.mark.criterion("K13")
def test_a_file_is_seen_where_the_task_would_start_and_nowhere_else(ledger: Ledger) -> None:
    bound = opened(ledger, wait_for=("file:/data/in.csv",), host="blue")
    free = opened(ledger, wait_for=("file:out.csv",), cwd="/srv/x")
    assert [(each.task, each.condition.what) for each in ledger.awaited_files("green")] == [
        (free.id, "/srv/x/out.csv")
    ]
    (first, second) = ledger.awaited_files("blue")
    assert (first.task, second.task) == (bound.id, free.id)
    assert ledger.awaited_files("blue", task=free.id) == [second]
    assert ledger.awaited_files("blue", after=first.condition.key) == [second]
    with pytest.raises(Forbidden, match="blue"):
        ledger.see_file(first.condition.id, host="green", size=1, changed_at=1)
    assert ledger.see_file(first.condition.id, host="blue", size=12, changed_at=34)
    assert not ledger.see_file(first.condition.id, host="blue", size=99, changed_at=99)
    (met,) = ledger.conditions(bound.id)
    assert met.facts() == {"host": "blue", "size": 12, "changed_at": 34}
    assert last_event(ledger, bound.id)[2] == {
        **met.facts(),
        "met": "file:/data/in.csv",
        "condition": met.id,
    }
    with pytest.raises(NotFound):
        ledger.see_file("cnd_nowhere", host="blue", size=1, changed_at=1)


@pytest.mark.parametrize("actor", [OPERATOR, LEAD, Actor(Role.AGENT, "a")])
def test_only_who_would_start_a_task_says_that_its_file_is_there(
    ledger: Ledger, actor: Actor
) -> None:
    opened(ledger, wait_for=("file:/x",))
    (file,) = ledger.awaited_files("here")
    with pytest.raises(Forbidden):
        ledger.see_file(file.condition.id, host="here", size=1, changed_at=1, actor=actor)


def test_a_file_without_a_place_is_refused(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="whole path"):
        opened(ledger, wait_for=("file:x",))


@pytest.mark.criterion("K13")
@pytest.mark.parametrize("wait", ["message:built", "file:/x"])
def test_a_person_lets_a_task_do_without_it_and_is_named(ledger: Ledger, wait: str) -> None:
    task = opened(ledger, wait_for=(wait,))
    with pytest.raises(InvalidInput) as refused:
        ledger.waive(task.id, "message:other", actor=OPERATOR, reason="x")
    assert refused.value.allowed == (wait,)
    ledger.waive(task.id, wait, actor=OPERATOR, reason="done by hand")
    assert ledger.why(task.id).hold is None
    assert ledger.conditions(task.id)[0].facts() == {"waived": "done by hand"}
    event = ledger.events(task.id)[-1].event
    assert (event.level, event.actor) == (EventLevel.WARN, str(OPERATOR))


# -- more to wait for, later


@pytest.mark.criterion("K13")
def test_a_queued_task_can_be_let_wait_for_more(ledger: Ledger) -> None:
    task = opened(ledger)
    ledger.hold(task.id, ["message:built", "human:go?"], actor=OPERATOR, reason="first the build")
    again = ledger.hold(task.id, ["message:built"], actor=OPERATOR)
    assert waits_of(ledger, task.id) == ["human:go?", "message:built"]
    assert again.revision == ledger.task(task.id).revision
    assert ledger.inbox()[0].item.reason == "go?"
    ledger.announce("built", actor=OPERATOR)
    ledger.hold(task.id, ["message:built"], actor=OPERATOR)
    assert waits_of(ledger, task.id) == ["human:go?", "message:built"]


def test_only_a_queued_task_waits(ledger: Ledger) -> None:
    for status in (S.RUNNING, S.SUCCEEDED, S.CANCELED):
        with pytest.raises(NotRunning, match="only a queued task"):
            ledger.hold(brought(ledger, status)[0].id, ["message:x"], actor=OPERATOR)
    with pytest.raises(Terminated):
        ledger.hold(brought(ledger, S.TERMINATED)[0].id, ["message:x"], actor=OPERATOR)
    for nothing in ([], ["hope"], ["message:"], ["time:soon"]):
        with pytest.raises(InvalidInput):
            ledger.hold(opened(ledger).id, nothing, actor=OPERATOR)


@pytest.mark.parametrize("status", [S.SUCCEEDED, S.FAILED, S.CANCELED, S.TERMINATED])
def test_nobody_waits_for_a_message_from_who_says_nothing_more(
    ledger: Ledger, status: TaskStatus
) -> None:
    over, _ = brought(ledger, status)
    with pytest.raises(InvalidInput, match="is over"):
        opened(ledger, wait_for=(f"message:{over.id}",))
    with pytest.raises(NotFound):
        opened(ledger, wait_for=("message:tsk_nowhere",))
    assert ledger.dispatchable() == []


# -- circles


@pytest.mark.criterion("K13")
def test_a_task_that_would_wait_for_itself_is_refused(ledger: Ledger) -> None:
    task = opened(ledger)
    before = ledger.task(task.id)
    with pytest.raises(CircularWait, match=f"{task.id} waits for {task.id}"):
        ledger.hold(task.id, ["message:built", f"message:{task.id}"], actor=OPERATOR)
    assert ledger.task(task.id) == before
    assert ledger.conditions(task.id) == []


@pytest.mark.criterion("K13")
def test_a_circle_of_waits_is_refused_across_kinds_and_however_long(ledger: Ledger) -> None:
    first = opened(ledger)
    second = opened(ledger, depends_on=(first.id,))
    third = opened(ledger, wait_for=(f"message:{second.id}",))
    fourth = opened(ledger, wait_for=(f"task:{third.id}",))
    for last in (second, third, fourth):
        with pytest.raises(CircularWait) as refused:
            ledger.hold(first.id, [f"message:{last.id}"], actor=OPERATOR)
        way = refused.value.details["waits"]
        assert isinstance(way, list)
        assert (way[0], way[1], way[-1]) == (first.id, last.id, first.id)
    ledger.hold(third.id, [f"message:{first.id}"], actor=OPERATOR)
    ledger.waive(fourth.id, third.id, actor=OPERATOR, reason="x")
    ledger.hold(first.id, [f"message:{fourth.id}"], actor=OPERATOR)


@pytest.mark.criterion("K13")
def test_a_circle_is_refused_when_a_task_is_added(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = opened(ledger, depends_on=("tsk_expected",))

    monkeypatch.setattr(
        tasks, "new_id", lambda kind, at: "tsk_expected" if kind == "tsk" else new_id(kind, at)
    )
    with pytest.raises(CircularWait):
        opened(ledger, wait_for=(f"message:{theirs.id}",))
    with pytest.raises(NotFound):
        ledger.task("tsk_expected")


@pytest.mark.criterion("K13")
def test_a_wait_that_is_over_closes_no_circle(ledger: Ledger) -> None:
    first = opened(ledger)
    second = opened(ledger, wait_for=(f"message:{first.id}",))
    ledger.announce(first.id, actor=OPERATOR)
    ledger.hold(first.id, [f"message:{second.id}"], actor=OPERATOR)


@pytest.mark.criterion("K13")
def test_of_two_waits_that_close_a_circle_at_once_one_is_refused(ledger: Ledger) -> None:
    for _ in range(8):
        ring = [opened(ledger) for _ in range(3)]

        def closed(number: int, ring: list[Any] = ring) -> bool:
            other = ring[(number + 1) % len(ring)]
            try:
                ledger.hold(ring[number].id, [f"message:{other.id}"], actor=OPERATOR)
            except CircularWait:
                return True
            return False

        with ThreadPoolExecutor(3) as pool:
            assert sum(pool.map(closed, range(3))) == 1


def test_every_kind_that_is_kept_is_known(ledger: Ledger) -> None:
    task = opened(ledger, wait_for=WAITS)
    kinds = {each.kind for each in ledger.conditions(task.id)}
    assert kinds == {WaitKind.MESSAGE, WaitKind.HUMAN, WaitKind.FILE}
