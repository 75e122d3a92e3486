"""`scheduler`: carries out what is queued and wakes who is due, in plain lines, until stopped.

It shows what the scheduler tells; what starts and what does not is decided below.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter

import click

from truegreen.app import place_of
from truegreen.contract import Contract
from truegreen.faces.axes import axes
from truegreen.faces.clean import clean
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.outcome import INTERRUPTED, OK
from truegreen.faces.cli.output import mute_errors
from truegreen.faces.cli.signals import interruptible
from truegreen.faces.documents import Document, brief_document
from truegreen.faces.times import local
from truegreen.record.ledger import Ledger
from truegreen.record.rows import Task
from truegreen.scheduler import Audience, Carried, Scheduler
from truegreen.supervisor import Watch

MOST_SEATS = 256
_SHOWN = 1000


@command(
    "scheduler",
    "truegreen scheduler                     two at a time, until Ctrl-C",
    "truegreen scheduler --seats 8",
    "truegreen scheduler --once --json       what is ready now, to its end",
)
@click.option(
    "--seats",
    type=click.IntRange(1, MOST_SEATS),
    default=2,
    show_default=True,
    metavar="N",
    help="How many tasks at the same time.",
)
@click.option("--once", is_flag=True, help="Look once, carry out what is ready, and end.")
def scheduler(frame: Frame, seats: int, *, once: bool) -> int:
    """Carry out queued tasks, and wake agents whose time has come.

    Several may work on one store: each task is started once. The first signal ends runs gracefully
    and puts their tasks back into the queue, the second ends them at once.
    """
    config = frame.load()
    with frame.acting() as (ledger, _me):
        told = Told(ledger, quiet=frame.json)
        made = Scheduler(ledger, place_of(config), told, seats=seats)
        with interruptible(made.stop):
            if once:
                made.once()
            else:
                told.said(f"looks for work, {seats} at a time; Ctrl-C ends it")
                made.run()
        made.close()
        document = told.summary()
        if once:
            document |= told.left()
    frame.give(document, lambda paper: paper.say(_words(document)))
    return INTERRUPTED if once and made.stopping else OK


def _words(document: Document) -> str:
    counts = ", ".join(f"{number} {status}" for status, number in document["counts"].items())
    return f"carried out {sum(document['counts'].values())}" + (f": {counts}" if counts else "")


class Told(Audience):
    """Says in plain lines what starts and how it ended, on both axes."""

    def __init__(self, ledger: Ledger, *, quiet: bool) -> None:
        self._ledger, self._quiet = ledger, quiet
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._tasks: list[Document] = []
        self._refused: list[Document] = []

    def said(self, words: str) -> None:
        """One line."""
        if self._quiet:
            return
        line = f"{time.strftime('%H:%M:%S')}  {clean(words)}\n"
        with self._lock:
            try:
                sys.stderr.write(line)
                sys.stderr.flush()
            except OSError:  # nobody reads it any more: the work goes on
                self._quiet = True
                mute_errors()

    def watch(self, task: str) -> Watch:
        """Who says what happens to one task."""
        return _Lines(self, task)

    def ended(self, carried: Carried) -> None:
        """How a task stands after it was carried on."""
        if carried.error:
            self._keep(self._refused, {"task": carried.task, "reason": carried.error})
            self.said(f"{carried.task}  not carried on: {carried.error}")
            return
        dossier = self._ledger.dossier(carried.task)
        self._counts[dossier.task.status] += 1
        self._keep(self._tasks, brief_document(dossier.task))
        for axis in axes(dossier):
            look = f"{axis.look.glyph} {axis.look.word}"
            self.said(f"{carried.task}  {axis.name:<5} {look}  {axis.why}")

    @staticmethod
    def _keep(kept: list[Document], document: Document) -> None:
        if len(kept) < _SHOWN:
            kept.append(document)

    def left(self) -> Document:
        """What could not start at this look, and why."""
        held = self._ledger.held_back()
        if held.later:
            self.said(f"{held.later} held back, the first until {local(held.first_at)}")
        if held.needing:
            self.said(f"{held.needing} wait for tasks that have not succeeded")
        counts = {"not_before": held.later, "depends_on": held.needing}
        return {"held_back": counts, "frozen": self._ledger.frozen() is not None}

    def summary(self) -> Document:
        """What was carried out, and what was not."""
        return {"counts": dict(self._counts), "tasks": self._tasks, "refused": self._refused}


class _Lines(Watch):
    """One task among others: its lines begin with its name."""

    def __init__(self, told: Told, task: str) -> None:
        self._told, self._task = told, task

    def attempt(self, task: Task, contract: Contract) -> None:
        """Another attempt begins."""
        number = f"attempt {task.attempts + 1} of {task.attempts_max}"
        self._told.said(f"{task.id}  starts {number}  {contract.title}")

    def warn(self, words: str) -> None:
        """Something may not be as it was meant."""
        self._told.said(f"{self._task}  ! {words}")


COMMANDS = {"scheduler": scheduler}
