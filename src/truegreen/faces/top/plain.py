"""One frame on paper, for a pipe or a quick look: headline, cells, live runs, inbox by cause."""

from __future__ import annotations

from truegreen.faces.activity import activity_look, activity_of
from truegreen.faces.axes import LIGHTS, cell_look
from truegreen.faces.cli.alarms import Notice, draw_groups
from truegreen.faces.cli.matrix import draw_figures
from truegreen.faces.cli.paper import Column, Ink, Paper, Row, mark, tint
from truegreen.faces.figures import unchecked_of
from truegreen.faces.grouping import age_words
from truegreen.faces.times import local
from truegreen.faces.top.picture import Picture
from truegreen.model import Light
from truegreen.record.ledger.overview import LiveRun


def draw(paper: Paper, picture: Picture) -> None:
    """The whole frame; what fails silently comes first."""
    draw_figures(paper, picture.matrix)
    paper.say(Ink(f"{picture.matrix['total']} tasks, {local(picture.at)}", "dim"))
    _draw_cells(paper, picture)
    _draw_live(paper, picture)
    paper.heading("waits for a person")
    draw_groups(paper, picture.groups, Notice(picture.put_off, ()), picture.at)


def _draw_cells(paper: Paper, picture: Picture) -> None:
    counts = [(cell, count) for cell, count in picture.counts.items() if count]
    if counts:
        paper.say()
    unchecked = unchecked_of(picture.matrix)
    columns = [Column("CELL"), Column("TASKS", right=True), Column("")]
    rows = [Row([mark(cell_look(cell)), str(n), _aside(unchecked[cell])]) for cell, n in counts]
    if rows:
        paper.table(columns, rows)


def _aside(unchecked: int) -> Ink:
    loud = tint(LIGHTS[Light.AMBER][1])
    return Ink(f"{unchecked} accepted unchecked" if unchecked else "", loud)


def _draw_live(paper: Paper, picture: Picture) -> None:
    paper.heading("at work")
    if not picture.live:
        paper.say("nothing runs")
        return
    heads = ("ACTIVITY", "FOR", "ATTEMPT", "AGENT", "TASK")
    columns = [*(Column(head) for head in heads), Column("TITLE", grows=True)]
    paper.table(columns, [_live_row(live, picture.at) for live in picture.live])


def _live_row(live: LiveRun, now: int) -> Row:
    seen = activity_of(live, now)
    look = activity_look(seen.pace)._replace(word=seen.words)
    lasts = age_words(max(0, now - live.run.created_at) / 1e6)
    who = live.agent_name or live.agent or "-"
    return Row([mark(look), lasts, str(live.run.attempt), who, live.task, live.title])
