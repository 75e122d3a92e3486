"""Every verb of the ledger that writes, ready to be done once: how to come there, and how to do it.

A trial is plain data, so that it can be prepared here and done in another process.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from tests.record.lives import (
    BASE,
    OPERATOR,
    TREE,
    S,
    agent_of,
    brought,
    contract,
    ended,
    finding,
    judged,
    opened,
    started,
)
from truegreen.contract import Budget
from truegreen.errors import Refused
from truegreen.facts import AgentKind, Child, Claim, Finding, Proof, Ticket, Verdict
from truegreen.model import (
    ClaimKind,
    ExitDetail,
    FindingOutcome,
    Level,
    Mode,
    Outcome,
    ProofStatus,
    Role,
)
from truegreen.record.ledger import Ledger, Overdue, Start
from truegreen.record.rows import Lease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truegreen.record.rows import Task

HOLDER = Start("torture", base_digest=BASE)
EXPIRED = Start("torture", base_digest=BASE, lease_seconds=0.0)
DONE = Claim(kind=ClaimKind.DONE, reason="done")


class Trial(msgspec.Struct, frozen=True):
    """One verb about one task, not yet done; it needs no look at the store any more."""

    verb: str
    task: str
    ticket: Ticket | None = None
    extra: str = ""
    digest: str = ""


def sure(ticket: Ticket | None) -> Ticket:
    """The ticket that a trial of a run must have."""
    assert ticket is not None
    return ticket


def at(status: S) -> Callable[[Ledger], Trial]:
    """A task in a status, with its latest ticket."""

    def setup(ledger: Ledger) -> Trial:
        task, ticket = brought(ledger, status)
        return Trial("", task.id, ticket)

    return setup


def last_chance(ledger: Ledger) -> Trial:
    """A task under check whose next failure is final."""
    ticket = started(ledger, budget=Budget(attempts=1))
    ledger.end_run(ticket, ended(), claim=DONE)
    return Trial("", ticket.task, ticket)


def found(ledger: Ledger) -> Trial:
    """A task under check whose findings carry a pass."""
    trial = at(S.PENDING_EVAL)(ledger)
    ticket = sure(trial.ticket)
    ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.PASSED)])
    return trial


def assisted(ledger: Ledger) -> Trial:
    """A running task that asks before it does something grave."""
    ticket = started(ledger, mode=Mode.ASSISTED)
    return Trial("", ticket.task, ticket)


def half_ended(ledger: Ledger) -> Trial:
    """A run whose exit is written and not yet followed."""
    ticket = started(ledger)
    ledger.end_run(ticket, ended(), claim=DONE, move=False)
    return Trial("", ticket.task, ticket)


def manned(ledger: Ledger) -> Trial:
    """A running task with a registered agent."""
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR)
    ticket = started(ledger, agent_id=agent.id)
    return Trial("", ticket.task, ticket, agent.id)


def once_manned(ledger: Ledger) -> Trial:
    """A task that an agent left, and another one, queued, that the agent could take."""
    trial = manned(ledger)
    ledger.end_run(sure(trial.ticket), ended(), claim=DONE)
    return Trial("", trial.task, trial.ticket, f"{trial.extra} {opened(ledger).id}")


def silent(ledger: Ledger) -> Trial:
    """A run whose lease has run out."""
    ticket = ledger.start(opened(ledger).id, EXPIRED)
    return Trial("", ticket.task, ticket)


def in_qa(ledger: Ledger) -> Trial:
    """A task under QA; the ticket is the review's."""
    task, _ = brought(ledger, S.PENDING_QA)
    (review,) = [each.id for each in ledger.page().tasks if each.qa_of_key == task.key]
    return Trial("", task.id, ledger.start(review, HOLDER))


def waiting(ledger: Ledger) -> Trial:
    """A task with an item in the inbox."""
    ticket = started(ledger, title=f"wait {os.urandom(8).hex()}")
    ledger.end_run(ticket, ended(ExitDetail.REFUSED))
    (item,) = [w.item.id for w in ledger.inbox(limit=1000) if w.task == ticket.task]
    return Trial("", ticket.task, ticket, item)


def with_token(ledger: Ledger) -> Trial:
    """A running task whose agent has a token."""
    ticket = started(ledger)
    token, _ = ledger.mint_token(Role.AGENT, "agent", actor=OPERATOR, ticket=ticket)
    return Trial("", ticket.task, ticket, token.id)


def about_to_wake(ledger: Ledger) -> Trial:
    """A blocked task whose agent has a wake-up that is due."""
    trial = manned(ledger)
    ledger.end_run(sure(trial.ticket), ended(ExitDetail.REFUSED))
    wake = ledger.arm(trial.extra, "go on", actor=OPERATOR)
    return Trial("", trial.task, trial.ticket, f"{trial.extra} {wake.id}")


