"""Receipts: what the record knows about a settled task, signed; and whether one is genuine.

The same record gives the same bytes, so a receipt needs no place of its own. What is not over has
none, and a history that does not fit is not signed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from truegreen import __version__
from truegreen.assurance import unproven
from truegreen.contract import digest_of
from truegreen.errors import Refused
from truegreen.facts import Statement as Said
from truegreen.model import Move, TaskStatus
from truegreen.outlets.answers import badges, checks_outcome, exemptions, proof_of
from truegreen.outlets.envelope import LARGEST, Signer, Verifier, canonical, opened, sealed
from truegreen.outlets.statement import (
    PAYLOAD_TYPE,
    Acceptance,
    AgentPart,
    ClaimPart,
    ContractPart,
    FindingPart,
    HistoryPart,
    OutputPart,
    Predicate,
    ProofPart,
    RefusalPart,
    ReviewPart,
    RunPart,
    Statement,
    TaskPart,
    VerdictPart,
    disagreements,
    subjects_of,
)
from truegreen.record.doctor import walk
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.ledger.reads import LONGEST_PAGE
from truegreen.record.lifecycle import SETTLED
from truegreen.record.rows import Event, FindingRow, Refusal, Run, Task

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_read = msgspec.json.decode


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a receipt is genuine. With a single fault, nothing of it may be believed or shown."""

    faults: tuple[str, ...] = ()
    statement: Statement | None = None
    signers: tuple[str, ...] = ()

    @property
    def genuine(self) -> bool:
        """Whether all of it holds."""
        return self.statement is not None and not self.faults


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A signed envelope, and what it says."""

    envelope: bytes
    statement: Statement
    keyid: str


def issue(ledger: Ledger, task_id: str, signer: Signer) -> Receipt:
    """The signed receipt of a settled task."""
    statement = statement_of(ledger, task_id)
    wrong = disagreements(statement)
    if wrong:
        raise Refused(f"nothing is signed: the record of {task_id} is at odds, {wrong[0]}")
    envelope = sealed(canonical(statement), PAYLOAD_TYPE, [signer])
    if len(envelope) > LARGEST:
        raise Refused(f"the receipt of {task_id} would have more than {LARGEST} bytes")
    return Receipt(envelope=envelope, statement=statement, keyid=signer.keyid)


def verify(data: bytes, trusted: Mapping[str, Verifier], task: str = "") -> Verification:
    """Look at a receipt with nothing but public keys; `task` is the one that it must be about."""
    envelope = opened(data, PAYLOAD_TYPE, trusted)
    if envelope.faults:
        return Verification(faults=envelope.faults)
    try:
        statement = msgspec.json.decode(envelope.payload, type=Statement)
        same = canonical(_read(envelope.payload)) == envelope.payload
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Verification(faults=(f"it holds no statement that this truegreen knows: {error}",))
    faults = disagreements(statement)
    if not same:
        faults.append("its statement is not canonical JSON: a key twice, out of order, or a blank")
    about = statement.predicate.task.id
    if task not in ("", about):
        faults.append(f"it is about {about}, not about {task}")
    if faults:
        return Verification(faults=tuple(faults))
    return Verification(statement=statement, signers=envelope.signers)


def exposed(statement: Statement) -> list[str]:
    """What in the contract may be meant for a program's eyes only; whoever gets it can read it."""
    found = []
    for gate in _read(statement.predicate.contract.text).get("gates", ()):
        name = f"gates.{gate['name']}"
        found += [f"{name}.env.{variable}" for variable in gate.get("env", ())]
        if "@" in gate.get("url", ""):
            found.append(f"{name}.url")
    return found


# --- from the record to a statement


def statement_of(ledger: Ledger, task_id: str) -> Statement:
    """What there is to say about a task that is over."""
    dossier = ledger.dossier(task_id)
    task = dossier.task
    if task.status not in SETTLED:
        message = f"{task.id} is not settled yet ({task.status}); a receipt is about what is over"
        raise Refused(message, status=task.status, allowed=tuple(sorted(SETTLED)))
    events = chain_of(ledger, task.id, task.revision)
    _check_record(dossier, events)
    runs = tuple(_run(run, dossier) for run in dossier.runs)
    latest = runs[-1] if runs else None
    first = ledger.feed(limit=1)
    return Statement(
        subject=subjects_of(
            latest.digest if latest else "",
            latest.commit if latest else None,
            task.contract_digest,
        ),
        predicate=Predicate(
            task=_task(dossier),
            verdict=latest.verdict if latest else _no_verdict(task),
            contract=ContractPart(digest=task.contract_digest, text=dossier.contract),
            runs=runs,
            acceptance=_acceptance(task),
            reviews=tuple(_reviews(events)),
            refusals=tuple(_refusal(refusal) for refusal in dossier.refusals),
            history=HistoryPart(
                store=first[0].event.id if first else None,
                revision=task.revision,
                head=task.head.hex(),
                unsigned=sum(event.hash is None for event in events),
            ),
            truegreen=__version__,
        ),
    )


def chain_of(ledger: Ledger, task_id: str, revision: int) -> list[Event]:
    """The events of a task up to a revision, oldest first."""
    events: list[Event] = []
    reached = 0
    while page := ledger.events(task_id, after=reached, limit=LONGEST_PAGE):
        events += [told.event for told in page]
        reached = events[-1].revision
    return [event for event in events if event.revision <= revision]


def _check_record(dossier: Dossier, events: list[Event]) -> None:
    """Nobody gets a signature under a record that was tampered with."""
    task = dossier.task
    wrong = [ailment.message for ailment in walk(task, events) if ailment.name == "history"]
    if digest_of(dossier.contract) != task.contract_digest:
        wrong.append(f"{task.id}: its contract is not the one that was frozen")
    if wrong:
        raise Refused(f"nothing is signed: {wrong[0]}; truegreen doctor says more")


