"""Probes of what the database counts by itself: each says whether its meter is true."""

from __future__ import annotations

from tests.record.lives import (
    OPERATOR,
    brought,
    declared,
    ended,
    finding,
    judged,
    started,
)
from tests.record.raw_attacks import run_of
from tests.record.raw_sql import Raw
from truegreen.errors import Stale
from truegreen.model import ExitDetail, FindingOutcome, Outcome, TaskStatus
from truegreen.record.ledger import Ledger

S = TaskStatus
_ENDED = (
    "SELECT runs.status || '|' || exit_reason || '|' || exit_detail || '|' ||"
    " COALESCE(agents.name, ''), COUNT(*) FROM runs LEFT JOIN agents ON agents.key = agent_key"
    " WHERE exit_reason IS NOT NULL GROUP BY 1"
)
_WAITING = "SELECT severity || '|' || state, COUNT(*) FROM inbox GROUP BY 1"


def _metered(raw: Raw, name: str, by_hand: str) -> bool:
    kept = raw.do(
        "SELECT label, CAST(SUM(total) AS bigint) FROM meters"
        f" WHERE name = '{name}' GROUP BY label ORDER BY 1"
    )
    return kept == raw.do(f"{by_hand} ORDER BY 1")


def runs_missed(ledger: Ledger, raw: Raw) -> bool:
    run = run_of(ledger, brought(ledger, S.RUNNING)[1])
    missed = {"status": "'missed'", "cell": "'outage'", "ended_by": "'machine'", "ended_at": 1}
    end = {"exit_reason": "'unknown'", "exit_detail": "'unclassified'"}
    raw.do(raw.copied("runs", run.key, key=1000, id="'run_raw'", attempt=99, **missed, **end))
    return _metered(raw, "runs", _ENDED)


def runs_ended(ledger: Ledger, raw: Raw) -> bool:
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR)
    declared(ledger, started(ledger, agent_id=agent.id))
    for status in (S.FAILED, S.SUCCEEDED):
        brought(ledger, status)
    return _metered(raw, "runs", _ENDED)


def findings(ledger: Ledger, raw: Raw) -> bool:
    for status in (S.FAILED, S.SUCCEEDED):
        brought(ledger, status)
    counted = "SELECT outcome || '|' || kind, COUNT(*) FROM findings GROUP BY 1"
    spent = "SELECT kind, CAST(SUM(duration_us) AS bigint) FROM findings GROUP BY 1"
    return _metered(raw, "checks", counted) and _metered(raw, "check_us", spent)


def _refused(ledger: Ledger, times: int) -> None:
    _, ticket = brought(ledger, S.SUCCEEDED)
    assert ticket
    for _ in range(times):
        try:
            declared(ledger, ticket)
        except Stale:
            continue
        raise AssertionError("a late declaration was taken")


def _refusals_metered(raw: Raw) -> bool:
    by_hand = "SELECT code, CAST(SUM(times) AS bigint) FROM refusals GROUP BY 1"
    return _metered(raw, "refused", by_hand)


def refusals(ledger: Ledger, raw: Raw) -> bool:
    _refused(ledger, 1)
    return _refusals_metered(raw)


def refusals_again(ledger: Ledger, raw: Raw) -> bool:
    _refused(ledger, 3)
    return _refusals_metered(raw)


def events_again(ledger: Ledger, raw: Raw) -> bool:
    task, _ = brought(ledger, S.FAILED)
    ledger.retry(task.id, actor=OPERATOR, reason="once more")
    blocked, _ = brought(ledger, S.BLOCKED)
    ledger.unblock(blocked.id, actor=OPERATOR, reason="it is gone")
    moves = "('retry', 'reopen', 'unblock')"
    by_hand = f"SELECT event, COUNT(*) FROM events WHERE event IN {moves} GROUP BY 1"
    return _metered(raw, "moved", by_hand)


def rescued(ledger: Ledger, raw: Raw) -> bool:
    brought(ledger, S.SUCCEEDED)
    ticket = started(ledger)
    ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED))
    judged(ledger, ticket, Outcome.PASSED)
    return _metered(raw, "rescued", "SELECT '', COUNT(*) FROM tasks WHERE rescued = 1 GROUP BY 1")


def unavailable(ledger: Ledger, raw: Raw) -> bool:
    ticket = started(ledger)
    declared(ledger, ticket)
    for reason in ("evaluator_unavailable: no answer", "borderline: 0.6", "its score is low"):
        outcome = FindingOutcome.FAILED if "low" in reason else FindingOutcome.INCONCLUSIVE
        terms = {"check": reason[:4], "kind": "evaluator", "reason": reason, "binding": False}
        ledger.record(ticket, [finding(ledger, ticket, outcome, **terms)])
    return _metered(raw, "evaluator_unavailable", "SELECT '', 1")


def inbox_opened(ledger: Ledger, raw: Raw) -> bool:
    brought(ledger, S.BLOCKED)
    brought(ledger, S.FAILED)
    return _metered(raw, "inbox", _WAITING)


def inbox_moved(ledger: Ledger, raw: Raw) -> bool:
    for status in (S.BLOCKED, S.FAILED, S.NEEDS_REVIEW):
        brought(ledger, status)
    first, second, third = (waiting.item.id for waiting in ledger.inbox())
    ledger.ack(first, actor=OPERATOR)
    ledger.snooze(second, seconds=60, actor=OPERATOR)
    ledger.resolve(third, outcome="seen", actor=OPERATOR)
    kept = "(SELECT label, SUM(total) AS sums FROM meters WHERE name = 'inbox' GROUP BY label)"
    alive = raw.do(f"SELECT label, CAST(sums AS bigint) FROM {kept} m WHERE sums <> 0 ORDER BY 1")
    return alive == raw.do(f"{_WAITING} ORDER BY 1")


METERS = {
    "inbox_metered": inbox_opened,
    "inbox_moved_metered": inbox_moved,
    "runs_missed_metered": runs_missed,
    "runs_ended_metered": runs_ended,
    "findings_metered": findings,
    "findings_unavailable_metered": unavailable,
    "tasks_rescued_metered": rescued,
    "refusals_metered": refusals,
    "refusals_again_metered": refusals_again,
    "events_again_metered": events_again,
}
