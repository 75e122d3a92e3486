"""PostgreSQL gets writes in one go: what is refused in the middle spoils nothing that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.record.lives import OPERATOR, ended, opened, started
from tests.record.torture_truth import check_truth
from tests.record.torture_verbs import HOLDER
from truegreen.errors import Frozen
from truegreen.model import ExitDetail
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

DATABASES = ("sqlite",)


@pytest.fixture
def worker(store_url: str) -> Iterator[Ledger]:
    """A second program on the store, whose connection has seen nothing yet."""
    ledger = open_ledger(store_url)
    yield ledger
    ledger.close()


@pytest.mark.criterion("G22")
def test_a_worker_goes_on_after_the_thaw_however_often_it_was_refused(
    ledger: Ledger, worker: Ledger
) -> None:
    for _ in range(4):
        task = opened(ledger).id
        ledger.freeze(actor=OPERATOR, reason="look first")
        for _ in range(3):
            with pytest.raises(Frozen):
                worker.start(task, HOLDER)
        ledger.thaw(actor=OPERATOR, reason="go on")
        assert worker.start(task, HOLDER).task == task
    check_truth(ledger)


def test_a_task_that_is_queued_to_wake_somebody_is_in_nobodys_way(
    ledger: Ledger, worker: Ledger
) -> None:
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR).id
    ledger.end_run(started(ledger, agent_id=agent), ended(ExitDetail.REFUSED))
    woken = ledger.wake(ledger.arm(agent, actor=OPERATOR).id).id
    others = [opened(ledger).id for _ in range(3)]
    assert [ticket.task for ticket in worker.claim_next(HOLDER, limit=10)] == others
    assert worker.claim_next(HOLDER, limit=10) == []
    wake = ledger.waking(woken)
    assert wake
    start = HOLDER._replace(agent=agent, wake=wake.wake.id)
    assert worker.start(woken, start).task == woken
