"""What starts by itself: queued tasks whose time has come, and agents that are to be woken.

It decides about nothing that it starts. Whether a run may begin is looked up in the transaction
that begins it; whoever was quicker, terminated or frozen meanwhile is a fact here, and no error.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple

from truegreen.doors.marks import put_back
from truegreen.errors import NotRunning, Refused, Stale, TruegreenError, Unavailable
from truegreen.facts import WakeCause
from truegreen.model import TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.dispatch import Due
from truegreen.record.rows import Wake
from truegreen.supervisor import Place, Supervisor, Watch
from truegreen.supervisor.holder import holder_name, host_name, read_holder
from truegreen.supervisor.metered import gateways_kept
from truegreen.supervisor.recovery import recover
from truegreen.supervisor.roster import obstacle
from truegreen.supervisor.tripwire import alarms

SHUT_DOWN = "the scheduler was shut down"
_BUSY_SECONDS, _IDLE_SECONDS = 0.05, 1.0
_HOUSE_SECONDS = 5.0
_PARKED_SECONDS = 30.0
_MARGIN_SECONDS = 600.0
"""By so much the clocks of two machines, or a slow commit, may be apart."""
_LOOK_AHEAD = 100


class Carried(NamedTuple):
    """What became of a task that was given a seat."""

    task: str
    status: TaskStatus | None
    error: str = ""
    """Why it was not carried on."""
    refused: bool = False
    """The record did not let it start: others were quicker, or it may not start any more."""
    unheard: str = ""
    """What went wrong with whoever was told."""


class Audience:
    """Whoever follows a scheduler; a face shows what it likes. Seats speak at the same time."""

    def watch(self, task: str) -> Watch:  # noqa: ARG002 - for those who show it
        """Who watches the walk of one task."""
        return Watch()

    def said(self, words: str) -> None:
        """Something that the scheduler did besides."""

    def ended(self, carried: Carried) -> None:
        """A seat is free again."""


class Seat:
    """A thread that carries out one task at a time, and lives as long as the scheduler.

    Agents die with the thread that started them, so it must not end before they do.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.free = True
        self.supervisor: Supervisor | None = None

    def take(self, job: Callable[[], None]) -> None:
        """Do this next; the job frees the seat itself."""
        self.free = False
        if self._thread is None:
            name = f"seat-{self._number}"
            self._thread = threading.Thread(target=self._sit, name=name, daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def close(self) -> None:
        """Let the thread end, after what it is at."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()

    def _sit(self) -> None:
        while job := self._jobs.get():
            job()


class Scheduler:
    """Gives queued tasks a seat each, as often as it is asked to look."""

    def __init__(
        self, ledger: Ledger, place: Place, audience: Audience | None = None, *, seats: int = 2
    ) -> None:
        self._ledger, self._place = ledger, place
        self._audience = audience or Audience()
        self._seats = [Seat(number) for number in range(1, seats + 1)]
        self._news: SimpleQueue[Carried | None] = SimpleQueue()
        """What seats say, and an empty word to look up; safe to use in a signal handler."""
        self._given: set[str] = set()
        self._parked: dict[str, tuple[int, float]] = {}
        """Tasks that did not move from this revision: they are not tried again at once."""
        self._kept_house = float("-inf")
        self._marked = 0
        self._out_of_reach = False
        self._was_frozen = False
        self.stopping = False

    # -- one look -------------------------------------------------------------------------------

    def tick(self) -> list[str]:
        """Look once: put right what the dead left, wake who is due, fill the free seats.

        Says which tasks were given a seat.
        """
        self.keep_house()
        self.wake()
        return self.dispatch()

    def keep_house(self) -> None:
        """Put right what the dead left, and what nobody did in time."""
        self._kept_house = time.monotonic()
        self._see_to_the_dead()
        self._ledger.expire_reviews()
        self._ledger.reconcile()

    def _see_to_the_dead(self) -> None:
        for task in recover(self._ledger):
            self._audience.said(f"{task}  its supervisor died, and its run was ended")
        for task, holder in self._ledger.reservations(host_name()):
            process = read_holder(holder)
            if process is not None and not process.alive():
                self._ledger.release(task, holder)
        # All marks once, then the new ones: those of terminates elsewhere come no other way.
        put_back(self._ledger, self._place.state_dir, self._marked)
        self._marked = int((time.time() - _MARGIN_SECONDS) * 1e6)
        for alarm in alarms(self._ledger, self._place):
            self._audience.said(alarm)

    def wake(self) -> list[str]:
        """Queue the tasks of agents that are to be woken now; says which."""
        if self.stopping or self._is_frozen():
            return []
        woken = [self._woken(wake) for wake in self._ledger.due(limit=_LOOK_AHEAD)]
        return [task for task in woken if task]

    def _woken(self, wake: Wake) -> str:
        """The task that a wake-up queued; one that leads nowhere is called off and said."""
        agent = self._ledger.woken_by(wake)
        why = obstacle(self._ledger, agent.id)
        unread = self._ledger.at_hand([agent])[agent.key].unread
        if not why and wake.cause is WakeCause.MESSAGE and not unread:
            why = "its messages have been read already"
        try:
            if not why:
                task = self._ledger.wake(wake.id)
                self._audience.said(f"{task.id}  wakes {agent.id} ({wake.cause})")
                return task.id
        except (Stale, NotRunning):
            return ""  # it is at something else by now, or somebody was quicker
        except Refused as refused:
            why = refused.message
        with suppress(Refused):  # terminated by now: then nothing is left to be called off
            self._ledger.call_off(wake.id, why)
        self._audience.said(f"{agent.id}  is not woken: {why}")
        return ""

    def _is_frozen(self) -> bool:
        """Whether nothing may start; said when that changes."""
        held = self._ledger.frozen()
        if held and not self._was_frozen:
            words = f"frozen by {held.actor}: {held.reason}; nothing starts before"
            self._audience.said(f"{words}: truegreen thaw --reason …")
        elif self._was_frozen and not held:
            self._audience.said("thawed: what is ready starts again")
        self._was_frozen = held is not None
        return self._was_frozen

    def dispatch(self) -> list[str]:
        """Give the free seats to what could start now; says which tasks."""
        if self.stopping or self._is_frozen():
            return []
        self._hear()
        free = sum(seat.free for seat in self._seats)
        return [due.task for due in self._ready()[:free] if self._give(due)] if free else []

    def _ready(self) -> list[Due]:
        """What could start now and is not under way here."""
        now = time.monotonic()
        found = self._ledger.dispatchable(limit=_LOOK_AHEAD)
        self._parked = {
            due.task: self._parked[due.task]
            for due in found
            if self._parked.get(due.task, (None, 0.0))[0] == due.revision
            and self._parked[due.task][1] > now
        }
        return [due for due in found if due.task not in self._given | self._parked.keys()]

    def _give(self, due: Due) -> bool:
        """A free seat for a task, unless another scheduler is about to carry it out."""
        task = due.chain or due.task
        if not self._ledger.reserve(task, holder_name()):
            return False
        seat = next(seat for seat in self._seats if seat.free)
        self._given.add(due.task)
        self._parked[due.task] = (due.revision, time.monotonic() + _PARKED_SECONDS)
        seat.take(lambda: self._carry(seat, due, task))
        return True

    # -- what happens in a seat -----------------------------------------------------------------

    def _carry(self, seat: Seat, due: Due, task: str) -> None:
        try:
            carried = self._carried(seat, task)
        except Exception as error:  # noqa: BLE001 - one task's fault must not take the seat away
            carried = Carried(task, None, f"internal error: {error!r}")
        seat.supervisor = None
        try:
            self._audience.ended(carried)
        except Exception as error:  # noqa: BLE001 - nor may whoever looks on
            carried = carried._replace(unheard=repr(error))
        finally:
            self._given.discard(due.task)
            seat.free = True
            self._news.put(carried)

    def _carried(self, seat: Seat, task: str) -> Carried:
        seat.supervisor = Supervisor(self._ledger, self._place, self._audience.watch(task))
        if self.stopping:
            seat.supervisor.stop(word=SHUT_DOWN)
        try:
            return Carried(task, seat.supervisor.carry(task).status)
        except Refused as refused:
            return Carried(task, self._ledger.task(task).status, refused.message, refused=True)
        except (TruegreenError, OSError) as error:
            return Carried(task, None, str(error))

    # -- going on and ending --------------------------------------------------------------------

    def run(self) -> None:
        """Look again and again, soon while there is work, until somebody stops it."""
        pause = _BUSY_SECONDS
        with gateways_kept():
            while not self.stopping:
                busy = self._looked() or self._hear(pause)
                pause = _BUSY_SECONDS if busy else min(pause * 2, _IDLE_SECONDS)
            self.drain()

    def once(self) -> list[Carried]:
        """One look, and all that could start then, carried to its end."""
        self.keep_house()
        self.wake()
        waiting = [] if self._is_frozen() else self._ready()
        carried: list[Carried] = []
        while not self.stopping and (waiting or self._given):
            while waiting and any(seat.free for seat in self._seats):
                self._give(waiting.pop(0))
            carried += self._hear(_IDLE_SECONDS)
        return carried + self.drain()

    def stop(self, *, at_once: bool = False) -> None:
        """Start nothing more, and end what is under way: gracefully, or at once.

        What was under way goes back into the queue, for whoever looks at it next. Safe in a signal
        handler.
        """
        self.stopping = True
        for seat in self._seats:
            if seat.supervisor:
                seat.supervisor.stop(at_once=at_once, word=SHUT_DOWN)
        self._news.put(None)

    def drain(self) -> list[Carried]:
        """Wait until every seat is free."""
        carried: list[Carried] = []
        while not all(seat.free for seat in self._seats):
            carried += self._hear(_IDLE_SECONDS)
        return carried + self._hear()

    def close(self) -> None:
        """Wait for the seats, and let their threads end."""
        self.drain()
        for seat in self._seats:
            seat.close()

    def _looked(self) -> bool:
        """Whether a look gave anybody a seat; a store out of reach is said once and waited for."""
        try:
            if time.monotonic() - self._kept_house > _HOUSE_SECONDS:
                self.keep_house()
            given = bool(self.wake()) | bool(self.dispatch())
        except Unavailable as error:
            if not self._out_of_reach:
                self._audience.said(f"the store is out of reach: {error.message}")
            self._out_of_reach = True
            return False
        self._out_of_reach = False
        return given

    def _hear(self, seconds: float = 0.0) -> list[Carried]:
        """What seats have ended, after waiting a little for the first to say so."""
        heard: list[Carried] = []
        with suppress(Empty):
            heard += filter(None, [self._news.get(timeout=seconds) if seconds else None])
            while True:
                heard += filter(None, [self._news.get_nowait()])
        return heard
