"""What no caller should send: refused with a type, and nothing of it is half-written."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import (
    OPERATOR,
    agent_of,
    contract,
    declared,
    ended,
    finding,
    opened,
    started,
    verdict,
)
from truegreen.errors import InvalidInput, Refused
from truegreen.facts import Actor, Claim, Exit, Statement, Ticket
from truegreen.model import (
    ClaimKind,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Outcome,
    Role,
    RunStatus,
)
from truegreen.record.ledger import Ledger, Start

if TYPE_CHECKING:
    from collections.abc import Callable

TABLES = (
    *("tasks", "runs", "events", "claims", "findings", "agents", "messages", "tokens", "inbox"),
    *("leases", "charges", "house", "counters", "tallies"),
)
TORN = {"nul": "a\0b", "surrogate": "a\ud800b"}
HUGE = "x" * 20_000_000


def row_counts(ledger: Ledger) -> dict[str, Any]:
    """How many rows every table has, and how far every task is, by another connection."""
    url = ledger.store.url
    counts = {table: f"SELECT count(*) FROM {table}" for table in TABLES}
    counts["revisions"] = "SELECT sum(revision) FROM tasks"
    if ledger.store.dialect == "sqlite":
        import apsw  # noqa: PLC0415 - one of the two

        connection: Any = apsw.Connection(url.removeprefix("sqlite://"))
    else:
        import psycopg  # noqa: PLC0415 - the other

        connection = psycopg.connect(url, autocommit=True)
    try:
        return {name: connection.execute(sql).fetchone()[0] for name, sql in counts.items()}
    finally:
        connection.close()


class Scene:
    """A ledger with something of everything to do wrong things to."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.queued = opened(ledger).id
        self.agent = ledger.register_agent("a", "sha256:1", actor=OPERATOR).id
        self.running = started(ledger)
        self.ended = started(ledger)
        declared(ledger, self.ended)
        blocked = started(ledger)
        ledger.end_run(blocked, ended(ExitDetail.REFUSED))
        self.blocked = blocked.task
        self.item = ledger.inbox()[0].item.id

    def adopt(self, holder: str) -> object:
        self.ledger.heartbeat(self.running, lease_seconds=-1)
        return self.ledger.adopt(self.ledger.overdue()[0], holder=holder)

    def find(self, **more: Any) -> Any:
        good = finding(self.ledger, self.ended, FindingOutcome.PASSED)
        fields = {name: getattr(good, name) for name in good.__struct_fields__}
        return type(good)(**{**fields, **more})

    def exit(self, **more: Any) -> Exit:
        good = ended()
        fields = {name: getattr(good, name) for name in good.__struct_fields__}
        return Exit(**{**fields, **more})

    def verdict(self, **more: Any) -> Any:
        good = verdict(self.ledger, self.ended, Outcome.FAILED)
        fields = {name: getattr(good, name) for name in good.__struct_fields__}
        return type(good)(**{**fields, **more})


