"""The three answers of a verdict: did the checks pass, is the level enough, is the work proven.

Every surface shows the same three, in the same words. Badges are here as well, because receipts and
pages show the same ones. This module reads rows of the record and opens no store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from truegreen.facts import Proof
from truegreen.model import (
    FindingOutcome,
    Level,
    Light,
    Outcome,
    Phase,
    ProofMode,
    ProofStatus,
)
from truegreen.record.rows import FindingRow, Run, Task
from truegreen.tuples import NamedTuple

WEAK_EVIDENCE, UNPROVEN = "weak_evidence", "unproven"
"""What the reason of a verdict begins with where every check passed and that is not enough."""
SIMULATION = "system:demo"
"""The actor that opens tasks of the demo."""
NOT_RECORDED = "not recorded"
PERSON = "person:"
"""How an entry of `proof.by` begins that names a person."""
WEAK_ISOLATION = ("reaper", "none")
"""Without a sandbox around the agent; such a task wears the badge `degraded`."""
_OLDER = "the verdict is older than this question"
_NO_CHECKS = ("claim", "person")
_KINDS = {"evaluator": "evaluator", "qa": "QA review"}
_TRANSITIONS = ("fail_to_pass", "pass_to_pass", "pass_to_fail", "fail_to_fail")
_LIGHTS = {
    Outcome.PASSED: Light.GREEN,
    Outcome.FAILED: Light.RED,
    Outcome.PENDING: Light.BLUE,
}


class Answer(NamedTuple):
    """One of the three: what was asked, the answer in a word, why, and its light."""

    question: str
    word: str
    why: str
    light: Light


class Check(NamedTuple):
    """What a check answered last."""

    name: str
    kind: str
    outcome: FindingOutcome


def proof_of(run: Run) -> Proof | None:
    """The recorded proof; None for a verdict from before proofs were recorded."""
    return msgspec.json.decode(run.proof, type=Proof) if run.proof else None


def answers_of(run: Run | None, findings: Iterable[FindingRow]) -> tuple[Answer, ...]:
    """The three answers about a run; none before it has a verdict."""
    if run is None or run.level is None or run.verdict is Outcome.PENDING:
        return ()
    rows = [row for row in findings if row.run_key == run.key]
    return (
        checks_answer(checks_outcome(run, rows), checks_of(rows)),
        level_answer(run.level, run.required_level),
        proof_answer(proof_of(run)),
    )


def checks_answer(outcome: Outcome, checks: Iterable[Check]) -> Answer:
    """Question 1: did the checks pass."""
    return Answer("checks", outcome, check_words(checks), _LIGHTS.get(outcome, Light.AMBER))


def checks_of(rows: Iterable[FindingRow]) -> list[Check]:
    """How every binding check stands about what the run left."""
    return standing(
        Check(row.check_name, row.kind, row.outcome)
        for row in rows
        if row.binding and row.phase is not Phase.BASELINE
    )


def standing(answers: Iterable[Check]) -> list[Check]:
    """The latest answer of every check; one that failed stays failed. Claims are no checks."""
    found: dict[str, Check] = {}
    for check in answers:
        before = found.get(check.name)
        red = before is not None and before.outcome is FindingOutcome.FAILED
        if check.kind not in _NO_CHECKS and not red:
            found[check.name] = check
    return list(found.values())


def checks_outcome(run: Run, rows: Iterable[FindingRow]) -> Outcome:
    """Whether the checks of a run passed, whatever the other two answers made of the verdict."""
    found = [row for row in rows if row.run_key == run.key]
    return answered(
        run.verdict,
        run.verdict_reason,
        [check.outcome for check in checks_of(found)],
        by_person=any(row.kind == "person" for row in found),
    )


def answered(
    outcome: Outcome, reason: str, said: list[FindingOutcome], *, by_person: bool
) -> Outcome:
    """The same from the bare values, for receipts; a person's review is no answer of a check."""
    if missing_of(outcome, reason):
        return Outcome.PASSED
    if not by_person:
        return outcome
    if FindingOutcome.FAILED in said:
        return Outcome.FAILED
    if any(word is not FindingOutcome.PASSED for word in said):
        return Outcome.INCONCLUSIVE
    return Outcome.PASSED if said else Outcome.UNKNOWN


def missing_of(outcome: Outcome | None, reason: str) -> str:
    """What keeps passed checks from a pass: `weak_evidence`, `unproven`, or nothing."""
    if outcome is not Outcome.INCONCLUSIVE:
        return ""
    word = reason.partition(":")[0]
    return word if word in (WEAK_EVIDENCE, UNPROVEN) else ""


