"""The two lines of a task, one per axis: how the harness ended, and what is known about the work.

They are the first thing that anybody sees of a task. Neither is ever made from the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from truegreen.faces.times import span
from truegreen.faces.waits import condition_words, open_conditions
from truegreen.facts import EXIT, LAST_WORDS, NOT_STARTED, OUTPUT
from truegreen.model import (
    CELLS,
    PALETTE,
    RUNS,
    Cell,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Light,
    Outcome,
    RunStatus,
    TaskStatus,
)
from truegreen.outlets.answers import badges
from truegreen.record.ledger.reads import CalledOff, Dossier, Need
from truegreen.record.rows import ClaimRow, Run, Task
from truegreen.tuples import NamedTuple

UNCHECKED = "accepted by a person, no check has said so"
WORDLESS = 'nothing. Exit code 0 counts as "done"'
"""What to say of a claim that is only an exit code."""
NO_SANDBOX = "no sandbox (install bubblewrap)"
"""What the badge `degraded` means, said once in the header of a task."""
_ASIDES = {
    "regression_only": "green means that nothing broke",
    "noop": "there was nothing to do",
}
"""Badges that a success must not be read without, and what they mean."""
OVERTURNED = "falsified: called green then, overturned since"
Rgb = tuple[int, int, int]
_SHOWN_NEEDS = 3
_SAID = 300
"""Characters of an agent's words that stand beside a verdict."""

LIGHTS: dict[Light, tuple[str, Rgb]] = {
    Light.GREY: ("○", (150, 150, 160)),
    Light.BLUE: ("◐", (60, 160, 220)),
    Light.GREEN: ("●", (40, 190, 90)),
    Light.AMBER: ("◆", (240, 140, 40)),
    Light.RED: ("✗", (220, 50, 50)),
}
"""Glyph and colour of a light; a word stands beside them always."""


class Look(NamedTuple):
    """Glyph, word and colour: always together."""

    glyph: str
    word: str
    rgb: Rgb


class Axis(NamedTuple):
    """One line: which axis, what it says, and why."""

    name: str
    look: Look
    why: str


def run_look(status: RunStatus | None) -> Look:
    """A run status as people see it; a task that never ran has none."""
    if status is None:
        return Look("·", "none", LIGHTS[Light.GREY][1])
    glyph, rgb = LIGHTS[RUNS[status].light]
    return Look(glyph, status, rgb)


def task_look(status: TaskStatus) -> Look:
    """A task status as people see it."""
    look = PALETTE[status]
    return Look(look.glyph, status, look.rgb)


def cell_look(cell: Cell) -> Look:
    """A cell of the matrix as people see it."""
    glyph, rgb = LIGHTS[CELLS[cell].light]
    return Look(glyph, CELLS[cell].title, rgb)


def axes(dossier: Dossier) -> tuple[Axis, Axis]:
    """Both lines of a task."""
    task = dossier.task
    run = dossier.runs[-1] if dossier.runs else None
    return (
        Axis("run", run_look(run.status if run else None), run_words(run)),
        Axis("task", task_look(task.status), task_words(dossier, run) + _branch(run)),
    )


def _branch(run: Run | None) -> str:
    """Where the work of a run lies that was done in a checkout of its own."""
    facts: dict[str, Any] = msgspec.json.decode(run.facts) if run and run.facts else {}
    if name := facts.get("branch"):
        return f" · branch {name}"
    problem = facts.get("branch_error")
    return f" · no branch: {problem}" if problem else ""


def run_words(run: Run | None) -> str:
    """Why the harness stands where it stands."""
    if run is None:
        return "no run yet"
    if run.is_legacy:
        return "unknown (legacy): the record has no reason"
    if run.exit_reason is None:
        return f"attempt {run.attempt} · {RUNS[run.status].meaning}"
    ending = f"signal {run.signal}" if run.signal is not None else ""
    ending = f"exit {run.exit_code}" if run.exit_code is not None else ending
    parts = [run.exit_reason, run.exit_detail or "", ending, *_usage(run.usage), _message(run)]
    return " · ".join(part for part in parts if part)


def _message(run: Run) -> str:
    """What the host has to say about an end that was not a clean one."""
    facts: dict[str, Any] = msgspec.json.decode(run.facts) if run.facts else {}
    told = str(facts.get("message", ""))
    if run.exit_reason is ExitReason.DONE:
        return ""
    if words := facts.get(LAST_WORDS):
        return str(words).rsplit("\n", 1)[-1]
    known = (f"exit {run.exit_code}", run.exit_detail, run.verdict_reason)
    return "" if told in known else told


def _usage(text: str) -> list[str]:
    used: dict[str, Any] = msgspec.json.decode(text) if text else {}
    parts = []
    if used.get("seconds"):
        parts.append(span(used["seconds"]))
    if used.get("turns"):
        parts.append(f"{used['turns']} turn{'s' if used['turns'] != 1 else ''}")
    if used.get("cost_usd"):
        parts.append(f"${used['cost_usd']:.2f}")
    return parts


