"""What a failure means for others: it is counted, opens a breaker, or shows that one may close.

It happens in the transaction that ends or judges a run. A run that ends well and tries no breaker
asks the store nothing.
"""

from __future__ import annotations

from truegreen.facts import SYSTEM, Actor, Exit, Verdict
from truegreen.model import Cell, EventLevel, ExitDetail, Move, Note, Outcome, Role, Severity
from truegreen.record.fleet_rules import OUTAGE
from truegreen.record.ids import new_id
from truegreen.record.ledger.attention import Call, bring_up
from truegreen.record.ledger.breaking import (
    Fate,
    Kind,
    Lately,
    Strike,
    Terms,
    after_check,
    after_end,
    denied,
    is_outage,
    needed,
    strike_of,
    told_until,
    until,
)
from truegreen.record.ledger.desk import Desk, Entry, Work
from truegreen.record.ledger.inputs import REASON_LIMIT
from truegreen.record.lifecycle import Step
from truegreen.record.rows import Breaker, read
from truegreen.record.store import Hit, Tx
from truegreen.tuples import NamedTuple

BREAKER = "breaker"
"""What the inbox calls it."""
DENIED = "retries_denied"
"""The meter of attempts that a failure did not get, by why not."""
_BAD = (Move.RETRY, Move.FAIL, Move.BLOCK)
_KEPT = 24 * 3600 * 1_000_000
_OUTAGE = Strike(Kind.FLEET, "", "outage")


class _Bad(NamedTuple):
    """How a run ended badly, and who it was."""

    detail: ExitDetail
    strike: Strike | None
    name: str
    told: int = 0
    """When the provider says that it can be asked again."""


