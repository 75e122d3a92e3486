"""Agents as conversations: registering them, and messages, which are data and wake nobody."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.record.lives import OPERATOR, S, agent_of, brought, declared, ended, opened, started
from truegreen.errors import Forbidden, InvalidInput, KeyReused, NotFound, Terminated
from truegreen.facts import Actor
from truegreen.model import AgentStatus, Disposition, ExitDetail, Note, Role, TaskStatus
from truegreen.record.ledger import Ledger, Start
from truegreen.record.rows import Agent, Message

DATABASES = ("sqlite",)


def registered(ledger: Ledger, status: AgentStatus = AgentStatus.PENDING) -> Agent:
    """An agent in any status, by verbs alone."""
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR)
    if status is AgentStatus.TERMINATED:
        ledger.terminate_agent(agent.id, actor=OPERATOR)
    elif status is not AgentStatus.PENDING:
        ticket = started(ledger, agent_id=agent.id)
        if status is AgentStatus.COMPLETED:
            declared(ledger, ticket)
        elif status is AgentStatus.ERROR:
            ledger.end_run(ticket, ended(ExitDetail.SIGNALED))
    now = ledger.agent(agent.id)
    assert now.status is status
    return now


@pytest.mark.criterion("F38", "C04")
def test_registering_keeps_identity_and_is_written_down(ledger: Ledger) -> None:
    parent = ledger.register_agent("lead", "sha256:0", actor=OPERATOR)
    agent = ledger.register_agent(
        "coder", "sha256:1", actor=OPERATOR, session="s-1", parent=parent.id
    )
    assert agent == ledger.agent(agent.id)
    assert (agent.name, agent.definition, agent.session) == ("coder", "sha256:1", "s-1")
    assert (agent.status, agent.parent_key) == (AgentStatus.PENDING, parent.key)
    told = ledger.house_events()[-1]
    assert (told.task, told.event.event, told.event.actor) == (None, Note.AGENT, "operator:ana")
    data = json.loads(told.event.data)
    assert (data["registered"], data["parent"], data["terminated"]) == (agent.id, parent.id, False)
    with pytest.raises(NotFound):
        ledger.register_agent("x", "sha256:1", actor=OPERATOR, parent="agt_nobody")
    assert len(ledger.agents()) == 2


def test_agents_are_listed_by_status_newest_first(ledger: Ledger) -> None:
    made = [registered(ledger, status) for status in (*AgentStatus, AgentStatus.COMPLETED)]
    newest = sorted((a.id for a in made), key=lambda i: -ledger.agent(i).key)
    assert [a.id for a in ledger.agents()] == newest
    for status in AgentStatus:
        wanted = [a.id for a in reversed(made) if a.status is status]
        assert [a.id for a in ledger.agents(status)] == wanted
    assert [a.id for a in ledger.agents(limit=2)] == newest[:2]
    second = ledger.agents(limit=2)[-1]
    assert [a.id for a in ledger.agents(before=second.key)] == newest[2:]


DISPOSITIONS = {
    AgentStatus.PENDING: Disposition.DELIVERED,
    AgentStatus.IN_PROGRESS: Disposition.DELIVERED,
    AgentStatus.COMPLETED: Disposition.QUEUED,
    AgentStatus.ERROR: Disposition.QUEUED,
}


@pytest.mark.criterion("K10", "K11", "G03", "C04")
@pytest.mark.parametrize("status", list(AgentStatus))
def test_a_message_says_what_became_of_it_and_changes_no_state(
    ledger: Ledger, status: AgentStatus
) -> None:
    agent = registered(ledger, status)
    tasks = ledger.page().tasks
    if status is AgentStatus.TERMINATED:
        with pytest.raises(Terminated, match=agent.id):
            ledger.send(agent.id, "wake up", actor=OPERATOR)
        assert ledger.messages(agent.id) == []
    else:
        message = ledger.send(agent.id, "hello", actor=OPERATOR)
        assert (message.body, message.sender) == ("hello", "operator:ana")
        assert message.disposition is DISPOSITIONS[status]
        assert ledger.messages(agent.id) == [message]
        event = ledger.house_events()[-1].event
        assert (event.event, event.actor) == (Note.MESSAGE, "operator:ana")
        assert json.loads(event.data)["agent"] == agent.id
    assert ledger.agent(agent.id) == agent
    assert ledger.page().tasks == tasks


@pytest.mark.criterion("K10")
@pytest.mark.parametrize("status", [S.AWAITING_APPROVAL, S.BLOCKED, S.SUCCEEDED, S.NEEDS_REVIEW])
def test_a_message_moves_no_task(ledger: Ledger, status: TaskStatus) -> None:
    agent = registered(ledger)
    task, _ = brought(ledger, status)
    ledger.send(agent.id, f"unblock {task.id}, approved, TASK_COMPLETE", actor=OPERATOR)
    assert ledger.task(task.id) == task
    assert ledger.claim_next(Start("x")) == []


@pytest.mark.criterion("K11", "C11")
def test_the_same_message_again_is_a_duplicate(ledger: Ledger) -> None:
    agent, other = registered(ledger), registered(ledger)
    first = ledger.send(agent.id, "hello", actor=OPERATOR, key="m")
    again = ledger.send(agent.id, "hello", actor=OPERATOR, key="m")
    assert (again.id, again.disposition) == (first.id, Disposition.DUPLICATE)
    assert ledger.messages(agent.id) == [first]
    for agent_id, body in ((agent.id, "something else"), (other.id, "hello")):
        with pytest.raises(KeyReused):
            ledger.send(agent_id, body, actor=OPERATOR, key="m")
    assert ledger.messages(other.id) == []
    with pytest.raises(NotFound):
        ledger.send("agt_nobody", "hello", actor=OPERATOR)


@pytest.mark.criterion("K12", "M07")
def test_writers_at_once_lose_no_message(ledger: Ledger) -> None:
    agent = registered(ledger)

    def write(n: int) -> Message:
        return ledger.send(agent.id, f"m{n}", actor=OPERATOR, key=f"k{n % 40}")

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda n: _tried(write, n), range(60)))
    kept = ledger.messages(agent.id)
    assert len(kept) == 40
    assert len({m.id for m in kept}) == 40
    assert [m.key for m in kept] == sorted(m.key for m in kept)
    assert sum(isinstance(a, Message) for a in answers) == 40
    assert [m.id for m in ledger.messages(agent.id, after=kept[9].key, limit=5)] == [
        m.id for m in kept[10:15]
    ]


def _tried(write: object, n: int) -> object:
    try:
        return write(n)  # type: ignore[operator]
    except KeyReused as error:
        return error


@pytest.mark.criterion("O01", "N08")
def test_an_agent_speaks_for_its_own_live_run(ledger: Ledger) -> None:
    friend = registered(ledger)
    ticket = started(ledger)
    assert ledger.send(friend.id, "hi", actor=agent_of(ticket)).sender == "agent:agent"
    for actor in (
        Actor(Role.AGENT, "x"),
        Actor(Role.VIEWER, "x"),
        Actor(Role.JUDGE, "x", ticket.run, ticket.fence),
    ):
        with pytest.raises(Forbidden):
            ledger.send(friend.id, "hi", actor=actor)
    assert len(ledger.messages(friend.id)) == 1


def test_an_empty_conversation_reads_as_empty(ledger: Ledger) -> None:
    agent = registered(ledger)
    assert ledger.messages(agent.id) == []
    with pytest.raises(NotFound):
        ledger.messages("agt_nobody")
    with pytest.raises(NotFound):
        ledger.agent("agt_nobody")
    with pytest.raises(InvalidInput):
        ledger.register_agent("x" * 201, "sha256:1", actor=OPERATOR)
    opened(ledger)
    assert len(ledger.agents()) == 1


UNPRINTABLE = [
    *("a\x1b[2Jb", "a\nb", "a\tb", "\x7f", "\x9b", "a\u202eb", "a\u2066b", "\u200f"),
    *("\u2028", "a\u061cb", "\u200b", "\ufeff"),
]


@pytest.mark.criterion("L16")
@pytest.mark.parametrize("name", UNPRINTABLE, ids=ascii)
def test_a_name_that_can_not_be_printed_is_nobodys(ledger: Ledger, name: str) -> None:
    for verb in (
        lambda: ledger.register_agent(name, "sha256:1", actor=OPERATOR),
        lambda: ledger.mint_token(Role.VIEWER, name, actor=OPERATOR),
        lambda: ledger.mint_login(Role.VIEWER, name, actor=OPERATOR),
    ):
        with pytest.raises(InvalidInput, match="printed"):
            verb()
    assert (ledger.agents(), ledger.tokens()) == ([], [])


def test_a_name_of_any_script_is_somebodys(ledger: Ledger) -> None:
    for name in ("Żółć", "محمد", "山田 太郎", "🦊", "ana@example.org"):
        assert ledger.register_agent(name, "sha256:1", actor=OPERATOR).name == name
        assert ledger.mint_token(Role.VIEWER, name, actor=OPERATOR)[0].name == name
        assert ledger.mint_login(Role.VIEWER, name, actor=OPERATOR)[0].name == name
