"""A racer: a process that does one verb at an agreed instant and says when and how it ended.

Orders come as JSON lines on standard input, answers go to standard output. All processes of a
machine share the monotonic clock, so two racers meet within microseconds.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tests.record.lives import OPERATOR
from tests.record.torture_servant import Crew, Line
from tests.record.torture_verbs import Trial, done
from truegreen.errors import TruegreenError
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

TERMINATE = "terminate it"


class Order(msgspec.Struct, frozen=True):
    """What to do, when, and how often in a row."""

    trial: Trial
    at: float
    times: int = 1


class Report(msgspec.Struct, frozen=True):
    """When one attempt began and ended, and the code of its refusal, if any."""

    began: float
    ended: float
    refused: str = ""


def race(ledger: Ledger, order: Order) -> list[Report]:
    """Wait for the instant, then do it."""
    reports = []
    while time.monotonic() < order.at - 0.002:
        time.sleep(0.001)
    while time.monotonic() < order.at:
        pass
    for _ in range(order.times):
        began, refused = time.monotonic(), ""
        try:
            if order.trial.verb == TERMINATE:
                ledger.terminate(order.trial.task, actor=OPERATOR)
            else:
                done(ledger, order.trial)
        except TruegreenError as error:
            refused = error.code
        reports.append(Report(began, time.monotonic(), refused))
    return reports


class Racer:
    """A racer as the test sees it."""

    def __init__(self, line: Line) -> None:
        self._line = line
        assert line.answered() == b"ready\n"

    def send(self, order: Order) -> None:
        """Give an order; do not wait."""
        self._line.order(msgspec.json.encode(order))

    def answer(self) -> list[Report]:
        """What came of the last order."""
        return msgspec.json.decode(self._line.answered(), type=list[Report])


@contextmanager
def two_racers(url: str) -> Iterator[tuple[Racer, Racer]]:
    """Two processes on one store."""
    with Crew("tests.record.torture_racer", url, 2) as crew:
        one, two = map(Racer, crew.members)
        yield one, two


def main(url: str) -> None:
    """Serve orders until standard input closes."""
    ledger = open_ledger(url)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        reports = race(ledger, msgspec.json.decode(line, type=Order))
        sys.stdout.write(msgspec.json.encode(reports).decode() + "\n")
        sys.stdout.flush()
    ledger.close()
