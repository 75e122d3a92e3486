"""What settings reached out with when they were trusted: kept, moved, doubted, by whom."""

from __future__ import annotations

import pytest

from tests.record.lives import OPERATOR, agent_of, declared, ended, started
from truegreen.errors import Forbidden
from truegreen.facts import Actor
from truegreen.model import ExitDetail, InboxState, Role, Severity
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.outbox import SETTINGS_CHANGED, Reached

FILE = "/srv/truegreen.toml"
REACH = {"notify.ops": Reached("sha256:1", "webhook https://x/***")}


def test_what_was_trusted_is_kept_by_file_with_who_trusted_it(ledger: Ledger) -> None:
    assert ledger.pin(FILE) is None
    ledger.keep_pin(FILE, REACH, actor=OPERATOR)
    pin = ledger.pin(FILE)
    assert pin
    assert (pin.reach, pin.actor) == (REACH, str(OPERATOR))
    assert ledger.pin("/elsewhere/truegreen.toml") is None
    ledger.keep_pin(FILE, {})
    moved = ledger.pin(FILE)
    assert moved
    assert (moved.reach, moved.actor) == ({}, "system:truegreen")


def test_trust_is_in_the_history_once_for_each_change(ledger: Ledger) -> None:
    for reach in (REACH, REACH, {}, {}):
        ledger.keep_pin(FILE, reach)
    told = [each.event.data for each in ledger.house_events() if "pinned" in each.event.data]
    assert len(told) == 2


def test_runs_before_the_pin_are_past_and_one_under_way_is_not(ledger: Ledger) -> None:
    first, second = started(ledger), started(ledger)
    ledger.end_run(first, ended(ExitDetail.OOM))
    from_second = ledger.keep_pin(FILE, REACH).run_key
    assert [run.id for run in ledger.runs_from(from_second)] == [second.run]
    ledger.end_run(second, ended(ExitDetail.OOM))
    key = ledger.keep_pin(FILE, REACH).run_key
    assert ledger.runs_from(key) == []
    third = started(ledger)
    assert [run.id for run in ledger.runs_from(key)] == [third.run]
    assert [run.id for run in ledger.runs_from(0, limit=2)] == [first.run, second.run]


@pytest.mark.criterion("O04")
def test_a_doubt_waits_in_the_inbox_once_until_somebody_trusts(ledger: Ledger) -> None:
    ticket = started(ledger)
    declared(ledger, ticket)
    for _ in range(3):
        ledger.doubt(ticket.run, FILE, "it was changed")
    (waiting,) = [each for each in ledger.inbox() if each.item.cell == SETTINGS_CHANGED]
    item = waiting.item
    assert (item.severity, item.times, waiting.task) == (Severity.CRITICAL, 1, ticket.task)
    assert item.next == "truegreen outlets trust"
    ledger.keep_pin(FILE, REACH, actor=OPERATOR)
    assert ledger.inbox_item(item.id).item.state is InboxState.RESOLVED
    ledger.doubt(ticket.run, FILE, "again")
    assert ledger.inbox()


@pytest.mark.criterion("O01", "O04")
def test_nobody_but_an_operator_or_truegreen_trusts(ledger: Ledger) -> None:
    ticket = started(ledger)
    others = [Actor(role, "x") for role in (Role.LEAD, Role.JUDGE, Role.VIEWER)]
    for actor in (agent_of(ticket), *others):
        with pytest.raises(Forbidden):
            ledger.keep_pin(FILE, REACH, actor=actor)
        with pytest.raises(Forbidden):
            ledger.doubt(ticket.run, FILE, "no", actor=actor)
    assert ledger.pin(FILE) is None


def test_a_doubt_names_its_run_until_somebody_trusts(ledger: Ledger) -> None:
    ticket = started(ledger)
    assert ledger.doubted(FILE) is None
    ledger.doubt(ticket.run, FILE, "it was changed")
    assert ledger.doubted(FILE) == (FILE, ticket.run)
    assert ledger.doubted("/elsewhere/truegreen.toml") is None
    assert ledger.doubted("/elsewhere/truegreen.toml", FILE) == (FILE, ticket.run)
    ledger.keep_pin(FILE, REACH, actor=OPERATOR)
    assert ledger.doubted(FILE) is None


@pytest.mark.criterion("O04")
def test_a_doubt_outlives_what_becomes_of_its_task(ledger: Ledger) -> None:
    ticket = started(ledger)
    ledger.doubt(ticket.run, FILE, "it was changed")
    ledger.cancel(ticket.task, actor=OPERATOR, reason="not needed")
    assert ledger.doubted(FILE) == (FILE, ticket.run)


def test_every_file_that_was_trusted_is_known(ledger: Ledger) -> None:
    assert ledger.pinned() == ()
    for file in (FILE, "/b/truegreen.toml", FILE):
        ledger.keep_pin(file, REACH)
    assert set(ledger.pinned()) == {FILE, "/b/truegreen.toml"}
    assert len(ledger.pinned()) == 2


def test_runs_are_found_by_when_they_lived(ledger: Ledger) -> None:
    first, second = started(ledger), started(ledger)
    ledger.end_run(first, ended(ExitDetail.OOM))
    (one, two) = ledger.runs_from(0)
    assert (one.id, two.id, two.ended_at) == (first.run, second.run, None)
    assert one.ended_at
    assert ledger.runs_during(0, one.created_at - 1) == []
    assert ledger.runs_during(one.created_at, one.created_at)[0] == one
    assert one in ledger.runs_during(one.ended_at, one.ended_at)
    assert ledger.runs_during(one.ended_at + 1, one.ended_at + 1) == [two]


def test_what_a_command_runs_is_kept_with_it(ledger: Ledger) -> None:
    reach = {"notify.ops": Reached("sha256:1", "sh", {"/x.sh": "abc"})}
    ledger.keep_pin(FILE, reach)
    pin = ledger.pin(FILE)
    assert pin
    assert pin.reach == reach
