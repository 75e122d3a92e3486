"""`wait`: until tasks are settled, or need somebody. It starts nothing."""

from __future__ import annotations

import time

import click

from truegreen.contract import parse_duration
from truegreen.faces.axes import run_words, task_look
from truegreen.faces.clean import clean
from truegreen.faces.cli.frame import Frame, command, offered
from truegreen.faces.cli.lookout import Lookout
from truegreen.faces.cli.outcome import (
    DEFERRED,
    INFRASTRUCTURE,
    PERSON,
    draw,
    exit_status,
    worst,
)
from truegreen.faces.cli.paper import Ink, Paper
from truegreen.faces.documents import whole
from truegreen.faces.fleet import NOBODY, is_unattended
from truegreen.model import Cell, ExitDetail, TaskStatus
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.lifecycle import SETTLED
from truegreen.record.rows import Task
from truegreen.tuples import NamedTuple

_OVER = SETTLED | {TaskStatus.NEEDS_REVIEW, TaskStatus.AWAITING_APPROVAL}
"""Nothing more happens here, or not before a person has done something."""

_LONGEST_SECONDS = 1e9
_ORPHAN_SECONDS = 3.0
"""How long another supervisor has to take over a task whose own was killed."""


def _patience(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return parse_duration(value, "--timeout") / 1e6
    if not 0 <= seconds < _LONGEST_SECONDS:
        raise click.BadParameter(f"{value} is no time to wait for.")
    return seconds


@command(
    "wait",
    "truegreen wait tsk_0c3k9                  exit status as run",
    "truegreen wait tsk_0c3k9 tsk_0c3ka        the worst of them",
    "truegreen wait tsk_0c3k9 --timeout 10m    exit status 75 if it is not settled by then",
)
@click.argument(
    "tasks", nargs=-1, required=True, metavar="TASK...", shell_complete=offered("tasks")
)
@click.option(
    "--timeout", callback=_patience, metavar="TIME", help="Wait at most 90s, 10m, …; 0 only looks."
)
def wait(frame: Frame, tasks: tuple[str, ...], timeout: float | None) -> int:
    """Wait until every TASK is settled or needs a person. Exit status as `run`.

    For several it is the worst: failed before infrastructure, cap hit, a person is needed,
    canceled or terminated, not settled yet (75), succeeded. A task that waits for one that can't
    succeed any more needs a person, too.
    """
    with frame.ledger() as ledger:
        ids = list(dict.fromkeys(ledger.find("tsk", task) for task in tasks))
        watched = Watched(ledger, ids, quiet=frame.json)
        Lookout(ledger).until(watched.are_over, timeout)
        dossiers = [ledger.dossier(task) for task in ids]
        documents = [whole(ledger, dossier) for dossier in dossiers]
    document = documents[0] if len(documents) == 1 else {"tasks": documents}
    frame.give(document, lambda paper: _draw(paper, dossiers))
    return worst(watched.status(dossier) for dossier in dossiers)


class Watched:
    """Tasks that are waited for; each change of one is a line on standard error."""

    def __init__(self, ledger: Ledger, ids: list[str], *, quiet: bool) -> None:
        self._ledger = ledger
        self._open = dict.fromkeys(ids, _Seen(-1, 0.0))
        self._quiet = quiet
        self._waited = False
        self._over: set[str] = set()
        self._orphans: set[str] = set()
        self._hopeless: set[str] = set()

    def are_over(self) -> bool:
        """Whether there is nothing left to wait for."""
        for task_id, seen in list(self._open.items()):
            dossier = self._ledger.dossier(task_id)
            if dossier.task.revision != seen.revision:
                self._open[task_id] = _Seen(dossier.task.revision, time.monotonic())
                self._tell(dossier)
            elif _is_orphan(dossier.task) and time.monotonic() - seen.since > _ORPHAN_SECONDS:
                self._orphans.add(task_id)
            if self._is_over(dossier.task):
                self._over.add(task_id)
            elif self._is_hopeless(dossier, set()):
                self._hopeless.add(task_id)
            if task_id in self._over | self._orphans | self._hopeless:
                del self._open[task_id]
        self._waited = True
        return not self._open

    def status(self, dossier: Dossier) -> int:
        """The exit status for one of them, which may have been waited for in vain."""
        if dossier.task.id in self._orphans:
            return INFRASTRUCTURE
        if dossier.task.id in self._hopeless:
            return PERSON
        over = dossier.task.id in self._over or dossier.task.status in _OVER
        return exit_status(dossier) if over else DEFERRED

    def _is_over(self, task: Task) -> bool:
        """Whether it is settled or waits for people, also for a review that nobody carries on."""
        if task.status is not TaskStatus.PENDING_QA:
            return task.status in _OVER
        return all(review.status in _OVER for review in self._ledger.reviews_of(task.id))

    def _is_hopeless(self, dossier: Dossier, seen: set[str]) -> bool:
        """Whether it waits, by however many others, for a person or who can't succeed any more."""
        seen.add(dossier.task.id)
        if dossier.task.status is TaskStatus.QUEUED and dossier.question:
            return True
        known = [need.task for need in dossier.needs if need.status is TaskStatus.QUEUED]
        return any(need.is_lost for need in dossier.needs) or any(
            self._is_hopeless(self._ledger.dossier(task), seen)
            for task in known
            if task not in seen
        )

    def _tell(self, dossier: Dossier) -> None:
        # What was over before anybody waited is said by the answer alone.
        if self._quiet or (not self._waited and self._is_over(dossier.task)):
            return
        look = task_look(dossier.task.status)
        run = dossier.runs[-1] if dossier.runs else None
        words = f"{dossier.task.id}  {look.glyph} {look.word}  {run_words(run)}"
        click.echo(clean(words), err=True)
        if is_unattended(self._ledger, dossier.task.id):
            click.echo(f"  {NOBODY}; here: truegreen attempt {dossier.task.id}", err=True)


class _Seen(NamedTuple):
    """How a task was seen last, and since when."""

    revision: int
    since: float


def _is_orphan(task: Task) -> bool:
    """Queued again because its supervisor ended; where none is left, no process carries it out."""
    ended = task.exit_detail in (ExitDetail.SUPERVISOR_CRASHED, ExitDetail.SUPERVISOR_RESTARTED)
    return ended and task.cell is Cell.OUTAGE and task.status is TaskStatus.QUEUED


def _draw(paper: Paper, dossiers: list[Dossier]) -> None:
    for number, dossier in enumerate(dossiers):
        if len(dossiers) > 1:
            if number:
                paper.say()
            paper.say(Ink(f"{dossier.task.id}  {dossier.task.title}", "bold"))
        draw(paper, dossier)


COMMANDS = {"wait": wait}
