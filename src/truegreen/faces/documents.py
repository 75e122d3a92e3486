"""The JSON documents of the public contract, built from what the ledger gives.

The command line and HTTP show the same bytes, so both come here. No terminal, no request, no query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from truegreen.assurance import unproven
from truegreen.contract import Budget
from truegreen.errors import TruegreenError
from truegreen.faces.clean import shortened
from truegreen.faces.cli.catalogue import COMMANDS
from truegreen.faces.times import instant
from truegreen.faces.waits import condition_document, waiting_steps
from truegreen.facts import BASE_LOST, Finding, Proof
from truegreen.model import (
    Cell,
    ExitDetail,
    ExitReason,
    Level,
    Mode,
    Outcome,
    ProofStatus,
    TaskStatus,
)
from truegreen.outlets.answers import badges, checks_outcome, exemptions, proof_of
from truegreen.patterns import late
from truegreen.record.holds import OF_THE_FLEET, Hold
from truegreen.record.ledger import Ledger, Page
from truegreen.record.ledger.answers import Question
from truegreen.record.ledger.overview import LiveRun
from truegreen.record.ledger.reads import Count, Dossier, Told, Verdicted, Waiting
from truegreen.record.rows import (
    Agent,
    ClaimRow,
    FindingRow,
    InboxItem,
    Post,
    Refusal,
    Run,
    Task,
    Token,
)

Document = dict[str, Any]
LONGEST_MESSAGE = 2000
SHOWN_EVENTS = 200
_UNRECORDED = Proof(ProofStatus.SHOWN, (), "decided before proofs were recorded")
"""As the migration has it for tasks that had succeeded by then."""
# What JSON may carry raw, but a terminal or a reader may take for something else.
_RISKY = late("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_read = msgspec.json.decode


def encoded(document: object) -> bytes:
    """One line of JSON; characters that could act on a terminal are escaped."""
    text = msgspec.json.encode(document).decode()
    if not text.isprintable():
        text = _RISKY.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text.encode() + b"\n"


def error_document(error: TruegreenError) -> Document:
    """An error as every face says it."""
    body = error.document()["error"]
    said: Document = body if isinstance(body, dict) else {}
    return {"error": {**said, "message": _speakable(shortened(error.message, LONGEST_MESSAGE))}}


def _speakable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


# --- tasks


def brief_document(
    task: Task, verdicted: Verdicted | None = None, live: LiveRun | None = None
) -> Document:
    """A task as it stands in a list: both axes, why, and what is left of its budget."""
    isolation = verdicted.isolation if verdicted else ""
    return {
        **_head(task),
        "badges": badges(task, isolation),
        "budget": _counters(task),
        "verdict": {
            "outcome": task.verdict,
            "level": verdicted.level if verdicted else None,
            "reason": verdicted.reason if verdicted else "",
        },
        "activity": _activity(live),
        "created_at": instant(task.created_at),
        "updated_at": instant(task.updated_at),
    }


def page_document(
    page: Page,
    verdicts: dict[int, Verdicted],
    counts: list[Count],
    live: Mapping[int, LiveRun] = MappingProxyType({}),
) -> Document:
    """A page of tasks, the cursor of the next one, and how many tasks fail silently."""
    return {
        "tasks": [
            brief_document(task, verdicts.get(task.key), live.get(task.key)) for task in page.tasks
        ],
        "after": page.after,
        **totals(counts),
    }


def totals(counts: list[Count]) -> Document:
    """The headline figures of a store."""
    silent = sum(c.tasks for c in counts if c.cell is Cell.SILENT_FAILURE)
    return {"silent_failures": silent, "total": sum(c.tasks for c in counts)}


def task_document(
    dossier: Dossier,
    events: list[Told],
    live: LiveRun | None = None,
    silences: Sequence[Post] = (),
) -> Document:
    """Everything about one task; `silences` is what nobody outside was told about it."""
    from truegreen.faces.layers import layers_of  # noqa: PLC0415 - a list needs none

    task = dossier.task
    terms = _read(dossier.contract)
    agents = {agent.key: agent for agent in dossier.agents}
    latest = dossier.runs[-1] if dossier.runs else None
    return {
        **_head(task),
        "badges": [*badges(task, latest.isolation if latest else ""), *exemptions(terms)],
        "goal": terms.get("goal", ""),
        "waits_for": [need._asdict() for need in dossier.needs],
        "conditions": [condition_document(each) for each in dossier.conditions],
        "budget": {**_counters(task), **_charges(dossier, terms)},
        "claim": claim_of(dossier, latest),
        "verdict": _verdict(dossier, latest),
        "layers": layers_of(dossier),
        "activity": _activity(live),
        "question": question_document(dossier.question),
        "runs": [run_document(run, dossier, agents) for run in dossier.runs],
        "agents": [agent_document(agent) for agent in dossier.agents],
        "refusals": [refusal_document(refusal) for refusal in dossier.refusals],
        "unsent": [_unsent(post) for post in silences],
        "events": [event_document(told) for told in events],
        "next": [*next_steps(task, run=latest), *waiting_steps(dossier)],
        "created_by": task.created_by,
        "created_at": instant(task.created_at),
        "updated_at": instant(task.updated_at),
        "settled_at": instant(task.settled_at),
    }


def whole(ledger: Ledger, dossier: Dossier) -> Document:
    """Everything about one task, with the newest of its events."""
    after = max(0, dossier.task.revision - SHOWN_EVENTS)
    live = ledger.live([dossier.task]).get(dossier.task.key)
    events = ledger.events(dossier.task.id, after=after)
    return task_document(dossier, events, live, ledger.silences(dossier.task.id))


def _unsent(post: Post) -> Document:
    """What an outlet could not say, or gave up, and why."""
    return {
        "outlet": post.outlet,
        "state": post.state,
        "why": post.error,
        "at": instant(post.updated_at),
    }


def _activity(live: LiveRun | None) -> Document | None:
    """What is seen of a run under way, beside its status; None where nothing runs."""
    if live is None:
        return None
    from truegreen.faces.activity import activity_document  # noqa: PLC0415 - hardly any task runs

    return activity_document(live)


def _head(task: Task) -> Document:
    return {
        "id": task.id,
        "title": task.title,
        "task_status": task.status,
        "run_status": task.run_status,
        "cell": task.cell,
        "exit_reason": ExitReason.UNKNOWN if task.is_legacy else task.exit_reason,
        "exit_detail": task.exit_detail,
        "rescued": task.rescued,
        "sealed_at": instant(task.sealed_at),
        "role": task.role,
        "run_mode": task.mode,
        "badges": [],
        "fence": task.fence,
        "attempt": task.attempt,
        "priority": task.priority,
        "contract_digest": task.contract_digest,
    }


def _counters(task: Task) -> Document:
    return {
        "attempts": [task.attempts, task.attempts_max],
        "qa_rounds": [task.qa_rounds, task.qa_rounds_max],
        "deferrals": [task.deferrals, task.deferrals_max],
    }


def _charges(dossier: Dossier, terms: Document) -> Document:
    """What the latest run was charged; per check, the one that failed most often."""
    given = terms.get("budget", {})
    spent = {"reentries": 0, "check_errors": 0}
    latest = dossier.runs[-1].key if dossier.runs else None
    for run, budget, _subject, used, _most in dossier.charges:
        if run == latest and budget in spent:
            spent[budget] = max(spent[budget], used)
    return {name: [used, given.get(name, getattr(Budget(), name))] for name, used in spent.items()}


def next_steps(task: Task, hold: Hold | None = None, *, run: Run | None = None) -> list[str]:
    """The commands that lead on from here; only those that this version has.

    `run` is the latest one: where no attempt can be made any more, none is suggested.
    """
    steps = [f"show {task.id}"]
    if task.status is TaskStatus.FAILED and run and msgspec.json.decode(run.facts).get(BASE_LOST):
        return [f"truegreen {steps[0]}"]
    if hold in OF_THE_FLEET:
        listed = "limits" if hold is Hold.SPENT else "breakers"
        steps += [f"why {task.id}", listed, f"cancel {task.id}"]
    elif task.sealed_at is None:
        known = _AT_A_CHECKPOINT if _is_at_a_checkpoint(task) else _NEXT.get(task.status, ())
        steps += [words.format(id=task.id) for words in known]
    return [f"truegreen {step}" for step in steps if step.split()[0] in COMMANDS]


def steps_from(status: str, task: str) -> list[str]:
    """The commands that change something for whoever has been refused at a status."""
    known = _NEXT.get(TaskStatus(status), ())
    return [f"truegreen {words.format(id=task)}" for words in known if not words.startswith("log ")]


def _is_at_a_checkpoint(task: Task) -> bool:
    """Whether a task would only be blocked at the same place again, in the mode that it has."""
    blocked = task.status is TaskStatus.BLOCKED and task.mode is Mode.AUTONOMOUS
    return blocked and task.exit_detail is ExitDetail.APPROVAL_CHECKPOINT


_AT_A_CHECKPOINT = ("unblock {id} --mode assisted --now", "cancel {id}")
_NEXT: dict[TaskStatus, tuple[str, ...]] = {
    TaskStatus.QUEUED: ("attempt {id}", "cancel {id}"),
    TaskStatus.RUNNING: ("log {id} --follow", "stop {id}", "terminate {id}"),
    TaskStatus.AWAITING_APPROVAL: ("approve {id}", 'reject {id} --reason "not now"'),
    TaskStatus.PENDING_EVAL: ("wait {id}",),
    TaskStatus.FAILED_PENDING_EVAL: ("wait {id}",),
    TaskStatus.PENDING_QA: (
        'review {id} --accept --reason "looked at the diff"',
        'review {id} --reject --reason "not what was asked for"',
        "cancel {id}",
    ),
    TaskStatus.NEEDS_REVIEW: (
        "verify {id}",
        'review {id} --accept --reason "looked at the diff"',
        'review {id} --reject --reason "not what was asked for"',
        'retry {id} --reason "try again"',
    ),
    TaskStatus.BLOCKED: ("unblock {id}", "cancel {id}"),
    TaskStatus.FAILED: ("log {id}", 'retry {id} --reason "try again"'),
    TaskStatus.CANCELED: ('retry {id} --reason "try again"',),
}


# --- runs, claims, findings


def run_document(run: Run, dossier: Dossier, agents: dict[int, Agent]) -> Document:
    """One attempt, with what was claimed and found about it."""
    agent = agents.get(run.agent_key) if run.agent_key is not None else None
    return {
        "id": run.id,
        "attempt": run.attempt,
        "run_status": run.status,
        "exit_reason": ExitReason.UNKNOWN if run.is_legacy else run.exit_reason,
        "exit_detail": run.exit_detail,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "ended_by": run.ended_by,
        "admission": run.admission,
        "agent": agent.id if agent else None,
        "isolation": run.isolation,
        "usage": _read(run.usage) if run.usage else {},
        "facts": _read(run.facts) if run.facts else {},
        "cell": run.cell,
        "claim": claim_of(dossier, run),
        "verdict": _verdict(dossier, run),
        "fence": run.fence,
        "base_digest": run.base_digest,
        "created_at": instant(run.created_at),
        "seen_at": instant(run.seen_at),
        "ended_at": instant(run.ended_at),
        "judged_at": instant(run.judged_at),
    }


def claim_of(dossier: Dossier, run: Run | None) -> Document | None:
    """What the agent of a run declared, if it did."""
    found = [claim for claim in dossier.claims if run and claim.run_key == run.key]
    if not found or run is None:
        return None
    document = claim_document(found[-1])
    audits = [f for f in dossier.findings if f.run_key == run.key and f.kind == "claim"]
    checked = _read(audits[-1].evidence).get("statements") if audits else None
    return {**document, "statements": checked} if checked else document


def claim_document(claim: ClaimRow) -> Document:
    """A claim, with everything else that the agent said."""
    return {
        "kind": claim.kind,
        "reason": claim.reason,
        "statements": _read(claim.statements),
        "extra": _read(claim.extra),
        "source": claim.source,
        "at": instant(claim.at),
    }


def _verdict(dossier: Dossier, run: Run | None) -> Document | None:
    if run is None:
        return None
    terms = _read(dossier.contract)
    return {
        "outcome": run.verdict,
        "level": run.level,
        "checks": checks_outcome(run, dossier.findings),
        "require": run.required_level or terms.get("require", Level.A2),
        "proof": _proof(run),
        "unproven": unproven(run.level),
        "reason": run.verdict_reason,
        "digest": run.digest,
        "findings": [
            finding_document(finding) for finding in dossier.findings if finding.run_key == run.key
        ],
    }


def _proof(run: Run) -> Document:
    """What shows that the work made the difference; nothing before there is a verdict."""
    found = proof_of(run) or (_UNRECORDED if run.verdict is Outcome.PASSED else Proof())
    return {"status": found.status, "by": list(found.by), "reason": found.reason}


def finding_document(row: FindingRow) -> Document:
    """One check's answer, as the record has it."""
    return {"id": row.id, **check_document(row.finding()), "at": instant(row.at)}