def queued_to_wake(ledger: Ledger) -> Trial:
    """The same, and its task is queued for it."""
    trial = about_to_wake(ledger)
    ledger.wake(trial.extra.split()[1])
    return trial


def with_mail(ledger: Ledger) -> Trial:
    """A running task whose agent has a message to read."""
    trial = manned(ledger)
    ledger.send(trial.extra, "hello", actor=OPERATOR)
    return trial


def _start_woken(ledger: Ledger, trial: Trial) -> Any:
    agent, wake = trial.extra.split()
    return ledger.start(trial.task, HOLDER._replace(agent=agent, wake=wake))


def _converse(ledger: Ledger, trial: Trial) -> Any:
    child = Child(AgentKind.SUBAGENT, "inside")
    return ledger.converse(sure(trial.ticket), session=f"of {trial.task}", children=[child])


def found_by(
    trial: Trial, outcome: FindingOutcome = FindingOutcome.PASSED, kind: str = "run"
) -> Finding:
    """A check's answer about what the run left."""
    return Finding(
        check="tests",
        kind=kind,
        outcome=outcome,
        before=FindingOutcome.FAILED,
        reason="3 of 3",
        digest=TREE,
        contract_digest=trial.digest,
        judge="truegreen",
        level=Level.A2,
        evidence={"evidence": [{"artifact": "all of it", "saw": "that it works"}]},
    )


def concluded(trial: Trial, outcome: Outcome) -> Verdict:
    """A conclusion about what the run left."""
    passed = outcome is Outcome.PASSED
    return Verdict(
        outcome=outcome,
        reason="gates",
        digest=TREE,
        contract_digest=trial.digest,
        level=Level.A2,
        proof=Proof(ProofStatus.SHOWN, ("gate:tests",)) if passed else Proof(),
    )


def _claim(ledger: Ledger, trial: Trial) -> Any:
    """Claim whatever is there; done only if this task is among it."""
    tickets = ledger.claim_next(HOLDER, limit=1000)
    if trial.task not in {ticket.task for ticket in tickets}:
        raise Refused("nothing was claimed")
    return tickets


def overdue_of(trial: Trial) -> Overdue:
    """What `overdue` said before the trial; the run may be gone from it by now."""
    ticket = sure(trial.ticket)
    lease = Lease(0, ticket.lease, "torture", "", 0, "{}")
    return Overdue(ticket.task, ticket.run, S.RUNNING, ticket.fence, lease)


VERBS: dict[str, tuple[Callable[[Ledger], Trial], Callable[[Ledger, Trial], Any]]] = {
    "start": (at(S.QUEUED), lambda book, t: book.start(t.task, HOLDER)),
    "claim_next": (at(S.QUEUED), _claim),
    "start_with_agent": (
        once_manned,
        lambda book, t: book.start(t.extra.split()[1], HOLDER._replace(agent=t.extra.split()[0])),
    ),
    "seen": (at(S.RUNNING), lambda book, t: book.seen(sure(t.ticket))),
    "heartbeat": (at(S.RUNNING), lambda book, t: book.heartbeat(sure(t.ticket))),
    "declare": (
        at(S.RUNNING),
        lambda book, t: book.declare(sure(t.ticket), DONE, actor=agent_of(sure(t.ticket))),
    ),
    "charge": (at(S.RUNNING), lambda book, t: book.charge(sure(t.ticket), "reentries", limit=9)),
    "end_run": (at(S.RUNNING), lambda book, t: book.end_run(sure(t.ticket), ended(), claim=DONE)),
    "crash": (
        at(S.RUNNING),
        lambda book, t: book.end_run(sure(t.ticket), ended(ExitDetail.SIGNALED)),
    ),
    "settle": (half_ended, lambda book, t: book.settle(sure(t.ticket))),
    "record": (
        at(S.PENDING_EVAL),
        lambda book, t: book.record(sure(t.ticket), [found_by(t)]),
    ),
    "judge": (
        found,
        lambda book, t: book.judge(sure(t.ticket), concluded(t, Outcome.PASSED)),
    ),
    "judge_red": (
        last_chance,
        lambda book, t: book.judge(sure(t.ticket), concluded(t, Outcome.FAILED)),
    ),
    "judge_again": (
        at(S.PENDING_EVAL),
        lambda book, t: book.judge(sure(t.ticket), concluded(t, Outcome.FAILED)),
    ),
    "record_qa": (in_qa, lambda book, t: book.record_qa(sure(t.ticket), found_by(t, kind="qa"))),
    "pause": (
        assisted,
        lambda book, t: book.checkpoint(sure(t.ticket), "push", actor=agent_of(sure(t.ticket))),
    ),
    "checkpoint": (
        at(S.RUNNING),
        lambda book, t: book.checkpoint(sure(t.ticket), "push", actor=agent_of(sure(t.ticket))),
    ),
    "approve": (at(S.AWAITING_APPROVAL), lambda book, t: book.approve(t.task, actor=OPERATOR)),
    "deny": (
        at(S.AWAITING_APPROVAL),
        lambda book, t: book.deny(t.task, actor=OPERATOR, reason="no"),
    ),
    "unblock": (
        at(S.BLOCKED),
        lambda book, t: book.unblock(t.task, actor=OPERATOR, reason="go on"),
    ),
    "retry": (
        at(S.NEEDS_REVIEW),
        lambda book, t: book.retry(t.task, actor=OPERATOR, reason="again"),
    ),
    "reopen": (
        at(S.FAILED),
        lambda book, t: book.retry(t.task, actor=OPERATOR, reason="again"),
    ),
    "accept": (
        at(S.NEEDS_REVIEW),
        lambda book, t: book.review(t.task, accept=True, actor=OPERATOR, reason="fine"),
    ),
    "reject": (
        at(S.NEEDS_REVIEW),
        lambda book, t: book.review(t.task, accept=False, actor=OPERATOR, reason="not fine"),
    ),
    "cancel": (at(S.RUNNING), lambda book, t: book.cancel(t.task, actor=OPERATOR)),
    "send": (manned, lambda book, t: book.send(t.extra, "hello", actor=OPERATOR)),
    "send_to_wake": (
        manned,
        lambda book, t: book.send(t.extra, "wake up", actor=OPERATOR, wake=True),
    ),
    "arm": (once_manned, lambda book, t: book.arm(t.extra.split()[0], actor=OPERATOR)),
    "wake": (about_to_wake, lambda book, t: book.wake(t.extra.split()[1])),
    "start_woken": (queued_to_wake, _start_woken),
    "deliver": (with_mail, lambda book, t: book.deliver(sure(t.ticket))),
    "adopt": (silent, lambda book, t: book.adopt(overdue_of(t), holder="other")),
    "lose": (silent, lambda book, t: book.lose(overdue_of(t))),
    "mint_token": (
        at(S.RUNNING),
        lambda book, t: book.mint_token(Role.AGENT, "a", actor=OPERATOR, ticket=t.ticket),
    ),
}
"""Verbs that concern a task or its agents, and must be refused once it is terminated."""

