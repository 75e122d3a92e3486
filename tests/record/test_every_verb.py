"""Every verb of the ledger against somebody who is terminated, found by looking at the ledger.

A verb that takes a run, a task or an agent is refused with `terminated`, or it stands on one of the
lists below with its reason. A new verb that is on no list is tried as well; one that can't be
called by what is known here fails.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.record.lives import OPERATOR, agent_of, brought, declared, ended, judged, opened, started
from tests.record.torture_verbs import DONE, HOLDER, Trial, concluded, found_by, overdue_of
from truegreen.errors import Refused, Terminated
from truegreen.facts import SYSTEM, Actor, AgentKind, Child, Ticket
from truegreen.model import AgentStatus, ExitDetail, Outcome, Role, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable

S = TaskStatus
READS = {
    *(
        "find",
        "task",
        "dossier",
        "run",
        "page",
        "verdicts",
        "called_off",
        "counts",
        "ended_since",
        "meters",
    ),
    *("events", "feed", "latest_events", "house_events", "agent", "agents", "messages", "inbox"),
    *("refusals", "tokens", "overdue", "owned", "standing", "claim", "audited", "answered"),
    *(
        "question",
        "answerable",
        "was_done",
        "reviewed",
        "reviews_of",
        "unattended",
        "dispatchable",
        "reservations",
        "now",
    ),
    *("due", "wakes", "waking", "woken_by", "last_work", "at_hand", "unread", "frozen"),
    *("fenced", "holder", "alarms", "whom", "held", "held_since", "names_of"),
    *("names_in", "is_called", "armed"),
    *("dead_conversations", "dead_conversations_since", "needs", "lost_with", "unproven"),
    *("open_jobs", "jobs_of"),
    *("in_folder", "used_since", "last_run_key", "is_folder_free"),
    *("why", "is_dead_inside", "check_thawed", "told", "waiting", "held_back", "holds", "waits"),
    *(
        "head",
        "history",
        "live_runs",
        "verdict_times",
        "honesty",
        "inbox_item",
        "put_off",
        "inbox_of",
        "item_of",
        "spare_room",
    ),
    *("piles", "oldest_blocked", "artifacts", "reached", "posts", "posts_counted", "live"),
    *(
        "of_topic",
        "inbox_all",
        "pin",
        "pinned",
        "doubted",
        "runs_during",
        "runs_from",
        "last_unsaid",
        "routines",
        "routine",
        "routine_of",
        "due_routines",
        "silences",
        "workers",
        "depth",
        "listen",
        "is_shared",
    ),
    *("told_resolved", "told_untaken", "ages", "beats"),
    *("breakers", "limits", "budgets", "leeway", "check_free"),
    *("conditions", "awaited_files"),
}
"""They change nothing."""
OF_ITSELF = {
    "open": "a new task; nobody acts by it",
    "claim_next": "finds what is queued; what is sealed is not",
    "reconcile": "finds what waits for a review",
    "expire_reviews": "finds what waited too long",
    "freeze": "keeps everybody from starting",
    "thaw": "starts nobody",
    "terminate_idle_agents": "ends",
    "lose_all": "ends; what is sealed is left alone",
    "revoke_token": "ends",
    "authenticate": "takes a secret; tried by itself below",
    "ack": "a person's own list",
    "snooze": "a person's own list",
    "resolve": "a person's own list",
    "mint_login": "a person's way in",
    "log_in": "takes a secret; a login code is nobody's but a person's",
    "log_out": "ends",
    "claim_request": "a request's own name",
    "owe": "what outlets send",
    "take_posts": "what outlets send",
    "posted": "what outlets send",
    "unposted": "what outlets send",
    "post_again": "what outlets send",
    "drop_posts": "what outlets send",
    "close_told": "what outlets send",
    "escalate": "what outlets send",
    "raise_alerts": "finds what lasts too long",
    "beat": "whoever looks for work",
    "end_beat": "whoever looks for work",
    "enlist": "a worker's card, and nothing more",
    "dismiss": "a worker's card, and nothing more",
    "free_locks": "the store",
    "release_silent": "a courtesy between supervisors",
    "take_due": "a courtesy between supervisors, about what is queued",
    "keep_pin": "what settings reach out with",
    **dict.fromkeys(
        ("take_routines", "tend_routine", "realign_routines"), "opens new tasks; nobody acts by it"
    ),
    **dict.fromkeys(
        ("run_routine", "pause_routine", "resume_routine"), "a routine's own; its tasks are new"
    ),
    "keep_terms": "what settings say about everybody",
    "close_breaker": "lets queued tasks start; what is sealed is none",
    "hear_probes": "finds breakers",
    "say_spent": "finds limits; what is sealed is not queued",
    "place_job": "what an engine says; a job that is sealed off is taken by nobody",
    "see_job": "what an engine says",
    "lose_job": "ends",
    "close_job": "ends",
    "see_file": "finds what queued tasks wait for; what is sealed is not queued",
    "close": "the store",
    "mark": "the store",
    "patient": "the store",
    "store": "the store",
}
"""They take no run, task or agent."""
ALLOWED = {
    "terminate": "again and again, and changes nothing",
    "terminate_agent": "again and again, and changes nothing",
    "tell": "what a supervisor knows of a run that others ended",
    "trip": "says that somebody acted all the same",
    "doubt": "says that somebody may have written settings",
    "converse": "a child that shows itself late is entered, terminated",
    "register_agent": "a child that shows itself late is entered, terminated",
    "reserve": "a courtesy between supervisors; the start looks at everything again",
    "release": "a courtesy between supervisors",
    "ask_stop": "refused in its own words: nothing runs",
    "call_off": "a wake-up that is void already stays so",
}
"""They go on, and let nobody act."""
SPEAKERS = {
    "declare": Role.AGENT,
    "checkpoint": Role.AGENT,
    "deliver": Role.AGENT,
    "attach": Role.AGENT,
    "alive": Role.AGENT,
    "announce": Role.AGENT,
    "hold": Role.OPERATOR,
    **dict.fromkeys(("arm", "cancel", "review", "unblock", "retry", "waive"), Role.OPERATOR),
    **dict.fromkeys(("approve", "deny", "recheck", "send"), Role.OPERATOR),
}
"""Who does it; truegreen itself where nobody is named."""


class Dead(NamedTuple):
    """A run whose task or agent was terminated, and everything that it was known by."""

    ticket: Ticket
    agent: str
    wake: str
    secret: str
    digest: str


def public_verbs() -> dict[str, Callable[..., Any]]:
    """What a ledger can do, by name."""
    return {name: getattr(Ledger, name) for name in dir(Ledger) if not name.startswith("_")}


def arguments(verb: str, dead: Dead) -> dict[str, Any]:
    """What to call a verb with, by the names of its parameters."""
    ticket = dead.ticket
    trial = Trial("", ticket.task, ticket, digest=dead.digest)
    known: dict[str, Any] = {
        "ticket": ticket,
        "task_id": ticket.task,
        "run_id": ticket.run,
        "agent_id": dead.agent,
        "wake_id": dead.wake,
        "overdue": overdue_of(trial),
        "late": overdue_of(trial),
        "start": HOLDER._replace(agent=dead.agent, wake=dead.wake),
        "claim": DONE,
        "ended": ended(),
        "findings": [found_by(trial)],
        "finding": found_by(trial),
        "verdict": concluded(trial, Outcome.PASSED),
        "actor": speaker(verb, ticket),
        "holder": "somebody",
        "body": "wake up",
        "reason": "go on",
        "accept": True,
        "action": "push",
        "budget": "reentries",
        "limit": 3,
        "role": Role.AGENT,
        "name": "a",
        "facts": {},
        "kind": "push",
        "detail": "a push",
        "why": "it is over",
        "file": "truegreen.toml",
        "words": "it was changed",
        "definition": "sha256:2",
        "needed": "tsk_nowhere",
        "sha256": "0" * 64,
        "size": 1,
        "engine": "slurm",
        "job_id": "job_nowhere",
        "topic": "built",
        "waits": ["message:built"],
    }
    parameters = inspect.signature(public_verbs()[verb]).parameters
    wanted = [
        each.name
        for each in parameters.values()
        if each.name != "self" and (each.default is each.empty or each.name in ("actor", "ticket"))
    ]
    unknown = [name for name in wanted if name not in known]
    assert not unknown, f"say here how {verb} is called: {unknown}"
    return {name: known[name] for name in wanted}


def speaker(verb: str, ticket: Ticket) -> Actor:
    """Who may do it, so that nothing but the end is in the way."""
    role = SPEAKERS.get(verb)
    return {Role.AGENT: agent_of(ticket), Role.OPERATOR: OPERATOR}.get(role or Role.JUDGE, SYSTEM)


TRIED = sorted(set(public_verbs()) - READS - set(OF_ITSELF) - set(ALLOWED))


def alive(ledger: Ledger) -> Dead:
    """An agent at a run, about to be woken once more, with a token."""
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR, session="its own")
    ticket = started(ledger, agent_id=agent.id)
    _, secret = ledger.mint_token(Role.AGENT, "a", actor=OPERATOR, ticket=ticket)
    wake = ledger.arm(agent.id, "later", actor=OPERATOR)
    return Dead(ticket, agent.id, wake.id, secret, ledger.task(ticket.task).contract_digest)


def _by_task(ledger: Ledger) -> Dead:
    dead = alive(ledger)
    ledger.terminate(dead.ticket.task, actor=OPERATOR)
    return dead


def _by_agent(ledger: Ledger) -> Dead:
    dead = alive(ledger)
    ledger.terminate_agent(dead.agent, actor=OPERATOR)
    return dead


def _after_success(ledger: Ledger) -> Dead:
    dead = alive(ledger)
    declared(ledger, dead.ticket)
    judged(ledger, dead.ticket, Outcome.PASSED)
    ledger.terminate(dead.ticket.task, actor=OPERATOR)
    return dead


def _while_queued_to_wake(ledger: Ledger) -> Dead:
    dead = alive(ledger)
    ledger.end_run(dead.ticket, ended(ExitDetail.REFUSED))
    ledger.wake(dead.wake)
    ledger.terminate_agent(dead.agent, actor=OPERATOR)
    return dead


def _while_waiting(ledger: Ledger) -> Dead:
    dead = alive(ledger)
    declared(ledger, dead.ticket)
    judged(ledger, dead.ticket, Outcome.INCONCLUSIVE)
    ledger.terminate(dead.ticket.task, actor=OPERATOR)
    return dead


WAYS = (_by_task, _by_agent, _after_success, _while_queued_to_wake, _while_waiting)


def test_no_verb_is_on_two_lists_and_every_listed_verb_exists() -> None:
    lists = [READS, set(OF_ITSELF), set(ALLOWED)]
    assert set().union(*lists) - set(public_verbs()) == set()
    assert sum(len(each) for each in lists) == len(set().union(*lists))
    assert set(SPEAKERS) <= set(TRIED)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.criterion("G03", "G20", "G02", "K11")
def test_every_verb_refuses_whoever_is_terminated(
    ledger: Ledger, way: Callable[[Ledger], Dead]
) -> None:
    dead = way(ledger)
    before = ledger.dossier(dead.ticket.task)
    answers = {verb: outcome(ledger, verb, dead) for verb in TRIED}
    assert {verb: said for verb, said in answers.items() if said != "terminated"} == {}
    assert ledger.dossier(dead.ticket.task)._replace(refusals=[]) == before._replace(refusals=[])
    assert ledger.messages(dead.agent) == []
    assert [wake.state for wake in ledger.wakes(dead.agent)] == ["void"]


def outcome(ledger: Ledger, verb: str, dead: Dead) -> str:
    """The code of the refusal; empty if there was none."""
    return called(ledger, verb, arguments(verb, dead))


def called(ledger: Ledger, verb: str, given: dict[str, Any]) -> str:
    """Call a verb; says the code of its refusal."""
    try:
        getattr(ledger, verb)(**given)
    except Refused as refused:
        return refused.code
    return ""


@pytest.mark.criterion("G20", "C10")
def test_what_a_terminated_run_still_tried_is_kept(ledger: Ledger) -> None:
    dead = _by_task(ledger)
    about_a_run = [
        verb for verb in TRIED if "ticket" in inspect.signature(public_verbs()[verb]).parameters
    ]
    for verb in (*about_a_run, "send", "arm", "wake", "start"):
        outcome(ledger, verb, dead)
    kept = {refusal.verb: refusal for refusal in ledger.refusals(limit=100)}
    assert set(kept) == {*about_a_run, "send", "arm", "wake", "start"}
    assert {refusal.code for refusal in kept.values()} == {"terminated"}
    assert kept["declare"].actor == str(agent_of(dead.ticket))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.criterion("G20")
def test_the_token_of_a_terminated_run_is_nobodys(
    ledger: Ledger, way: Callable[[Ledger], Dead]
) -> None:
    dead = way(ledger)
    with pytest.raises(Refused):
        ledger.authenticate(dead.secret)


@pytest.mark.parametrize("verb", sorted(ALLOWED))
@pytest.mark.criterion("G17", "G19", "G05")
def test_what_is_still_allowed_lets_nobody_act(ledger: Ledger, verb: str) -> None:
    dead = _by_task(ledger)
    task = ledger.task(dead.ticket.task)
    given = arguments(verb, dead)
    if verb in ("terminate", "terminate_agent", "ask_stop", "call_off"):
        given |= {"actor": OPERATOR}
    if verb == "converse":
        given |= {"session": "another", "children": [Child(AgentKind.SUBAGENT, "inside")]}
    if verb == "register_agent":
        given |= {"parent": dead.agent}
    assert called(ledger, verb, given) in ("", "terminated", "not_running")
    now = ledger.task(dead.ticket.task)
    assert (now.status, now.sealed_at, now.fence) == (task.status, task.sealed_at, task.fence)
    assert now.revision - task.revision == (verb in ("trip", "doubt"))
    assert {agent.status for agent in ledger.agents()} == {AgentStatus.TERMINATED}
    assert [run.exit_reason for run in ledger.dossier(task.id).runs].count(None) == 0
    assert ledger.claim_next(HOLDER, limit=10) == []


@pytest.mark.criterion("G19")
def test_the_conversation_of_a_terminated_agent_is_nobody_elses(ledger: Ledger) -> None:
    _by_task(ledger)
    with pytest.raises(Terminated):
        ledger.register_agent("clone", "sha256:1", actor=OPERATOR, session="its own")
    other = ledger.register_agent("other", "sha256:1", actor=OPERATOR)
    with pytest.raises(Terminated):
        ledger.converse(started(ledger, agent_id=other.id), session="its own")
    assert ledger.agent(other.id).session is None


@pytest.mark.criterion("G19", "G03")
def test_a_conversation_whose_name_shows_too_late_is_fenced_too(ledger: Ledger) -> None:
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent)
    ledger.terminate(ticket.task, actor=OPERATOR)
    for _ in range(2):
        assert ledger.converse(ticket, session="shown late") == []
    assert ledger.fenced().sessions == ("shown late",)
    with pytest.raises(Terminated):
        ledger.register_agent("clone", "sha256:1", actor=OPERATOR, session="shown late")


# -- any prior state -----------------------------------------------------------------------------


def times(ledger: Ledger) -> int:
    """How often in a row; a round trip to a server costs more, and proves no more."""
    return 100 if ledger.store.dialect == "sqlite" else 10


@pytest.mark.criterion("G01", "G05", "G14", "G25")
@pytest.mark.parametrize("status", TaskStatus)
def test_a_hundred_terminates_from_any_status_change_one_thing(
    ledger: Ledger, status: TaskStatus
) -> None:
    before, _ = brought(ledger, status)
    again = before.sealed_at is not None
    answers = [ledger.terminate(before.id, actor=OPERATOR) for _ in range(times(ledger))]
    after = ledger.task(before.id)
    assert [answer.already_terminated for answer in answers] == [again] + [True] * (
        times(ledger) - 1
    )
    assert {answer.prior_status for answer in answers} == {before.status, after.status}
    assert (after.revision, after.fence) == (
        before.revision + (not again),
        before.fence + (not again),
    )
    assert after.sealed_at is not None
    kept = (S.SUCCEEDED, S.FAILED, S.CANCELED, S.TERMINATED)
    assert after.status is (status if status in kept else S.TERMINATED)
    if status is S.SUCCEEDED:
        assert (after.verdict, after.acceptance) == (before.verdict, before.acceptance)
    names = [told.event.event for told in ledger.events(before.id)]
    assert names.count("terminate") + names.count("seal") == 1


def _agent_in(ledger: Ledger, status: AgentStatus) -> str:
    """An agent in any status, by verbs alone."""
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR).id
    if status is AgentStatus.TERMINATED:
        ledger.terminate_agent(agent, actor=OPERATOR)
    elif status is not AgentStatus.PENDING:
        ticket = started(ledger, agent_id=agent)
        if status is AgentStatus.COMPLETED:
            declared(ledger, ticket)
        elif status is AgentStatus.ERROR:
            ledger.end_run(ticket, ended(ExitDetail.SIGNALED))
    assert ledger.agent(agent).status is status
    return agent


@pytest.mark.criterion("G01", "G05", "G02")
@pytest.mark.parametrize("status", AgentStatus)
def test_a_hundred_terminates_of_an_agent_in_any_status_change_one_thing(
    ledger: Ledger, status: AgentStatus
) -> None:
    agent = _agent_in(ledger, status)
    told = len(ledger.house_events())
    answers = [ledger.terminate_agent(agent, actor=OPERATOR) for _ in range(times(ledger))]
    again = status is AgentStatus.TERMINATED
    assert [answer.already_terminated for answer in answers] == [again] + [True] * (
        times(ledger) - 1
    )
    assert answers[0].prior_status == status
    assert ledger.agent(agent).status is AgentStatus.TERMINATED
    assert len(ledger.house_events()) - told == (not again)
    with pytest.raises(Terminated):
        ledger.start(opened(ledger).id, HOLDER._replace(agent=agent))


def _left_by(ledger: Ledger, agent: str, status: AgentStatus) -> str | None:
    """Bring an agent that left its task into another status; says the task that it is at now."""
    if ledger.agent(agent).status is status:
        return None
    if status is AgentStatus.TERMINATED:
        ledger.terminate_agent(agent, actor=OPERATOR)
        return None
    ticket = started(ledger, agent_id=agent)
    if status is AgentStatus.COMPLETED:
        declared(ledger, ticket)
    elif status is AgentStatus.ERROR:
        ledger.end_run(ticket, ended(ExitDetail.SIGNALED))
    return ticket.task


@pytest.mark.criterion("G01", "G17", "G14")
@pytest.mark.parametrize("status", [each for each in TaskStatus if each is not S.QUEUED])
@pytest.mark.parametrize("then", [each for each in AgentStatus if each is not AgentStatus.PENDING])
def test_a_task_in_any_status_takes_its_agent_along_whatever_that_is_at(
    made_url: str, status: TaskStatus, then: AgentStatus
) -> None:
    ledger = open_ledger(made_url)
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR).id
    task, _ = brought(ledger, status, agent_id=agent)
    busy = ledger.agent(agent).status in (AgentStatus.IN_PROGRESS, AgentStatus.TERMINATED)
    now_at = None if busy else _left_by(ledger, agent, then)
    if ledger.agent(agent).status is not AgentStatus.TERMINATED:
        ledger.arm(agent, "later", actor=OPERATOR)
    answer = ledger.terminate(task.id, actor=OPERATOR)
    assert answer.agents == (agent,)
    assert ledger.agent(agent).status is AgentStatus.TERMINATED
    assert ledger.task(task.id).sealed_at is not None
    assert {wake.state for wake in ledger.wakes(agent)} <= {"void"}
    if now_at and then is AgentStatus.IN_PROGRESS:
        assert ledger.task(now_at).status is S.TERMINATED
    ledger.close()
