"""Sees to what is to happen again and again, as often as the scheduler looks.

What is due, and what becomes of it, is the record's to say; which settings are in force is said by
whoever starts the scheduler. Here it is only asked in time, and told.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from truegreen.errors import Refused
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.occurrences import Happened
from truegreen.record.recurrence import Fate
from truegreen.scheduler.seats import Audience

Follow = Callable[[], None]
_ALIGN_SECONDS = 60.0
_AT_ONCE = 100


class Recurring:
    """The routines of a store, looked after by one of its schedulers."""

    def __init__(self, ledger: Ledger, audience: Audience, follow: Follow | None = None) -> None:
        """`follow` takes over what the settings say by now, if they may be used."""
        self._ledger, self._audience, self._follow = ledger, audience, follow
        self._aligned = float("-inf")
        self._unread: set[str] = set()
        """What was said of routines that this machine can't see to."""

    def look(self) -> list[Happened]:
        """See to all that is due now; says what became of it."""
        happened: list[Happened] = []
        for name in self._ledger.due_routines(limit=_AT_ONCE):
            happened += self._tended(name)
        for each in happened:
            self._audience.said(words_of(each))
        return happened

    def _tended(self, name: str) -> list[Happened]:
        """What is due of one; one that can't be read here holds up nothing else."""
        try:
            return self._ledger.tend_routine(name)
        except Refused as refused:
            words = f"! {refused.message}; another machine has to see to routine {name}"
        if words not in self._unread:
            self._unread.add(words)
            self._audience.said(words)
        return []

    def keep(self) -> None:
        """Follow the settings, and a clock that was set back."""
        if self._follow:
            self._follow()
        if time.monotonic() - self._aligned > _ALIGN_SECONDS:
            self._aligned = time.monotonic()
            for name in self._ledger.realign_routines():
                self._audience.said(f"routine {name}  the clock was set back: it is due earlier")


def words_of(each: Happened) -> str:
    """What became of a routine, in one line."""
    head = f"{each.task}  routine {each.routine}" if each.task else f"routine {each.routine}"
    said = f": {each.cause}" if each.cause else ""
    if each.fate is None:
        return f"{head}  is over{said}"
    return f"{head}  {'is queued' if each.fate is Fate.FIRED else each.fate}{said}"