def missing_sentence(run: Run | None) -> str:
    """What is missing and what to do, where every check passed and that is not enough."""
    missing = missing_of(run.verdict, run.verdict_reason) if run else ""
    if run and missing == WEAK_EVIDENCE:
        return (
            f"Every check passed, but only at level {run.level}, and {run.required_level} is"
            " required. Read the changes and accept or reject them, or order the task with"
            f" --require {run.level}."
        )
    if missing == UNPROVEN:
        return (
            "Every check passed, but nothing shows that the work made the difference. Read the"
            " changes and accept or reject them, or add a check that fails without the work."
        )
    return ""


def check_words(checks: Iterable[Check]) -> str:
    """`2 gates: tests, lint`; where not all passed, what each of them said."""
    all_checks = list(checks)
    if not all_checks:
        return "no check answered"
    if any(check.outcome is not FindingOutcome.PASSED for check in all_checks):
        return ", ".join(f"{check.name} {check.outcome}" for check in all_checks)
    groups: dict[str, list[str]] = {}
    for check in all_checks:
        groups.setdefault(_KINDS.get(check.kind, "gate"), []).append(check.name)
    return "; ".join(
        f"{len(names)} {kind}{'s' * (len(names) != 1)}: {', '.join(names)}"
        for kind, names in groups.items()
    )


def level_answer(level: Level, require: Level | None) -> Answer:
    """Question 2: is the level at least the one that the contract requires."""
    if require is None:
        return Answer("level", level, "no level was required", Light.GREEN)
    enough = level >= require
    why = f"at least {require} is required" + ("" if enough else ": not enough")
    return Answer("level", level, why, Light.GREEN if enough else Light.AMBER)


def proof_answer(proof: Proof | None) -> Answer:
    """Question 3: does something show that the work made the difference."""
    if proof is None:
        return Answer("proof", NOT_RECORDED, _OLDER, Light.GREY)
    light = Light.GREEN if proof.status is ProofStatus.SHOWN else Light.AMBER
    by = "" if proof.status is not ProofStatus.SHOWN else _by_whom(proof)
    return Answer("proof", proof.status, by or proof.reason, light)


def _by_whom(proof: Proof) -> str:
    """A person's acceptance names the person; checks are named in the reason already."""
    people = [name.removeprefix(PERSON) for name in proof.by if name.startswith(PERSON)]
    return f"accepted by {', '.join(people)}: {proof.reason}" if people else ""


# --- transitions


def transition_of(before: FindingOutcome | str | None, now: FindingOutcome | str) -> str:
    """`fail_to_pass` and the like; nothing where one of the two gave no answer."""
    words = {"passed": "pass", "failed": "fail"}
    if before not in words or now not in words:
        return ""
    return f"{words[str(before)]}_to_{words[str(now)]}"


def transition_words(evidence: Mapping[str, Any], before: str | None, now: str) -> str:
    """`3 fail-to-pass, 209 pass-to-pass`; without counts only what became of the whole check."""
    counts = evidence.get("transitions")
    if isinstance(counts, Mapping) and any(counts.values()):
        ordered = sorted(counts.items(), key=lambda item: _place(item[0]))
        return ", ".join(f"{number:,} {_dashed(name)}" for name, number in ordered if number)
    return _dashed(str(evidence.get("transition", "")) or transition_of(before, now))


def _place(name: str) -> int:
    return _TRANSITIONS.index(name) if name in _TRANSITIONS else len(_TRANSITIONS)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


# --- badges


def badges(task: Task, isolation: str = "") -> list[str]:
    """What a task carries beside its status, on every surface."""
    worn = {
        "rescued": task.rescued,
        "overridden": task.overridden,
        "falsified": task.falsified,
        "unverified": task.is_unverified,
        "regression_only": task.proof_mode is ProofMode.REGRESSION,
        "noop": task.noop,
        "degraded": isolation in WEAK_ISOLATION,
        "simulated": task.created_by == SIMULATION,
        "terminated": task.sealed_at is not None,
        "legacy": task.is_legacy,
    }
    return [name for name, wears in worn.items() if wears]


def exemptions(terms: Mapping[str, Any]) -> list[str]:
    """What a contract does without, said wherever the task is shown."""
    return ["artifact_is_status"] if terms.get("artifact_is_status") else []
