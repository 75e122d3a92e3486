"""What the agent of a run is told and may say, whichever way it comes in: by socket or network.

Who it is has been settled before; the fence is looked at by the record with every word. Nothing
here leads to a verdict.
"""

from __future__ import annotations

import os
import stat
from typing import Any

import msgspec

from truegreen.doors import store_room
from truegreen.errors import AlreadyDeclared, InvalidInput, NotFound
from truegreen.facts import Actor, Claim, Statement, Ticket
from truegreen.model import ClaimKind
from truegreen.record.conditions import Condition
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.artifacts import LARGEST_ARTIFACT
from truegreen.record.rows import Task

Line = dict[str, Any]
SOURCES = ("cli", "mcp", "http")


def briefing(ledger: Ledger, ticket: Ticket) -> Line:
    """What the agent of a run may know of its task: what is wanted, and by whom it is checked."""
    dossier = ledger.dossier(ticket.task)
    task, terms = dossier.task, msgspec.json.decode(dossier.contract)
    claim = ledger.claim(ticket.run)
    checks = [*terms.get("gates", ()), *terms.get("evaluators", ())]
    return {
        **said(task, ticket.run),
        "goal": terms.get("goal", ""),
        "done_when": terms.get("done_when", ""),
        "role": task.role,
        "run_mode": task.mode,
        "attempt": task.attempt,
        "attempts": [task.attempts, task.attempts_max],
        "checks": [check["name"] for check in checks],
        "claim": claim.kind if claim else None,
        "waited_for": [_waited(each) for each in dossier.conditions],
    }


def _waited(condition: Condition) -> Line:
    """Something that its task waited for, and what came of it."""
    return {"kind": condition.kind, "what": condition.what, "fact": condition.facts()}


def said(task: Task, run: str) -> Line:
    """How a task stands, in the few words that every answer to its agent has."""
    return {"task": task.id, "run": run, "task_status": task.status, "title": task.title}


def declare(ledger: Ledger, ticket: Ticket, question: Line, *, actor: Actor) -> Line:
    """Write down what the agent says about its work; checks decide."""
    claim = claim_of(question)
    try:
        task = ledger.declare(ticket, claim, actor=actor)
    except AlreadyDeclared:
        # Who is sent back in says the same again at its end; only another word is refused.
        first = ledger.claim(ticket.run)
        if first is None or first.kind is not claim.kind:
            raise
        task = ledger.task(ticket.task)
    return {**said(task, ticket.run), "claim": claim.kind}


def announce(ledger: Ledger, topic: str, text: str, *, actor: Actor) -> Line:
    """Say something about a topic, and for the agent's own task; says who had waited for it."""
    told = ledger.announce(topic, text, actor=actor)
    return {"topic": told.topic, "tasks": list(told.tasks)}


def claim_of(question: Line) -> Claim:
    """The claim in a request; types are the ledger's to check."""
    kind = question.get("kind")
    if kind not in [word.value for word in ClaimKind]:
        raise InvalidInput(f"no claim {kind!r}", allowed=tuple(ClaimKind))
    statements = [Statement(str(s["text"]), str(s.get("kind", ""))) for s in _list(question)]
    extra = question.get("extra") or {}
    if not isinstance(extra, dict):
        raise InvalidInput("extra fields of a claim are a JSON object")
    source = question.get("source")
    return Claim(
        kind=ClaimKind(kind),
        reason=str(question.get("reason") or ""),
        statements=tuple(statements),
        extra=extra,
        source=source if source in SOURCES else "cli",
    )


def _list(question: Line) -> list[Line]:
    given = question.get("statements") or []
    if not isinstance(given, list) or not all(isinstance(s, dict) and "text" in s for s in given):
        raise InvalidInput("statements of a claim are a list of objects with a text")
    return given


# -- what is handed in -----------------------------------------------------------------------------


def hand_in(
    ledger: Ledger, ticket: Ticket, shelf: str, name: str, data: bytes, *, actor: Actor
) -> Line:
    """Take some bytes, and say what they are known as from now on."""
    kept = store_room.hand_in(ledger, shelf, ticket, name, [data], actor=actor)
    task = said(ledger.task(ticket.task), ticket.run)
    return {**task, "artifact": {"name": kept.name, "sha256": kept.sha256, "size": kept.size}}


def taken(folder: str, name: str) -> bytes:
    """What an agent laid into the folder that it shares with its supervisor; it is taken away.

    Only a plain file that lies there itself: a link could lead to what the agent can't see.
    """
    if not store_room.is_plain(name):
        raise InvalidInput("name a file in the folder of the run", path="file")
    path = os.path.join(folder, name)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                raise InvalidInput("what is handed in is a plain file", path="file")
            data = file.read(LARGEST_ARTIFACT + 1)
        os.unlink(path)
    except OSError as error:
        raise NotFound(f"{name} can't be taken: {error.strerror}") from None
    return data