_ANSWER = (
    *("check", "kind", "phase", "outcome", "before", "level", "score", "counts", "reason"),
    *("evidence", "digest", "judge", "judged", "isolation", "binding"),
)


def check_document(finding: Finding) -> Document:
    """One check's answer."""
    answer = {name: getattr(finding, name) for name in _ANSWER}
    return {
        **answer,
        "unproven": unproven(finding.level),
        "duration_s": finding.duration_us / 1e6,
    }


# --- the rest


def event_document(told: Told) -> Document:
    """One line of the history."""
    event = told.event
    return {
        "id": event.id,
        "task": told.task,
        "run": event.run_id,
        "revision": event.revision,
        "at": instant(event.at),
        "level": event.level,
        "event": event.event,
        "from": event.from_status,
        "to": event.to_status,
        "actor": event.actor,
        "reason": event.reason,
        "fence": event.fence,
        "idempotency_key": event.idempotency_key,
        "data": _read(event.data),
        "hash": event.hash.hex() if event.hash else None,
    }


def agent_document(agent: Agent) -> Document:
    """A conversation that outlives its runs."""
    return {
        "id": agent.id,
        "kind": agent.kind,
        "name": agent.name,
        "status": agent.status,
        "definition": agent.definition,
        "session": agent.session,
        "terminated_at": instant(agent.terminated_at),
        "created_at": instant(agent.created_at),
        "updated_at": instant(agent.updated_at),
    }


