"""Which tasks a list is asked for, where every face takes the same words: by whom, since when."""

from __future__ import annotations

import time

from truegreen.contract import checked, parse_duration
from truegreen.errors import Ambiguous, InvalidInput, NotFound
from truegreen.record.ledger import Filter, Ledger

_AGENT = "agt_"
_NAME_BYTES = 200


def done_by(ledger: Ledger, given: str, wanted: Filter) -> Filter:
    """The same, by the one agent whose id begins so, or by all that have the name."""
    name = checked(given, "agent", _NAME_BYTES)
    try:
        return wanted._replace(agent=ledger.find("agt", name))
    except (Ambiguous, InvalidInput, NotFound) as error:
        if isinstance(error, Ambiguous) and name.startswith(_AGENT):
            raise
        if ledger.is_called(name):
            return wanted._replace(called=name)
        if isinstance(error, Ambiguous):
            raise
        raise NotFound(f"no agent {name}", kind="agent") from None


def ago(given: str, name: str = "since") -> int:
    """The instant so long ago."""
    return max(0, time.time_ns() // 1000 - parse_duration(given, name))
