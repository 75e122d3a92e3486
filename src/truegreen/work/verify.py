"""From checks to a verdict: run the gates, write findings, conclude.

`examine` starts what the contract pins and reports each answer; no claim is passed in. `conclude`
is pure, and nothing in it rounds up: silence, doubt and absence are never green.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from shlex import quote
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Contract, Evaluator, Gate, GateKind, Tampering
from truegreen.facts import Exit, Finding, Proof, Verdict
from truegreen.model import (
    RESCUABLE,
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
from truegreen.work import baselines
from truegreen.work.gates import Answer, ask
from truegreen.work.gates.cases import expanded_ids
from truegreen.work.gates.counts import sentence
from truegreen.work.gates.output import one_line, tail_of
from truegreen.work.gates.rooms import Restore, Room, Site, room
from truegreen.work.gates.test_files import is_doctest, is_snapshot
from truegreen.work.weighing import compared, depends_on_tree, has_baseline, levelled, settled

Charge = Callable[[str], bool]

WEAK_EVIDENCE, UNPROVEN = "weak_evidence", "unproven"
"""What a verdict's reason begins with where every check passed and that is not enough."""
WAYS_TO_PROVE = (
    "Name a check that fails without the work, an evaluator or a review;"
    " or order it with --proof regression if it is enough that nothing broke"
)
FEEDBACK_BYTES = 16 * 1024
VERDICT_CHARACTERS = 1000
_SHOWN_TAMPERED = 50
_DIFF_BYTES = 16 * 1024
_EDITS_CHARACTERS = 600
_SHOWN_WORK = 3
_PASSED, _FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED


# --- gates to findings


def baseline(
    contract: Contract,
    site: Site,
    *,
    earlier: Sequence[Finding] = (),
    charge: Charge | None = None,
) -> list[Finding]:
    """Ask the gates about the tree that the agent will find, those that are to be compared.

    What they said before the first run of the task stands: `earlier` are findings of its runs.
    """
    said = _said_before(earlier, site)
    asked = [gate for gate in contract.gates if has_baseline(gate)]
    return [said.get(gate.name) or _before(gate, site, charge) for gate in asked]


def examine(
    contract: Contract,
    site: Site,
    *,
    baseline_findings: Sequence[Finding] = (),
    earlier: Sequence[Finding] = (),
    charge: Charge | None = None,
    told: Callable[[Finding], None] = lambda _: None,
) -> list[Finding]:
    """All gates, in their order, about what the agent left; one finding each.

    A baseline that is missing is made up for, and its findings come first. `earlier` are findings
    of earlier runs: a gate that answers otherwise about the same tree is flaky. `charge` is asked
    after every gate error whether the budget has another try.
    """
    known = _said_before(earlier, site)
    known.update({f.check: f for f in baseline_findings if f.phase is Phase.BASELINE})
    late = [
        _before(gate, site, charge)
        for gate in contract.gates
        if has_baseline(gate) and gate.name not in known
    ]
    known.update({finding.check: finding for finding in late})
    changed = site.base.digest != site.left.digest
    others = [*(f for f in earlier if f.phase is not Phase.BASELINE), *known.values()]
    found = []
    for gate in contract.gates:
        before = known.get(gate.name)
        pinned = before.evidence if before else {}
        answer = _finding(gate, site, Phase.AFTER, charge, pinned)
        answer = compared(gate, answer, before, changed=changed)
        if depends_on_tree(gate):
            answer = settled(answer, others)
        found.append(levelled(gate, answer))
        told(found[-1])
    return late + found


def check_gate(gate: Gate, site: Site, *, pinned: Mapping[str, Any] = {}) -> Finding:
    """One gate once, about what was left; `pinned` is the evidence of its answer before."""
    return levelled(gate, _finding(gate, site, Phase.AFTER, None, pinned))


def _said_before(earlier: Sequence[Finding], site: Site) -> dict[str, Finding]:
    """By gate, the first clear answer about the base of the task.

    It was given before any agent; a later answer may see what an agent left around the base: a
    file beside the copy, a deployment, a branch.
    """
    said: dict[str, Finding] = {}
    for found in earlier:
        mine = found.phase is Phase.BASELINE and found.digest == site.base.digest
        clear = found.outcome in (_PASSED, _FAILED)
        if mine and clear and found.contract_digest == site.contract_digest:
            said.setdefault(found.check, found)
    return said


