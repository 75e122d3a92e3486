"""What judges have used on a task: in earlier runs, at the stops of an agent, in reviews.

A judge has one purse for a task. What was asked at stops stands in the facts of the run, for it may
end without a finding; what was asked afterwards stands on the finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from truegreen.facts import Usage
from truegreen.record.ledger import Dossier
from truegreen.record.ledger.spending import ASKED, JUDGE, amount_of
from truegreen.supervisor.subject import Heard
from truegreen.work.judges import NOTHING_SPENT, Spent

__all__ = ["ASKED", "KIND", "asked", "spent_on", "told", "total", "used_by", "with_reviews"]
KIND = JUDGE

Purses = Mapping[str, Spent]


def used_by(judge: str, heard: Iterable[Heard]) -> Spent:
    """What a judge used for some answers."""
    return total((each.tokens, each.cost_usd) for each in heard if each.judge == judge)


def asked(heard: Iterable[Heard]) -> dict[str, Any]:
    """The fact about some answers."""
    given = list(heard)
    names = dict.fromkeys(each.judge for each in given)
    return {name: told(used_by(name, given)) for name in names}


def told(spent: Spent) -> dict[str, Any]:
    """As it stands in the record."""
    return {"tokens": spent.tokens, "cost_usd": round(spent.cost_usd, 6)}


def total(amounts: Iterable[tuple[int, float]]) -> Spent:
    """Several amounts of tokens and dollars together."""
    given = list(amounts)
    return Spent(tokens=sum(t for t, _ in given), cost_usd=sum(c for _, c in given))


def spent_on(dossier: Dossier) -> dict[str, Spent]:
    """What each judge has used on a task so far."""
    amounts: dict[str, list[tuple[int, float]]] = {}
    for run in dossier.runs:
        for name, used in msgspec.json.decode(run.facts).get(ASKED, {}).items():
            amounts.setdefault(name, []).append(amount_of(used))
    for row in dossier.findings:
        if row.kind == KIND:
            evidence = msgspec.json.decode(row.evidence)
            (tokens, cost), (t, c) = (amount_of(evidence.get(n, {})) for n in ("usage", "at_stops"))
            amounts.setdefault(row.check_name, []).append((tokens - t, cost - c))
    return {name: total(each) for name, each in amounts.items()}


def with_reviews(spent: Purses, judge: str, reviews: Iterable[Dossier]) -> dict[str, Spent]:
    """The same, with what a judge used that the reviews of the task are by."""
    before = spent.get(judge, NOTHING_SPENT)
    used = [
        msgspec.json.decode(run.usage, type=Usage)
        for review in reviews
        for run in review.runs
        if run.usage
    ]
    amounts = [(each.tokens, each.cost_usd) for each in used]
    return {**spent, judge: total([(before.tokens, before.cost_usd), *amounts])}
