"""A round of chaos: tasks, one fault among their agents, and what must hold when all is settled."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypeVar

from tests.chaos.hosts import ADDRESS, LEASE, SHIFTED, Host, network
from tests.chaos.witness import ME, Clerk, Follower, Life, lives, now, overlaps, recorded
from tests.conftest import prepare_template
from tests.postgres_server import PostgresServer, find_installation
from truegreen.contract import Budget, Contract, Gate, GateKind, QaTerms
from truegreen.errors import Unavailable
from truegreen.model import RunStatus, TaskStatus
from truegreen.record import doctor
from truegreen.record.ledger import open_ledger
from truegreen.record.ledger.reads import Told

T = TypeVar("T")
S = TaskStatus
SETTLED = {TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.NEEDS_REVIEW, TaskStatus.BLOCKED}
PATIENCE = 90.0
_GLANCES = 10
FEED_SECONDS = 15.0
"""So long the feed may lag behind: a writer that was cut off holds it until the server lets go."""
LONG = LEASE * 1.5
"""Past the lease and past the take-over."""
_GATE = Gate(name="made", kind=GateKind.RUN, command=("test", "-e", "made"))
_AGENT = """
exec 3<> <(:)  # to wait at, without a process for each beat
mark() { read -r up _ < /proc/uptime; echo "$TRUEGREEN_RUN $host $up" >> marks; }
read -r host < /proc/sys/kernel/hostname
n=0; test -e marks && n=$((%(beats)d - 20))
mark
while [ $n -lt %(beats)d ]; do read -r -t 0.05 -u 3; mark; n=$((n + 1)); done
%(ending)s
"""


class Kind(StrEnum):
    """What an agent does when its time is over."""

    HONEST = "touch made"
    LIAR = "exit 0"
    STUMBLER = "test -e tried && touch made || { touch tried; kill -SEGV $$; }"


class Fault(StrEnum):
    """What happens to a host, or to the database."""

    CUT = "link cut past the lease"
    BLINK = "link cut for less than the lease"
    FROZEN = "worker stopped past its lease"
    KILLED = "worker killed, started at once"
    GONE = "worker killed, started after the take-over"
    CRASH = "database killed, started at once"
    OUTAGE = "database killed, away past the lease"
    AHEAD = "clock of a host one hour ahead"
    BEHIND = "clock of a host one hour behind"


PAST_THE_LEASE = {Fault.CUT, Fault.FROZEN, Fault.KILLED, Fault.GONE, Fault.OUTAGE}
"""Where an agent that nobody killed would still be at work when its successor begins."""
OF_THE_DATABASE = {Fault.CRASH, Fault.OUTAGE}
OF_THE_CLOCK = {Fault.AHEAD: 3600, Fault.BEHIND: -3600}


class Job(NamedTuple):
    """A task of a round."""

    task: str
    kind: Kind
    folder: Path


class Place(NamedTuple):
    """How far the witnesses were at some time."""

    feed: tuple[int, int] = (0, 0)
    seen: int = 0
    promised: int = 0


class Round(NamedTuple):
    """What came of one."""

    fault: Fault
    host: str
    statuses: list[str]
    wrong: list[str]
    again: list[float]
    """From the fault to the next agent of each task that it hit."""
    fresh: float
    """From the fault to the agent of a task that was added right after it."""
    settled: float


class Fleet:
    """Three hosts, a database, and two witnesses."""

    def __init__(self, server: PostgresServer, hosts: list[Host], folder: Path, seed: int) -> None:
        self.server, self.folder = server, folder
        self.hosts = {host.name: host for host in hosts}
        name = server.create_database()
        self.url = server.url(name)
        self._remote = f"postgresql://postgres@{ADDRESS}/{name}"
        prepare_template(self.url)
        self.ledger = open_ledger(self.url)
        self.chance = random.Random(seed)  # noqa: S311 - a choice
        self.follower, self.clerk = Follower(self.url), Clerk(self.url)
        self._places = [Place(), Place()]
        self._jobs = 0
        for host in hosts:
            self.start(host)

    def start(self, host: Host) -> None:
        host.start(self._remote, *(("--labels", "clock") if host.name == SHIFTED else ()))

    def add(self, kind: Kind, *labels: str, long: bool = False) -> Job:
        """A task; what is acknowledged must stay."""
        self._jobs += 1
        folder = self.folder / "work" / str(self._jobs)
        folder.mkdir(parents=True)
        beats = self.chance.randint(110, 130) if long else self.chance.randint(25, 45)
        contract = Contract(
            title=f"{kind.name.lower()} {self._jobs}",
            command=("bash", "-c", _AGENT % {"beats": beats, "ending": kind.value}),
            cwd=str(folder),
            gates=(_GATE,),
            qa=QaTerms(roles=()),
            budget=Budget(attempts=4 if kind is not Kind.LIAR else 2),
            labels=labels,
        )
        task = self.lasting(lambda: self.ledger.open(contract, actor=ME).id)
        return Job(task, kind, folder)

    def lasting(self, act: Callable[[], T]) -> T:
        """Ask again while the database is away."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return act()
            except Unavailable:
                assert time.monotonic() < deadline, "the database did not come back"
                time.sleep(0.02)

    # -- a round ----------------------------------------------------------------------------------

    def round(self, fault: Fault) -> Round:
        """Add, hurt, wait, look."""
        labels = ("clock",) if fault in OF_THE_CLOCK else ()
        jobs, host = self._at_work(labels, long=fault in PAST_THE_LEASE)
        hit = [
            job
            for job in jobs
            if any(life.host == host.name for life in lives(job.folder))
            and (labels or job.kind is not Kind.STUMBLER)  # that one begins again by itself
        ]
        began = now()
        before = {job.task: {life.run for life in lives(job.folder)} for job in hit}
        late = self._hurt(fault, host)
        jobs += late
        self.settle(jobs)
        settled = now() - began
        again = [at - began for job in hit if (at := self._next(job, before[job.task]))]
        fresh = lives(late[0].folder)[0].first - began
        statuses = [str(self.status(job)) for job in jobs]
        wrong = self._wrong(jobs)
        return Round(fault, host.name, statuses, wrong, again, fresh, settled)

    def _at_work(self, labels: tuple[str, ...], *, long: bool) -> tuple[list[Job], Host]:
        """Jobs, and a host at which an agent is at one; on a busy machine some pass by unseen."""
        for _ in range(_GLANCES):
            jobs = [
                self.add(Kind.HONEST, long=long),
                self.add(Kind.LIAR),
                self.add(Kind.STUMBLER, *labels),
            ]
            watched = jobs[:1] if long else jobs
            if host := self._victim(watched, jobs, SHIFTED if labels else ""):
                return jobs, host
        raise AssertionError("no agent was seen at work")

    def _victim(self, watched: list[Job], jobs: list[Job], wanted: str) -> Host | None:
        """A host at which an agent is at work, or None when all of it is over."""

        def young() -> list[Life]:
            found = (life for job in watched for life in lives(job.folder)[-1:])
            return [life for life in found if wanted in {"", life.host} and _is_young(life)]

        def over() -> bool:
            return all(self.status(job) in SETTLED for job in jobs)

        self._until(lambda: young() or over(), "no agent began", jobs)
        marks = young()
        return self.hosts[self.chance.choice(marks).host] if marks else None

    def _hurt(self, fault: Fault, host: Host) -> list[Job]:
        """Do it and undo it; what was added meanwhile."""
        with self._suffering(fault, host) as seconds:
            if fault in OF_THE_DATABASE:
                time.sleep(seconds)
                late: list[Job] = []
            else:
                late = [self.add(Kind.HONEST)]
                time.sleep(seconds)
        return late or [self.add(Kind.HONEST)]

    @contextmanager
    def _suffering(self, fault: Fault, host: Host) -> Iterator[float]:
        match fault:
            case Fault.CUT | Fault.BLINK:
                host.cut()
                yield LONG if fault is Fault.CUT else LEASE / 4
                host.heal()
            case Fault.FROZEN:
                host.signal(signal.SIGSTOP)
                yield LONG
                host.signal(signal.SIGCONT)
            case Fault.KILLED | Fault.GONE:
                host.kill()
                yield 0.0 if fault is Fault.KILLED else LONG
                self.start(host)
            case Fault.CRASH | Fault.OUTAGE:
                self._kill_database()
                yield 0.0 if fault is Fault.CRASH else LONG
                self.server.restart()
            case Fault.AHEAD | Fault.BEHIND:
                host.shift(OF_THE_CLOCK[fault])
                yield LEASE / 3

    def _kill_database(self) -> None:
        """Every process of it at once; then nothing of it is alive, whatever its file says."""
        file = self.server.home / "data" / "postmaster.pid"
        main = int(file.read_text().split()[0])
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        for pid in (main, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._until(lambda: not any(_alive(int(pid)) for pid in children), "it lives")
        file.unlink()

    def settle(self, jobs: list[Job]) -> None:
        def all_settled() -> bool:
            return all(self.status(job) in SETTLED for job in jobs)

        self._until(all_settled, "not settled", jobs)
        for host in self.hosts.values():
            host.shift(0)

    def status(self, job: Job) -> TaskStatus:
        return self.lasting(lambda: self.ledger.task(job.task).status)

    def _until(self, true: Callable[[], T], what: str, jobs: list[Job] | None = None) -> T:
        deadline = time.monotonic() + PATIENCE
        while not (found := true()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: {[self._story(job) for job in jobs or ()]}")
            time.sleep(0.1)
        return found

    def _story(self, job: Job) -> str:
        told = [(e.event.event, e.event.to_status, e.event.reason) for e in self._events(job)]
        why = ""
        if self.status(job) is S.QUEUED:
            why = str(self.lasting(lambda: self.ledger.why(job.task)))
        return f"{job.task} {job.kind.name} {told} {why} {lives(job.folder)}"

    def _events(self, job: Job) -> list[Told]:
        return self.lasting(lambda: self.ledger.events(job.task))

    @staticmethod
    def _next(job: Job, before: set[str]) -> float:
        return next((life.first for life in lives(job.folder) if life.run not in before), 0.0)

    # -- what must hold ---------------------------------------------------------------------------

    def _wrong(self, jobs: list[Job]) -> list[str]:
        self.follower.check()
        self.clerk.check()
        found = [words for job in jobs for words in self.of(job)]
        since = self._places[-1]._replace(feed=self._places[-2].feed)
        found += [f"lost: {words}" for words in self._lost_for_good(since, FEED_SECONDS)]
        found += [f"record: {ailment.message}" for ailment in doctor.examine(self.ledger)]
        return found

    def of(self, job: Job) -> Iterator[str]:
        dossier = self.ledger.dossier(job.task)
        marks = lives(job.folder)
        yield from (f"double run of {job.task}: {pair}" for pair in overlaps(marks))
        if dossier.task.status is TaskStatus.SUCCEEDED:
            if job.kind is Kind.LIAR or not (job.folder / "made").exists():
                yield f"wrong green: {self._story(job)}"
        elif job.kind is not Kind.LIAR and dossier.task.status is not TaskStatus.NEEDS_REVIEW:
            yield f"honest work is not done: {self._story(job)}"
        known = {run.id: run for run in dossier.runs}
        for life in marks:
            if life.run not in known:
                yield f"{life} is not in the record"
            elif known[life.run].status is RunStatus.LOST:
                yield from self._late(job, life)

    def _late(self, job: Job, life: Life) -> Iterator[str]:
        """Marks that a lost agent made after the record let go of it."""
        gone = [
            seen.at
            for seen in list(self.follower.seen)
            if seen.task == job.task
            and seen.event.run_id == life.run
            and seen.event.from_status is TaskStatus.RUNNING
        ]
        if gone and life.last > min(gone):
            yield f"{life} acted {life.last - min(gone):.2f} s after it was taken over"

    def _lost(self, after: Place) -> Iterator[str]:
        """What a witness was shown or promised since then, and the record does not have."""
        seen, promised = list(self.follower.seen), list(self.clerk.promised)
        kept = recorded(self.ledger, after.feed)
        for each in seen[after.seen :]:
            told = kept.get(each.event.id)
            if told is None or told.event != each.event:
                yield f"{each.event.event} of {each.task}"
        has = {
            (told.task, told.event.to_status or (S.QUEUED if told.event.event == "open" else None))
            for told in kept.values()
        }
        for task, status in promised[after.promised :]:
            if (task, status) not in has:
                yield f"{task} became {status}, it was said"
        # An event may be seen before its answer is: the next look begins a round earlier.
        newest = seen[-1].event if seen else None
        feed = (newest.xact, newest.key) if newest else (0, 0)
        self._places.append(Place(feed, len(seen), len(promised)))

    def _lost_for_good(self, after: Place, seconds: float) -> list[str]:
        """The feed shows a row once no older writer can come before it: one may be cut off."""
        deadline, places = time.monotonic() + seconds, list(self._places)
        while (lost := list(self._lost(after))) and time.monotonic() < deadline:
            self._places = list(places)
            time.sleep(0.1)
        return lost

    def lost_in_all(self, seconds: float = 0.0) -> list[str]:
        """The same for the whole time."""
        return self._lost_for_good(Place(), seconds)

    def close(self) -> None:
        self.follower.close()
        self.clerk.close()
        self.ledger.close()


def _is_young(life: Life) -> bool:
    """Whether it is at work, and will be for a while."""
    return now() - life.last < 0.3 and now() - life.first < 0.7


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@contextmanager
def fleet(folder: Path, seed: int) -> Iterator[Fleet]:
    """The whole of it, for a while."""
    installation = find_installation()
    assert installation is not None
    with ExitStack() as closing:
        switch, hosts = closing.enter_context(network(folder))
        guarded = PostgresServer.guarded(installation, ADDRESS, switch.inside)
        server = closing.enter_context(guarded)
        server.start()
        made = Fleet(server, hosts, folder, seed)
        closing.callback(made.close)
        yield made
        for host in hosts:
            host.kill()
