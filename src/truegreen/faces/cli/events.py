"""`events`: the history as it was written, of one task or of all, once or as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import click

from truegreen.faces.cli.dossier import draw_events
from truegreen.faces.cli.frame import Frame, command, offered
from truegreen.faces.cli.output import flush, write_json
from truegreen.faces.cli.paper import Paper
from truegreen.faces.documents import event_document
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE, Told

POLL_SECONDS = 0.25
Batches = Iterator[list[Told]]


@command(
    "events",
    "truegreen events                        the newest events of all tasks, oldest first",
    "truegreen events tsk_0c3k9 --limit 5",
    "truegreen events --follow --json        JSON Lines, until Ctrl-C (exit status 130)",
)
@click.argument("task", required=False, shell_complete=offered("tasks"))
@click.option("--follow", "-f", is_flag=True, help="Wait for more, until Ctrl-C.")
@click.option(
    "--limit",
    type=click.IntRange(0, LONGEST_PAGE),
    default=PAGE,
    show_default=True,
    metavar="N",
    help="Begin with at most so many of the newest.",
)
def events(frame: Frame, task: str | None, limit: int, *, follow: bool) -> None:
    """Print the newest events, of one TASK or of all, oldest of them first; --json: JSON Lines."""
    with frame.ledger() as ledger:
        whole = ledger.find("tsk", task) if task else None
        batches = _of_task(ledger, whole, limit) if whole else _of_all(ledger, limit)
        write = _lines if frame.json else _tables(Paper(), with_task=whole is None)
        for told in batches:
            write(told)
            flush()
            if not follow:
                if not told and limit and not frame.json:
                    click.echo("truegreen: nothing has happened yet in this store", err=True)
                return
            time.sleep(POLL_SECONDS)


def _of_task(ledger: Ledger, task: str, limit: int) -> Batches:
    """First the newest of a task's events, then what comes after them."""
    reached = max(0, ledger.task(task).revision - limit)
    batch = ledger.events(task, after=reached, limit=limit) if limit else []
    while True:
        reached = batch[-1].event.revision if batch else reached
        yield batch
        batch = ledger.events(task, after=reached)


def _of_all(ledger: Ledger, limit: int) -> Batches:
    """First the newest of all events, then what the feed brings that was not yet told."""
    latest = ledger.latest_events(limit=max(1, limit))
    # Transactions may commit in another order than they wrote: the feed is read again from the
    # first event that was told, and what was told is left out.
    first = min(((t.event.xact, t.event.key) for t in latest), default=(0, 0))
    reached = (first[0], first[1] - 1) if latest else first
    told = {t.event.id for t in latest}
    yield latest if limit else []
    while True:
        batch = ledger.feed(reached)
        if batch:
            reached = (batch[-1].event.xact, batch[-1].event.key)
        fresh = [t for t in batch if t.event.id not in told]
        told -= {t.event.id for t in batch}
        yield fresh


def _lines(batch: list[Told]) -> None:
    for told in batch:
        write_json(event_document(told))


def _tables(paper: Paper, *, with_task: bool) -> Callable[[list[Told]], None]:
    """A table per batch; only the first has heads."""
    heads = True

    def write(batch: list[Told]) -> None:
        nonlocal heads
        if batch:
            draw_events(paper, batch, with_task=with_task, heads=heads)
            heads = False

    return write


for _option in events.params:
    if _option.name == "json" and isinstance(_option, click.Option):
        _option.help = "JSON Lines on stdout: one document for each event, and nothing else."

COMMANDS = {"events": events}
