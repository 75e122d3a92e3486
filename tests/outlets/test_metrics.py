"""What Prometheus reads: out of the record, bounded, and the same after any restart."""

from __future__ import annotations

import math
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.record.lives import (
    OPERATOR,
    brought,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
)
from truegreen.contract import Breakers, Limit, Per
from truegreen.errors import Stale
from truegreen.facts import Usage
from truegreen.model import Cell, ExitDetail, FindingOutcome, Mode, Outcome, TaskStatus
from truegreen.outlets import metrics
from truegreen.outlets.metrics import exposition, names
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.ledger.telling import Owed

PROMISED = {
    "truegreen_runs_total": {"run_status", "exit_reason", "exit_detail", "agent"},
    "truegreen_runs_last_day": {"exit_reason", "mode", "role"},
    "truegreen_cells": {"cell"},
    "truegreen_tasks": {"status"},
    "truegreen_terminate_called_total": {"prior_status"},
    "truegreen_refused_total": {"code"},
    "truegreen_rescued_total": set(),
    "truegreen_claims_total": {"outcome", "agent"},
    "truegreen_unverified_ratio": set(),
    "truegreen_inbox_age_seconds": set(),
    "truegreen_check_seconds_sum": {"kind"},
    "truegreen_check_seconds_count": {"kind"},
    "truegreen_blocked_age_seconds": set(),
    "truegreen_retries_total": {"move"},
    "truegreen_retries_denied_total": {"reason"},
    "truegreen_breakers": {"kind", "state"},
    "truegreen_spent_usd": {"per", "agent", "label"},
    "truegreen_limit_used_ratio": {"per", "agent", "label", "what"},
    "truegreen_checks_total": {"kind", "outcome"},
    "truegreen_evaluator_unavailable_total": set(),
    "truegreen_inbox_items": {"severity"},
    "truegreen_posts": {"outlet", "state"},
    "truegreen_workers": {"state"},
    "truegreen_seats": {"state"},
    "truegreen_suspect_runs": set(),
    "truegreen_queue_age_seconds": set(),
    "truegreen_posts_tried_total": {"outlet", "outcome"},
    "truegreen_zombie_tripped_total": {"kind"},
    "truegreen_listeners": set(),
}
Sample = tuple[str, frozenset[tuple[str, str]]]


def read(ledger: Ledger, **more: Any) -> dict[Sample, float]:
    families = text_string_to_metric_families(exposition(ledger, **more).decode())
    samples = [sample for family in families for sample in family.samples]
    assert len({(s.name, frozenset(s.labels.items())) for s in samples}) == len(samples)
    return {(s.name, frozenset(s.labels.items())): s.value for s in samples}


def value(ledger: Ledger, name: str, **labels: str) -> float | None:
    return read(ledger).get((name, frozenset(labels.items())))


def statements(*outcomes: str) -> dict[str, Any]:
    said = [{"text": "it works", "outcome": outcome} for outcome in outcomes]
    return {"statements": said}


def eventful(ledger: Ledger) -> None:
    """Something of everything."""
    for status in TaskStatus:
        brought(ledger, status)
    ticket = started(ledger, agent_id=ledger.register_agent("ada", "sha256:1", actor=OPERATOR).id)
    ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED))
    audit = {"kind": "claim", "check": "claim", "binding": False}
    said = statements("contradicted", "confirmed", "confirmed")
    passed = FindingOutcome.PASSED
    ledger.record(ticket, [finding(ledger, ticket, passed, **audit, evidence=said)])
    judged(ledger, ticket, Outcome.PASSED)
    with pytest.raises(Stale):
        declared(ledger, ticket)
    ledger.trip(ticket.run, kind="push", detail="origin")
    ledger.retry(brought(ledger, TaskStatus.FAILED)[0].id, actor=OPERATOR, reason="again")
    ledger.owe("hook", [Owed("a", "{}"), Owed("b", "{}")], (0, 1))
    ledger.posted(ledger.take_posts("hook")[0].id)


