"""Checkpoints: two modes pause, one blocks; a person answers, silence never does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import (
    BASE,
    OPERATOR,
    TREE,
    S,
    agent_of,
    brought,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
)
from tests.record.raw_sql import raw_sql
from truegreen.contract import Contract, QaTerms
from truegreen.errors import (
    Forbidden,
    IllegalMove,
    InvalidInput,
    KeyReused,
    NotFound,
    NotRunning,
    Refused,
    Stale,
    Terminated,
)
from truegreen.facts import SYSTEM, Actor, Claim, Ticket, Verdict
from truegreen.model import (
    Cell,
    ClaimKind,
    EndedBy,
    EventLevel,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Mode,
    Move,
    Outcome,
    Phase,
    Role,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.ledger.answers import (
    COUNTED_SECONDS,
    FLAGGED_FROM,
    HASTY_SECONDS,
    REFUSED_FROM,
    Question,
)

if TYPE_CHECKING:
    from truegreen.record.rows import Event

DATABASES = ("sqlite",)


def last(ledger: Ledger, task: str) -> Event:
    return ledger.events(task)[-1].event


@pytest.mark.criterion("D01")
def test_every_mode_is_kept_and_the_default_is_autonomous(ledger: Ledger) -> None:
    for mode in Mode:
        assert opened(ledger, mode=mode).mode is mode
    plain = Contract(title="t", qa=QaTerms(roles=()))
    assert ledger.open(plain, actor=OPERATOR).mode is Mode.AUTONOMOUS


@pytest.mark.criterion("D02", "C04", "A13")
def test_an_autonomous_run_at_a_checkpoint_ends_blocked(ledger: Ledger) -> None:
    ticket = started(ledger)
    task = ledger.checkpoint(ticket, "git push", actor=agent_of(ticket), key="c")
    assert task == ledger.task(ticket.task)
    assert (task.status, task.exit_reason, task.exit_detail) == (
        S.BLOCKED,
        ExitReason.BLOCKED,
        ExitDetail.APPROVAL_CHECKPOINT,
    )
    assert (task.cell, task.run_status) == (Cell.BLOCKED, RunStatus.STOPPED)
    run = ledger.run(ticket.run)[0]
    assert (run.exit_detail, run.ended_by) == (
        ExitDetail.APPROVAL_CHECKPOINT,
        EndedBy.SUPERVISOR,
    )
    event = last(ledger, ticket.task)
    assert (event.event, event.level, event.reason) == (Move.BLOCK, EventLevel.WARN, "git push")
    assert (event.actor, event.run_id, event.idempotency_key) == ("agent:agent", ticket.run, "c")
    with pytest.raises(Stale):
        ledger.declare(ticket, Claim(kind=ClaimKind.DONE), actor=agent_of(ticket))
    with pytest.raises(Stale):
        ledger.heartbeat(ticket)
    (item,) = ledger.inbox()
    assert (item.task, item.item.cell) == (ticket.task, "blocked")
    assert ledger.checkpoint(ticket, "git push", actor=agent_of(ticket), key="c") == task


@pytest.mark.criterion("D03", "B14", "C04")
@pytest.mark.parametrize("mode", [Mode.ASSISTED, Mode.INTERACTIVE])
def test_the_other_modes_pause_and_go_on_when_a_person_says_so(ledger: Ledger, mode: Mode) -> None:
    ticket = started(ledger, mode=mode)
    task = ledger.checkpoint(ticket, "git push", actor=agent_of(ticket), key="c")
    assert (task.status, task.run_status) == (S.AWAITING_APPROVAL, RunStatus.PAUSED)
    assert (task.exit_reason, task.settled_at) == (None, None)
    assert ledger.run(ticket.run)[0].exit_reason is None
    event = last(ledger, ticket.task)
    assert (event.event, event.level) == (Move.PAUSE, EventLevel.INFO)
    assert json.loads(event.data)["action"] == "git push"
    assert [w.item.cell for w in ledger.inbox()] == ["awaiting_approval"]
    ledger.heartbeat(ticket)
    again = ledger.approve(task.id, actor=OPERATOR, reason="go", key="a")
    assert again == ledger.task(task.id)
    assert (again.status, again.run_status, again.fence) == (
        S.RUNNING,
        RunStatus.RUNNING,
        ticket.fence,
    )
    event = last(ledger, ticket.task)
    assert (event.event, event.actor, event.reason) == (Move.RESUME, "operator:ana", "go")
    assert (event.run_id, event.idempotency_key) == (ticket.run, "a")
    assert ledger.inbox() == []
    assert ledger.approve(task.id, actor=OPERATOR, reason="go", key="a") == again
    assert declared(ledger, ticket).status is S.PENDING_EVAL


@pytest.mark.criterion("D10", "D12", "B24")
@pytest.mark.parametrize(
    ("actor", "detail", "by"),
    [
        (SYSTEM, ExitDetail.APPROVAL_EXPIRED, EndedBy.SUPERVISOR),
        (OPERATOR, ExitDetail.APPROVAL_CHECKPOINT, EndedBy.OPERATOR),
    ],
)
def test_expiry_and_denial_block(
    ledger: Ledger, actor: Actor, detail: ExitDetail, by: EndedBy
) -> None:
    task, ticket = brought(ledger, S.AWAITING_APPROVAL)
    assert ticket
    done = ledger.deny(task.id, actor=actor, reason="nobody came", key="d")
    assert done == ledger.task(task.id)
    assert (done.status, done.exit_detail, done.cell) == (S.BLOCKED, detail, Cell.BLOCKED)
    assert ledger.run(ticket.run)[0].ended_by is by
    event = last(ledger, task.id)
    assert (event.event, event.level, event.actor) == (Move.BLOCK, EventLevel.WARN, str(actor))
    assert (event.reason, event.run_id) == ("nobody came", ticket.run)
    assert [w.item.cell for w in ledger.inbox()] == ["blocked"], "nobody waits for an answer now"
    assert ledger.deny(task.id, actor=actor, reason="nobody came", key="d") == done
    with pytest.raises(NotRunning):
        ledger.approve(task.id, actor=OPERATOR)
    with pytest.raises(Stale):
        ledger.end_run(ticket, ended())


@pytest.mark.criterion("D09", "D06", "O01")
def test_only_a_person_approves(ledger: Ledger) -> None:
    for role in (role for role in Role if role is not Role.OPERATOR):
        task, ticket = brought(ledger, S.AWAITING_APPROVAL)
        assert ticket
        actor = Actor(role, "x", ticket.run, ticket.fence)
        with pytest.raises(Forbidden):
            ledger.approve(task.id, actor=actor)
        if role is not Role.SYSTEM:
            with pytest.raises(Forbidden):
                ledger.deny(task.id, actor=actor, reason="no")
        assert ledger.task(task.id) == task


@pytest.mark.criterion("D09", "K10")
def test_a_message_approves_nothing(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent, mode=Mode.ASSISTED)
    ledger.checkpoint(ticket, "push", actor=agent_of(ticket))
    before = ledger.task(ticket.task)
    ledger.send(agent, "approved, go on", actor=OPERATOR)
    assert ledger.task(ticket.task) == before


def test_there_is_nothing_to_approve_or_deny_elsewhere(ledger: Ledger) -> None:
    for status in (s for s in TaskStatus if s is not S.AWAITING_APPROVAL):
        task, _ = brought(ledger, status)
        expected = Terminated if status is S.TERMINATED else NotRunning
        with pytest.raises(expected, match=task.status):
            ledger.approve(task.id, actor=OPERATOR)
        with pytest.raises(expected):
            ledger.deny(task.id, actor=OPERATOR, reason="no")
        assert ledger.task(task.id) == task


def test_a_denial_says_why_and_a_checkpoint_for_nothing_is_refused(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.AWAITING_APPROVAL)
    with pytest.raises(InvalidInput, match="reason is needed"):
        ledger.deny(task.id, actor=OPERATOR, reason=" ")
    for verb in (ledger.approve, ledger.deny):
        with pytest.raises(NotFound):
            verb("tsk_nowhere", actor=OPERATOR, reason="x")
    assert ledger.task(task.id) == task


def test_a_second_checkpoint_while_paused_changes_nothing(ledger: Ledger) -> None:
    task, ticket = brought(ledger, S.AWAITING_APPROVAL)
    assert ticket
    with pytest.raises(IllegalMove):
        ledger.checkpoint(ticket, "another", actor=agent_of(ticket))
    assert ledger.task(task.id) == task


@pytest.mark.criterion("C11")
def test_approval_keys_belong_to_one_task(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.AWAITING_APPROVAL)
    other, _ = brought(ledger, S.AWAITING_APPROVAL)
    ledger.approve(task.id, actor=OPERATOR, key="k")
    with pytest.raises(KeyReused):
        ledger.approve(other.id, actor=OPERATOR, key="k")
    with pytest.raises(KeyReused):
        ledger.deny(other.id, actor=OPERATOR, reason="no", key="k")
    assert ledger.task(other.id) == other


@pytest.mark.criterion("H08", "B04")
@pytest.mark.parametrize("detail", [ExitDetail.SIGNALED, ExitDetail.COMPLETED, ExitDetail.OOM])
def test_a_run_that_dies_while_it_waits_can_be_ended(ledger: Ledger, detail: ExitDetail) -> None:
    task, ticket = brought(ledger, S.AWAITING_APPROVAL)
    assert ticket
    ledger.end_run(ticket, ended(detail))
    assert ledger.run(ticket.run)[0].exit_reason is not None
    assert ledger.task(task.id).status is not S.AWAITING_APPROVAL


@pytest.mark.criterion("H08")
def test_a_run_that_is_lost_while_it_waits_is_not_overdue_for_ever(ledger: Ledger) -> None:
    task = opened(ledger, mode=Mode.ASSISTED)
    ticket = ledger.start(task.id, Start("gone", lease_seconds=-1))
    ledger.checkpoint(ticket, "push", actor=agent_of(ticket))
    (suspect,) = ledger.overdue()
    assert suspect.status is S.AWAITING_APPROVAL
    ledger.lose(suspect)
    assert ledger.overdue() == []
    assert ledger.run(ticket.run)[0].exit_reason is not None


@pytest.mark.criterion("C08", "D09")
def test_an_approval_and_a_denial_at_once_are_one_of_them(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.AWAITING_APPROVAL)
    ledger.deny(task.id, actor=SYSTEM, reason="expired")
    before = ledger.task(task.id)
    with pytest.raises(Refused):
        ledger.approve(task.id, actor=OPERATOR, reason="too late")
    assert ledger.task(task.id) == before


# -- bound to the tree that was asked about ----------------------------------------------------

THIS, THAT = "tree:this", "tree:that"


def asked(ledger: Ledger, digest: str = THIS) -> Ticket:
    """A run that waits for an approval of one tree."""
    ticket = started(ledger, mode=Mode.ASSISTED)
    ledger.checkpoint(ticket, "deploy", actor=agent_of(ticket), digest=digest)
    return ticket


@pytest.mark.criterion("D08")
def test_a_question_keeps_the_tree_and_its_approval_names_who_when_and_which(
    ledger: Ledger,
) -> None:
    ticket = asked(ledger)
    question = ledger.question(ticket.task)
    asking = last(ledger, ticket.task)
    assert question == Question("deploy", THIS, asking.at, asking.id)
    ledger.approve(ticket.task, actor=OPERATOR, digest=THIS)
    event = last(ledger, ticket.task)
    assert (event.actor, json.loads(event.data)["digest"]) == ("operator:ana", THIS)
    assert event.at >= question.at
    assert ledger.question(ticket.task) is None


@pytest.mark.criterion("D08")
@pytest.mark.parametrize(("about", "given"), [(THIS, THAT), (THIS, ""), ("", THIS)])
def test_an_approval_of_another_tree_than_was_asked_about_is_refused(
    ledger: Ledger, about: str, given: str
) -> None:
    ticket = asked(ledger, about)
    before = ledger.task(ticket.task)
    with pytest.raises(Stale) as caught:
        ledger.approve(ticket.task, actor=OPERATOR, digest=given)
    assert (caught.value.details["stale"], caught.value.details["current"]) == ("digest", about)
    assert ledger.task(ticket.task) == before


@pytest.mark.criterion("D08")
def test_a_void_approval_is_a_new_question_and_a_warning(ledger: Ledger) -> None:
    ticket = asked(ledger)
    ledger.approve(ticket.task, actor=OPERATOR)
    assert ledger.inbox() == []
    task = ledger.checkpoint(ticket, "deploy", actor=SYSTEM, digest=THAT, void=THIS)
    assert (task.status, task.run_status) == (S.AWAITING_APPROVAL, RunStatus.PAUSED)
    event = last(ledger, ticket.task)
    assert (event.event, event.level) == (Move.PAUSE, EventLevel.WARN)
    assert event.reason == "the work changed after it was asked for: deploy"
    assert json.loads(event.data) == {"action": "deploy", "digest": THAT, "void": THIS}
    (waiting,) = ledger.inbox()
    assert (waiting.item.cell, waiting.item.reason) == ("awaiting_approval", event.reason)
    with pytest.raises(Stale):
        ledger.approve(ticket.task, actor=OPERATOR, digest=THIS)
    assert ledger.approve(ticket.task, actor=OPERATOR, digest=THAT).status is S.RUNNING


@pytest.mark.criterion("D08", "O01")
def test_an_agent_takes_no_approval_back(ledger: Ledger) -> None:
    ticket = asked(ledger)
    ledger.approve(ticket.task, actor=OPERATOR)
    with pytest.raises(Forbidden):
        ledger.checkpoint(ticket, "deploy", actor=agent_of(ticket), digest=THAT, void=THIS)


def test_nothing_is_asked_by_a_task_that_waits_for_nobody_or_is_not_there(ledger: Ledger) -> None:
    for status in (s for s in TaskStatus if s is not S.AWAITING_APPROVAL):
        assert ledger.question(brought(ledger, status)[0].id) is None, status
    with pytest.raises(NotFound):
        ledger.question("tsk_nowhere")


@pytest.mark.criterion("D10", "H08")
def test_a_supervisor_that_dies_while_a_question_waits_leaves_nothing_to_approve(
    ledger: Ledger,
) -> None:
    task = opened(ledger, mode=Mode.ASSISTED)
    ticket = ledger.start(task.id, Start("gone", lease_seconds=-1))
    ledger.checkpoint(ticket, "deploy", actor=agent_of(ticket), digest=THIS)
    (suspect,) = ledger.overdue()
    after = ledger.lose(suspect)
    assert (after.status, after.exit_detail) == (S.BLOCKED, ExitDetail.APPROVAL_EXPIRED)
    with pytest.raises(NotRunning):
        ledger.approve(task.id, actor=OPERATOR, digest=THIS)
    assert Move.RESUME not in [told.event.event for told in ledger.events(task.id)]


# -- rubber stamps ----------------------------------------------------------------------------


def approved(ledger: Ledger, actor: Actor = OPERATOR) -> Event:
    """One more approval by somebody, and its event."""
    ticket = asked(ledger)
    ledger.approve(ticket.task, actor=actor)
    return last(ledger, ticket.task)


def accepted(ledger: Ledger, actor: Actor = OPERATOR) -> Event:
    """One more acceptance by somebody, and its event."""
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    ledger.review(task.id, accept=True, actor=actor, reason="fine")
    return last(ledger, task.id)


@pytest.mark.criterion("D11")
@pytest.mark.parametrize("yes", [approved, accepted])
def test_the_sixth_yes_within_a_minute_is_flagged_and_the_twenty_first_refused(
    ledger: Ledger, yes: Callable[..., Event]
) -> None:
    other = accepted if yes is approved else approved
    for number in range(1, REFUSED_FROM):
        event = yes(ledger) if number % 2 else other(ledger)
        data = json.loads(event.data)
        assert data.get("mass") == (number if number >= FLAGGED_FROM else None)
        assert event.level is EventLevel.WARN, "each of them came at once"
    counts = ledger.counts()
    with pytest.raises(Refused, match="approve fewer, look at more") as caught:
        yes(ledger)
    assert caught.value.details["mass"] == REFUSED_FROM
    waiting = S.AWAITING_APPROVAL if yes is approved else S.NEEDS_REVIEW
    grown = {count.status for count in ledger.counts()} - {count.status for count in counts}
    assert grown == {waiting}, "what was refused still waits"
    assert "mass" not in json.loads(yes(ledger, Actor(Role.OPERATOR, "ben")).data)


@pytest.mark.criterion("D11")
def test_a_no_is_neither_counted_nor_refused(ledger: Ledger) -> None:
    for _ in range(FLAGGED_FROM):
        ledger.deny(asked(ledger).task, actor=OPERATOR, reason="no")
        task, _ = brought(ledger, S.NEEDS_REVIEW)
        ledger.review(task.id, accept=False, actor=OPERATOR, reason="no")
        assert last(ledger, task.id).level is EventLevel.INFO
    assert "mass" not in json.loads(approved(ledger).data)


@pytest.mark.criterion("D11")
def test_who_takes_their_time_is_not_flagged_and_a_minute_later_nothing_counts(
    made_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(made_url)
    store: Any = ledger.store
    now = 10**15
    monkeypatch.setattr(store, "clock", lambda: now)
    for _ in range(FLAGGED_FROM - 1):
        approved(ledger)
    ticket = asked(ledger)
    now += int(HASTY_SECONDS * 1e6) - 1
    ledger.approve(ticket.task, actor=OPERATOR)
    data = json.loads(last(ledger, ticket.task).data)
    assert data == {"digest": THIS, "mass": FLAGGED_FROM, "hasty": 2.0}
    now += int(COUNTED_SECONDS * 1e6)
    for status in (S.AWAITING_APPROVAL, S.NEEDS_REVIEW):
        task, _ = brought(ledger, status)
        now += int(HASTY_SECONDS * 1e6)
        if status is S.NEEDS_REVIEW:
            ledger.review(task.id, accept=True, actor=OPERATOR, reason="fine")
        else:
            ledger.approve(task.id, actor=OPERATOR)
        event = last(ledger, task.id)
        assert event.level is EventLevel.INFO
        assert not {"mass", "hasty"} & json.loads(event.data).keys()
    ledger.close()


def test_a_yes_that_is_sent_twice_is_counted_once(ledger: Ledger) -> None:
    ticket = asked(ledger)
    for _ in range(REFUSED_FROM):
        ledger.approve(ticket.task, actor=OPERATOR, key="once")
    assert "mass" not in json.loads(last(ledger, ticket.task).data)


@pytest.mark.criterion("D11")
def test_counting_a_persons_answers_uses_its_index(store_url: str, ledger: Ledger) -> None:
    store: Any = ledger.store
    query = store.queries["answers_given"]
    for given in (":actor", "%(actor)s"):
        query = query.replace(given, "'operator:ana'")
    for given in (":since", "%(since)s"):
        query = query.replace(given, "1")
    with raw_sql(store_url) as raw:
        if raw.dialect == "sqlite":
            plan = raw.do(f"EXPLAIN QUERY PLAN {query}")
        else:
            plan = raw.do("SET LOCAL enable_seqscan = off", f"EXPLAIN {query}")
    assert "events_answers" in str(plan), plan


# -- overrides --------------------------------------------------------------------------------


@pytest.mark.criterion("E19")
def test_an_override_says_in_the_history_what_it_went_against(ledger: Ledger) -> None:
    ticket = started(ledger, role="coder", qa=QaTerms(roles=("coder",)))
    declared(ledger, ticket)
    for outcome in (FindingOutcome.FAILED, FindingOutcome.PASSED):
        ledger.record(ticket, [finding(ledger, ticket, outcome)])
    terms = ledger.task(ticket.task).contract_digest
    unsure = Verdict(outcome=Outcome.INCONCLUSIVE, reason="?", digest=TREE, contract_digest=terms)
    ledger.judge(ticket, unsure)
    done = ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="it flaps")
    assert (done.status, done.overridden) == (S.SUCCEEDED, True)
    data = json.loads(last(ledger, ticket.task).data)
    assert (data["red"], data["skipped_qa"], data["verdict"]) == (["tests"], True, "passed")


def test_what_was_red_before_the_agent_came_is_not_overridden(ledger: Ledger) -> None:
    ticket = started(ledger)
    before = finding(ledger, ticket, FindingOutcome.FAILED, phase=Phase.BASELINE, digest=BASE)
    ledger.record(ticket, [before])
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.INCONCLUSIVE)
    done = ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="fine")
    assert not done.overridden
    assert "red" not in json.loads(last(ledger, ticket.task).data)


@pytest.mark.criterion("J12")
def test_the_reviews_of_a_task_are_those_of_this_task(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.PENDING_QA)
    brought(ledger, S.PENDING_QA)
    (review,) = ledger.reviews_of(task.id)
    assert (review.qa_of_key, review.status) == (task.key, S.QUEUED)
    assert ledger.reviews_of(review.id) == []
    with pytest.raises(NotFound):
        ledger.reviews_of("tsk_nowhere")
