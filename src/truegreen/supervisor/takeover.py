"""Runs whose supervisor fell silent, on whatever machine: suspected, then taken over. Never green.

A lease is watched by a clock of our own: it counts as lost when it has stayed the same for as long
as it lasts, and a little more. By then everything that ran under it is dead, because whoever holds
a tree kills it earlier. So no clock of a server or of another machine has a say in it.
"""

from __future__ import annotations

import time

from truegreen.errors import Refused
from truegreen.record.ledger import Ledger, Overdue
from truegreen.record.ledger.reads import LONGEST_PAGE
from truegreen.supervisor.holder import holder_name, host_name, process_of
from truegreen.supervisor.pulse import LEASE_SECONDS, clock_of
from truegreen.supervisor.recovery import finish
from truegreen.tuples import NamedTuple
from truegreen.work.process import sweep

FACT = "taken_over"
_BEYOND = 1 / 6
"""By what part of its length a lease is waited for beyond its end."""


class Seen(NamedTuple):
    """A lease as it was first seen so, and when."""

    token: str
    expires_at: int
    since: float
    said: bool = False


class Lookout:
    """Watches the leases of everybody."""

    def __init__(self, ledger: Ledger, lease: float = LEASE_SECONDS) -> None:
        self._ledger, self._lease = ledger, lease
        self._clock = clock_of(ledger)
        self._seen: dict[str, Seen] = {}

    def look(self) -> list[str]:
        """Look once; says who became suspect, and what was taken over."""
        self._ledger.free_locks(self._lease / 3)
        held = self._held()
        now = time.clock_gettime(self._clock)
        self._seen = {left.run: self._sight(left, now) for left in held}
        said: list[str] = []
        for left in held:
            seen, lasts = self._seen[left.run], left.lease.lasts / 1e6
            silent = now - seen.since
            if silent >= lasts * (1 + _BEYOND):
                said.append(self._take(left, silent))
            elif silent >= lasts and not seen.said:
                self._seen[left.run] = seen._replace(said=True)
                who = left.lease.holder
                said.append(f"{left.task}  suspect: nothing heard of {who} for {silent:.0f} s")
        return [words for words in said if words]

    def _held(self) -> list[Overdue]:
        """All leases; page by page, for a fleet may have many."""
        held = page = self._ledger.owned("", limit=LONGEST_PAGE)
        while len(page) == LONGEST_PAGE:
            after = page[-1].lease.run_key
            page = self._ledger.owned("", limit=LONGEST_PAGE, after=after)
            held += page
        return held

    def _sight(self, left: Overdue, now: float) -> Seen:
        before = self._seen.get(left.run)
        as_before = before and (before.token, before.expires_at) == _state(left)
        return before if before and as_before else Seen(*_state(left), now)

    def _take(self, left: Overdue, silent: float) -> str:
        """Kill what can be reached, see that it is gone, and only then let go of the run."""
        here = left.lease.holder.startswith(host_name())
        if here:
            survivors = sweep(left.run, process_of(left.lease.process)).survivors
            if survivors:
                pids = ", ".join(map(str, survivors))
                return f"{left.task}  not taken over: its processes can't be killed ({pids})"
        facts = {
            "from": left.lease.holder,
            "by": holder_name(),
            "silent_seconds": round(silent, 1),
            "death": "seen" if here else "by the bound of its guard",
        }
        try:
            finish(self._ledger, left._replace(gone=True), {FACT: facts})
            self._ledger.release(left.task, left.lease.holder)
        except Refused:
            return ""  # it was heard of again, or another one was quicker
        return f"{left.task}  taken over: nothing heard of {left.lease.holder} for {silent:.0f} s"


def _state(left: Overdue) -> tuple[str, int]:
    return left.lease.token, left.lease.expires_at
