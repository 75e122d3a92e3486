"""What a task waits for, in documents and in words; the same from every face."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from truegreen.contract.waits import TASK_ID, WaitKind
from truegreen.faces.times import instant
from truegreen.model import TaskStatus
from truegreen.record.conditions import Condition
from truegreen.record.holds import Hold
from truegreen.record.ledger.lists import Page
from truegreen.record.ledger.reads import Dossier, Need

Waits = tuple[dict[int, list[Need]], dict[int, Hold]]


def add_waits(document: dict[str, Any], page: Page, waits: Waits) -> None:
    """What each task of a page waits for: others, and what else holds it."""
    for task, each in zip(page.tasks, document["tasks"], strict=True):
        each["waits_for"] = [need._asdict() for need in waits[0].get(task.key, ())]
        each["hold"] = waits[1].get(task.key)


def condition_document(condition: Condition) -> dict[str, Any]:
    """One thing that is waited for, or was; and what is known of how it came."""
    return {
        "id": condition.id,
        "kind": condition.kind,
        "what": condition.what,
        "by": condition.armed_by,
        "since": instant(condition.created_at),
        "met_at": instant(condition.met_at),
        "met_by": condition.met_by or None,
        "fact": condition.facts(),
    }


def open_conditions(dossier: Dossier) -> list[Condition]:
    """What keeps a queued task from starting."""
    queued = dossier.task.status is TaskStatus.QUEUED
    return [each for each in dossier.conditions if queued and each.met_at is None]


def condition_words(conditions: Iterable[Condition]) -> str:
    """What has not happened yet: «waits for a message about built, the file /x»."""
    return "waits for " + ", ".join(map(_words, conditions))


def _words(condition: Condition) -> str:
    what = condition.what
    if condition.kind is WaitKind.MESSAGE:
        return f"a message {'from' if what.startswith(TASK_ID) else 'about'} {what}"
    if condition.kind is WaitKind.FILE:
        return f"the file {what}"
    return f"an answer: {what}"


def leading_on(task: str, condition: Condition) -> str:
    """The command that lets a task go on."""
    if condition.kind is WaitKind.HUMAN:
        return f"truegreen approve {task}"
    if condition.kind is WaitKind.MESSAGE:
        return f"truegreen announce {condition.what}"
    import shlex  # noqa: PLC0415 - few wait for a file, and every list comes by here

    needs = shlex.quote(str(condition.wait))
    return f'truegreen waive {task} --needs {needs} --reason "done by hand"'


def waiting_steps(dossier: Dossier) -> list[str]:
    """The commands that let a queued task go on; a question can be answered with no, too."""
    waits = open_conditions(dossier)
    steps = [leading_on(dossier.task.id, each) for each in waits]
    if any(each.kind is WaitKind.HUMAN for each in waits):
        steps.append(f'truegreen reject {dossier.task.id} --reason "not now"')
    return list(dict.fromkeys(steps))