@pytest.mark.criterion("L11")
def test_every_promised_metric_is_there_with_its_labels(ledger: Ledger):
    eventful(ledger)
    ledger.keep_terms("test", Breakers(), [Limit(per=Per.DAY, cost_usd=4.0)])
    found = read(ledger, listeners=2)
    for name, labels in PROMISED.items():
        shown = [dict(keys) for found_name, keys in found if found_name == name]
        assert shown, name
        assert all(set(keys) == labels for keys in shown), name
    assert set(PROMISED) <= set(names())
    assert {name for name, _ in found} <= set(names())


@pytest.mark.criterion("L11")
def test_the_numbers_are_those_of_the_record(ledger: Ledger):
    eventful(ledger)
    expected: dict[tuple[Any, ...], int] = {
        ("truegreen_tasks", ("status", "succeeded")): 2,
        ("truegreen_cells", ("cell", "silent_failure")): 1,
        ("truegreen_terminate_called_total", ("prior_status", "running")): 1,
        ("truegreen_refused_total", ("code", "stale")): 1,
        ("truegreen_rescued_total",): 1,
        ("truegreen_claims_total", ("outcome", "confirmed"), ("agent", "ada")): 2,
        ("truegreen_claims_total", ("outcome", "contradicted"), ("agent", "ada")): 1,
        ("truegreen_retries_total", ("move", "reopen")): 1,
        ("truegreen_zombie_tripped_total", ("kind", "push")): 1,
        ("truegreen_posts", ("outlet", "hook"), ("state", "waiting")): 1,
        ("truegreen_posts_tried_total", ("outlet", "hook"), ("outcome", "sent")): 1,
    }
    found = read(ledger)
    for (name, *labels), n in expected.items():
        assert found[name, frozenset(labels)] == n, name
    ended_runs = sum(n for (name, _), n in found.items() if name == "truegreen_runs_total")
    assert ended_runs == sum(tally.runs for tally in ledger.ended_since(0))


@pytest.mark.criterion("L11")
def test_a_restart_changes_no_number_and_two_servers_say_the_same(store_url: str):
    first = open_ledger(store_url)
    eventful(first)
    second = open_ledger(store_url)
    before = {key: n for key, n in read(first).items() if not key[0].endswith("age_seconds")}
    other = {key: n for key, n in read(second).items() if not key[0].endswith("age_seconds")}
    first.close()
    second.close()
    again = open_ledger(store_url)
    after = {key: n for key, n in read(again).items() if not key[0].endswith("age_seconds")}
    again.close()
    assert before == other == after


