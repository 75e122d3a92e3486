"""The layers of a task's verification, each with a state: gates, evaluators, QA, audit, budget.

They stand side by side and none speaks for another: green gates say nothing about a budget that is
spent, and a claim that was contradicted is told beside a verdict that passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from truegreen.contract import GateKind
from truegreen.model import FindingOutcome, Phase, TaskStatus
from truegreen.record.ledger import Dossier
from truegreen.record.ledger.terms import Terms, read_terms
from truegreen.record.rows import FindingRow

Layer = dict[str, Any]

_GATES = frozenset(map(str, GateKind))
_AUDITED = ("confirmed", "contradicted", "unverifiable")
_UNDER_WAY = (
    *(TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.AWAITING_APPROVAL),
    *(TaskStatus.PENDING_EVAL, TaskStatus.FAILED_PENDING_EVAL),
)


def layers_of(dossier: Dossier) -> dict[str, Layer]:
    """Every layer of a task, from what was found about its latest run."""
    latest = dossier.runs[-1].key if dossier.runs else None
    found = [f for f in dossier.findings if f.run_key == latest and f.phase is not Phase.BASELINE]
    terms = read_terms(dossier.contract)
    gates = [f for f in found if f.kind in _GATES]
    judges = [f for f in found if f.kind == "evaluator"]
    return {
        "gates": _checks(dossier, [g.name for g in terms.gates if g.required], gates),
        "evaluators": _checks(
            dossier, [e.name for e in terms.evaluators if e.required and not e.shadow], judges
        ),
        "qa": _qa(dossier, terms, [f for f in found if f.kind == "qa"]),
        "audit": _audit([f for f in found if f.kind == "claim"]),
        "budget": _budget(dossier, latest),
        **_children(dossier),
    }


def _checks(dossier: Dossier, required: list[str], found: list[FindingRow]) -> Layer:
    """How the checks of one kind stand: red outweighs all, silence is no pass."""
    standing: dict[str, FindingOutcome] = {}
    for finding in found:
        if standing.get(finding.check_name) is not FindingOutcome.FAILED:
            standing[finding.check_name] = finding.outcome
    outcomes = [standing.get(name) for name in required]
    counts = {str(word): list(standing.values()).count(word) for word in FindingOutcome}
    return {"state": _state(dossier, outcomes), "required": len(required), **counts}


def _state(dossier: Dossier, outcomes: list[FindingOutcome | None]) -> str:
    if not outcomes:
        return "none"
    if FindingOutcome.FAILED in outcomes:
        return "failed"
    if all(outcome is FindingOutcome.PASSED for outcome in outcomes):
        return "passed"
    waits = None in outcomes and dossier.task.status in _UNDER_WAY
    silent = all(outcome is None for outcome in outcomes)
    return "pending" if waits else "not asked" if silent else "inconclusive"


def _children(dossier: Dossier) -> dict[str, Layer]:
    """What the agent's own agents and shells came to; a layer only where it had some."""
    facts = msgspec.json.decode(dossier.runs[-1].facts or "{}") if dossier.runs else {}
    counts: dict[str, int] = facts.get("children", {})
    if not counts:
        return {}
    lost = counts["failed"] or counts["skipped"]
    state = "degraded" if lost else "unknown" if counts["unknown"] else "ok"
    return {"children": {"state": state, **counts}}


def children_words(layer: Layer) -> str:
    """«1 ok, 2 failed», without what there is none of."""
    return ", ".join(
        f"{number} {word}" for word, number in layer.items() if word != "state" and number
    )


def _qa(dossier: Dossier, terms: Terms, found: list[FindingRow]) -> Layer:
    task = dossier.task
    rounds = [task.qa_rounds, task.qa_rounds_max]
    if found:
        return {"state": str(found[-1].outcome), "judge": found[-1].judge, "rounds": rounds}
    due = task.qa_of_key is None and bool(task.role) and task.role in terms.qa.roles
    state = "due" if due else "not due"
    if task.status is TaskStatus.PENDING_QA:
        state = "pending"
    elif due and task.status is TaskStatus.SUCCEEDED:
        state = "overridden" if task.overridden else "missing"
    return {"state": state, "judge": "", "rounds": rounds}


def _audit(found: list[FindingRow]) -> Layer:
    """What the agent said: one word that was wrong outweighs all that were true."""
    counts = dict.fromkeys(_AUDITED, 0)
    for finding in found[-1:]:
        told: dict[str, Any] = msgspec.json.decode(finding.counts)
        counts |= {word: int(told.get(word, 0)) for word in _AUDITED}
    worst = ("contradicted", "unverifiable", "confirmed")
    return {"state": next((word for word in worst if counts[word]), "nothing stated"), **counts}


def _budget(dossier: Dossier, latest: int | None) -> Layer:
    task = dossier.task
    counters = {
        "attempts": [task.attempts, task.attempts_max],
        "qa_rounds": [task.qa_rounds, task.qa_rounds_max],
        "deferrals": [task.deferrals, task.deferrals_max],
    }
    for run, budget, _subject, used, most in dossier.charges:
        if run == latest and used >= counters.get(budget, [0, 0])[0]:
            counters[budget] = [used, most]
    return {"state": "spent" if _spent(counters.values()) else "left", **counters}


def _spent(counters: Iterable[list[int]]) -> bool:
    return any(most and used >= most for used, most in counters)
