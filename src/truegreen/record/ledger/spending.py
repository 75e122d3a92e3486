"""What runs and judges used, as limits count it: millionths of a dollar, and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from truegreen.facts import Finding, Usage
from truegreen.record.fleet_rules import CRUMB

CRUMB_USD = CRUMB / 1e6
ASKED = "asked"
"""The fact of a run: what its judges used at the stops of the agent."""
JUDGE = "evaluator"
"""The kind of a judge's finding."""
_MOST = 10**15


def micros(usd: float) -> int:
    """Millionths of a dollar; what is no amount is none."""
    return min(_MOST, max(0, round(usd * 1e6))) if usd == usd else 0  # noqa: PLR0124 - NaN


def spent_in(usage: Usage, facts: Mapping[str, Any]) -> dict[str, int]:
    """What a run used, with what judges were asked at its stops."""
    asked = [amount_of(each) for each in (facts.get(ASKED) or {}).values()]
    return {
        "cost": micros(usage.cost_usd + sum(cost for _, cost in asked)),
        "tokens": min(_MOST, max(0, usage.tokens + sum(tokens for tokens, _ in asked))),
    }


def told_usage(kept: str, facts: Mapping[str, Any]) -> Usage:
    """What a run used that others ended: as its supervisor tells it, never less than is known."""
    known = msgspec.json.decode(kept, type=Usage)
    try:
        told = msgspec.convert(facts.get("usage") or {}, Usage)
    except msgspec.ValidationError:
        return known
    return max(known, told, key=lambda used: (used.cost_usd, used.tokens))


def by_judges(finding: Finding) -> dict[str, int]:
    """What an evaluator used after the run, for one finding; empty where it used nothing."""
    if finding.kind != JUDGE:
        return {}
    (tokens, cost), (before, paid) = (
        amount_of(finding.evidence.get(name) or {}) for name in ("usage", "at_stops")
    )
    used = {"cost": micros(cost - paid), "tokens": max(0, tokens - before)}
    return used if any(used.values()) else {}


def amount_of(used: Mapping[str, Any]) -> tuple[int, float]:
    """Tokens and dollars as they stand in the record."""
    return int(used.get("tokens", 0)), float(used.get("cost_usd", 0.0))
