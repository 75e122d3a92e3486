"""The corridor between the wings: takes a queued task through its attempts to a verdict.

It decides nothing itself: the record says what a task may do, the work says what happened, and
whatever happened is written down before anything follows from it.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

import msgspec

from truegreen.contract import Contract, read_contract
from truegreen.errors import NotRunning, TruegreenError
from truegreen.facts import SYSTEM, Ticket
from truegreen.model import ExitDetail, TaskStatus
from truegreen.record.ledger import Dossier, Ledger, Start
from truegreen.record.rows import Task
from truegreen.supervisor.attempt import Attempt, Prepared, prepare
from truegreen.supervisor.ground import FACT
from truegreen.supervisor.holder import holder_name, host_name
from truegreen.supervisor.place import Place
from truegreen.supervisor.pulse import LEASE_SECONDS, Pulse
from truegreen.supervisor.recovery import break_off, failure, tidy
from truegreen.supervisor.watch import Watch

__all__ = ["Place", "Supervisor", "Watch"]

_SHORT_HOLD_SECONDS = 30.0
"""A back-off that is shorter is waited for; a longer one is a deferral, and said so."""


class Supervisor:
    """Carries tasks out, one at a time."""

    def __init__(self, ledger: Ledger, place: Place, watch: Watch | None = None) -> None:
        self._ledger = ledger
        self._place = place
        self._watch = watch or Watch()
        self._pulse: Pulse | None = None
        self.stopped = False

    def stop(self, *, at_once: bool = False) -> None:
        """End what is under way: gracefully, or at once. Safe in a signal handler."""
        self.stopped = True
        if self._pulse:
            self._pulse.ask(at_once=at_once)

    def carry(self, task_id: str) -> Task:
        """Attempt a task until it is settled, waits for somebody, or is put off."""
        tidy(self._place)
        self._check_dependencies(task_id)
        task = self._ledger.task(task_id)
        if task.status is not TaskStatus.QUEUED:
            message = f"task {task.id} is not queued (status: {task.status})"
            raise NotRunning(message, status=task.status)
        while self._due(task):
            task = self.attempt(task_id)
            if task.status is not TaskStatus.QUEUED:
                break
        return task

    def _check_dependencies(self, task_id: str) -> None:
        """A task waits until those that it depends on have succeeded."""
        for needed in read_contract(self._ledger.dossier(task_id).contract).depends_on:
            status = self._ledger.task(needed).status
            if status is not TaskStatus.SUCCEEDED:
                raise NotRunning(f"{task_id} waits for {needed} (status: {status})", status=status)

    def _due(self, task: Task) -> bool:
        """Wait for a short back-off; says whether it is time for an attempt."""
        while not self.stopped:
            wait = task.not_before / 1e6 - time.time()
            if not 0 < wait <= _SHORT_HOLD_SECONDS:
                return wait <= 0
            self._watch.phase("hold", f"next attempt in {wait:.0f} s")
            time.sleep(min(wait, 0.2))
        return False

    def attempt(self, task_id: str) -> Task:
        """One run of a queued task, to its verdict."""
        dossier = self._ledger.dossier(task_id)
        contract = read_contract(dossier.contract)
        self._watch.attempt(dossier.task, contract)
        try:
            prepared = prepare(self._place, dossier, contract, self._watch)
        except TruegreenError as error:
            return self._misfit(dossier, error)
        for other in self._neighbours(prepared):
            self._watch.warn(f"{other} works in {prepared.ground.top} too: each is judged by both")
        ticket = self._reserve(dossier, contract, prepared)
        self._pulse = Pulse(self._ledger, ticket)
        with ExitStack() as stack:
            stack.callback(self._forget, self._pulse)
            if self.stopped:
                self._pulse.ask()
            attempt = Attempt(self._ledger, self._place, self._watch, prepared, ticket, self._pulse)
            try:
                return attempt.carry_out()
            except (TruegreenError, OSError) as error:
                break_off(self._ledger, ticket, error)
                return self._ledger.task(task_id)

    def _neighbours(self, prepared: Prepared) -> list[str]:
        """Tasks that other supervisors carry out in the same work tree right now."""
        found = []
        for left in self._ledger.owned(host_name()):
            facts = msgspec.json.decode(self._ledger.run(left.run)[0].facts)
            if facts.get(FACT, {}).get("top") == prepared.ground.top:
                found.append(left.task)
        return found

    def _forget(self, pulse: Pulse) -> None:
        self._pulse = None
        pulse.close()

    def _reserve(self, dossier: Dossier, contract: Contract, prepared: Prepared) -> Ticket:
        agent = self._ledger.register_agent(
            contract.agent or prepared.adapter.name,
            contract.definition().definition_digest(),
            actor=SYSTEM,
        )
        start = Start(
            holder_name(),
            LEASE_SECONDS,
            agent.id,
            prepared.isolation,
            prepared.base.digest,
            {"adapter": prepared.adapter.name, FACT: msgspec.to_builtins(prepared.ground)},
        )
        return self._ledger.start(dossier.task.id, start)

    def _misfit(self, dossier: Dossier, error: TruegreenError) -> Task:
        """What can't even be prepared fails once, with its reason."""
        ticket = self._ledger.start(dossier.task.id, Start(holder_name(), LEASE_SECONDS))
        return self._ledger.end_run(ticket, failure(error, ExitDetail.CONFIG_INVALID))