TEXTS: dict[str, Callable[[Scene, str], object]] = {
    "actor name": lambda s, x: s.ledger.cancel(s.queued, actor=Actor(Role.OPERATOR, x)),
    "actor of a claim": lambda s, x: s.ledger.declare(
        s.running,
        Claim(kind=ClaimKind.DONE),
        actor=Actor(Role.AGENT, x, s.running.run, s.running.fence),
    ),
    "cancel reason": lambda s, x: s.ledger.cancel(s.queued, actor=OPERATOR, reason=x),
    "terminate reason": lambda s, x: s.ledger.terminate(s.queued, actor=OPERATOR, reason=x),
    "unblock reason": lambda s, x: s.ledger.unblock(s.blocked, actor=OPERATOR, reason=x),
    "key": lambda s, x: s.ledger.open(contract(), actor=OPERATOR, key=x),
    "key of a cancel": lambda s, x: s.ledger.cancel(s.queued, actor=OPERATOR, key=x),
    "holder": lambda s, x: s.ledger.start(s.queued, Start(x)),
    "isolation": lambda s, x: s.ledger.start(s.queued, Start("h", isolation=x)),
    "base digest": lambda s, x: s.ledger.start(s.queued, Start("h", base_digest=x)),
    "claim reason": lambda s, x: s.ledger.declare(
        s.running, Claim(kind=ClaimKind.DONE, reason=x), actor=agent_of(s.running)
    ),
    "claim source": lambda s, x: s.ledger.declare(
        s.running, Claim(kind=ClaimKind.DONE, source=x), actor=agent_of(s.running)
    ),
    "exit message": lambda s, x: s.ledger.end_run(s.running, s.exit(message=x)),
    "exit digest": lambda s, x: s.ledger.end_run(s.running, s.exit(digest=x)),
    "checkpoint": lambda s, x: s.ledger.checkpoint(s.running, x, actor=agent_of(s.running)),
    "charge subject": lambda s, x: s.ledger.charge(s.running, "reentries", limit=3, subject=x),
    "check name": lambda s, x: s.ledger.record(s.ended, [s.find(check=x)]),
    "finding kind": lambda s, x: s.ledger.record(s.ended, [s.find(kind=x)]),
    "finding reason": lambda s, x: s.ledger.record(s.ended, [s.find(reason=x)]),
    "finding judge": lambda s, x: s.ledger.record(s.ended, [s.find(judge=x)]),
    "finding judged": lambda s, x: s.ledger.record(s.ended, [s.find(judged=x)]),
    "finding isolation": lambda s, x: s.ledger.record(s.ended, [s.find(isolation=x)]),
    "finding digest": lambda s, x: s.ledger.record(s.ended, [s.find(digest=x)]),
    "verdict reason": lambda s, x: s.ledger.judge(s.ended, s.verdict(reason=x)),
    "verdict digest": lambda s, x: s.ledger.judge(s.ended, s.verdict(digest=x)),
    "agent name": lambda s, x: s.ledger.register_agent(x, "d", actor=OPERATOR),
    "agent definition": lambda s, x: s.ledger.register_agent("n", x, actor=OPERATOR),
    "agent session": lambda s, x: s.ledger.register_agent("n", "d", session=x, actor=OPERATOR),
    "message": lambda s, x: s.ledger.send(s.agent, x, actor=OPERATOR),
    "message key": lambda s, x: s.ledger.send(s.agent, "hi", actor=OPERATOR, key=x),
    "token name": lambda s, x: s.ledger.mint_token(Role.LEAD, x, actor=OPERATOR),
    "outcome": lambda s, x: s.ledger.resolve(s.item, outcome=x, actor=OPERATOR),
    "adopting holder": lambda s, x: s.adopt(x),
}
INSIDE: dict[str, Callable[[Scene, str], object]] = {
    # text inside JSON
    "facts": lambda s, x: s.ledger.start(s.queued, Start("h", facts={"x": x})),
    "claim extra": lambda s, x: s.ledger.declare(
        s.running, Claim(kind=ClaimKind.DONE, extra={"x": x}), actor=agent_of(s.running)
    ),
    "statements": lambda s, x: s.ledger.declare(
        s.running, Claim(kind=ClaimKind.DONE, statements=(Statement(x),)), actor=agent_of(s.running)
    ),
    "evidence": lambda s, x: s.ledger.record(s.ended, [s.find(evidence={"log": x})]),
    "counts": lambda s, x: s.ledger.record(s.ended, [s.find(counts={x: 1})]),
    "process": lambda s, x: s.ledger.heartbeat(s.running, process={"x": x}),
}


def mistaken(act: Callable[[], object]) -> str:
    """How a verb took what it should refuse; empty when it refused it."""
    try:
        act()
    except Refused:
        return ""
    except Exception as error:  # noqa: BLE001 - anything else is the defect
        return f"{type(error).__name__}: {str(error)[:100]}"
    return "accepted"


def all_mistaken(
    ledger: Ledger, acts: dict[str, Callable[[Scene, Any], object]], given: object
) -> list[str]:
    """The verbs that do not refuse what is given to them, or refuse it and leave rows behind."""
    scene = Scene(ledger)
    wrong: list[str] = []
    for name, act in acts.items():
        before = row_counts(ledger)
        how = mistaken(partial(act, scene, given))
        if not how and row_counts(ledger) != before:
            how = "left rows behind"
        if how:
            wrong.append(f"{name}: {how}")
            scene = Scene(ledger)
    return wrong


@pytest.mark.criterion("O08", "M04", "A08")
@pytest.mark.parametrize("torn", TORN)
def test_torn_text_is_refused_everywhere_and_leaves_nothing(ledger: Ledger, torn: str) -> None:
    assert all_mistaken(ledger, TEXTS, TORN[torn]) == []


@pytest.mark.criterion("O08", "A08")
@pytest.mark.parametrize("where", INSIDE)
def test_text_inside_json_is_kept_or_refused_but_never_breaks(ledger: Ledger, where: str) -> None:
    scene = Scene(ledger)
    for text in ("a\ud800b", HUGE):
        before = row_counts(ledger)
        with pytest.raises(Refused):
            INSIDE[where](scene, text)
        assert row_counts(ledger) == before
    INSIDE[where](scene, "a\0b")  # JSON can say a NUL: it is data like any other


LIMITED = [name for name in TEXTS if name not in ("finding digest", "verdict digest")]