def _before(gate: Gate, site: Site, charge: Charge | None) -> Finding:
    """What a gate says about the base; the same question about the same tree is asked once."""
    kept = baselines.recall(gate, site)
    if kept:
        return kept
    found = _finding(gate, site, Phase.BASELINE, charge)
    baselines.keep(gate, site, found)
    return found


def _finding(
    gate: Gate,
    site: Site,
    phase: Phase,
    charge: Charge | None,
    pinned: Mapping[str, Any] = {},
) -> Finding:
    begun = time.monotonic_ns()
    errors: list[str] = []
    answer = _answered(gate, site, phase, pinned)
    while _worth_another_try(answer) and charge is not None and charge(gate.name):
        errors.append(answer.reason)
        answer = _answered(gate, site, phase, pinned)
    evidence = {**answer.evidence, "earlier_errors": errors} if errors else answer.evidence
    if site.files:
        names = site.workspace.paths(site.files)[:_SHOWN_TAMPERED]
        evidence = {**evidence, "files": {"digest": site.files.digest, "paths": list(names)}}
    tree = site.base if phase is Phase.BASELINE else site.left
    return Finding(
        check=gate.name,
        kind=str(gate.kind),
        outcome=answer.outcome,
        reason=answer.reason,
        digest=tree.digest,
        contract_digest=site.contract_digest,
        judge=f"truegreen:gate:{gate.name}",
        judged=site.judged,
        phase=phase,
        level=answer.level,
        counts=answer.counts,
        evidence=evidence,
        isolation=answer.isolation,
        duration_us=(time.monotonic_ns() - begun) // 1000,
        binding=gate.required and phase is not Phase.BASELINE,
    )


def _worth_another_try(answer: Answer) -> bool:
    return answer.outcome is FindingOutcome.INCONCLUSIVE and not answer.lasting


def _answered(gate: Gate, site: Site, phase: Phase, pinned: Mapping[str, Any]) -> Answer:
    """The gate's answer, in a room of its own."""
    before = phase is Phase.BASELINE
    reported = _reported_files(pinned)
    with room(gate, site, before=before, reported=reported) as made:
        if isinstance(made, Answer):
            return made
        scene = replace(made.scene, pinned=dict(pinned))
        answer = _with_doubt(ask(gate, scene), made)
    restored = (*made.tampered, *made.edited)
    told = _with_edits(answer, gate, site, made) if restored else answer
    if told.green and made.without_work:
        return _asked_about_work(told, gate, site, made)
    if not restored or answer.outcome is not _FAILED or gate.tampering is not Tampering.RESTORE:
        return told
    return _with_their_files(replace(told, reason=answer.reason), gate, site, made, pinned) or told


def _asked_about_work(answer: Answer, gate: Gate, site: Site, made: Room) -> Answer:
    """A pass of a copy without any of the agent's changes: ask about the tree as it was left.

    The pass alone is the answer about the base. Where the agent edited nothing but tests, and
    they pass, no other file can have become worse, so that the level stays.
    """
    again = _asked_with(gate, site, Restore.NOTHING, {})
    names = _listed([change.path for change in (*made.tampered, *made.edited)] or ["its files"])
    if again is not None and again.green:
        if made.edited and not made.tampered:
            return answer
        doubt = f"without the agent's version of {names} the copy has nothing of its work"
        return replace(again, evidence={**answer.evidence, "doubt": doubt, **again.evidence})
    said = again.reason if again else "no clean copy"
    reason = (
        f"passes only without the work: everything that the agent changed belongs to the check"
        f" ({names}) and was restored; with the agent's version: {said}"
    )
    broken = again is not None and again.outcome is _FAILED and bool(made.runs_work)
    return replace(
        answer,
        outcome=_FAILED if broken else FindingOutcome.INCONCLUSIVE,
        reason=one_line(reason, _EDITS_CHARACTERS),
        lasting=True,
    )


