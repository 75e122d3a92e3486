"""The first page: what went wrong in silence, then the figures, the matrix, history, who works.

It reads counters and a few rows of each kind, never a table. Nothing can be done here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

import msgspec
from starlette.responses import Response

from truegreen.faces.activity import activity_of
from truegreen.faces.documents import Document, brief_document, inbox_document
from truegreen.faces.figures import WEEK, claims_told, matrix_document
from truegreen.faces.fleet import standing_of, worker_document
from truegreen.faces.times import instant, span
from truegreen.faces.web.house import House
from truegreen.faces.web.pages.charts import SERIES, SPANS, fitting, stacked
from truegreen.faces.web.pages.rendering import fragment, now, page, shown_to
from truegreen.faces.web.pages.streams import live
from truegreen.faces.web.routes import READERS, Visit, route
from truegreen.model import CELLS, GREEN, MATRIX, Cell, Light, Outcome, Role
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.lists import Filter
from truegreen.record.ledger.overview import HOUR, LiveRun
from truegreen.record.ledger.reads import Count
from truegreen.tuples import NamedTuple

_SILENT, _INBOX, _LIVE, _WORKERS = 5, 5, 8, 8
_WORST = ("lost", "suspect", "draining", "ready")


class Look(msgspec.Struct, frozen=True):
    """How far back the history is shown."""

    span: str = ""


@route("GET", "/", READERS, query=Look, media="text/html")
def overview(visit: Visit, query: Look) -> Response:
    """What matters now, in one look."""
    given = view(visit.house, visit.actor.role, query.span)
    return page(visit, "overview.html", section="overview", **given)


@live("overview")
def fragment_overview(house: House, role: Role, subject: str = "") -> str:
    """Everything on the page that changes."""
    return fragment("overview_live.html", **view(house, role, subject.removeprefix("span=")))


def view(house: House, role: Role, asked: str = "") -> Document:
    """Everything that the page shows to a role."""
    ledger, moment = house.ledger, now()
    counts = ledger.counts()
    hours = ledger.history(moment - SPANS[-1].hours * HOUR)
    recent = [hour for hour in hours if hour.at > moment - WEEK]
    shown = {
        "silent": _silent(ledger),
        "live_runs": [_live_run(each) for each in ledger.live_runs(limit=_LIVE)],
        "inbox": [inbox_document(waiting) for waiting in ledger.inbox(limit=_INBOX)],
        "fleet": _fleet(ledger),
    }
    return {
        **shown_to(role, shown),
        "figures": _figures(ledger, counts, moment),
        "matrix": matrix(counts),
        "total": sum(count.tasks for count in counts),
        "chart": stacked(hours, fitting(recent, moment, asked), moment),
        "series": SERIES,
        "spans": SPANS,
        "asked": asked,
        "rendered": moment,
    }


def _silent(ledger: Ledger) -> list[Document]:
    found = ledger.page(Filter(cell=Cell.SILENT_FAILURE), limit=_SILENT).tasks
    verdicts = ledger.verdicts(found)
    return [
        {
            **brief_document(task, verdicts.get(task.key)),
            "said": verdicts[task.key].said if task.key in verdicts else "",
            "ended_at": instant(task.settled_at or task.updated_at),
        }
        for task in found
    ]


def _live_run(each: LiveRun) -> Document:
    seen = activity_of(each)
    return {
        "run": each.run.id,
        "run_status": each.run.status,
        "attempt": each.run.attempt,
        "task": each.task,
        "title": each.title,
        "agent": each.agent,
        "agent_name": each.agent_name or "",
        "pace": seen.pace,
        "activity": seen.words,
        "since": instant(each.run.created_at),
    }


def _fleet(ledger: Ledger) -> Document:
    """Who offers seats: those in trouble first, and how many seats there are in all."""
    known = ledger.workers()
    suspects = {each.lease.holder for each in ledger.overdue()} if known else set()
    standing = [(standing_of(each, suspects), each) for each in known]
    standing.sort(key=lambda each: _WORST.index(each[0][0]))
    at_work = [each.worker for (word, _), each in standing if word != "lost"]
    return {
        "workers": [
            {**worker_document(each), "word": word, "light": light}
            for (word, light), each in standing[:_WORKERS]
        ],
        "more": max(0, len(known) - _WORKERS),
        "busy": sum(each.busy for each in at_work),
        "seats": sum(each.seats for each in at_work),
    }


def _figures(ledger: Ledger, counts: list[Count], moment: int) -> Document:
    piles = ledger.piles()
    times = ledger.verdict_times(moment - WEEK)
    told = claims_told(ledger)
    oldest = [pile.oldest_unread_at for pile in piles if pile.oldest_unread_at is not None]
    return {
        **matrix_document(counts, inbox=sum(pile.items for pile in piles))["figures"],
        "contradicted": told["contradicted"],
        "stated": sum(told.values()),
        "to_verdict": span(median(times)) if times else None,
        "verdicts": len(times),
        "unread": sum(pile.unread for pile in piles),
        "oldest_unread": min(oldest, default=None),
    }


# --- the matrix


class Place(NamedTuple):
    """A cell where it stands in the matrix: once, however many fields it takes."""

    cell: Cell
    title: str
    sentence: str
    tone: str
    tasks: int
    unchecked: int = 0
    """So many of them are green by a person's word alone."""
    verdict: Outcome | None = None
    rows: int = 1
    columns: int = 1


class MatrixRow(NamedTuple):
    """The cells that begin in one row."""

    light: Light
    places: tuple[Place, ...]


class Matrix(NamedTuple):
    """Run lights against verdicts, and beside them what could not go on at all."""

    rows: tuple[MatrixRow, ...]
    reported: Place
    blocked: Place


def matrix(counts: list[Count]) -> Matrix:
    """The matrix as a table; neighbouring fields of the same cell are one."""
    tasks, unchecked = dict.fromkeys(Cell, 0), dict.fromkeys(Cell, 0)
    for count in counts:
        if count.cell:
            tasks[count.cell] += count.tasks
            unchecked[count.cell] += 0 if count.checked else count.tasks
    numbers = {cell: (tasks[cell], unchecked[cell] if cell in GREEN else 0) for cell in Cell}
    lights = dict.fromkeys(light for light, _ in MATRIX)
    rows = tuple(MatrixRow(light, tuple(_places(light, numbers))) for light in lights)
    reported = _place(Cell.REPORTED_FAILURE, numbers)
    return Matrix(rows, reported, _place(Cell.BLOCKED, numbers))


def _places(light: Light, numbers: Mapping[Cell, tuple[int, int]]) -> Iterator[Place]:
    for verdict in Outcome:
        cell = MATRIX[light, verdict]
        fields = [field for field, other in MATRIX.items() if other is cell]
        if fields[0] == (light, verdict):
            rows, columns = (len(set(each)) for each in zip(*fields, strict=True))
            yield _place(cell, numbers)._replace(verdict=verdict, rows=rows, columns=columns)


def _place(cell: Cell, numbers: Mapping[Cell, tuple[int, int]]) -> Place:
    look = CELLS[cell]
    return Place(cell, look.title, look.sentence, f"l-{look.light}", *numbers[cell])
