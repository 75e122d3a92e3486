"""`agents`, `send`, `resume`: conversations that outlive their runs, and how they go on.

Whether an agent may be written to or woken is the record's to say; here it is only asked.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import click
import msgspec

from truegreen.contract import parse_duration
from truegreen.errors import InvalidInput, Refused
from truegreen.faces.axes import LIGHTS, Look
from truegreen.faces.cli.frame import Frame, Word, command, family, offered
from truegreen.faces.cli.paper import Column, Ink, Paper, Row, mark
from truegreen.faces.cli.portrait import calloff, show_agent, whole_agent
from truegreen.faces.documents import Document, agent_document
from truegreen.faces.times import instant, local
from truegreen.facts import AgentKind, WakeCause
from truegreen.model import AgentStatus, Disposition, Light
from truegreen.record.ledger.agents import BODY_LIMIT, wakeable
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE
from truegreen.record.ledger.wakes import AtHand
from truegreen.record.rows import Agent, Message, Wake

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
        agents = _families(ledger.agents(status, limit=limit))
        known = ledger.at_hand(agents)
    documents = [{**agent_document(a), **known[a.key]._asdict()} for a in agents]
    frame.give({"agents": documents}, lambda paper: _draw_pool(paper, agents, known))


def _families(agents: list[Agent]) -> list[Agent]:
    """What lives inside of a conversation stands below it, where both are listed."""
    listed = {agent.key for agent in agents}
    inside: dict[int, list[Agent]] = {}
    for agent in agents:
        if agent.parent_key in listed and agent.kind is not AgentKind.AGENT:
            inside.setdefault(agent.parent_key, []).append(agent)
    below = {child.key for children in inside.values() for child in children}
    return [
        each
        for agent in agents
        if agent.key not in below
        for each in (agent, *inside.get(agent.key, ()))
    ]


def _draw_pool(paper: Paper, agents: list[Agent], known: dict[int, AtHand]) -> None:
    if not agents:
        paper.say("no agents")
        return
    heads = [Column("AGENT"), Column("STATUS"), Column("NAME")]
    more = [Column("KIND", aside=True), Column("LAST TASK", aside=True)]
    more += [Column(head, right=True, aside=True) for head in ("UNREAD", "WAKES")]
    more += [Column("CHANGED", aside=True), Column("SESSION", grows=True, aside=True)]
    columns = [*heads, *more]
    rows = [_pool_row(agent, known[agent.key]) for agent in agents]
    paper.table(columns, rows)


def _pool_row(agent: Agent, known: AtHand) -> Row:
    inside = agent.kind is not AgentKind.AGENT
    return Row(
        [
            f"  {agent.id}" if inside else agent.id,
            mark(_look(agent.status)),
            agent.name,
            agent.kind,
            known.task or "-",
            str(known.unread or "-"),
            str(known.wakes or "-"),
            local(agent.updated_at),
            agent.session or "-",
        ]
    )


def _look(status: AgentStatus) -> Look:
    glyph, rgb = LIGHTS[_LOOKS[status]]
    return Look(glyph, status, rgb)


agents = family(
    "agents",
    "List the agents that are known, newest first; `show` tells all about one.",
    [show_agent, calloff, adapters],
    "truegreen agents                    conversations that outlive their runs",
    "truegreen agents --status completed",
    "truegreen agents show agt_0c3k9     its work, messages and wake-ups",
    "truegreen agents calloff agt_0c3k9 --reason 'it is dealt with'",
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

# --- send


@command(
    "send",
    "truegreen send agt_0c3k9 'the parser lives in src/parse now'",
    "truegreen send agt_0c3k9 'please look at this again' --wake     for the scheduler to wake it",
    "truegreen send agt_0c3k9 - < notes.md                           from standard input",
)
@click.argument("agent", shell_complete=offered("agents"))
@click.argument("text")
@click.option("--wake", is_flag=True, help="Also wake the agent to read it, by the scheduler.")
@click.option("--key", metavar="K", help="The same key again leaves no second message.")
def send(frame: Frame, agent: str, text: str, key: str | None, *, wake: bool) -> int:
    """Leave a message for an AGENT; it is data and starts nothing, unless --wake is given.

    One that runs is given it at its next stop; any other when it is woken. A terminated one gets
    none.
    """
    body = _standard_input() if text == "-" else text
    if not body.strip():
        raise InvalidInput("there is nothing to send: the message is empty")
    with frame.acting() as (ledger, me):
        agent_id = whole_agent(ledger, agent)
        sent = ledger.send(agent_id, body, actor=me, key=key, wake=wake)
    document = _message_document(sent, agent_id, woken=wake)
    frame.give(document, lambda paper: _draw_sent(paper, document))
    return 0


def _standard_input() -> str:
    data = sys.stdin.buffer.read(BODY_LIMIT + 1)
    if len(data) > BODY_LIMIT:
        raise InvalidInput(f"the message has more than {BODY_LIMIT} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInput("the message is not valid UTF-8") from None


def _message_document(sent: Message, agent: str, *, woken: bool) -> Document:
    return {
        "id": sent.id,
        "agent": agent,
        "disposition": sent.disposition,
        "wakes": woken and sent.disposition is not Disposition.DUPLICATE,
        "at": instant(sent.at),
    }


_BECAME = {
    Disposition.DELIVERED: "it is given to the agent at its next stop",
    Disposition.QUEUED: "it waits until the agent is resumed",
    Disposition.DUPLICATE: "it was sent before; nothing changed",
}


def _draw_sent(paper: Paper, document: Document) -> None:
    words = _BECAME.get(document["disposition"], "")
    if document["wakes"]:
        words = "the scheduler wakes the agent to read it"
    paper.say(Ink(document["id"], "bold"), f"  {document['disposition']}: {words}")


# --- resume


@command(
    "resume",
    "truegreen resume agt_0c3k9 --message 'the review asks for a test'    exit status as run",
    "truegreen resume agt_0c3k9 --message 'look again' --in 15m           for the scheduler",
    "truegreen resume agt_0c3k9 --at 2026-03-01T06:00:00+01:00",
)
@click.argument("agent", shell_complete=offered("agents"))
@click.option(
    "--message", default="", metavar="TEXT", help="What it is told; - reads standard input."
)
@click.option("--in", "within", metavar="TIME", help="Later, by the scheduler: 90s, 15m, 2h.")
@click.option("--at", metavar="WHEN", help="Later, by the scheduler: 2026-03-01T06:00, here.")
@click.option("--no-wait", is_flag=True, help="Carry it out in the background; says its task.")
def resume(
    frame: Frame, agent: str, message: str, within: str | None, at: str | None, *, no_wait: bool
) -> int:
    """Let an AGENT go on in its own conversation, in the same work tree, here and now.

    The task that it left standing goes on; after one that succeeded, a task of its own follows.
    Refused for ever once it is terminated.
    """
    from truegreen.faces.cli.run import carry_out, in_background  # noqa: PLC0415 - loads slowly
    from truegreen.supervisor.holder import holder_name  # noqa: PLC0415 - as above
    from truegreen.supervisor.roster import obstacle  # noqa: PLC0415 - as above

    config = frame.load()
    seconds = _later(within, at)
    message = _standard_input() if message == "-" else message
    with frame.acting() as (ledger, me):
        agent_id = whole_agent(ledger, agent)
        wakeable(ledger.agent(agent_id))
        wrong = obstacle(ledger, agent_id)
        if wrong:
            raise InvalidInput(f"{agent_id} can't be resumed: {wrong}", agent=agent_id)
        cause = WakeCause.SCHEDULE if seconds is not None else WakeCause.RESUME
        wake = ledger.arm(agent_id, message, actor=me, cause=cause, after_seconds=seconds or 0.0)
        if seconds is not None:
            frame.give(_wake_document(wake, agent_id), lambda paper: _draw_armed(paper, wake))
            return 0
        try:
            task = ledger.wake(wake.id, holder=holder_name())
        except Refused as refused:
            ledger.call_off(wake.id, refused.message)
            raise
        carried = in_background if no_wait else carry_out
        return carried(frame, config, ledger, task.id)


def _later(within: str | None, at: str | None) -> float | None:
    """How many seconds from now; nothing where it is now."""
    if within is not None and at is not None:
        raise click.UsageError("--in and --at say the same thing: give one of them.")
    if within is not None:
        return parse_duration(within, "--in") / 1e6
    if at is None:
        return None
    from datetime import datetime  # noqa: PLC0415 - only this option needs it

    try:
        seconds = datetime.fromisoformat(at).astimezone().timestamp() - time.time()
    except (ValueError, OverflowError):
        message = f"--at: {at!r} is no time; write it like 2026-03-01T06:00:00+01:00"
        raise InvalidInput(message) from None
    if seconds < 0:
        raise InvalidInput(f"--at: {at} is over; leave it out to resume the agent now")
    return seconds


def _wake_document(wake: Wake, agent: str) -> Document:
    return {
        "id": wake.id,
        "agent": agent,
        "state": wake.state,
        "cause": wake.cause,
        "due_at": instant(wake.due_at),
    }


def _draw_armed(paper: Paper, wake: Wake) -> None:
    paper.say(
        Ink(wake.id, "bold"), f"  armed for {local(wake.due_at)}; truegreen scheduler wakes it"
    )


COMMANDS = {"agents": agents, "send": send, "resume": resume}
