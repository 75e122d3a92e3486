"""A run from its reservation to its end, and everything that comes too late."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import (
    BASE,
    OPERATOR,
    TREE,
    S,
    agent_of,
    brought,
    contract,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
    verdict,
)
from truegreen.contract import Budget
from truegreen.errors import (
    AlreadyDeclared,
    BudgetSpent,
    Forbidden,
    IllegalMove,
    InvalidInput,
    KeyReused,
    NotFound,
    NotRunning,
    Refused,
    Stale,
    Terminated,
)
from truegreen.facts import SYSTEM, Actor, Claim, Exit, Statement, Ticket, Usage
from truegreen.model import (
    PARENT,
    AgentStatus,
    Cell,
    ClaimKind,
    EndedBy,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Move,
    Note,
    Outcome,
    Role,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start

if TYPE_CHECKING:
    from truegreen.record.rows import Event

D = ExitDetail


def last(ledger: Ledger, task: str) -> Event:
    return ledger.events(task)[-1].event


def refused(ledger: Ledger, task: str) -> list[tuple[str, str, str, str, int]]:
    return [(r.run_id, r.verb, r.code, r.actor, r.times) for r in ledger.dossier(task).refusals]


# -- start -------------------------------------------------------------------------------------


@pytest.mark.criterion("A01", "C04")
def test_starting_raises_the_fence_and_makes_a_run_under_it(ledger: Ledger) -> None:
    task = opened(ledger)
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR)
    start = Start("host-1", agent=agent.id, isolation="jail", base_digest=BASE, facts={"cwd": "/w"})
    ticket = ledger.start(task.id, start, actor=OPERATOR, key="s")
    now, (run, of) = ledger.task(task.id), ledger.run(ticket.run)
    assert (ticket.task, ticket.fence) == (task.id, 1)
    assert (now.status, now.fence, now.attempt, now.run_status) == (S.RUNNING, 1, 1, "starting")
    assert (now.attempts, now.agent_key, now.exit_reason) == (0, agent.key, None)
    assert (of, run.fence, run.attempt, run.status) == (task.id, 1, 1, RunStatus.STARTING)
    assert (run.isolation, run.base_digest, run.facts) == ("jail", BASE, '{"cwd":"/w"}')
    assert (run.exit_reason, run.ended_at, run.ended_by, run.cell) == (None,) * 4
    assert ledger.agent(agent.id).status is AgentStatus.IN_PROGRESS
    event = last(ledger, task.id)
    assert (event.event, event.from_status, event.to_status) == (Move.START, S.QUEUED, S.RUNNING)
    assert (event.actor, event.run_id, event.fence) == ("operator:ana", ticket.run, 1)
    assert (event.idempotency_key, json.loads(event.data)) == (
        "s",
        {"attempt": 1, "holder": "host-1"},
    )


@pytest.mark.criterion("H03", "I15", "C08")
def test_only_a_queued_task_starts_and_a_conflict_charges_nothing(ledger: Ledger) -> None:
    for status in (s for s in TaskStatus if s is not S.QUEUED):
        task, _ = brought(ledger, status)
        with pytest.raises(Terminated if status is S.TERMINATED else IllegalMove):
            started(ledger, task.id)
        assert ledger.task(task.id) == task
        assert len(ledger.dossier(task.id).runs) == task.attempt


@pytest.mark.criterion("H03", "C08", "I15")
def test_of_many_that_start_one_task_at_once_one_wins(ledger: Ledger) -> None:
    task = opened(ledger)

    def attempt(_: int) -> Ticket | Refused:
        try:
            return ledger.start(task.id, Start("test"))
        except Refused as error:
            return error

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(attempt, range(12)))
    tickets = [each for each in outcomes if isinstance(each, Ticket)]
    assert len(tickets) == 1
    assert all(isinstance(each, (Ticket, IllegalMove)) for each in outcomes)
    now = ledger.task(task.id)
    assert (now.fence, now.attempt, now.attempts, len(ledger.dossier(task.id).runs)) == (1, 1, 0, 1)


@pytest.mark.criterion("C11", "H03")
def test_starting_again_under_a_key_gives_the_same_ticket_and_never_anothers(
    ledger: Ledger,
) -> None:
    task = opened(ledger, budget=Budget(attempts=5))
    first = ledger.start(task.id, Start("one"), key="s")
    assert ledger.start(task.id, Start("one"), key="s") == first
    assert len(ledger.events(task.id)) == 2
    other = opened(ledger)
    with pytest.raises(KeyReused):
        ledger.start(other.id, Start("one"), key="s")
    ledger.end_run(first, ended(D.SIGNALED))
    with pytest.raises(Stale, match=first.run):
        ledger.start(task.id, Start("one"), key="s")
    second = ledger.start(task.id, Start("two"))
    with pytest.raises(Stale, match=first.run):
        ledger.start(task.id, Start("one"), key="s")
    ledger.heartbeat(second)


def test_a_task_that_is_held_back_starts_when_its_time_has_come(ledger: Ledger) -> None:
    ticket = started(ledger)
    with ledger.store.snapshot() as tx:
        soon = tx.now + 3_600_000_000
    ledger.end_run(ticket, ended(D.RATE_LIMITED, not_before=soon))
    before = ledger.task(ticket.task)
    assert before.not_before == soon
    with pytest.raises(Refused, match="held back") as caught:
        started(ledger, ticket.task)
    assert caught.value.details["not_before"] == soon
    assert ledger.claim_next(Start("test")) == []
    assert ledger.task(ticket.task) == before


def test_an_agent_is_at_one_run_at_a_time(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent)
    other = opened(ledger)
    with pytest.raises(Stale, match="another run") as caught:
        ledger.start(other.id, Start("test", agent=agent))
    assert caught.value.details["stale"] == "agent"
    with pytest.raises(NotFound):
        ledger.start(other.id, Start("test", agent="agt_nobody"))
    assert ledger.task(other.id) == other
    ledger.end_run(ticket, ended(D.SIGNALED))
    assert ledger.agent(agent).status is AgentStatus.ERROR
    again = ledger.start(other.id, Start("test", agent=agent))
    ledger.end_run(again, ended())
    assert ledger.agent(agent).status is AgentStatus.COMPLETED


@pytest.mark.criterion("K07", "M07")
def test_eight_workers_share_two_hundred_tasks_and_none_gets_anothers(ledger: Ledger) -> None:
    ids = {opened(ledger).id for _ in range(200)}

    def work(name: int) -> list[Ticket]:
        mine: list[Ticket] = []
        while tickets := ledger.claim_next(Start(f"w{name}"), limit=1 + name % 3):
            mine += tickets
        return mine

    with ThreadPoolExecutor(8) as pool:
        lots = list(pool.map(work, range(8)))
    got = [ticket.task for lot in lots for ticket in lot]
    assert len(got) == len(set(got)) == 200
    assert set(got) == ids
    assert len({ticket.lease for lot in lots for ticket in lot}) == 200
    for lot in lots:
        for ticket in lot[:2]:
            ledger.heartbeat(ticket)


def test_the_most_urgent_and_then_the_oldest_is_next(ledger: Ledger) -> None:
    priorities = [0, 5, -5, 5, 0, 100, -100]
    tasks = [opened(ledger, priority=priority) for priority in priorities]
    wanted = [t.id for t in sorted(tasks, key=lambda t: (-t.priority, t.key))]
    first = ledger.claim_next(Start("test"), limit=3)
    rest = ledger.claim_next(Start("test"), limit=10)
    assert [ticket.task for ticket in first + rest] == wanted
    assert ledger.claim_next(Start("test")) == []
    assert {last(ledger, task.id).event for task in tasks} == {Move.START}


# -- seen --------------------------------------------------------------------------------------


@pytest.mark.criterion("C21")
def test_seeing_the_process_is_written_down_once(ledger: Ledger) -> None:
    ticket = started(ledger)
    task = ledger.seen(ticket)
    assert (task.run_status, task.status) == (RunStatus.RUNNING, S.RUNNING)
    run = ledger.run(ticket.run)[0]
    assert run.status is RunStatus.RUNNING
    assert run.seen_at is not None
    assert (last(ledger, ticket.task).event, last(ledger, ticket.task).run_id) == (
        Note.SEEN,
        ticket.run,
    )
    assert ledger.seen(ticket) == task == ledger.task(ticket.task)


# -- declare -----------------------------------------------------------------------------------


@pytest.mark.criterion("J21", "A10", "N07", "C04")
@pytest.mark.parametrize("kind", list(ClaimKind))
def test_a_claim_is_kept_and_moves_nothing(ledger: Ledger, kind: ClaimKind) -> None:
    ticket = started(ledger)
    claim = Claim(
        kind=kind,
        reason="212 tests passed",
        statements=(Statement("212 tests passed", "tests"),),
        extra={"issues_triaged": 0},
        source="file",
    )
    task = ledger.declare(ticket, claim, actor=agent_of(ticket), key="c")
    assert (task.status, task.verdict, task.exit_reason) == (S.RUNNING, Outcome.UNKNOWN, None)
    (kept,) = ledger.dossier(ticket.task).claims
    assert (kept.kind, kept.reason, kept.source) == (kind, "212 tests passed", "file")
    assert json.loads(kept.extra) == {"issues_triaged": 0}
    assert json.loads(kept.statements)[0]["text"] == "212 tests passed"
    event = last(ledger, ticket.task)
    assert (event.event, event.actor, event.run_id) == (Note.CLAIM, "agent:agent", ticket.run)
    assert (event.reason, event.idempotency_key) == ("212 tests passed", "c")
    assert event.to_status is None
    assert ledger.declare(ticket, claim, actor=agent_of(ticket), key="c") == task


@pytest.mark.criterion("N04", "M11")
def test_the_first_declaration_wins_and_the_rest_is_evidence(ledger: Ledger) -> None:
    ticket = started(ledger)
    agent = agent_of(ticket)
    ledger.declare(ticket, Claim(kind=ClaimKind.FAILED, reason="can't"), actor=agent)
    before = ledger.task(ticket.task)
    for _ in range(2):
        with pytest.raises(AlreadyDeclared):
            ledger.declare(ticket, Claim(kind=ClaimKind.DONE, reason="can"), actor=agent)
    assert ledger.task(ticket.task) == before
    assert [c.kind for c in ledger.dossier(ticket.task).claims] == ["failed"]
    assert refused(ledger, ticket.task) == [
        (ticket.run, "declare", "already_declared", "agent:agent", 2)
    ]
    assert json.loads(ledger.dossier(ticket.task).refusals[0].evidence)["kind"] == "done"


@pytest.mark.criterion("N04")
def test_a_claim_that_comes_with_the_exit_does_not_replace_the_first(ledger: Ledger) -> None:
    ticket = started(ledger)
    ledger.declare(ticket, Claim(kind=ClaimKind.BLOCKED, reason="no key"), actor=agent_of(ticket))
    ledger.end_run(ticket, ended(D.INPUT_NEEDED), claim=Claim(kind=ClaimKind.DONE, reason="fine"))
    assert [c.kind for c in ledger.dossier(ticket.task).claims] == ["blocked"]
    (kept,) = ledger.dossier(ticket.task).refusals
    assert (kept.code, json.loads(kept.evidence)["kind"]) == ("already_declared", "done")


@pytest.mark.criterion("N08", "O01")
def test_only_the_owner_of_a_run_declares_for_it(ledger: Ledger) -> None:
    ticket, other = started(ledger), started(ledger)
    done = Claim(kind=ClaimKind.DONE)
    strangers = [
        agent_of(other),
        Actor(Role.AGENT, "agent", ticket.run, ticket.fence + 1),
        Actor(Role.AGENT, "agent"),
    ]
    before = ledger.task(ticket.task)
    for stranger in strangers:
        with pytest.raises(Forbidden):
            ledger.declare(ticket, done, actor=stranger)
    crossed = Ticket(other.task, ticket.run, ticket.fence, ticket.lease)
    with pytest.raises(Stale):
        ledger.declare(crossed, done, actor=agent_of(ticket))
    with pytest.raises(NotFound):
        ledger.declare(Ticket(ticket.task, "run_nowhere", 1, ""), done, actor=agent_of(ticket))
    assert ledger.task(ticket.task) == before
    assert ledger.dossier(ticket.task).claims == []


# -- the end of a run --------------------------------------------------------------------------

LEADS_TO: dict[ExitDetail, tuple[TaskStatus, Outcome, Cell, str | None]] = {
    # where an exit leads: status, verdict, cell, and what is charged
    D.COMPLETED: (S.PENDING_EVAL, Outcome.PENDING, Cell.AWAITING_VERDICT, None),
    D.NOOP: (S.PENDING_EVAL, Outcome.PENDING, Cell.AWAITING_VERDICT, None),
    D.DECLARED_FAILURE: (S.QUEUED, Outcome.FAILED, Cell.SILENT_FAILURE, "attempts"),
    D.UNCLAIMED: (S.FAILED_PENDING_EVAL, Outcome.PENDING, Cell.AWAITING_VERDICT, None),
    D.UNCLASSIFIED: (S.QUEUED, Outcome.UNKNOWN, Cell.UNVERIFIED, "attempts"),
    D.AGENT_ERROR: (S.FAILED_PENDING_EVAL, Outcome.PENDING, Cell.RESCUE_UNDER_WAY, None),
    D.RATE_LIMITED: (S.QUEUED, Outcome.UNKNOWN, Cell.OUTAGE, "deferrals"),
    D.SUPERVISOR_RESTARTED: (S.QUEUED, Outcome.UNKNOWN, Cell.OUTAGE, "deferrals"),
    **{
        cap: (S.FAILED_PENDING_EVAL, Outcome.PENDING, Cell.RESCUE_UNDER_WAY, None)
        for cap in D
        if cap.endswith("_cap")
    },
    **dict.fromkeys(
        (D.PERMISSION_DENIED, D.EGRESS_DENIED, D.CONNECTOR_MISSING, D.INPUT_NEEDED),
        (S.FAILED_PENDING_EVAL, Outcome.PENDING, Cell.AWAITING_VERDICT, None),
    ),
    **dict.fromkeys(
        (D.APPROVAL_CHECKPOINT, D.APPROVAL_EXPIRED, D.REFUSED),
        (S.BLOCKED, Outcome.UNKNOWN, Cell.BLOCKED, None),
    ),
    **dict.fromkeys(
        (
            D.SIGNALED,
            D.OOM,
            D.PROCESS_LOST,
            D.ZERO_OUTPUT,
            D.PROVIDER_ERROR,
            D.SUPERVISOR_CRASHED,
        ),
        (S.QUEUED, Outcome.UNKNOWN, Cell.OUTAGE, "attempts"),
    ),
    **dict.fromkeys(
        (D.AUTH_INVALID, D.DISK_FULL, D.CONFIG_INVALID, D.LAUNCH_FAILED),
        (S.FAILED, Outcome.UNKNOWN, Cell.OUTAGE, "attempts"),
    ),
    **dict.fromkeys(
        (D.STOPPED, D.CANCELED, D.TERMINATED, D.SUPERSEDED),
        (S.CANCELED, Outcome.UNKNOWN, Cell.STOPPED, None),
    ),
}


@pytest.mark.criterion("A04", "A05", "A14", "B15", "B16", "F04", "F05", "I09")
def test_every_exit_is_recorded_and_leads_where_it_should(ledger: Ledger) -> None:
    assert set(LEADS_TO) == set(D)
    for detail, (status, outcome, cell, charged) in LEADS_TO.items():
        ticket = started(ledger)
        crashed = ended(detail).status is not RunStatus.EXITED
        code = 3 if crashed else 0
        how = ended(
            detail, code=code, signal=None, usage=Usage(turns=4, cost_usd=0.5), message="so it was"
        )
        task = ledger.end_run(ticket, how, key=f"end-{detail}")
        assert task == ledger.task(ticket.task)
        assert (task.status, task.verdict, task.cell) == (status, outcome, cell), detail
        assert (task.exit_reason, task.exit_detail) == (PARENT[detail], detail)
        assert task.run_status is how.status
        run = ledger.run(ticket.run)[0]
        assert (run.status, run.exit_reason, run.exit_detail) == (
            how.status,
            PARENT[detail],
            detail,
        )
        assert (run.verdict, run.cell, run.exit_code, run.ended_by) == (
            outcome,
            cell,
            code,
            "agent",
        )
        assert (run.digest, json.loads(run.usage)["turns"]) == (TREE, 4)
        assert run.ended_at == task.updated_at
        spent = {"attempts": task.attempts, "deferrals": task.deferrals}
        assert spent == {"attempts": charged == "attempts", "deferrals": charged == "deferrals"}
        event = last(ledger, ticket.task)
        assert (event.from_status, event.to_status) == (S.RUNNING, status)
        assert (event.actor, event.reason, event.run_id) == (str(SYSTEM), "so it was", ticket.run)
        assert (event.fence, event.idempotency_key) == (ticket.fence, f"end-{detail}")
        data = json.loads(event.data)
        assert (data["exit_reason"], data["exit_detail"]) == (PARENT[detail], detail)
        assert data.get("charged", []) == ([charged] if charged else [])
        assert (event.level == "warn") == (status is S.BLOCKED)


@pytest.mark.criterion("A05", "A14")
def test_a_cap_is_neither_red_nor_green_whatever_the_checks_find(ledger: Ledger) -> None:
    for cap in (detail for detail in D if detail.endswith("_cap")):
        cells = {}
        for outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.UNKNOWN):
            ticket = started(ledger, budget=Budget(attempts=1))
            ledger.end_run(ticket, ended(cap, ended_by=EndedBy.CAP))
            task = judged(ledger, ticket, outcome)
            assert (task.run_status, task.exit_reason) == (RunStatus.CAPPED, "max_iterations")
            cells[outcome] = (task.status, task.cell, task.rescued)
        assert cells == {
            Outcome.PASSED: (S.SUCCEEDED, Cell.FINISHED_AT_THE_CAP, True),
            Outcome.FAILED: (S.FAILED, Cell.CAP_HIT, False),
            Outcome.INCONCLUSIVE: (S.NEEDS_REVIEW, Cell.CAP_HIT, False),
            Outcome.UNKNOWN: (S.NEEDS_REVIEW, Cell.CAP_HIT, False),
        }


@pytest.mark.criterion("F36")
@pytest.mark.parametrize("detail", [D.UNCLAIMED, D.AGENT_ERROR, D.TURN_CAP, D.EGRESS_DENIED])
def test_with_rescue_switched_off_no_check_starts(ledger: Ledger, detail: ExitDetail) -> None:
    ticket = started(ledger, rescue=(), budget=Budget(attempts=1))
    task = ledger.end_run(ticket, ended(detail))
    hindered = PARENT[detail] is ExitReason.BLOCKED
    assert task.status is (S.BLOCKED if hindered else S.FAILED)
    ledger_says = ledger.run(ticket.run)[0].verdict
    assert ledger_says is Outcome.UNKNOWN
    with pytest.raises(Stale):
        ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.PASSED)])


@pytest.mark.criterion("B24")
def test_who_ended_a_run_is_what_the_host_says(ledger: Ledger) -> None:
    for by in EndedBy:
        ticket = started(ledger)
        ledger.end_run(ticket, ended(D.SIGNALED, ended_by=by, signal=9))
        run = ledger.run(ticket.run)[0]
        assert (run.ended_by, run.signal) == (by, 9)
        assert json.loads(last(ledger, ticket.task).data)["ended_by"] == by


@pytest.mark.criterion("B17", "C10", "M11")
def test_the_first_exit_reason_wins_and_the_second_is_evidence(ledger: Ledger) -> None:
    for first, second in ((D.COMPLETED, D.SIGNALED), (D.SIGNALED, D.COMPLETED)):
        ticket = started(ledger)
        task = ledger.end_run(ticket, ended(first))
        run = ledger.run(ticket.run)[0]
        with pytest.raises(Stale):
            ledger.end_run(ticket, ended(second))
        assert ledger.task(ticket.task) == task
        assert ledger.run(ticket.run)[0] == run
        (kept,) = ledger.dossier(ticket.task).refusals
        assert (kept.verb, kept.code, kept.run_id) == ("end_run", "stale", ticket.run)
        assert json.loads(kept.evidence)["detail"] == second


@pytest.mark.criterion("B18")
def test_the_reason_alone_and_then_the_step_is_the_same_as_both_together(ledger: Ledger) -> None:
    for detail in D:
        status, outcome, cell, charged = LEADS_TO[detail]
        ticket = started(ledger)
        noted = ledger.end_run(ticket, ended(detail), move=False, key=f"e-{detail}")
        assert (noted.status, noted.exit_detail, noted.verdict) == (
            S.RUNNING,
            detail,
            Outcome.PENDING,
        )
        assert noted.attempts == noted.deferrals == 0
        assert last(ledger, ticket.task).event == Note.END
        again = ledger.end_run(ticket, ended(detail), move=False, key=f"e-{detail}")
        assert again == noted
        task = ledger.settle(ticket)
        assert (task.status, task.verdict, task.cell) == (status, outcome, cell)
        assert (task.attempts, task.deferrals) == (charged == "attempts", charged == "deferrals")
        run = ledger.run(ticket.run)[0]
        assert (run.verdict, run.cell) == (outcome, cell)
        assert last(ledger, ticket.task).to_status is status
        with pytest.raises(Refused):
            ledger.settle(ticket)
        assert ledger.task(ticket.task) == task


@pytest.mark.criterion("I08")
def test_a_deferral_that_is_settled_later_still_waits_for_its_time(ledger: Ledger) -> None:
    ticket = started(ledger)
    with ledger.store.snapshot() as tx:
        soon = tx.now + 60_000_000
    ledger.end_run(ticket, ended(D.RATE_LIMITED, not_before=soon), move=False)
    assert ledger.settle(ticket).not_before == soon


def test_a_live_run_cannot_be_settled(ledger: Ledger) -> None:
    ticket = started(ledger)
    before = ledger.task(ticket.task)
    with pytest.raises(NotRunning):
        ledger.settle(ticket)
    assert ledger.task(ticket.task) == before


def test_an_exit_that_contradicts_itself_is_refused(ledger: Ledger) -> None:
    ticket = started(ledger)
    before = ledger.task(ticket.task)
    how = ended(D.COMPLETED)
    wrong = [
        type(how)(**{**_fields(how), "reason": ExitReason.BLOCKED}),
        *(
            type(how)(**{**_fields(how), "status": status})
            for status in (RunStatus.STARTING, RunStatus.RUNNING, RunStatus.PAUSED)
        ),
    ]
    for each in wrong:
        with pytest.raises(InvalidInput):
            ledger.end_run(ticket, each)
    assert ledger.task(ticket.task) == before


def _fields(how: Exit) -> dict[str, Any]:
    return {name: getattr(how, name) for name in how.__struct_fields__}


# -- too late ----------------------------------------------------------------------------------

LATE: dict[str, Callable[[Ledger, Ticket], object]] = {
    "seen": lambda ledger, t: ledger.seen(t),
    "declare": lambda ledger, t: ledger.declare(t, Claim(kind=ClaimKind.DONE), actor=agent_of(t)),
    "charge": lambda ledger, t: ledger.charge(t, "reentries", limit=5),
    "end_run": lambda ledger, t: ledger.end_run(t, ended()),
    "settle": lambda ledger, t: ledger.settle(t),
    "record": lambda ledger, t: ledger.record(t, [finding(ledger, t, FindingOutcome.PASSED)]),
    "judge": lambda ledger, t: ledger.judge(t, verdict(ledger, t, Outcome.PASSED)),
    "record_qa": lambda ledger, t: ledger.record_qa(t, finding(ledger, t, FindingOutcome.PASSED)),
    "checkpoint": lambda ledger, t: ledger.checkpoint(t, "push", actor=agent_of(t)),
    "heartbeat": lambda ledger, t: ledger.heartbeat(t),
}


@pytest.mark.criterion("C10", "M11", "G20", "E22")
def test_a_superseded_run_changes_nothing_and_leaves_evidence(ledger: Ledger) -> None:
    for verb, act in LATE.items():
        old = started(ledger)
        ledger.end_run(old, ended(D.SIGNALED))
        new = started(ledger, old.task)
        before = (ledger.task(old.task), ledger.events(old.task), ledger.dossier(old.task).runs)
        for _ in range(3):
            with pytest.raises(Stale, match="stale fence 1") as caught:
                act(ledger, old)
            said = caught.value.details
            assert (said["stale"], said["given"], said["current"]) == ("fence", 1, 2)
        assert (
            ledger.task(old.task),
            ledger.events(old.task),
            ledger.dossier(old.task).runs,
        ) == before
        (kept,) = refused(ledger, old.task)
        assert (kept[0], kept[1], kept[2], kept[4]) == (old.run, verb, "stale", 3)
        ledger.heartbeat(new)


@pytest.mark.criterion("G20", "C09")
def test_a_terminated_run_is_refused_as_terminated(ledger: Ledger) -> None:
    for verb, act in LATE.items():
        ticket = started(ledger)
        ledger.terminate(ticket.task, actor=OPERATOR)
        before = (ledger.task(ticket.task), ledger.events(ticket.task))
        with pytest.raises(Terminated) as caught:
            act(ledger, ticket)
        assert caught.value.details["status"] == S.TERMINATED
        assert (ledger.task(ticket.task), ledger.events(ticket.task)) == before
        (kept,) = refused(ledger, ticket.task)
        assert (kept[1], kept[2]) == (verb, "terminated")


def test_a_supervisor_without_the_lease_is_refused(ledger: Ledger) -> None:
    for verb in (v for v in LATE if v not in ("declare", "checkpoint")):
        ticket = started(ledger)
        thief = Ticket(ticket.task, ticket.run, ticket.fence, "0" * 32)
        before = ledger.task(ticket.task)
        with pytest.raises(Stale) as caught:
            LATE[verb](ledger, thief)
        assert caught.value.details["stale"] == "lease"
        assert ledger.task(ticket.task) == before


def _judge(outcome: Outcome) -> Callable[[Ledger, Ticket], object]:
    return lambda ledger, ticket: judged(ledger, ticket, outcome)


def _lose(ledger: Ledger, ticket: Ticket) -> object:
    return ledger.lose(next(o for o in ledger.overdue() if o.run == ticket.run))


DISPOSITIONS: dict[str, tuple[Callable[[Ledger, Ticket], object], str]] = {
    "success": (_judge(Outcome.PASSED), "pending_eval"),
    "fail": (_judge(Outcome.FAILED), "pending_eval"),
    "undecided": (_judge(Outcome.UNKNOWN), "pending_eval"),
    "crash": (lambda ledger, t: ledger.end_run(t, ended(D.SIGNALED)), "running"),
    "park": (lambda ledger, t: ledger.end_run(t, ended(D.REFUSED)), "running"),
    "lost": (_lose, "running"),
    "terminate": (lambda ledger, t: ledger.terminate(t.task, actor=OPERATOR), "any"),
    "cancel": (lambda ledger, t: ledger.cancel(t.task, actor=OPERATOR), "any"),
}


@pytest.mark.criterion("C09", "A19", "A20", "G14")
@pytest.mark.parametrize("first", DISPOSITIONS)
def test_the_first_disposition_wins_in_every_order(ledger: Ledger, first: str) -> None:
    act, where = DISPOSITIONS[first]
    for second, (other, _) in DISPOSITIONS.items():
        task = opened(ledger, budget=Budget(attempts=1))
        ticket = ledger.start(task.id, Start("test", lease_seconds=-1, base_digest=BASE))
        suspect = next(o for o in ledger.overdue() if o.run == ticket.run)
        if where == "pending_eval":
            declared(ledger, ticket)
        act(ledger, ticket)
        won = ledger.task(task.id)
        run = ledger.run(ticket.run)[0]
        if second == "terminate" and won.status is not S.TERMINATED:
            other(ledger, ticket)
            sealed = ledger.task(task.id)
            if won.status in (S.SUCCEEDED, S.FAILED, S.CANCELED):
                assert (sealed.status, sealed.verdict, sealed.cell) == (
                    won.status,
                    won.verdict,
                    won.cell,
                )
            else:
                assert sealed.status is S.TERMINATED
        elif second == "cancel" and won.status in (S.NEEDS_REVIEW, S.BLOCKED):
            other(ledger, ticket)
            assert ledger.task(task.id).status is S.CANCELED
        elif (first, second) in (("cancel", "cancel"), ("terminate", "terminate")):
            other(ledger, ticket)
            assert ledger.task(task.id) == won
        elif second == "lost":
            with pytest.raises((Stale, Terminated)):
                ledger.lose(suspect)
            assert ledger.task(task.id) == won
        else:
            with pytest.raises((Stale, Terminated, IllegalMove)):
                other(ledger, ticket)
            assert ledger.task(task.id) == won, (first, second)
        later = ledger.run(ticket.run)[0]
        assert (later.status, later.exit_reason, later.exit_detail, later.ended_at) == (
            run.status,
            run.exit_reason,
            run.exit_detail,
            run.ended_at,
        )


# -- charges -----------------------------------------------------------------------------------


@pytest.mark.criterion("I18", "I16")
def test_re_entries_are_counted_per_run_up_to_what_the_contract_allows(ledger: Ledger) -> None:
    ticket = started(ledger, budget=Budget(reentries=2))
    assert [ledger.charge(ticket, "reentries", limit=99) for _ in range(2)] == [(1, 2), (2, 2)]
    with pytest.raises(BudgetSpent, match="2 of 2"):
        ledger.charge(ticket, "reentries", limit=99)
    with pytest.raises(InvalidInput):
        ledger.charge(ticket, "reentries", limit=99, subject="another")


@pytest.mark.criterion("I18", "I16")
def test_a_run_is_charged_up_to_its_limit_and_each_charge_is_written_down(
    ledger: Ledger,
) -> None:
    budget = "check_errors"
    ticket = started(ledger)
    used = [ledger.charge(ticket, budget, limit=2, subject="tests") for _ in range(2)]
    assert used == [(1, 2), (2, 2)]
    before = ledger.task(ticket.task)
    for limit in (2, 99):
        with pytest.raises(BudgetSpent, match="2 of 2"):
            ledger.charge(ticket, budget, limit=limit, subject="tests")
    assert ledger.task(ticket.task) == before
    assert ledger.charge(ticket, budget, limit=2, subject="lint") == (1, 2)
    key = ledger.run(ticket.run)[0].key
    assert ledger.dossier(ticket.task).charges == [
        (key, budget, "lint", 1, 2),
        (key, budget, "tests", 2, 2),
    ]
    charges = [e.event for e in ledger.events(ticket.task) if e.event.event == Note.CHARGE]
    assert [json.loads(e.data)["used"] for e in charges] == [1, 2, 1]
    assert json.loads(charges[0].data) == {
        "budget": budget,
        "subject": "tests",
        "used": 1,
        "of": 2,
    }


@pytest.mark.parametrize("limit", [0, -1])
def test_a_budget_of_nothing_is_spent_at_once(ledger: Ledger, limit: int) -> None:
    ticket = started(ledger)
    before = ledger.task(ticket.task)
    with pytest.raises((BudgetSpent, InvalidInput)):
        ledger.charge(ticket, "reentries", limit=limit)
    with pytest.raises(InvalidInput, match="no budget"):
        ledger.charge(ticket, "wishes", limit=1)
    assert ledger.task(ticket.task) == before
    assert ledger.dossier(ticket.task).charges == []


# -- keys --------------------------------------------------------------------------------------


@pytest.mark.criterion("C11")
def test_the_end_of_a_run_under_a_key_happens_once(ledger: Ledger) -> None:
    ticket = started(ledger)
    task = ledger.end_run(ticket, ended(D.SIGNALED), key="e")
    assert ledger.end_run(ticket, ended(D.SIGNALED), key="e") == task
    assert ledger.dossier(ticket.task).refusals == []
    again = started(ledger, ticket.task)
    with pytest.raises(KeyReused):
        ledger.end_run(again, ended(D.SIGNALED), key="e")
    assert ledger.task(ticket.task).status is S.RUNNING


@pytest.mark.criterion("C11")
def test_a_key_of_one_verb_is_no_key_of_another(ledger: Ledger) -> None:
    ticket = started(ledger)
    agent = agent_of(ticket)
    ledger.declare(ticket, Claim(kind=ClaimKind.DONE), actor=agent, key="k")
    for verb in (
        lambda: ledger.end_run(ticket, ended(), key="k"),
        lambda: ledger.checkpoint(ticket, "push", actor=agent, key="k"),
        lambda: ledger.cancel(ticket.task, actor=OPERATOR, key="k"),
        lambda: ledger.open(contract(), actor=OPERATOR, key="k"),
        lambda: ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED), key="k"),
    ):
        with pytest.raises(KeyReused):
            verb()
    assert ledger.task(ticket.task).status is S.RUNNING


@pytest.mark.criterion("C11")
@pytest.mark.parametrize("verb", ["declare", "end_run", "judge", "checkpoint", "start"])
def test_the_same_request_at_once_is_done_once_and_answered_alike(
    ledger: Ledger, verb: str
) -> None:
    if verb == "start":
        task = opened(ledger).id
        acts: Callable[[], object] = lambda: ledger.start(task, Start("t"), key="k")  # noqa: E731
    else:
        ticket = started(ledger)
        task = ticket.task
        if verb == "judge":
            declared(ledger, ticket)
            ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.PASSED)])
            passed = verdict(ledger, ticket, Outcome.PASSED)
        acts = {
            "declare": lambda: ledger.declare(
                ticket, Claim(kind=ClaimKind.DONE), actor=agent_of(ticket), key="k"
            ),
            "end_run": lambda: ledger.end_run(ticket, ended(), key="k"),
            "judge": lambda: ledger.judge(ticket, passed, key="k"),
            "checkpoint": lambda: ledger.checkpoint(ticket, "p", actor=agent_of(ticket), key="k"),
        }[verb]
    with ThreadPoolExecutor(6) as pool:
        answers = [future.result() for future in [pool.submit(acts) for _ in range(12)]]
    assert all(answer == answers[0] for answer in answers)
    assert sum(e.event.idempotency_key == "k" for e in ledger.events(task)) == 1
    assert ledger.dossier(task).refusals == []
