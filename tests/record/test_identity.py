"""Who is who: names that a stream or a client makes up tie nobody to anybody else's end."""

from __future__ import annotations

import pytest

from tests.record.lives import OPERATOR, S, declared, ended, judged, started
from tests.record.test_qa import chained, opinion, settled, under_review
from truegreen.errors import Ambiguous, Terminated
from truegreen.facts import SYSTEM, AgentKind, Child, Processes, Ticket
from truegreen.model import AgentStatus, ExitDetail, FindingOutcome, Outcome
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.fencing import Whom
from truegreen.record.rows import Agent

K = AgentKind


def at_work(ledger: Ledger, name: str = "coder") -> tuple[Agent, Ticket]:
    agent = ledger.register_agent(name, "sha256:1", actor=OPERATOR)
    return agent, started(ledger, agent_id=agent.id)


# -- the name of a conversation --------------------------------------------------------------------


@pytest.mark.criterion("G02", "G19")
def test_the_first_name_of_a_conversation_stays_and_a_further_one_is_fenced_with_it(
    ledger: Ledger,
) -> None:
    agent, ticket = at_work(ledger)
    ledger.converse(ticket, session="real")
    ledger.converse(ticket, session="forged")
    assert ledger.agent(agent.id).session == "real"
    assert ledger.whom("forged") == ledger.whom("real") == Whom("agent", agent.id)
    ledger.terminate(ticket.task, actor=OPERATOR)
    assert set(ledger.fenced().sessions) == {"real", "forged"}
    assert {ledger.holder(name) for name in ("real", "forged")} == {
        (agent.id, True, ticket.run, ticket.task)
    }


@pytest.mark.criterion("G02", "G19")
def test_the_end_of_a_run_gives_its_conversation_no_other_name(ledger: Ledger) -> None:
    agent, ticket = at_work(ledger)
    ledger.converse(ticket, session="real")
    ledger.end_run(ticket, ended(session="forged"))
    assert ledger.agent(agent.id).session == "real"


@pytest.mark.criterion("G17")
@pytest.mark.parametrize("how", ["child", "name"])
def test_the_name_of_somebody_elses_conversation_drags_nobody_along(
    ledger: Ledger, how: str
) -> None:
    innocent, other = at_work(ledger)
    ledger.converse(other, session="innocent")
    _, ticket = at_work(ledger)
    ledger.converse(ticket, session="mine")
    if how == "child":
        ledger.converse(ticket, children=[Child(K.SUBAGENT, "innocent")])
    else:
        ledger.converse(ticket, session="innocent")
    gone = ledger.terminate(ticket.task, actor=OPERATOR)
    assert innocent.id not in gone.agents
    assert "innocent" not in ledger.fenced().sessions
    held = ledger.holder("innocent")
    assert held
    assert not held.terminated
    assert ledger.agent(innocent.id).status is AgentStatus.IN_PROGRESS
    assert ledger.task(other.task).status is S.RUNNING


@pytest.mark.criterion("G17")
def test_a_terminated_child_bars_nobody_from_its_name_elsewhere(ledger: Ledger) -> None:
    _, ticket = at_work(ledger)
    ledger.converse(ticket, session="mine", children=[Child(K.SUBAGENT, "other")])
    ledger.terminate(ticket.task, actor=OPERATOR)
    assert "other" not in ledger.fenced().sessions
    assert ledger.fenced().children == (("mine", "other"),)
    assert ledger.holder("other") is None
    agent, late = at_work(ledger)
    ledger.converse(late, session="other")
    assert ledger.agent(agent.id).session == "other"


@pytest.mark.criterion("G19")
def test_a_terminated_holder_of_a_conversation_counts_before_a_newer_one(ledger: Ledger) -> None:
    old, ticket = at_work(ledger)
    new, other = at_work(ledger)
    ledger.converse(ticket, session="first")
    for each in (ticket, other):
        ledger.converse(each, session="shared")
    ledger.terminate_agent(old.id, actor=OPERATOR)
    held = ledger.holder("shared")
    assert held
    assert (held.agent, held.terminated) == (old.id, True)
    assert ledger.agent(new.id).status is AgentStatus.IN_PROGRESS


@pytest.mark.criterion("G17", "G19")
def test_a_terminated_child_stays_so_for_whoever_goes_on_in_its_conversation(
    ledger: Ledger,
) -> None:
    _, ticket = at_work(ledger)
    _, later = at_work(ledger)
    (child,) = ledger.converse(ticket, session="shared", children=[Child(K.SUBAGENT, "a1")])
    ledger.converse(later, session="shared")
    ledger.terminate_agent(child.id, actor=OPERATOR)
    assert ledger.is_dead_inside(later.run, "a1")
    (again,) = ledger.converse(later, children=[Child(K.SUBAGENT, "a1")])
    assert again.status is AgentStatus.TERMINATED
    _, stranger = at_work(ledger)
    ledger.converse(stranger, session="of its own", children=[Child(K.SUBAGENT, "a1")])
    assert not ledger.is_dead_inside(stranger.run, "a1")


# -- whom a name means -----------------------------------------------------------------------------


@pytest.mark.criterion("G13")
def test_a_name_from_inside_of_a_conversation_means_nobody_else(ledger: Ledger) -> None:
    agent, ticket = at_work(ledger, "claude-code")
    _, other = at_work(ledger, "another")
    forged = Child(K.BACKGROUND, "claude-code", "claude-code")
    (child,) = ledger.converse(other, session="s", children=[forged])
    assert ledger.whom("claude-code") == Whom("agent", agent.id)
    ledger.terminate(ticket.task, actor=OPERATOR)
    assert ledger.whom("claude-code") == Whom("agent", agent.id)
    (alone,) = ledger.converse(other, children=[Child(K.SUBAGENT, "a1", "claude-code")])
    assert ledger.whom("a1") == Whom("agent", alone.id)
    assert ledger.whom(child.id) == Whom("agent", child.id)


