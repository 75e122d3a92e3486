"""The layers of a task's verification, each with its own state."""

from __future__ import annotations

from typing import Any

import pytest

from tests.record.lives import (
    OPERATOR,
    S,
    brought,
    declared,
    finding,
    judged,
    opened,
    started,
    verdict,
)
from tests.record.test_qa import chained, opinion, under_review
from truegreen.contract import Budget, Evaluator, Gate
from truegreen.faces.layers import layers_of
from truegreen.model import FindingOutcome, Outcome, Phase
from truegreen.record.ledger import Ledger, open_ledger

F = FindingOutcome
JUDGE = Evaluator(name="judge", command=("judge",))


@pytest.fixture
def ledger(sqlite_url: str) -> Any:
    ledger = open_ledger(sqlite_url)
    yield ledger
    ledger.close()


def layers(ledger: Ledger, task: str) -> dict[str, Any]:
    return layers_of(ledger.dossier(task))


def states(ledger: Ledger, task: str) -> dict[str, str]:
    return {name: layer["state"] for name, layer in layers(ledger, task).items()}


@pytest.mark.criterion("J20")
def test_every_layer_stands_there_with_a_state_whatever_the_status(ledger: Ledger) -> None:
    for status in S:
        task, _ = brought(ledger, status)
        found = states(ledger, task.id)
        assert list(found) == ["gates", "evaluators", "qa", "audit", "budget"]
        assert all(found.values()), status


@pytest.mark.criterion("J20")
def test_a_task_that_waits_has_its_layers_before_it(ledger: Ledger) -> None:
    assert states(ledger, opened(ledger, evaluators=(JUDGE,)).id) == {
        "gates": "none",
        "evaluators": "pending",
        "qa": "not due",
        "audit": "nothing stated",
        "budget": "left",
    }


GATES = (Gate(name="tests", command=("a",)), Gate(name="lint", command=("b",)))
LOOSE = Gate(name="docs", command=("c",), required=False)


@pytest.mark.criterion("J20")
@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        ({"tests": F.PASSED, "lint": F.PASSED}, "passed"),
        ({"tests": F.PASSED, "lint": F.FAILED}, "failed"),
        ({"tests": F.PASSED, "lint": F.SKIPPED}, "inconclusive"),
        ({"tests": F.PASSED, "lint": F.PASSED, "docs": F.FAILED}, "passed"),
        ({"tests": F.PASSED}, "pending"),
        ({}, "pending"),
    ],
)
def test_gates_pass_together_or_not_at_all(
    ledger: Ledger, outcomes: dict[str, FindingOutcome], state: str
) -> None:
    ticket = started(ledger, gates=(*GATES, LOOSE))
    declared(ledger, ticket)
    found = [
        finding(ledger, ticket, word, check=name, binding=name != "docs")
        for name, word in outcomes.items()
    ]
    if found:
        ledger.record(ticket, found)
    gates = layers(ledger, ticket.task)["gates"]
    assert (gates["state"], gates["required"]) == (state, 2)
    assert gates["passed"] == list(outcomes.values()).count(F.PASSED)


def test_a_gate_that_failed_once_is_failed_and_a_baseline_is_no_answer(ledger: Ledger) -> None:
    ticket = started(ledger)
    before = finding(ledger, ticket, F.PASSED, phase=Phase.BASELINE, digest="tree:base")
    ledger.record(ticket, [before])
    declared(ledger, ticket)
    assert states(ledger, ticket.task)["gates"] == "pending"
    both = [finding(ledger, ticket, word) for word in (F.FAILED, F.PASSED)]
    ledger.record(ticket, both)
    assert states(ledger, ticket.task)["gates"] == "failed"


def test_gates_that_were_never_asked_are_not_pending_for_ever(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.CANCELED)
    assert states(ledger, task.id)["gates"] == "not asked"


def test_evaluators_are_a_layer_of_their_own(ledger: Ledger) -> None:
    ticket = started(ledger, gates=GATES[:1], evaluators=(JUDGE,))
    declared(ledger, ticket)
    low = finding(ledger, ticket, F.FAILED, check="judge", kind="evaluator", score=0.2)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED), low])
    found = states(ledger, ticket.task)
    assert (found["gates"], found["evaluators"]) == ("passed", "failed")


