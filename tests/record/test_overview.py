"""What is seen at once: history, live runs, what waits; each beside the same counted by hand."""

from __future__ import annotations

import time

from tests.record.lives import OPERATOR, agent_of, brought, declared, ended, started
from truegreen.model import Cell, ExitDetail, Severity, TaskStatus
from truegreen.record.ledger import Ledger, Start
from truegreen.record.ledger.overview import HOUR

S = TaskStatus


def test_the_head_moves_with_every_event(ledger: Ledger):
    before = ledger.head()
    brought(ledger, S.RUNNING)
    assert ledger.head() > before


def test_the_history_says_which_runs_ended_how_in_which_hour(ledger: Ledger):
    for status in (S.SUCCEEDED, S.SUCCEEDED, S.FAILED):
        brought(ledger, status)
    found = ledger.history(0)
    assert sum(hour.runs for hour in found if hour.cell is Cell.TRUE_GREEN) == 2
    assert {hour.at % HOUR for hour in found} == {0}
    now = time.time_ns() // 1000
    assert sum(hour.runs for hour in found) == sum(e.runs for e in ledger.ended_since(0))
    assert ledger.history(now + 2 * HOUR) == []


def test_live_runs_are_listed_with_whose_they_are(ledger: Ledger):
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR)
    declared(ledger, started(ledger))
    ticket = started(ledger, agent_id=agent.id)
    (live,) = ledger.live_runs()
    assert (live.run.id, live.task, live.agent, live.agent_name) == (
        *(ticket.run, ticket.task),
        *(agent.id, "smith"),
    )


def test_a_supervisor_says_how_long_an_agent_is_idle(ledger: Ledger):
    ticket = started(ledger)
    ledger.heartbeat(ticket, idle_seconds=90.0)
    (live,) = ledger.live_runs()
    assert live.active_at is not None
    assert 89 <= time.time() - live.active_at / 1e6 <= 150
    ledger.heartbeat(ticket)
    assert ledger.live_runs()[0].active_at == live.active_at


def test_how_long_verdicts_took_is_told_of_judged_runs_only(ledger: Ledger):
    brought(ledger, S.SUCCEEDED)
    brought(ledger, S.PENDING_EVAL)
    (seconds,) = ledger.verdict_times(0)
    assert 0 < seconds < 60


def test_piles_count_what_waits_and_what_nobody_took(ledger: Ledger):
    brought(ledger, S.BLOCKED)
    brought(ledger, S.NEEDS_REVIEW)
    first, *_ = ledger.inbox()
    ledger.ack(first.item.id, actor=OPERATOR)
    piles = {pile.severity: pile for pile in ledger.piles()}
    assert sum(pile.items for pile in piles.values()) == len(ledger.inbox())
    assert sum(pile.unread for pile in piles.values()) == len(ledger.inbox()) - 1
    assert [pile.severity for pile in ledger.piles()] == [s for s in Severity if s in piles]


def test_what_is_put_off_waits_elsewhere_until_its_time(ledger: Ledger):
    brought(ledger, S.BLOCKED)
    (waiting,) = ledger.inbox()
    ledger.snooze(waiting.item.id, seconds=3600, actor=OPERATOR)
    assert (ledger.inbox(), ledger.piles()) == ([], [])
    (later,) = ledger.put_off()
    assert later.item.id == waiting.item.id
    assert ledger.inbox_item(waiting.item.id).item.state == "snoozed"
    assert [w.item.id for w in ledger.inbox_of(waiting.item.task_key)] == [waiting.item.id]


def test_the_oldest_block_is_known(ledger: Ledger):
    assert ledger.oldest_blocked() is None
    first, _ = brought(ledger, S.BLOCKED)
    second, _ = brought(ledger, S.BLOCKED)
    assert ledger.oldest_blocked() == first.settled_at
    ledger.unblock(first.id, actor=OPERATOR, reason="go on")
    ledger.end_run(ledger.start(first.id, Start("test")), ended(ExitDetail.REFUSED))
    assert ledger.oldest_blocked() == second.settled_at  # younger by name, blocked for longer


def test_statements_are_counted_as_they_come_out(ledger: Ledger):
    from tests.record.torture_verbs import Trial, found_by  # noqa: PLC0415 - one test's need

    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR)
    ticket = started(ledger, agent_id=agent.id)
    declared(ledger, ticket)
    digest = ledger.task(ticket.task).contract_digest
    found = found_by(Trial("", ticket.task, ticket, digest=digest))
    said = [{"outcome": "confirmed"}, {"outcome": "contradicted"}, {"outcome": "confirmed"}]
    import msgspec  # noqa: PLC0415 - as above

    claim = msgspec.structs.replace(
        found, kind="claim", check="claim", binding=False, evidence={"statements": said}
    )
    ledger.record(ticket, [claim])
    meters = ledger.meters()
    assert meters["claims", "confirmed|smith"] == 2
    assert meters["claims", "contradicted|smith"] == 1
    assert agent_of(ticket).run == ticket.run
