"""`matrix`: how many tasks stand in which cell, how the harness ended against what the work is."""

from __future__ import annotations

import time

import click

from truegreen.contract import parse_duration
from truegreen.faces.axes import LIGHTS, cell_look
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.grid import Field, Grid
from truegreen.faces.cli.paper import Column, Ink, Paper, Part, Row, mark, tint
from truegreen.faces.documents import Document
from truegreen.faces.figures import (
    WEEK,
    ended_document,
    hour_of,
    matrix_document,
    measured,
    unchecked_of,
    unverified_words,
)
from truegreen.faces.times import local, span
from truegreen.model import CELLS, MATRIX, RUNS, Cell, Light, Outcome, RunStatus
from truegreen.record.ledger.reads import LONGEST_PAGE

_NARROWEST_GRID, _WIDE = 80, 110
_ROWS = (Light.GREEN, Light.RED, Light.AMBER, Light.GREY)
_REPORTED_ROW = ("", Cell.REPORTED_FAILURE, "", "", "")
"""A green run over failed work stands here if its agent said so."""
_BLOCKED_ROW = ("", *([Cell.BLOCKED] * 3), "")
"""A blocked run stands here whatever its light, unless it was rescued or still may be."""


def _ago(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    return max(0, time.time_ns() // 1000 - parse_duration(value, "--since"))


@command(
    "matrix",
    "truegreen matrix                  the tasks, as they stand now",
    "truegreen matrix --since 7d       the runs that ended in the last week",
    "truegreen matrix --json",
    "truegreen list --cell silent_failure",
)
@click.option(
    "--since", callback=_ago, metavar="TIME", help="Count the runs that ended in the last 12h, 7d…"
)
def matrix(frame: Frame, since: int | None) -> None:
    """Count tasks per cell of the matrix: how the run ended against what the checks found."""
    with frame.ledger() as ledger:
        inbox = len(ledger.inbox(limit=LONGEST_PAGE))
        if since is None:
            counted = matrix_document(ledger.counts(), inbox=inbox)
        else:
            counted = ended_document(ledger.ended_since(since), since, inbox=inbox)
        week_ago = time.time_ns() // 1000 - WEEK
        document = measured(ledger, counted, week_ago if since is None else since)
    frame.give(document, lambda paper: draw(paper, document, since))


def draw(paper: Paper, document: Document, since: int | None = None) -> None:
    """The headline, the grid where there is room for it, and the cells in words."""
    draw_figures(paper, document)
    total, counted = document["total"], document["counted"]
    noun = counted.removesuffix("s") if total == 1 else counted
    when = " as they stand now" if since is None else f" that ended since {local(hour_of(since))}"
    paper.say(Ink(f"{total} {noun}{when}", "dim"))
    counts = {entry["cell"]: entry[document["counted"]] for entry in document["cells"]}
    unchecked = unchecked_of(document)
    if paper.is_terminal and paper.console.width >= _NARROWEST_GRID:
        paper.say()
        paper.say(Ink("run light ↓   verdict →", "dim"))
        for line in _grid(counts, unchecked).draw(paper.console.width):
            paper.say(*line)
    _draw_cells(paper, counts, unchecked)
    _draw_falsified(paper, document)
    _draw_the_rest(paper, document)


# --- the headline


def draw_figures(paper: Paper, document: Document) -> None:
    """Silent failures first, then what share was checked at all, and what needs a look."""
    found = document["figures"]
    silent = found["silent_failures"]
    words = f"{silent or 'no'} {'silent failure' if silent == 1 else 'silent failures'}"
    look = cell_look(Cell.SILENT_FAILURE)
    first = Ink(f"{look.glyph} {words}", f"bold {tint(look.rgb)}") if silent else Ink(words, "bold")
    inbox = f"{found['inbox']}{'+' if found['inbox'] >= LONGEST_PAGE else ''}"
    rest = [
        _share(found["checked_share"]),
        f"{found['rescued']} rescued",
        *unverified_words(document),
        f"{inbox} in the inbox",
        *_measured_words(found),
    ]
    paper.hanging([first, " · "], " · ".join(rest))


def _measured_words(found: Document) -> list[str]:
    """What agents said that was not so, and how long a verdict takes; nothing where unknown."""
    untrue, seconds = found.get("contradicted"), found.get("median_seconds_to_verdict")
    words = [f"{untrue} {'claim' if untrue == 1 else 'claims'} contradicted"] if untrue else []
    return words if seconds is None else [*words, f"{span(seconds)} to a verdict (median)"]


def _share(share: float | None) -> str:
    """A share in per cent; nothing that was not all is rounded up to all."""
    return "nothing ended yet" if share is None else f"{int(share * 100)} % checked"


# --- the grid


def _grid(counts: dict[Cell, int], unchecked: dict[Cell, int]) -> Grid:
    names = [[MATRIX[light, outcome] for outcome in Outcome] for light in _ROWS]
    labels = [_label(light) for light in _ROWS]
    fields: dict[str, Field] = {cell: _field(cell, counts[cell], unchecked[cell]) for cell in Cell}
    return Grid(
        [str(outcome) for outcome in Outcome],
        [
            *labels,
            [_label(Light.GREEN)[0], Ink("  admitted", "dim")],
            [Ink("blocked"), Ink("any light", "dim")],
        ],
        [*names, list(_REPORTED_ROW), list(_BLOCKED_ROW)],
        fields,
    )


def _label(light: Light) -> list[Ink]:
    """A light, and the run statuses that have it."""
    glyph, rgb = LIGHTS[light]
    statuses = [s for s in RunStatus if RUNS[s].light is light and RUNS[s].ended]
    return [Ink(f"{glyph} {light}", tint(rgb)), *(Ink(f"  {status}", "dim") for status in statuses)]


def _field(cell: Cell, count: int, unchecked: int) -> Field:
    look = cell_look(cell)
    aside = f" · {unchecked} accepted unchecked" if unchecked else ""
    words = (f"{look.word}{aside}", f"{cell.replace('_', ' ')}{aside}")
    if not count:
        return Field(Ink("0", "dim"), words, "dim")
    style = tint(LIGHTS[Light.AMBER][1] if unchecked else look.rgb)
    return Field(Ink(f"{look.glyph} {count}", f"bold {tint(look.rgb)}"), words, style)


# --- in words


def _draw_cells(paper: Paper, counts: dict[Cell, int], unchecked: dict[Cell, int]) -> None:
    """Every cell in a pipe; on a terminal, where the grid names them all, those with something."""
    cells = [cell for cell in Cell if counts[cell] or not paper.is_terminal]
    if not cells:
        return
    paper.say()
    wide = not paper.is_terminal or paper.console.width >= _WIDE
    aside = [Column("LIGHT"), Column("TO THE INBOX")] if wide else []
    columns = [Column("CELL"), Column("COUNT", right=True), *aside]
    rows = [_row(cell, counts[cell], unchecked[cell], wide=wide) for cell in cells]
    paper.table([*columns, Column("WHAT IT MEANS", grows=True)], rows)


def _row(cell: Cell, count: int, unchecked: int, *, wide: bool) -> Row:
    look = CELLS[cell]
    loud = tint(LIGHTS[Light.AMBER][1])
    told: list[Part] = [Ink(f"{unchecked} accepted unchecked", loud), " · "] if unchecked else []
    aside = [look.light, look.route or "-"] if wide else []
    return Row([mark(cell_look(cell)), str(count), *aside, [*told, look.sentence]])


def _draw_falsified(paper: Paper, document: Document) -> None:
    """Runs whose green was overturned stand in no cell any more."""
    falsified = document.get("falsified", 0)
    if falsified:
        glyph, rgb = LIGHTS[Light.RED]
        words = f"{glyph} {falsified} falsified: called green then, overturned since"
        paper.say()
        paper.say(Ink(words, tint(rgb)))


def _draw_the_rest(paper: Paper, document: Document) -> None:
    """Tasks without an ended run stand in no cell, nor do those whose green was overturned."""
    if document["counted"] != "tasks":
        return
    left = document["total"] - sum(entry["tasks"] for entry in document["cells"])
    if not left:
        return
    paper.say()
    paper.say(
        Ink(f"{left} more in no cell: not run yet, queued or running again, or overturned", "dim")
    )


COMMANDS = {"matrix": matrix}