@pytest.mark.criterion("O08")
def test_texts_have_limits(ledger: Ledger) -> None:
    scene = Scene(ledger)
    unlimited: list[str] = []
    for name in LIMITED:
        before = row_counts(ledger)
        try:
            TEXTS[name](scene, "ü" * 200_000)
        except InvalidInput:
            assert row_counts(ledger) == before, name
        else:
            unlimited.append(name)
            scene = Scene(ledger)
    assert unlimited == []


def test_text_at_its_limit_is_kept(ledger: Ledger) -> None:
    scene = Scene(ledger)
    reason = "ü" * 2048
    ledger.cancel(scene.queued, actor=OPERATOR, reason=reason)
    assert ledger.events(scene.queued)[-1].event.reason == reason
    with pytest.raises(InvalidInput):
        ledger.unblock(scene.blocked, actor=OPERATOR, reason=reason + "x")
    body = "😀" * 16384
    assert ledger.send(scene.agent, body, actor=OPERATOR).body == body
    with pytest.raises(InvalidInput):
        ledger.send(scene.agent, body + "x", actor=OPERATOR)


@pytest.mark.criterion("F09")
def test_what_is_no_score_is_refused(ledger: Ledger) -> None:
    ticket = started(ledger)
    declared(ledger, ticket)
    before = row_counts(ledger)
    wrong: list[Any] = [float("nan"), float("inf"), -0.001, 1.001, 1.1, 70, "0.9", [1], {}]
    for score in wrong:
        good = finding(ledger, ticket, FindingOutcome.PASSED)
        bad = finding(ledger, ticket, FindingOutcome.PASSED, score=score)
        with pytest.raises(InvalidInput):
            ledger.record(ticket, [good, bad])
    assert row_counts(ledger) == before


@pytest.mark.criterion("F06")
def test_scores_at_the_ends_are_kept(ledger: Ledger) -> None:
    ticket = started(ledger)
    declared(ledger, ticket)
    for score in (0, 0.0, 0.6999, 0.7, 1, 1.0, None):
        ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.PASSED, score=score)])
    assert [f.score for f in ledger.dossier(ticket.task).findings] == [
        *(0, 0.0, 0.6999, 0.7, 1, 1.0, None),
    ]


WORDS: dict[str, Callable[[Scene, Any], object]] = {
    "exit status": lambda s, x: s.ledger.end_run(s.running, s.exit(status=x)),
    "exit reason": lambda s, x: s.ledger.end_run(s.running, s.exit(reason=x)),
    "exit detail": lambda s, x: s.ledger.end_run(s.running, s.exit(detail=x)),
    "ended by": lambda s, x: s.ledger.end_run(s.running, s.exit(ended_by=x)),
    "claim kind": lambda s, x: s.ledger.declare(
        s.running, Claim(kind=x), actor=agent_of(s.running)
    ),
    "finding outcome": lambda s, x: s.ledger.record(s.ended, [s.find(outcome=x)]),
    "finding phase": lambda s, x: s.ledger.record(s.ended, [s.find(phase=x)]),
    "finding level": lambda s, x: s.ledger.record(s.ended, [s.find(level=x)]),
    "finding before": lambda s, x: s.ledger.record(s.ended, [s.find(before=x)]),
    "verdict outcome": lambda s, x: s.ledger.judge(s.ended, s.verdict(outcome=x)),
    "verdict level": lambda s, x: s.ledger.judge(s.ended, s.verdict(level=x)),
    "mode": lambda s, x: s.ledger.unblock(s.blocked, actor=OPERATOR, reason="r", mode=x),
    "token role": lambda s, x: s.ledger.mint_token(x, "n", actor=OPERATOR),
    "actor role": lambda s, x: s.ledger.cancel(s.queued, actor=Actor(x, "n")),
    "charge": lambda s, x: s.ledger.charge(s.running, x, limit=3),
}


@pytest.mark.criterion("B11", "C14")
@pytest.mark.parametrize("word", ["bogus", "", "DONE", 7])
def test_unknown_words_are_refused_and_never_guessed(ledger: Ledger, word: Any) -> None:
    # An empty mode is nothing said: the mode stays.
    acts = {name: act for name, act in WORDS.items() if word or name != "mode"}
    assert all_mistaken(ledger, acts, word) == []


