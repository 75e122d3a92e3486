"""A page of tasks on paper: both axes side by side and why, the silent failures counted first."""

from __future__ import annotations

from collections.abc import Sequence

from truegreen.faces.axes import (
    LIGHTS,
    OVERTURNED,
    Rgb,
    asked_words,
    cell_look,
    is_overturned,
    run_look,
    task_look,
)
from truegreen.faces.cli.paper import Cell as CellText
from truegreen.faces.cli.paper import Column, Ink, Paper, Part, Row, mark, tint
from truegreen.faces.documents import totals
from truegreen.model import CELLS, PALETTE, RUNS, Cell, Light, TaskStatus
from truegreen.outlets.answers import badges
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
        known = is_overturned(task) or task.exit_detail in (None, str(task.status))
        detail = "" if known else f"{task.exit_detail} · "
        why: list[Part] = [_aside(task), *_worn(task, verdicts), f"{detail}{_why(task, verdicts)}"]
        below: Sequence[CellText] = ["", "", "", why]
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
    heads = ("TASK", "RUN", "EXIT", "STATUS", "CELL", "BADGES", "TITLE", "WHY")
    rows = []
    for task in tasks:
        run, status = mark(run_look(task.run_status)), mark(task_look(task.status))
        ended = task.run_status is not None and RUNS[task.run_status].ended
        # A run under way has not ended, though the one before it has.
        exit_ = f"{task.exit_reason}/{task.exit_detail}" if ended and task.exit_reason else "-"
        exit_ = "unknown/legacy" if task.is_legacy else exit_
        axes = [task.id, run, exit_, status, task.cell or "-"]
        worn = ",".join(_badges(task, verdicts)) or "-"
        rows.append(Row([*axes, worn, task.title, _why(task, verdicts)]))
    paper.table([Column(head) for head in heads], rows)


def _aside(task: Task) -> Ink:
    """The cell, where its name says more than the status beside it, and nothing greener."""
    if task.cell is None or task.cell is Cell.TRUE_GREEN or CELLS[task.cell].title == task.status:
        return Ink("")
    look = cell_look(task.cell)
    loud = f"not dim {tint(look.rgb)}" if CELLS[task.cell].route else ""
    return Ink(f"{look.word} · ", loud)


def badge_rgb(badge: str) -> Rgb:
    """The colour of a badge: green that turned out wrong is red."""
    return LIGHTS[Light.RED if badge == "falsified" else Light.AMBER][1]


def _badges(task: Task, verdicts: dict[int, Verdicted]) -> list[str]:
    said = verdicts.get(task.key)
    return badges(task, said.isolation if said else "")


def _worn(task: Task, verdicts: dict[int, Verdicted]) -> list[Ink]:
    """The badges, but for what the rest of the row says already."""
    told = {str(task.status), CELLS[task.cell].title if task.cell else ""}
    told |= {"terminated"} if task.sealed_at is not None else set()
    told |= {"falsified"} if is_overturned(task) else set()
    return [
        Ink(f"{badge} · ", f"not dim {tint(badge_rgb(badge))}")
        for badge in _badges(task, verdicts)
        if badge not in told
    ]


def _why(task: Task, verdicts: dict[int, Verdicted]) -> str:
    said = verdicts.get(task.key)
    words = [said.level or "", asked_words(task, said.reason)] if said and said.reason else []
    words = [word for word in words if word] or [PALETTE[task.status].meaning]
    if is_overturned(task):
        words = [f"{OVERTURNED} ({' · '.join(words)})"]
    is_sealed = task.sealed_at is not None and task.status is not TaskStatus.TERMINATED
    return " · ".join(["sealed", *words] if is_sealed else words)
