"""A page of tasks on paper: both axes side by side and why, the silent failures counted first."""

from __future__ import annotations

from collections.abc import Sequence

from truegreen.faces.axes import cell_look, run_look, task_look
from truegreen.faces.cli.paper import Cell as CellText
from truegreen.faces.cli.paper import Column, Ink, Paper, Row, mark, tint
from truegreen.faces.documents import totals
from truegreen.model import CELLS, PALETTE, Cell, TaskStatus
from truegreen.record.ledger import Page
from truegreen.record.ledger.reads import Count, Verdicted
from truegreen.record.rows import Task

_SHORT_ID, _NARROW = 13, 110


def draw_page(
    paper: Paper, page: Page, verdicts: dict[int, Verdicted], counts: list[Count], again: str
) -> None:
    """The page, and how to go on; `again` is the command that lists the same from the start."""
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
        detail = f"{task.exit_detail} · " if task.exit_detail else ""
        below: Sequence[CellText] = ["", "", "", [_aside(task), f"{detail}{_why(task, verdicts)}"]]
        rows.append(Row([*axes, Ink(task.title, "bold")], below))
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
    return Ink(f"{look.word} · ", loud)


def _why(task: Task, verdicts: dict[int, Verdicted]) -> str:
    said = verdicts.get(task.key)
    words = [said.level or "", said.reason] if said and said.reason else []
    words = [word for word in words if word] or [PALETTE[task.status].meaning]
    is_sealed = task.sealed_at is not None and task.status is not TaskStatus.TERMINATED
    return " · ".join(["sealed", *words] if is_sealed else words)
