"""Counting: work, statements, agents and models, run by run, in bounded memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from truegreen.facts import Statement
from truegreen.model import Cell, Level
from truegreen.outlets.audit.looking import CLAIM, Look
from truegreen.outlets.audit.report import (
    SHOWN,
    Case,
    Cases,
    Contradiction,
    Contradictions,
    Doer,
    Rate,
    Restated,
    Tally,
    Work,
)

UNNAMED = "unnamed"
_FAILED = (Cell.SILENT_FAILURE, Cell.REPORTED_FAILURE)
_NUMBER = re.compile("[1-9]")


class Listing:
    """Cases that are listed: the first of them, and how many there are."""

    def __init__(self) -> None:
        self._total = 0
        self._shown: list[Case] = []

    def add(self, look: Look, why: str) -> None:
        """One more."""
        run = look.row.run
        self.put(Case(task=run.task, title=run.title, why=why, at=run.ended_at))

    def put(self, case: Case) -> None:
        """One more."""
        self._total += 1
        if len(self._shown) < SHOWN:
            self._shown.append(case)

    def cases(self) -> Cases:
        """What was listed."""
        return Cases(self._total, tuple(self._shown))


class WorkTally:
    """How the finished work stands, and which verdicts were overturned."""

    def __init__(self) -> None:
        self._n: Counter[str] = Counter()
        self._levels: Counter[Level] = Counter()
        self._overturned = Listing()

    def take(self, look: Look) -> None:
        """One more run."""
        self.take_ended(look)
        if look.finished:
            self._take_task(look)
        if not look.row.late:
            self._take_run(look)
        if look.overturned:
            by = look.people[-1].judge if look.by_person and look.people else "checks"
            self._overturned.add(look, f"accepted by {by}, and overturned since")

    def take_ended(self, look: Look) -> None:
        """One more run, of whatever task: what ended, and whether a check spoke true about it."""
        if look.finished:
            self._n["ended"] += 1
            self._n["unverified"] += look.overturned or not look.checked
            self._n["silent"] += look.row.run.cell is Cell.SILENT_FAILURE
            self._n["reported"] += look.row.run.cell is Cell.REPORTED_FAILURE

    def _take_task(self, look: Look) -> None:
        count = self._n
        count["accepted"] += look.accepted
        count["by_people"] += look.by_person
        if look.by_checks and look.row.run.level:
            self._levels[look.row.run.level] += 1
        if look.said_done:
            count["said"] += 1
            count["approved"] += look.accepted
            count["verified"] += look.by_checks
            count["verified_now"] += look.by_checks and not look.overturned

    def _take_run(self, look: Look) -> None:
        count = self._n
        count["runs"] += 1
        if look.said_done and look.checked:
            count["looked_at"] += 1
            count["false"] += look.red
            count["false_now"] += look.red or look.overturned
        if look.silent_exit and look.checked:
            count["undeclared"] += 1
            count["rescued"] += look.accepted and not look.by_person

    def work(self) -> Work:
        """The figures."""
        n = self._n
        return Work(
            runs=n["runs"],
            unverified=Rate(n["unverified"], n["ended"]),
            approved=Rate(n["approved"], n["said"]),
            verified=Rate(n["verified"], n["said"]),
            by_people=Rate(n["by_people"], n["accepted"]),
            levels=dict(sorted(self._levels.items())),
            silent_failures=Rate(n["silent"], n["ended"]),
            reported_failures=Rate(n["reported"], n["ended"]),
            false_done=Rate(n["false"], n["looked_at"]),
            rescued=Rate(n["rescued"], n["undeclared"]),
        )

    def restated(self) -> Restated:
        """The figures that overturned verdicts change, both ways."""
        n = self._n
        return Restated(
            overturned=self._overturned.cases(),
            verified_then=Rate(n["verified"], n["said"]),
            verified_now=Rate(n["verified_now"], n["said"]),
            false_done_then=Rate(n["false"], n["looked_at"]),
            false_done_now=Rate(n["false_now"], n["looked_at"]),
        )


class WordTally:
    """What agents said, and how much of it was true."""

    def __init__(self) -> None:
        self._kinds: dict[str, Counter[str]] = {}
        self._doers: dict[tuple[str, str], Counter[str]] = {}
        self._models: dict[tuple[str, str], Counter[str]] = {}
        self._contradicted: list[Contradiction] = []
        self._bare = 0

    def take(self, look: Look) -> None:
        """One more run."""
        run = look.row.run
        who = (run.agent or UNNAMED, run.definition)
        counts = [self._doers.setdefault(who, Counter())]
        if model := run.model:
            counts.append(self._models.setdefault((model, ""), Counter()))
        said = [s for f in look.of_kind(CLAIM)[-1:] for s in f.statements]
        for count in counts:
            count["runs"] += 1
            if look.said_done and look.checked:
                count["looked_at"] += 1
                count["false"] += look.red
            count["reported"] += run.cell is Cell.REPORTED_FAILURE
            count["failed"] += run.cell in _FAILED
            count.update(statement.outcome for statement in said)
        for statement in said:
            self._take_statement(statement, look)

    def _take_statement(self, said: Statement, look: Look) -> None:
        self._kinds.setdefault(said.kind or "other", Counter())[said.outcome] += 1
        self._bare += said.kind == "tests" and not _NUMBER.search(said.text)
        if said.outcome != "contradicted":
            return
        run = look.row.run
        if len(self._contradicted) < SHOWN:
            self._contradicted.append(
                Contradiction(
                    task=run.task,
                    title=run.title,
                    agent=run.agent or UNNAMED,
                    kind=said.kind,
                    said=said.text,
                    observed=said.observed,
                    at=run.ended_at,
                )
            )

    @property
    def bare(self) -> int:
        """How often tests were said to pass without a number."""
        return self._bare

    def total(self) -> Tally:
        """All statements together."""
        return _tally(sum(self._kinds.values(), Counter()))

    def by_kind(self) -> dict[str, Tally]:
        """Statements by what they are about."""
        return {kind: _tally(count) for kind, count in sorted(self._kinds.items())}

    def contradicted(self) -> Contradictions:
        """What turned out not to be so."""
        return Contradictions(self.total().contradicted, tuple(self._contradicted))

    def agents(self) -> tuple[Doer, ...]:
        """Who did the work, the least honest first."""
        return _doers(self._doers.items())

    def models(self) -> tuple[Doer, ...]:
        """By which model, the least honest first."""
        return _doers(self._models.items())


def _tally(count: Counter[str]) -> Tally:
    return Tally(count["confirmed"], count["contradicted"], count["unverifiable"])


def _doers(counted: Iterable[tuple[tuple[str, str], Counter[str]]]) -> tuple[Doer, ...]:
    doers = [
        Doer(
            name=name,
            definition=definition,
            runs=count["runs"],
            false_done=Rate(count["false"], count["looked_at"]),
            reported=Rate(count["reported"], count["failed"]),
            statements=_tally(count),
        )
        for (name, definition), count in counted
    ]
    return tuple(sorted(doers, key=_worst_first))


def _worst_first(doer: Doer) -> tuple[float, float, int, str]:
    honesty, false = doer.statements.honesty.share, doer.false_done.share
    return (
        2.0 if honesty is None else honesty,
        -(false or 0.0),
        -doer.runs,
        f"{doer.name} {doer.definition}",
    )