def task_words(dossier: Dossier, run: Run | None) -> str:
    """Why the work stands where it stands."""
    task = dossier.task
    if dossier.needs:
        return waiting_words(dossier.needs)
    if waits := open_conditions(dossier):
        return condition_words(waits)
    reason = _before(task, run) + asked_words(task, run.verdict_reason) if run else ""
    level = strength(dossier, run)
    words = " · ".join(part for part in (level, reason) if part)
    words = words or PALETTE[task.status].meaning
    if is_overturned(task):
        return f"{OVERTURNED} ({words})"
    aside = _aside(task, run, _claim_of(dossier, run))
    return f"{words} ({aside})" if aside else words


def asked_words(task: Task, reason: str) -> str:
    """A verdict's sentence; where it is only what somebody asked leave for, it says so."""
    asked = task.status is TaskStatus.BLOCKED and task.exit_detail is ExitDetail.APPROVAL_CHECKPOINT
    return f"asked for approval: {reason}" if asked and reason else reason


def _before(task: Task, run: Run) -> str:
    """What leads to the sentence of a run that had ended when the task was called off."""
    later = task.status is TaskStatus.CANCELED and task.exit_detail is not run.exit_detail
    return "called off; before that: " if later and run.verdict_reason else ""


def called_off_words(task: Task, called: CalledOff, before: str) -> str:
    """Who ended a task from outside and why, and what had become of it before that."""
    verb = "terminated" if task.status is TaskStatus.TERMINATED else "called off"
    words = f"{verb} by {called.actor}" + (f": {called.reason}" if called.reason else "")
    # A run that was ended by the same word has nothing to add to it.
    ended = task.run_status in (RunStatus.STOPPED, RunStatus.TERMINATED)
    return f"{words}; before that: {before}" if before and not ended else words


def is_overturned(task: Task) -> bool:
    """Whether the latest verdict was a green that turned out wrong: no run came after it yet."""
    return task.falsified and task.cell is None and task.status is TaskStatus.QUEUED


def waiting_words(needs: Sequence[Need]) -> str:
    """What a queued task waits for; what can't succeed any more first."""
    shown = sorted(needs, key=lambda need: not need.is_lost)[:_SHOWN_NEEDS]
    words = ", ".join(f"{need.task} ({need.status or 'not known'})" for need in shown)
    more = f" and {len(needs) - len(shown)} more" if len(needs) > len(shown) else ""
    return f"waits for {words}{more}"


def strength(dossier: Dossier, run: Run | None) -> str:
    """The level of a run's verdict, with `+E` where an independent evaluator agreed."""
    if run is None or run.level is None or was_not_started(run):
        return ""
    agreed = any(
        f.kind == "evaluator" and f.binding and f.outcome is FindingOutcome.PASSED
        for f in dossier.findings
        if f.run_key == run.key
    )
    return f"{run.level}+E" if agreed and run.verdict is Outcome.PASSED else run.level


def is_about_sandbox(doubt: str) -> bool:
    """Whether a doubt about a finding only says that there was no sandbox."""
    return doubt.startswith(("no jail", "no sandbox"))


def _claim_of(dossier: Dossier, run: Run | None) -> ClaimRow | None:
    claims = [claim for claim in dossier.claims if run and claim.run_key == run.key]
    return claims[-1] if claims else None


def _aside(task: Task, run: Run | None, claim: ClaimRow | None) -> str:
    """What a success must not be read without; the cell where it says more than the status."""
    notes = []
    if task.status is TaskStatus.SUCCEEDED:
        notes += [UNCHECKED] if task.is_unverified else []
        notes += [f"{name}: {_ASIDES[name]}" for name in badges(task) if name in _ASIDES]
    parts = []
    title = CELLS[task.cell].title if task.cell and not was_not_started(run) else ""
    if title and title != task.status and task.cell is not Cell.TRUE_GREEN:
        parts.append(title)
    if task.cell is Cell.REPORTED_FAILURE:
        admitted = (run.admission if run else "") or (spoken(claim) if claim else "")
        parts.append(f'the agent said "{admitted}"')
    if task.cell is Cell.SILENT_FAILURE and claim:
        said = "it exited 0" if claim.source == EXIT else f"the agent said «{spoken(claim)}»"
        parts.append(said)
    return "; ".join(filter(None, (*notes, ": ".join(parts))))


def was_not_started(run: Run | None) -> bool:
    """Whether the preflight ended a run before its agent was started."""
    facts: dict[str, Any] = msgspec.json.decode(run.facts) if run and run.facts else {}
    return bool(facts.get(NOT_STARTED))


def spoken(claim: ClaimRow) -> str:
    """The words of a claim in one line: the last that a command printed, else all of them, cut."""
    lines = claim.reason.strip().splitlines() or [claim.kind]
    words = lines[-1] if claim.source == OUTPUT else " ".join(" ".join(lines).split())
    return words if len(words) <= _SAID else f"{words[: _SAID - 1]}…"
