"""Tasks that an engine places: handed over, looked after, and never believed dead or done.

The order stands in the record before the engine hears of it. From then on only the record counts:
the supervisor that a job starts takes the task, holds its lease and ends it. What the engine says
moves a task in one case alone, where nobody took the order: it goes back into the queue, free.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress

from truegreen.contract import Contract, read_contract
from truegreen.contract.engines import Engine as Settings
from truegreen.contract.engines import EngineKind
from truegreen.engines import Engine, Order, Seen
from truegreen.errors import Refused, TruegreenError, Unavailable
from truegreen.facts import JobState, JobWord
from truegreen.model import ExitDetail, TaskStatus
from truegreen.record.ledger import Ledger, Start
from truegreen.record.ledger.dispatch import Due
from truegreen.record.ledger.jobs import Placed
from truegreen.record.rows import Job
from truegreen.supervisor.holder import holder_name
from truegreen.supervisor.place import Place
from truegreen.supervisor.pulse import LEASE_SECONDS
from truegreen.supervisor.recovery import failure
from truegreen.work.agents import adapter_of
from truegreen.work.environment import agent_environment

MOST_LOST = 3
"""So many jobs of a task may come to nothing in a row; then its run has failed to launch."""
LOOK_SECONDS = 2.0
_GONE_SECONDS = 4.0
"""For so long an engine has to say that a job is gone before anybody goes by it."""
_UNANSWERED_SECONDS = 120.0
_TIDY_SECONDS = 30.0
"""For so long a supervisor may take to leave after its task was settled or taken from it."""
_PAUSES = (5.0, 30.0)
_TAIL_BYTES = 2000
_MARGIN_SECONDS = 3600
Said = Callable[[str], None]


class Placing:
    """One engine and the jobs that it has of this store."""

    def __init__(
        self,
        ledger: Ledger,
        engine: Engine,
        settings: Settings,
        place: Place,
        *,
        store: str,
        said: Said = lambda _: None,
    ) -> None:
        self._ledger, self._engine, self._settings = ledger, engine, settings
        self._place, self._store, self._said = place, store, said
        self._looked = float("-inf")
        self._closed_until = float("-inf")
        self._mute = False
        self._unwanted: dict[str, float] = {}
        self._doubted: set[str] = set()

    @property
    def name(self) -> str:
        """What the record calls this engine."""
        return self._settings.called

    @property
    def most(self) -> int:
        """How many jobs the engine gets at the same time."""
        return self._settings.most

    @property
    def room(self) -> int:
        """How many jobs may be handed over now."""
        if time.monotonic() < self._closed_until:
            return 0
        return max(0, self.most - len(self._ledger.open_jobs(self.name)))

    def is_idle(self) -> bool:
        """Whether the engine has no job of ours any more, as far as the record knows."""
        return not self._ledger.open_jobs(self.name)

    # -- handing over ---------------------------------------------------------------------------

    def hand_over(self, due: Due) -> bool:
        """Order a job for a task, unless somebody else is about to carry it out."""
        task = due.chain or due.task
        job = self._ledger.order_job(task, self.name)
        if job is None:
            return False
        try:
            handle = self._engine.submit(self._order(task, job.id))
        except Refused as refused:
            self._lose(task, job.id, refused.message)
            return False
        except (Unavailable, OSError) as error:
            # Nobody's fault but the engine's: it is not counted, and nothing is handed over soon.
            self._ledger.close_job(job.id, str(error), pause=_PAUSES[0])
            self._out_of_reach(str(error))
            return False
        self._ledger.place_job(job.id, handle)
        self._said(f"{task}  handed to {self.name} as job {handle}")
        return True

    def _order(self, task: str, job: str) -> Order:
        contract = read_contract(self._ledger.dossier(task).contract)
        settings = self._settings
        inside = settings.kind is EngineKind.KUBERNETES  # of an image, which has files of its own
        program = settings.program or ("truegreen" if inside else self._place.program)
        words = [program, "attempt", task, "--job", job, "--json"]
        if self._place.settings and not inside:
            words += ["--config", self._place.settings]
        folder = os.path.join(self._place.state_dir, "engine")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        seconds = int(settings.time or contract.caps.time * 2) // 1_000_000
        return Order(
            job=job,
            task=task,
            argv=tuple(words),
            env=self._environment(contract),
            labels=contract.labels,
            seconds=seconds if settings.time else seconds + _MARGIN_SECONDS,
            log=os.path.join(folder, f"{job}.log"),
        )

    def _environment(self, contract: Contract) -> dict[str, str]:
        """What an agent and its checks would get here, and the store, which may have a password."""
        judges = (
            name for judge in contract.evaluators for name in (*judge.pass_env, judge.key_env)
        )
        adapter = adapter_of(contract.adapter, contract.command, contract.cwd)
        gates = (name for gate in contract.gates for name in gate.pass_env)
        checks = (*filter(None, judges), *gates)
        passes = (*adapter.passes, *contract.pass_env, *checks, *self._settings.env)
        own = {"TRUEGREEN_STORE": self._store}
        return agent_environment(self._place.environ, passes, own)[0]

    # -- looking after --------------------------------------------------------------------------

    def look(self) -> None:
        """Hear what the engine says, and put right what nobody else would; at most every 2 s."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        found = self._ledger.open_jobs(self.name)
        named = [each.job.handle for each in found if each.job.handle]
        seen = self._heard(named) if named else {}
        for each in found:
            with suppress(Refused):  # somebody else has seen to it meanwhile
                self._see_to(each, seen.get(each.job.handle))
        self._unwanted = {k: v for k, v in self._unwanted.items() if k in {e.job.id for e in found}}

    def _heard(self, handles: list[str]) -> dict[str, Seen]:
        try:
            seen = self._engine.look(handles)
        except (Unavailable, OSError) as error:
            self._out_of_reach(str(error))
            return {}
        self._mute = False
        return seen

    def _see_to(self, placed: Placed, seen: Seen | None) -> None:
        if seen is None and placed.job.handle:
            return  # the engine said nothing, and that means nothing
        if seen is not None:
            job = self._ledger.see_job(placed.job.id, seen.word, seen.said)
            placed = placed._replace(job=job)
        if placed.is_wanted:
            self._unwanted.pop(placed.job.id, None)
            self._see_to_wanted(placed)
        else:
            self._see_to_unwanted(placed)

    def _see_to_wanted(self, placed: Placed) -> None:
        job = placed.job
        if not job.handle:
            if placed.now - job.created_at > _UNANSWERED_SECONDS * 1e6:
                self._lose(placed.task, job.id, "it is not known whether it was handed over")
        elif not _is_gone(job):
            self._doubted.discard(job.id)
        elif job.state is JobState.PLACED or placed.status is TaskStatus.QUEUED:
            self._lose(placed.task, job.id, job.said + self._tail(job.id))
        elif job.id not in self._doubted:
            self._doubted.add(job.id)
            words = f"{self.name} says that job {job.handle} is gone ({job.said})"
            self._said(f"{placed.task}  {words}; its run goes on until its lease says otherwise")

    def _see_to_unwanted(self, placed: Placed) -> None:
        """Called off, settled or taken over: it can start nothing; what is left is tidied away."""
        job = placed.job
        if _is_gone(job) or not job.handle:
            self._ledger.close_job(job.id, job.said)
            return
        now = time.monotonic()
        first = job.id not in self._unwanted
        since = self._unwanted.setdefault(job.id, now)
        may_leave = now - since < _TIDY_SECONDS and (job.state is JobState.TAKEN or not first)
        if job.word is JobWord.GONE or may_leave:
            return
        self._unwanted[job.id] = now
        try:
            self._engine.cancel(job.handle)
        except (TruegreenError, OSError) as error:
            self._said(f"{placed.task}  {self.name} did not cancel job {job.handle}: {error}")
            return
        self._said(
            f"{placed.task}  asked {self.name} to cancel job {job.handle}: not wanted any more"
        )

    def _tail(self, job: str) -> str:
        """The last that a job printed, where its log can be read from here."""
        file = os.path.join(self._place.state_dir, "engine", f"{job}.log")
        with suppress(OSError), open(file, "rb") as stream:
            stream.seek(max(0, os.path.getsize(file) - _TAIL_BYTES))
            text = stream.read().decode("utf-8", "replace").strip()
            return f": {text}" if text else ""
        return ""

    def _lose(self, task: str, job: str, why: str) -> None:
        """Nobody began with it: free for the task the first times, a failed launch in the end."""
        _, lost = self._ledger.lose_job(job, why, pauses=_PAUSES)
        if lost >= MOST_LOST:
            self._said(f"{task}  {self.name} lost {lost} jobs in a row: {why}")
            self._fail(task, f"{self.name} lost {lost} jobs before they started, the last: {why}")
            return
        pause = _PAUSES[min(lost, len(_PAUSES)) - 1]
        self._said(f"{task}  {self.name} lost its job: {why}; again in {pause:.0f} s")

    def _fail(self, task: str, why: str) -> None:
        """A run that could not be launched, so that budgets and people see it."""
        found = self._ledger.task(task)
        if found.status is TaskStatus.PENDING_QA:
            waiting = self._ledger.reviews_of(task)
            task = next((each.id for each in waiting if each.status is TaskStatus.QUEUED), task)
        ticket = self._ledger.start(task, Start(holder_name(), LEASE_SECONDS))
        self._ledger.end_run(ticket, failure(Unavailable(why), ExitDetail.LAUNCH_FAILED))

    def _out_of_reach(self, words: str) -> None:
        self._closed_until = time.monotonic() + _PAUSES[0]
        if not self._mute:
            self._said(f"{self.name}: {words}; tasks wait, and those that run go on")
        self._mute = True


def _is_gone(job: Job) -> bool:
    """Whether its engine has said so for long enough, at two looks or more."""
    return job.gone_at is not None and (job.looked_at or 0) - job.gone_at >= _GONE_SECONDS * 1e6
