"""Tasks as a JUnit report: a suite for each, a test case for each check, and one for the verdict.

Only the latest run is reported. What is advice, and decides nothing, can't fail a report. Texts of
agents are in it as text; characters that XML does not know are left out.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from truegreen.model import FindingOutcome, Phase, TaskStatus
from truegreen.outlets.answers import (
    answers_of,
    badges,
    missing_sentence,
    proof_of,
    transition_words,
)
from truegreen.outlets.mapping import FINDINGS, Junit, down
from truegreen.record.ledger import Dossier
from truegreen.record.rows import FindingRow, Run, Task
from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

VERDICT = "verdict"
_NOT_XML = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]"
)
_TOLD = ("id", "status", "run_status", "cell", "exit_reason", "exit_detail")
_BADGES = (
    "rescued",
    "overridden",
    "falsified",
    "unverified",
    "regression_only",
    "noop",
    "degraded",
)
"""What a pass must not be read without."""
_COUNTED = (("failures", Junit.FAILURE), ("errors", Junit.ERROR), ("skipped", Junit.SKIPPED))


class Case(NamedTuple):
    """One test case."""

    name: str
    result: Junit
    message: str
    seconds: float = 0.0
    aside: str = ""
    """What nobody should look past, although it passed."""


def report(dossiers: Iterable[Dossier]) -> bytes:
    """The report of some tasks."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - only a report needs it

    root = ET.Element("testsuites", name="truegreen")
    total = Counter[Junit]()
    for dossier in dossiers:
        total += _suite(root, dossier)
    _count(root, total)
    ET.indent(root)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root) + b"\n"


def cases_of(dossier: Dossier) -> list[Case]:
    """The checks of the latest run, and what they add up to."""
    run = dossier.runs[-1] if dossier.runs else None
    return [*map(_case, _latest(dossier)), _verdict(dossier.task, run)]


def _latest(dossier: Dossier) -> list[FindingRow]:
    """The latest answer of every check about the latest run."""
    run = dossier.runs[-1] if dossier.runs else None
    found: dict[str, FindingRow] = {}
    for row in dossier.findings:
        if run and row.run_key == run.key and row.phase is not Phase.BASELINE:
            found[row.check_name] = row
    return list(found.values())


def _case(row: FindingRow) -> Case:
    result = FINDINGS[row.outcome]
    message = row.reason
    if not row.binding and row.outcome is not FindingOutcome.PASSED:
        result, message = Junit.SKIPPED, f"not binding, {row.outcome}: {row.reason}"
    return Case(row.check_name, result, message, row.duration_us / 1e6)


def _verdict(task: Task, run: Run | None) -> Case:
    """The verdict; a pass says the badges that it must not be read without."""
    why = f": {run.verdict_reason}" if run and run.verdict_reason else ""
    worn = ", ".join(name for name in _worn(task, run) if name in _BADGES)
    aside = f"{worn}{why}" if worn else ""
    result = down(task.status, task.cell).junit
    missing = missing_sentence(run) if task.status is TaskStatus.NEEDS_REVIEW else ""
    message = f"{task.status}{why}" + (f". {missing}" if missing else "")
    return Case(VERDICT, result, message, aside=aside)


def _worn(task: Task, run: Run | None) -> list[str]:
    return badges(task, run.isolation if run else "")


def _suite(root: Element, dossier: Dossier) -> Counter[Junit]:
    from xml.etree.ElementTree import SubElement  # noqa: PLC0415 - as above

    task, cases = dossier.task, cases_of(dossier)
    suite = SubElement(root, "testsuite", name=_text(task.title), id=task.id)
    suite.set("timestamp", time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(task.updated_at / 1e6)))
    suite.set("time", f"{sum(case.seconds for case in cases):.3f}")
    properties = SubElement(suite, "properties")
    for name, value in _properties(dossier).items():
        SubElement(properties, "property", name=f"truegreen.{name}", value=_text(str(value or "")))
    results = Counter[Junit]()
    for case in cases:
        results[case.result] += 1
        made = SubElement(
            suite, "testcase", classname=f"truegreen.{task.id}", name=_text(case.name)
        )
        made.set("time", f"{case.seconds:.3f}")
        if case.result is not Junit.PASSED:
            SubElement(made, case.result, message=_text(case.message))
        if case.aside:
            SubElement(made, "system-out").text = _text(case.aside)
    _count(suite, results)
    return results


def _properties(dossier: Dossier) -> dict[str, object]:
    """Both axes, the badges, and the three answers of the latest verdict."""
    task = dossier.task
    run = dossier.runs[-1] if dossier.runs else None
    worn = _worn(task, run)
    proof = proof_of(run) if run else None
    return {
        **{name: getattr(task, name) for name in _TOLD},
        **{name: name in worn for name in _BADGES},
        **{each.question: each.word for each in answers_of(run, dossier.findings)},
        "require": run.required_level if run else None,
        "proof_mode": task.proof_mode,
        "proof_by": ", ".join(proof.by) if proof else "",
        "proof_reason": proof.reason if proof else "",
        **{f"check.{row.check_name}.transition": _turned(row) for row in _latest(dossier)},
    }


def _turned(row: FindingRow) -> str:
    """What became of a check since the agent started."""
    return transition_words(msgspec.json.decode(row.evidence), row.before, row.outcome)


def _count(element: Element, results: Counter[Junit]) -> None:
    element.set("tests", str(results.total()))
    for name, result in _COUNTED:
        element.set(name, str(results[result]))


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
