"""Agents over HTTP: conversations that outlive their runs, how they go on, and how they end."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from truegreen.faces.cli.portrait import portrait_document
from truegreen.faces.documents import Document, agent_document
from truegreen.faces.web import outer_shapes as shapes
from truegreen.faces.web.api.taking import Ending, Limit, Taken, Text
from truegreen.faces.web.routes import API, LEADERS, READERS, Visit, route
from truegreen.faces.web.shapes import Termination
from truegreen.model import AgentStatus
from truegreen.record.ledger.fencing import Whom
from truegreen.record.ledger.portraits import portrait
from truegreen.record.ledger.reads import PAGE

_AGENT = f"{API}/agents/{{agent}}"
_YEAR = 366 * 86400
_NEWEST = 1 << 62


class AgentQuery(Taken, frozen=True):
    """Which agents."""

    status: AgentStatus | None = None
    limit: Limit = PAGE
    after: Annotated[str, Meta(pattern=r"^[0-9]{1,18}$")] | None = None


Told = Annotated[str, Meta(min_length=1, max_length=65536)]


class Message(Taken, frozen=True):
    """Something to tell an agent: `message`, which may be called `text` as well."""

    message: Told | None = None
    text: Told | None = None
    wake: bool = False

    def __post_init__(self) -> None:
        """There is one message, whatever it is called."""
        if (self.message is None) == (self.text is None):
            raise ValueError("give the message, once: as message (text is the same)")


class Resume(Taken, frozen=True):
    """What an agent is told when it goes on, and when that is."""

    message: Text = ""
    after_seconds: Annotated[float, Meta(ge=0, le=_YEAR)] = 0.0


@route("GET", f"{API}/agents", READERS, query=AgentQuery, answers=shapes.AgentPage)
def list_agents(visit: Visit, query: AgentQuery) -> Document:
    """Agents, newest first; finished ones stay listed."""
    ledger = visit.house.ledger
    before = int(query.after) if query.after else _NEWEST
    found = ledger.agents(query.status, limit=query.limit, before=before)
    known = ledger.at_hand(found)
    more = len(found) == query.limit
    return {
        "agents": [{**agent_document(each), **known[each.key]._asdict()} for each in found],
        "after": str(found[-1].key) if more else None,
    }


@route("GET", _AGENT, READERS, answers=shapes.Portrait)
def show(visit: Visit, agent: str) -> Document:
    """One agent: what lives inside of it, its runs, its messages and its wake-ups."""
    ledger = visit.house.ledger
    return portrait_document(portrait(ledger.store, ledger.find("agt", agent)))


@route("POST", f"{_AGENT}/send", LEADERS, body=Message, answers=shapes.Sent)
def send(visit: Visit, agent: str, body: Message) -> Document:
    """Leave a message for an agent; it wakes nobody unless asked to."""
    deeds, told = visit.house.deeds, body.message or body.text or ""
    return deeds.send(agent, told, actor=visit.actor, wake=body.wake, key=visit.key)


@route("POST", f"{_AGENT}/resume", LEADERS, body=Resume, answers=shapes.Wake)
def resume(visit: Visit, agent: str, body: Resume) -> Document:
    """Arm a wake-up for an agent; a scheduler lets it go on when it is due."""
    return visit.house.deeds.resume(
        agent,
        actor=visit.actor,
        message=body.message,
        after_seconds=body.after_seconds,
        key=visit.key,
    )


@route("POST", f"{_AGENT}/terminate", LEADERS, body=Ending, answers=Termination)
def terminate(visit: Visit, agent: str, body: Ending) -> Document:
    """End an agent for ever, with its descendants and all that they run. Again changes nothing."""
    whom = Whom("agent", visit.house.ledger.find("agt", agent))
    return visit.house.deeds.terminate(
        whom, actor=visit.actor, reason=body.reason, dry_run=body.dry_run
    )
