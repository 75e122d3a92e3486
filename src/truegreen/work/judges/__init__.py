"""Evaluators: judges that look at the work besides the gates, one module per kind.

A kind is a function from a judge, a document and a bench to an opinion. It knows neither the agent
that did the work nor the record. Adding one means a module and a word in the list below; it is
loaded when the first judge of its kind is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Evaluator
from truegreen.errors import IsolationUnavailable, Unavailable
from truegreen.evidence import evidence_in
from truegreen.model import FindingOutcome
from truegreen.work.judges.answer import Opinion, no_answer, weighed
from truegreen.work.judges.bench import Bench, Heartbeat, Spent

__all__ = ["KINDS", "NOTHING_SPENT", "Bench", "Opinion", "Spent", "ask", "identity", "kind_of"]

NOTHING_SPENT = Spent()

KINDS = ("command", "model", "python")


def kind_of(judge: Evaluator) -> str:
    """How a judge is asked; the contract made sure that there is one way."""
    return next(kind for kind in KINDS if getattr(judge, kind))


def _way(kind: str) -> Callable[[Evaluator, dict[str, Any], Bench], Opinion]:
    ask: Callable[[Evaluator, dict[str, Any], Bench], Opinion]
    ask = import_module(f"{__name__}.{kind}").ask
    return ask


def identity(judge: Evaluator) -> str:
    """Who judges: another word in the definition is another judge."""
    digest = judge.definition_digest().partition(":")[2]
    return f"evaluator:{judge.name}@{digest[:12]}"


def ask(
    judge: Evaluator, document: dict[str, Any], bench: Bench, *, spent: Spent = NOTHING_SPENT
) -> Opinion:
    """One try: the judge's opinion on a document. Whatever a judge does is a value."""
    if spent.tokens >= judge.tokens or spent.cost_usd >= judge.cost_usd:
        return no_answer("its cost cap is spent", lasting=True, how=kind_of(judge))
    begun = time.monotonic()
    tick = Heartbeat(bench.tick) if bench.tick else None
    try:
        opinion = _way(kind_of(judge))(judge, document, replace(bench, tick=tick))
    except (OSError, IsolationUnavailable, Unavailable) as error:
        if tick and error is tick.raised:
            raise
        opinion = no_answer(str(error), lasting=not isinstance(error, OSError))
    if document.get("question") == "qa":
        opinion = _evidenced(judge, opinion)
    flags = [f"injection: {flag}" for flag in document.get("flags", ())]
    told = {"how": kind_of(judge), **({"flags": flags} if flags else {})}
    seconds = round(time.monotonic() - begun, 3)
    return replace(opinion, seconds=seconds, facts={**opinion.facts, **told})


def _evidenced(judge: Evaluator, opinion: Opinion) -> Opinion:
    """A review that passes shows what it looked at."""
    passed = weighed(judge, opinion, rescue=False)[0] is FindingOutcome.PASSED
    if not passed or evidence_in(opinion.evidence):
        return opinion
    return replace(opinion, verdict=None, score=None, trouble="a pass without evidence")
