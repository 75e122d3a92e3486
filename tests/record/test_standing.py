"""What a verdict rests on: an answer of checks, a person's word, or nothing that still stands."""

from __future__ import annotations

from typing import Any

import pytest

from tests.record.lives import (
    OPERATOR,
    brought,
    declared,
    ended,
    finding,
    judged,
    started,
    verdict,
)
from tests.record.raw_sql import Raw, raw_sql
from truegreen.contract import Budget
from truegreen.faces.figures import ended_document, matrix_document
from truegreen.model import (
    Cell,
    ExitDetail,
    FindingOutcome,
    Level,
    Outcome,
    Standing,
    TaskStatus,
)
from truegreen.outlets.answers import badges
from truegreen.outlets.audit import audit
from truegreen.outlets.metrics import exposition
from truegreen.record import migrate
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.overview import looked_at, looked_at_runs
from truegreen.record.rows import Task

S, F = TaskStatus, FindingOutcome
NEVER = 1 << 60


def accepted(ledger: Ledger, outcome: Outcome, **terms: Any) -> Task:
    """What checks did not pass, and a person did."""
    ticket = started(ledger, budget=Budget(attempts=1), **terms)
    declared(ledger, ticket)
    if outcome is Outcome.FAILED:
        found = (F.FAILED, F.PASSED)  # a check that can't make up its mind
        ledger.record(ticket, [finding(ledger, ticket, each) for each in found])
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE))
    else:
        judged(ledger, ticket, outcome)
    return ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="fine")


# --- a person's yes


@pytest.mark.criterion("L06", "L07")
@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.INCONCLUSIVE])
def test_what_only_a_person_accepted_is_never_plain_green(ledger: Ledger, outcome: Outcome):
    task = accepted(ledger, outcome)
    assert (task.status, task.verdict, task.cell) == (S.SUCCEEDED, Outcome.PASSED, Cell.TRUE_GREEN)
    assert not task.checked
    assert badges(task) == ["unverified"]
    assert ledger.dossier(task.id).runs[-1].level is Level.A0


def test_a_yes_against_a_red_check_is_an_override_and_the_check_has_spoken(ledger: Ledger):
    task = accepted(ledger, Outcome.FAILED)
    assert task.checked
    assert badges(task) == ["overridden"]


def test_what_checks_passed_wears_no_badge(ledger: Ledger):
    task, _ = brought(ledger, S.SUCCEEDED)
    assert task.checked
    assert badges(task) == []


def test_a_new_attempt_is_unchecked_until_its_own_checks_speak(ledger: Ledger):
    task, _ = brought(ledger, S.SUCCEEDED)
    ledger.retry(task.id, actor=OPERATOR, reason="again")
    assert not ledger.task(task.id).checked
    ticket = started(ledger, task.id)
    assert not ledger.task(task.id).checked
    declared(ledger, ticket)
    assert not ledger.task(task.id).checked
    assert judged(ledger, ticket, Outcome.PASSED).checked


# --- the share


def mixed(ledger: Ledger) -> None:
    """Of everything something: 4 checked of 11 that ended."""
    for status in (S.SUCCEEDED, S.SUCCEEDED, S.FAILED, S.BLOCKED, S.CANCELED, S.NEEDS_REVIEW):
        brought(ledger, status)
    for detail in (ExitDetail.SIGNALED, ExitDetail.PROVIDER_ERROR):
        ledger.end_run(started(ledger, budget=Budget(attempts=1)), ended(detail))
    capped = started(ledger, budget=Budget(attempts=1))
    ledger.end_run(capped, ended(ExitDetail.TURN_CAP))
    judged(ledger, capped, Outcome.FAILED)
    stuck = started(ledger, budget=Budget(attempts=1))
    ledger.end_run(stuck, ended(ExitDetail.IDLE_CAP))
    judged(ledger, stuck, Outcome.UNKNOWN)
    accepted(ledger, Outcome.UNKNOWN)
    for status in (S.QUEUED, S.RUNNING, S.PENDING_EVAL, S.FAILED_PENDING_EVAL):
        brought(ledger, status)


@pytest.mark.criterion("L11")
def test_every_face_gives_the_same_share_of_what_was_checked(ledger: Ledger):
    mixed(ledger)
    figures = matrix_document(ledger.counts())["figures"]
    assert (figures["checked"], figures["ended"], figures["checked_share"]) == (4, 11, 0.3636)
    worn = [task for task in ledger.page(limit=100).tasks if "unverified" in badges(task)]
    assert figures["unverified"] == len(worn) == 1
    runs = ended_document(ledger.ended_since(0), 0)["figures"]
    assert (runs["checked"], runs["ended"], runs["unverified"]) == (4, 11, 1)
    work = audit(ledger.audited(0), since=0, until=NEVER).work
    assert (work.unverified.count, work.unverified.of) == (7, 11)
    (line,) = [
        line
        for line in exposition(ledger).decode().splitlines()
        if line.startswith("truegreen_unverified_ratio ")
    ]
    assert float(line.split()[1]) == pytest.approx(7 / 11)