def _reported_files(pinned: Mapping[str, Any]) -> tuple[str, ...]:
    """Files that a gate's report named on the base, but for product files with doctests."""
    named = (name.partition("::") for name in expanded_ids(pinned.get("ids")) or {})
    files = {file for file, _, test in named if test and not is_doctest(file, test)}
    return tuple(sorted(file for file in files if "." in file))


def _with_their_files(
    answer: Answer,
    gate: Gate,
    site: Site,
    made: Room,
    pinned: Mapping[str, Any],
) -> Answer | None:
    """A gate that fails with the files from before: what it says if it passes with the agent's.

    A snapshot is generated, so that an edit of it may be honest: the pass counts, at A1. A program
    that the gate runs may be the work itself: a person decides, or the order names it as work.
    """
    restored = (*made.tampered, *made.edited)
    snapshots = [change for change in restored if is_snapshot(change.path)]
    if snapshots:
        again = _asked_with(gate, site, Restore.TESTS, pinned)
        if again is not None and again.green:
            return replace(again, evidence={**answer.evidence, **again.evidence})
    again = _asked_with(gate, site, Restore.NOTHING, {})
    if again is None or not again.green:
        return None
    names = [change.path for change in restored]
    if set(names) == set(made.runs_work):
        options = " ".join(f"--may-edit {quote(name)}" for name in names[:_SHOWN_WORK])
        reason = (
            f"fails with {_listed(names)} from before the agent, passes with the agent's version"
            f" ({answer.reason}). The gate runs what the agent changed, so that it can't tell work"
            f" from an edited check. If it is the work: {options} --require A1; or use a gate that"
            " the agent has no reason to edit"
        )
        reason = one_line(reason, _EDITS_CHARACTERS)
        return replace(answer, outcome=FindingOutcome.INCONCLUSIVE, reason=reason, lasting=True)
    reason = (
        f"fails with your files; passes only with the agent's edits to {_listed(names)}"
        f" ({answer.reason}). If the task is meant to change them: --may-edit"
    )
    return replace(answer, reason=one_line(reason, _EDITS_CHARACTERS))


def _asked_with(
    gate: Gate, site: Site, restore: Restore, pinned: Mapping[str, Any]
) -> Answer | None:
    """The gate's answer with the agent's version of the check's files; None without a copy."""
    with room(gate, site, before=False, restore=restore) as made:
        if isinstance(made, Answer):
            return None
        return _with_doubt(ask(gate, replace(made.scene, pinned=dict(pinned))), made)


def _with_doubt(answer: Answer, made: Room) -> Answer:
    doubt = made.scene.doubt
    if not doubt or "doubt" in answer.evidence:
        return answer
    return replace(answer, level=Level.A1, evidence={**answer.evidence, "doubt": doubt})


def _with_edits(answer: Answer, gate: Gate, site: Site, made: Room) -> Answer:
    """What the agent changed of the check's own files is always said; the policy decides."""
    restored = (*made.tampered, *made.edited)
    named = _listed([f"{change.path} ({change.how})" for change in restored])
    told = {
        **answer.evidence,
        "tampered": [f"{change.how} {change.path}" for change in restored[:_SHOWN_TAMPERED]],
        "tampering": str(gate.tampering),
        "tampered_diff": site.workspace.diff(
            site.base,
            site.left,
            tuple(change.path for change in restored[:_SHOWN_TAMPERED]),
            limit=_DIFF_BYTES,
        ),
    }
    if gate.tampering is Tampering.FAIL and made.tampered:
        reason = one_line(f"protected files were changed: {named}; {answer.reason}")
        return replace(answer, outcome=_FAILED, reason=reason, evidence=told)
    if gate.tampering is not Tampering.ALLOW:
        reason = one_line(f"{answer.reason} (checked with the files from before: {named})")
        return replace(answer, reason=reason, evidence=told)
    return replace(answer, evidence=told)


# --- findings to a verdict


def may_check(contract: Contract, ended: Exit) -> bool:
    """Whether work that ended like this may be found done: declared, or silent without a crash."""
    if ended.reason is ExitReason.DONE:
        return ended.detail is not ExitDetail.DECLARED_FAILURE
    return ended.detail in RESCUABLE and contract.may_rescue(ended.detail)


