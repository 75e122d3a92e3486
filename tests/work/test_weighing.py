"""A finding beside others can only be lowered: by a flip, by the base, by what is short."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from truegreen.contract import Before, Gate, GateKind
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Level, Phase
from truegreen.work.weighing import (
    compared,
    depends_on_tree,
    has_baseline,
    levelled,
    settled,
)

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
UNCLEAR, SKIPPED = FindingOutcome.INCONCLUSIVE, FindingOutcome.SKIPPED


def gate(kind: GateKind = GateKind.PYTEST, **more: Any) -> Gate:
    return Gate(name="tests", kind=kind, **more)


def finding(outcome: FindingOutcome = PASSED, **more: Any) -> Finding:
    facts: dict[str, Any] = {
        "check": "tests",
        "kind": "pytest",
        "reason": "3 passed",
        "digest": "tree:a",
        "contract_digest": "sha256:c",
        "judge": "truegreen:gate:tests",
        "level": Level.A3,
        "isolation": "jail",
    }
    return Finding(outcome=outcome, **{**facts, **more})


def before(outcome: FindingOutcome, **more: Any) -> Finding:
    return finding(outcome, phase=Phase.BASELINE, reason="before", **{"digest": "tree:0", **more})


# -- what changed


@pytest.mark.criterion("E21")
@each_row(
    ("was", "now", "transition"),
    [
        (FAILED, PASSED, "fail_to_pass"),
        (PASSED, FAILED, "pass_to_fail"),
        (FAILED, FAILED, "fail_to_fail"),
        (PASSED, PASSED, "pass_to_pass"),
    ],
)
@each_row("changed", [True, False])
def test_a_finding_says_how_the_gate_turned(was, now, transition, changed):
    found = compared(gate(), finding(now), before(was), changed=changed)
    assert found.evidence["transition"] == transition
    assert found.evidence.get("unchanged", False) is not changed
    assert (found.outcome, found.before) == (now, was)


def test_a_gate_that_had_to_fail_before_and_passed_is_no_pass():
    intent = gate(before=Before.FAIL)
    for changed in (True, False):
        unmet = compared(intent, finding(), before(PASSED), changed=changed)
        assert unmet.outcome is UNCLEAR
        assert unmet.reason == "it had to fail before the agent and passed"
    for other in (Before.ANY, Before.PASS):
        assert (
            compared(gate(before=other), finding(), before(PASSED), changed=False).outcome is PASSED
        )


def test_an_answer_that_is_missing_on_one_side_has_no_effect():
    for was, now in ((UNCLEAR, PASSED), (FAILED, UNCLEAR), (SKIPPED, FAILED)):
        found = compared(gate(), finding(now), before(was), changed=True)
        assert "transition" not in found.evidence
    assert compared(gate(), finding(), None, changed=True) == finding()


def test_every_required_gate_and_every_kind_that_pins_is_asked_before_the_agent():
    for required in (True, False):
        assert has_baseline(gate(GateKind.PYTEST, required=required))
        assert has_baseline(gate(GateKind.TAP, command=("x",), required=required))
        more = {"command": ("x",), "required": required}
        assert has_baseline(gate(GateKind.RUN, **more)) is required
        assert has_baseline(gate(GateKind.RUN, **more, before=Before.FAIL))


def test_only_checks_of_files_alone_must_answer_the_same_about_the_same_files():
    assert depends_on_tree(gate(GateKind.RUN, command=("x",)))
    assert not depends_on_tree(gate(GateKind.RUN, command=("x",), network=True))
    assert not depends_on_tree(gate(GateKind.GIT))
    assert not depends_on_tree(gate(GateKind.HTTP, url="http://x"))


# -- levels


@each_row("intent", [Before.FAIL, Before.ANY])
def test_a_gate_that_passed_on_the_base_does_not_reach_a3(intent):
    told = compared(gate(before=intent), finding(), before(PASSED), changed=True)
    found = levelled(gate(before=intent), told)
    assert found.level is Level.A2
    assert "passed before the agent started" in found.evidence["short"][0]


def test_a_guard_against_regressions_and_a_fix_reach_a3():
    for intent, was in ((Before.PASS, PASSED), (Before.FAIL, FAILED), (Before.ANY, FAILED)):
        told = compared(gate(before=intent), finding(), before(was), changed=True)
        assert levelled(gate(before=intent), told).level is Level.A3


@each_row(
    ("more", "level", "why"),
    [
        ({"isolation": "reaper"}, Level.A2, "no jail around the check (isolation reaper)"),
        ({"isolation": "none"}, Level.A2, "isolation none"),
        ({"evidence": {"doubt": "the agent may still be running"}}, Level.A1, "still be running"),
        ({"evidence": {"no_baseline": True}}, Level.A2, "no answer from before"),
    ],
)
@pytest.mark.criterion("E29")
def test_whatever_is_missing_lowers_the_level_and_is_said(more, level, why):
    found = levelled(gate(), finding(**more))
    assert found.level is level
    assert len(found.evidence["short"]) == 1
    assert why in found.evidence["short"][0]


def test_a_check_with_the_network_does_not_reach_a3():
    assert levelled(gate(network=True), finding()).level is Level.A2


@given(
    level=st.sampled_from(Level),
    isolation=st.sampled_from(["jail", "reaper", "none"]),
    network=st.booleans(),
    told=st.fixed_dictionaries(
        {},
        optional={
            "doubt": st.just("x"),
            "no_baseline": st.just(value=True),
            "non_discriminating": st.just(value=True),
        },
    ),
)
def test_weighing_never_raises_a_level_and_never_says_less(level, isolation, network, told):
    given_finding = finding(level=level, isolation=isolation, evidence=told)
    found = levelled(gate(network=network), given_finding)
    assert found.level <= level
    assert (found.level < level) == (len(found.evidence.get("short", ())) > 0)
    assert found.outcome is given_finding.outcome


# -- flips


@pytest.mark.criterion("E27")
@each_row(("now", "then"), [(PASSED, FAILED), (FAILED, PASSED)])
def test_pass_and_fail_on_one_tree_is_flaky_and_no_pass(now, then):
    found = settled(finding(now), [finding(then)])
    assert found.outcome is UNCLEAR
    assert found.evidence["flaky"]
    assert found.reason.startswith(f"flaky: {now} now, {then} in an earlier run, on the same tree")


def test_a_check_that_was_flaky_once_stays_so_on_that_tree():
    flaky = settled(finding(FAILED), [finding(PASSED)])
    assert settled(finding(PASSED), [flaky]).outcome is UNCLEAR


def test_the_base_speaks_about_a_tree_that_was_not_changed():
    found = settled(finding(PASSED), [before(FAILED, digest="tree:a")])
    assert found.outcome is UNCLEAR
    assert "failed before the agent" in found.reason


@each_row(
    "other",
    [
        finding(FAILED, digest="tree:b"),
        finding(FAILED, contract_digest="sha256:other"),
        finding(FAILED, check="lint"),
        finding(UNCLEAR),
        finding(SKIPPED),
        finding(PASSED),
    ],
)
def test_other_trees_contracts_and_checks_and_gate_errors_make_nothing_flaky(other):
    assert settled(finding(PASSED), [other]) == finding(PASSED)


def test_a_gate_error_stays_a_gate_error():
    error = finding(UNCLEAR, reason="gate error: x")
    assert settled(error, [finding(PASSED), finding(FAILED)]) == error
