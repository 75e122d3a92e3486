"""What an audit reads, on both databases: each run that ended once, in small rows, by its index."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from tests.record.lives import (
    OPERATOR,
    S,
    brought,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
    verdict,
)
from tests.record.raw_sql import raw_sql
from tests.record.test_qa import chained, opinion, under_review
from truegreen.contract import Budget
from truegreen.facts import SYSTEM, Actor, Claim, Statement, Ticket
from truegreen.model import (
    Cell,
    ClaimKind,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    Mode,
    Outcome,
    Phase,
    Role,
)
from truegreen.record import rows as record_rows
from truegreen.record.ledger import Ledger, Start, audits
from truegreen.record.ledger.audits import Audited, AuditedFinding

F, D = FindingOutcome, ExitDetail
BEA = Actor(Role.OPERATOR, "bea")
SAID = Statement(text="all 3 pass", kind="tests", outcome="contradicted", observed="1 failed")


def gone(ledger: Ledger, outcome: Outcome = Outcome.PASSED, **terms: Any) -> Ticket:
    """A task with one run that was judged."""
    ticket = started(ledger, budget=Budget(attempts=1), **terms)
    declared(ledger, ticket)
    judged(ledger, ticket, outcome)
    return ticket


def runs(ledger: Ledger, since: int = 0) -> list[str]:
    return [row.run.run for row in ledger.audited(since)]


def only(ledger: Ledger, since: int = 0) -> Audited:
    (row,) = ledger.audited(since)
    return row


@pytest.mark.criterion("J13", "N07")
def test_a_row_has_what_a_report_needs_and_no_output_of_gates(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:abc", actor=OPERATOR, session="s-1")
    ticket = started(ledger, role="writer", mode=Mode.ASSISTED, agent_id=agent.id)
    said = Claim(kind=ClaimKind.DONE, reason="all 3 pass")
    ledger.end_run(ticket, ended(facts={"model": "opus", "log": "x" * 1000}), claim=said)
    gate = finding(ledger, ticket, F.PASSED, evidence={"output": "secret " * 100})
    evidence = {"statements": [{"text": SAID.text, "kind": SAID.kind, "outcome": SAID.outcome,
                                "observed": SAID.observed}]}  # fmt: skip
    claim = finding(ledger, ticket, F.FAILED, check="claim", kind="claim", evidence=evidence,
                    binding=False, judge="truegreen:claims", score=0.25)  # fmt: skip
    ledger.record(ticket, [gate, claim])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
    row = only(ledger)
    task = ledger.task(ticket.task)
    run = row.run
    assert (run.task, run.title, run.role, run.mode) == (task.id, task.title, "writer", "assisted")
    assert (run.status, run.cell, run.verdict, run.level) == (
        S.SUCCEEDED,
        Cell.TRUE_GREEN,
        Outcome.PASSED,
        Level.A2,
    )
    assert (run.agent, run.definition, run.session, run.model) == (
        *("coder", "sha256:abc", "s-1"),
        "opus",
    )
    assert (run.claim, run.exit_reason, run.latest) == ("done", ExitReason.DONE, True)
    assert (run.rescued, run.overridden, run.falsified, run.qa_of_key) == (False,) * 3 + (None,)
    assert [gate.name for gate in run.terms.gates] == ["tests"]
    first, second = row.findings
    assert (first.check, first.kind, first.phase, first.outcome, first.binding) == (
        *("tests", "run", Phase.AFTER, F.PASSED),
        True,
    )
    assert (first.evidence, first.shown, first.statements) == ("", {}, ())
    assert (second.statements, second.score, second.binding) == ((SAID,), 0.25, False)


def test_terms_are_read_of_green_tasks_only(ledger: Ledger) -> None:
    gone(ledger, Outcome.FAILED)
    assert only(ledger).run.contract == ""
    assert only(ledger).run.terms.gates == ()


def test_a_run_without_agent_model_or_claim_has_empty_words(ledger: Ledger) -> None:
    ledger.end_run(started(ledger), ended(D.UNCLAIMED))
    run = only(ledger).run
    assert (run.agent, run.definition, run.session, run.model, run.claim) == ("",) * 5


def test_runs_come_in_the_order_of_their_ends_and_each_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    tickets = [started(ledger) for _ in range(7)]
    random.Random(3).shuffle(tickets)  # noqa: S311 - the same every time
    for ticket in tickets:
        declared(ledger, ticket)
        several = [finding(ledger, ticket, F.PASSED, check=name) for name in ("tests", "lint")]
        ledger.record(ticket, several)
    expected = [ticket.run for ticket in tickets]
    for page in (500, 7, 3, 1):
        monkeypatch.setattr(audits, "PAGE", page)
        rows = list(ledger.audited(0))
        assert [row.run.run for row in rows] == expected
        assert [[f.check for f in row.findings] for row in rows] == [["tests", "lint"]] * 7


def test_no_finding_is_read_twice(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        gone(ledger)
    seen = []

    def read(kind: type[Any], row: tuple[Any, ...]) -> Any:
        seen.append(kind)
        return record_rows.read(kind, row)

    monkeypatch.setattr(audits, "read", read)
    monkeypatch.setattr(audits, "PAGE", 2)
    assert len(list(ledger.audited(0))) == 5
    assert seen.count(AuditedFinding) == 5


def test_a_period_begins_with_its_first_instant(ledger: Ledger) -> None:
    tickets = [gone(ledger, Outcome.FAILED) for _ in range(4)]
    at = [row.run.ended_at for row in ledger.audited(0)]
    assert at == sorted(at)
    for n, since in enumerate(at):
        assert runs(ledger, since) == [ticket.run for ticket in tickets[n:]]
    assert runs(ledger, at[-1] + 1) == []


def test_a_run_that_goes_on_and_a_task_that_never_ran_are_not_given(ledger: Ledger) -> None:
    opened(ledger)
    started(ledger)
    assert list(ledger.audited(0)) == []


def test_every_attempt_is_given_and_the_latest_is_marked(ledger: Ledger) -> None:
    first = started(ledger)
    declared(ledger, first)
    judged(ledger, first, Outcome.FAILED)
    again = started(ledger, first.task)
    declared(ledger, again)
    judged(ledger, again, Outcome.PASSED)
    rows = list(ledger.audited(0))
    assert [(row.run.run, row.run.latest) for row in rows] == [
        (first.run, False),
        (again.run, True),
    ]
    assert [row.run.verdict for row in rows] == [Outcome.FAILED, Outcome.PASSED]
    assert [bool(row.run.contract) for row in rows] == [False, True]


def test_work_that_is_only_accepted_in_the_period_comes_last_and_once(ledger: Ledger) -> None:
    by_person, _ = brought(ledger, S.NEEDS_REVIEW)
    by_qa, ticket = chained(ledger)
    since = max(row.run.ended_at for row in ledger.audited(0)) + 1
    assert list(ledger.audited(since)) == []
    ledger.review(by_person.id, accept=True, actor=BEA, reason="looked at it")
    ledger.record_qa(under_review(ledger, by_qa), opinion(ledger, ticket, F.PASSED))
    rows = list(ledger.audited(since))
    assert [(row.run.task, row.late) for row in rows] == [(by_person.id, True), (by_qa.id, True)]
    assert [row.findings[-1].kind for row in rows] == ["person", "qa"]
    assert [row.late for row in ledger.audited(0)] == [False, False]


def test_late_acceptances_come_page_by_page(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [brought(ledger, S.NEEDS_REVIEW)[0] for _ in range(3)]
    since = max(row.run.ended_at for row in ledger.audited(0)) + 1
    for task in tasks:
        ledger.review(task.id, accept=True, actor=BEA, reason="looked at it")
    for page in (500, 2, 1):
        monkeypatch.setattr(audits, "PAGE", page)
        found = [row.run.task for row in ledger.audited(since)]
        assert found == [task.id for task in tasks]


def test_the_whole_is_what_the_dossiers_say(ledger: Ledger) -> None:
    for status in S:
        brought(ledger, status)
    tasks = ledger.page(limit=1000).tasks
    expected = {
        run.id: [f.id for f in dossier.findings if f.run_key == run.key]
        for dossier in (ledger.dossier(task.id) for task in tasks)
        for run in dossier.runs
        if run.ended_at
    }
    found = {row.run.run: row.findings for row in ledger.audited(0)}
    assert found.keys() == expected.keys()
    assert {run: len(each) for run, each in found.items()} == {
        run: len(each) for run, each in expected.items()
    }
    assert sum(map(len, expected.values())) > 3


# --- what people said yes to


@pytest.mark.criterion("J18")
def test_every_yes_of_a_person_is_given_with_what_was_asked_when(ledger: Ledger) -> None:
    undecided, _ = brought(ledger, S.NEEDS_REVIEW)
    ledger.review(undecided.id, accept=True, actor=BEA, reason="fine")
    waiting, _ = brought(ledger, S.AWAITING_APPROVAL)
    ledger.approve(waiting.id, actor=OPERATOR)
    gone(ledger)  # accepted by the system: no person's word
    asked = {
        told.event.to_status: told.event.at
        for task in (undecided.id, waiting.id)
        for told in ledger.events(task)
    }
    found = list(ledger.answered(0))
    assert [(a.actor, a.event, a.task, a.undone) for a in found] == [
        ("operator:ana", "resume", waiting.id, False),
        ("operator:bea", "accept", undecided.id, False),
    ]
    assert found[0].asked_at == asked[S.AWAITING_APPROVAL]
    assert found[1].asked_at == asked[S.NEEDS_REVIEW]
    assert [a.at for a in ledger.answered(found[0].at)] == [found[0].at]
    assert list(ledger.answered(found[0].at + 10**9)) == []
    assert all("hasty" in answer.flags for answer in found)


def test_a_yes_that_was_taken_back_says_so(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    ledger.review(task.id, accept=True, actor=BEA, reason="fine")
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="CI is red")
    (answer,) = ledger.answered(0)
    assert (answer.actor, answer.undone) == ("operator:bea", True)
    row = only(ledger)
    assert (row.run.falsified, row.run.verdict, row.run.status) == (True, Outcome.PASSED, S.QUEUED)


def test_a_second_yes_stands_after_the_first_was_taken_back(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    ledger.review(task.id, accept=True, actor=BEA, reason="fine")
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="CI is red")
    again = started(ledger, task.id)
    declared(ledger, again)
    judged(ledger, again, Outcome.INCONCLUSIVE)
    ledger.review(task.id, accept=True, actor=BEA, reason="now it is")
    assert [answer.undone for answer in ledger.answered(0)] == [True, False]


def test_a_question_is_as_old_as_the_wait_not_as_the_last_event(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.NEEDS_REVIEW)
    asked = ledger.task(task.id).updated_at
    ticket = ledger.recheck(task.id, holder="t", actor=OPERATOR)
    ledger.record(ticket, [finding(ledger, ticket, F.INCONCLUSIVE)])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE))
    assert ledger.task(task.id).updated_at > asked
    ledger.review(task.id, accept=True, actor=BEA, reason="fine")
    (answer,) = ledger.answered(0)
    assert answer.asked_at == asked


def test_answers_come_page_by_page(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        task, _ = brought(ledger, S.NEEDS_REVIEW)
        actor = Actor(Role.OPERATOR, "cy" if number % 2 else "di")
        ledger.review(task.id, accept=True, actor=actor, reason="fine")
    whole = list(ledger.answered(0))
    assert [a.actor for a in whole] == ["operator:cy"] * 2 + ["operator:di"] * 3
    for page in (1, 2, 3):
        monkeypatch.setattr(audits, "PAGE", page)
        assert list(ledger.answered(0)) == whole


def test_nothing_is_changed_by_looking(ledger: Ledger) -> None:
    gone(ledger)
    before = [told.event for told in ledger.feed()]
    list(ledger.audited(0))
    list(ledger.answered(0))
    assert [told.event for told in ledger.feed()] == before


def test_a_reader_that_stops_half_way_gives_its_connection_back(ledger: Ledger) -> None:
    gone(ledger)
    gone(ledger)
    rows = ledger.audited(0)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert ledger.start(opened(ledger).id, Start("t"), actor=SYSTEM).run


# --- by which way the database finds them

INDEXES = {
    "audit_runs": ["runs_ended"],
    "audit_findings": ["runs_ended", "findings_run"],
    "audit_late": ["events_answers"],
    "audit_answerers": ["events_answers"],
    "audit_answers": ["events_answers", "events_task_revision"],
}


@pytest.mark.parametrize("name", INDEXES)
def test_the_database_goes_by_the_index(store_url: str, ledger: Ledger, name: str) -> None:
    store: Any = ledger.store
    text = re.sub(r"%\(([a-z_]+)\)s", r":\1", store.queries[name])
    words = {"actor": "'operator:ana'", "after": "'operator:'"}
    query = re.sub(r"(?<![:\w]):([a-z_]+)", lambda found: words.get(found[1], "1"), text)
    with raw_sql(store_url) as raw:
        if raw.dialect == "sqlite":
            plan = str(raw.do(f"EXPLAIN QUERY PLAN {query}"))
        else:
            plan = str(raw.do("SET LOCAL enable_seqscan = off", f"EXPLAIN {query}"))
    assert [index for index in INDEXES[name] if index not in plan] == [], plan
    assert "SCAN runs" not in plan
    assert "SCAN findings" not in plan