def test_a_place_where_nothing_stands_is_a_zero(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    found = read(ledger)
    assert all(found["truegreen_cells", frozenset({("cell", cell)})] == 0 for cell in Cell)
    assert all(found["truegreen_tasks", frozenset({("status", s)})] == 0 for s in TaskStatus)
    assert found["truegreen_inbox_age_seconds", frozenset()] == 0
    ledger.close()


def test_the_unverified_share_of_nothing_is_no_number(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    share = value(ledger, "truegreen_unverified_ratio")
    assert share is not None
    assert math.isnan(share)
    ledger.close()


def test_the_unverified_share_counts_what_nothing_has_checked(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    brought(ledger, TaskStatus.SUCCEEDED)
    ticket = started(ledger)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.UNKNOWN)
    assert ledger.task(ticket.task).cell is Cell.UNVERIFIED
    assert value(ledger, "truegreen_unverified_ratio") == 0.5
    brought(ledger, TaskStatus.CANCELED)
    brought(ledger, TaskStatus.BLOCKED)
    assert value(ledger, "truegreen_unverified_ratio") == 0.75, "what was cut off is unchecked, too"
    brought(ledger, TaskStatus.PENDING_EVAL)
    assert value(ledger, "truegreen_unverified_ratio") == 0.75, "what is under check is not over"
    ledger.close()


def run_of(ledger: Ledger, name: str) -> None:
    agent = ledger.register_agent(name, "sha256:1", actor=OPERATOR)
    declared(ledger, started(ledger, agent_id=agent.id))


def test_agents_beyond_a_bound_share_one_label_and_lose_no_run(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(metrics, "MOST_AGENTS", 2)
    ledger = open_ledger(sqlite_url)
    for name in ("often", "often", "a", "b", "c"):
        run_of(ledger, name)
    runs = {
        dict(labels)["agent"]: n
        for (name, labels), n in read(ledger).items()
        if name == "truegreen_runs_total"
    }
    assert runs == {"often": 2, "a": 1, "other": 2}
    ledger.close()


@pytest.mark.criterion("B19")
def test_why_runs_ended_is_told_by_mode_and_role(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(metrics, "MOST_ROLES", 2)
    for role, mode, detail in (
        ("coder", Mode.ASSISTED, ExitDetail.COMPLETED),
        ("coder", Mode.ASSISTED, ExitDetail.TURN_CAP),
        ("coder", Mode.AUTONOMOUS, ExitDetail.COMPLETED),
        ("clerk", Mode.AUTONOMOUS, ExitDetail.UNCLAIMED),
        ("writer", Mode.AUTONOMOUS, ExitDetail.UNCLAIMED),
    ):
        ledger.end_run(started(ledger, role=role, mode=mode), ended(detail))
    lately = {
        tuple(dict(labels)[key] for key in ("exit_reason", "mode", "role")): n
        for (name, labels), n in read(ledger).items()
        if name == "truegreen_runs_last_day"
    }
    assert lately == {
        ("done", "assisted", "coder"): 1,
        ("max_iterations", "assisted", "coder"): 1,
        ("done", "autonomous", "coder"): 1,
        ("unknown", "autonomous", "clerk"): 1,
        ("unknown", "autonomous", "other"): 1,
    }


@pytest.mark.parametrize("name", ['a"} 9', "a|b", "\\", "\\n# HELP x"], ids=ascii)
def test_the_name_of_an_agent_can_forge_no_line(sqlite_url: str, name: str):
    ledger = open_ledger(sqlite_url)
    run_of(ledger, name)
    runs = [key for key in read(ledger) if key[0] == "truegreen_runs_total"]
    assert [dict(labels)["agent"] for _, labels in runs] == [name]
    assert not any(line.startswith("# HELP x") for line in exposition(ledger).decode().split("\n"))
    ledger.close()


def test_how_long_something_waits_is_said(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    task, _ = brought(ledger, TaskStatus.BLOCKED)
    (waiting,) = ledger.inbox()
    age = value(ledger, "truegreen_inbox_age_seconds")
    assert age is not None
    assert 0 < age < 60
    blocked = value(ledger, "truegreen_blocked_age_seconds")
    assert blocked is not None
    assert 0 < blocked < 60
    ledger.ack(waiting.item.id, actor=OPERATOR)
    assert value(ledger, "truegreen_inbox_unread_age_seconds") == 0
    ledger.cancel(task.id, actor=OPERATOR)
    assert value(ledger, "truegreen_blocked_age_seconds") == 0
    ledger.close()


def test_nothing_is_asked_that_grows_with_the_tasks(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
):
    ledger = open_ledger(sqlite_url)
    counted: list[str] = []
    store: Any = ledger.store
    real = store.snapshot

    def snapshot() -> Any:
        counted.append("one")
        return real()

    monkeypatch.setattr(store, "snapshot", snapshot)
    exposition(ledger)
    few = len(counted)
    for _ in range(20):
        opened(ledger)
    counted.clear()
    exposition(ledger)
    assert len(counted) == few <= 11
    ledger.close()


def test_breakers_and_what_is_spent_of_limits_are_counted(ledger: Ledger):
    limit = Limit(per=Per.DAY, label="night", cost_usd=4.0)
    ledger.keep_terms("test", Breakers(), [limit])
    paid = started(ledger, labels=("night",))
    ledger.end_run(paid, ended(usage=Usage(cost_usd=1.0)))
    assert value(ledger, "truegreen_breakers", kind="agent", state="open") == 0
    for ticket in [started(ledger) for _ in range(5)]:
        ledger.end_run(ticket, ended(ExitDetail.SIGNALED))
    assert value(ledger, "truegreen_breakers", kind="agent", state="open") == 1
    assert value(ledger, "truegreen_retries_denied_total", reason="breaker") == 1
    named = {"per": "day", "agent": "", "label": "night"}
    assert value(ledger, "truegreen_spent_usd", **named) == 1.0
    assert value(ledger, "truegreen_limit_used_ratio", **named, what="cost_usd") == 0.25
