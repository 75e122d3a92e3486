"""Verbs about tasks in the hands of an engine.

A job is an order that can be taken once: by the first supervisor that comes with its name while the
task is still reserved for it. Whatever an engine does with a job afterwards (requeue it, start it
again, call it gone) can therefore start nothing. What it says of a job is kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from truegreen.contract import checked
from truegreen.errors import NotFound, Stale, Terminated
from truegreen.facts import SYSTEM, Actor, JobState, JobWord
from truegreen.model import EventLevel, Note, TaskStatus
from truegreen.record.ids import new_id
from truegreen.record.ledger.desk import Entry
from truegreen.record.ledger.dispatch import RESERVED_SECONDS, Dispatch
from truegreen.record.ledger.inputs import REASON_LIMIT, microseconds
from truegreen.record.ledger.reads import bounded
from truegreen.record.lifecycle import SETTLED
from truegreen.record.rows import FOR_ENGINES, Job, Task, read
from truegreen.record.store import Tx
from truegreen.tuples import NamedTuple

_FIELDS = len(Job.__struct_fields__)
_NAME = 100


class Placed(NamedTuple):
    """A job that its engine may still have, and how its task stands."""

    job: Job
    task: str
    status: TaskStatus
    sealed: bool
    reserved_by: str
    now: int
    """By the store's clock."""

    @property
    def is_wanted(self) -> bool:
        """Whether the record still waits for this job, or for the supervisor that it started."""
        own = self.job.holder if self.job.state is JobState.TAKEN else self.job.reserves
        return self.reserved_by == own and self.status not in SETTLED and not self.sealed


