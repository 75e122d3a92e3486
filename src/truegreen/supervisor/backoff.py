"""How long a task is held back before its next attempt. Pure, but for a little jitter."""

from __future__ import annotations

from truegreen.model import ExitDetail, ExitReason

FIRST_SECONDS, MOST_SECONDS = 1.0, 60.0
DEFERRAL_SECONDS = 60.0
"""The first wait for a rate limit whose end the provider does not say; it doubles."""
JITTER = 0.1


def hold_seconds(
    reason: ExitReason, detail: ExitDetail, *, failures: int, deferrals: int, told: float
) -> float:
    """Crashes wait a little longer each time, rate limits as long as the provider says."""
    if detail is ExitDetail.RATE_LIMITED:
        return told or deferral_seconds(deferrals)
    if detail is ExitDetail.SUPERVISOR_RESTARTED:
        return 0.0
    if reason is ExitReason.FATAL_ERROR:
        return _spread(min(FIRST_SECONDS * 2**failures, MOST_SECONDS))
    return 0.0


def deferral_seconds(deferrals: int) -> float:
    """How long to wait for somebody who did not say when; twice as long each time."""
    return _spread(DEFERRAL_SECONDS * 2**deferrals)


def _spread(seconds: float) -> float:
    """Not all at the same moment."""
    from random import uniform  # noqa: PLC0415 - few runs have to wait

    return seconds * uniform(1, 1 + JITTER)  # noqa: S311 - jitter, not a secret
