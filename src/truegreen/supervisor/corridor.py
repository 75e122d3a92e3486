"""The corridor between the wings: takes a queued task through its attempts to a verdict.

It decides nothing itself: the record says what a task may do, the work says what happened, and
whatever happened is written down before anything follows from it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

import msgspec
from msgspec.structs import replace

from truegreen.contract import Contract, read_contract
from truegreen.doors.marks import put_back
from truegreen.errors import (
    FolderInUse,
    Held,
    InvalidInput,
    NotRunning,
    RemoteAway,
    TruegreenError,
    Unavailable,
)
from truegreen.facts import BASE_LOST, SYSTEM, Ticket
from truegreen.model import ExitDetail, TaskStatus
from truegreen.record.folders import folder_key
from truegreen.record.ledger import Dossier, Ledger, Start
from truegreen.record.ledger.runs import in_use
from truegreen.record.rows import Task
from truegreen.supervisor.attempt import Attempt
from truegreen.supervisor.awaiting import until_met
from truegreen.supervisor.backoff import deferral_seconds
from truegreen.supervisor.bribery import FILES, UNSEEN, digest_of, merged, touched_before
from truegreen.supervisor.errand import Errand
from truegreen.supervisor.ground import FACT
from truegreen.supervisor.holder import holder_name, node
from truegreen.supervisor.outpost import is_apart, placed, publisher, worked_since
from truegreen.supervisor.place import Place
from truegreen.supervisor.prepared import Prepared, prepare, within
from truegreen.supervisor.pulse import Pulse, clock_of
from truegreen.supervisor.reach import safe_path
from truegreen.supervisor.recovery import break_off, failure, tidy
from truegreen.supervisor.roster import going_on, retold
from truegreen.supervisor.tripwire import alarms
from truegreen.supervisor.watch import Watch
from truegreen.work.agents.sealing import kept_facts
from truegreen.work.exits import STOP
from truegreen.work.workspace import top_of

_LOOK_SECONDS, _RESERVE_SECONDS = 0.2, 600.0
_SHORT_HOLD_SECONDS = 30.0
"""A back-off that is shorter is waited for; a longer one is a deferral, and said so."""


class Supervisor:
    """Carries tasks out, one at a time."""

    def __init__(
        self,
        ledger: Ledger,
        place: Place,
        watch: Watch | None = None,
        done_by: Callable[[Contract], Contract] | None = None,
    ) -> None:
        """`done_by` has another body than the contract's command do the work of a run."""
        self._ledger = ledger
        self._place = place
        self._watch = watch or Watch()
        self._done_by = done_by or (lambda contract: contract)
        self._pulse: Pulse | None = None
        self._word = STOP
        self._sent = 0.0
        self._waits = self._refuses = self._outlasts = False
        self.stopped = False
        self.was_in_use = False
        """Whether another task worked in the folder of the last one that was carried."""
        self.gave_up_on = ""
        """The folder that it was waiting for when it was stopped."""
        self.cut_short = False
        """Whether it was stopped while it prepared a run."""
        self._prepares = False
        self.resting = False
        """Whether what is under way may end, and no further attempt begins."""

    def stop(self, *, at_once: bool = False, word: str = STOP) -> None:
        """End what is under way: gracefully, or at once. Safe in a signal handler.

        A task whose run was stopped is called off; any other word only breaks the attempt off.
        """
        self.stopped, self._word = True, word
        if self._pulse:
            self._pulse.ask(at_once=at_once, word=word)

    @property
    def is_preparing(self) -> bool:
        """Whether an attempt is under way and its agent has not started."""
        return self._prepares and not (self._pulse and self._pulse.has_process)

    def carry(
        self,
        task_id: str,
        *,
        job: str = "",
        patient: bool = False,
        waits: bool = False,
        outlasts: bool = False,
    ) -> Task:
        """Attempt a task until it is settled, waits for somebody, or is put off.

        `job` is the order of an engine by which this process was started: it counts once. Who is
        `patient` waits for what has to happen before the task starts. A folder in which another
        task works is waited for with `waits`; who is patient and does not wait is refused, and for
        the queue it is one more hold. With `outlasts` a rate limit is waited for, however long.
        """
        self._waits, self._refuses = waits, patient and not waits
        self._outlasts = outlasts
        try:
            return self._carry(task_id, job, patient=patient)
        except Held as held:
            self.was_in_use = isinstance(held, FolderInUse)
            if self.was_in_use and self._refuses:
                raise
            self._watch.warn(held.message)
            return self._ledger.task(task_id)
        finally:
            with suppress(Unavailable):  # then it stays reserved for a while, and nothing more
                self._ledger.release(task_id, holder_name())

    def _take_on(self, task_id: str, job: str) -> None:
        """The task is ours to carry out, and what others left here is put right."""
        self._ledger.check_thawed()
        if job:
            self._ledger.take_job(job, task_id, holder_name())
        else:
            self._ledger.reserve(task_id, holder_name(), take=True)
        tidy(self._place)
        for alarm in alarms(self._ledger, self._place):
            self._watch.warn(alarm)
        put_back(self._ledger, self._place.state_dir)

    def _carry(self, task_id: str, job: str, *, patient: bool) -> Task:
        self._take_on(task_id, job)
        self._check_dependencies(task_id)
        if not self._may_start(task_id, patient=patient):
            return self._ledger.task(task_id)
        self._ledger.expire_reviews()
        self._ledger.reconcile()
        task = self._ledger.task(task_id)
        if task.status is TaskStatus.PENDING_QA:
            task = self._through_qa(task)
            if task.status is not TaskStatus.QUEUED:
                return task
        if task.status is not TaskStatus.QUEUED:
            message = f"task {task.id} is not queued (status: {task.status})"
            raise NotRunning(message, status=task.status)
        while self._due(task):
            if (attempted := self._attempt_in_turn(task_id)) is None:
                break
            task = attempted
            if task.status in (TaskStatus.PENDING_QA, TaskStatus.QUEUED):  # it is not over yet
                self._ledger.reserve(task_id, holder_name(), take=True)
            if task.status is TaskStatus.PENDING_QA:
                task = self._through_qa(task)
            if task.status is not TaskStatus.QUEUED:
                break
        self._ledger.expire_reviews()  # others may have waited too long meanwhile
        return task

    def _attempt_in_turn(self, task_id: str) -> Task | None:
        """One attempt, after others that work in its folder; nothing where it was stopped first."""
        while True:
            try:
                return self.attempt(task_id)
            except FolderInUse as busy:
                if not self._await_folder(task_id, busy):
                    return None

    def _await_folder(self, task_id: str, busy: FolderInUse) -> bool:
        """Wait until no other task works in the folder; says whether that came."""
        folder, reserved = str(busy.details["folder"]), time.monotonic()
        while use := self._ledger.in_folder(node(), folder, but=task_id):
            if not self._waits:
                raise FolderInUse(in_use(use), task=use.task, folder=use.folder)
            if self.stopped or self.resting:
                self.gave_up_on = use.path
                return False
            self._watch.phase("waits", f"for {use.path}: {use.task} works there")
            time.sleep(_LOOK_SECONDS)
            if time.monotonic() - reserved > _RESERVE_SECONDS:
                self._ledger.reserve(task_id, holder_name(), take=True)
                reserved = time.monotonic()
        return True

    def _check_folder(self, task_id: str, contract: Contract) -> int | None:
        """Refuse a folder in which another task works; the newest run there was before that."""
        if is_apart(contract):
            return None
        seen, folder = self._ledger.last_run_key(), folder_key(top_of(contract.cwd))
        use = self._ledger.in_folder(node(), folder, but=task_id)
        if use:
            raise FolderInUse(in_use(use), task=use.task, folder=use.folder)
        return seen

    def _through_qa(self, task: Task) -> Task:
        """Carry the review of a task out, too; what it says decides where the task goes."""
        waiting = [r for r in self._ledger.reviews_of(task.id) if r.status is TaskStatus.QUEUED]
        for review in waiting:
            self._watch.phase("qa", review.title)
            if not self._has_reviewer(review.id):
                words = f"{task.id} waits for QA, and no reviewer is set: [qa] agent = …"
                self._watch.warn(words)
                continue
            while self._due(review):
                review = self.attempt(review.id)  # noqa: PLW2901 - the same review, later
                if review.status is not TaskStatus.QUEUED:
                    break
        self._ledger.reconcile()
        return self._ledger.task(task.id)

    def _has_reviewer(self, review_id: str) -> bool:
        terms = read_contract(self._ledger.dossier(review_id).contract)
        return bool(terms.command or terms.evaluators)

    def _check_dependencies(self, task_id: str) -> None:
        """A task waits until those that it depends on have succeeded, or were waived."""
        task = self._ledger.task(task_id)
        for need in self._ledger.needs([task]).get(task.key, ()):
            message = f"{task_id} waits for {need.task} (status: {need.status})"
            raise NotRunning(message, status=need.status)

    def _may_start(self, task_id: str, *, patient: bool) -> bool:
        """Whether all has happened that a queued task waits for; else it was called off first."""
        task = self._ledger.task(task_id)
        if task.status is not TaskStatus.QUEUED:
            return True  # what follows says what it is
        watch, ended = self._watch, lambda: self.stopped or self.resting
        return until_met(self._ledger, task_id, watch, patient=patient, is_over=ended)

    def _due(self, task: Task) -> bool:
        """Wait for a short back-off; says whether it is time for an attempt."""
        reserved = time.monotonic()
        while not (self.stopped or self.resting):
            wait = (task.not_before - self._ledger.now()) / 1e6 if task.not_before else 0.0
            if wait <= 0:
                return True
            if wait > _SHORT_HOLD_SECONDS:
                if not self._outlasts:
                    return False
                moment = time.strftime("%H:%M:%S", time.localtime(task.not_before / 1e6))
                self._watch.phase("waits", f"until {moment}, then the next attempt starts")
            self._watch.phase("hold", f"next attempt in {wait:.0f} s")
            time.sleep(min(wait, _LOOK_SECONDS))
            if time.monotonic() - reserved > _RESERVE_SECONDS:
                self._ledger.reserve(task.id, holder_name(), take=True)
                reserved = time.monotonic()
        return False

    def attempt(self, task_id: str) -> Task:
        """One run of a queued task, to its verdict."""
        self._ledger.check_thawed()
        self._ledger.check_free(task_id)
        dossier = self._ledger.dossier(task_id)
        contract = read_contract(dossier.contract)
        self._watch.attempt(dossier.task, contract)
        if dossier.task.qa_of_key is not None:
            return self._review(dossier, contract)
        self._prepares = True
        try:
            return self._attempted(dossier, contract)
        finally:
            self._prepares = False

    def _attempted(self, dossier: Dossier, contract: Contract) -> Task:
        task_id, terms = dossier.task.id, self._done_by(contract)
        self._check_stopped()
        seen = self._check_folder(task_id, terms)
        try:
            self._check_alone(dossier, terms)
            going = going_on(self._ledger, dossier, contract)
            contract = placed(self._ledger, self._place, dossier, terms, self._watch)
            told = retold(self._ledger, dossier, contract)
            prepared = prepare(self._place, dossier, contract, self._watch)
        except FolderInUse:
            raise
        except TruegreenError as error:
            self._check_stopped()
            return self._misfit(dossier, error)
        self._check_stopped()
        touched = self._touched(dossier, prepared)
        prepared = prepared._replace(touched=touched, going=going, told=told)
        prepared = prepared._replace(publish=publisher(self._place, dossier, terms, prepared))
        prepared = self._afforded(task_id, prepared)
        self._check_folder(task_id, terms)  # once more: a refused start would leave an agent
        ticket = self._engaged(dossier, contract, prepared, seen)

        def work(pulse: Pulse) -> Task:
            rooms = (self._ledger, self._place, self._watch)
            return Attempt(Errand(*rooms, prepared, ticket, pulse)).carry_out()

        return self._held(ticket, work)

    def _check_stopped(self) -> None:
        """Start no run after a stop: the task stays queued."""
        if self.stopped:
            self.cut_short = True
            raise Held("stopped before the agent started")

    def _check_alone(self, dossier: Dossier, contract: Contract) -> None:
        """Work of others since the last attempt could not be told from this task's own."""
        if other := worked_since(self._ledger, dossier, contract):
            message = (
                f"{other} has worked in {contract.cwd} since the last attempt, so that their"
                " results can't be told apart: start a new task, or use --worktree"
            )
            raise InvalidInput(message)

    def _afforded(self, task_id: str, prepared: Prepared) -> Prepared:
        """The same with no more to spend than limits over everybody leave."""
        return prepared._replace(caps=within(prepared.caps, self._ledger.leeway(task_id)))

    def _touched(self, dossier: Dossier, prepared: Prepared) -> dict[str, list[str]]:
        """What agents of this task have left of judges' own files, the last one included."""
        return merged(touched_before(self._ledger, dossier), prepared.unseen)

    @staticmethod
    def _doer(contract: Contract, prepared: Prepared) -> tuple[str, str]:
        name = contract.agent or prepared.adapter.name
        return name, contract.definition().definition_digest()

    def _review(self, dossier: Dossier, contract: Contract) -> Task:
        """One run of a QA review, by an agent or by an evaluator."""
        from truegreen.supervisor import qa  # noqa: PLC0415 - a large room, and few are reviewed

        case = qa.case_of(self._ledger, self._place, dossier, contract)
        path = safe_path(self._place.environ.get("PATH", os.defpath), case.subject.workspace.root)
        place = self._place._replace(environ={**self._place.environ, "PATH": path})
        rooms = (self._ledger, place, self._watch)
        who = qa.reviewer_of(contract)
        if contract.evaluators:
            asked = self._reserve(dossier, who, Start(holder_name(), self._place.lease))
            return self._held(asked, lambda pulse: qa.judged_review(*rooms, case, asked, pulse))
        with ExitStack() as stack:
            try:
                prepared = stack.enter_context(qa.prepared_review(place, case, self._watch))
            except (TruegreenError, OSError) as error:
                self._check_stopped()
                return self._misfit(dossier, error)
            self._check_stopped()
            prepared = self._afforded(dossier.task.id, prepared)
            ticket = self._reserve(dossier, who, start_of(prepared, self._place.lease))

            def work(pulse: Pulse) -> Task:
                return qa.Review(case, Errand(*rooms, prepared, ticket, pulse)).carry_out()

            return self._held(ticket, work)

    def _held(self, ticket: Ticket, work: Callable[[Pulse], Task]) -> Task:
        """Do the work of a run under its lease; what breaks is written down."""
        self._pulse = Pulse(self._ledger, ticket, self._place.lease, self._sent)
        with ExitStack() as stack:
            stack.callback(self._forget, self._pulse)
            stack.enter_context(self._ledger.patient(self._pulse.has_time))
            if self.stopped:
                self._pulse.ask(word=self._word)
            try:
                with self._ledger.spare_room():  # a run that fills the disk can still be ended
                    return work(self._pulse)
            except (TruegreenError, OSError) as error:
                break_off(self._ledger, ticket, error)
                return self._ledger.task(ticket.task)

    def _forget(self, pulse: Pulse) -> None:
        self._pulse = None
        pulse.close()

    def _engaged(
        self, dossier: Dossier, contract: Contract, prepared: Prepared, seen: int | None
    ) -> Ticket:
        """Start a run: by a new agent, or by the one whose conversation goes on."""
        start, going = start_of(prepared, self._place.lease), prepared.going
        if seen is not None:  # it works in place, where no other task may work meanwhile
            folder = folder_key(prepared.ground.top)
            start = start._replace(folder_host=node(), folder=folder, seen_run=seen)
        if going is None:
            return self._reserve(dossier, self._doer(contract, prepared), start)
        return self._begin(dossier, start._replace(agent=going.agent, wake=going.wake))

    def _reserve(self, dossier: Dossier, who: tuple[str, str], start: Start) -> Ticket:
        # A start that is refused would leave an agent that never was at anything.
        self._ledger.check_thawed()
        agent = self._ledger.register_agent(*who, actor=SYSTEM)
        return self._begin(dossier, start._replace(agent=agent.id))

    def _begin(self, dossier: Dossier, start: Start) -> Ticket:
        """Start a run; its lease is counted from before it was asked for."""
        self._sent = time.clock_gettime(clock_of(self._ledger))
        return self._ledger.start(dossier.task.id, start)

    def _misfit(self, dossier: Dossier, error: TruegreenError | OSError) -> Task:
        """What can't even be prepared fails once, with its reason; what may pass is put off."""
        start = Start(holder_name(), self._place.lease)
        woken = self._ledger.waking(dossier.task.id)
        if woken:
            start = start._replace(agent=woken.agent, wake=woken.wake.id)
        ticket = self._ledger.start(dossier.task.id, start)
        if not isinstance(error, RemoteAway):
            ended = failure(error, ExitDetail.CONFIG_INVALID)
            if isinstance(error, TruegreenError) and error.details.get(BASE_LOST):
                ended = replace(ended, facts={BASE_LOST: True})
            return self._ledger.end_run(ticket, ended)
        held = deferral_seconds(dossier.task.deferrals)
        put_off = replace(failure(error, ExitDetail.LAUNCH_FAILED), passing=True, held_for=held)
        return self._ledger.end_run(ticket, put_off)


def start_of(prepared: Prepared, lease: float) -> Start:
    """What a run begins with: its lease, its isolation and the ground that it stands on."""
    return Start(
        holder_name(),
        lease,
        None,
        prepared.isolation,
        prepared.base.digest,
        {
            "adapter": prepared.adapter.name,
            FACT: msgspec.to_builtins(prepared.ground),
            **({FILES: digest_of(prepared.judge_files)} if prepared.judge_files else {}),
            **({UNSEEN: prepared.unseen} if prepared.unseen else {}),
            **(kept_facts(prepared.kept) if prepared.kept else {}),
        },
        cost_usd=prepared.caps.cost_usd,
        tokens=prepared.caps.tokens,
    )
