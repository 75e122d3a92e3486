"""How a task stands at the end of a command: two lines, one per axis, and an exit status."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from truegreen.assurance import level_sentence
from truegreen.faces.axes import LIGHTS, Axis, axes
from truegreen.faces.clean import width
from truegreen.faces.cli.at_hand import Frame
from truegreen.faces.cli.paper import Ink, Paper, mark, tint
from truegreen.faces.documents import claim_of, next_steps, whole
from truegreen.faces.times import local, span
from truegreen.facts import NOT_STARTED
from truegreen.model import Cell, ExitDetail, FindingOutcome, Level, TaskStatus
from truegreen.outlets.answers import Answer
from truegreen.record.holds import Hold
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.ledger.workers import WorkerState
from truegreen.record.rows import Task
from truegreen.tuples import NamedTuple

OK, FAILED, REFUSED, PERSON, CAP, INFRASTRUCTURE, ENDED = 0, 1, 2, 3, 4, 5, 6
DEFERRED, INTERRUPTED = 75, 130
_SEVERITY = (OK, DEFERRED, ENDED, PERSON, CAP, INFRASTRUCTURE, REFUSED, FAILED, INTERRUPTED)
"""From the best to the worst: work that is known to be undone outweighs whatever is unknown."""
_WORD_ROOM = 12
_SHOWN_STATEMENTS = 3
_STATUSES = {
    TaskStatus.SUCCEEDED: OK,
    TaskStatus.FAILED: FAILED,
    TaskStatus.QUEUED: DEFERRED,
    TaskStatus.CANCELED: ENDED,
    TaskStatus.TERMINATED: ENDED,
}
_CELLS = {Cell.CAP_HIT: CAP, Cell.OUTAGE: INFRASTRUCTURE}


def tell(frame: Frame, ledger: Ledger, task_id: str, *, interrupted: bool = False) -> int:
    """Say how a task stands; the exit status says the same."""
    dossier = ledger.dossier(task_id)
    hold = ledger.holds([dossier.task]).get(dossier.task.key)
    again = postponed(ledger, dossier.task)
    run = dossier.runs[-1] if dossier.runs else None
    steps = [*(again.steps if again else next_steps(dossier.task, hold, run=run))]
    document = {**whole(ledger, dossier), "next": steps}
    frame.give(document, lambda paper: draw(paper, dossier, hold, again))
    return INTERRUPTED if interrupted else exit_status(dossier)


class Postponed(NamedTuple):
    """When a queued task is tried again, and the commands that make it happen."""

    words: str
    steps: tuple[str, ...]


def postponed(ledger: Ledger, task: Task) -> Postponed | None:
    """When a task is tried again that must not start yet; nothing for any other."""
    seconds = (task.not_before - ledger.now()) / 1e6 if task.not_before else 0.0
    if task.status is not TaskStatus.QUEUED or seconds <= 0:
        return None
    when = f"the next attempt starts after {local(task.not_before)} (in {span(seconds)})"
    steps = [f"show {task.id}", f"wait {task.id}", f"attempt {task.id} --wait", f"cancel {task.id}"]
    if any(each.state is WorkerState.READY for each in ledger.workers()):
        words = f"{when}, by a running scheduler or worker"
    else:
        words = f"{when}, if `truegreen up`, `scheduler` or `worker` runs then; none runs now"
        steps[1] = "up"
    return Postponed(words, tuple(f"truegreen {step}" for step in steps))


def exit_status(dossier: Dossier) -> int:
    """0 for proven work and nothing else."""
    task = dossier.task
    if task.status is TaskStatus.FAILED and _was_refused(dossier):
        return REFUSED
    if task.status in (TaskStatus.FAILED, TaskStatus.NEEDS_REVIEW) and task.cell in _CELLS:
        return _CELLS[task.cell]
    if task.status is TaskStatus.NEEDS_REVIEW and _check_unavailable(dossier):
        return INFRASTRUCTURE
    return _STATUSES.get(task.status, PERSON)


def _was_refused(dossier: Dossier) -> bool:
    """Whether the agent was not started because of how the task was ordered."""
    run = dossier.runs[-1] if dossier.runs else None
    if run is None or run.exit_detail is not ExitDetail.CONFIG_INVALID or not run.facts:
        return False
    return bool(msgspec.json.decode(run.facts).get(NOT_STARTED))


def worst(statuses: Iterable[int]) -> int:
    """The exit status of several tasks: by severity, not by number."""
    return max(statuses, key=_SEVERITY.index)


def _check_unavailable(dossier: Dossier) -> bool:
    """Whether nothing but a check that could not be carried out stands in the way."""
    latest = dossier.runs[-1].key if dossier.runs else None
    found = {f.check_name: f for f in dossier.findings if f.run_key == latest and f.binding}
    broken = [f for f in found.values() if f.outcome is FindingOutcome.INCONCLUSIVE]
    return bool(broken) and all(finding.reason.startswith("gate error") for finding in broken)


def draw(
    paper: Paper, dossier: Dossier, hold: Hold | None = None, again: Postponed | None = None
) -> None:
    """The two lines, what there is to add to them, and last what leads on."""
    both = axes(dossier)
    room = word_room(both)
    for axis in both:
        blank = " " * (room - width(f"{axis.look.glyph}{axis.look.word}"))
        paper.say(Ink(f"{axis.name:<5} ", "bold"), mark(axis.look), f"{blank} {axis.why}")
    run = dossier.runs[-1] if dossier.runs else None
    if dossier.task.status is TaskStatus.SUCCEEDED and run and run.level:
        paper.note(" " * 6, Ink(level_sentence(run.level), "dim"))
    for words in _contradicted(dossier):
        paper.note(Ink("      claim ", "dim"), words)
    if again:
        paper.note(" " * 6, again.words)
    if dossier.task.status is not TaskStatus.SUCCEEDED:
        for step in again.steps if again else next_steps(dossier.task, hold, run=run):
            paper.note(Ink("next: ", "dim"), step)


def _contradicted(dossier: Dossier) -> list[str]:
    """What the agent said that was not so."""
    claim = claim_of(dossier, dossier.runs[-1] if dossier.runs else None)
    return [
        f"«{said['text']}» is contradicted: {said['observed']}"
        for said in (claim or {}).get("statements", [])
        if said.get("outcome") == "contradicted"
    ][:_SHOWN_STATEMENTS]


def word_room(both: Iterable[Axis]) -> int:
    """How wide the words of both lines are, so that what follows them stands in one column."""
    return max(_WORD_ROOM, *(width(f"{axis.look.glyph}{axis.look.word}") for axis in both))


def draw_level(paper: Paper, level: Level, *, indent: int) -> None:
    """What a level leaves open."""
    paper.hanging([" " * indent], Ink(level_sentence(level), "dim"))


def draw_answers(paper: Paper, answers: Iterable[Answer], *, indent: int) -> None:
    """The three answers of a verdict, one on each line."""
    for answer in answers:
        glyph, rgb = LIGHTS[answer.light]
        word = Ink(f"{glyph} {answer.word:<{_WORD_ROOM}}", tint(rgb))
        paper.hanging([" " * indent, Ink(f"{answer.question:<8}", "dim"), word, " "], answer.why)
