"""The pulse of a run: keeps its lease alive, and notices when it may not go on.

A thread of its own, so that neither a silent agent nor a slow gate lets the lease run out. It only
looks and tells; who holds the process ends it.
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
from truegreen.work.watch import HOLD

LEASE_SECONDS = 30.0
_RENEW_SECONDS = 8.0
_LOOK_SECONDS = 0.2
FENCED = "!fenced off"
LOST = "!the store could not be reached until the lease ran out"


class Pulse:
    """Watches one run from its start to its verdict."""

    def __init__(self, ledger: Ledger, ticket: Ticket) -> None:
        self._ledger = ledger
        self._ticket = ticket
        self._over = threading.Event()
        self._ended = False
        self._process: dict[str, Any] | None = None
        self._word: str | None = None
        self.stop_asked = ""
        self._thread = threading.Thread(target=self._beat, name="pulse", daemon=True)
        self._thread.start()

    def word(self) -> str | None:
        """What the run has to do now: nothing, stop, die, or hold its clocks."""
        return self._word

    def ask(self, *, at_once: bool = False, word: str = STOP) -> None:
        """End the run from here: gracefully, or at once; the word says what for."""
        self.stop_asked = self.stop_asked or "here"
        if at_once:
            self._word = f"!{word}"
        elif self._word in (None, HOLD):
            self._word = word

    def keep(self, process: dict[str, Any]) -> None:
        """Write down which process it is, with the next renewal, which is now."""
        self._process = process
        self._ledger.heartbeat(self._ticket, lease_seconds=LEASE_SECONDS, process=process)

    def run_ended(self) -> None:
        """The process is gone and recorded: from now on only the lease matters."""
        self._ended = True
        if self._word in (STOP, HOLD):
            self._word = None

    def close(self) -> None:
        """Stop looking."""
        self._over.set()
        self._thread.join(timeout=10)

    def _beat(self) -> None:
        try:
            self._look_after()
        except Exception as error:  # noqa: BLE001 - a run without a pulse must not go on
            self._word = f"!its pulse failed: {error!r}"

    def _look_after(self) -> None:
        renewed = time.monotonic()
        while not self._over.wait(_LOOK_SECONDS):
            try:
                self._look()
                if time.monotonic() - renewed >= _RENEW_SECONDS:
                    self._ledger.heartbeat(self._ticket, lease_seconds=LEASE_SECONDS)
                    renewed = time.monotonic()
            except Refused:
                self._word = FENCED
                return
            except Unavailable:
                if time.monotonic() - renewed > LEASE_SECONDS:
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
