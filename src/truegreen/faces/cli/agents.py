"""`agents`: the conversations that outlive their runs, and the clients that this machine has."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from truegreen.faces.axes import LIGHTS, Look
from truegreen.faces.cli.frame import Frame, Word, command, family
from truegreen.faces.cli.paper import Column, Ink, Paper, Row, mark
from truegreen.faces.documents import agent_document
from truegreen.faces.times import local
from truegreen.model import AgentStatus, Light
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE
from truegreen.record.rows import Agent

_LOOKS = {
    AgentStatus.PENDING: Light.GREY,
    AgentStatus.IN_PROGRESS: Light.BLUE,
    AgentStatus.COMPLETED: Light.GREY,
    AgentStatus.ERROR: Light.RED,
    AgentStatus.TERMINATED: Light.GREY,
}
"""An agent is never green: it says nothing about any work."""


@command(
    "adapters",
    "truegreen agents adapters           which agent clients are installed here",
    "truegreen agents adapters --json",
)
def adapters(frame: Frame) -> None:
    """List the adapters: which client each speaks to, and the version that was found here."""
    from truegreen.work.agents import found_versions  # noqa: PLC0415 - it starts programs

    found = msgspec.to_builtins(found_versions())
    frame.give({"adapters": found}, lambda paper: _draw_adapters(paper, found))


def _draw_adapters(paper: Paper, found: list[dict[str, Any]]) -> None:
    heads = (Column("ADAPTER"), Column("PROGRAM"), Column("VERSION"))
    columns = [*heads, Column("PATH", grows=True), Column("WHAT IT SEES", grows=True)]
    rows = [
        Row(
            [
                row["adapter"],
                row["program"] or Ink("any command", "dim"),
                row["version"] or "-",
                row["path"] or Ink("not found" if row["program"] else "-", "dim"),
                ", ".join(row["can"]),
            ]
        )
        for row in found
    ]
    paper.table(columns, rows)


@click.pass_context
def _pool(context: click.Context, /, status: AgentStatus | None, limit: int) -> None:
    if context.invoked_subcommand:
        return
    frame = context.ensure_object(Frame)
    with frame.ledger() as ledger:
        agents = ledger.agents(status, limit=limit)
    documents = [agent_document(agent) for agent in agents]
    frame.give({"agents": documents}, lambda paper: _draw_pool(paper, agents))


def _draw_pool(paper: Paper, agents: list[Agent]) -> None:
    if not agents:
        paper.say("no agents")
        return
    heads = [Column("AGENT"), Column("STATUS"), Column("NAME"), Column("CHANGED")]
    columns = [*heads, Column("SESSION", grows=True)]
    rows = [
        Row([a.id, mark(_look(a.status)), a.name, local(a.updated_at), a.session or "-"])
        for a in agents
    ]
    paper.table(columns, rows)


def _look(status: AgentStatus) -> Look:
    glyph, rgb = LIGHTS[_LOOKS[status]]
    return Look(glyph, status, rgb)


agents = family(
    "agents",
    "List the agents that are known, newest first; `adapters` lists the clients found here.",
    [adapters],
    "truegreen agents                    conversations that outlive their runs",
    "truegreen agents --status completed",
    "truegreen agents adapters           which agent clients are installed here",
)
agents.invoke_without_command = True
agents.callback = _pool
agents.params[:0] = [
    click.Option(["--status"], type=Word(AgentStatus), metavar="S", help="Only this agent status."),
    click.Option(
        ["--limit"],
        type=click.IntRange(1, LONGEST_PAGE),
        default=PAGE,
        show_default=True,
        metavar="N",
        help="At most so many.",
    ),
]

COMMANDS = {"agents": agents}
