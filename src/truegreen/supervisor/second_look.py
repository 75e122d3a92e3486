"""Checking again what a task left.

A second look on an undecided task decides it; on any other it is only told. Nothing is run but the
gates that the task was frozen with.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from truegreen.contract import read_contract
from truegreen.errors import NotFound, Refused, Terminated
from truegreen.facts import Actor, Exit, Finding, Verdict
from truegreen.model import EndedBy, ExitDetail, ExitReason, TaskStatus
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.rows import Run
from truegreen.supervisor.attempt import may_run_on
from truegreen.supervisor.bribery import touched_before
from truegreen.supervisor.examination import (
    CLAIM,
    concluded,
    examine,
    findings_of,
    site_of,
)
from truegreen.supervisor.ground import ground_of
from truegreen.supervisor.holder import holder_name
from truegreen.supervisor.judging import Panel, consult
from truegreen.supervisor.place import Place
from truegreen.supervisor.pulse import Pulse, clock_of
from truegreen.supervisor.purse import spent_on
from truegreen.supervisor.subject import Author, Subject
from truegreen.supervisor.watch import Watch
from truegreen.tuples import NamedTuple
from truegreen.work import verify


class Look(NamedTuple):
    """What a second look found about a task that is decided already."""

    verdict: Verdict
    findings: list[Finding]


def look_again(
    ledger: Ledger, place: Place, watch: Watch, task_id: str, *, actor: Actor
) -> Look | None:
    """Run a task's gates again on what its latest run left; None where that settled the task."""
    dossier = ledger.dossier(task_id)
    if dossier.task.qa_of_key is not None:
        raise Refused(f"{task_id} is a QA review: what it says is its own; try it again with retry")
    if dossier.task.sealed_at is not None:
        raise Terminated(f"{task_id} is sealed for ever: nothing that its agent left runs again")
    run = latest(dossier)
    touched = touched_before(ledger, dossier)
    subject = subject_of(place, dossier, run)._replace(touched=touched)
    if dossier.task.status is not TaskStatus.NEEDS_REVIEW:
        return look_at(place, watch, subject, run, judges=True)
    sent = time.clock_gettime(clock_of(ledger))
    ticket = ledger.recheck(task_id, holder=holder_name(), actor=actor, lease_seconds=place.lease)
    pulse = Pulse(ledger, ticket, place.lease, sent)
    pulse.run_ends()
    try:
        examine(ledger, place, watch, subject, ticket, pulse)
    finally:
        pulse.close()
    return None


def look_at(
    place: Place, watch: Watch, subject: Subject, run: Run, *, judges: bool = False
) -> Look:
    """Run the gates on a subject, and ask its judges if wanted; nothing is written down."""
    watch.phase("gates", ", ".join(gate.name for gate in subject.contract.gates))
    with scratch(place) as folder:
        own = place._replace(state_dir=folder)
        with site_of(own, subject, run.id) as site:
            found = verify.examine(
                subject.contract, site, earlier=subject.earlier, told=watch.found
            )
        if judges and subject.contract.evaluators:
            with Panel(own, subject, run.id, None) as panel:
                found += consult(panel, subject, found, told=watch.found)
    return Look(concluded(subject, found), found)


def latest(dossier: Dossier) -> Run:
    """The latest run of a task, if it has ended."""
    run = dossier.runs[-1] if dossier.runs else None
    if run is None or run.exit_reason is None:
        raise Refused(f"{dossier.task.id} has left nothing to check yet ({dossier.task.status})")
    return run


def subject_of(place: Place, dossier: Dossier, run: Run) -> Subject:
    """What one run of a task left, with the terms that it is checked by."""
    contract, ground = read_contract(dossier.contract), ground_of(dossier)
    if ground is None:
        raise Refused(f"{dossier.task.id} never got as far as an agent; there is nothing to check")
    workspace = ground.workspace(place)
    left = workspace.snapshot_of(f"refs/truegreen/left/{run.id}")
    if left is None:
        raise NotFound(f"what {run.id} left is not kept in {workspace.mirror.path}")
    facts = msgspec.json.decode(run.facts)
    found = findings_of(dossier, run.key)
    rejected = [f.reason for f in found if f.check == CLAIM and f.binding]
    return Subject(
        contract=ground.contract(contract),
        contract_digest=dossier.task.contract_digest,
        ground=ground,
        workspace=workspace,
        base=ground.snapshot(workspace),
        left=left,
        ended=_exit_of(run),
        judged=str(facts.get("adapter", "")),
        unconfirmed=may_run_on(run.processes, run.isolation),
        rejected=rejected[-1] if rejected else "",
        earlier=tuple(row.finding() for row in dossier.findings),
        author=_author(dossier, run),
        spent=spent_on(dossier),
    )


def _author(dossier: Dossier, run: Run) -> Author:
    """Who did a run, as the record knows."""
    agent = next((each for each in dossier.agents if each.key == run.agent_key), None)
    model = str(msgspec.json.decode(run.facts).get("model", ""))
    return Author(agent.definition, agent.session or "", model) if agent else Author(model=model)


def _exit_of(run: Run) -> Exit:
    return Exit(
        status=run.status,
        reason=run.exit_reason or ExitReason.UNKNOWN,
        detail=run.exit_detail or ExitDetail.UNCLASSIFIED,
        ended_by=run.ended_by or EndedBy.MACHINE,
        code=run.exit_code,
        signal=run.signal,
        digest=run.digest,
        admission=run.admission,
    )


@contextmanager
def scratch(place: Place) -> Iterator[str]:
    """A folder of our own for as long as somebody looks."""
    os.makedirs(place.state_dir, mode=0o700, exist_ok=True)
    import shutil  # noqa: PLC0415 - brings the compressors along; start-up is measured
    from tempfile import mkdtemp  # noqa: PLC0415 - as above

    folder = mkdtemp(prefix="gate_", dir=place.state_dir)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