OTHERS: dict[str, tuple[Callable[[Ledger], Trial], Callable[[Ledger, Trial], Any]]] = {
    "open": (
        lambda book: Trial("", opened(book).id),
        lambda book, _: book.open(contract(), actor=OPERATOR),
    ),
    "register": (
        manned,
        lambda book, t: book.register_agent("kid", "sha256:2", actor=OPERATOR, parent=t.extra),
    ),
    "converse": (manned, _converse),
    "trip": (
        at(S.TERMINATED),
        lambda book, t: book.trip(sure(t.ticket).run, kind="push", detail="a push"),
    ),
    "call_off": (
        about_to_wake,
        lambda book, t: book.call_off(t.extra.split()[1], "later", actor=OPERATOR),
    ),
    "revoke": (with_token, lambda book, t: book.revoke_token(t.extra, actor=OPERATOR)),
    "ack": (waiting, lambda book, t: book.ack(t.extra, actor=OPERATOR)),
    "snooze": (waiting, lambda book, t: book.snooze(t.extra, seconds=60, actor=OPERATOR)),
    "resolve": (waiting, lambda book, t: book.resolve(t.extra, outcome="ok", actor=OPERATOR)),
    "terminate": (at(S.RUNNING), lambda book, t: book.terminate(t.task, actor=OPERATOR)),
    "seal": (at(S.SUCCEEDED), lambda book, t: book.terminate(t.task, actor=OPERATOR)),
    "terminate_agent": (manned, lambda book, t: book.terminate_agent(t.extra, actor=OPERATOR)),
}
"""Verbs that stay possible, and must do no harm."""

EVERY = VERBS | OTHERS


def prepared(ledger: Ledger, verb: str) -> Trial:
    """Bring a task to where a verb is due."""
    trial = EVERY[verb][0](ledger)
    digest = ledger.task(trial.task).contract_digest
    return msgspec.structs.replace(trial, verb=verb, digest=digest)


def done(ledger: Ledger, trial: Trial) -> Any:
    """Do it."""
    return EVERY[trial.verb][1](ledger, trial)


def living(ledger: Ledger, number: int) -> Iterator[Task]:
    """One of several short lives: the task after each verb that answered."""
    # Each has its own definition: many that fail alike would hold one another back.
    task = opened(ledger, title=f"life {number}", command=(f"life-{number}",))
    yield task
    ticket = ledger.start(task.id, EXPIRED)
    yield ledger.seen(ticket)
    if number % 4 == 3:
        yield ledger.cancel(task.id, actor=OPERATOR)
        return
    yield ledger.end_run(ticket, ended(), claim=DONE)
    outcome = (Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE)[number % 4 % 3]
    yield judged(ledger, ticket, outcome)
