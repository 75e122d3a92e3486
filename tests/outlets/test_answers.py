"""The three answers of a verdict, in the words that every surface shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import msgspec
import pytest

from tests.proofs import (
    COUNTED,
    accepted_by_person,
    counted,
    noop,
    proven,
    regression_only,
    unproven,
    weak,
)
from tests.record.lives import OPERATOR, brought, declared, finding, judged, started
from tests.table import each_row
from truegreen.faces.axes import axes
from truegreen.faces.documents import task_document
from truegreen.model import FindingOutcome, Light, Outcome, TaskStatus
from truegreen.outlets import answers
from truegreen.outlets.answers import (
    answers_of,
    missing_of,
    missing_sentence,
    transition_of,
    transition_words,
)
from truegreen.outlets.wording import pasteable
from truegreen.record.ledger import Dossier, Ledger, open_ledger
from truegreen.work import verify

DATABASES = ("sqlite",)

F = FindingOutcome
TOO_EARLY = "tests passed before the agent started, too. Name a check that fails without the work"


@pytest.fixture
def ledger(sqlite_url: str) -> Iterator[Ledger]:
    ledger = open_ledger(sqlite_url)
    yield ledger
    ledger.close()


def said(dossier: Dossier) -> list[tuple[str, str]]:
    return [(each.word, each.why) for each in answers_of(dossier.runs[-1], dossier.findings)]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            counted,
            [
                ("passed", "1 gate: tests"),
                ("A2", "at least A2 is required"),
                ("shown", "tests: 3 fail-to-pass, 209 pass-to-pass"),
            ],
        ),
        (
            weak,
            [
                ("passed", "1 gate: tests"),
                ("A1", "at least A2 is required: not enough"),
                ("shown", "tests: failed before, passes now"),
            ],
        ),
        (
            unproven,
            [
                ("passed", "1 gate: tests"),
                ("A2", "at least A2 is required"),
                ("missing", TOO_EARLY),
            ],
        ),
        (
            accepted_by_person,
            [
                ("passed", "1 gate: tests"),
                ("A2", "at least A3 is required: not enough"),
                ("shown", "accepted by ana: read it"),
            ],
        ),
        (
            regression_only,
            [
                ("passed", "1 gate: tests"),
                ("A2", "at least A2 is required"),
                ("waived", "only that nothing broke"),
            ],
        ),
    ],
)
def test_the_three_answers_in_words(
    ledger: Ledger, make: Callable[[Ledger], str], expected: list[tuple[str, str]]
):
    assert said(ledger.dossier(make(ledger))) == expected


def test_only_what_is_enough_has_a_green_light(ledger: Ledger):
    def lights(make: Callable[[Ledger], str]) -> list[Light]:
        dossier = ledger.dossier(make(ledger))
        return [each.light for each in answers_of(dossier.runs[-1], dossier.findings)]

    green, amber = Light.GREEN, Light.AMBER
    assert lights(proven) == [green, green, green]
    assert lights(weak) == [green, amber, green]
    assert lights(unproven) == [green, green, amber]
    assert lights(regression_only) == lights(noop) == [green, green, amber]


def test_a_failed_check_names_what_each_check_said(ledger: Ledger):
    ticket = started(ledger)
    declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, F.PASSED, check="lint")])
    judged(ledger, ticket, Outcome.FAILED)
    checks = said(ledger.dossier(ticket.task))[0]
    assert checks == ("failed", "lint passed, tests failed")


def test_a_person_s_decision_does_not_change_what_the_checks_said(ledger: Ledger):
    task, _ = brought(ledger, TaskStatus.NEEDS_REVIEW)
    ledger.review(task.id, accept=True, actor=OPERATOR, reason="fine")
    assert said(ledger.dossier(task.id))[0] == ("inconclusive", "tests inconclusive")
    rejected = unproven(ledger)
    ledger.review(rejected, accept=False, actor=OPERATOR, reason="no")
    assert said(ledger.dossier(rejected))[0] == ("passed", "1 gate: tests")
    unchecked = started(ledger)
    declared(ledger, unchecked)
    judged(ledger, unchecked, Outcome.UNKNOWN)
    ledger.review(unchecked.task, accept=True, actor=OPERATOR, reason="fine")
    assert said(ledger.dossier(unchecked.task))[0] == ("unknown", "no check answered")


@pytest.mark.parametrize(
    "status", [TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.PENDING_EVAL, TaskStatus.CANCELED]
)
def test_there_is_no_answer_without_a_verdict(ledger: Ledger, status: TaskStatus):
    task, _ = brought(ledger, status)
    dossier = ledger.dossier(task.id)
    run = dossier.runs[-1] if dossier.runs else None
    assert answers_of(run, dossier.findings) == ()


def test_a_verdict_from_before_proofs_were_recorded_says_so(ledger: Ledger):
    dossier = ledger.dossier(proven(ledger))
    old = msgspec.structs.replace(dossier.runs[-1], proof="", required_level=None)
    _, level, proof = answers_of(old, dossier.findings)
    assert (level.why, proof.word) == ("no level was required", "not recorded")
    document = task_document(dossier._replace(runs=[old]), [])["verdict"]
    assert document["proof"] == {
        "status": "shown",
        "by": [],
        "reason": "decided before proofs were recorded",
    }


def test_what_is_missing_is_said_with_what_to_do(ledger: Ledger):
    runs = {make: ledger.dossier(make(ledger)).runs[-1] for make in (weak, unproven, proven)}
    assert missing_sentence(runs[weak]) == (
        "Every check passed, but only at level A1, and A2 is required. Read the changes and accept"
        " or reject them, or order the task with --require A1."
    )
    assert missing_sentence(runs[unproven]) == (
        "Every check passed, but nothing shows that the work made the difference. Read the changes"
        " and accept or reject them, or add a check that fails without the work."
    )
    assert missing_sentence(runs[proven]) == missing_sentence(None) == ""


@each_row("outcome", Outcome)
def test_only_an_inconclusive_verdict_lacks_something(outcome: Outcome):
    lacks = outcome is Outcome.INCONCLUSIVE
    assert missing_of(outcome, "unproven: x") == ("unproven" if lacks else "")
    assert missing_of(outcome, "the gate gave no answer") == ""


def test_the_words_are_those_of_the_verdict():
    assert (answers.WEAK_EVIDENCE, answers.UNPROVEN) == (verify.WEAK_EVIDENCE, verify.UNPROVEN)
    counts = {"fail_to_pass": 3, "pass_to_pass": 209, "pass_to_fail": 0}
    assert transition_words({"transitions": counts}, None, "passed") == verify.transition_words(
        counts
    )


def test_transitions_are_counted_in_tests_where_there_are_tests():
    assert transition_words(COUNTED, "failed", "passed") == "3 fail-to-pass, 209 pass-to-pass"
    assert transition_words({"transition": "fail_to_pass"}, None, "passed") == "fail-to-pass"
    assert transition_words({}, "failed", "passed") == "fail-to-pass"
    assert transition_words({}, "passed", "failed") == "pass-to-fail"
    assert transition_words({}, None, "passed") == ""
    assert transition_of("inconclusive", "passed") == ""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (regression_only, "(regression_only: green means that nothing broke)"),
        (noop, "(noop: there was nothing to do)"),
    ],
)
def test_a_success_that_shows_less_says_so_in_the_task_line(
    ledger: Ledger, make: Callable[[Ledger], str], words: str
):
    _, task = axes(ledger.dossier(make(ledger)))
    assert task.look.word == "succeeded"
    assert task.why.endswith(words)
    assert "regression_only" not in axes(ledger.dossier(proven(ledger)))[1].why


@each_row(
    ("command", "pasted"),
    [
        (
            "truegreen review tsk_1 --accept|--reject --reason …",
            'truegreen review tsk_1 --accept --reason "looked at the diff"',
        ),
        ("truegreen retry tsk_1 --reason …", 'truegreen retry tsk_1 --reason "try again"'),
        ("truegreen resolve inb_1 --outcome …", 'truegreen resolve inb_1 --outcome "dealt with"'),
        ("truegreen show tsk_1", "truegreen show tsk_1"),
    ],
)
def test_a_suggested_command_can_be_pasted(command: str, pasted: str):
    assert pasteable(command) == pasted


@pytest.mark.parametrize("status", TaskStatus)
def test_no_next_step_has_a_placeholder(ledger: Ledger, status: TaskStatus):
    task, _ = brought(ledger, status)
    document = json.dumps(task_document(ledger.dossier(task.id), [])["next"], ensure_ascii=False)
    assert "…" not in document
    assert "|" not in document
