"""`states`: every status with its glyph, colour and meaning, and every edge between them.

All of it comes from the table that the database's triggers are made of; nothing stands twice.
"""

from __future__ import annotations

from typing import Any

import click

from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.output import write_text
from truegreen.faces.cli.paper import Cell, Column, Ink, Paper, Row, tint
from truegreen.model import CELLS, DETAILS, PALETTE, RUNS, TaskStatus
from truegreen.record.lifecycle import EDGES, FINAL, SETTLED, allowed


@command(
    "states",
    "truegreen states                           the words, glyphs and colours",
    "truegreen states --mermaid > states.mmd    a diagram: https://mermaid.js.org",
    "truegreen states --json",
)
@click.option("--mermaid", is_flag=True, help="Print a Mermaid state diagram instead.")
def states(frame: Frame, *, mermaid: bool) -> None:
    """Print the statuses of tasks, what each means, and which event leads where."""
    if mermaid:
        text = diagram()
        frame.give({"mermaid": text}, lambda _: write_text(text))
    else:
        frame.give(document() if frame.json else None, _draw)


def diagram() -> str:
    """The edge table as a Mermaid diagram."""
    lines = ["stateDiagram-v2", "    [*] --> queued: open"]
    lines += [
        f"    {source} --> {edge.target}: {edge.move}" for edge in EDGES for source in edge.sources
    ]
    lines += [f"    {status} --> [*]" for status in TaskStatus if status in FINAL]
    lines += [
        f"    classDef {status} fill:{_hex(look.rgb)},color:{_contrast(look.rgb)}"
        for status, look in PALETTE.items()
    ]
    lines += [f"    class {status} {status}" for status in TaskStatus]
    return "\n".join(lines) + "\n"


def _hex(rgb: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*rgb)


def _contrast(rgb: tuple[int, int, int]) -> str:
    return "#000000" if 0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2] > 110 else "#ffffff"  # noqa: PLR2004


def document() -> dict[str, Any]:
    """All words of both axes as data."""
    return {
        "statuses": [
            {
                "status": status,
                "glyph": look.glyph,
                "rgb": look.rgb,
                "colour": _hex(look.rgb),
                "meaning": look.meaning,
                "settled": status in SETTLED,
                "final": status in FINAL,
                "allowed": allowed(status),
            }
            for status, look in PALETTE.items()
        ],
        "edges": [
            {
                "event": edge.move,
                "from": edge.sources,
                "to": edge.target,
                "automatic": edge.automatic,
                "by": edge.by,
            }
            for edge in EDGES
        ],
        "run_statuses": [
            {"status": s, "light": look.light, "ended": look.ended, "meaning": look.meaning}
            for s, look in RUNS.items()
        ],
        "exit_reasons": {reason: list(details) for reason, details in DETAILS.items()},
        "cells": [
            {
                "cell": cell,
                "title": look.title,
                "light": look.light,
                "route": look.route,
                "sentence": look.sentence,
            }
            for cell, look in CELLS.items()
        ],
    }


def _draw(paper: Paper) -> None:
    paper.say(Ink("Statuses of a task", "bold"))
    columns = [Column("STATUS"), Column("RGB"), Column(""), Column("MEANING", grows=True)]
    paper.table(columns, [_status_row(status) for status in TaskStatus], indent=2)
    paper.heading("Edges")
    rows = [Row([edge.move, edge.target, _sources(edge.sources), edge.by]) for edge in EDGES]
    heads = [Column("EVENT"), Column("TO"), Column("FROM", grows=True), Column("BY", grows=True)]
    paper.table(heads, rows, indent=2)
    paper.heading("Statuses of a run")
    lines = [Row([status, look.light, look.meaning]) for status, look in RUNS.items()]
    paper.table([Column("STATUS"), Column("LIGHT"), Column("MEANING", grows=True)], lines, indent=2)


def _status_row(status: TaskStatus) -> Row:
    look = PALETTE[status]
    end = "final" if status in FINAL else "settled" if status in SETTLED else ""
    cells: list[Cell] = [
        Ink(f"{look.glyph} {status}", tint(look.rgb)),
        "{:>3} {:>3} {:>3}".format(*look.rgb),
        end,
        look.meaning,
    ]
    return Row(cells)


def _sources(sources: tuple[TaskStatus, ...]) -> str:
    return ", ".join(sources)


COMMANDS = {"states": states}
