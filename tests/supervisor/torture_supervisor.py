"""A supervisor in a process of its own, which carries out the task that it is told to.

Orders come as JSON lines on standard input: a task and an instant of the monotonic clock. The
answer is the task's status, or the code of what was in the way.
"""

from __future__ import annotations

import os
import sys
import time

import msgspec

from tests.record.torture_servant import Servant
from truegreen.errors import TruegreenError
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.place import Place


class Order(msgspec.Struct, frozen=True):
    """Which task, and when."""

    task: str
    at: float


class Contender(Servant):
    """Such a supervisor as the test sees it."""

    def __init__(self, url: str, state_dir: str) -> None:
        super().__init__("tests.supervisor.torture_supervisor", f"{state_dir} {url}")
        assert self.answered() == b"ready\n"

    def send(self, order: Order) -> None:
        """Give an order; do not wait."""
        self.order(msgspec.json.encode(order))

    def answer(self) -> str:
        """What came of the last order."""
        return self.answered().decode().strip()


def carried(ledger: Ledger, place: Place, order: Order) -> str:
    """Wait for the instant, then carry the task out."""
    while (left := order.at - time.monotonic()) > 0:
        time.sleep(max(0.0, left - 0.0005))
    try:
        return str(Supervisor(ledger, place).carry(order.task).status)
    except TruegreenError as error:
        return error.code


def main(state_dir: str, url: str) -> None:
    """Serve orders until standard input closes."""
    ledger = open_ledger(url)
    place = Place(state_dir, (state_dir,), dict(os.environ))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        said = carried(ledger, place, msgspec.json.decode(line, type=Order))
        sys.stdout.write(f"{said}\n")
        sys.stdout.flush()
    ledger.close()


if __name__ == "__main__":
    main(*sys.argv[1].split(" ", 1))
