"""What people decide: approve, reject, review. It is shown first, and bound to what was seen.

It decides nothing itself and knows no way round the ledger: badges, flags and refusals come from
the record, and are said here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from truegreen.contract import read_contract
from truegreen.errors import InvalidInput, NotRunning, Refused, Stale
from truegreen.faces.axes import task_look
from truegreen.faces.cli.dossier import draw_findings
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.paper import Ink, Paper, mark
from truegreen.faces.cli.recovery import because, task_argument, task_in, tell_now, why
from truegreen.faces.documents import whole
from truegreen.faces.times import local
from truegreen.model import FindingOutcome, Move, Phase, TaskStatus
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.ledger.answers import Question
from truegreen.record.lifecycle import TARGETS
from truegreen.record.rows import FindingRow, Task

SHORTEST_DIGEST = 7
"""Fewer characters of a digest would fit too many trees."""
_SHOWN_DIGEST = 12
_TREE = "tree:"
_YES = (Move.RESUME, Move.ACCEPT)

_seen = click.option(
    "--digest", metavar="D", help="Only if it is about this tree; its beginning will do."
)
_asking = task_in(TaskStatus.AWAITING_APPROVAL)
_asked = click.option(
    "--question", metavar="ID", help="Only if this is still what is asked; `show --json` names it."
)


@command(
    "approve",
    "truegreen approve tsk_0c3k9",
    "truegreen approve tsk_0c3k9 --reason 'looked at it' --digest 1f0c9a2e",
    "truegreen approve tsk_0c3k9 --question evt_06b2mjx0s5",
)
@_asking
@why
@_asked
@_seen
def approve(frame: Frame, task: str, reason: str, question: str | None, digest: str | None) -> int:
    """Let a TASK go on that waits for an approval, or start that waits for a person's word.

    It holds for what was asked, with the tree that was asked about: if another question is open by
    then, or the work has changed since, it is refused or asked again. At a terminal the question is
    shown first, unless it is named.
    """
    with frame.acting() as (ledger, me):
        task_id = ledger.find("tsk", task)
        before = ledger.dossier(task_id)
        asked = before.question if before.question and _waits(before) else None
        seen = _bound(digest, asked.digest) if asked else digest
        if asked and question is None and not frame.json and not _agreed(frame, task_id, asked):
            raise Refused("nothing was approved")
        named = question if question is not None or asked is None else asked.id
        with _answering(task_id):
            ledger.approve(task_id, actor=me, reason=reason, question=named, digest=seen)
        what = f"approved: {asked.action}{_on(asked.digest)}" if asked else "approved"
        words = "; ".join([what, *_flags(_yes(ledger, before.task))])
        return tell_now(frame, ledger, task_id, lambda _: words)


def _waits(dossier: Dossier) -> bool:
    return dossier.task.status in (TaskStatus.AWAITING_APPROVAL, TaskStatus.QUEUED)


@contextmanager
def _answering(task_id: str) -> Iterator[None]:
    """Whoever answers what was never asked hears so, and not how the record calls an answer."""
    try:
        yield
    except NotRunning as error:
        status = error.details.get("status")
        message = f"{task_id}: nothing waits for an answer (status: {status})"
        raise NotRunning(message, allowed=error.allowed, **error.details) from None


def _agreed(frame: Frame, task_id: str, asked: Question) -> bool:
    """Whether somebody at a terminal says yes to the question that they are shown."""
    paper = frame.paper()
    if not (paper.is_terminal and sys.stdin.isatty()):
        return True
    paper.say(Ink(f"approve {task_id}  ", "bold"), f"{asked.action}{_on(asked.digest)}")
    paper.say(Ink(f"      asked {local(asked.at)}, question {asked.id}", "dim"))
    return click.confirm("Approve this?", err=True)


@command(
    "reject",
    "truegreen reject tsk_0c3k9 --reason 'not on production'",
    "truegreen reject tsk_0c3k9 --reason 'not on production' --question evt_06b2mjx0s5",
)
@_asking
@because
@_asked
def reject(frame: Frame, task: str, reason: str, question: str | None) -> int:
    """Say no to a TASK that waits for an approval: its run ends, and it is blocked.

    One that has not begun is canceled.
    """
    with frame.acting() as (ledger, me):
        task_id = ledger.find("tsk", task)
        with _answering(task_id):
            ledger.deny(task_id, actor=me, reason=reason, question=question)
        return tell_now(frame, ledger, task_id, lambda _: f"rejected: {reason}")


@command(
    "review",
    "truegreen review tsk_0c3k9 --accept --reason 'read the diff, the gate is flaky'",
    "truegreen review tsk_0c3k9 --reject --reason 'breaks the import' --digest 1f0c9a2e",
)
@task_argument
@click.option("--accept", is_flag=True, help="It is done: the task succeeds.")
@click.option("--reject", "refuse", is_flag=True, help="It is not: a failure like any other.")
@because
@_asked
@_seen
def review(
    frame: Frame,
    task: str,
    reason: str,
    question: str | None,
    digest: str | None,
    *,
    accept: bool,
    refuse: bool,
) -> int:
    """Decide about a TASK what checks could not. What speaks against it is shown first.

    Accepting against a red check, or without waiting for QA, leaves the badge «overridden» for
    ever. Rejecting a succeeded task overturns it: it is queued again, and wears the badge
    «falsified» for ever.
    """
    if accept == refuse:
        raise click.UsageError("Say one of --accept and --reject.")
    with frame.acting() as (ledger, me):
        task_id = ledger.find("tsk", task)
        before = ledger.dossier(task_id)
        seen = _bound(digest, before.runs[-1].digest) if before.runs else digest
        if not frame.json and _can_be_reviewed(before.task, accept=accept):
            _show(frame.paper(), ledger, before, "accept" if accept else "reject")
        shown = before.question.id if before.question else None
        named = question if question is not None else shown
        ledger.review(task_id, accept=accept, actor=me, reason=reason, question=named, digest=seen)
        words = _accepted(ledger, before) if accept else _rejected(before, reason)
        return tell_now(frame, ledger, task_id, words)


def _bound(given: str | None, seen: str) -> str:
    """The digest that stands in the record, if it is the one that was given."""
    if given is None:
        return seen
    short = given.removeprefix(_TREE)
    if len(short) < SHORTEST_DIGEST:
        raise InvalidInput(f"--digest: give at least {SHORTEST_DIGEST} characters of it")
    if not seen.removeprefix(_TREE).startswith(short):
        message = f"the work moved on: you looked at {given}, it is {seen or 'no tree'}"
        raise Stale(message, stale="digest", current=seen)
    return seen


def _on(digest: str) -> str:
    return f" · tree {digest.removeprefix(_TREE)[:_SHOWN_DIGEST]}" if digest else ""


# --- before the decision


def _can_be_reviewed(task: Task, *, accept: bool) -> bool:
    """Whether there is anything to show: elsewhere the record refuses."""
    overturns = not accept and task.status is TaskStatus.SUCCEEDED
    return task.sealed_at is None and ((task.status, Move.ACCEPT) in TARGETS or overturns)


def _show(paper: Paper, ledger: Ledger, dossier: Dossier, verb: str) -> None:
    """What is about to be decided: to somebody at a terminal with all that was found."""
    if paper.is_terminal:
        draw_findings(paper, whole(ledger, dossier))
        paper.say()
    task, run = dossier.task, dossier.runs[-1]
    against = "; ".join(_against(dossier)) or "nothing speaks against it"
    words = f" · {run.level or 'no level'}{_on(run.digest)} · {against}"
    paper.say(Ink(f"{verb} {task.id}  ", "bold"), mark(task_look(task.status)), words)


def _against(dossier: Dossier) -> list[str]:
    """What speaks against calling the work done."""
    latest = dossier.runs[-1].key
    found = [f for f in dossier.findings if f.run_key == latest and _counts(f)]
    passed = [f for f in found if f.outcome is FindingOutcome.PASSED]
    reasons = [
        f"{f.check_name} {f.outcome}: {f.reason}" if f.reason else f"{f.check_name} {f.outcome}"
        for f in found
        if f.outcome is not FindingOutcome.PASSED
    ]
    if not passed:
        reasons.append("no check has passed")
    contract = read_contract(dossier.contract)
    chained = contract.role in contract.qa.roles and dossier.task.qa_of_key is None
    if chained and not any(f.kind == "qa" for f in found):
        reasons.append("QA has not answered")
    return reasons


def _counts(finding: FindingRow) -> bool:
    return finding.binding and finding.phase is not Phase.BASELINE


# --- after it


def _yes(ledger: Ledger, before: Task) -> dict[str, Any]:
    """What the record says about the yes that was just given."""
    said = [t.event for t in ledger.events(before.id, after=before.revision)]
    yes = next((event for event in said if event.event in _YES), None)
    data: dict[str, Any] = msgspec.json.decode(yes.data) if yes else {}
    return data


def _flags(data: dict[str, Any]) -> list[str]:
    flags = []
    if "mass" in data:
        flags.append(f"flagged: {data['mass']} approvals within a minute")
    if "hasty" in data:
        flags.append(f"flagged: answered {data['hasty']:.1f} s after it was asked")
    return flags


def _accepted(ledger: Ledger, before: Dossier) -> Callable[[Task], str]:
    data = _yes(ledger, before.task)
    gates = {gate.name for gate in read_contract(before.contract).gates}
    red = data.get("red", [])
    kind = "gate" if gates & set(red) else "check"
    overridden = [f"a {kind} was red ({', '.join(red)})"] if red else []
    overridden += ["QA was skipped"] if data.get("skipped_qa") else []
    badge = [f"overridden: {', '.join(overridden)}"] if overridden else []
    return lambda _: "; ".join(["accepted", *badge, *_flags(data)])


def _rejected(before: Dossier, reason: str) -> Callable[[Task], str]:
    overturned = before.task.status is TaskStatus.SUCCEEDED
    badge = "overturned, falsified for ever; " if overturned else ""
    return lambda _: f"{badge}rejected: {reason}"


COMMANDS = {"approve": approve, "reject": reject, "review": review}
