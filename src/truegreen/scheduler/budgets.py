"""What holds over the whole fleet, seen to while house is kept: probes that got through, limits."""

from __future__ import annotations

from collections.abc import Iterator

from truegreen.record.ledger import Ledger


def look_at_budgets(ledger: Ledger) -> Iterator[str]:
    """Close breakers whose probe is at work, and tell people which limits hold tasks back."""
    for breaker in ledger.hear_probes():
        yield f"{breaker}  closed: whoever tried is at work"
    for limit in ledger.say_spent():
        yield f"{limit}  is spent: what it is about waits (truegreen limits)"