def test_a_conversation_called_like_an_agent_is_asked_back(ledger: Ledger) -> None:
    agent, _ = at_work(ledger, "claude-code")
    other, ticket = at_work(ledger, "another")
    ledger.converse(ticket, session="claude-code")
    with pytest.raises(Ambiguous) as caught:
        ledger.whom("claude-code")
    assert set(caught.value.allowed) == {agent.id, other.id}


# -- what lives inside -----------------------------------------------------------------------------


@pytest.mark.criterion("G17")
def test_a_child_of_a_live_run_is_not_called_ended(ledger: Ledger) -> None:
    _, ticket = at_work(ledger)
    (child,) = ledger.converse(ticket, session="s", children=[Child(K.BACKGROUND, "b1")])
    for _ in range(2):
        gone = ledger.terminate_agent(child.id, actor=OPERATOR)
        assert (gone.outcome, gone.inside, gone.runs) == ("interrupted", (ticket.run,), ())
    assert ledger.task(ticket.task).status is S.RUNNING
    declared(ledger, ticket)
    over = ledger.terminate_agent(child.id, actor=OPERATOR)
    assert (over.outcome, over.inside) == ("clean", ())


def test_what_lived_inside_is_over_with_its_run_also_when_the_supervisor_died(
    ledger: Ledger,
) -> None:
    agent, ticket = at_work(ledger)
    given = [Child(K.SUBAGENT, "a1"), Child(K.CRON, "c1")]
    children = ledger.converse(ticket, session="s", children=given)
    ledger.end_run(ticket, ended(ExitDetail.SUPERVISOR_CRASHED))
    assert ledger.agent(agent.id).status is AgentStatus.ERROR
    assert {ledger.agent(each.id).status for each in children} == {AgentStatus.COMPLETED}
    (late,) = ledger.converse(ticket, children=[Child(K.SUBAGENT, "a2")])
    assert late.status is AgentStatus.COMPLETED


@pytest.mark.criterion("G02", "J01")
def test_the_reviewer_of_a_terminated_task_goes_with_its_review(ledger: Ledger) -> None:
    task, _ = chained(ledger)
    reviewer = ledger.register_agent("reviewer", "sha256:2", actor=SYSTEM)
    review = under_review(ledger, task, reviewer.id)
    ledger.converse(review, session="of the reviewer")
    for _ in range(2):
        assert reviewer.id in ledger.terminate(task.id, actor=OPERATOR).agents
    assert ledger.agent(reviewer.id).status is AgentStatus.TERMINATED
    assert "of the reviewer" in ledger.fenced().sessions
    with pytest.raises(Terminated):
        ledger.send(reviewer.id, "go on", actor=OPERATOR)


def test_a_reviewer_that_is_done_stays_as_it_is(ledger: Ledger) -> None:
    task, ticket = chained(ledger)
    reviewer = ledger.register_agent("reviewer", "sha256:2", actor=SYSTEM)
    review = under_review(ledger, task, reviewer.id)
    ledger.record_qa(review, opinion(ledger, ticket, FindingOutcome.PASSED))
    settled(ledger, review)
    ledger.terminate(task.id, actor=OPERATOR)
    assert ledger.agent(reviewer.id).status is AgentStatus.COMPLETED


# -- what nobody saw end ---------------------------------------------------------------------------


@pytest.mark.criterion("G15", "G26")
@pytest.mark.parametrize("doubt", sorted(set(Processes) - {Processes.GONE}))
def test_every_run_that_nobody_saw_end_is_looked_for(ledger: Ledger, doubt: Processes) -> None:
    _, ticket = at_work(ledger)
    ledger.seen(ticket)
    ledger.end_run(ticket, ended(ExitDetail.SIGNALED, processes=doubt))
    again = started(ledger, ticket.task)
    declared(ledger, again)
    judged(ledger, again, Outcome.PASSED)
    assert ledger.unproven() == [ticket.run]
    ledger.terminate(ticket.task, actor=OPERATOR)
    (held,) = ledger.held(task=ticket.task)
    assert (held.run, held.was_live, held.doubtful) == (ticket.run, False, True)
    assert [each.run for each in ledger.held_since(0)] == [ticket.run]


def test_a_run_whose_end_was_seen_is_not_looked_for(ledger: Ledger) -> None:
    _, ticket = at_work(ledger)
    ledger.seen(ticket)
    ledger.end_run(ticket, ended(processes=Processes.GONE))
    judged(ledger, ticket, Outcome.PASSED)
    assert ledger.unproven() == []
    ledger.terminate(ticket.task, actor=OPERATOR)
    assert ledger.held(task=ticket.task) == []


def test_only_the_recorded_end_of_its_processes_counts_and_no_other_fact(ledger: Ledger) -> None:
    _, ticket = at_work(ledger)
    ledger.seen(ticket)
    ledger.end_run(ticket, ended(facts={"output": {"size": 0}}))
    assert ledger.unproven() == [ticket.run]
    ledger.tell(ticket, {}, processes=Processes.GONE)
    assert ledger.unproven() == []
    ledger.tell(ticket, {}, processes=Processes.ALIVE)
    assert ledger.run(ticket.run)[0].processes is Processes.GONE, "the first report counts"
