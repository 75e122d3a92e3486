"""The one door: every change of state is a verb of the Ledger, one transaction each, with its event."""

from __future__ import annotations

from truegreen.record import migrate
from truegreen.record.ledger.agents import Agents
from truegreen.record.ledger.approvals import Approvals
from truegreen.record.ledger.endings import Endings, Termination
from truegreen.record.ledger.inbox import Inbox
from truegreen.record.ledger.leases import Leases, Overdue
from truegreen.record.ledger.reads import Dossier, Filter, Page, Reads
from truegreen.record.ledger.runs import Start
from truegreen.record.ledger.verdicts import Verdicts
from truegreen.record.store import Store, open_store

__all__ = ["Dossier", "Filter", "Ledger", "Overdue", "Page", "Start", "Termination", "open_ledger"]


class Ledger(Verdicts, Leases, Approvals, Endings, Agents, Inbox, Reads):
    """What is true, and the only way to change it."""

    @property
    def store(self) -> Store:
        """The database underneath, for migration, backup and the doctor."""
        return self._store

    def close(self) -> None:
        """Give the connections back."""
        self._store.close()


def open_ledger(url: str) -> Ledger:
    """The ledger of a store: an empty one is created, a wrecked one refused."""
    store = open_store(url)
    try:
        migrate.ensure(store)
    except BaseException:
        store.close()
        raise
    return Ledger(store)
