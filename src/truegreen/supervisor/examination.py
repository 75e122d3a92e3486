"""What a run left is examined: gates on clean copies, findings into the record, then a verdict.

The same way for a run that has just ended and for one that a person wants checked again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import path as paths

import msgspec
from msgspec.structs import replace

from truegreen.contract import Contract, Isolation
from truegreen.errors import Refused
from truegreen.facts import Finding, Ticket, Verdict
from truegreen.model import FindingOutcome, Level
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.ledger.verdicts import rejected_tree
from truegreen.record.rows import Task
from truegreen.supervisor.holder import holder_name
from truegreen.supervisor.place import Place
from truegreen.supervisor.pulse import Pulse
from truegreen.supervisor.subject import Subject
from truegreen.supervisor.watch import Watch
from truegreen.work import verify
from truegreen.work.claims.kinds import CONFIRMED, CONTRADICTED, UNVERIFIABLE
from truegreen.work.gates.held_cases import data_paths
from truegreen.work.gates.rooms import Site, remove
from truegreen.work.jail import choose
from truegreen.work.toolchain.keeping import checked

CLAIM = "claim"
"""The name of the finding about what the agent said."""


@contextmanager
def site_of(
    place: Place, subject: Subject, run: str, tick: Callable[[], str | None] | None = None
) -> Iterator[Site]:
    """Where the gates work, as long as they do."""
    logs = paths.join(place.run_dir(run), "gates")
    os.makedirs(logs, mode=0o700, exist_ok=True)
    scratch = place.make_rooms(run, holder_name())
    try:
        yield Site(
            workspace=subject.workspace,
            base=subject.base,
            left=subject.left,
            folder=subject.ground.folder,
            scratch=scratch,
            path=place.environ.get("PATH", os.defpath),
            contract_digest=subject.contract_digest,
            baselines=place.baselines,
            tools=checked(subject.ground.tools),
            run=run,
            judged=subject.judged,
            remotes=subject.ground.remotes,
            files=subject.ground.gate_files(subject.workspace),
            variables={
                name: place.environ[name]
                for gate in subject.contract.gates
                for name in gate.pass_env
                if name in place.environ
            },
            hidden=(*place.hidden, *data_paths(subject.contract.gates)),
            held=place.held,
            exposed=_exposed(subject.contract),
            logs=logs,
            unconfirmed=subject.unconfirmed,
            tick=tick,
        )
    finally:
        remove(scratch)


def _exposed(contract: Contract) -> str:
    """Why the agent could have read what is held out."""
    isolation = choose(contract.isolation)
    if isolation is Isolation.JAIL:
        return ""
    return f"the agent ran without a jail ({isolation}), so it could have read the held-out cases"


def charging(ledger: Ledger, ticket: Ticket, pulse: Pulse, limit: int) -> Callable[[str], bool]:
    """Asked after every error of a check: charges it, and says whether there is another try."""

    def charge(check: str) -> bool:
        try:
            used, most = ledger.charge(ticket, "check_errors", limit=limit, subject=check)
        except Refused:
            return False  # the budget is spent, or the run is no longer ours
        return used < most and pulse.word() is None

    return charge


def examine(
    ledger: Ledger, place: Place, watch: Watch, subject: Subject, ticket: Ticket, pulse: Pulse
) -> Task:
    """Gates, findings, verdict; a run that was fenced off meanwhile gets none."""
    charge = charging(ledger, ticket, pulse, subject.contract.budget.check_errors)
    watch.phase("gates", ", ".join(gate.name for gate in subject.contract.gates))
    with site_of(place, subject, ticket.run, pulse.word) as site:
        found = verify.examine(
            subject.contract,
            site,
            baseline_findings=subject.baseline,
            earlier=subject.earlier,
            charge=charge,
            told=watch.found,
        )
    if subject.contract.evaluators:
        from truegreen.supervisor.judging import Panel, consult  # noqa: PLC0415 - a large room

        watch.phase("judges", ", ".join(judge.name for judge in subject.contract.evaluators))
        with Panel(place, subject, ticket.run, pulse.word) as panel:
            found += consult(panel, subject, found, charge=charge, told=watch.found)
    if subject.rejected:
        found.append(_worthless(subject))
    verdict = concluded(subject, found)
    audited = [*found, *_audit(subject, found)]
    try:
        if audited:
            ledger.record(ticket, audited)
        task = ledger.judge(ticket, verdict)
    except Refused:
        if ledger.standing(ticket).mine:
            raise
        return ledger.task(ticket.task)
    watch.concluded(verdict)
    return task


def concluded(subject: Subject, found: list[Finding]) -> Verdict:
    """The verdict that findings about a subject carry."""
    return verify.conclude(
        found,
        subject.contract,
        subject.ended,
        digest=subject.left.digest,
        contract_digest=subject.contract_digest,
        changed=subject.base.digest != subject.left.digest,
        rejected_claim=subject.rejected,
        rejected_tree=rejection(subject.earlier, subject.left.digest),
    )


def rejection(earlier: Sequence[Finding], digest: str) -> str:
    """A person's no about this very tree, whichever run of the task left it."""
    for found in reversed(earlier):
        no = found.kind == "person" and found.outcome is FindingOutcome.FAILED and found.binding
        if no and found.digest == digest:
            return rejected_tree(found.judge, found.reason)
    return ""


