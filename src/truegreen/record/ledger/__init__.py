"""The one door: every change of state is a verb of the Ledger, one transaction with its event."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from truegreen.record import migrate
from truegreen.record.chain import Anchor, Reach
from truegreen.record.ledger.approvals import Approvals
from truegreen.record.ledger.artifacts import Artifacts
from truegreen.record.ledger.audits import Audits
from truegreen.record.ledger.deadlines import Deadlines
from truegreen.record.ledger.endings import Endings, Termination
from truegreen.record.ledger.entrance import Entrance
from truegreen.record.ledger.fencing import Fencing
from truegreen.record.ledger.fleet import Fleet
from truegreen.record.ledger.inbox import Inbox
from truegreen.record.ledger.jobs import Jobs
from truegreen.record.ledger.leases import Leases, Overdue
from truegreen.record.ledger.lists import Filter, Page
from truegreen.record.ledger.outbox import Outbox
from truegreen.record.ledger.overview import Overview
from truegreen.record.ledger.reads import Dossier, Reads, Told
from truegreen.record.ledger.reviews import Reviews
from truegreen.record.ledger.routines import Routines
from truegreen.record.ledger.runs import Start
from truegreen.record.ledger.tripwires import Tripwires
from truegreen.record.ledger.wakes import Wakes
from truegreen.record.ledger.watching import Watching
from truegreen.record.ledger.workers import Workers
from truegreen.record.store import Store, open_store

__all__ = ["Dossier", "Filter", "Ledger", "Overdue", "Page", "Start", "Termination", "open_ledger"]


class Ledger(
    Jobs,
    Reviews,
    Deadlines,
    Leases,
    Approvals,
    Wakes,
    Routines,
    Workers,
    Endings,
    Tripwires,
    Fencing,
    Fleet,
    Inbox,
    Artifacts,
    Entrance,
    Outbox,
    Watching,
    Overview,
    Reads,
    Audits,
):
    """What is true, and the only way to change it."""

    def __init__(self, store: Store, anchor: Anchor | None = None) -> None:
        """`anchor` is where the head of the history is marked outside the store."""
        super().__init__(store)
        self.anchor = anchor

    @property
    def store(self) -> Store:
        """The database underneath, for migration, backup and the doctor."""
        return self._store

    def mark(self) -> None:
        """Anchor the history as it stands now, outside the store."""
        if self.anchor:
            self.anchor.extend(lambda reach: (told.event for told in self._since(reach)))

    def _since(self, reach: Reach) -> Iterator[Told]:
        while page := self.feed((reach.xact, reach.key)):
            yield from page
            last = page[-1].event
            reach = reach._replace(xact=last.xact, key=last.key)

    def close(self) -> None:
        """Anchor what was written, then give the connections back."""
        try:
            if self._wrote:
                self.mark()
        finally:
            self._store.close()


def open_ledger(
    url: str, *, anchor: str | None = None, clock: Callable[[], int] | None = None
) -> Ledger:
    """The ledger of a store: an empty one is created, a wrecked one refused.

    `clock` is for plays that are set in another time; microseconds UTC, and SQLite only.
    """
    store = open_store(url, clock)
    try:
        migrate.ensure(store)
    except BaseException:
        store.close()
        raise
    return Ledger(store, Anchor(anchor) if anchor else None)
