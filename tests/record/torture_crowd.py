"""A crowd: processes that live through many rounds, each doing its part at an agreed instant.

Orders come as JSON lines on standard input, answers go to standard output. All processes of a
machine share the monotonic clock, so they meet within microseconds.
"""

from __future__ import annotations

import sys
import time
import traceback
from typing import TYPE_CHECKING, Self

import msgspec

from tests.record.torture_racer import Report
from tests.record.torture_scenes import Scene, acts, end
from tests.record.torture_servant import Crew
from truegreen.errors import Broken, TruegreenError
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

SOON = 0.002
TIMES = 2
ENDS = -1


class Part(msgspec.Struct, frozen=True):
    """Who does what in a scene, and when: the number of an act, or the ending."""

    scene: Scene
    act: int
    at: float


def played(ledger: Ledger, part: Part) -> list[Report]:
    """Wait for the instant, then do it; all but the ending several times."""
    act: Callable[[Ledger, Scene], object] = end if part.act == ENDS else acts(part.scene)[part.act]
    while (left := part.at - time.monotonic()) > 0:
        time.sleep(max(0.0, left - 0.0005))
    reports = []
    for _ in range(1 if part.act == ENDS else TIMES):
        began, refused = time.monotonic(), ""
        try:
            act(ledger, part.scene)
        except Broken:
            traceback.print_exc()
            refused = Broken.code
        except TruegreenError as error:
            refused = error.code
        reports.append(Report(began, time.monotonic(), refused))
    return reports


class Crowd:
    """So many processes on one store, as the test sees them."""

    def __init__(self, url: str, number: int) -> None:
        self._crew = Crew("tests.record.torture_crowd", url, number)
        self._all = self._crew.members
        for each in self._all:
            assert each.answered() == b"ready\n"

    def play(self, scene: Scene, late: float) -> tuple[Report, dict[int, list[Report]]]:
        """One round: the first process ends it, `late` after the others begin."""
        at = time.monotonic() + SOON
        parts = [ENDS, *range(min(len(self._all) - 1, len(acts(scene))))]
        for act, each in zip(parts, self._all, strict=False):
            order = Part(scene, act, at + late if act == ENDS else at)
            each.order(msgspec.json.encode(order))
        answers = [
            msgspec.json.decode(each.answered(), type=list[Report])
            for _, each in zip(parts, self._all, strict=False)
        ]
        return answers[0][0], dict(zip(parts[1:], answers[1:], strict=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._crew.__exit__(kind, error, trace)


def main(url: str) -> None:
    """Serve orders until standard input closes."""
    ledger = open_ledger(url)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin.buffer:
        reports = played(ledger, msgspec.json.decode(line, type=Part))
        sys.stdout.write(msgspec.json.encode(reports).decode() + "\n")
        sys.stdout.flush()
    ledger.close()
