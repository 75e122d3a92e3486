"""Who owns a run: heartbeats, silence, taking over, giving up. Never towards green."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import asdict, replace

from tests.record.lives import (
    BASE,
    OPERATOR,
    S,
    agent_of,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
    verdict,
)
from truegreen.contract import Budget
from truegreen.errors import InvalidInput, Stale, Terminated
from truegreen.facts import Claim
from truegreen.model import (
    AgentStatus,
    Cell,
    ClaimKind,
    EndedBy,
    ExitDetail,
    FindingOutcome,
    Mode,
    Move,
    Note,
    Outcome,
    RunStatus,
)
from truegreen.record.doctor import examine
from truegreen.record.ledger import Ledger, Start, gathering, leases, open_ledger

if TYPE_CHECKING:
    from truegreen.facts import Ticket

HOUR = 3_600_000_000


def silent(ledger: Ledger, task: str | None = None, **terms: Any) -> Ticket:
    """A run whose lease has run out."""
    task = task or opened(ledger, **terms).id
    return ledger.start(task, Start("gone", lease_seconds=-1, base_digest=BASE))


def test_a_run_is_overdue_when_its_lease_ran_out(ledger: Ledger) -> None:
    kept, gone = started(ledger), silent(ledger)
    (suspect,) = ledger.overdue()
    assert (suspect.task, suspect.run, suspect.status) == (gone.task, gone.run, S.RUNNING)
    assert (suspect.fence, suspect.lease.token) == (gone.fence, gone.lease)
    assert suspect.lease.holder == "gone"
    ledger.heartbeat(kept, lease_seconds=-1)
    assert {o.run for o in ledger.overdue()} == {kept.run, gone.run}
    assert len(ledger.overdue(limit=1)) == 1


@pytest.mark.criterion("H02")
def test_silence_alone_neither_ends_nor_frees_a_run(ledger: Ledger) -> None:
    ticket = silent(ledger)
    before = ledger.task(ticket.task)
    ledger.overdue()
    assert ledger.task(ticket.task) == before
    assert ledger.claim_next(Start("x")) == []
    ledger.heartbeat(ticket, process={"pid": 7})
    assert ledger.overdue() == []
    assert ledger.task(ticket.task) == before
    assert ledger.dossier(ticket.task).refusals == []


@pytest.mark.criterion("H02", "H03", "H04", "I04", "A04", "B04")
def test_losing_a_run_fences_it_off_and_pays_for_it(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    task = opened(ledger)
    ticket = ledger.start(task.id, Start("gone", lease_seconds=-1, agent=agent))
    (suspect,) = ledger.overdue()
    lost = ledger.lose(suspect)
    assert lost == ledger.task(task.id)
    assert (lost.status, lost.attempts, lost.fence) == (S.QUEUED, 1, ticket.fence + 1)
    assert (lost.exit_detail, lost.cell) == (ExitDetail.PROCESS_LOST, Cell.OUTAGE)
    run = ledger.run(ticket.run)[0]
    assert (run.status, run.ended_by, run.verdict) == (
        RunStatus.LOST,
        EndedBy.MACHINE,
        Outcome.UNKNOWN,
    )
    event = ledger.events(task.id)[-1].event
    assert (event.event, event.run_id, event.fence) == (Move.RETRY, ticket.run, ticket.fence + 1)
    assert ledger.agent(agent).status is AgentStatus.ERROR
    assert ledger.overdue() == []
    for attempt in (
        lambda: ledger.declare(ticket, Claim(kind=ClaimKind.DONE), actor=agent_of(ticket)),
        lambda: ledger.heartbeat(ticket),
        lambda: ledger.end_run(ticket, ended()),
    ):
        with pytest.raises(Stale) as caught:
            attempt()
        assert caught.value.details["stale"] == "fence"
    with pytest.raises(Stale):
        ledger.lose(suspect)
    assert ledger.task(task.id) == lost
    assert {r.verb for r in ledger.dossier(task.id).refusals} == {
        "declare",
        "heartbeat",
        "end_run",
    }


@pytest.mark.criterion("I01", "H08", "M03")
def test_the_last_loss_is_final_and_goes_to_a_person(ledger: Ledger) -> None:
    ticket = silent(ledger, budget=Budget(attempts=1))
    lost = ledger.lose(ledger.overdue()[0], detail=ExitDetail.SUPERVISOR_CRASHED)
    assert (lost.status, lost.exit_detail) == (S.FAILED, ExitDetail.SUPERVISOR_CRASHED)
    (item,) = ledger.inbox()
    assert (item.task, item.item.cell) == (ticket.task, Cell.OUTAGE)


@pytest.mark.criterion("M03", "H11")
@pytest.mark.parametrize(
    "detail",
    [
        ExitDetail.COMPLETED,
        ExitDetail.NOOP,
        ExitDetail.UNCLAIMED,
        ExitDetail.AGENT_ERROR,
        ExitDetail.TURN_CAP,
        ExitDetail.EGRESS_DENIED,
        ExitDetail.STOPPED,
    ],
)
def test_no_loss_leads_towards_green(ledger: Ledger, detail: ExitDetail) -> None:
    ticket = silent(ledger)
    (suspect,) = ledger.overdue()
    with pytest.raises(InvalidInput):
        ledger.lose(suspect, detail=detail)
    assert ledger.task(ticket.task).status is S.RUNNING


@pytest.mark.criterion("H08", "H03")
def test_adopting_a_run_makes_the_old_supervisor_powerless(ledger: Ledger) -> None:
    old = silent(ledger)
    (suspect,) = ledger.overdue()
    new = ledger.adopt(suspect, holder="host-2")
    assert (new.task, new.run, new.fence) == (old.task, old.run, old.fence)
    assert new.lease != old.lease
    event = ledger.events(old.task)[-1].event
    assert (event.event, event.run_id, event.reason) == (
        Note.ADOPT,
        old.run,
        "taken over by host-2",
    )
    before = ledger.task(old.task)
    for attempt in (
        lambda: ledger.heartbeat(old),
        lambda: ledger.end_run(old, ended()),
        lambda: ledger.seen(old),
    ):
        with pytest.raises(Stale) as caught:
            attempt()
        assert caught.value.details["stale"] == "lease"
    with pytest.raises(Stale, match="not overdue any more"):
        ledger.adopt(suspect, holder="host-3")
    with pytest.raises(Stale, match="not overdue any more"):
        ledger.lose(suspect)
    assert ledger.task(old.task) == before
    # The agent itself never left: its claim counts.
    ledger.declare(new, Claim(kind=ClaimKind.DONE), actor=agent_of(new))
    declared(ledger, new)
    assert judged(ledger, new, Outcome.PASSED).status is S.SUCCEEDED


def test_a_heartbeat_in_between_saves_the_suspect(ledger: Ledger) -> None:
    ticket = silent(ledger)
    (suspect,) = ledger.overdue()
    ledger.heartbeat(ticket)
    for attempt in (lambda: ledger.lose(suspect), lambda: ledger.adopt(suspect, holder="x")):
        with pytest.raises(Stale, match="not overdue any more"):
            attempt()
    assert ledger.task(ticket.task).status is S.RUNNING


@pytest.mark.criterion("M03", "H08")
def test_a_check_whose_supervisor_died_is_finished_by_another(ledger: Ledger) -> None:
    ticket = silent(ledger)
    declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.PASSED)])
    (suspect,) = ledger.overdue()
    assert suspect.status is S.PENDING_EVAL
    with pytest.raises(Stale) as caught:
        ledger.lose(suspect)
    assert caught.value.details["stale"] == "run"
    new = ledger.adopt(suspect, holder="host-2")
    with pytest.raises(Stale):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
    assert ledger.judge(new, verdict(ledger, new, Outcome.PASSED)).status is S.SUCCEEDED
    assert ledger.overdue() == []


def test_a_supervisor_keeps_its_lease_while_it_checks(ledger: Ledger) -> None:
    ticket = started(ledger)
    declared(ledger, ticket)
    ledger.heartbeat(ticket, lease_seconds=-1)
    assert [o.run for o in ledger.overdue()] == [ticket.run]
    ledger.heartbeat(ticket)
    assert ledger.overdue() == []
    judged(ledger, ticket, Outcome.PASSED)
    with pytest.raises(Stale):
        ledger.heartbeat(ticket)


@pytest.mark.criterion("B18", "H08")
def test_an_exit_that_was_only_noted_is_settled_by_another(ledger: Ledger) -> None:
    ticket = silent(ledger)
    ledger.end_run(ticket, ended(ExitDetail.SIGNALED), move=False)
    new = ledger.adopt(ledger.overdue()[0], holder="host-2")
    assert ledger.settle(new).status is S.QUEUED
    assert ledger.overdue() == []


def test_a_settled_task_has_no_lease_left(ledger: Ledger) -> None:
    for end in ("judge", "crash", "cancel", "terminate", "checkpoint"):
        ticket = silent(ledger)
        if end == "judge":
            declared(ledger, ticket)
            judged(ledger, ticket, Outcome.PASSED)
        elif end == "crash":
            ledger.end_run(ticket, ended(ExitDetail.SIGNALED))
        elif end == "checkpoint":
            ledger.checkpoint(ticket, "push", actor=agent_of(ticket))
        else:
            getattr(ledger, end)(ticket.task, actor=OPERATOR)
        assert ledger.overdue() == [], end


@pytest.mark.criterion("G18", "H08")
def test_a_terminated_suspect_is_terminated(ledger: Ledger) -> None:
    ticket = silent(ledger)
    (suspect,) = ledger.overdue()
    ledger.terminate(ticket.task, actor=OPERATOR)
    for attempt in (lambda: ledger.lose(suspect), lambda: ledger.adopt(suspect, holder="x")):
        with pytest.raises(Terminated):
            attempt()
    assert ledger.task(ticket.task).status is S.TERMINATED


@pytest.mark.criterion("H03", "H02")
def test_a_worker_that_wakes_after_its_run_was_given_away_lands_nothing(ledger: Ledger) -> None:
    old = silent(ledger)
    ledger.lose(ledger.overdue()[0])
    new = started(ledger, old.task)
    live = [run.id for run in ledger.dossier(old.task).runs if run.exit_reason is None]
    assert live == [new.run]
    before = ledger.task(old.task)
    with pytest.raises(Stale):
        ledger.end_run(old, ended(), claim=Claim(kind=ClaimKind.DONE))
    assert ledger.task(old.task) == before
    assert ledger.dossier(old.task).claims == []


@pytest.mark.criterion("H07")
def test_a_jump_of_the_wall_clock_kills_nobody(
    made_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(made_url)
    ticket = started(ledger)
    real = time.time_ns
    for hours in (10_000, -10_000):
        monkeypatch.setattr(time, "time_ns", lambda h=hours: real() + h * 3600 * 10**9)
        assert ledger.overdue() == []
        ledger.heartbeat(ticket)
    monkeypatch.setattr(time, "time_ns", real)
    assert ledger.overdue() == []
    ledger.close()


@pytest.mark.criterion("H07", "H02")
@pytest.mark.parametrize("boot", ["!", "~"], ids=["sorts before", "sorts after"])
def test_leases_run_out_by_the_steady_clock_or_a_new_boot(
    boot: str, made_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(made_url)
    store: Any = ledger.store
    now = 1000 * HOUR
    monkeypatch.setattr(store, "lease_clock", lambda: now)
    ticket = ledger.start(opened(ledger).id, Start("x", lease_seconds=60))
    now += 60_000_000
    assert ledger.overdue() == []
    now += 1
    assert [o.run for o in ledger.overdue()] == [ticket.run]
    ledger.heartbeat(ticket, lease_seconds=60)
    assert ledger.overdue() == []
    monkeypatch.setattr(store, "boot", boot)
    (suspect,) = ledger.overdue()
    now += HOUR
    assert ledger.overdue() == [suspect], "once, though there are two reasons now"
    assert ledger.adopt(suspect, holder="after the boot").run == ticket.run
    assert ledger.overdue() == []
    ledger.close()


def various(ledger: Ledger, name: str) -> list[Ticket]:
    """Silent runs whose loss leads to different ends."""
    agent = ledger.register_agent(name, "sha256:1", actor=OPERATOR).id
    paused = silent(ledger, mode=Mode.ASSISTED)
    ledger.checkpoint(paused, "push", actor=agent_of(paused))
    with_agent = Start("gone", lease_seconds=-1, agent=agent)
    return [
        silent(ledger),
        silent(ledger, budget=Budget(attempts=1), title=name),
        ledger.start(opened(ledger).id, with_agent),
        paused,
    ]


def told(ledger: Ledger, ticket: Ticket) -> dict[str, Any]:
    """What the record says of a lost run, without what differs between any two."""
    dossier, told = ledger.dossier(ticket.task), ledger.events(ticket.task)
    own = {"key", "id", "head", "created_at", "updated_at", "settled_at", "agent_key", "not_before"}
    own |= {"task_key", "seen_at", "ended_at", "contract_digest", "title"}
    task, run = map(asdict, (dossier.task, dossier.runs[-1]))
    events = [(e.event.event, e.event.revision, e.event.fence, e.event.reason) for e in told]
    data = [msgspec.json.decode(each.event.data) for each in told]
    return {
        "task": {name: task[name] for name in task.keys() - own},
        "run": {name: run[name] for name in run.keys() - own},
        "events": [*events, data[-1]],
        "agents": [agent.status for agent in dossier.agents],
        "asked": sum(each.task == ticket.task for each in ledger.inbox()),
    }


@pytest.mark.criterion("H02", "H04")
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_runs_that_are_lost_together_end_as_each_does_alone(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(leases, "_LOST_AT_ONCE", at_once)
    alone, together = various(ledger, "one"), various(ledger, "other")
    suspects = {each.run: each for each in ledger.overdue()}
    for ticket in alone:
        ledger.lose(suspects[ticket.run])
    lost = ledger.lose_all([suspects[ticket.run] for ticket in together])
    assert sorted(lost) == sorted(ticket.task for ticket in together)
    for one, other in zip(alone, together, strict=True):
        assert told(ledger, one) == told(ledger, other)
    assert ledger.overdue() == []
    assert examine(ledger) == []


@pytest.mark.criterion("H02")
@pytest.mark.parametrize(
    "happened",
    [
        lambda ledger, back: ledger.heartbeat(back),
        lambda ledger, back: ledger.end_run(back, ended()),
        lambda ledger, back: ledger.terminate(back.task, actor=OPERATOR),
    ],
    ids=["renewed", "ended", "sealed"],
)
def test_of_many_suspects_one_that_was_heard_of_again_is_left_alone(
    ledger: Ledger, happened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, back, gone_too = (silent(ledger) for _ in range(3))
    suspects = ledger.overdue()
    happened(ledger, back)
    before = ledger.task(back.task)
    monkeypatch.setattr(Ledger, "lose", None)  # nobody has to be looked at alone
    assert ledger.lose_all(suspects) == [gone.task, gone_too.task]
    assert ledger.task(back.task) == before
    assert examine(ledger) == []


@pytest.mark.criterion("H02")
def test_one_that_the_database_refuses_takes_no_other_along(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of one of them moved on between the look and the write."""
    first, moved, last = (silent(ledger) for _ in range(3))
    suspects = ledger.overdue()
    lose = Ledger._lose

    def overtaken(self: Ledger, tx: Any, work: Any, lost: Any, actor: Any) -> Any:
        if work.run.id == moved.run:
            work = work._replace(task=replace(work.task, revision=work.task.revision + 1))
        return lose(self, tx, work, lost, actor)

    monkeypatch.setattr(Ledger, "_lose", overtaken)
    assert ledger.lose_all(suspects) == [first.task, last.task]
    assert ledger.task(moved.task).status is S.RUNNING
    assert examine(ledger) == []


