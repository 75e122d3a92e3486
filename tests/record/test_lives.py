"""Every status can be reached by the ledger's verbs, on both databases."""

from __future__ import annotations

import pytest

from tests.record.lives import brought
from truegreen.model import TaskStatus
from truegreen.record.ledger import Ledger


@pytest.mark.parametrize("status", list(TaskStatus))
def test_every_status_is_reached_by_verbs_alone(ledger: Ledger, status: TaskStatus) -> None:
    task, _ = brought(ledger, status)
    assert task.status is status
