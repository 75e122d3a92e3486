"""Terminate, whoever asks for it: true in the record first, then on this machine.

`stop --force` and `terminate` are this one path. The record seals the task and fences its runs off;
only then are their processes killed, and what could not be killed is named.
"""

from __future__ import annotations

import msgspec

from truegreen.facts import Actor
from truegreen.record.ledger import Ledger, Termination
from truegreen.supervisor.holder import host_name, process_of
from truegreen.work.process import sweep


def terminate_task(ledger: Ledger, task_id: str, *, actor: Actor, reason: str) -> Termination:
    """Seal a task for ever and kill what runs for it here; again, it changes nothing."""
    processes = {left.run: left.lease.process for left in ledger.owned(host_name())}
    ended = ledger.terminate(task_id, actor=actor, reason=reason)
    # A supervisor that is alive kills by itself as soon as it sees the fence; a dead one does not,
    # and neither does one that was stopped in an earlier call that left survivors.
    runs = {*ended.runs, *(run.id for run in ledger.dossier(task_id).runs[-1:])}
    sweeps = [sweep(run, process_of(processes.get(run, ""))) for run in sorted(runs)]
    return msgspec.structs.replace(
        ended,
        killed=tuple(each.pid for done in sweeps for each in done.swept),
        survivors=tuple(pid for done in sweeps for pid in done.survivors),
    )
