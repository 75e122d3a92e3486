"""The pulse of a run: keeps its lease alive, and notices when it may not go on.

A thread of its own, so that neither a silent agent nor a slow gate lets the lease run out. It only
looks and tells; who holds the process ends it. Each renewal feeds those who hold processes of the
run: what is not fed is dead before the lease runs out, whatever has become of us.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from truegreen.errors import Refused, Unavailable
from truegreen.facts import Ticket
from truegreen.model import TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.work.exits import STOP
from truegreen.work.lifeline import Lifeline
from truegreen.work.watch import HOLD

LEASE_SECONDS = 30.0
_RENEW_SECONDS = 8.0
_LOOK_SECONDS = 0.2
_KILL_SHARE = 1 / 6
"""The last part of a lease, in which a tree is killed and nothing else."""
_OWN_SHARE = 1 / 30
"""By so much earlier the supervisor gives up by itself, and can still say why."""
FENCED = "!fenced off"
HERE = "here"
"""Who asked for a stop that came through this process, such as a signal."""
LOST = "!the store could not be reached in time to renew the lease"


def clock_of(ledger: Ledger) -> int:
    """The clock that a lease is counted by here: a sleep counts where others stay awake."""
    return time.CLOCK_BOOTTIME if ledger.is_shared else time.CLOCK_MONOTONIC


class Pulse:
    """Watches one run from its start to its verdict."""

    def __init__(
        self,
        ledger: Ledger,
        ticket: Ticket,
        lease: float = LEASE_SECONDS,
        sent: float | None = None,
    ) -> None:
        """`sent` is the moment before the lease was asked for, by the clock that counts."""
        self._ledger = ledger
        self._ticket = ticket
        self._lease = lease
        clock = clock_of(ledger)
        sent = time.clock_gettime(clock) if sent is None else sent
        self._lifeline = Lifeline(ticket.run, self._end(sent), clock)
        self._renewed = sent
        self._over = threading.Event()
        self._ended = False
        self._active: float | None = None
        self.has_process = False
        """Whether a process of the agent was started."""
        self._word: str | None = None
        self.stop_asked = ""
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)
        self._thread.start()

    def word(self) -> str | None:
        """What the run has to do now: nothing, stop, die, or hold its clocks.

        That the lease is about to run out is noticed here too: the pulse may wait for the store.
        """
        return LOST if self._given_up() and self._word != FENCED else self._word

    def has_time(self) -> bool:
        """Whether the lease lasts: for so long a store that is away may come back."""
        return self._word != FENCED and not self._given_up()

    def ask(self, *, at_once: bool = False, word: str = STOP) -> None:
        """End the run from here: gracefully, or at once; the word says what for."""
        self.stop_asked = self.stop_asked or HERE
        if at_once:
            self._word = f"!{word}"
        elif self._word in (None, HOLD):
            self._word = word

    def idles(self, seconds: float) -> None:
        """For how long the agent has shown no sign; those who look learn it by and by."""
        self._active = time.monotonic() - seconds

    def keep(self, process: dict[str, Any]) -> None:
        """Write down which process it is, with the next renewal, which is now: its first sign."""
        self.has_process = True
        self.idles(0.0)
        self.renew(process)

    def renew(self, process: dict[str, Any] | None = None) -> None:
        """Renew the lease now, and feed whoever holds a process; Refused when it is not ours."""
        active = None if self._ended else self._active
        idle = time.monotonic() - active if active is not None else None
        sent = self._lifeline.now()
        self._ledger.heartbeat(
            self._ticket, lease_seconds=self._lease, process=process, idle_seconds=idle
        )
        self._renewed = max(self._renewed, sent)
        self._lifeline.feed(self._end(sent))

    def run_ends(self) -> None:
        """The process is gone and we record that next: from now on only the lease matters.

        Said before: an end that is found in the record is somebody else's.
        """
        self._ended = True
        if self._word == HOLD or (self._word == STOP and self.stop_asked != HERE):
            self._word = None

    def close(self) -> None:
        """Stop looking."""
        self._over.set()
        self._thread.join(timeout=10)
        self._lifeline.close()

    def _end(self, sent: float) -> float:
        """When everything is killed; counted from before the renewal, for it may travel long."""
        return sent + self._lease * (1 - _KILL_SHARE)

    def _given_up(self) -> bool:
        return self._lifeline.now() >= self._lifeline.until - self._lease * _OWN_SHARE

    def _beat(self) -> None:
        try:
            self._look_after()
        except Exception as error:  # noqa: BLE001 - a run without a pulse must not go on
            self._word = f"!its pulse failed: {error!r}"

    def _look_after(self) -> None:
        often = min(_RENEW_SECONDS, self._lease * _RENEW_SECONDS / LEASE_SECONDS)
        while not self._over.wait(min(_LOOK_SECONDS, often)):
            try:
                self._look()
                if self._lifeline.now() - self._renewed >= often:
                    self.renew()
            except Refused:
                self._word = FENCED
                return
            except Unavailable:
                if self._given_up():
                    self._word = LOST
                    return

    def _look(self) -> None:
        standing = self._ledger.standing(self._ticket)
        if not standing.mine or (standing.ended and not self._ended):
            self._word = FENCED
        elif standing.stop_asked and not self._ended:
            self.stop_asked = standing.stop_asked
            self._word = self._word if self._word and self._word.startswith("!") else STOP
        elif self._word in (None, HOLD):
            waits = standing.status is TaskStatus.AWAITING_APPROVAL
            self._word = HOLD if waits else None
