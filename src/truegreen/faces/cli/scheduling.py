"""`scheduler`: carries out what is queued and wakes who is due, in plain lines, until stopped.

It shows what the scheduler tells; what starts and what does not is decided below.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from msgspec.structs import replace

from truegreen.app import place_of, store_file, workplace_of
from truegreen.config import Config
from truegreen.contract import Contract, parse_duration
from truegreen.contract.engines import EngineKind
from truegreen.contract.reading import checked_names
from truegreen.engines import engine_of
from truegreen.errors import InvalidInput, Refused
from truegreen.faces.axes import axes
from truegreen.faces.clean import clean
from truegreen.faces.cli.frame import Frame, Word, command
from truegreen.faces.cli.outcome import INTERRUPTED, OK
from truegreen.faces.cli.output import mute_errors
from truegreen.faces.cli.queue import held_document
from truegreen.faces.cli.signals import interruptible
from truegreen.faces.documents import Document, brief_document
from truegreen.faces.recurring import Followed
from truegreen.outlets.posting import Look, Posting
from truegreen.outlets.trust import NEXT, settle
from truegreen.outlets.vigil import Watchman, kept_watch
from truegreen.record.ledger import Ledger
from truegreen.record.rows import Task
from truegreen.scheduler import Audience, Carried, Placing, Scheduler
from truegreen.supervisor.watch import Watch
from truegreen.tuples import NamedTuple

MOST_SEATS = 256
executor = click.option(
    "--executor",
    "kind",
    type=Word(EngineKind),
    metavar="local|slurm|ray|kubernetes",
    help="Who places the work; default: [engine] kind, else the seats of this machine.",
)
_SHOWN, _MOST_HERE = 1000, 10_000
_LONGEST_SEND_SECONDS = 60.0


at_a_time = click.option(
    "--seats",
    type=click.IntRange(1, MOST_SEATS),
    default=2,
    show_default=True,
    metavar="N",
    help="How many tasks at the same time.",
)
at_most = click.option(
    "--most-here",
    type=click.IntRange(1, _MOST_HERE),
    metavar="N",
    help="How many tasks all processes of this machine carry out at the same time.",
)
offering = click.option(
    "--labels",
    default="",
    metavar="LIST",
    help="What it offers: tasks that want other labels are left to others.",
)


def duration(_ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """The value of an option such as `30s`, in seconds."""
    if value is None or value in ("0", "0s"):
        return None if value is None else 0.0
    return parse_duration(value, param.opts[0]) / 1e6


@command(
    "scheduler",
    "truegreen scheduler                     two at a time, until Ctrl-C",
    "truegreen scheduler --seats 8",
    "truegreen scheduler --executor slurm    hand the work to a cluster",
    "truegreen scheduler --once --json       what is ready now, to its end",
)
@at_a_time
@at_most
@executor
@offering
@click.option("--once", is_flag=True, help="Look once, carry out what is ready, and end.")
def scheduler(
    frame: Frame,
    seats: int,
    labels: str,
    most_here: int | None,
    kind: EngineKind | None,
    *,
    once: bool,
) -> int:
    """Carry out queued tasks and routines, wake agents whose time has come, and send news.

    Several may work on one store: each task is started once. The first signal ends runs gracefully
    and puts their tasks back into the queue, which costs them no attempt; the second ends them at
    once.
    """
    config = frame.load()
    with frame.acting(makes=True) as (ledger, _me):
        told = Told(ledger, quiet=frame.json)
        config = settled(ledger, config, told.said)
        follow = Followed(ledger, config, frame.load, told.said)
        offer = Offer(seats, listed(labels), most_here)
        made = scheduler_of(ledger, config, told, offer, kind=kind, follow=follow)
        looks: dict[str, Look] = {}
        with interruptible(made.stop), posted(ledger, config, told, frame.load) as posting:
            if once:
                made.once()
                looks |= {} if made.stopping else _sent_now(posting, told)
            else:
                told.said(f"looks for work, {made.at_once} at a time; Ctrl-C ends it")
                well = well_of(made, posting)
                with kept_watch(ledger, config, "scheduler", well, told.said):
                    made.run()
        made.close()
        document = told.summary()
        if once:
            document |= told.left(made.offers) | {"outlets": _outlet_documents(looks)}
    frame.give(document, lambda paper: paper.say(carried_out(document)))
    return INTERRUPTED if once and made.stopping else OK


@contextmanager
def posted(
    ledger: Ledger, config: Config, told: Told, load: Callable[[], Config], link: str = ""
) -> Iterator[Posting]:
    """What outlets owe is sent meanwhile; none of them can be in the way of anything else."""
    posting = Posting(ledger, config, report=told.said, link=link, load=load)
    posting.start()
    try:
        yield posting
    finally:
        posting.stop()


def _sent_now(posting: Posting, told: Told) -> dict[str, Look]:
    """The rest of the news, before this ends: nobody may look for a day."""
    posting.stop(_LONGEST_SEND_SECONDS)
    posting.once()
    looks = posting.tried()
    for name, look in looks.items():
        if look.failed:
            words = f"{look.sent} sent, {look.failed} did not get through"
            told.said(f"! outlet {name}: {words}; see truegreen outlets")
    return looks


def _outlet_documents(looks: dict[str, Look]) -> list[Document]:
    """What came of the news, for each outlet."""
    return [
        {"name": name, "sent": look.sent, "failed": look.failed, "given_up": look.given_up}
        for name, look in looks.items()
    ]


def well_of(made: Scheduler, posting: Posting) -> Callable[[], list[str]]:
    """Whether whoever looks for work, and whoever sends news of it, are well."""
    return lambda: [*made.faults(), *posting.faults()]


def listed(labels: str) -> tuple[str, ...]:
    """Labels as they are given, with commas between them; refused where one is none."""
    return checked_names(
        tuple(each.strip() for each in labels.split(",") if each.strip()), "labels"
    )


class Offer(NamedTuple):
    """How many tasks at the same time, and what is offered to them."""

    seats: int
    labels: tuple[str, ...] = ()
    most_here: int | None = None
    """How many tasks all processes of this machine carry out at the same time."""


def scheduler_of(
    ledger: Ledger,
    config: Config,
    told: Told,
    offer: Offer,
    *,
    kind: EngineKind | None,
    follow: Followed,
) -> Scheduler:
    """A scheduler with seats of its own, or one that hands its work to an engine."""
    settings, place = config.contents.engine, place_of(config)
    settings = settings if kind is None else replace(settings, kind=kind)
    chores = (Watchman(ledger, config.contents.alerts, told.said),)
    engine = engine_of(settings, place.environ)
    if engine is None:
        return Scheduler(
            ledger,
            workplace_of(config),
            told,
            seats=offer.seats,
            labels=offer.labels,
            follow=follow,
            chores=chores,
            most_here=offer.most_here,
        )
    if offer.most_here is not None:
        raise InvalidInput(
            "--most-here counts seats of this machine; [engine] most bounds an engine"
        )
    if store_file(config):
        told.said(f"! the store is a file of this machine; nodes of {settings.called} elsewhere")
        told.said("! can't reach it: use PostgreSQL, --store postgresql://…")
    placing = Placing(ledger, engine, settings, place, store=config.store, said=told.said)
    return Scheduler(
        ledger,
        place,
        told,
        seats=1,
        labels=(*settings.labels, *offer.labels),
        follow=follow,
        chores=chores,
        placing=placing,
    )


def settled(ledger: Ledger, config: Config, said: Callable[[str], None]) -> Config:
    """The settings as they may be used; what of them is not used is said."""
    used = settle(ledger, config, said)
    if used.contents.engine != config.contents.engine:
        # The seats of this machine are not where these tasks were meant to be carried out.
        raise Refused(f"[engine] is not trusted as it is now: {NEXT}", allowed=(NEXT,))
    return used


def carried_out(document: Document) -> str:
    """A summary in one line."""
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

    def left(self, offers: tuple[str, ...] = ()) -> Document:
        """What could not start at this look, and why."""
        held = self._ledger.held_back(offers, limit=_SHOWN)
        tasks = [held_document(each) for each in held.tasks]
        for hold, number in held.counts.items():
            first = next((each for each in tasks if each["hold"] is hold), None)
            words = f": {first['task']}  {first['reason']}" if first else ""
            self.said(f"{number} held back ({hold}){words}")
        left = {"counts": {str(hold): number for hold, number in held.counts.items()}}
        return {
            "held_back": {**left, "tasks": tasks},
            "frozen": self._ledger.frozen() is not None,
        }

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