NUMBERS: dict[str, Callable[[Scene, Any], object]] = {
    "lease": lambda s, x: s.ledger.start(s.queued, Start("h", lease_seconds=x)),
    "renewal": lambda s, x: s.ledger.heartbeat(s.running, lease_seconds=x),
    "snooze": lambda s, x: s.ledger.snooze(s.item, seconds=x, actor=OPERATOR),
    "exit code": lambda s, x: s.ledger.end_run(s.running, s.exit(code=x)),
    "signal": lambda s, x: s.ledger.end_run(s.running, s.exit(signal=x)),
    "not before": lambda s, x: s.ledger.end_run(
        s.running,
        s.exit(
            not_before=x,
            status=RunStatus.CRASHED,
            reason=ExitReason.FATAL_ERROR,
            detail=ExitDetail.RATE_LIMITED,
        ),
    ),
    "duration": lambda s, x: s.ledger.record(s.ended, [s.find(duration_us=x)]),
    "limit": lambda s, x: s.ledger.charge(s.running, "reentries", limit=x),
    "more attempts": lambda s, x: s.ledger.unblock(
        s.blocked, actor=OPERATOR, reason="r", more_attempts=x
    ),
}


@pytest.mark.criterion("O08")
@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**30, "7"])
def test_numbers_that_no_store_can_keep_are_refused(ledger: Ledger, number: Any) -> None:
    assert all_mistaken(ledger, NUMBERS, number) == []


IDS = ["", " ", "x", "tsk_", "tsk_nowhere", "run_nowhere", "'", "x" * 10**6]


@pytest.mark.criterion("G21", "O08")
def test_wrong_ids_are_refused_by_every_verb(ledger: Ledger) -> None:
    assert [each for wrong_id in IDS for each in _not_refused(ledger, wrong_id)] == []
    assert ledger.house_events() == []


@pytest.mark.criterion("O08")
def test_torn_ids_are_refused_by_every_verb(ledger: Ledger) -> None:
    assert [each for wrong_id in TORN.values() for each in _not_refused(ledger, wrong_id)] == []


def _not_refused(ledger: Ledger, wrong_id: str) -> list[str]:
    ticket = Ticket(wrong_id, wrong_id, 1, wrong_id)
    agent = Actor(Role.AGENT, "a", wrong_id, 1)
    acts: dict[str, Callable[[], object]] = {
        "open": lambda: ledger.open(contract(), actor=OPERATOR, parent=wrong_id or "x"),
        "start": lambda: ledger.start(wrong_id, Start("h")),
        "seen": lambda: ledger.seen(ticket),
        "declare": lambda: ledger.declare(ticket, Claim(kind=ClaimKind.DONE), actor=agent),
        "end_run": lambda: ledger.end_run(ticket, ended()),
        "heartbeat": lambda: ledger.heartbeat(ticket),
        "cancel": lambda: ledger.cancel(wrong_id, actor=OPERATOR),
        "terminate": lambda: ledger.terminate(wrong_id, actor=OPERATOR),
        "terminate_agent": lambda: ledger.terminate_agent(wrong_id, actor=OPERATOR),
        "review": lambda: ledger.review(wrong_id, accept=True, actor=OPERATOR, reason="r"),
        "retry": lambda: ledger.retry(wrong_id, actor=OPERATOR, reason="r"),
        "approve": lambda: ledger.approve(wrong_id, actor=OPERATOR),
        "send": lambda: ledger.send(wrong_id, "hi", actor=OPERATOR),
        "ack": lambda: ledger.ack(wrong_id, actor=OPERATOR),
        "revoke": lambda: ledger.revoke_token(wrong_id, actor=OPERATOR),
        "task": lambda: ledger.task(wrong_id),
        "run": lambda: ledger.run(wrong_id),
        "agent": lambda: ledger.agent(wrong_id),
        "events": lambda: ledger.events(wrong_id),
        "messages": lambda: ledger.messages(wrong_id),
        "find": lambda: ledger.find("tsk", wrong_id),
    }
    return [f"{name}: {how}" for name, act in acts.items() if (how := mistaken(act))]


def test_too_many_or_no_findings_are_refused(ledger: Ledger) -> None:
    ticket = started(ledger)
    declared(ledger, ticket)
    one = finding(ledger, ticket, FindingOutcome.PASSED)
    for lot in ([], [one] * 1001):
        with pytest.raises(InvalidInput, match="between 1 and 1000"):
            ledger.record(ticket, lot)
    assert ledger.dossier(ticket.task).findings == []


@pytest.mark.criterion("M11", "C10")
def test_late_torn_writes_are_still_refused_as_late_and_kept(ledger: Ledger) -> None:
    old = started(ledger)
    ledger.end_run(old, ended(ExitDetail.SIGNALED))
    started(ledger, old.task)
    for text in ("a\ud800b", "a\0b", HUGE):
        with pytest.raises(Refused):
            ledger.declare(old, Claim(kind=ClaimKind.DONE, reason=text), actor=agent_of(old))
    for kept in ledger.dossier(old.task).refusals:
        assert len(kept.evidence) <= 20_000
