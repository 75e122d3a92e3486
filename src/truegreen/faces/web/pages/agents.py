"""The agents as a page: conversations that outlive their runs, and how far the word of each goes.

Terminated ones stay listed. An agent is never green: it says nothing about any work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from truegreen.faces.documents import Document, agent_document
from truegreen.faces.web.house import House
from truegreen.faces.web.pages.rendering import fragment, now, page, shown_to
from truegreen.faces.web.pages.streams import live
from truegreen.faces.web.routes import READERS, Visit, route
from truegreen.model import AgentStatus, Light, Role
from truegreen.outlets.audit.report import Tally
from truegreen.record.ledger.reads import PAGE
from truegreen.record.rows import Agent

LIGHTS = {
    AgentStatus.PENDING: Light.GREY,
    AgentStatus.IN_PROGRESS: Light.BLUE,
    AgentStatus.COMPLETED: Light.GREY,
    AgentStatus.ERROR: Light.RED,
    AgentStatus.TERMINATED: Light.GREY,
}
MEANINGS = {
    AgentStatus.PENDING: "registered, has not run yet",
    AgentStatus.IN_PROGRESS: "a run of it is under way",
    AgentStatus.COMPLETED: "its last run has ended; it can be woken",
    AgentStatus.ERROR: "its last run broke; it can be woken",
    AgentStatus.TERMINATED: "ended for ever; listed, and never woken",
}
_CLAIMS = "claims"
_OUTCOMES = frozenset(Tally.__struct_fields__)
_FIRST = 1 << 62
_NAMES = 12


class Shown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which agents."""

    status: AgentStatus | None = None
    before: Annotated[int, Meta(ge=1, le=_FIRST)] | None = None


@route("GET", "/agents", READERS, query=Shown, media="text/html")
def agents(visit: Visit, query: Shown) -> Response:
    """The pool of agents, newest first."""
    shown = view(visit.house, visit.actor.role, query)
    return page(visit, "agents.html", section="agents", **shown)


@live("agents")
def fragment_agents(house: House, role: Role, subject: str = "") -> str:
    """The part of the page that changes; the text names a status, or nothing."""
    known = subject if subject in set(AgentStatus) else None
    query = Shown(AgentStatus(known) if known else None)
    return fragment("agents_live.html", **view(house, role, query))


def view(house: House, role: Role, query: Shown) -> Document:
    """A page of agents, as a role sees them."""
    ledger = house.ledger
    found = ledger.agents(query.status, limit=PAGE + 1, before=query.before or _FIRST)
    listed = found[:PAGE]
    known = ledger.at_hand(listed)
    told = ledger.honesty(listed)
    rows = [
        {**_row(agent, tally(told.get(agent.definition, {}))), **known[agent.key]._asdict()}
        for agent in listed
    ]
    return {
        "agents": shown_to(role, rows),
        "names": shown_to(role, _by_name(tallies(ledger.meters()))),
        "choices": [(status, MEANINGS[status]) for status in AgentStatus],
        "wanted": query.status,
        "is_first": query.before is None,
        "before": listed[-1].key if len(found) > PAGE else None,
        "rendered": now(),
    }


def _by_name(honesty: dict[str, Tally]) -> list[Document]:
    """Whose word was checked: who was contradicted most stands first."""
    ranked = sorted(honesty.items(), key=lambda each: (-each[1].contradicted, each[0]))
    return [{"name": name, **honesty_document(said)} for name, said in ranked[:_NAMES]]


def _row(agent: Agent, said: Tally) -> Document:
    return {
        **agent_document(agent),
        "light": LIGHTS[agent.status],
        "meaning": MEANINGS[agent.status],
        "honesty": honesty_document(said),
    }


def tallies(meters: dict[tuple[str, str], int]) -> dict[str, Tally]:
    """What became of statements, by the name of the agent that made them."""
    counts: dict[str, dict[str, int]] = {}
    for (meter, label), total in meters.items():
        outcome, _, name = label.partition("|")
        if meter == _CLAIMS:
            counts.setdefault(name, {})[outcome] = total
    return {name: tally(given) for name, given in counts.items()}


def tally(told: Mapping[str, int]) -> Tally:
    """What became of some statements, by outcome; a word that nobody knows is no statement."""
    return Tally(**{outcome: n for outcome, n in told.items() if outcome in _OUTCOMES})


def honesty_document(said: Tally) -> Document:
    """How many statements were true, of those that could be checked; a share, and its numbers."""
    rate = said.honesty
    return {
        "share": rate.share,
        "confirmed": rate.count,
        "of": rate.of,
        "contradicted": said.contradicted,
        "unverifiable": said.unverifiable,
    }
