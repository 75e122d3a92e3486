"""One agent as a page: what it did, what it was told, when it wakes, and its end.

Whether it may be written to or woken is the record's to say. To terminate it is for ever, so its
name is asked for first.
"""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from truegreen.contract import parse_duration
from truegreen.errors import InvalidInput
from truegreen.faces.audit_words import counted
from truegreen.faces.documents import Document, agent_document
from truegreen.faces.web.binding import once
from truegreen.faces.web.house import House
from truegreen.faces.web.pages import agents
from truegreen.faces.web.pages.rendering import acts, back, fragment, now, page, shown_to
from truegreen.faces.web.pages.streams import live
from truegreen.faces.web.routes import OPERATORS, READERS, Visit, route
from truegreen.facts import Actor, WakeState
from truegreen.model import AgentStatus, Role
from truegreen.record.ledger.fencing import Whom
from truegreen.record.ledger.portraits import Letter, Portrait, portrait
from truegreen.record.rows import Wake

_SHOWN = 50
_TYPED = 6
_HTML = "text/html"


@route("GET", "/agents/{agent}", READERS, media=_HTML)
def agent(visit: Visit, agent: str) -> Response:
    """One agent and everything around it."""
    whole = visit.house.ledger.find("agt", agent)
    shown = view(visit.house, visit.actor.role, whole)
    return page(visit, "agent.html", section="agents", **shown)


@live("agent")
def fragment_agent(house: House, role: Role, subject: str = "") -> str:
    """The part of the page that changes; the text is the agent's id."""
    return fragment("agent_live.html", **view(house, role, subject))


def view(house: House, role: Role, whole: str) -> Document:
    """An agent, as a role sees it."""
    found = portrait(house.ledger.store, whole, limit=_SHOWN)
    told = house.ledger.honesty([found.agent]).get(found.agent.definition, {})
    said = agents.tally(told)
    lives = found.agent.status is not AgentStatus.TERMINATED
    return {
        "agent": shown_to(role, {**_portrait(found), "honesty": agents.honesty_document(said)}),
        "lives": lives,
        "may": acts(Actor(role, "")),
        "most": _SHOWN,
        "rendered": now(),
    }


def _portrait(found: Portrait) -> Document:
    status = found.agent.status
    return {
        **agent_document(found.agent),
        "light": agents.LIGHTS[status],
        "meaning": agents.MEANINGS[status],
        "parent": found.parent,
        "registered_by": found.agent.registered_by,
        "children": [
            {**agent_document(child), "light": agents.LIGHTS[child.status]}
            for child in found.children
        ],
        "runs": [run._asdict() for run in found.work],
        "messages": [_message(letter) for letter in found.letters],
        "wakes": [_wake(wake) for wake in found.wakes],
        "form_key": _form_key(found),
    }


def _form_key(found: Portrait) -> str:
    """Another one as soon as the agent was written to, was to be woken, or has done anything."""
    newest = (
        *(letter.message.id for letter in found.letters[:1]),
        *(w.id for w in found.wakes[:1]),
    )
    return ".".join([str(found.agent.updated_at), *newest])


def _message(letter: Letter) -> Document:
    message = letter.message
    return {
        "id": message.id,
        "sender": message.sender,
        "at": message.at,
        "given_to": letter.run,
        "given_at": letter.given_at,
        "body": message.body,
    }


def _wake(wake: Wake) -> Document:
    return {
        "id": wake.id,
        "cause": wake.cause,
        "state": wake.state,
        "armed": wake.state is WakeState.ARMED,
        "due_at": wake.due_at,
        "armed_by": wake.armed_by,
        "why": wake.why,
        "run": wake.run_id or None,
        "message": wake.body,
    }


# --- what is done


class Letters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message for an agent."""

    text: str = ""
    wake: str = ""
    key: str = ""


class Resuming(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When an agent goes on, and with what."""

    message: str = ""
    after: str = ""
    """`90s`, `15m`, `2h`; nothing is now."""
    key: str = ""


class CalledOff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A wake-up that is not wanted any more."""

    wake: str
    reason: str = ""


class Ending(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The end of an agent, confirmed by the end of its id."""

    confirm: str = ""
    reason: str = ""


def _here(agent: str) -> str:
    return f"/agents/{agent}"


@route("POST", "/agents/{agent}/send", OPERATORS, body=Letters, media=_HTML)
def send(visit: Visit, agent: str, body: Letters) -> Response:
    """Leave a message; it wakes nobody unless asked to."""
    sent = visit.house.deeds.send(
        agent, body.text, actor=visit.actor, wake=bool(body.wake), key=once(visit, body)
    )
    words = "the agent is woken to read it" if sent["wakes"] else _BECAME[sent["disposition"]]
    return back(visit, _here(sent["agent"]), f"The message is left: {words}")


_BECAME = {
    "delivered": "it is given to the agent at its next stop",
    "queued_for_resume": "it waits until the agent is resumed",
    "duplicate": "it was sent before; nothing changed",
}


@route("POST", "/agents/{agent}/resume", OPERATORS, body=Resuming, media=_HTML)
def resume(visit: Visit, agent: str, body: Resuming) -> Response:
    """Arm a wake-up; a scheduler lets the agent go on when it is due."""
    seconds = parse_duration(body.after, "after") / 1e6 if body.after else 0.0
    wake = visit.house.deeds.resume(
        agent,
        actor=visit.actor,
        message=body.message,
        after_seconds=seconds,
        key=once(visit, body),
    )
    return back(visit, _here(wake["agent"]), "A wake-up is armed; a scheduler carries it out")


@route("POST", "/agents/{agent}/calloff", OPERATORS, body=CalledOff, media=_HTML)
def call_off(visit: Visit, agent: str, body: CalledOff) -> Response:
    """Say no to a wake-up that is still armed."""
    ledger = visit.house.ledger
    why = body.reason.strip() or "not wanted any more"
    ledger.call_off(ledger.find("wak", body.wake), why, actor=visit.actor)
    return back(visit, _here(ledger.find("agt", agent)), "The wake-up is called off")


@route("POST", "/agents/{agent}/terminate", OPERATORS, body=Ending, media=_HTML)
def terminate(visit: Visit, agent: str, body: Ending) -> Response:
    """End an agent for ever, with all that it runs; the end of its id confirms it."""
    whole = visit.house.ledger.find("agt", agent)
    if body.confirm != whole[-_TYPED:]:
        message = f"type {whole[-_TYPED:]}, the end of its id, to terminate {whole}"
        raise InvalidInput(message, path="confirm")
    ended = visit.house.deeds.terminate(Whom("agent", whole), actor=visit.actor, reason=body.reason)
    return back(visit, _here(whole), ended_words(ended))


def ended_words(ended: Document) -> str:
    """What a termination did."""
    if ended["already_terminated"]:
        return "It was terminated before; nothing changed"
    killed = counted(len(ended["killed"]), "process", "processes")
    words = f"Terminated for ever: {ended['outcome']}, {killed} ended"
    if ended["complete"]:
        return words
    left = len(ended["survivors"]) + len(ended["unconfirmed"]) + len(ended["elsewhere"])
    return f"{words}; {left} not yet proven to be gone: terminate it again to look"