@pytest.mark.criterion("H02")
@pytest.mark.parametrize("column", ["to_head", "exit_reason"])
def test_a_common_write_that_misses_a_row_is_not_taken_for_done(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """A task's row has its new head, a run's row only its reason."""
    tickets, plain = [silent(ledger) for _ in range(3)], gathering._plain

    def astray(values: dict[str, Any]) -> dict[str, Any]:
        row = plain(values)
        meant = column in row and ("to_head" in row) is (column == "to_head")
        return row | {"key": -1} if meant and "key" in row else row

    monkeypatch.setattr(gathering, "_plain", astray)
    assert ledger.lose_all(ledger.overdue()) == [ticket.task for ticket in tickets]
    assert all(ledger.run(each.run)[0].status is RunStatus.LOST for each in tickets)
    assert {ledger.task(each.task).status for each in tickets} == {S.QUEUED}
    assert examine(ledger) == []


def test_a_hundred_lost_runs_cost_a_dozen_statements(ledger: Ledger) -> None:
    for _ in range(100):
        silent(ledger)
    suspects, asked = ledger.overdue(), []
    store: Any = ledger.store

    class Counting(dict[str, str]):
        def __getitem__(self, name: str) -> str:
            asked.append(name)
            return str(queries[name])

    queries, store.queries = store.queries, Counting()
    assert len(ledger.lose_all(suspects)) == 100
    store.queries = queries
    assert len(asked) <= 12, asked
