"""Known work before a judge: whether it sees through what is bad, and lets pass what is good.

What came of it is kept beside the state, by the judge's definition: another word in it, and nobody
knows any more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import path as paths

import msgspec

from truegreen.contract import Evaluator, Isolation
from truegreen.model import FindingOutcome
from truegreen.supervisor.place import Place
from truegreen.supervisor.second_look import scratch
from truegreen.work.judges import Bench
from truegreen.work.judges.probes import Probed, probe


class ProbeResult(msgspec.Struct, frozen=True):
    """What a judge said about one probe."""

    name: str
    good: bool
    outcome: FindingOutcome
    score: float | None
    reason: str = ""


class ProbeReport(msgspec.Struct, frozen=True):
    """What a judge said about all of them, and when."""

    evaluator: str
    digest: str
    at: int
    probes: tuple[ProbeResult, ...]

    @property
    def fooled(self) -> list[str]:
        """Bad work that it passed."""
        passed = FindingOutcome.PASSED
        return [p.name for p in self.probes if not p.good and p.outcome is passed]

    @property
    def harsh(self) -> list[str]:
        """Good work that it failed."""
        return [p.name for p in self.probes if p.good and p.outcome is FindingOutcome.FAILED]

    @property
    def silent(self) -> list[str]:
        """Work about which it said nothing that can be used."""
        return [p.name for p in self.probes if p.outcome is FindingOutcome.INCONCLUSIVE]


def probe_judge(
    place: Place, judge: Evaluator, told: Callable[[Probed], None] = lambda _: None
) -> ProbeReport:
    """Put every probe before a judge, and keep what it said."""
    with _bench(place, judge) as bench:
        found = probe(judge, bench, told)
    results = tuple(
        ProbeResult(each.name, each.good, each.outcome, each.opinion.score, each.reason)
        for each in found
    )
    report = ProbeReport(judge.name, judge.definition_digest(), time.time_ns() // 1000, results)
    _keep(place, report)
    return report


def kept_report(place: Place, judge: Evaluator) -> ProbeReport | None:
    """What this judge said when it was probed last; nothing of one with another definition."""
    try:
        with open(_path(place, judge.name), "rb") as file:
            report = msgspec.json.decode(file.read(), type=ProbeReport)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return report if report.digest == judge.definition_digest() else None


@contextmanager
def _bench(place: Place, judge: Evaluator) -> Iterator[Bench]:
    with scratch(place) as folder:
        yield Bench(
            environ=dict(place.environ),
            tree=folder,
            scratch=folder,
            hidden=place.hidden,
            shown=(folder,),
            isolation=Isolation.AUTO,
            at=judge.at,
        )


def _keep(place: Place, report: ProbeReport) -> None:
    path = _path(place, report.evaluator)
    os.makedirs(paths.dirname(path), mode=0o700, exist_ok=True)
    fresh = f"{path}.{os.getpid()}"
    with open(fresh, "wb") as file:
        file.write(msgspec.json.encode(report))
    os.replace(fresh, path)


def _path(place: Place, name: str) -> str:
    return paths.join(place.state_dir, "probes", f"{name}.json")
