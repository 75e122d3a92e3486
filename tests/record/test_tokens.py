"""Tokens, and who may use which verb: the table of roles, held verb by verb."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import (
    OPERATOR,
    S,
    agent_of,
    brought,
    contract,
    declared,
    ended,
    finding,
    opened,
    started,
    verdict,
)
from truegreen.contract import Alerts, Breakers
from truegreen.errors import Forbidden, InvalidInput, NotFound, Refused, Unauthenticated
from truegreen.facts import SYSTEM, Actor, Claim, JobWord, Ticket
from truegreen.model import ClaimKind, ExitDetail, FindingOutcome, Note, Outcome, Role
from truegreen.record.ledger import Ledger, Start, open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from truegreen.record.rows import Event

FREE = (Role.LEAD, Role.OPERATOR, Role.VIEWER)
BOUND = (Role.AGENT, Role.JUDGE)


def house(ledger: Ledger) -> Event:
    return ledger.house_events()[-1].event


@pytest.mark.criterion("O05", "C04")
@pytest.mark.parametrize("role", [*FREE, *BOUND])
def test_a_token_is_known_by_its_secret_alone_and_the_secret_is_not_kept(
    ledger: Ledger, role: Role
) -> None:
    ticket = started(ledger) if role in BOUND else None
    token, secret = ledger.mint_token(role, "ana", actor=OPERATOR, ticket=ticket)
    assert secret.startswith(f"tg_{role}_")
    assert len(secret) > 45
    actor = ledger.authenticate(secret)
    assert (actor.role, actor.name) == (role, "ana")
    assert (actor.run, actor.fence) == ((ticket.run, ticket.fence) if ticket else (None, None))
    event = house(ledger)
    assert (event.event, event.actor) == (Note.TOKEN, "operator:ana")
    assert json.loads(event.data)["created"] == token.id
    listed = ledger.tokens(of_runs=ticket is not None)
    assert [each.id for each in listed] == [token.id]
    kept = repr(listed) + repr(ledger.house_events())
    assert secret not in kept
    assert hashlib.sha256(secret.encode()).hexdigest() not in kept
    for wrong in (secret[:-1], secret + "x", secret.swapcase(), "", "tg_operator_", "\udcff\0"):
        with pytest.raises(Unauthenticated):
            ledger.authenticate(wrong)


@pytest.mark.criterion("C16", "C21", "O05")
def test_a_revoked_token_is_dead_at_once_and_revoking_again_changes_nothing(
    ledger: Ledger,
) -> None:
    token, secret = ledger.mint_token(Role.LEAD, "bob", actor=OPERATOR)
    dead = ledger.revoke_token(token.id, actor=OPERATOR, reason="lost")
    assert dead == ledger.tokens()[0]
    assert dead.revoked_at is not None
    assert (house(ledger).reason, json.loads(house(ledger).data)) == (
        "lost",
        {"revoked": token.id},
    )
    written = ledger.house_events()
    assert ledger.revoke_token(token.id, actor=OPERATOR) == dead
    assert ledger.house_events() == written
    with pytest.raises(Unauthenticated, match="revoked"):
        ledger.authenticate(secret)
    with pytest.raises(NotFound):
        ledger.revoke_token("tok_nowhere", actor=OPERATOR)


def test_tokens_expire_by_the_stores_clock(made_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_ledger(made_url)
    store: Any = ledger.store
    now = 10**15
    monkeypatch.setattr(store, "clock", lambda: now)
    token, secret = ledger.mint_token(Role.LEAD, "bob", actor=OPERATOR, seconds=60)
    assert token.expires_at == now + 60_000_000
    now += 59_999_999
    assert ledger.authenticate(secret).name == "bob"
    now += 1
    with pytest.raises(Unauthenticated, match="expired"):
        ledger.authenticate(secret)
    ledger.close()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e300])
def test_a_token_lives_for_a_finite_while(ledger: Ledger, seconds: float) -> None:
    with pytest.raises(InvalidInput):
        ledger.mint_token(Role.LEAD, "bob", actor=OPERATOR, seconds=seconds)
    assert ledger.tokens() == []


@pytest.mark.criterion("O01", "G20")
def test_tokens_of_agents_and_judges_end_with_their_fence(ledger: Ledger) -> None:
    ticket = started(ledger)
    secrets = [
        ledger.mint_token(role, "x", actor=SYSTEM, ticket=ticket, seconds=3600)[1] for role in BOUND
    ]
    ledger.end_run(ticket, ended(ExitDetail.SIGNALED))
    started(ledger, ticket.task)
    for secret in secrets:
        with pytest.raises(Unauthenticated):
            ledger.authenticate(secret)
    for end in ("cancel", "terminate"):
        other = started(ledger)
        secret = ledger.mint_token(Role.AGENT, "x", actor=SYSTEM, ticket=other)[1]
        getattr(ledger, end)(other.task, actor=OPERATOR)
        with pytest.raises(Refused):
            ledger.authenticate(secret)
        with pytest.raises(Refused):
            ledger.mint_token(Role.AGENT, "x", actor=SYSTEM, ticket=other)


def test_roles_and_runs_belong_together(ledger: Ledger) -> None:
    ticket = started(ledger)
    for role in BOUND:
        with pytest.raises(InvalidInput, match="bound to a run"):
            ledger.mint_token(role, "x", actor=OPERATOR)
    for role in FREE:
        with pytest.raises(InvalidInput, match="bound to a run"):
            ledger.mint_token(role, "x", actor=OPERATOR, ticket=ticket)
    with pytest.raises(InvalidInput, match="system"):
        ledger.mint_token(Role.SYSTEM, "x", actor=OPERATOR)
    assert ledger.tokens() + ledger.tokens(of_runs=True) == []


# -- who may do what ---------------------------------------------------------------------------

AGENT, JUDGE, LEAD_, OPER, SYS = Role.AGENT, Role.JUDGE, Role.LEAD, Role.OPERATOR, Role.SYSTEM
T = "tsk_nowhere"
ROLES: dict[str, tuple[set[Role], Callable[[Ledger, Actor, Ticket], object]]] = {
    # control.md §5; system is truegreen itself
    "open": ({LEAD_, OPER, SYS}, lambda g, a, _: g.open(contract(), actor=a, parent=T)),
    "start": ({OPER, SYS}, lambda g, a, _: g.start(T, Start("x"), actor=a)),
    "claim_next": ({OPER, SYS}, lambda g, a, _: g.claim_next(Start("x", agent=T), actor=a)),
    "seen": ({SYS}, lambda g, a, t: g.seen(t, actor=a)),
    "declare": ({AGENT, SYS}, lambda g, a, t: g.declare(t, Claim(kind=ClaimKind.DONE), actor=a)),
    "charge": ({SYS}, lambda g, a, t: g.charge(t, "reentries", limit=1, actor=a)),
    "end_run": ({SYS}, lambda g, a, t: g.end_run(t, ended(), actor=a)),
    "settle": ({SYS}, lambda g, a, t: g.settle(t, actor=a)),
    "tell": ({SYS}, lambda g, a, t: g.tell(t, {}, actor=a)),
    "record": ({JUDGE, SYS}, lambda g, a, t: g.record(t, [_found()], actor=a)),
    "record_qa": ({JUDGE, SYS}, lambda g, a, t: g.record_qa(t, _found(), actor=a)),
    "judge": ({SYS}, lambda g, a, t: g.judge(t, _verdict(), actor=a)),
    "reconcile": ({SYS}, lambda g, a, _: g.reconcile(actor=a)),
    "expire_reviews": ({SYS}, lambda g, a, _: g.expire_reviews(actor=a)),
    "review": ({OPER}, lambda g, a, _: g.review(T, accept=True, actor=a, reason="x")),
    "reject": ({OPER}, lambda g, a, _: g.review(T, accept=False, actor=a, reason="x")),
    "checkpoint": ({AGENT, SYS}, lambda g, a, t: g.checkpoint(t, "push", actor=a)),
    "approve": ({OPER}, lambda g, a, _: g.approve(T, actor=a)),
    "deny": ({OPER, SYS}, lambda g, a, _: g.deny(T, actor=a, reason="x")),
    "unblock": ({OPER}, lambda g, a, _: g.unblock(T, actor=a, reason="x")),
    "retry": ({OPER}, lambda g, a, _: g.retry(T, actor=a, reason="x")),
    "hold": ({LEAD_, OPER, SYS}, lambda g, a, _: g.hold(T, ["human"], actor=a)),
    "announce": ({AGENT, LEAD_, OPER, SYS}, lambda g, a, _: g.announce(T, actor=a)),
    "see_file": (
        {SYS},
        lambda g, a, _: g.see_file("cnd_x", host="x", size=1, changed_at=1, actor=a),
    ),
    "waive": ({OPER}, lambda g, a, _: g.waive(T, "x", actor=a, reason="x")),
    "cancel": ({LEAD_, OPER}, lambda g, a, _: g.cancel(T, actor=a)),
    "ask_stop": ({LEAD_, OPER}, lambda g, a, _: g.ask_stop(T, actor=a)),
    "recheck": ({OPER}, lambda g, a, _: g.recheck(T, holder="x", actor=a)),
    "terminate": ({LEAD_, OPER}, lambda g, a, _: g.terminate(T, actor=a)),
    "terminate_agent": ({LEAD_, OPER}, lambda g, a, _: g.terminate_agent(T, actor=a)),
    "heartbeat": ({SYS}, lambda g, a, t: g.heartbeat(t, actor=a)),
    "register_agent": (
        {LEAD_, OPER, SYS},
        lambda g, a, _: g.register_agent("x", "y", actor=a, parent=T),
    ),
    "send": ({AGENT, LEAD_, OPER, SYS}, lambda g, a, _: g.send(T, "hi", actor=a)),
    "arm": ({LEAD_, OPER, SYS}, lambda g, a, _: g.arm(T, actor=a)),
    "wake": ({SYS}, lambda g, a, _: g.wake(T, actor=a)),
    "call_off": ({LEAD_, OPER, SYS}, lambda g, a, _: g.call_off(T, "later", actor=a)),
    "reserve": ({OPER, SYS}, lambda g, a, _: g.reserve(T, "x", actor=a)),
    "take_due": ({OPER, SYS}, lambda g, a, _: g.take_due("x", list, actor=a)),
    "release": ({OPER, SYS}, lambda g, a, _: g.release(T, "x", actor=a)),
    "enlist": ({OPER, SYS}, lambda g, a, _: g.enlist("x", "x", actor=a)),
    "dismiss": ({OPER, SYS}, lambda g, a, _: g.dismiss("x", actor=a)),
    "release_silent": ({OPER, SYS}, lambda g, a, _: g.release_silent(actor=a)),
    "terminate_idle_agents": ({OPER}, lambda g, a, _: g.terminate_idle_agents(actor=a)),
    "deliver": ({AGENT, SYS}, lambda g, a, t: g.deliver(t, actor=a)),
    "converse": ({SYS}, lambda g, a, t: g.converse(t, session="x", actor=a)),
    "trip": ({SYS}, lambda g, a, t: g.trip(t.run, kind="push", detail="x", actor=a)),
    "freeze": ({OPER}, lambda g, a, _: g.freeze(actor=a, reason="")),
    "thaw": ({OPER}, lambda g, a, _: g.thaw(actor=a, reason="")),
    "mint_token": (
        {OPER, SYS},
        lambda g, a, t: g.mint_token(Role.AGENT, "x", actor=a, ticket=t),
    ),
    "revoke_token": ({OPER, SYS}, lambda g, a, _: g.revoke_token(T, actor=a)),
    "ack": ({OPER}, lambda g, a, _: g.ack(T, actor=a)),
    "snooze": ({OPER}, lambda g, a, _: g.snooze(T, seconds=60, actor=a)),
    "resolve": ({OPER}, lambda g, a, _: g.resolve(T, outcome="x", actor=a)),
    "post_again": ({OPER}, lambda g, a, _: g.post_again(T, actor=a)),
    "drop_posts": ({OPER}, lambda g, a, _: g.drop_posts(T, actor=a)),
    "raise_alerts": ({SYS}, lambda g, a, _: g.raise_alerts(Alerts(), actor=a)),
    "keep_pin": ({OPER, SYS}, lambda g, a, _: g.keep_pin("\0", {}, actor=a)),
    "keep_terms": ({OPER, SYS}, lambda g, a, _: g.keep_terms("\0", Breakers(), (), actor=a)),
    "close_breaker": ({OPER}, lambda g, a, _: g.close_breaker(T, actor=a, reason="x")),
    "hear_probes": ({SYS}, lambda g, a, _: g.hear_probes(actor=a)),
    "say_spent": ({SYS}, lambda g, a, _: g.say_spent(actor=a)),
    "doubt": ({OPER, SYS}, lambda g, a, t: g.doubt(t.run, "x", "y", actor=a)),
    "mint_login": ({OPER, SYS}, lambda g, a, _: g.mint_login(Role.LEAD, "x", actor=a)),
    "attach": ({AGENT, SYS}, lambda g, a, t: g.attach(t, "x", "0" * 64, 1, actor=a)),
    "take_routines": ({OPER, SYS}, lambda g, a, _: g.take_routines("\0", (), actor=a)),
    "tend_routine": ({SYS}, lambda g, a, _: g.tend_routine(T, actor=a)),
    "realign_routines": ({SYS}, lambda g, a, _: g.realign_routines(actor=a)),
    "run_routine": ({Role.LEAD, OPER, SYS}, lambda g, a, _: g.run_routine(T, actor=a)),
    "pause_routine": ({OPER}, lambda g, a, _: g.pause_routine(T, actor=a)),
    "resume_routine": ({OPER}, lambda g, a, _: g.resume_routine(T, actor=a)),
    "alive": ({AGENT, SYS}, lambda g, a, t: g.alive(t, actor=a)),
    "order_job": ({OPER, SYS}, lambda g, a, _: g.order_job(T, "slurm", actor=a)),
    "place_job": ({OPER, SYS}, lambda g, a, _: g.place_job(T, "42", actor=a)),
    "see_job": ({OPER, SYS}, lambda g, a, _: g.see_job(T, JobWord.GONE, actor=a)),
    "take_job": ({OPER, SYS}, lambda g, a, _: g.take_job(T, T, "x", actor=a)),
    "lose_job": ({OPER, SYS}, lambda g, a, _: g.lose_job(T, "x", pauses=(0,), actor=a)),
    "close_job": ({OPER, SYS}, lambda g, a, _: g.close_job(T, "x", actor=a)),
}


NOTHING_TO_DO = (
    *(
        "claim_next",
        "reconcile",
        "expire_reviews",
        "reserve",
        "release",
        "take_due",
        "terminate_idle_agents",
    ),
    "drop_posts",
    "realign_routines",
    "raise_alerts",
    *("drop_posts", "hear_probes", "say_spent"),
    *("enlist", "dismiss", "release_silent"),
)
"""Verbs that find for themselves what they are about; in an empty store there is nothing."""


def _refused(act: Callable[..., object], *given: object) -> Refused | None:
    try:
        act(*given)
    except Refused as error:
        return error
    return None


def _found() -> Any:
    from truegreen.facts import Finding  # noqa: PLC0415 - one use

    return Finding(
        check="tests",
        kind="run",
        outcome=FindingOutcome.PASSED,
        reason="",
        digest="d",
        contract_digest="c",
        judge="j",
    )


def _verdict() -> Any:
    from truegreen.facts import Verdict  # noqa: PLC0415 - one use

    return Verdict(outcome=Outcome.PASSED, reason="", digest="d", contract_digest="c")


@pytest.mark.criterion("O01", "O03", "D06", "D09", "F17", "G23", "J22", "I02")
def test_every_verb_refuses_every_role_that_may_not(ledger: Ledger) -> None:
    nowhere = Ticket("tsk_nowhere", "run_nowhere", 1, "lease")
    for verb, (allowed, act) in ROLES.items():
        for role in Role:
            actor = Actor(role, "x", nowhere.run, nowhere.fence)
            error = _refused(act, ledger, actor, nowhere)
            assert isinstance(error, Forbidden) == (role not in allowed), (verb, role)
            if isinstance(error, Forbidden):
                assert set(error.allowed) == {str(each) for each in allowed}, verb
            else:
                assert error or verb in NOTHING_TO_DO, (verb, role)
    assert ledger.page().tasks == []
    assert ledger.house_events() == []


@pytest.mark.criterion("O01")
def test_the_table_names_every_verb_of_the_ledger(ledger: Ledger) -> None:
    writes = {
        name for name in dir(ledger) if not name.startswith("_") and callable(getattr(ledger, name))
    }
    reads = {
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
        ),
        *("events", "feed", "latest_events", "house_events", "agent", "agents", "messages"),
        *(
            "inbox",
            "tokens",
            "overdue",
            "owned",
            *("in_folder", "used_since", "last_run_key", "is_folder_free"),
            "standing",
            "claim",
            "audited",
            "answered",
            "authenticate",
            "claim_request",
            "close",
            "mark",
        ),
    }
    no_actor = {"lose", "lose_all", "adopt"}
    unknown = writes - reads - no_actor - set(ROLES)
    assert {n for n in unknown if "actor" in _arguments(ledger, n)} == set()


def _arguments(ledger: Ledger, name: str) -> tuple[str, ...]:
    code = getattr(getattr(ledger, name), "__code__", None)
    return code.co_varnames if code else ()


@pytest.mark.criterion("O01", "I02", "G23")
def test_the_agent_of_a_run_can_do_nothing_but_speak(ledger: Ledger) -> None:
    task, ticket = brought(ledger, S.RUNNING)
    assert ticket
    agent = agent_of(ticket)
    for verb, (allowed, act) in ROLES.items():
        if AGENT not in allowed:
            error = _refused(act, ledger, agent, ticket)
            assert isinstance(error, Forbidden), verb
    assert ledger.task(task.id) == task
    declared(ledger, ticket)
    with pytest.raises(Forbidden):
        ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.PASSED)], actor=agent)
    with pytest.raises(Forbidden):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED), actor=agent)
    opened(ledger)
    assert ledger.task(task.id).status is S.PENDING_EVAL
