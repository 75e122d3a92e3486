"""What a dead supervisor left: its agents are swept away, its runs end once, nothing turns green.

A lease tells who held a run. Where that process is gone from this machine, its word is not waited
for; on other machines only a lease that ran out counts, and others look after that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from truegreen.errors import Refused, TruegreenError, is_full
from truegreen.facts import Exit, Ticket, Verdict
from truegreen.model import (
    EndedBy,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Outcome,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Overdue
from truegreen.supervisor.closing import close_abandoned
from truegreen.supervisor.holder import holder_name, host_name, process_of, read_holder
from truegreen.supervisor.orphans import orphans
from truegreen.supervisor.place import Place, owner_of
from truegreen.supervisor.pulse import LEASE_SECONDS
from truegreen.work.gates.rooms import remove
from truegreen.work.process import sweep

_ENDED = (TaskStatus.PENDING_EVAL, TaskStatus.FAILED_PENDING_EVAL)
_INTERRUPTED = "the supervisor died while checks were under way; check again: truegreen verify {}"


def recover(ledger: Ledger) -> list[str]:
    """End what dead supervisors of this machine left unfinished; says which tasks."""
    left = orphans(ledger)
    for each in left:
        sweep(each.run, process_of(each.lease.process))
    gone = [each._replace(gone=True) for each in left]
    done = []
    for each in gone:
        if each.status in _ENDED:
            with suppress(Refused):  # another supervisor was quicker
                _leave_undecided(ledger, each)
                done.append(each.task)
    unended = [each for each in gone if each.status not in _ENDED]
    done += ledger.lose_all(unended, detail=ExitDetail.SUPERVISOR_CRASHED)
    _release(ledger, {each.lease.holder for each in left})
    return done


def _release(ledger: Ledger, dead: set[str]) -> None:
    """Nobody is about to carry out what only the dead had taken for themselves."""
    for task, holder in ledger.reservations(host_name()) if dead else ():
        if holder in dead:
            ledger.release(task, holder)


def finish(ledger: Ledger, left: Overdue, facts: Mapping[str, Any]) -> None:
    """End a run whose supervisor was silent for too long, as `facts` say."""
    if left.status in _ENDED:
        _leave_undecided(ledger, left)
    else:
        ledger.lose(left, detail=ExitDetail.PROCESS_LOST, facts=facts)


def _leave_undecided(ledger: Ledger, left: Overdue) -> None:
    """A run that ended but was not judged: only a person can have it checked again."""
    ticket = ledger.adopt(left, holder=holder_name(), lease_seconds=LEASE_SECONDS)
    if ledger.task(left.task).qa_of_key is None:
        undecided(ledger, ticket, _INTERRUPTED.format(left.task))
    else:
        close_abandoned(ledger, ticket)


def undecided(ledger: Ledger, ticket: Ticket, reason: str) -> None:
    """Leave a run that could not be examined to a person; what is red already stays red."""
    dossier = ledger.dossier(ticket.task)
    run = dossier.runs[-1]
    red = any(
        f.run_key == run.key and f.binding and f.outcome is FindingOutcome.FAILED
        for f in dossier.findings
    )
    verdict = Verdict(
        outcome=Outcome.FAILED if red else Outcome.INCONCLUSIVE,
        reason=reason,
        digest=run.digest,
        contract_digest=dossier.task.contract_digest,
    )
    ledger.judge(ticket, verdict)


def break_off(ledger: Ledger, ticket: Ticket, error: TruegreenError | OSError) -> None:
    """A run that its supervisor can't go on with ends now, and not when its lease runs out."""
    ended = ledger.run(ticket.run)[0].exit_reason is not None
    try:
        if ended:
            undecided(ledger, ticket, f"the checks could not be carried out: {error}")
        else:
            mine = isinstance(error, Refused)
            detail = ExitDetail.CONFIG_INVALID if mine else ExitDetail.SUPERVISOR_CRASHED
            ledger.end_run(ticket, failure(error, detail))
    except Refused:
        return  # whoever ended it meanwhile has said so in the record


def failure(error: TruegreenError | OSError, otherwise: ExitDetail) -> Exit:
    """The exit of a run that failed on our side."""
    return Exit(
        status=RunStatus.CRASHED,
        reason=ExitReason.FATAL_ERROR,
        detail=ExitDetail.DISK_FULL if is_full(error) else otherwise,
        ended_by=EndedBy.SUPERVISOR,
        message=str(error),
    )


def tidy(place: Place) -> None:
    """Remove the rooms of gates and reviewers whose supervisor is dead, and no others.

    A gate whose room goes could turn green, and so could a review.

    The record is not asked: supervisors of other stores may have rooms in the same folder.
    """
    tops = [top for top in (place.rooms, place.reviews) if os.path.isdir(top)]
    for folder in (os.path.join(top, name) for top in tops for name in os.listdir(top)):
        owner = owner_of(folder)
        process = read_holder(owner) if owner.startswith(host_name()) else None
        if process and not process.alive():
            remove(folder)