def conclude(
    findings: Iterable[Finding],
    contract: Contract,
    ended: Exit,
    *,
    digest: str,
    contract_digest: str,
    changed: bool,
    rejected_claim: str = "",
    rejected_tree: str = "",
) -> Verdict:
    """The verdict that findings carry. Those about another tree or contract carry nothing.

    Nor do all of them together outvote a person who said no to this tree before.
    """
    mine = [
        f
        for f in findings
        if f.phase is not Phase.BASELINE
        and f.digest == digest
        and f.contract_digest == contract_digest
    ]
    checks = _Checks(contract, mine, rescue=ended.reason is not ExitReason.DONE)
    outcome, reason = _weighed(checks, contract, ended, rejected_claim, changed=changed)
    level = checks.level(outcome)
    proof = _proof(checks, contract, ended, changed=changed)
    if outcome is Outcome.PASSED and rejected_tree:
        outcome, reason = Outcome.INCONCLUSIVE, f"{rejected_tree} ({reason})"
    # A QA review that is still to come may show what the checks alone do not.
    review_to_come = contract.is_reviewed and changed
    if outcome is Outcome.PASSED and not review_to_come:
        if level < contract.require:
            outcome, reason = Outcome.INCONCLUSIVE, checks.weakness(level, contract.require)
        elif proof.status is ProofStatus.MISSING:
            outcome, reason = Outcome.INCONCLUSIVE, f"{UNPROVEN}: {proof.reason}"
    return Verdict(
        outcome=outcome,
        reason=one_line(reason, VERDICT_CHARACTERS),
        digest=digest,
        contract_digest=contract_digest,
        level=level,
        require=contract.require,
        proof=proof,
    )


def _proof(checks: _Checks, contract: Contract, ended: Exit, *, changed: bool) -> Proof:
    """What shows that the work made the difference; the contract may do without."""
    by = [f"gate:{name}" for name in checks.fail_to_pass()]
    if changed:
        by += [f"evaluator:{name}" for name in checks.passed_evaluators()]
    if by:
        return Proof(ProofStatus.SHOWN, tuple(by), checks.proof_words())
    if contract.proof is ProofMode.REGRESSION:
        words = "the task asks only that nothing broke (proof = regression)"
        return Proof(ProofStatus.WAIVED, ("regression",), words)
    declared_noop = ended.detail is ExitDetail.NOOP and not changed
    if declared_noop and contract.noop is NoopPolicy.ACCEPT:
        words = "the agent declared that there was nothing to do, and nothing was changed"
        return Proof(ProofStatus.WAIVED, ("noop",), words)
    return Proof(ProofStatus.MISSING, (), checks.no_proof(changed=changed))


def _weighed(
    checks: _Checks, contract: Contract, ended: Exit, rejected_claim: str, *, changed: bool
) -> tuple[Outcome, str]:
    """Red first, then every reason not to be green, then green."""
    if red := checks.red():
        return Outcome.FAILED, "; ".join(red)
    if not may_check(contract, ended):
        return Outcome.UNKNOWN, f"nothing was checked: the run ended with {ended.detail}"
    if not (checks.required or rejected_claim):
        return Outcome.UNKNOWN, "nothing to check: the contract requires no gate and no evaluator"
    idle = ended.reason is not ExitReason.DONE and not (changed or checks.red_before())
    against = [rejected_claim] if rejected_claim else checks.undecided()
    if idle and not against:
        against = [f"no sign of work, though {checks.praise()}"]
    return (
        (Outcome.INCONCLUSIVE, "; ".join(against)) if against else (Outcome.PASSED, checks.praise())
    )


