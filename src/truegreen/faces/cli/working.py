"""`worker`: seats alone, one of many on a store; `workers`: who offers seats on which host."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import click

from truegreen.app import workplace_of
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.outcome import OK
from truegreen.faces.cli.paper import Column, Ink, Paper, Row
from truegreen.faces.cli.scheduling import (
    Told,
    at_a_time,
    at_most,
    carried_out,
    duration,
    listed,
    offering,
    settled,
)
from truegreen.faces.documents import Document
from truegreen.faces.fleet import fleet_document
from truegreen.faces.times import local_minute
from truegreen.outlets.vigil import Watchman, kept_watch
from truegreen.scheduler import Scheduler


@command(
    "worker",
    "truegreen worker --seats 4                          until SIGTERM, then it drains",
    "truegreen worker --labels gpu,linux --most-here 2",
    "truegreen worker --drain-for 10m                    and ends what takes longer",
)
@at_a_time
@offering
@at_most
@click.option(
    "--drain-for",
    callback=duration,
    metavar="TIME",
    help="After the first signal, wait at most so long for what is under way.",
)
def worker(
    frame: Frame,
    seats: int,
    labels: str,
    most_here: int | None,
    drain_for: float | None,
) -> int:
    """Carry out queued tasks here; as many workers on as many hosts as you like share a store.

    The first signal drains: nothing more starts, and what is under way goes on to its end. The
    second ends runs gracefully and puts their tasks back into the queue, the third ends them at
    once.
    """
    config = frame.load()
    with frame.acting(makes=True) as (ledger, _me):
        told = Told(ledger, quiet=frame.json)
        config = settled(ledger, config, told.said)
        place, offers = workplace_of(config), listed(labels)
        chores = (Watchman(ledger, config.contents.alerts, told.said),)
        made = Scheduler(
            ledger, place, told, seats=seats, labels=offers, most_here=most_here, chores=chores
        )
        with draining(made, drain_for):
            told.said(f"looks for work, {seats} at a time; SIGTERM drains it")
            with kept_watch(ledger, config, "worker", made.faults, told.said):
                made.run()
        made.close()
        document = told.summary()
    frame.give(document, lambda paper: paper.say(carried_out(document)))
    return OK


@contextmanager
def draining(made: Scheduler, seconds: float | None) -> Iterator[None]:
    """Drain at the first signal, end runs at the second, and at once at the third."""
    steps: list[tuple[str, Callable[[], None]]] = [
        ("starts nothing more", lambda: made.rest(seconds)),
        ("ends what is under way", made.stop),
        ("ends it at once", lambda: made.stop(at_once=True)),
    ]

    def heard(_number: int, _frame: FrameType | None) -> None:
        words, act = steps.pop(0) if len(steps) > 1 else steps[0]
        sys.stderr.write(f"\n{words}; {made.busy} under way\n")
        act()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, heard) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@command("workers", "truegreen workers", "truegreen workers --json")
def workers(frame: Frame) -> int:
    """List who offers seats on which host, how long ago each was heard of, and what waits."""
    with frame.ledger() as ledger:
        document = fleet_document(ledger)
    frame.give(document, lambda paper: _draw(paper, document))
    return OK


def _draw(paper: Paper, document: Document) -> None:
    if not document["workers"]:
        paper.say("nobody offers seats now: truegreen up, scheduler or worker does")
    columns = [
        *(Column("WORKER"), Column("STATE"), Column("SEATS", right=True), Column("SEEN")),
        *(Column("LABELS"), Column("VERSION", aside=True)),
        Column("HOLDER", grows=True, aside=True),
    ]
    rows = [
        Row(
            [
                each["name"],
                each["state"],
                f"{each['busy']}/{each['seats']}",
                local_minute(each["seen_at"]),
                ", ".join(each["labels"]) or "-",
                each["version"],
                each["holder"],
            ]
        )
        for each in document["workers"]
    ]
    if rows:
        paper.table(columns, rows)
    queue = document["queue"]
    waits = f", the oldest since {local_minute(queue['oldest_at'])}" if queue["oldest_at"] else ""
    paper.say(Ink("queue  ", "dim"), f"{queue['queued']} queued{waits}")
    for suspect in document["suspects"]:
        paper.say(Ink("suspect  ", "bold"), f"{suspect['task']}  {suspect['holder']}")


COMMANDS = {"worker": worker, "workers": workers}
