"""The audit as values: what was claimed, what was verified, who is to be believed.

Every number says out of how many. Lists are cut to what people read, and say how long they are.
"""

from __future__ import annotations

from msgspec import Struct

from truegreen.model import Level

SHOWN = 50
_CUT = 10_000


class Rate(Struct, frozen=True):
    """So many out of so many."""

    count: int = 0
    of: int = 0

    @property
    def share(self) -> float | None:
        """Cut, not rounded: one among many that is missing is not all of them."""
        return self.count * _CUT // self.of / _CUT if self.of else None


class Tally(Struct, frozen=True):
    """What became of statements."""

    confirmed: int = 0
    contradicted: int = 0
    unverifiable: int = 0

    @property
    def honesty(self) -> Rate:
        """How many were true, of those that could be checked."""
        return Rate(self.confirmed, self.confirmed + self.contradicted)


class Doer(Struct, frozen=True, kw_only=True):
    """An agent, or a model, and how far its word goes."""

    name: str
    definition: str = ""
    runs: int
    false_done: Rate
    reported: Rate = Rate()
    """Of runs that ended well over failed work: those in which the agent itself said so."""
    statements: Tally


class Case(Struct, frozen=True, kw_only=True):
    """A task that somebody should look at, and why."""

    task: str
    title: str
    why: str
    at: int = 0


class Cases(Struct, frozen=True):
    """Some of them, and how many there are."""

    total: int = 0
    shown: tuple[Case, ...] = ()


class Contradiction(Struct, frozen=True, kw_only=True):
    """What an agent said beside what was observed."""

    task: str
    title: str
    agent: str
    kind: str
    said: str
    observed: str
    at: int


class Contradictions(Struct, frozen=True):
    """Some of them, and how many there are."""

    total: int = 0
    shown: tuple[Contradiction, ...] = ()


class Work(Struct, frozen=True, kw_only=True):
    """How the work stands that ended in a period."""

    runs: int
    unverified: Rate
    """Of everything that ended, whoever ended it: no check gave an answer, or it was overturned."""
    approved: Rate
    """Of what agents said was done: what was accepted, by whomever."""
    verified: Rate
    """Of the same: what was accepted because checks passed."""
    by_people: Rate
    """Of what was accepted: that which rests on a person's word."""
    levels: dict[Level, int]
    """How much the checks prove where work was accepted because of them."""
    silent_failures: Rate
    reported_failures: Rate = Rate()
    """Failed work of runs that ended well, and whose agents said so."""
    false_done: Rate
    """Of what agents said was done and checks looked at: what checks found undone."""
    rescued: Rate
    """Of runs that ended without a declaration and were checked: what was done all the same."""


class Restated(Struct, frozen=True, kw_only=True):
    """Figures as they were given, and as they stand after verdicts were overturned."""

    overturned: Cases
    verified_then: Rate
    verified_now: Rate
    false_done_then: Rate
    false_done_now: Rate


class Probed(Struct, frozen=True, kw_only=True):
    """What an evaluator said of work whose worth is known."""

    at: str
    bad: Rate
    """Of the bad ones: those that it passed."""
    good: Rate
    """Of the good ones: those that it did not pass."""
    passed_bad: tuple[str, ...] = ()


class Judge(Struct, frozen=True, kw_only=True):
    """An evaluator: how it scores, and whom it agrees with."""

    name: str
    identity: str
    answers: int
    silent: int
    shadow: int
    scores: tuple[int, ...]
    """How many scores fell into each tenth from 0 to 1."""
    with_gates: Rate
    with_qa: Rate
    with_people: Rate
    probed: Probed | None = None

    @property
    def alert(self) -> bool:
        """Whether it passed what is known to be bad."""
        return bool(self.probed and self.probed.passed_bad)


class Qa(Struct, frozen=True, kw_only=True):
    """Whether QA really checked."""

    chains: Rate
    """Of the work that another agent had to review: that which has its verdict."""
    without_evidence: Cases
    same_identity: Cases
    too_quick: Cases
    missing: Cases
    unattended: Cases
    without_fix: Cases

    @property
    def troubles(self) -> int:
        """How many things are wrong with it."""
        return sum(
            cases.total
            for cases in (
                *(self.without_evidence, self.same_identity, self.too_quick),
                *(self.missing, self.unattended, self.without_fix),
            )
        )


class Person(Struct, frozen=True, kw_only=True):
    """Who said yes, how often, and how soon."""

    name: str
    answers: int
    median_seconds: float | None
    mass: int
    hasty: int
    overturned: int


class Report(Struct, frozen=True, kw_only=True):
    """An audit of one period."""

    since: int
    until: int
    work: Work
    statements: Tally
    by_kind: dict[str, Tally]
    bare: int
    """«Tests pass» without a number."""
    contradicted: Contradictions
    agents: tuple[Doer, ...]
    models: tuple[Doer, ...]
    restated: Restated
    judges: tuple[Judge, ...]
    qa: Qa
    people: tuple[Person, ...]
    promotions: Cases
    """Green that its findings don't carry. It is listed, and never rewritten."""
    unread: tuple[str, ...] = ()
    """What should have been looked at, and could not."""
