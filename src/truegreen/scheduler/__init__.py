"""What starts by itself: queued tasks whose time has come, routines, agents that are to be woken.

It decides about nothing that it starts. Whether a run may begin is looked up in the transaction
that begins it; whoever was quicker, terminated or frozen meanwhile is a fact here, and no error.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from truegreen.contract.reading import learn_types
from truegreen.doors.marks import put_back
from truegreen.errors import NotRunning, Refused, Stale, TruegreenError, Unavailable
from truegreen.facts import WakeCause
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.dispatch import Due
from truegreen.record.recurrence import Fate
from truegreen.record.rows import Wake
from truegreen.scheduler.budgets import look_at_budgets
from truegreen.scheduler.fleet import Card, counted, hearing, offered, present
from truegreen.scheduler.placing import Placing
from truegreen.scheduler.routines import Follow, Recurring
from truegreen.scheduler.seats import Audience, Carried, Seat, faults_of
from truegreen.supervisor.awaiting import Files
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.holder import holder_name, host_name, read_holder
from truegreen.supervisor.metered import gateways_kept
from truegreen.supervisor.outpost import sweep_checkouts
from truegreen.supervisor.place import Place
from truegreen.supervisor.pulse import LEASE_SECONDS
from truegreen.supervisor.recovery import recover
from truegreen.supervisor.roster import obstacle
from truegreen.supervisor.takeover import Lookout
from truegreen.supervisor.tripwire import alarms
from truegreen.work.exits import SHUT_DOWN

__all__ = ["Audience", "Carried", "Placing", "Scheduler", "Seat"]

_BUSY_SECONDS, _IDLE_SECONDS = 0.05, 1.0
_JITTER = (0.8, 1.2)
"""So that a fleet does not look all at once."""
_HOUSE_SECONDS = 5.0
_PARKED_SECONDS = 30.0
_MARGIN_SECONDS = 600.0
"""By so much the clocks of two machines, or a slow commit, may be apart."""
_LOOK_AHEAD = 100


class Scheduler:
    """Gives queued tasks a seat each, as often as it is asked to look."""

    def __init__(
        self,
        ledger: Ledger,
        place: Place,
        audience: Audience | None = None,
        *,
        seats: int = 2,
        labels: tuple[str, ...] = (),
        follow: Follow | None = None,
        chores: tuple[Callable[[], None], ...] = (),
        placing: Placing | None = None,
        most_here: int | None = None,
    ) -> None:
        """`most_here` is how many tasks all processes of this machine may carry out at once."""
        learn_types()
        self._ledger, self._place = ledger, place
        self._labels, self._most_here = offered(labels), most_here
        self._card = Card(labels, seats, lambda: (self.busy, self.resting or self.stopping))
        self._lookout = Lookout(ledger, place.lease)
        self._house_seconds = min(_HOUSE_SECONDS, place.lease * _HOUSE_SECONDS / LEASE_SECONDS)
        self._chores, self._turned = chores, time.monotonic()
        self._placing = placing
        """Who gives work to an engine; then nothing is given to seats."""
        self._audience = audience or Audience()
        self._recurring = Recurring(ledger, self._audience, follow)
        self._files = Files(ledger)
        self._seats = [Seat(number) for number in range(1, seats + 1)]
        self._news: SimpleQueue[Carried | None] = SimpleQueue()
        """What seats say, and an empty word to look up; safe to use in a signal handler."""
        self._given: dict[str, str] = {}
        """What seats are at, and the task that is reserved for it."""
        self._left: set[str] = set()
        """What was carried out in a seat; its reservation should be gone."""
        self._parked: dict[str, tuple[int, float]] = {}
        """Tasks that did not move from this revision: they are not tried again at once."""
        self._kept_house = float("-inf")
        self._marked = 0
        self._out_of_reach = False
        self._was_frozen = False
        self.stopping = False
        self.resting = False
        """Whether it starts nothing more and lets what is under way end."""
        self._rests_until = float("inf")

    @property
    def offers(self) -> tuple[str, ...]:
        """What tasks may ask of it: its labels, and that it is this host."""
        return self._labels

    @property
    def busy(self) -> int:
        """How many seats are taken."""
        return sum(not seat.free for seat in self._seats)

    @property
    def at_once(self) -> int:
        """How many tasks it has carried out at the same time."""
        return self._placing.most if self._placing else len(self._seats)

    # -- one look -------------------------------------------------------------------------------

    def tick(self) -> list[str]:
        """Look once: put right what the dead left, wake who is due, fill the free seats.

        Says which tasks were given a seat.
        """
        self.keep_house()
        self.recur()
        self.wake()
        self.look_for_files()
        return self.dispatch()

    def keep_house(self) -> None:
        """Put right what the dead left, and what nobody did in time."""
        self._kept_house = time.monotonic()
        self._see_to_the_dead()
        self._ledger.expire_reviews()
        self._ledger.reconcile()
        self._recurring.keep()
        for words in look_at_budgets(self._ledger):
            self._audience.said(words)
        for chore in self._chores:
            chore()

    def recur(self) -> list[str]:
        """Queue what is due of the routines; says which tasks."""
        happened = [] if self.stopping else self._recurring.look()
        return [each.task for each in happened if each.fate is Fate.FIRED]

    def faults(self) -> list[str]:
        """Why it can't be said that it looks for work; nothing where it does."""
        return faults_of(self._turned, self._seats)

    def _see_to_the_dead(self) -> None:
        for task in recover(self._ledger):
            self._audience.said(f"{task}  its supervisor died, and its run was ended")
        for words in self._lookout.look():
            self._audience.said(words)
        self._ledger.release_silent()
        found = self._ledger.reservations(host_name())
        for task, holder in found:
            process = read_holder(holder)
            if process is not None and not (process.alive() and self._stands_behind(task, holder)):
                self._ledger.release(task, holder)
        self._left &= {task for task, _ in found}
        # All marks once, then the new ones: those of terminates elsewhere come no other way.
        put_back(self._ledger, self._place.state_dir, self._marked)
        self._marked = int((time.time() - _MARGIN_SECONDS) * 1e6)
        for alarm in alarms(self._ledger, self._place):
            self._audience.said(alarm)
        for task in sweep_checkouts(self._ledger, self._place):
            self._audience.said(f"{task}  its checkout is removed: it was settled long ago")

    def _stands_behind(self, task: str, holder: str) -> bool:
        """Others do; of ours, what has left its seat is nobody's: its release got lost.

        What this process reserved without a seat belongs to another of its parts.
        """
        return holder != holder_name() or task not in self._left

    def wake(self) -> list[str]:
        """Queue the tasks of agents that are to be woken now; says which."""
        if self.stopping or self.resting or self._is_frozen():
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
        """Give the free seats to what could start now, or an engine; says which tasks."""
        if self._placing:
            self._placing.look()
        if self.stopping or self.resting:
            return []
        self._hear()
        if self._placing:
            return self._handed_over(self._placing)
        free = len(self._seats) - self.busy
        if self._most_here is None:
            return self._seated(free)
        if not (free and self._ready()):
            return []
        with counted(self._ledger, self._place.state_dir, self._most_here) as room:
            return self._seated(min(free, room))

    def _seated(self, number: int) -> list[str]:
        """At most so many seats given to what could start now, in one turn with the record."""
        if not number:
            return []

        def chosen(found: list[Due]) -> list[Due]:
            return self._open_to_us(found)[:number]

        taken = self._ledger.take_due(holder_name(), chosen, self._labels, limit=_LOOK_AHEAD)
        for due in taken:
            self._seat(due)
        return [due.task for due in taken]

    def look_for_files(self) -> list[str]:
        """What queued tasks wait for may lie on this host by now; says whose does."""
        found = [] if self.stopping or self.resting else self._files.look()
        for task in found:
            self._audience.said(f"{task}  a file that it waited for is there")
        return found

    def _handed_over(self, placing: Placing) -> list[str]:
        ready = self._ready()[: placing.room] if placing.room else []
        return [
            due.task for due in ready if self._ledger.is_folder_free(due) and placing.hand_over(due)
        ]

    def _ready(self) -> list[Due]:
        """What could start now and is not under way here."""
        return self._open_to_us(self._ledger.dispatchable(self._labels, limit=_LOOK_AHEAD))

    def _open_to_us(self, found: list[Due]) -> list[Due]:
        """The same without what is under way here, or was tried as it stands a moment ago."""
        now = time.monotonic()
        self._parked = {
            due.task: self._parked[due.task]
            for due in found
            if self._parked.get(due.task, (None, 0.0))[0] == due.revision
            and self._parked[due.task][1] > now
        }
        return [due for due in found if due.task not in self._given.keys() | self._parked.keys()]

    def _give(self, due: Due) -> bool:
        """A free seat for a task, unless another scheduler is about to carry it out."""
        if not self._ledger.reserve(due.chain or due.task, holder_name()):
            return False
        self._seat(due)
        return True

    def _seat(self, due: Due) -> None:
        """A free seat for a task that is reserved."""
        task = due.chain or due.task
        seat = next(seat for seat in self._seats if seat.free)
        self._given[due.task] = task
        self._left.discard(task)
        self._park(due, _PARKED_SECONDS)
        seat.take(lambda: self._carry(seat, due, task))

    def _park(self, due: Due, seconds: float) -> None:
        """Leave a task alone for a while, as long as it does not move."""
        self._parked[due.task] = (due.revision, time.monotonic() + seconds)

    # -- what happens in a seat -----------------------------------------------------------------

    def _carry(self, seat: Seat, due: Due, task: str) -> None:
        try:
            carried = self._carried(seat, task)
        except Exception as error:  # noqa: BLE001 - one task's fault must not take the seat away
            carried = Carried(task, None, f"internal error: {error!r}")
        if seat.supervisor and seat.supervisor.was_in_use:
            self._park(due, _IDLE_SECONDS)  # the queue holds it as long as the folder is in use
        seat.supervisor = None
        try:
            self._audience.ended(carried)
        except Exception as error:  # noqa: BLE001 - nor may whoever looks on
            carried = carried._replace(unheard=repr(error))
        finally:
            self._left.add(task)
            self._given.pop(due.task, None)
            seat.free = True
            self._news.put(carried)

    def _carried(self, seat: Seat, task: str) -> Carried:
        seat.supervisor = Supervisor(self._ledger, self._place, self._audience.watch(task))
        seat.supervisor.resting = self.resting
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
        hears = hearing(self._ledger, lambda: self._news.put(None))
        with gateways_kept(), present(self._ledger, self._card), hears:
            while not self.stopping and not self._rested():
                busy = self._looked() or self._hear(pause * random.uniform(*_JITTER))  # noqa: S311
                pause = _BUSY_SECONDS if busy else min(pause * 2, _IDLE_SECONDS)
            self.drain()

    def once(self) -> list[Carried]:
        """One look, and all that could start then, carried to its end."""
        self.keep_house()
        self.recur()
        self.wake()
        self.look_for_files()
        if self._placing:
            return self._placed_once(self._placing)
        waiting = [] if self._is_frozen() else self._ready()
        carried: list[Carried] = []
        while not self.stopping and (waiting or self._given):
            idle, before = not self._given, len(waiting)
            waiting = self._filled(waiting)
            if idle and len(waiting) == before:
                break  # others have all that this machine may take
            carried += self._hear(_IDLE_SECONDS)
        return carried + self.drain()

    def _filled(self, waiting: list[Due]) -> list[Due]:
        """Free seats given to the first of those that wait; says who waits still."""
        free = len(self._seats) - self.busy
        if self._most_here is None:
            return self._given_to(waiting, free)
        with counted(self._ledger, self._place.state_dir, self._most_here) as room:
            return self._given_to(waiting, min(free, room))

    def _given_to(self, waiting: list[Due], free: int) -> list[Due]:
        left: list[Due] = []
        for due in waiting:
            if not free or not self._ledger.is_folder_free(due):
                left.append(due)
            else:
                free -= self._give(due)
        return left

    def _placed_once(self, placing: Placing) -> list[Carried]:
        """What could start now, handed over; then the engine's jobs are waited for."""
        handed = self.dispatch()
        while not self.stopping and not placing.is_idle():
            self._hear(_IDLE_SECONDS)
            placing.look()
            handed += self.dispatch()
        carried = [Carried(task, self._ledger.task(task).status) for task in dict.fromkeys(handed)]
        for each in carried:
            self._audience.ended(each)
        return carried

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

    def rest(self, seconds: float | None = None) -> None:
        """Start nothing more, and let what is under way end; after so many seconds, end it.

        Safe in a signal handler.
        """
        self.resting = True
        self._rests_until = time.monotonic() + seconds if seconds is not None else float("inf")
        for seat in self._seats:
            if seat.supervisor:
                seat.supervisor.resting = True
        self._news.put(None)

    def _rested(self) -> bool:
        if self.resting and time.monotonic() >= self._rests_until:
            self.stop()
        return self.resting and not self.busy

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
        """Whether a look gave anybody a seat.

        What passes is said once and waited for: a store out of reach, no handle left, no memory.
        """
        try:
            if time.monotonic() - self._kept_house > self._house_seconds:
                self.keep_house()
            # What waits for a seat first: a hint is about it, and each look costs a round trip.
            given = bool(self.dispatch()) | bool(self.recur()) | bool(self.wake())
            given |= bool(self.look_for_files())
        except (Unavailable, OSError) as error:
            if not self._out_of_reach:
                self._audience.said(_hindrance(error))
            self._out_of_reach = True
            return False
        self._out_of_reach = False
        self._turned = time.monotonic()
        return given

    def _hear(self, seconds: float = 0.0) -> list[Carried]:
        """What seats have ended, after waiting a little for the first to say so."""
        heard: list[Carried] = []
        with suppress(Empty):
            heard += filter(None, [self._news.get(timeout=seconds) if seconds else None])
            while True:
                heard += filter(None, [self._news.get_nowait()])
        return heard


def _hindrance(error: Unavailable | OSError) -> str:
    if isinstance(error, Unavailable):
        return f"the store is out of reach: {error.message}"
    return f"nothing can be started now: {error.strerror or error}; it is tried again"