class Strikes(Desk):
    """From failures to breakers, and from probes back."""

    def _weigh_end(self, tx: Tx, work: Work, ended: Exit, step: Step) -> None:
        """A run has ended; nobody has looked at its work yet."""
        if step.move not in _BAD and not work.probing:
            return
        bad = None
        if step.move in _BAD:
            bad = self._bad(tx, work, ended.detail, ended.message)
            bad = bad._replace(told=ended.due(tx.now))
        strike = bad.strike if bad else None
        for breaker in self._probed(tx, work):
            fate = after_end(Kind(breaker.kind), breaker.signature, ended.detail, strike)
            self._follow(tx, work, breaker, fate, bad)
        if bad:
            self._count(tx, work, bad, step)

    def _weigh_verdict(
        self, tx: Tx, work: Work, step: Step, verdict: Verdict, cell: Cell, actor: Actor
    ) -> None:
        """A run's work has been looked at; what a person says about it counts for nobody else."""
        red = verdict.outcome is Outcome.FAILED and step.move in _BAD
        failed = red and actor.role is not Role.OPERATOR
        if not failed and not work.probing:
            return
        detail = work.run.exit_detail or ExitDetail.UNCLASSIFIED
        bad = self._bad(tx, work, detail, verdict.reason, cell) if failed else None
        strike = bad.strike if bad else None
        for breaker in self._probed(tx, work):
            fate = after_check(Kind(breaker.kind), breaker.signature, step.move, strike)
            self._follow(tx, work, breaker, fate, bad)
        if bad:
            self._count(tx, work, bad, step)

    @staticmethod
    def _bad(tx: Tx, work: Work, detail: ExitDetail, message: str, cell: str = "") -> _Bad:
        definition, client, name = tx.one("demanded", task_key=work.task.key) or ("", "", "")
        strike = strike_of(detail, definition=definition, client=client, message=message, cell=cell)
        called = client if strike and strike.kind is Kind.PROVIDER else name or client
        return _Bad(detail, strike, called)

    @staticmethod
    def _probed(tx: Tx, work: Work) -> list[Breaker]:
        if not work.probing:
            return []
        return [read(Breaker, row) for row in tx.all("breakers_probed", run=work.run.id)]

    def _follow(self, tx: Tx, work: Work, breaker: Breaker, fate: Fate, bad: _Bad | None) -> None:
        """What a probe showed."""
        if fate is Fate.CLOSES:
            self._close_breaker(tx, breaker, SYSTEM, f"{work.task.id} got through")
        elif fate is Fate.OPENS and bad:
            told = bad.strike if bad.strike and breaker.kind == bad.strike.kind else None
            strike = told or Strike(Kind(breaker.kind), breaker.subject, breaker.signature)
            terms = self._terms(tx, strike.kind)
            tx.hit(
                "trip_breaker",
                key=breaker.key,
                open_until=until(strike, terms, breaker.trips, tx.now, bad.told),
                signature=strike.signature,
                tried=work.task.key,
            )

    # -- counting -------------------------------------------------------------------------------

    def _count(self, tx: Tx, work: Work, bad: _Bad, step: Step) -> None:
        """Count a failure, for its breaker and for the graphs."""
        held = bad.strike is not None and self._struck(tx, work, bad, bad.strike)
        if not held and bad.detail in OUTAGE:
            held = self._outage(tx, work, bad)
        why = denied(step, bad.detail, work.policy)
        if held and step.move is Move.RETRY:
            why = BREAKER
        if why:
            tx.run("count_call", name=DENIED, label=why)

    def _struck(self, tx: Tx, work: Work, bad: _Bad, strike: Strike) -> bool:
        """Whether a breaker is open after this strike."""
        terms = self._terms(tx, strike.kind)
        named = strike._asdict()
        tx.run("insert_strike", **named, task_key=work.task.key, now=tx.now)
        row = tx.one("breaker_open", **named)
        if row:
            self._once_more(tx, work, read(Breaker, row), told_until(strike, tx.now, bad.told))
            return True
        row = tx.one("strikes_alike", **named, since=tx.now - terms.within)
        tasks = row[0] if row else 0
        if tasks < needed(strike, terms):
            return False
        within = terms.within // 60_000_000
        words = f"{tasks} tasks ended so within {within} minutes: {strike.signature}"
        self._open_breaker(tx, work, bad, strike, words)
        return True

    @staticmethod
    def _once_more(tx: Tx, work: Work, breaker: Breaker, told: int) -> None:
        """A breaker is open, and one more has failed alike; a probe has said so already."""
        tx.run("count_more_of_cause", cause=cause_of(breaker), n=1)
        if not work.probing:
            tx.run("extend_breaker", key=breaker.key, tried=work.task.key, open_until=told)

    def _outage(self, tx: Tx, work: Work, bad: _Bad) -> bool:
        """Whether everybody waits since most of what ended lately could not work."""
        terms = self._terms(tx, Kind.FLEET)
        if row := tx.one("breaker_open", **_OUTAGE._asdict()):
            self._once_more(tx, work, read(Breaker, row), 0)
            return True
        since = tx.now - terms.within
        row = tx.one("ends_lately", run=work.run.key, since=since) or (0, 0, 0, 0)
        lately = Lately(*map(int, row))
        if not is_outage(lately, terms):
            return False
        words = f"{lately.hit} of the last {lately.ended} runs could not work ({bad.detail})"
        self._open_breaker(tx, work, bad._replace(name="everybody"), _OUTAGE, words)
        return True

    @staticmethod
    def _terms(tx: Tx, kind: Kind) -> Terms:
        row = tx.one("policy", kind=kind)
        return Terms(*row) if row else Terms(2, 0, 0, 0)

    # -- opening and closing --------------------------------------------------------------------

    def _open_breaker(self, tx: Tx, work: Work, bad: _Bad, strike: Strike, words: str) -> None:
        terms = self._terms(tx, strike.kind)
        row = tx.one(
            "open_breaker",
            id=new_id("brk", tx.now),
            **strike._asdict(),
            name=bad.name,
            tried=work.task.key,
            open_until=until(strike, terms, 0, tx.now, bad.told),
            now=tx.now,
        )
        if row is None:
            return
        breaker = read(Breaker, row)
        topic = f"{BREAKER}: {strike.signature} ({bad.name})"[:200]
        command = f"breakers close {breaker.id} --reason …"
        said = f"{_whom(strike.kind, bad.name)} starts nothing for now: {words}"[:REASON_LIMIT]
        call = Call(cause_of(breaker), topic, BREAKER, Severity.HIGH, said, command)
        bring_up(tx, work.task, work.run.key, call)
        data = {"breaker": breaker.id, "opened": strike.kind, "signature": strike.signature}
        data |= {"alert": BREAKER, "task": work.task.id}
        self._house_note(tx, Note.INBOX, Entry(SYSTEM, said, data=data, level=EventLevel.WARN))
        tx.run("forget_strikes", before=tx.now - _KEPT)

    def _close_breaker(self, tx: Tx, breaker: Breaker, actor: Actor, reason: str) -> Hit:
        """The event comes first, since the database asks for it; the breaker is held before it."""
        tx.one("breaker_locked", id=breaker.id)
        outcome = f"closed by {actor}: {reason}"[:REASON_LIMIT]
        tx.run("resolve_inbox_of_cause", cause=cause_of(breaker), outcome=outcome, now=tx.now)
        data = {"breaker": breaker.id, "closed": breaker.kind, "signature": breaker.signature}
        self._house_note(tx, Note.AGENT, Entry(actor, reason, data=data))
        hit = tx.hit(
            "close_breaker", key=breaker.key, closed_by=str(actor), reason=reason, now=tx.now
        )
        alike = {"kind": breaker.kind, "subject": breaker.subject, "signature": breaker.signature}
        tx.run("forget_strikes_alike", **alike, now=tx.now)
        return hit


def cause_of(breaker: Breaker) -> str:
    """What makes an inbox item the same."""
    return f"{BREAKER}:{breaker.id}"


def _whom(kind: Kind, name: str) -> str:
    words = {Kind.AGENT: "agent", Kind.PROVIDER: "the provider of"}
    return f"{words[kind]} {name}" if kind in words else "the whole fleet"
