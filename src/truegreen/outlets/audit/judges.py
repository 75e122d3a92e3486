"""Evaluators, calibrated: how they score, whom they agree with, and what they say of known work."""

from __future__ import annotations

import glob
import os.path
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from truegreen.model import FindingOutcome
from truegreen.outlets.audit.looking import DECIDED, EVALUATOR, GATES, QA, Look
from truegreen.outlets.audit.report import Judge, Probed, Rate
from truegreen.record.ledger.audits import AuditedFinding

BINS = 10
_PROBES_BYTES = 1 << 20
_MOST_FILES = 1000


class Probe(msgspec.Struct, frozen=True):
    """What an evaluator said of one piece of work whose worth is known."""

    name: str
    good: bool
    outcome: FindingOutcome
    score: float | None = None


class Probing(msgspec.Struct, frozen=True):
    """An evaluator's answers to all of them."""

    evaluator: str
    digest: str
    at: int | str
    probes: tuple[Probe, ...] = ()


def read_probes(folder: str) -> tuple[list[Probing], list[str]]:
    """What was kept about evaluators that were probed, and which files of it can't be read."""
    found: list[Probing] = []
    unread: list[str] = []
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.json")))[:_MOST_FILES]:
        try:
            with open(path, "rb") as file:
                data = file.read(_PROBES_BYTES)
            found.append(msgspec.json.decode(data, type=Probing))
        except (OSError, msgspec.MsgspecError) as error:
            unread.append(f"probes/{os.path.basename(path)}: {error}")
    return found, unread


class JudgeTally:
    """What evaluators answered, run by run."""

    def __init__(self) -> None:
        self._judges: dict[tuple[str, str], Counter[str]] = {}
        self._scores: dict[tuple[str, str], list[int]] = {}

    def take(self, look: Look) -> None:
        """One more run."""
        for finding in look.of_kind(EVALUATOR):
            who = (finding.check, finding.judge)
            count = self._judges.setdefault(who, Counter())
            bins = self._scores.setdefault(who, [0] * BINS)
            count["answers"] += 1
            count["shadow"] += not finding.binding
            if finding.score is not None:
                bins[min(BINS - 1, int(finding.score * BINS))] += 1
            if finding.outcome not in DECIDED:
                count["silent"] += 1
                continue
            gates = [f for f in look.of_kind(*GATES) if f.binding]
            _compare(count, "gates", finding, _word(gates))
            _compare(count, "qa", finding, _word(look.of_kind(QA)[-1:]))
            _compare(count, "people", finding, _people(look))

    def judges(self, probings: Iterable[Probing]) -> tuple[Judge, ...]:
        """Every evaluator that answered or was probed, those with an alert first."""
        latest = {probing.evaluator: probing for probing in sorted(probings, key=_when)}
        names = {name for name, _ in self._judges}
        unasked = [(name, "") for name in latest if name not in names]
        judges = [self._judge(*who, latest.get(who[0])) for who in [*self._judges, *unasked]]
        return tuple(sorted(judges, key=lambda judge: (not judge.alert, judge.name)))

    def _judge(self, name: str, identity: str, probing: Probing | None) -> Judge:
        count = self._judges.get((name, identity), Counter())
        return Judge(
            name=name,
            identity=identity,
            answers=count["answers"],
            silent=count["silent"],
            shadow=count["shadow"],
            scores=tuple(self._scores.get((name, identity), [0] * BINS)),
            with_gates=Rate(count["gates"], count["of gates"]),
            with_qa=Rate(count["qa"], count["of qa"]),
            with_people=Rate(count["people"], count["of people"]),
            probed=_probed(probing) if probing else None,
        )


def _compare(
    count: Counter[str], whom: str, mine: AuditedFinding, theirs: FindingOutcome | None
) -> None:
    if theirs is not None:
        count[f"of {whom}"] += 1
        count[whom] += mine.outcome is theirs


def _word(found: list[AuditedFinding]) -> FindingOutcome | None:
    """What they say together: red outweighs green; nothing where none of them decided."""
    decided = {f.outcome for f in found if f.outcome in DECIDED}
    return min(decided, default=None)  # «failed» comes before «passed»


def _people(look: Look) -> FindingOutcome | None:
    """What people think of the work; who overturns a verdict thinks ill of it."""
    return FindingOutcome.FAILED if look.overturned else _word(look.people[-1:])


def _when(probing: Probing) -> tuple[str, Any]:
    return (type(probing.at).__name__, probing.at)


def _probed(probing: Probing) -> Probed:
    passed = {p.name: p.outcome is FindingOutcome.PASSED for p in probing.probes}
    good = [p.name for p in probing.probes if p.good]
    bad = [p.name for p in probing.probes if not p.good]
    fooled = tuple(name for name in bad if passed[name])
    return Probed(
        at=str(probing.at),
        bad=Rate(len(fooled), len(bad)),
        good=Rate(sum(not passed[name] for name in good), len(good)),
        passed_bad=fooled,
    )