def _instant(at: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at)


def _maybe(at: int | None) -> datetime | None:
    return None if at is None else _instant(at)


def _task(dossier: Dossier) -> TaskPart:
    task = dossier.task
    return TaskPart(
        id=task.id,
        title=task.title,
        status=task.status,
        cell=task.cell,
        role=task.role,
        mode=task.mode,
        rescued=task.rescued,
        overridden=task.overridden,
        falsified=task.falsified,
        badges=_badges(dossier),
        attempt=task.attempt,
        attempts=(task.attempts, task.attempts_max),
        created_by=task.created_by,
        created_at=_instant(task.created_at),
        settled_at=_maybe(task.settled_at),
        sealed_at=_maybe(task.sealed_at),
        proof_mode=task.proof_mode,
        noop=task.noop,
        qa_review=task.qa_of_key is not None,
    )


def _badges(dossier: Dossier) -> tuple[str, ...]:
    isolation = dossier.runs[-1].isolation if dossier.runs else ""
    return (*badges(dossier.task, isolation), *exemptions(_read(dossier.contract)))


def _no_verdict(task: Task) -> VerdictPart:
    return VerdictPart(outcome=task.verdict, level=None, unproven="", reason="", at=None)


def _acceptance(task: Task) -> Acceptance | None:
    return _read(task.acceptance, type=Acceptance) if task.acceptance else None


def _reviews(events: list[Event]) -> Iterator[ReviewPart]:
    """The QA reviews that a task waited for, oldest first."""
    review = ""
    for event in events:
        told = _read(event.data)
        if event.from_status is TaskStatus.PENDING_QA:
            yield ReviewPart(
                task=review, verdict=told.get("verdict"), by=event.actor, reason=event.reason
            )
        if event.event == Move.CHAIN:
            review = str(told["qa"])


def _refusal(refusal: Refusal) -> RefusalPart:
    return RefusalPart(
        run=refusal.run_id,
        verb=refusal.verb,
        code=refusal.code,
        actor=refusal.actor,
        message=refusal.message,
        evidence=digest_of(refusal.evidence),
        times=refusal.times,
        first_at=_instant(refusal.first_at),
        last_at=_instant(refusal.last_at),
    )


# --- one run


def _run(run: Run, dossier: Dossier) -> RunPart:
    facts: dict[str, Any] = _read(run.facts) if run.facts else {}
    return RunPart(
        id=run.id,
        attempt=run.attempt,
        run_status=run.status,
        exit_reason=run.exit_reason,
        exit_detail=run.exit_detail,
        exit_code=run.exit_code,
        signal=run.signal,
        ended_by=run.ended_by,
        isolation=run.isolation,
        agent=_agent(run, dossier),
        base_digest=run.base_digest,
        digest=run.digest,
        commit=facts.get("commit"),
        output=_output(facts["output"]) if "output" in facts else None,
        cell=run.cell,
        claim=_claim(run, dossier),
        verdict=_verdict(run, dossier),
        findings=tuple(_finding(row) for row in dossier.findings if row.run_key == run.key),
        started_at=_instant(run.created_at),
        ended_at=_maybe(run.ended_at),
    )


def _verdict(run: Run, dossier: Dossier) -> VerdictPart:
    """What was concluded, with the three answers where they are recorded."""
    proof = proof_of(run)
    return VerdictPart(
        outcome=run.verdict,
        level=run.level,
        unproven=unproven(run.level),
        reason=run.verdict_reason,
        at=_maybe(run.judged_at),
        checks=checks_outcome(run, dossier.findings) if proof else None,
        require=run.required_level if proof else None,
        proof=ProofPart(status=proof.status, by=proof.by, reason=proof.reason) if proof else None,
    )


def _output(printed: dict[str, Any]) -> OutputPart:
    return OutputPart(
        size=printed["size"], sha256=printed["sha256"], truncated=printed["truncated"]
    )


def _agent(run: Run, dossier: Dossier) -> AgentPart | None:
    for agent in dossier.agents:
        if agent.key == run.agent_key:
            return AgentPart(id=agent.id, name=agent.name, definition=agent.definition)
    return None


def _claim(run: Run, dossier: Dossier) -> ClaimPart | None:
    """The declaration, with what came of its statements where they were looked at."""
    said = [claim for claim in dossier.claims if claim.run_key == run.key]
    if not said:
        return None
    claim = said[-1]
    audits = [row for row in dossier.findings if row.run_key == run.key and row.kind == "claim"]
    checked = _read(audits[-1].evidence).get("statements") if audits else None
    return ClaimPart(
        kind=claim.kind,
        reason=claim.reason,
        statements=msgspec.convert(checked or _read(claim.statements), tuple[Said, ...]),
        extra=digest_of(claim.extra),
        source=claim.source,
        at=_instant(claim.at),
    )


def _finding(row: FindingRow) -> FindingPart:
    return FindingPart(
        id=row.id,
        check=row.check_name,
        kind=row.kind,
        phase=row.phase,
        outcome=row.outcome,
        before=row.before,
        level=row.level,
        unproven=unproven(row.level),
        score=row.score,
        counts=_read(row.counts),
        reason=row.reason,
        digest=row.digest,
        contract_digest=row.contract_digest,
        evidence=digest_of(row.evidence),
        judge=row.judge,
        judged=row.judged,
        isolation=row.isolation,
        binding=row.binding,
        duration_us=row.duration_us,
        at=_instant(row.at),
    )
