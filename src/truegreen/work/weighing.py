"""One finding beside what else is known: the same check before the agent, and earlier answers.

Pure. Comparing can only lower a finding: its level, or what it says. Nothing here turns anything
green.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Before, Gate, GateKind, Isolation
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Level, Phase
from truegreen.work.gates.output import one_line

PINNING = frozenset({GateKind.PYTEST, GateKind.JUNIT, GateKind.TAP, GateKind.HELD_OUT})
"""Kinds that are always asked about the base: what they find there is what counts afterwards."""
_PASSED, _FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
_DECIDED = (_PASSED, _FAILED)
_TRANSITIONS = {
    (_FAILED, _PASSED): "fail_to_pass",
    (_PASSED, _FAILED): "pass_to_fail",
    (_FAILED, _FAILED): "fail_to_fail",
    (_PASSED, _PASSED): "pass_to_pass",
}
_BEYOND_THE_TREE = frozenset({GateKind.HTTP, GateKind.GIT})
"""Kinds whose answer may change while the files stay the same: a deployment, a push."""


def has_baseline(gate: Gate) -> bool:
    """Whether a gate is asked before the agent starts: every one that the verdict depends on."""
    return gate.required or gate.before is not Before.ANY or gate.kind in PINNING


def depends_on_tree(gate: Gate) -> bool:
    """Whether the same files must give the same answer; if not, the check is flaky.

    A fresh artifact may be a new file with the same content.
    """
    return gate.kind not in _BEYOND_THE_TREE and not gate.network and not gate.fresh


def compared(gate: Gate, finding: Finding, before: Finding | None, *, changed: bool) -> Finding:
    """A finding beside what the same gate said before the agent started."""
    if before is None:
        return finding
    told: dict[str, Any] = {"before_reason": before.reason}
    note = ""
    if before.outcome not in _DECIDED:
        same = before.reason == finding.reason
        note = "before the agent, too" if same else f"before the agent: {before.reason}"
        told["no_baseline"] = True
    elif before.outcome is _PASSED and gate.before is not Before.PASS:
        told["non_discriminating"] = True
        note = "passed before the agent started, too" if gate.before is Before.FAIL else ""
    elif before.outcome is _FAILED and gate.before is Before.PASS:
        note, told["red_before"] = "was already red before the agent", True
    if finding.outcome in _DECIDED and before.outcome in _DECIDED:
        told["transition"] = _TRANSITIONS[before.outcome, finding.outcome]
        told["unchanged"] = not changed
    reason = one_line(f"{finding.reason} ({note})") if note else finding.reason
    told = {name: value for name, value in told.items() if value}
    found = replace(
        finding, before=before.outcome, reason=reason, evidence={**finding.evidence, **told}
    )
    unmet = gate.before is Before.FAIL and before.outcome is _PASSED
    if unmet and finding.outcome is _PASSED:
        said = "it had to fail before the agent and passed"
        return replace(found, outcome=FindingOutcome.INCONCLUSIVE, reason=said)
    return found


def settled(finding: Finding, others: Iterable[Finding]) -> Finding:
    """A finding beside other answers about the same tree: one that flips is flaky, and no pass."""
    if finding.outcome not in _DECIDED:
        return finding
    for other in others:
        if (other.check, other.digest, other.contract_digest) != (
            finding.check,
            finding.digest,
            finding.contract_digest,
        ):
            continue
        flipped = other.outcome in _DECIDED and other.outcome is not finding.outcome
        if flipped or other.evidence.get("flaky"):
            when = "before the agent" if other.phase is Phase.BASELINE else "in an earlier run"
            was = other.outcome if flipped else "flaky"
            reason = f"flaky: {finding.outcome} now, {was} {when}, on the same tree"
            return replace(
                finding,
                outcome=FindingOutcome.INCONCLUSIVE,
                reason=one_line(f"{reason}: {finding.reason}"),
                evidence={**finding.evidence, "flaky": True},
            )
    return finding


def levelled(gate: Gate, finding: Finding) -> Finding:
    """The level that is left when everything that a level needs is looked for, and what was short.

    A check that ran nothing of the agent's needs no jail: its isolation is «none» and its kind
    can't reach beyond A2 anyway.
    """
    told = finding.evidence
    short = list(told.get("short", ()))
    level = finding.level
    missing = [
        (bool(told.get("doubt")), Level.A1, str(told.get("doubt"))),
        (
            finding.isolation != Isolation.JAIL,
            Level.A2,
            f"no jail around the check (isolation {finding.isolation})",
        ),
        (
            gate.network and gate.kind is not GateKind.HTTP,
            Level.A2,
            "the check had the network",
        ),
        (
            bool(told.get("non_discriminating")),
            Level.A2,
            "it passed before the agent started, too: it can't show that work was done",
        ),
        (
            bool(told.get("no_baseline")),
            Level.A2,
            "there is no answer from before the agent to compare with",
        ),
    ]
    for holds, most, why in missing:
        if holds and level > most:
            level = most
            short.append(why)
    if short:
        return replace(finding, level=level, evidence={**told, "short": short})
    return replace(finding, level=level) if level is not finding.level else finding