class _Checks:
    """The findings of one verdict by check, read as strictly as the record reads them."""

    def __init__(self, contract: Contract, findings: list[Finding], *, rescue: bool) -> None:
        self._judges = {judge.name: judge for judge in contract.evaluators}
        self._rescue = rescue
        self._loose = [f for f in findings if not f.binding]
        self._found: dict[str, list[Finding]] = {}
        for finding in findings:
            if finding.binding:
                self._found.setdefault(finding.check, []).append(finding)
        required_gates = [gate for gate in contract.gates if gate.required]
        gates = [gate.name for gate in required_gates]
        # Every change passes a `diff` gate: it proves only where nothing else was asked for.
        only_diff = all(gate.kind is GateKind.DIFF for gate in required_gates)
        self._can_prove = {
            gate.name for gate in required_gates if only_diff or gate.kind is not GateKind.DIFF
        }
        judges = [e.name for e in contract.evaluators if e.required and not e.shadow]
        self.required = gates + judges

    def _named(self, check: str) -> str:
        return f"{'evaluator' if check in self._judges else 'gate'} {check}"

    def _standing(self, check: str) -> tuple[FindingOutcome, str]:
        """How a check stands after all of its findings, and why."""
        found = self._found.get(check, [])
        if not found:
            silent = "did not answer" if check in self._judges else "has no finding on this tree"
            return FindingOutcome.INCONCLUSIVE, silent
        outcomes = {finding.outcome for finding in found}
        if _FAILED in outcomes:
            if _PASSED in outcomes:
                return FindingOutcome.INCONCLUSIVE, "failed and passed on the same tree (flaky)"
            return _FAILED, next(f.reason for f in reversed(found) if f.outcome is _FAILED)
        last = found[-1]
        if last.outcome is not _PASSED:
            return FindingOutcome.INCONCLUSIVE, last.reason
        return self._scored(last)

    def _scored(self, finding: Finding) -> tuple[FindingOutcome, str]:
        judge = self._judges.get(finding.check)
        if judge is None:
            return _PASSED, finding.reason
        return _score_of(judge, finding, rescue=self._rescue)

    def red(self) -> list[str]:
        """What failed; no number of passes outvotes it."""
        return [
            f"{self._named(check)}: {why}"
            for check in self._found
            for outcome, why in [self._standing(check)]
            if outcome is _FAILED
        ]

    def undecided(self) -> list[str]:
        """What has to pass and did not: required checks, and whatever else binds."""
        names = dict.fromkeys([*self.required, *self._found])
        return [
            f"{self._named(check)}: {why}"
            for check in names
            for outcome, why in [self._standing(check)]
            if outcome is not _PASSED
        ]

    def red_before(self) -> bool:
        """Whether a check turned from red to green."""
        found = (f for each in self._found.values() for f in each)
        return any(f.outcome is _PASSED and f.before is _FAILED for f in found)

    def fail_to_pass(self) -> list[str]:
        """Required gates that failed before the agent started and pass now."""
        return [
            check
            for check, found in self._found.items()
            if check in self._can_prove
            and found[-1].before is _FAILED
            and self._standing(check)[0] is _PASSED
        ]

    def passed_evaluators(self) -> list[str]:
        """Required evaluators that agreed."""
        return [
            check
            for check in self._found
            if check in self._judges and self._standing(check)[0] is _PASSED
        ]

    def proof_words(self) -> str:
        """What turned from failing to passing, with tests where they are counted."""
        gates = [_with_transitions(self._found[check][-1]) for check in self.fail_to_pass()]
        judges = [f"evaluator {check} agreed" for check in self.passed_evaluators()]
        return "; ".join(gates + judges)

    def no_proof(self, *, changed: bool) -> str:
        """Why nothing shows that the work made the difference, and what would."""
        last = [each[-1] for check, each in self._found.items() if check in self.required]
        passed = [f.check for f in last if f.before is _PASSED]
        unasked = [f.check for f in last if f.before not in (_PASSED, _FAILED)]
        said = []
        if passed:
            said.append(f"{', '.join(passed)} passed before the agent started, too")
        still = [f.check for f in last if f.before is _FAILED and f.outcome is not _PASSED]
        if still:
            said.append(f"{', '.join(still)} failed before the agent started, and no pass followed")
        if unasked and not self.passed_evaluators():
            said.append(f"{', '.join(unasked)} gave no answer before the agent started")
        if not changed:
            said.append("no file was changed")
        said = said or ["no check failed before the agent started"]
        return f"{'; '.join(said)}. {WAYS_TO_PROVE}"

    def weakness(self, level: Level, require: Level) -> str:
        """Why the checks that passed are not good enough, and what would be."""
        found = (f for each in self._found.values() for f in each if f.level <= level)
        doubts = dict.fromkeys(
            str(why)
            for f in found
            for why in (f.evidence.get("doubt"), *f.evidence.get("short", ()))
            if why
        )
        said = "; ".join(doubts) or self.praise()
        return (
            f"{WEAK_EVIDENCE}: level {level}, and {require} is required: {said}. Look at the"
            f" changes and accept them (truegreen review), or order it with --require {level}"
        )

    def level(self, outcome: Outcome) -> Level:
        """The lowest level among the gates that decided; an evaluator that agrees may lift it."""
        wanted = {Outcome.PASSED: _PASSED, Outcome.FAILED: _FAILED}.get(outcome)
        decided = [f for each in self._found.values() for f in each if f.outcome is wanted]
        gates = min((f.level for f in decided if f.check not in self._judges), default=Level.A0)
        judges = min((f.level for f in decided if f.check in self._judges), default=Level.A0)
        return max(gates, judges)

    def praise(self) -> str:
        """`2 gates passed: tests (212 passed), lint`, with every reservation."""
        last = [each[-1] for each in self._found.values()]
        gates = [_with_counts(f) for f in last if f.check not in self._judges]
        judges = [f.check for f in last if f.check in self._judges]
        said = [
            f"{len(names)} {what}{'s' * (len(names) != 1)} passed: {', '.join(names)}"
            for what, names in (("gate", gates), ("evaluator", judges))
            if names
        ]
        doubts = dict.fromkeys(str(f.evidence["doubt"]) for f in last if f.evidence.get("doubt"))
        said += doubts
        said += [f"{f.check} {f.outcome}, which is not required" for f in self._loose
                 if f.outcome is not _PASSED]  # fmt: skip
        return "; ".join(said)


