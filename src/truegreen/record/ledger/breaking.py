"""When everybody stops for a while: what a failure is called, whom it counts for, how long a pause.

All of it is pure. A failure counts for the provider that refused, else for the agent definition;
and where most of what ended lately could not work at all, for everybody.
"""

from __future__ import annotations

from truegreen.contract import Breakers
from truegreen.enums import StrEnum
from truegreen.model import NO_BLIND_RETRY, PARENT, ExitDetail, Move
from truegreen.record.fleet_rules import OUTAGE
from truegreen.record.ledger.topics import ASKED, PROVIDERS, without_passing
from truegreen.record.lifecycle import Policy, Step
from truegreen.tuples import NamedTuple

D = ExitDetail
_NOBODYS = frozenset({*ASKED, D.SUPERVISOR_CRASHED, D.SUPERVISOR_RESTARTED, D.PROCESS_LOST})
"""Somebody was asked, or truegreen or its machine went away: no fault of the definition."""
SHARE = 0.8
"""Of what ended lately, so much must have been an outage before everybody waits."""
AUTH_AFTER = 2
"""A key that is refused twice will be refused again."""
UNTIL_CLOSED = 1 << 62
"""No waiting cures it: a person closes it."""
LONGEST_TOLD = 24 * 3600 * 1_000_000
"""A provider's own word about when to come again is taken for a day at most."""


class Kind(StrEnum):
    """Whom a breaker holds back."""

    AGENT = "agent"
    PROVIDER = "provider"
    FLEET = "fleet"


class Strike(NamedTuple):
    """One failure as breakers count it."""

    kind: Kind
    subject: str
    signature: str


class Terms(NamedTuple):
    """When a breaker opens, and for how long; instants in microseconds."""

    after: int
    within: int
    pause: int
    most: int


def terms_of(breakers: Breakers) -> dict[Kind, Terms]:
    """The terms of each kind."""
    found = {kind: getattr(breakers, kind) for kind in Kind}
    return {
        kind: Terms(each.after, int(each.within), int(each.pause), int(each.most))
        for kind, each in found.items()
    }


def signature_of(what: str, message: str = "") -> str:
    """What a failure is called: the same for the same failure of whatever task."""
    said = without_passing(message)
    return f"{what}: {said}" if said else what


def strike_of(
    detail: ExitDetail, *, definition: str, client: str, message: str = "", cell: str = ""
) -> Strike | None:
    """Whom a bad end counts for, and as what; nobody's fault is no strike.

    `cell` is where checks put it that found the work undone.
    """
    if cell:
        return Strike(Kind.AGENT, definition, signature_of(cell, message))
    if detail in PROVIDERS:
        return Strike(Kind.PROVIDER, client, str(detail))
    if detail in _NOBODYS:
        return None
    return Strike(Kind.AGENT, definition, signature_of(detail, message))


def needed(strike: Strike, terms: Terms) -> int:
    """How many tasks it takes."""
    return min(AUTH_AFTER, terms.after) if strike.signature == D.AUTH_INVALID else terms.after


def pause_of(terms: Terms, trips: int) -> int:
    """How long it stays open after so many times in a row; it doubles, and has an end."""
    return min(terms.most, terms.pause << min(trips, 32))


def told_until(strike: Strike, now: int, told: int) -> int:
    """Until when a provider wants to be left alone, as far as it is believed."""
    return min(told, now + LONGEST_TOLD) if strike.kind is Kind.PROVIDER else 0


def until(strike: Strike, terms: Terms, trips: int, now: int, told: int = 0) -> int:
    """The instant from which one task may try again; `told` is the provider's own word."""
    if strike.signature == D.AUTH_INVALID:
        return UNTIL_CLOSED
    return max(now + pause_of(terms, trips), told_until(strike, now, told))


class Lately(NamedTuple):
    """What ended lately: runs, those that could not work, and how many definitions of each."""

    ended: int
    hit: int
    definitions: int
    definitions_hit: int


def is_outage(lately: Lately, terms: Terms) -> bool:
    """Whether most of what ended lately could not work, whoever it was."""
    everybody = lately.definitions_hit >= min(2, lately.definitions)
    return lately.ended >= terms.after and lately.hit >= SHARE * lately.ended and everybody


class Fate(StrEnum):
    """What a probe says about the breaker that let it through."""

    CLOSES = "closes"
    OPENS = "opens"
    UNKNOWN = "unknown"


def after_end(kind: Kind, signature: str, detail: ExitDetail, strike: Strike | None) -> Fate:
    """A probe's run has ended, and nobody has looked at its work yet."""
    if kind is Kind.AGENT:
        same = strike is not None and strike.signature == signature
        return Fate.OPENS if same else Fate.UNKNOWN
    hit = detail in (PROVIDERS if kind is Kind.PROVIDER else OUTAGE)
    if hit:
        return Fate.OPENS
    worked = detail not in OUTAGE and detail not in _NOBODYS
    return Fate.CLOSES if worked else Fate.UNKNOWN


def after_check(kind: Kind, signature: str, move: Move, strike: Strike | None) -> Fate:
    """A probe's work has been looked at."""
    if strike is not None and strike.signature == signature:
        return Fate.OPENS
    passed = move in (Move.ACCEPT, Move.CHAIN)
    return Fate.CLOSES if kind is Kind.AGENT and passed else Fate.UNKNOWN


def denied(step: Step, detail: ExitDetail, policy: Policy) -> str:
    """Why a failure gets no further attempt; empty where it does."""
    if step.move is not Move.FAIL:
        return ""
    wanted = detail in policy.retry or PARENT[detail] in policy.retry
    if detail in NO_BLIND_RETRY and detail not in policy.retry:
        return "no_blind_retry"
    return "budget" if wanted or detail is D.RATE_LIMITED else "policy"
