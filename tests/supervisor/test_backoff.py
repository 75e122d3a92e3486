"""How long a task is held back, value by value."""

from __future__ import annotations

import pytest

from tests.table import each_row
from truegreen.model import PARENT, ExitDetail
from truegreen.supervisor.backoff import JITTER, hold_seconds

D = ExitDetail


def held(detail: ExitDetail, failures: int = 0, deferrals: int = 0, told: float = 0) -> float:
    return hold_seconds(PARENT[detail], detail, failures=failures, deferrals=deferrals, told=told)


@pytest.mark.criterion("I07")
@each_row(("failures", "seconds"), [(0, 1), (1, 2), (2, 4), (5, 32), (6, 60), (50, 60)])
def test_a_crash_waits_twice_as_long_each_time_and_never_long(failures: int, seconds: float):
    for _ in range(50):
        assert seconds <= held(D.SIGNALED, failures) <= seconds * (1 + JITTER)


@pytest.mark.criterion("I08")
def test_a_rate_limit_waits_as_long_as_the_provider_says():
    assert held(D.RATE_LIMITED, told=742.5) == 742.5
    for deferrals, seconds in ((0, 60), (1, 120), (2, 240)):
        assert seconds <= held(D.RATE_LIMITED, deferrals=deferrals) <= seconds * (1 + JITTER)


def test_work_that_was_judged_is_tried_again_at_once():
    for detail in (D.COMPLETED, D.UNCLAIMED, D.TURN_CAP, D.REFUSED):
        assert held(detail, failures=2) == 0
