"""Runs over HTTP: what became of one, and what its own agent may say about it and hand in.

No word from here decides anything about the work: checks do.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import anyio.to_thread
import msgspec
from msgspec import Meta
from starlette.responses import Response, StreamingResponse

from truegreen.doors.store_room import entered, handed_in, receiving, room_for, shelves
from truegreen.errors import AlreadyDeclared
from truegreen.faces.declaring import declared
from truegreen.faces.documents import Document, run_document
from truegreen.faces.times import instant
from truegreen.faces.web import shapes
from truegreen.faces.web.api.lasting import while_welcome
from truegreen.faces.web.api.sending import chunks
from truegreen.faces.web.api.taking import Many, Taken, Word, Words
from truegreen.faces.web.api.tasks import Announcement
from truegreen.faces.web.routes import API, DOERS, READERS, Visit, route
from truegreen.facts import Claim, Statement, Ticket
from truegreen.model import ClaimKind, TaskStatus
from truegreen.record.rows import Artifact

_RUN = f"{API}/runs/{{run}}"
_OCTETS = "application/octet-stream"


class Said(Taken, frozen=True):
    """One checkable sentence of a claim."""

    text: Words
    kind: Word = ""


_Counted = Annotated[int, Meta(ge=0)]


class Tests(Taken, frozen=True):
    """Tests as the agent counted them."""

    passed: _Counted
    failed: _Counted = 0
    skipped: _Counted = 0


class Declaration(Taken, frozen=True):
    """What an agent says about its work; tests, evidence and detail as the command takes them."""

    kind: ClaimKind
    reason: Words = ""
    statements: Annotated[tuple[Said, ...], Meta(max_length=200)] = ()
    extra: dict[str, Any] = msgspec.field(default_factory=dict)
    tests: Tests | None = None
    evidence: Many = ()
    detail: Word | None = None

    def claim(self) -> Claim:
        """What is kept of it."""
        counts = msgspec.structs.asdict(self.tests) if self.tests else None
        more = declared(
            self.kind, self.reason, tests=counts, evidence=self.evidence, detail=self.detail
        )
        said = [(each.text, each.kind) for each in self.statements]
        said += [(each["text"], each["kind"]) for each in more["statements"]]
        return Claim(
            kind=self.kind,
            reason=self.reason,
            statements=tuple(Statement(*each) for each in said),
            extra={**more["extra"], **self.extra},
            source="http",
        )


class Question(Taken, frozen=True):
    """What an agent wants to do, and may not without a person's yes."""

    action: Annotated[str, Meta(min_length=1, max_length=8000)]