def _score_of(judge: Evaluator, finding: Finding, *, rescue: bool) -> tuple[FindingOutcome, str]:
    """An evaluator's pass needs its score; NaN and no score are none."""
    needed = judge.rescue_at if rescue else judge.threshold
    score = finding.score
    if score is None or not 0 <= score <= 1:
        return FindingOutcome.INCONCLUSIVE, "gave no usable score"
    if score >= needed:
        return _PASSED, finding.reason
    short = f"score {score:.4f} is below {needed:.2f}"
    return FindingOutcome.INCONCLUSIVE if score >= needed - judge.band else _FAILED, short


def _with_transitions(finding: Finding) -> str:
    """`tests: 3 fail-to-pass, 209 pass-to-pass`; without counts only that the gate turned."""
    counted = transition_words(finding.evidence.get("transitions", {}))
    return f"{finding.check}: {counted or 'failed before, passes now'}"


def transition_words(counts: Mapping[str, int]) -> str:
    """`3 fail-to-pass, 209 pass-to-pass`."""
    return ", ".join(f"{n} {name.replace('_', '-')}" for name, n in counts.items() if n)


def _with_counts(finding: Finding) -> str:
    return f"{finding.check} ({sentence(finding.counts)})" if finding.counts else finding.check


# --- what the next attempt is told


def feedback(findings: Iterable[Finding], *, limit: int = FEEDBACK_BYTES) -> str:
    """What failed, for the agent's next attempt. Gate errors are not its fault and left out."""
    red = [f for f in findings if f.phase is not Phase.BASELINE and f.outcome is _FAILED]
    if not red:
        return ""
    share = max(512, (limit - 512) // len(red))
    parts = ["These checks failed on what the last attempt left:"]
    parts += [tail_of(_told(finding, share), share) for finding in red]
    return _cut("\n\n".join(parts), limit)


def _told(finding: Finding, share: int) -> str:
    lines = [f"- {finding.check}: {finding.reason}"]
    argv = finding.evidence.get("argv")
    if argv:
        lines.append(f"  command: {' '.join(argv)[:300]}")
    tampered = finding.evidence.get("tampered")
    if tampered:
        lines.append(f"  don't change these, they are restored: {_listed(tampered)}")
    output = str(finding.evidence.get("output", ""))
    if output:
        room_left = max(0, share - len("\n".join(lines).encode()) - 32)
        lines += ["  the end of its output:", tail_of(output, room_left)]
    return "\n".join(lines)


def _cut(text: str, limit: int) -> str:
    data = text.encode()
    return text if len(data) <= limit else data[:limit].decode("utf-8", "ignore")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")