# --- what turned out wrong


@pytest.mark.criterion("J16", "L11")
def test_what_was_overturned_is_verified_for_neither_the_audit_nor_the_matrix(ledger: Ledger):
    mixed(ledger)
    task, _ = brought(ledger, S.SUCCEEDED)
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="it was wrong")
    looked = looked_at_runs(ledger.ended_since(0))
    work = audit(ledger.audited(0), since=0, until=NEVER).work
    assert (looked.checked, looked.ended) == (4, 12)
    assert (work.unverified.count, work.unverified.of) == (8, 12)


def green(ledger: Ledger) -> int:
    return sum(
        hour.runs
        for hour in ledger.history(0)
        if hour.cell is Cell.TRUE_GREEN and hour.standing is not Standing.FALSIFIED
    )


@pytest.mark.parametrize("how", ["review", "retry"])
def test_a_green_that_was_overturned_leaves_green_in_its_own_hour(ledger: Ledger, how: str):
    brought(ledger, S.SUCCEEDED)
    task, _ = brought(ledger, S.SUCCEEDED)
    assert green(ledger) == 2
    if how == "review":
        ledger.review(task.id, accept=False, actor=OPERATOR, reason="it is wrong")
    else:
        ledger.retry(task.id, actor=OPERATOR, reason="it is wrong")
    assert green(ledger) == 1
    document = ended_document(ledger.ended_since(0), 0)
    by_cell = {entry["cell"]: entry["runs"] for entry in document["cells"]}
    assert (by_cell[Cell.TRUE_GREEN], document["falsified"], document["total"]) == (1, 1, 2)
    assert document["figures"]["checked_share"] == 0.5, "an answer that was wrong is none"


def test_what_came_after_the_overturned_green_is_green_again(ledger: Ledger):
    task, _ = brought(ledger, S.SUCCEEDED)
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="it is wrong")
    ticket = started(ledger, task.id)
    ledger.end_run(ticket, ended(digest="tree:mended"))
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED, digest="tree:mended")])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, digest="tree:mended"))
    assert looked_at_runs(ledger.ended_since(0)) == (1, 2)
    assert looked_at(ledger.counts()) == (1, 1)
    assert badges(ledger.task(task.id)) == ["falsified"]


def test_a_failure_that_is_tried_again_is_not_called_false(ledger: Ledger):
    task, _ = brought(ledger, S.FAILED)
    ledger.retry(task.id, actor=OPERATOR, reason="again")
    assert {each.standing for each in ledger.ended_since(0)} == {Standing.CHECKED}


# --- whose word


def test_honesty_is_a_definitions_and_not_a_names(ledger: Ledger):
    agents = [
        ledger.register_agent("coder", definition, actor=OPERATOR)
        for definition in ("sha256:1", "sha256:2", "sha256:1")
    ]
    for agent, outcome in zip(agents, ("confirmed", "contradicted", "confirmed"), strict=True):
        ticket = started(ledger, agent_id=agent.id)
        declared(ledger, ticket)
        evidence = {"statements": [{"text": "all pass", "outcome": outcome}]}
        claim = finding(ledger, ticket, F.PASSED, kind="claim", binding=False, evidence=evidence)
        ledger.record(ticket, [claim])
    assert ledger.honesty(agents) == {
        "sha256:1": {"confirmed": 2},
        "sha256:2": {"contradicted": 1},
    }
    assert ledger.honesty(agents[1:2]) == {"sha256:2": {"contradicted": 1}}
    assert ledger.honesty([]) == {}


# --- an older store


def test_an_older_store_is_counted_from_what_it_keeps(ledger: Ledger, store_url: str):
    mixed(ledger)
    task, _ = brought(ledger, S.SUCCEEDED)
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="it is wrong")
    with raw_sql(store_url) as raw:
        lived = standing_of(raw)
        assert {each[1] for each in lived[1]} == set(Standing)
        for table in ("tasks", "runs"):
            raw.do(*untriggered(raw, table))
        raw.do("UPDATE tasks SET checked = 0", "UPDATE runs SET standing = 'unchecked'")
        faces = next(each for each in migrate.migrations(raw.dialect) if each.name == "faces")
        for statement in faces.statements:
            if statement.partition(" SET ")[0] in ("UPDATE runs", "UPDATE tasks"):
                raw.do(statement)
        assert standing_of(raw) == lived


def standing_of(raw: Raw) -> list[list[list[object]]]:
    tables = (("checked", "tasks"), ("standing", "runs"))
    return [raw.do(f"SELECT id, {column} FROM {table} ORDER BY 1") for column, table in tables]


def untriggered(raw: Raw, table: str) -> list[str]:
    if raw.dialect == "postgres":
        return [f"ALTER TABLE {table} DISABLE TRIGGER USER"]
    named = f"SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = '{table}'"
    return [f"DROP TRIGGER {name}" for (name,) in raw.do(named)]
