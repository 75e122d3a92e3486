"""What holds a queued task back: one list, and everybody who starts something goes by it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.record.lives import LEAD, OPERATOR, S, brought, ended, opened, started
from truegreen.errors import Forbidden, InvalidInput, NotFound, NotRunning, Stale
from truegreen.model import EventLevel, TaskStatus
from truegreen.record.holds import HOLDS, Hold
from truegreen.record.ledger import Ledger, Start
from truegreen.record.rows import Task

DATABASES = ("sqlite",)


def _frozen(ledger: Ledger) -> Task:
    task = opened(ledger)
    ledger.freeze(actor=OPERATOR, reason="night")
    return task


def _sealed(ledger: Ledger) -> Task:
    task = opened(ledger)
    ledger.terminate(task.id, actor=OPERATOR)
    return ledger.task(task.id)


def _needing(ledger: Ledger) -> Task:
    return opened(ledger, depends_on=(opened(ledger, priority=-1).id,))


def _reserved(ledger: Ledger) -> Task:
    task = opened(ledger)
    ledger.reserve(task.id, "somebody")
    return task


def _in_a_taken_lane(ledger: Ledger) -> Task:
    started(ledger, lane="deploy")
    return opened(ledger, lane="deploy")


HELD: dict[Hold, Callable[[Ledger], Task]] = {
    Hold.FROZEN: _frozen,
    Hold.DEPENDS_ON: _needing,
    Hold.RESERVED: _reserved,
    Hold.LANE: _in_a_taken_lane,
    Hold.LABELS: lambda ledger: opened(ledger, labels=("gpu", "linux")),
}


@pytest.mark.criterion("K09")
@pytest.mark.parametrize("hold", HELD)
def test_what_holds_a_task_back_keeps_it_from_everybody_who_starts(
    ledger: Ledger, hold: Hold
) -> None:
    task = HELD[hold](ledger)
    assert ledger.why(task.id, labels=()).hold is hold
    assert task.id not in [due.task for due in ledger.dispatchable()]
    if hold is Hold.FROZEN:
        ledger.thaw(actor=OPERATOR, reason="day")
        assert ledger.why(task.id).hold is None
        return
    assert task.id not in [ticket.task for ticket in ledger.claim_next(Start("x"), limit=10)]


def test_a_task_that_is_not_queued_is_held_back_by_its_status(ledger: Ledger) -> None:
    with pytest.raises(NotRunning, match="terminated"):
        ledger.why(_sealed(ledger).id)
    with pytest.raises(NotFound):
        ledger.why("tsk_nowhere")


def test_the_first_hold_is_the_one_that_is_said(ledger: Ledger) -> None:
    task = opened(ledger, labels=("gpu",), depends_on=(opened(ledger).id,))
    ledger.reserve(task.id, "somebody")
    found = ledger.why(task.id, labels=())
    assert found.hold is Hold.DEPENDS_ON
    assert (found.reserved_by, found.labels) == ("somebody", ("gpu",))
    assert list(HOLDS) == list(Hold)


def test_labels_are_all_wanted_and_more_may_be_offered(ledger: Ledger) -> None:
    task = opened(ledger, labels=("gpu", "linux"))
    for few in ((), ("gpu",), ("linux", "arm")):
        assert ledger.dispatchable(few) == []
        assert ledger.why(task.id, few).hold is Hold.LABELS
    assert [due.task for due in ledger.dispatchable(("arm", "linux", "gpu"))] == [task.id]
    assert ledger.why(task.id).hold is None
    assert ledger.claim_next(Start("x")) == []
    assert len(ledger.claim_next(Start("x"), labels=("gpu", "linux"))) == 1


# -- lanes


@pytest.mark.criterion("K08")
def test_a_lane_has_room_for_one_run_whoever_asks(ledger: Ledger) -> None:
    first, second = opened(ledger, lane="deploy"), opened(ledger, lane="deploy")
    ticket = started(ledger, first.id)
    found = ledger.why(second.id)
    assert (found.hold, found.lane, found.lane_taken_by) == (Hold.LANE, "deploy", first.id)
    with pytest.raises(Stale, match="lane"):
        ledger.start(second.id, Start("x"))
    ledger.end_run(ticket, ended())
    assert ledger.why(second.id).hold is None
    started(ledger, second.id)


@pytest.mark.criterion("K08")
def test_of_many_that_begin_at_once_in_a_lane_one_does(ledger: Ledger) -> None:
    tasks = [opened(ledger, lane="deploy") for _ in range(6)]

    def start(task: Task) -> bool:
        try:
            ledger.start(task.id, Start("x"))
        except Stale:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(start, tasks)) == 1
    assert sum(ledger.task(task.id).status is S.RUNNING for task in tasks) == 1


# -- needs


@pytest.mark.criterion("K05")
@pytest.mark.parametrize("status", [S.FAILED, S.CANCELED, S.BLOCKED, S.RUNNING, S.NEEDS_REVIEW])
def test_only_success_is_what_a_task_waits_for(ledger: Ledger, status: TaskStatus) -> None:
    needed, _ = brought(ledger, status)
    task = opened(ledger, depends_on=(needed.id,))
    found = ledger.why(task.id)
    assert found.hold is Hold.DEPENDS_ON
    assert [(need.task, need.status) for need in found.needs] == [(needed.id, status)]


@pytest.mark.criterion("K05")
def test_a_task_that_nobody_knows_never_satisfies(ledger: Ledger) -> None:
    task = opened(ledger, depends_on=("tsk_nowhere",))
    assert ledger.why(task.id).hold is Hold.DEPENDS_ON
    assert ledger.dispatchable() == []


@pytest.mark.criterion("K05")
def test_a_need_that_is_waived_holds_nothing_back_and_is_written_down(ledger: Ledger) -> None:
    (needed, _), (other, _) = brought(ledger, S.FAILED), brought(ledger, S.CANCELED)
    task = opened(ledger, depends_on=(needed.id, other.id))
    ledger.waive(task.id, needed.id, actor=OPERATOR, reason="done by hand")
    assert [need.task for need in ledger.why(task.id).needs] == [other.id]
    ledger.waive(task.id, other.id, actor=OPERATOR, reason="this one, too")
    assert ledger.why(task.id).hold is None
    assert [due.task for due in ledger.dispatchable()] == [task.id]
    said = ledger.events(task.id)[-1].event
    assert (said.level, said.actor, said.reason) == (
        *(EventLevel.WARN, str(OPERATOR), "this one, too"),
    )
    assert other.id in said.data


def test_only_an_operator_waives_with_a_reason_and_only_what_is_waited_for(
    ledger: Ledger,
) -> None:
    needed, _ = brought(ledger, S.FAILED)
    task = opened(ledger, depends_on=(needed.id,))
    with pytest.raises(Forbidden):
        ledger.waive(task.id, needed.id, actor=LEAD, reason="please")
    with pytest.raises(InvalidInput, match="reason"):
        ledger.waive(task.id, needed.id, actor=OPERATOR, reason=" ")
    with pytest.raises(InvalidInput, match="does not wait"):
        ledger.waive(task.id, task.id, actor=OPERATOR, reason="why not")
    assert ledger.why(task.id).hold is Hold.DEPENDS_ON