@pytest.mark.criterion("J20")
def test_qa_is_due_pending_decided_or_missing(ledger: Ledger) -> None:
    waiting, ticket = chained(ledger)
    assert states(ledger, waiting.id)["qa"] == "pending"
    ledger.record_qa(under_review(ledger, waiting), opinion(ledger, ticket, F.PASSED))
    passed = layers(ledger, waiting.id)["qa"]
    assert (passed["state"], passed["judge"], passed["rounds"]) == ("passed", "truegreen", [0, 2])
    skipped, _ = chained(ledger)
    ledger.review(skipped.id, accept=True, actor=OPERATOR, reason="urgent")
    assert states(ledger, skipped.id)["qa"] == "overridden"
    failed, other = chained(ledger)
    ledger.record_qa(under_review(ledger, failed), opinion(ledger, other, F.FAILED))
    assert states(ledger, failed.id)["qa"] == "failed"
    assert layers(ledger, failed.id)["qa"]["rounds"] == [1, 2]


def test_green_without_the_qa_that_was_due_says_missing(ledger: Ledger) -> None:
    task, _ = chained(ledger)
    dossier = ledger.dossier(task.id)
    import msgspec  # noqa: PLC0415 - next to its use

    wrong = dossier._replace(task=msgspec.structs.replace(task, status=S.SUCCEEDED))
    assert layers_of(wrong)["qa"]["state"] == "missing"


@pytest.mark.criterion("J20", "N07")
@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ({"confirmed": 2, "contradicted": 1, "unverifiable": 3}, "contradicted"),
        ({"confirmed": 2, "contradicted": 0, "unverifiable": 3}, "unverifiable"),
        ({"confirmed": 2, "contradicted": 0, "unverifiable": 0}, "confirmed"),
        ({}, "nothing stated"),
    ],
)
def test_the_audit_of_claims_is_told_beside_a_verdict_that_passed(
    ledger: Ledger, counts: dict[str, int], state: str
) -> None:
    ticket = started(ledger)
    declared(ledger, ticket)
    said = finding(ledger, ticket, F.FAILED, check="claim", kind="claim", counts=counts,
                   binding=False)  # fmt: skip
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED), said])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
    found = layers(ledger, ticket.task)
    assert (found["gates"]["state"], found["audit"]["state"]) == ("passed", state)
    assert found["audit"]["confirmed"] == counts.get("confirmed", 0)


@pytest.mark.criterion("J20")
def test_a_budget_is_spent_when_any_counter_is(ledger: Ledger) -> None:
    ticket = started(ledger, budget=Budget(attempts=1))
    assert states(ledger, ticket.task)["budget"] == "left"
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    budget = layers(ledger, ticket.task)["budget"]
    assert (budget["state"], budget["attempts"]) == ("spent", [1, 1])


def test_what_a_run_was_charged_counts_by_its_worst_check(ledger: Ledger) -> None:
    ticket = started(ledger, budget=Budget(check_errors=2))
    declared(ledger, ticket)
    for check in ("a", "b", "b"):
        ledger.charge(ticket, "check_errors", limit=2, subject=check)
    budget = layers(ledger, ticket.task)["budget"]
    assert (budget["state"], budget["check_errors"]) == ("spent", [2, 2])


@pytest.mark.criterion("A23")
@pytest.mark.parametrize(
    ("ok", "failed", "unknown", "skipped", "state"),
    [
        (3, 0, 0, 0, "ok"),
        (2, 1, 0, 0, "degraded"),
        (2, 0, 0, 1, "degraded"),
        (0, 1, 1, 0, "degraded"),
        (2, 0, 1, 0, "unknown"),
    ],
)
def test_children_are_a_layer_that_is_well_only_if_all_of_them_are(
    ledger: Ledger, ok: int, failed: int, unknown: int, skipped: int, state: str
) -> None:
    census = {"ok": ok, "failed": failed, "unknown": unknown, "skipped": skipped}
    ticket = started(ledger)
    declared(ledger, ticket)
    ledger.tell(ticket, {"children": census})
    assert layers(ledger, ticket.task)["children"] == {"state": state, **census}
