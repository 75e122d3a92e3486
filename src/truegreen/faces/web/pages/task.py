"""One task: both axes first, then what was claimed, found, tried and refused, and what can be done.

It shows the same document that programs get, and adds nothing to it but the end of the output.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from truegreen.faces.axes import NO_SANDBOX, axes, is_about_sandbox, run_words
from truegreen.faces.documents import Document, inbox_document, whole
from truegreen.faces.web.api.masking import Mask
from truegreen.faces.web.api.runs import artifact_document
from truegreen.faces.web.house import House
from truegreen.faces.web.pages.output import LINES, output_of
from truegreen.faces.web.pages.rendering import fragment, now, page, shown_to
from truegreen.faces.web.pages.streams import live
from truegreen.faces.web.pages.task_deeds import offered
from truegreen.faces.web.routes import READERS, Visit, route
from truegreen.model import (
    InboxState,
    Level,
    Mode,
    NoopPolicy,
    Phase,
    ProofMode,
    Role,
    TaskStatus,
)
from truegreen.outlets.answers import (
    WEAK_ISOLATION,
    answers_of,
    missing_sentence,
    transition_words,
)
from truegreen.record.ledger import Dossier

_EVENTS = 60
_DIFF_LINES = 200
_OUTPUT_LINES = 60
_RUNS_WITH_ARTIFACTS = 10
_MASKED = b"[redacted]"
_CAPS = ("turns", "time", "idle", "cost_usd", "tokens")


@route("GET", "/tasks/{task}", READERS, media="text/html")
def show(visit: Visit, task: str) -> Response:
    """Everything about one task, and what can be done to it."""
    found = visit.house.ledger.find("tsk", task)
    given = view(visit.house, visit.actor.role, found)
    return page(visit, "task.html", section="tasks", **given)


@live("task")
def fragment_task(house: House, role: Role, subject: str = "") -> str:
    """Everything on the page that changes."""
    return fragment("task_live.html", **view(house, role, house.ledger.find("tsk", subject)))


def view(house: House, role: Role, task: str) -> Document:
    """Everything that the page shows to a role."""
    ledger = house.ledger
    dossier = ledger.dossier(task)
    document = whole(ledger, dossier)
    run_axis, task_axis = axes(dossier)
    asks = dossier.question is not None
    items = ledger.inbox_of(dossier.task.key, limit=20)
    latest = dossier.runs[-1] if dossier.runs else None
    shown = {
        "task": document,
        "run_why": run_axis.why,
        "task_why": task_axis.why,
        "answers": [answer._asdict() for answer in answers_of(latest, dossier.findings)],
        "missing": missing_sentence(latest)
        if dossier.task.status is TaskStatus.NEEDS_REVIEW
        else "",
        "attempts": attempts(dossier, document),
        "findings": [evidence(found) for found in _findings(document)],
        "terms": terms(dossier),
        "events": list(reversed(document["events"][-_EVENTS:])),
        "waiting": [
            inbox_document(each) for each in items if each.item.state is not InboxState.RESOLVED
        ],
        "output": _output(house, role, dossier),
        "artifacts": handed_in(house, dossier),
    }
    return {
        **masked(role, shown, dossier),
        "deeds": offered(dossier.task, asks=asks) if role is Role.OPERATOR else (),
        "form_key": f"{dossier.task.revision}",
        "modes": list(Mode),
        "lines_shown": LINES,
        "no_sandbox": NO_SANDBOX,
        "rendered": now(),
    }


def _output(house: House, role: Role, dossier: Dossier) -> Document | None:
    """The end of what the latest run wrote, as a role may see it."""
    if not dossier.runs:
        return None
    run = dossier.runs[-1]
    mask = None if role is Role.OPERATOR else Mask(house.ledger, run.id)
    return output_of(house.config, run, mask)._asdict()


def handed_in(house: House, dossier: Dossier) -> list[Document]:
    """What agents handed in beside their claims, the latest attempt first."""
    return [
        {**artifact_document(each), "run": run.id, "attempt": run.attempt}
        for run in dossier.runs[: -_RUNS_WITH_ARTIFACTS - 1 : -1]
        for each in house.ledger.artifacts(run.id)
    ]


def masked(role: Role, shown: Document, dossier: Dossier) -> Document:
    """What a role may see; clients print the name of their session, so it is masked everywhere."""
    document: Document = shown_to(role, shown)
    sessions = [agent.session for agent in dossier.agents if agent.session]
    if role is Role.OPERATOR or not sessions:
        return document
    text = msgspec.json.encode(document)
    for session in sessions:
        text = text.replace(msgspec.json.encode(session)[1:-1], _MASKED)
    told: Document = msgspec.json.decode(text)
    return told


def _findings(document: Document) -> list[Document]:
    verdict = document["verdict"]
    return verdict["findings"] if verdict else []


def attempts(dossier: Dossier, document: Document) -> list[Document]:
    """Every run with the sentence of its end, the latest first."""
    words = {run.id: run_words(run) for run in dossier.runs}
    names = {agent.id: agent.name for agent in dossier.agents}
    told = [
        {
            **run,
            "why": words[run["id"]],
            "agent_name": names.get(run["agent"], ""),
            "findings": [evidence(found) for found in run["verdict"]["findings"]],
            "survivors": run["facts"].get("survivors", []),
            "unconfirmed": run["facts"].get("unconfirmed", False),
        }
        for run in document["runs"]
    ]
    return told[::-1]


def evidence(found: Document) -> Document:
    """A finding with the part of its evidence that people read."""
    told: dict[str, Any] = found["evidence"]
    output = str(told.get("output", "")).splitlines()
    diff = str(told.get("tampered_diff", "")).splitlines()
    return {
        **found,
        "name": found["check"] if found["phase"] == "after" else _phased(found),
        "output": output[-_OUTPUT_LINES:],
        "left_out": max(0, len(output) - _OUTPUT_LINES),
        "transition": transition_words(told, found["before"], found["outcome"]),
        "checked_by": _checked_by(found),
        "edited": list(told.get("tampered", ())),
        "diff": diff[:_DIFF_LINES],
        "tampering": told.get("tampering", ""),
        "short": [why for why in told.get("short", ()) if not is_about_sandbox(why)],
        "argv": list(told.get("argv", ())),
        "exit_code": told.get("exit_code"),
    }


def _checked_by(found: Document) -> str:
    """The judge and the place, in a sentence."""
    own = found["judge"].startswith("truegreen")
    judge = "truegreen" if own else found["judge"]
    where = ""
    if own and found["isolation"]:
        where = " without a sandbox" if found["isolation"] in WEAK_ISOLATION else " in a sandbox"
    before = found["phase"] == Phase.BASELINE
    files = "the files from before the agent" if before else "the files that the agent left"
    return f"Checked by {judge}{where}, on {files}"


def _phased(found: Document) -> str:
    return f"{found['check']} ({found['phase']})"


def terms(dossier: Dossier) -> Document:
    """What the task was frozen with, as far as people ask for it."""
    told: dict[str, Any] = msgspec.json.decode(dossier.contract)
    return {
        "done_when": told.get("done_when", ""),
        "gates": [_gate(gate) for gate in told.get("gates", ())],
        "evaluators": [each["name"] for each in told.get("evaluators", ())],
        "caps": {name: told["caps"][name] for name in _CAPS if told.get("caps", {}).get(name)},
        "isolation": told.get("isolation", ""),
        "require": told.get("require", Level.A2),
        "proof": told.get("proof", ProofMode.REQUIRED),
        "noop": told.get("noop", NoopPolicy.REVIEW),
        "command": told.get("command", []),
        "approvals": told.get("approvals", []),
        "cwd": told.get("cwd") or "",
    }


def _gate(gate: dict[str, Any]) -> Document:
    """A gate without its environment, which may hold what nobody is to see."""
    what = gate.get("command") or gate.get("args") or [gate.get("path") or gate.get("url") or ""]
    return {
        "name": gate["name"],
        "kind": gate["kind"],
        "what": list(map(str, what)),
        "before": gate.get("before", ""),
        "protect": gate.get("protect", []),
        "may_edit": gate.get("may_edit", []),
    }