class Jobs(Dispatch):
    """Tasks that others place."""

    def order_job(self, task_id: str, engine: str, *, actor: Actor = SYSTEM) -> Job | None:
        """Reserve a task for a job that an engine is about to get; None where somebody else has it.

        The order stands before the engine knows of it, so that no crash in between starts two.
        """
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], Job | None]:
            task = self._task(tx, task_id)
            _check_open(task)
            values = {"task_key": task.key, "attempt": task.attempt, "now": tx.now}
            name = checked(engine, "engine", _NAME)
            job_id = new_id("job", tx.now)
            if not self._reserve(tx, task_id, f"{FOR_ENGINES}{name}/{job_id}", take=False):
                return lambda: None
            hit = tx.hit("insert_job", id=job_id, engine=name, **values)
            return lambda: read(Job, hit.row)

        return self._do(act)

    def place_job(self, job_id: str, handle: str, *, actor: Actor = SYSTEM) -> Job:
        """The engine has it, and calls it so."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], Job]:
            _job(tx, job_id)
            hit = tx.hit("place_job", id=job_id, handle=checked(handle, "handle", 200), now=tx.now)
            return lambda: read(Job, hit.row)

        return self._do(act)

    def see_job(self, job_id: str, word: JobWord, said: str = "", *, actor: Actor = SYSTEM) -> Job:
        """Keep what the engine says of a job; while it waits, its task stays reserved for it."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], Job]:
            self._task(tx, _job(tx, job_id)[1])
            row = tx.one("see_job", id=job_id, word=word, said=said[:REASON_LIMIT], now=tx.now)
            job = read(Job, row) if row else _job(tx, job_id)[0]
            if job.state is JobState.PLACED and word is not JobWord.GONE:
                self._keep_for(tx, job, RESERVED_SECONDS)
            return lambda: job

        return self._do(act)

    def take_job(self, job_id: str, task_id: str, holder: str, *, actor: Actor = SYSTEM) -> Job:
        """Begin with the task of a job: once, and only while it is reserved for that job."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], Job]:
            task = self._task(tx, task_id)
            _check_open(task)
            job, _ = _job(tx, job_id)
            if (job.state, job.holder, job.task_key) == (JobState.TAKEN, holder, task.key):
                return lambda: job  # the answer to it was lost on the way
            row = None
            if job.state is JobState.PLACED:
                row = tx.one(
                    "take_reservation",
                    task_key=task.key,
                    own=job.reserves,
                    holder=checked(holder, "holder", 200),
                    expires_at=tx.now + microseconds(RESERVED_SECONDS),
                )
            if row is None:
                message = f"{job_id} is no order for {task_id} any more ({job.state})"
                raise Stale(f"{message}: nothing is started", stale="job", state=job.state)
            hit = tx.hit("take_job", id=job_id, holder=holder, now=tx.now)
            return lambda: read(Job, hit.row)

        return self._do(act)

    def lose_job(
        self, job_id: str, why: str, *, pauses: Sequence[float], actor: Actor = SYSTEM
    ) -> tuple[Job, int]:
        """Nothing came of this job, and nobody may come with it; says how many were lost so far.

        It costs the task nothing. After the first it is handed to nobody for as many seconds as the
        first pause says, and so on.
        """
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], tuple[Job, int]]:
            task = self._task(tx, _job(tx, job_id)[1])
            job = _ended(tx, job_id, JobState.LOST, why)
            row = tx.one("jobs_lost", task_key=job.task_key, attempt=job.attempt)
            lost = row[0] if row else 1
            self._keep_for(tx, job, pauses[min(lost, len(pauses)) - 1])
            words = f"{job.engine} lost {job.handle or 'a job'} before it started: {why}"
            data = {"job": job.id, "engine": job.engine, "handle": job.handle}
            entry = Entry(actor, words[:REASON_LIMIT], data=data, level=EventLevel.WARN)
            self._note(tx, task, Note.MESSAGE, entry)
            return lambda: (job, lost)

        return self._do(act)

    def close_job(self, job_id: str, why: str, *, pause: float = 0, actor: Actor = SYSTEM) -> Job:
        """Nothing more comes of a job, and nothing follows from that."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], Job]:
            self._task(tx, _job(tx, job_id)[1])
            job = _ended(tx, job_id, JobState.OVER, why)
            self._keep_for(tx, job, pause)
            return lambda: job

        return self._do(act)

    def open_jobs(self, engine: str, *, limit: int = 1000) -> list[Placed]:
        """The jobs that an engine may still have."""
        with self._store.snapshot() as tx:
            now, rows = tx.now, tx.all("open_jobs", engine=engine, n=bounded(limit))
        return [
            Placed(
                read(Job, row[:_FIELDS]),
                row[-4],
                TaskStatus(row[-3]),
                bool(row[-2]),
                row[-1] or "",
                now,
            )
            for row in rows
        ]

    def jobs_of(self, task_id: str) -> list[Job]:
        """Every job that a task was handed over as."""
        with self._store.snapshot() as tx:
            return [read(Job, row) for row in tx.all("jobs_of_task", task=task_id)]

    @staticmethod
    def _keep_for(tx: Tx, job: Job, seconds: float) -> None:
        """Reserved for a job that waits; what a supervisor left unfinished is free at once."""
        until = tx.now + microseconds(seconds if not job.holder else 0)
        own = job.holder or job.reserves
        tx.run("keep_for_job", task_key=job.task_key, own=own, expires_at=until)


def _ended(tx: Tx, job_id: str, state: JobState, why: str) -> Job:
    """The job as it was before."""
    job, _ = _job(tx, job_id)
    if job.state not in (JobState.PLACED, JobState.TAKEN):
        raise Stale(f"{job_id} is {job.state} already", stale="job", state=job.state)
    said = why[:REASON_LIMIT]
    tx.hit("end_job", id=job_id, to_state=state, from_state=job.state, said=said, now=tx.now)
    return job


def _job(tx: Tx, job_id: str) -> tuple[Job, str]:
    row = tx.one("job", id=job_id)
    if row is None:
        raise NotFound(f"no job {job_id}")
    return read(Job, row[:_FIELDS]), str(row[-1])


def _check_open(task: Task) -> None:
    if task.sealed_at is not None:
        message = f"{task.id} is sealed for ever (status: {task.status})"
        raise Terminated(message, status=task.status, fence=task.fence)
