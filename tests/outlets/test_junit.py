"""A JUnit report: a suite per task, and red wherever the task is not green."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.proofs import counted, noop, regression_only, unproven, weak
from tests.record.lives import BASE, OPERATOR, brought, declared, finding, judged, opened, started
from truegreen.contract import Budget
from truegreen.model import FindingOutcome, Outcome, Phase, TaskStatus
from truegreen.outlets.junit import report
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.work.gates.reports import read_junit

DATABASES = ("sqlite",)


@pytest.fixture
def ledger(sqlite_url: str) -> Iterator[Ledger]:
    ledger = open_ledger(sqlite_url)
    yield ledger
    ledger.close()


def outcomes(text: bytes) -> dict[str, str]:
    """As our own reader of such reports understands it."""
    cases = read_junit(text)
    assert isinstance(cases, list), cases
    return {case.id.rpartition("::")[2]: case.outcome for case in cases}


def reported(ledger: Ledger, *tasks: str) -> ET.Element:
    text = report([ledger.dossier(task) for task in tasks])
    assert isinstance(read_junit(text), list)
    return ET.fromstring(text)  # noqa: S314 - our own


def results(suite: ET.Element) -> dict[str, str]:
    return {
        case.get("name", ""): next((part.tag for part in case), "passed")
        for case in suite.iter("testcase")
    }


@pytest.mark.criterion("L07")
@pytest.mark.parametrize("status", TaskStatus)
def test_only_a_task_that_succeeded_passes(ledger: Ledger, status: TaskStatus):
    task, _ = brought(ledger, status)
    root = reported(ledger, task.id)
    (suite,) = root
    assert (results(suite)["verdict"] == "passed") == (status is TaskStatus.SUCCEEDED)
    bad = int(root.get("failures", "")) + int(root.get("errors", ""))
    assert (bad == 0) == (status is TaskStatus.SUCCEEDED)
    properties = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert properties["truegreen.status"] == status


@pytest.mark.criterion("L06", "L07")
def test_what_only_a_person_accepted_is_no_plain_pass(ledger: Ledger):
    ticket = started(ledger)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.UNKNOWN)
    ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="fine")
    root = reported(ledger, ticket.task)
    (case,) = [each for each in root.iter("testcase") if each.get("name") == "verdict"]
    assert case.findtext("system-out") == "unverified: operator:ana: fine"
    properties = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert properties["truegreen.unverified"] == "True"
    checked, _ = brought(ledger, TaskStatus.SUCCEEDED)
    assert reported(ledger, checked.id).find(".//system-out") is None


def test_every_check_is_a_test_case_by_the_one_table(ledger: Ledger):
    ticket = started(ledger, budget=Budget(attempts=1))
    declared(ledger, ticket)
    made: list[tuple[str, FindingOutcome, dict[str, Any]]] = [
        ("lint", FindingOutcome.PASSED, {}),
        ("docs", FindingOutcome.SKIPPED, {}),
        ("style", FindingOutcome.FAILED, {"binding": False}),
        ("judge", FindingOutcome.INCONCLUSIVE, {}),
        ("old", FindingOutcome.FAILED, {"phase": Phase.BASELINE, "digest": BASE}),
    ]
    for name, outcome, more in made:
        given = {"check": name, "duration_us": 1_500_000, "binding": False, **more}
        ledger.record(ticket, [finding(ledger, ticket, outcome, **given)])
    judged(ledger, ticket, Outcome.FAILED)
    (suite,) = reported(ledger, ticket.task)
    shown = results(suite)
    assert shown["tests"] == "failure"
    assert shown["lint"] == "passed"
    assert shown["style"] == shown["docs"] == "skipped"
    assert shown["verdict"] == "failure"
    assert "old" not in shown
    assert suite.get("tests") == str(len(shown))
    assert suite.get("time") == "6.000"


def test_several_tasks_are_several_suites(ledger: Ledger):
    tasks = [brought(ledger, status)[0].id for status in (TaskStatus.FAILED, TaskStatus.SUCCEEDED)]
    root = reported(ledger, *tasks)
    assert [suite.get("id") for suite in root] == tasks
    assert root.get("tests") == "4"


def test_a_hostile_title_stays_text(ledger: Ledger):
    title = '"><testcase name="x"/><!-- ]]> & é \U0001f600'
    task, _ = brought(ledger, TaskStatus.SUCCEEDED, title=title)
    (suite,) = reported(ledger, task.id)
    assert suite.get("name") == title
    assert len(list(suite.iter("testcase"))) == 2


def test_what_xml_does_not_know_is_left_out():
    from truegreen.outlets.junit import _text  # noqa: PLC0415 - behind the front door

    assert _text("a\x00\x1b\ud800\ufffe\tb") == "a\ufffd\ufffd\ufffd\ufffd\tb"


def test_our_own_reader_sees_the_same(ledger: Ledger):
    task, _ = brought(ledger, TaskStatus.FAILED)
    seen = outcomes(report([ledger.dossier(task.id)]))
    assert len(seen) == 2
    assert "passed" not in seen.values()


def properties(root: ET.Element) -> dict[str | None, str | None]:
    return {p.get("name"): p.get("value") for p in root.iter("property")}


def test_the_three_answers_are_properties_of_the_suite(ledger: Ledger):
    shown = properties(reported(ledger, counted(ledger)))
    assert shown["truegreen.checks"] == "passed"
    assert (shown["truegreen.level"], shown["truegreen.require"]) == ("A2", "A2")
    assert (shown["truegreen.proof"], shown["truegreen.proof_by"]) == ("shown", "gate:tests")
    assert shown["truegreen.proof_reason"] == "tests: 3 fail-to-pass, 209 pass-to-pass"
    assert shown["truegreen.check.tests.transition"] == "3 fail-to-pass, 209 pass-to-pass"
    assert (shown["truegreen.proof_mode"], shown["truegreen.regression_only"]) == ("required", "")


@pytest.mark.parametrize("make", [regression_only, noop])
def test_a_pass_that_shows_less_says_so(ledger: Ledger, make: Callable[[Ledger], str]):
    root = reported(ledger, make(ledger))
    (case,) = [each for each in root.iter("testcase") if each.get("name") == "verdict"]
    assert (case.findtext("system-out") or "").startswith(f"{make.__name__}: ")
    shown = properties(root)
    assert shown[f"truegreen.{make.__name__}"] == "True"
    assert shown["truegreen.proof"] == "waived"


def test_a_pass_without_a_sandbox_says_so(ledger: Ledger):
    ticket = ledger.start(opened(ledger).id, Start("here", isolation="none", base_digest=BASE))
    declared(ledger, ticket)
    task = judged(ledger, ticket, Outcome.PASSED)
    root = reported(ledger, task.id)
    (case,) = [each for each in root.iter("testcase") if each.get("name") == "verdict"]
    assert (case.findtext("system-out") or "").startswith("degraded: ")
    assert properties(root)["truegreen.degraded"] == "True"


@pytest.mark.parametrize(
    ("make", "words"),
    [(weak, "A2 is required. Read the changes"), (unproven, "made the difference. Read the")],
)
def test_what_is_missing_is_in_the_message_of_the_verdict(
    ledger: Ledger, make: Callable[[Ledger], str], words: str
):
    root = reported(ledger, make(ledger))
    (case,) = [each for each in root.iter("testcase") if each.get("name") == "verdict"]
    (problem,) = case
    assert problem.tag == "error"
    assert words in problem.get("message", "")