def _worthless(subject: Subject) -> Finding:
    """A claim that was tried and can't be believed leaves the matter to a person."""
    return _about_claim(subject, FindingOutcome.INCONCLUSIVE, subject.rejected)


def _audit(subject: Subject, found: list[Finding]) -> list[Finding]:
    """What the agent said beside what was observed. It is told, and decides nothing."""
    speaks = subject.claim is not None and subject.claim.speaks
    if not (speaks or subject.ended.admission):
        return []
    from truegreen.work.claims.checking import (  # noqa: PLC0415 - a large room
        checked_admission,
        checked_statements,
    )
    from truegreen.work.claims.observed import left_of  # noqa: PLC0415 - as above
    from truegreen.work.claims.statements import statements_in  # noqa: PLC0415 - as above

    claim = subject.claim
    stated = statements_in(claim) if claim and speaks else ()
    admitted = checked_admission(subject.ended.admission, found)
    if not (stated or admitted):
        return []
    workspace, base, left = subject.workspace, subject.base, subject.left
    folder, extra = subject.ground.folder, claim.extra if claim else {}
    known = left_of(workspace, base, left, stated, folder=folder, extra=extra)
    changes = workspace.changes(base, left)
    said = (*admitted, *checked_statements(stated, found, changes, left=known))
    counts = {word: sum(each.outcome == word for each in said) for word in _AUDITED}
    outcome = FindingOutcome.PASSED
    if counts[UNVERIFIABLE]:
        outcome = FindingOutcome.INCONCLUSIVE
    if counts[CONTRADICTED]:
        outcome = FindingOutcome.FAILED
    reason = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    evidence = {"statements": msgspec.to_builtins(said)}
    return [
        replace(
            _about_claim(subject, outcome, f"what the agent said: {reason}"),
            counts=counts,
            evidence=evidence,
            binding=False,
        )
    ]


_AUDITED = (CONFIRMED, CONTRADICTED, UNVERIFIABLE)


def _about_claim(subject: Subject, outcome: FindingOutcome, reason: str) -> Finding:
    return Finding(
        check=CLAIM,
        kind="claim",
        outcome=outcome,
        reason=reason,
        digest=subject.left.digest,
        contract_digest=subject.contract_digest,
        judge="truegreen:claims",
        judged=subject.judged,
        level=Level.A0,
    )


def findings_of(dossier: Dossier, run_key: int) -> list[Finding]:
    """What was found about one run."""
    return [row.finding() for row in dossier.findings if row.run_key == run_key]