def refusal_document(refusal: Refusal) -> Document:
    """A late or conflicting write that was refused and kept as evidence."""
    return {
        "run": refusal.run_id,
        "verb": refusal.verb,
        "code": refusal.code,
        "actor": refusal.actor,
        "message": refusal.message,
        "evidence": refusal.evidence,
        "times": refusal.times,
        "first_at": instant(refusal.first_at),
        "last_at": instant(refusal.last_at),
    }


def inbox_document(waiting: Waiting) -> Document:
    """Something that waits for a person."""
    from truegreen.outlets.wording import pasteable  # noqa: PLC0415 - a list of tasks needs none

    item = waiting.item
    return {
        "id": item.id,
        "task": waiting.task,
        "cell": item.cell,
        "severity": item.severity,
        "topic": item.topic,
        "title": item.title,
        "reason": item.reason,
        "next": pasteable(item.next),
        "times": item.times,
        "state": item.state,
        "owner": item.owner,
        "snoozed_until": instant(item.snoozed_until),
        "snooze_covers": _covered(item),
        "outcome": item.outcome,
        "question": question_document(waiting.question),
        "created_at": instant(item.created_at),
        "updated_at": instant(item.updated_at),
    }


def question_document(question: Question | None) -> Document | None:
    """What can be answered, with the id that an answer names."""
    if question is None:
        return None
    return {
        "id": question.id,
        "kind": question.kind,
        "action": question.action,
        "digest": question.digest,
        "asked_at": instant(question.at),
    }


def _covered(item: InboxItem) -> str | None:
    """What is put off with it: this one thing whenever it happens, or all of its topic."""
    if item.snoozed_until is None:
        return None
    return "topic" if item.whole_topic else "item"


def token_document(token: Token, now: int) -> Document:
    """A token without its secret."""
    return {
        "id": token.id,
        "role": token.role,
        "name": token.name,
        "state": token_state(token, now),
        "created_at": instant(token.created_at),
        "expires_at": instant(token.expires_at),
        "revoked_at": instant(token.revoked_at),
    }


def token_state(token: Token, now: int) -> str:
    """Whether a token still opens anything."""
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= now:
        return "expired"
    return "active"
