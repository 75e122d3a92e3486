"""`list` and `show`: tasks on both axes, never one made from the other, the worst first."""

from __future__ import annotations

import shlex

import click

from truegreen.contract import checked
from truegreen.faces.axes import cell_look, run_look, task_look
from truegreen.faces.cli.dossier import draw_dossier
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.paper import Column, Ink, Paper, Row, mark, tint
from truegreen.faces.documents import page_document, task_document, totals
from truegreen.model import CELLS, PALETTE, Cell, ExitReason, TaskStatus
from truegreen.record.ledger import Filter, Page
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE, Count, Verdicted
from truegreen.record.rows import Task

SHOWN_EVENTS = 200
_WORD_BYTES = 1000
_SHORT_ID, _NARROW = 13, 110


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
    type=click.Choice(TaskStatus),
    metavar="S",
    help="Only this task status; several times for one of several. See: truegreen states.",
)
@click.option("--cell", type=click.Choice(Cell), metavar="C", help="Only this cell of the matrix.")
@click.option(
    "--exit-reason", type=click.Choice(ExitReason), metavar="R", help="Only this exit reason."
)
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
        counts = ledger.counts()
    again = _again(frame, where, limit)
    frame.give(
        page_document(page, verdicts, counts) if frame.json else None,
        lambda paper: _draw_page(paper, page, verdicts, counts, again),
    )


def _again(frame: Frame, where: Filter, limit: int) -> str:
    """The command that lists the same, without its cursor."""
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


def _draw_page(
    paper: Paper, page: Page, verdicts: dict[int, Verdicted], counts: list[Count], again: str
) -> None:
    _draw_totals(paper, page, counts)
    if page.tasks:
        paper.say()
        draw = _two_lines if paper.is_terminal else _one_line
        draw(paper, page.tasks, verdicts)
    if page.after:
        paper.say()
        paper.say(Ink(f"more: {again} --after {page.after}", "dim"))


def _draw_totals(paper: Paper, page: Page, counts: list[Count]) -> None:
    total = totals(counts)
    silent, tasks = total["silent_failures"], total["total"]
    look = cell_look(Cell.SILENT_FAILURE)
    words = f"{silent or 'no'} {'silent failure' if silent == 1 else 'silent failures'}"
    first = Ink(f"{look.glyph} {words}", f"bold {tint(look.rgb)}") if silent else Ink(words)
    rest = f" · {tasks} {'task' if tasks == 1 else 'tasks'}"
    shown = f" · {len(page.tasks)} shown" if len(page.tasks) != tasks else ""
    paper.say(first, Ink(rest + shown, "dim"))
    if not tasks:
        paper.say(Ink("nothing has been recorded in this store yet", "dim"))


def _two_lines(paper: Paper, tasks: list[Task], verdicts: dict[int, Verdicted]) -> None:
    """For a terminal: the axes above, why below."""
    shown = _id_length(tasks) if paper.console.width < _NARROW else None
    columns = [
        Column("TASK"),
        Column("RUN"),
        Column("STATUS"),
        Column("TITLE, AND WHY", grows=True),
    ]
    rows = []
    for task in tasks:
        axes = [task.id[:shown], mark(run_look(task.run_status)), mark(task_look(task.status))]
        why = ["", f"  {task.exit_detail or ''}", _aside(task), _why(task, verdicts)]
        rows.append(Row([*axes, Ink(task.title, "bold")], why))
    paper.table(columns, rows)


def _id_length(tasks: list[Task]) -> int:
    """How much of the ids tells the tasks of this page apart."""
    length = _SHORT_ID
    while len({task.id[:length] for task in tasks}) < len(tasks):
        length += 1
    return length


def _one_line(paper: Paper, tasks: list[Task], verdicts: dict[int, Verdicted]) -> None:
    """For a pipe: everything about a task on one line."""
    heads = ("TASK", "RUN", "EXIT", "STATUS", "CELL", "TITLE", "WHY")
    rows = []
    for task in tasks:
        run, status = mark(run_look(task.run_status)), mark(task_look(task.status))
        exit_ = f"{task.exit_reason}/{task.exit_detail}" if task.exit_reason else "-"
        cell = task.cell or "-"
        rows.append(Row([task.id, run, exit_, status, cell, task.title, _why(task, verdicts)]))
    paper.table([Column(head) for head in heads], rows)


def _aside(task: Task) -> Ink:
    """The cell, where its name says more than the status beside it, and nothing greener."""
    if task.cell is None or task.cell is Cell.TRUE_GREEN or CELLS[task.cell].title == task.status:
        return Ink("")
    look = cell_look(task.cell)
    loud = f"not dim {tint(look.rgb)}" if CELLS[task.cell].route else ""
    return Ink(f"  {look.word}", loud)


def _why(task: Task, verdicts: dict[int, Verdicted]) -> str:
    said = verdicts.get(task.key)
    words = [said.level or "", said.reason] if said and said.reason else []
    return " · ".join(word for word in words if word) or PALETTE[task.status].meaning


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
    frame.give(document, lambda paper: draw_dossier(paper, dossier, document, events))


COMMANDS = {"list": list_tasks, "show": show}
