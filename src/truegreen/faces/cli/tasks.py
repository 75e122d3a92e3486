"""`list` and `show`: tasks on both axes, never one made from the other, the worst first."""

from __future__ import annotations

from typing import Any

import click

from truegreen.contract import checked
from truegreen.faces.cli.frame import Frame, Word, command
from truegreen.faces.documents import page_document, task_document
from truegreen.model import Cell, ExitReason, TaskStatus
from truegreen.record.ledger import Filter
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE, Verdicted
from truegreen.record.ledger.wakes import Freeze

SHOWN_EVENTS = 200
_WORD_BYTES = 1000


def _words(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001
    return checked(value, f"--{param.name}", _WORD_BYTES) if value is not None else None


@command(
    "list",
    "truegreen list                                  the newest tasks, silent failures first",
    "truegreen list --status needs_review --status blocked",
    "truegreen list --cell silent_failure --json     for a script",
    "truegreen list --search parser --limit 10",
)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=Word(TaskStatus),
    metavar="S",
    help="Only this task status; several times for one of several. See: truegreen states.",
)
@click.option("--cell", type=Word(Cell), metavar="C", help="Only this cell of the matrix.")
@click.option("--exit-reason", type=Word(ExitReason), metavar="R", help="Only this exit reason.")
@click.option("--role", callback=_words, metavar="ROLE", help="Only tasks of this role.")
@click.option(
    "--agent", callback=_words, metavar="AGENT", help="Only what this agent worked at last (an id)."
)
@click.option(
    "--search",
    callback=_words,
    metavar="TEXT",
    help="Only tasks with these words in title or goal.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, LONGEST_PAGE),
    default=PAGE,
    show_default=True,
    metavar="N",
    help="At most so many.",
)
@click.option(
    "--after", callback=_words, metavar="CURSOR", help="Go on after the page that gave this cursor."
)
def list_tasks(
    frame: Frame,
    statuses: tuple[TaskStatus, ...],
    cell: Cell | None,
    exit_reason: ExitReason | None,
    *,
    role: str | None,
    agent: str | None,
    search: str | None,
    limit: int,
    after: str | None,
) -> None:
    """List tasks: run and task status in two columns, silent failures first, then the newest."""
    with frame.ledger() as ledger:
        whole = ledger.find("agt", agent) if agent else None
        where = Filter(statuses, cell, exit_reason, role, whole, search)
        page = ledger.page(where, limit=limit, after=after)
        verdicts = ledger.verdicts(page.tasks)
        counts, freeze = ledger.counts(), ledger.frozen()
        needs = ledger.needs(page.tasks)
    if frame.json:
        frozen = _frozen(freeze)[0] if freeze else None
        document = page_document(page, verdicts, counts)
        for task, each in zip(page.tasks, document["tasks"], strict=True):
            each["waits_for"] = [need._asdict() for need in needs.get(task.key, ())]
        frame.give({**document, "frozen": frozen})
        return
    from truegreen.faces.axes import waiting_words  # noqa: PLC0415 - as below
    from truegreen.faces.cli.pages import draw_page  # noqa: PLC0415 - JSON needs no drawing

    paper = frame.paper()
    if freeze:
        paper.say(_frozen(freeze)[1])
    waiting = {key: Verdicted(None, waiting_words(each)) for key, each in needs.items()}
    draw_page(paper, page, verdicts | waiting, counts, _again(frame, where, limit))


def _frozen(freeze: Freeze) -> tuple[dict[str, Any] | None, str]:
    """A freeze for programs, and for people."""
    from truegreen.faces.switch import (  # noqa: PLC0415 - hardly any store is frozen
        freeze_document,
        freeze_words,
    )

    return freeze_document(freeze), freeze_words(freeze)


def _again(frame: Frame, where: Filter, limit: int) -> str:
    """The command that lists the same, without its cursor."""
    import shlex  # noqa: PLC0415 - only people are told how to go on

    words = ["truegreen", "list"]
    for name, value in (("--store", frame.store), ("--config", frame.config)):
        words += [name, value] if value else []
    for status in where.statuses:
        words += ["--status", status]
    for name in ("cell", "exit_reason", "role", "agent", "search"):
        value = getattr(where, name)
        words += [f"--{name.replace('_', '-')}", value] if value else []
    words += ["--limit", str(limit)] if limit != PAGE else []
    return shlex.join(words)


@command(
    "show",
    "truegreen show tsk_0c3k9           any unique beginning of an id",
    "truegreen show tsk_0c3k9 --json    the document that HTTP gives too",
)
@click.argument("task")
def show(frame: Frame, task: str) -> None:
    """Show everything about one TASK: both axes, claim against evidence, findings, runs, budget."""
    with frame.ledger() as ledger:
        dossier = ledger.dossier(ledger.find("tsk", task))
        after = max(0, dossier.task.revision - SHOWN_EVENTS)
        events = ledger.events(dossier.task.id, after=after)
    document = task_document(dossier, events)
    if frame.json:
        frame.give(document)
        return
    from truegreen.faces.cli.dossier import draw_dossier  # noqa: PLC0415 - as above

    draw_dossier(frame.paper(), dossier, document, events)


COMMANDS = {"list": list_tasks, "show": show}
