"""Runs whose supervisor is gone from this machine. Whoever looks asks; `recovery` ends them.

It ends nothing and loads next to nothing: while agents work, every command comes by here.
"""

from __future__ import annotations

from truegreen.record.ledger import Ledger, Overdue
from truegreen.supervisor.holder import host_name, read_holder


def orphans(ledger: Ledger) -> list[Overdue]:
    """What dead supervisors of this machine left unfinished; of other machines nothing is known."""
    return [each for each in ledger.owned(host_name()) if _is_left(each)]


def _is_left(each: Overdue) -> bool:
    holder = read_holder(each.lease.holder)
    return holder is not None and not holder.alive()
