"""`agents show`, `agents calloff`: one agent with its work and its post, and no to a wake-up.

What may still be called off is the record's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from truegreen.errors import InvalidInput, NotFound
from truegreen.faces.cli.frame import Frame, command, offered
from truegreen.faces.cli.paper import Ink, Paper
from truegreen.faces.documents import Document, agent_document
from truegreen.faces.times import instant, local
from truegreen.facts import WakeState
from truegreen.record.ledger.portraits import Letter, Portrait, portrait

if TYPE_CHECKING:
    from truegreen.record.ledger import Ledger
    from truegreen.record.rows import Wake

_SHOWN = 20
_LINE = 100


def whole_agent(ledger: Ledger, given: str) -> str:
    """The agent that is meant: by id or its beginning, by session, or by name."""
    try:
        whom = ledger.whom(given)
    except NotFound:
        raise NotFound(f"no agent {given}", kind="agent") from None
    if whom.kind != "agent":
        message = f"{given} is a task, not an agent; truegreen show {whom.id} names its agents"
        raise InvalidInput(message, task=whom.id)
    return whom.id


@command(
    "show",
    "truegreen agents show agt_0c3k9           its work, messages and wake-ups",
    "truegreen agents show agt_0c3k9 --json",
)
@click.argument("agent", shell_complete=offered("agents"))
def show_agent(frame: Frame, agent: str) -> None:
    """Show one AGENT: what lives inside of it, its runs, its messages and its wake-ups."""
    with frame.ledger() as ledger:
        found = portrait(ledger.store, whole_agent(ledger, agent))
    document = portrait_document(found)
    frame.give(document, lambda paper: _draw(paper, document))


def portrait_document(found: Portrait) -> Document:
    """An agent with everything around it, for programs."""
    return {
        **agent_document(found.agent),
        "parent": found.parent,
        "registered_by": found.agent.registered_by,
        "children": [agent_document(child) for child in found.children],
        "runs": [{**run._asdict(), "at": instant(run.at)} for run in found.work],
        "messages": [_message(letter) for letter in found.letters],
        "wakes": [_wake(wake) for wake in found.wakes],
    }


def _message(letter: Letter) -> Document:
    message = letter.message
    return {
        "id": message.id,
        "sender": message.sender,
        "at": instant(message.at),
        "given_to": letter.run,
        "given_at": instant(letter.given_at),
        "body": message.body,
    }


def _wake(wake: Wake) -> Document:
    return {
        "id": wake.id,
        "cause": wake.cause,
        "state": wake.state,
        "due_at": instant(wake.due_at),
        "armed_by": wake.armed_by,
        "why": wake.why,
        "run": wake.run_id or None,
        "message": wake.body,
    }


def _draw(paper: Paper, document: Document) -> None:
    parts = (document["kind"], document["name"], document["status"], document["session"] or "")
    paper.say(Ink(document["id"], "bold"), "  ", " · ".join(part for part in parts if part))
    if document["parent"]:
        paper.say(f"  inside of {document['parent']}")
    _draw_part(paper, "Inside of it", document["children"], _child_line)
    _draw_part(paper, "Runs", document["runs"], _run_line)
    _draw_part(paper, "Messages", document["messages"], _message_line)
    _draw_part(paper, "Wake-ups", document["wakes"], _wake_line)


def _draw_part(paper: Paper, title: str, entries: list[dict[str, Any]], line: Any) -> None:
    paper.heading(title, "" if entries else "  none")
    for entry in entries[:_SHOWN]:
        label, text = line(entry)
        paper.hanging([f"  {label}  "], text)
    if len(entries) > _SHOWN:
        paper.say(Ink(f"  … and {len(entries) - _SHOWN} more; --json names them all", "dim"))


def _child_line(child: Document) -> tuple[str, str]:
    return child["id"], f"{child['kind']} {child['name']}, {child['status']}"


def _run_line(run: Document) -> tuple[str, str]:
    return run["run"], f"{run['run_status']}; {run['task']} {run['task_status']}: {run['title']}"


def _message_line(message: Document) -> tuple[str, str]:
    given = f"given to {message['given_to']}" if message["given_to"] else "unread"
    line = _first_line(message["body"])
    return message["id"], f"{message['at']} by {message['sender']}, {given}: {line}"


def _wake_line(wake: Document) -> tuple[str, str]:
    why = f" ({wake['why']})" if wake["why"] else f" by {wake['run']}" if wake["run"] else ""
    line = _first_line(wake["message"])
    words = f"{wake['state']}{why}, {wake['cause']} of {wake['armed_by']}"
    return wake["id"], f"{words}, due {wake['due_at']}{f': {line}' if line else ''}"


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    more = len(lines) > 1 or len(lines[0] if lines else "") > _LINE
    return (lines[0][:_LINE] if lines else "") + (" …" if more else "")


@command(
    "calloff",
    "truegreen agents calloff wak_0c3k9 --reason 'not needed any more'    one wake-up",
    "truegreen agents calloff agt_0c3k9 --reason 'it is dealt with'       all that are armed",
)
@click.argument("whom", metavar="WAKE|AGENT", shell_complete=offered("agents"))
@click.option("--reason", required=True, metavar="TEXT", help="Why, for the history.")
def calloff(frame: Frame, whom: str, reason: str) -> None:
    """Call off a wake-up that is still armed, or all of an AGENT. Its messages stay unread."""
    with frame.acting() as (ledger, me):
        if whom.startswith("wak_"):
            wanted = [ledger.find("wak", whom)]
        else:
            found = portrait(ledger.store, whole_agent(ledger, whom))
            wanted = [wake.id for wake in found.wakes if wake.state is WakeState.ARMED]
        done = [ledger.call_off(wake, reason, actor=me) for wake in wanted]
    document = {"called_off": [_wake(wake) for wake in done]}
    frame.give(document, lambda paper: _draw_called_off(paper, done))


def _draw_called_off(paper: Paper, done: list[Wake]) -> None:
    if not done:
        paper.say("no wake-up is armed; nothing changed")
    for wake in done:
        since = local(wake.updated_at)
        paper.say(Ink(wake.id, "bold"), f"  {wake.state} since {since}: {wake.why}")
