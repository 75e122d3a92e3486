"""The matrix and its headline figures as documents: what is counted, where, and what it means."""

from __future__ import annotations

from truegreen.faces.documents import Document, totals
from truegreen.faces.times import instant
from truegreen.model import (
    CELLS,
    GREEN,
    MATRIX,
    REPORTED,
    Cell,
    ExitReason,
    RunStatus,
    Standing,
    TaskStatus,
)
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.overview import HOUR, Looked, looked_at, looked_at_runs
from truegreen.record.ledger.reads import Count, Ended

_SAID = (Standing.CHECKED, Standing.FALSIFIED)
WEEK = 7 * 24 * HOUR


def measured(ledger: Ledger, document: Document, since: int) -> Document:
    """A matrix with the figures that no count has: contradicted claims, how long verdicts take.

    Statements are counted for ever, not by the hour: since an instant nobody can tell.
    """
    from statistics import median  # noqa: PLC0415 - loads slowly

    times = ledger.verdict_times(since)
    told = claims_told(ledger)["contradicted"] if document["since"] is None else None
    more = {
        "contradicted": told,
        "median_seconds_to_verdict": round(median(times), 3) if times else None,
    }
    return {**document, "figures": {**document["figures"], **more}}


def claims_told(ledger: Ledger) -> dict[str, int]:
    """How often what agents stated was found true, and how often not."""
    told = {"confirmed": 0, "contradicted": 0}
    for (name, label), times in ledger.meters().items():
        outcome = label.partition("|")[0]
        if name == "claims" and outcome in told:
            told[outcome] += times
    return told


def matrix_document(counts: list[Count], *, inbox: int = 0) -> Document:
    """Every cell with its name, light and count, and where the tasks stand that have none yet."""
    by_cell = dict.fromkeys(Cell, 0)
    by_status = dict.fromkeys(TaskStatus, 0)
    by_run = dict.fromkeys(RunStatus, 0)
    unchecked = dict.fromkeys(Cell, 0)
    for count in counts:
        by_status[count.status] += count.tasks
        if count.cell:
            by_cell[count.cell] += count.tasks
            unchecked[count.cell] += count.tasks * (not count.checked)
        if count.run_status:
            by_run[RunStatus(count.run_status)] += count.tasks
    return {
        "counted": "tasks",
        "since": None,
        "figures": {
            **_figures(by_cell, looked_at(counts), inbox),
            "unverified": sum(c.tasks for c in counts if _is_unverified(c.cell, c.checked)),
        },
        **_cells(by_cell, unchecked, "tasks"),
        "task_status": by_status,
        "run_status": by_run,
        **totals(counts),
    }


def ended_document(ended: list[Ended], since: int, *, inbox: int = 0) -> Document:
    """The matrix of the runs that ended since an instant; runs are tallied by the hour.

    Those whose green was overturned since stand in no cell any more: they are counted apart.
    """
    by_cell = dict.fromkeys(Cell, 0)
    by_reason = dict.fromkeys(ExitReason, 0)
    unchecked = dict.fromkeys(Cell, 0)
    falsified = 0
    for tally in ended:
        by_reason[tally.exit_reason] += tally.runs
        if tally.standing is Standing.FALSIFIED:
            falsified += tally.runs
        else:
            by_cell[tally.cell] += tally.runs
            unchecked[tally.cell] += tally.runs * (tally.standing is Standing.UNCHECKED)
    return {
        "counted": "runs",
        "since": instant(hour_of(since)),
        "figures": {
            **_figures(by_cell, looked_at_runs(ended), inbox),
            "unverified": sum(e.runs for e in ended if _is_unverified(e.cell, e.standing in _SAID)),
        },
        **_cells(by_cell, unchecked, "runs"),
        "exit_reason": by_reason,
        "falsified": falsified,
        "silent_failures": by_cell[Cell.SILENT_FAILURE],
        "total": sum(by_cell.values()) + falsified,
    }


def hour_of(at: int) -> int:
    """The beginning of an instant's hour."""
    return at // HOUR * HOUR


def _figures(by_cell: dict[Cell, int], looked: Looked, inbox: int) -> Document:
    """The headline: what share of all that ended was checked at all, and what needs a look."""
    return {
        "checked_share": looked.share,
        "checked": looked.checked,
        "ended": looked.ended,
        "silent_failures": by_cell[Cell.SILENT_FAILURE],
        "rescued": by_cell[Cell.RESCUED] + by_cell[Cell.FINISHED_AT_THE_CAP],
        "inbox": inbox,
    }


def _is_unverified(cell: Cell | None, checked: bool) -> bool:  # noqa: FBT001 - one of two facts
    """Ended well, or called done, and no check gave an answer: as the badge says it."""
    return cell is Cell.UNVERIFIED or (cell in GREEN and not checked)


def unchecked_of(document: Document) -> dict[Cell, int]:
    """How many of those in each cell are green by a person's word alone."""
    return {entry["cell"]: entry["unchecked"] for entry in document["cells"]}


def unverified_words(document: Document) -> list[str]:
    """What nobody checked, as its cells say it: what waits for somebody, and what was accepted."""
    accepted = sum(unchecked_of(document).values())
    waiting = document["figures"]["unverified"] - accepted
    words = [f"{waiting} unverified"] if waiting or not accepted else []
    return [*words, f"{accepted} accepted unchecked"] if accepted else words


def _cells(by_cell: dict[Cell, int], unchecked: dict[Cell, int], counted: str) -> Document:
    return {
        "cells": [
            {
                "cell": cell,
                "title": look.title,
                "light": look.light,
                "route": look.route,
                "sentence": look.sentence,
                "count": by_cell[cell],
                counted: by_cell[cell],
                "unchecked": unchecked[cell] if cell in GREEN else 0,
            }
            for cell, look in CELLS.items()
        ],
        "matrix": [
            {"run": light, "verdict": outcome, "cell": cell}
            for (light, outcome), cell in (*MATRIX.items(), (REPORTED, Cell.REPORTED_FAILURE))
        ],
    }