class ArtifactQuery(Taken, frozen=True):
    """What the artifact is called."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]


# --- reading


@route("GET", _RUN, READERS | DOERS, own="run", answers=shapes.Run)
def show(visit: Visit, run: str) -> Document:
    """One attempt, with what was claimed and found about it."""
    ledger = visit.house.ledger
    found, task = ledger.run(ledger.find("run", run))
    dossier = ledger.dossier(task)
    agents = {agent.key: agent for agent in dossier.agents}
    return {**run_document(found, dossier, agents), "task": task}


@route("GET", f"{_RUN}/artifacts", READERS | DOERS, own="run", answers=shapes.Artifacts)
def artifacts(visit: Visit, run: str) -> Document:
    """What a run handed in, oldest first."""
    ledger = visit.house.ledger
    whole = ledger.find("run", run)
    return {"artifacts": [artifact_document(each) for each in ledger.artifacts(whole)]}


@route("GET", f"{_RUN}/artifacts/{{sha256}}", READERS, media=_OCTETS)
def artifact(visit: Visit, run: str, sha256: str) -> Response:
    """The bytes of something that a run handed in, by their digest; to be saved, never shown."""
    house = visit.house
    whole = house.ledger.find("run", run)
    shelf = shelves(house.config.state_dir)
    found, file = handed_in(house.ledger, shelf, whole, sha256)
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}",
        "Content-Length": str(found.size),
        "ETag": f'"{found.sha256}"',
        "Cache-Control": "private, no-cache",
    }
    return StreamingResponse(chunks(file, found.size), headers=headers, media_type=_OCTETS)


# --- the agent's own


@route("POST", f"{_RUN}/declare", DOERS, own="run", body=Declaration, answers=shapes.Declared)
def declare(visit: Visit, run: str, body: Declaration) -> Document:
    """Declare the work done, failed, blocked or a no-op. The first word counts; checks decide."""
    ledger, ticket = visit.house.ledger, _ticket(visit, run)
    claim = body.claim()
    try:
        ledger.declare(ticket, claim, actor=visit.actor, key=visit.key)
    except AlreadyDeclared:
        # Who is sent back in says the same again at its end; only another word is refused.
        first = ledger.claim(run)
        if first is None or first.kind is not claim.kind:
            raise
    return {**_standing(visit, ticket), "claim": body.kind}


@route("POST", f"{_RUN}/heartbeat", DOERS, own="run", answers=shapes.Standing)
def heartbeat(visit: Visit, run: str) -> Document:
    """Say that the agent is at work; says how its task stands."""
    ticket = _ticket(visit, run)
    visit.house.ledger.alive(ticket, actor=visit.actor)
    return _standing(visit, ticket)


@route("POST", f"{_RUN}/checkpoint", DOERS, own="run", body=Question, answers=shapes.Checkpoint)
def checkpoint(visit: Visit, run: str, body: Question) -> Document:
    """Ask for an approval and don't wait: go on only if the task is running again.

    An autonomous run ends blocked. Over HTTP nobody looks at the tree; `truegreen checkpoint`
    inside of the run asks about the tree that stands there, and waits.
    """
    ticket = _ticket(visit, run)
    ledger = visit.house.ledger
    task = ledger.checkpoint(ticket, body.action, actor=visit.actor, key=visit.key)
    approved = None if task.status is TaskStatus.AWAITING_APPROVAL else False
    if task.status is TaskStatus.RUNNING:
        approved = True
    return {**_standing(visit, ticket), "approved": approved}


@route("POST", f"{_RUN}/announce", DOERS, own="run", body=Announcement, answers=shapes.Announced)
def announce(visit: Visit, run: str, body: Announcement) -> Document:
    """Say something about a topic, and for the run's own task: who waits for that may start."""
    del run  # whose it is was looked at already
    told = visit.house.ledger.announce(body.topic, body.text, actor=visit.actor, key=visit.key)
    return {"topic": told.topic, "tasks": list(told.tasks)}


@route(
    "POST",
    f"{_RUN}/artifacts",
    DOERS,
    own="run",
    query=ArtifactQuery,
    body=bytes,
    status=201,
    answers=shapes.Artifact,
)
async def attach(visit: Visit, run: str, query: ArtifactQuery) -> Document:
    """Hand something in under a name of its own: the body, whatever it is."""
    house = visit.house
    ticket = await anyio.to_thread.run_sync(_ticket, visit, run)
    room = await anyio.to_thread.run_sync(room_for, house.ledger, run, query.name)
    with receiving(shelves(house.config.state_dir), room) as incoming:
        async with while_welcome(visit):
            async for chunk in visit.request.stream():
                incoming.feed(chunk)
        kept = await anyio.to_thread.run_sync(
            lambda: entered(house.ledger, ticket, incoming, actor=visit.actor)
        )
    return artifact_document(kept)


def artifact_document(found: Artifact) -> Document:
    """Something that an agent handed in, without its bytes."""
    return {
        "name": found.name,
        "sha256": found.sha256,
        "size": found.size,
        "at": instant(found.at),
    }


def _ticket(visit: Visit, run: str) -> Ticket:
    """What the agent of a run shows with every word."""
    task = visit.house.ledger.run(run)[1]
    return Ticket(task, run, visit.actor.fence or 0, "")


def _standing(visit: Visit, ticket: Ticket) -> Document:
    task = visit.house.ledger.task(ticket.task)
    return {
        "task": task.id,
        "run": ticket.run,
        "task_status": task.status,
        "title": task.title,
    }
