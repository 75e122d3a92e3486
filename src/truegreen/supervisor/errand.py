"""What one run is carried out with, from hand to hand."""

from __future__ import annotations

from truegreen.facts import Ticket
from truegreen.record.ledger import Ledger
from truegreen.supervisor.place import Place
from truegreen.supervisor.prepared import Prepared
from truegreen.supervisor.pulse import Pulse
from truegreen.supervisor.watch import Watch
from truegreen.tuples import NamedTuple


class Errand(NamedTuple):
    """The record, the surroundings, who watches, what was settled before, and the run itself."""

    ledger: Ledger
    place: Place
    watch: Watch
    prepared: Prepared
    ticket: Ticket
    pulse: Pulse
