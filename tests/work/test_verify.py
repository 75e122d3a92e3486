"""From findings to a verdict: nothing rounds up, and the record agrees."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.record.lives import ended
from tests.table import each_row
from tests.work.gates.trees import DIGEST, Tree, run_gate
from truegreen.contract import (
    AgentDefinition,
    Before,
    Contract,
    Evaluator,
    Gate,
    GateKind,
    QaTerms,
)
from truegreen.errors import Refused
from truegreen.facts import Finding, Verdict
from truegreen.model import (
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    NoopPolicy,
    Outcome,
    Phase,
    ProofMode,
    ProofStatus,
)
from truegreen.record.ledger.terms import read_terms
from truegreen.record.ledger.verdicts import _check_carried, _check_no_red, _check_proven
from truegreen.record.rows import FindingRow
from truegreen.work import verify

TREE = "tree:left"
PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR, SKIPPED = FindingOutcome.INCONCLUSIVE, FindingOutcome.SKIPPED
DONE = ended(ExitDetail.COMPLETED)


def contract(*names: str, **more: Any) -> Contract:
    more.setdefault("gates", tuple(run_gate("true", name=name) for name in names))
    return Contract(title="t", **more)


def finding(check: str = "tests", outcome: FindingOutcome = PASSED, **more: Any) -> Finding:
    facts: dict[str, Any] = {
        "check": check,
        "kind": "evaluator" if check == "reviewer" else "run",
        "before": FAILED if outcome is PASSED else None,
        "outcome": outcome,
        "reason": f"{outcome} it is",
        "digest": TREE,
        "contract_digest": DIGEST,
        "judge": f"truegreen:gate:{check}",
        "level": Level.A2,
    }
    return Finding(**{**facts, **more})


def conclude(findings, terms: Contract, exit_=DONE, **more: Any):
    given_: dict[str, Any] = {"digest": TREE, "contract_digest": DIGEST, "changed": True}
    return verify.conclude(findings, terms, exit_, **{**given_, **more})


# --- examine


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path, {"a.txt": "bug\n"})


FIXED = run_gate("grep", "-qx", "fixed", "a.txt", name="fixed", before=Before.FAIL)


@pytest.mark.criterion("E23")
def test_all_gates_run_in_their_order_and_none_stops_the_others(tree):
    gates = (run_gate("false", name="a"), run_gate("no-such", name="b"), run_gate("true", name="c"))
    found = tree.examine(*gates)
    assert [(f.check, f.outcome) for f in found] == [("a", FAILED), ("b", ERROR), ("c", PASSED)]
    assert [f.judge for f in found] == [f"truegreen:gate:{name}" for name in "abc"]
    assert {(f.judged, f.contract_digest, f.phase) for f in found} == {
        ("agent", DIGEST, Phase.AFTER)
    }
    assert all(f.duration_us > 0 and f.digest == tree.base.digest for f in found)


def test_a_gate_that_is_not_required_does_not_bind(tree):
    [loose] = tree.examine(run_gate("false", required=False))
    assert (loose.outcome, loose.binding) == (FAILED, False)


def test_red_before_and_green_after_shows_on_the_finding(tree):
    site = tree.site()
    before = verify.baseline(contract(gates=(FIXED, run_gate("true"))), site)
    assert [(f.check, f.outcome, f.phase) for f in before] == [
        ("fixed", FAILED, Phase.BASELINE),
        ("check", PASSED, Phase.BASELINE),
    ]
    assert (before[0].digest, before[0].binding) == (tree.base.digest, False)
    tree.write({"a.txt": "fixed\n"})
    found = verify.examine(contract(gates=(FIXED,)), tree.site(), baseline_findings=before)
    assert [(f.check, f.outcome, f.before) for f in found] == [("fixed", PASSED, FAILED)]
    assert found[0].digest != tree.base.digest


def test_a_missing_baseline_is_made_up_for(tree):
    tree.write({"a.txt": "fixed\n"})
    before, after = tree.examine(FIXED)
    assert (before.phase, before.outcome, before.digest) == (
        Phase.BASELINE,
        FAILED,
        tree.base.digest,
    )
    assert (after.phase, after.outcome, after.before) == (Phase.AFTER, PASSED, FAILED)


def test_what_was_said_before_the_first_run_stands_in_later_ones(tree):
    terms = contract(gates=(FIXED,))
    said = verify.baseline(terms, tree.site())
    tree.write({"a.txt": "fixed\n"})
    site = tree.site()
    assert verify.baseline(terms, site, earlier=said) == said
    [after] = verify.examine(terms, site, earlier=said)
    assert (after.phase, after.outcome, after.before) == (Phase.AFTER, PASSED, FAILED)
    others = (
        replace(said[0], digest=site.left.digest),
        replace(said[0], contract_digest="sha256:other"),
        replace(said[0], phase=Phase.AFTER),
        replace(said[0], outcome=ERROR),
    )
    for other in others:
        [asked] = verify.baseline(terms, site, earlier=[other])
        assert (asked.outcome, asked.phase, asked.digest) == (
            FAILED,
            Phase.BASELINE,
            tree.base.digest,
        )


def test_a_gate_that_can_not_tell_before_from_after_is_marked(tree):
    tree.write({"b.txt": "x\n"})
    _, after = tree.examine(run_gate("true", name="idle", before=Before.FAIL))
    assert (after.outcome, after.before) == (ERROR, PASSED)
    assert after.reason == "it had to fail before the agent and passed"
    _, any_before = tree.examine(
        run_gate("true", name="idle", before=Before.PASS), run_gate("true", name="other")
    )[1:]
    assert any_before.evidence["non_discriminating"] is True
    verdict = conclude([replace(any_before, digest=TREE)], contract("other"))
    assert (verdict.outcome, verdict.level) == (Outcome.INCONCLUSIVE, Level.A2)
    assert verdict.reason.startswith("unproven: other passed before the agent started, too")


def test_a_guard_that_was_red_before_says_so(tree):
    _, after = tree.examine(run_gate("false", name="guard", before=Before.PASS))
    assert after.reason == "exit 1, and no output (was already red before the agent)"


def test_a_baseline_without_an_answer_says_so(tree):
    _, after = tree.examine(run_gate("no-such", name="x", before=Before.FAIL))
    assert (after.outcome, after.before) == (ERROR, ERROR)
    assert after.evidence["no_baseline"] is True


def test_a_gate_without_a_copy_has_a_baseline_too(tree):
    tree.write({"a.txt": "fixed\n"})
    before, after = tree.examine(Gate(name="diff", kind=GateKind.DIFF, before=Before.FAIL))
    assert (before.outcome, after.outcome, after.before) == (FAILED, PASSED, FAILED)


# --- conclude: the cases


@pytest.mark.criterion("F01")
def test_every_required_gate_passed():
    found = [finding("tests", counts={"passed": 212, "failed": 0, "skipped": 0}), finding("lint")]
    verdict = conclude(found, contract("tests", "lint"))
    assert (verdict.outcome, verdict.level) == (Outcome.PASSED, Level.A2)
    assert verdict.reason == "2 gates passed: tests (212 passed), lint"


@pytest.mark.criterion("F01", "J19")
def test_a_red_gate_is_told_with_its_reason():
    found = [finding("tests", FAILED, reason="3 failed of 212"), finding("lint")]
    verdict = conclude(found, contract("tests", "lint"))
    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, "gate tests: 3 failed of 212")
    assert verdict.level is Level.A2


@pytest.mark.criterion("E14", "E17")
@each_row("outcome", [ERROR, SKIPPED])
def test_a_required_gate_without_an_answer_is_undecided(outcome):
    found = [finding("tests", outcome, reason="skipped: no screen"), finding("lint")]
    verdict = conclude(found, contract("tests", "lint"))
    assert (verdict.outcome, verdict.reason) == (
        Outcome.INCONCLUSIVE,
        "gate tests: skipped: no screen",
    )
    assert verdict.level is Level.A0


@pytest.mark.criterion("E23")
def test_a_gate_that_was_dropped_is_undecided():
    verdict = conclude([finding("lint")], contract("tests", "lint"))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reason == "gate tests: has no finding on this tree"


@pytest.mark.criterion("E13")
def test_nothing_to_check_is_unknown():
    verdict = conclude([], contract())
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.reason.startswith("nothing to check")
    loose = contract(gates=(run_gate("true", name="x", required=False),))
    assert conclude([finding("x", binding=False)], loose).outcome is Outcome.UNKNOWN


@pytest.mark.criterion("E09")
@each_row("stale", [{"digest": "tree:other"}, {"contract_digest": "sha256:other"}])
def test_a_finding_about_another_tree_or_contract_carries_nothing(stale):
    assert conclude([finding(**stale)], contract("tests")).outcome is Outcome.INCONCLUSIVE


def test_a_check_that_failed_and_passed_on_one_tree_is_undecided():
    found = [finding("tests", FAILED), finding("tests", PASSED)]
    for order in (found, found[::-1]):
        verdict = conclude(order, contract("tests"))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "flaky" in verdict.reason


@pytest.mark.criterion("F04")
@each_row("detail", list(ExitDetail))
def test_only_declared_and_rescuable_exits_are_checked(detail):
    rescuable = {d for d in ExitDetail if Contract(title="t").may_rescue(d)}
    declared = {ExitDetail.COMPLETED, ExitDetail.NOOP}
    verdict = conclude([finding()], contract("tests"), ended(detail))
    wanted = Outcome.PASSED if detail in declared | rescuable else Outcome.UNKNOWN
    assert verdict.outcome is wanted


@pytest.mark.criterion("F02", "F03", "F05")
@each_row("detail", [ExitDetail.UNCLAIMED, ExitDetail.AGENT_ERROR, ExitDetail.TURN_CAP])
def test_silent_work_is_what_its_checks_say(detail):
    assert conclude([finding()], contract("tests"), ended(detail)).outcome is Outcome.PASSED
    red = conclude([finding(outcome=FAILED)], contract("tests"), ended(detail))
    assert red.outcome is Outcome.FAILED
    assert conclude([], contract(), ended(detail)).outcome is Outcome.UNKNOWN
    off = contract("tests", rescue=())
    assert conclude([finding()], off, ended(detail)).outcome is Outcome.UNKNOWN


@pytest.mark.criterion("E31")
def test_silence_without_a_sign_of_work_is_no_work():
    silent = ended(ExitDetail.UNCLAIMED)
    idle = conclude([finding(before=PASSED)], contract("tests"), silent, changed=False)
    assert idle.outcome is Outcome.INCONCLUSIVE
    assert idle.reason.startswith("no sign of work")
    turned = conclude([finding(before=FAILED)], contract("tests"), silent, changed=False)
    assert turned.outcome is Outcome.PASSED


@pytest.mark.criterion("A08", "A09")
def test_a_rejected_claim_is_never_a_pass():
    reason = "the claim file is no JSON: Expecting value"
    verdict = conclude([finding()], contract("tests"), rejected_claim=reason)
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, reason)
    red = conclude([finding(outcome=FAILED)], contract("tests"), rejected_claim=reason)
    assert red.outcome is Outcome.FAILED
    assert conclude([], contract(), rejected_claim=reason).outcome is Outcome.INCONCLUSIVE


def test_the_lowest_level_counts_and_its_reason_is_told():
    doubt = "the agent could have changed the check: .venv/bin/pytest lies in the workspace"
    found = [finding("a", level=Level.A3), finding("b", level=Level.A1, evidence={"doubt": doubt})]
    verdict = conclude(found, contract("a", "b"))
    assert (verdict.outcome, verdict.level) == (Outcome.INCONCLUSIVE, Level.A1)
    assert verdict.reason.startswith(f"weak_evidence: level A1, and A2 is required: {doubt}")
    lenient = conclude(found, contract("a", "b", require=Level.A1))
    assert (lenient.outcome, lenient.level) == (Outcome.PASSED, Level.A1)
    assert lenient.reason == f"2 gates passed: a, b; {doubt}"


def test_a_red_gate_that_is_not_required_is_told():
    terms = contract(gates=(run_gate("true", name="a"), run_gate("x", name="b", required=False)))
    verdict = conclude([finding("a"), finding("b", FAILED, binding=False)], terms)
    assert verdict.outcome is Outcome.PASSED
    assert verdict.reason == "1 gate passed: a; b failed, which is not required"


JUDGE = Evaluator(name="reviewer", command=("judge",), band=0.05)


def test_an_evaluator_that_did_not_answer_is_undecided():
    verdict = conclude([finding()], contract("tests", evaluators=(JUDGE,)))
    assert (verdict.outcome, verdict.reason) == (
        Outcome.INCONCLUSIVE,
        "evaluator reviewer: did not answer",
    )
    shadow = contract("tests", evaluators=(replace(JUDGE, shadow=True),))
    assert conclude([finding()], shadow).outcome is Outcome.PASSED


@pytest.mark.criterion("F06")
@each_row(
    ("score", "outcome"),
    [
        (0.70, Outcome.PASSED),
        (1.0, Outcome.PASSED),
        (0.6999, Outcome.INCONCLUSIVE),
        (0.65, Outcome.INCONCLUSIVE),
        (0.6499, Outcome.FAILED),
        (None, Outcome.INCONCLUSIVE),
        (float("nan"), Outcome.INCONCLUSIVE),
        (1.01, Outcome.INCONCLUSIVE),
    ],
)
def test_an_evaluator_needs_its_score(score, outcome):
    found = [finding(), finding("reviewer", score=score)]
    assert conclude(found, contract("tests", evaluators=(JUDGE,))).outcome is outcome


def test_a_rescue_needs_the_score_for_a_rescue():
    terms = contract("tests", evaluators=(replace(JUDGE, rescue_threshold=0.9),))
    found = [finding(), finding("reviewer", score=0.8)]
    assert conclude(found, terms).outcome is Outcome.PASSED
    assert conclude(found, terms, ended(ExitDetail.UNCLAIMED)).outcome is not Outcome.PASSED


# --- conclude: what holds for all findings

NAMES = ("a", "b", "reviewer", "stranger")
any_finding = st.builds(
    finding,
    check=st.sampled_from(NAMES),
    outcome=st.sampled_from(FindingOutcome),
    digest=st.sampled_from((TREE, TREE, TREE, "tree:other", "")),
    phase=st.sampled_from((Phase.AFTER, Phase.AFTER, Phase.REVIEW)),
    binding=st.sampled_from((True, True, True, False)),
    before=st.sampled_from((None, PASSED, FAILED)),
    score=st.sampled_from((None, 0.0, 0.65, 0.6999, 0.7, 1.0)),
    level=st.sampled_from(Level),
)
baselines = st.builds(
    finding,
    check=st.sampled_from(NAMES),
    outcome=st.sampled_from(FindingOutcome),
    digest=st.sampled_from((TREE, "tree:base")),
    phase=st.just(Phase.BASELINE),
    binding=st.just(False),
)
any_findings = st.lists(any_finding | baselines, max_size=8)
green_findings = st.lists(st.sampled_from(NAMES).map(lambda n: finding(n, score=0.9)), max_size=8)
some_findings = any_findings | green_findings
any_terms = st.builds(
    lambda gates, judges: contract(gates=tuple(gates), evaluators=tuple(judges)),
    st.lists(
        st.builds(run_gate, st.just("true"), name=st.sampled_from("ab"), required=st.booleans()),
        max_size=2,
        unique_by=lambda gate: gate.name,
    ),
    st.lists(
        st.builds(
            replace,
            st.just(JUDGE),
            required=st.booleans(),
            shadow=st.booleans(),
            rescue_threshold=st.sampled_from((None, 0.8)),
        ),
        max_size=1,
    ),
)
any_exit = st.sampled_from(list(ExitDetail)).map(ended)
LIKELY = st.sampled_from((ExitDetail.COMPLETED, ExitDetail.UNCLAIMED)).map(ended)


def rows(findings: list[Finding]) -> list[FindingRow]:
    return [
        FindingRow(
            id=f"fnd_{n}", run_key=1, phase=f.phase, check_name=f.check, kind=f.kind,
            outcome=f.outcome, before=f.before, level=f.level, score=f.score, counts="{}",
            reason=f.reason, evidence="{}", digest=f.digest, contract_digest=f.contract_digest,
            judge=f.judge, judged=f.judged, isolation=f.isolation, duration_us=0,
            binding=f.binding, at=0,
        )
        for n, f in enumerate(findings)
    ]  # fmt: skip


def accepted(check, *arguments: Any) -> bool:
    try:
        check(*arguments)
    except Refused:
        return False
    return True


def work_of(terms: Contract, exit_, *, changed: bool = True) -> Any:
    return SimpleNamespace(
        task=SimpleNamespace(qa_of_key=None),
        run=SimpleNamespace(
            exit_reason=exit_.reason,
            exit_detail=exit_.detail,
            base_digest="tree:base" if changed else TREE,
            digest=TREE,
        ),
        terms=read_terms(terms.text()),
    )


def carried(work: Any, findings: list[Finding], verdict: Verdict) -> bool:
    return accepted(_check_carried, work, rows(findings), verdict) and accepted(
        _check_proven, work, rows(findings), verdict
    )


@given(some_findings, any_terms, LIKELY)
def test_the_record_accepts_exactly_the_passes_that_are_concluded(findings, terms, exit_):
    verdict = conclude(findings, terms, exit_)
    assert (verdict.outcome is Outcome.PASSED) == carried(work_of(terms, exit_), findings, verdict)


@given(any_findings, any_terms, any_exit, st.booleans(), st.sampled_from(("", "rejected")))
def test_the_record_accepts_every_verdict_that_is_concluded(findings, terms, exit_, changed, claim):
    verdict = conclude(findings, terms, exit_, changed=changed, rejected_claim=claim)
    if verdict.outcome is Outcome.PASSED:
        _check_carried(work_of(terms, exit_), rows(findings), verdict)
        _check_proven(work_of(terms, exit_, changed=changed), rows(findings), verdict)
    elif verdict.outcome is not Outcome.FAILED:
        _check_no_red(rows(findings), TREE)


@given(some_findings, any_terms, LIKELY, st.data())
def test_removing_evidence_of_a_required_check_never_makes_a_pass(findings, terms, exit_, data):
    required = {g.name for g in terms.gates if g.required} | {
        e.name for e in terms.evaluators if e.required and not e.shadow
    }
    gone = data.draw(st.sampled_from(sorted(required) or ["a"]))
    left = [f for f in findings if f.check != gone]
    assert conclude(left, terms, exit_).outcome is not Outcome.PASSED or gone not in required


@given(some_findings, any_terms, any_exit, st.data())
def test_removing_passes_never_makes_a_pass(findings, terms, exit_, data):
    if conclude(findings, terms, exit_).outcome is Outcome.PASSED:
        return
    kept = [f for f in findings if f.outcome is not PASSED or data.draw(st.booleans())]
    assert conclude(kept, terms, exit_).outcome is not Outcome.PASSED


@given(some_findings, any_terms, any_exit, st.integers(0, 8), st.integers(1, 5))
def test_a_red_gate_is_never_outvoted(findings, terms, exit_, place, more):
    red = finding("a", FAILED)
    for votes in (findings, [finding("a")] * more, [finding("b", score=1.0)] * more):
        found = [*votes[:place], red, *votes[place:]]
        assert conclude(found, terms, exit_).outcome is not Outcome.PASSED
    only = [f for f in findings if f.check != "a"]
    assert conclude([*only, red], terms, exit_).outcome is Outcome.FAILED


@pytest.mark.criterion("F12", "F19")
@given(some_findings, any_terms, LIKELY)
def test_an_evaluator_may_lower_confirm_or_rescue_and_never_raises(findings, terms, exit_):
    """Whatever judges say: with them, work passes only where its gates alone would let it."""
    gates = [f for f in findings if f.check in {"a", "b"}]
    bare = replace(terms, evaluators=())
    alone = conclude(gates, bare, exit_)
    heard = conclude([f for f in findings if f.check in {"a", "b", "reviewer"}], terms, exit_)
    if alone.outcome is Outcome.FAILED:
        assert heard.outcome is Outcome.FAILED
    if heard.outcome is Outcome.PASSED and any(gate.required for gate in terms.gates):
        short = alone.reason.startswith((verify.WEAK_EVIDENCE, verify.UNPROVEN))
        assert alone.outcome is Outcome.PASSED or short


@given(any_findings, any_exit)
def test_without_required_checks_nothing_passes(findings, exit_):
    for terms in (contract(), contract(gates=(run_gate("true", name="a", required=False),))):
        assert conclude(findings, terms, exit_).outcome is not Outcome.PASSED


@given(any_findings, any_exit, st.sampled_from((SKIPPED, ERROR)))
def test_a_required_gate_that_did_not_answer_last_never_passes(findings, exit_, outcome):
    found = [*findings, finding("a", outcome)]
    assert conclude(found, contract("a"), exit_).outcome is not Outcome.PASSED


@given(some_findings, any_terms, any_exit)
def test_a_pass_has_the_lowest_level_of_what_it_rests_on(findings, terms, exit_):
    verdict = conclude(findings, terms, exit_)
    assert len(verdict.reason) <= verify.VERDICT_CHARACTERS
    if verdict.outcome is Outcome.PASSED:
        mine = [f for f in findings if f.binding and f.digest == TREE and f.outcome is PASSED]
        judges = {judge.name for judge in terms.evaluators}
        gates = min((f.level for f in mine if f.check not in judges), default=Level.A0)
        agreed = min((f.level for f in mine if f.check in judges), default=Level.A0)
        assert verdict.level == max(gates, agreed) >= terms.require
        assert exit_.reason is ExitReason.DONE or terms.may_rescue(exit_.detail)


# --- conclude: the three questions

ANY_MODE = st.builds(
    lambda proof, require, noop: {"proof": proof, "require": require, "noop": noop},
    st.sampled_from(ProofMode),
    st.sampled_from(Level),
    st.sampled_from(NoopPolicy),
)


def proves(f: Finding, terms: Contract, *, changed: bool) -> bool:
    """Whether a finding alone could show that the work made the difference."""
    if not (
        f.binding and f.outcome is PASSED and f.digest == TREE and f.phase is not Phase.BASELINE
    ):
        return False
    required = {gate.name for gate in terms.gates if gate.required}
    judges = {judge.name for judge in terms.evaluators}
    return (f.check in required and f.before is FAILED) or (f.check in judges and changed)


@pytest.mark.criterion("E31")
@given(some_findings, any_terms, any_exit, ANY_MODE, st.booleans())
def test_nothing_passes_without_a_proof_or_the_users_word(findings, terms, exit_, mode, changed):
    terms = replace(terms, **mode)
    verdict = conclude(findings, terms, exit_, changed=changed)
    if verdict.outcome is not Outcome.PASSED:
        return
    shown = any(proves(f, terms, changed=changed) for f in findings)
    noop = exit_.detail is ExitDetail.NOOP and not changed and terms.noop is NoopPolicy.ACCEPT
    assert shown or terms.proof is ProofMode.REGRESSION or noop
    assert verdict.proof.status is (ProofStatus.SHOWN if shown else ProofStatus.WAIVED)


@given(some_findings, any_terms, any_exit, ANY_MODE, st.booleans())
def test_a_level_below_what_is_required_never_passes(findings, terms, exit_, mode, changed):
    terms = replace(terms, **mode)
    verdict = conclude(findings, terms, exit_, changed=changed)
    assert verdict.require is terms.require
    if verdict.level < terms.require:
        assert verdict.outcome is not Outcome.PASSED


@given(some_findings, any_terms, any_exit, st.booleans(), st.data())
def test_forgetting_what_was_before_never_makes_a_pass(findings, terms, exit_, changed, data):
    if conclude(findings, terms, exit_, changed=changed).outcome is Outcome.PASSED:
        return
    blind = [replace(f, before=None) if data.draw(st.booleans()) else f for f in findings]
    assert conclude(blind, terms, exit_, changed=changed).outcome is not Outcome.PASSED


@each_row("require", list(Level))
@each_row("level", list(Level))
def test_a_pass_needs_the_level_that_is_required(level, require):
    verdict = conclude([finding(level=level)], contract("tests", require=require))
    assert verdict.level is level
    assert (verdict.outcome is Outcome.PASSED) == (level >= require)
    assert verdict.reason.startswith("weak_evidence: ") == (level < require)


@each_row(("require", "outcome"), [("A2", Outcome.PASSED), ("A3", ERROR)])
def test_an_evaluator_that_agrees_lifts_the_level_to_its_own(require, outcome):
    terms = contract("tests", evaluators=(JUDGE,), require=Level(require))
    found = [finding(level=Level.A1), finding("reviewer", score=0.9, level=Level.A2)]
    verdict = conclude(found, terms)
    assert (verdict.level, verdict.outcome.value) == (Level.A2, outcome.value)


def test_a_gate_that_passed_before_is_no_proof():
    kept = finding(before=PASSED)
    verdict = conclude([kept], contract("tests"))
    assert (verdict.outcome, verdict.proof.status) == (Outcome.INCONCLUSIVE, ProofStatus.MISSING)
    assert verdict.reason.startswith("unproven: tests passed before the agent started, too")
    assert "--proof regression" in verdict.reason
    both = conclude([kept, finding("fix")], contract("tests", "fix"))
    assert (both.outcome, both.proof.by) == (Outcome.PASSED, ("gate:fix",))


def test_a_gate_that_failed_before_and_now_is_told_as_such():
    verdict = conclude([finding(outcome=FAILED, before=FAILED)], contract("tests"))
    assert verdict.outcome is Outcome.FAILED
    assert verdict.proof.reason.startswith(
        "tests failed before the agent started, and no pass followed."
    )


def test_a_gate_without_an_answer_before_is_no_proof():
    for before in (None, ERROR, SKIPPED):
        verdict = conclude([finding(before=before)], contract("tests"))
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "gave no answer before the agent started" in verdict.reason


def test_regression_is_the_users_explicit_word():
    kept = finding(before=PASSED)
    verdict = conclude([kept], contract("tests", proof=ProofMode.REGRESSION), changed=False)
    assert (verdict.outcome, verdict.proof.status) == (Outcome.PASSED, ProofStatus.WAIVED)
    assert verdict.proof.by == ("regression",)
    red = conclude([finding(outcome=FAILED)], contract("tests", proof=ProofMode.REGRESSION))
    assert red.outcome is Outcome.FAILED


def test_a_noop_counts_only_where_it_is_accepted_and_nothing_changed():
    kept, noop = finding(before=PASSED), ended(ExitDetail.NOOP)
    accepting = contract("tests", noop=NoopPolicy.ACCEPT)
    verdict = conclude([kept], accepting, noop, changed=False)
    assert (verdict.outcome, verdict.proof.by) == (Outcome.PASSED, ("noop",))
    for terms, exit_, changed in (
        (contract("tests"), noop, False),
        (accepting, noop, True),
        (accepting, DONE, False),
    ):
        assert conclude([kept], terms, exit_, changed=changed).outcome is Outcome.INCONCLUSIVE


def test_an_evaluator_proves_only_work_that_is_there():
    terms = contract("tests", evaluators=(JUDGE,))
    found = [finding(before=PASSED), finding("reviewer", score=0.9)]
    verdict = conclude(found, terms)
    assert (verdict.outcome, verdict.proof.by) == (Outcome.PASSED, ("evaluator:reviewer",))
    assert conclude(found, terms, changed=False).outcome is Outcome.INCONCLUSIVE


def test_a_diff_gate_proves_only_where_nothing_else_is_asked():
    diff = Gate(name="diff", kind=GateKind.DIFF)
    alone = conclude([finding("diff")], contract(gates=(diff,)))
    assert alone.proof.by == ("gate:diff",)
    beside = contract(gates=(diff, run_gate("true", name="tests")))
    kept = conclude([finding("diff"), finding("tests", before=PASSED)], beside)
    assert (kept.outcome, kept.proof.status) == (Outcome.INCONCLUSIVE, ProofStatus.MISSING)


def test_a_review_that_is_still_to_come_may_bring_the_proof():
    qa = QaTerms(roles=("coder",), agent="reviewer", definition=AgentDefinition(command=("look",)))
    terms = contract("tests", role="coder", qa=qa)
    kept = finding(before=PASSED, level=Level.A1)
    verdict = conclude([kept], terms)
    assert (verdict.outcome, verdict.proof.status) == (Outcome.PASSED, ProofStatus.MISSING)
    assert conclude([kept], terms, changed=False).outcome is Outcome.INCONCLUSIVE


# --- feedback


@pytest.mark.criterion("E14")
def test_the_next_attempt_is_told_what_failed_and_no_gate_error():
    evidence = {"argv": ["pytest", "-q"], "output": "E assert 1 == 2", "tampered": ["changed t.py"]}
    found = [
        finding("tests", FAILED, reason="1 failed of 2", evidence=evidence),
        finding("slow", ERROR, reason="gate error: no answer within 10m"),
        finding("lint", PASSED),
        finding("base", FAILED, phase=Phase.BASELINE),
    ]
    text = verify.feedback(found)
    for told in ("tests: 1 failed of 2", "pytest -q", "E assert 1 == 2", "changed t.py"):
        assert told in text
    for silent in ("slow", "gate error", "lint", "base:"):
        assert silent not in text


def test_nothing_red_is_nothing_to_tell():
    assert verify.feedback([finding(), finding("x", ERROR)]) == ""


@given(st.lists(st.text(max_size=30000), min_size=1, max_size=40))
def test_feedback_is_bounded_and_names_the_checks(outputs):
    found = [
        finding(f"check-{n}", FAILED, evidence={"output": text}) for n, text in enumerate(outputs)
    ]
    told = verify.feedback(found)
    assert len(told.encode()) <= verify.FEEDBACK_BYTES
    assert "check-0" in told
