"""What becomes of occurrences and iterations: pure decisions, without a clock and without a store.

Of what is due at one look only the newest may start, so that a machine that slept, or whose clock
was set, makes no storm; the others are missed, and count as one row.
"""

from __future__ import annotations

from collections.abc import Iterable

from truegreen.contract.routines import CatchUp, Overlap, Repeat
from truegreen.contract.schedules import Span
from truegreen.enums import StrEnum
from truegreen.model import TaskStatus
from truegreen.record.lifecycle import SETTLED
from truegreen.tuples import NamedTuple

MOST_WAITING = 10
"""So many occurrences wait for the one before them; what comes then is skipped."""
_HELD_MICROSECONDS = 3_600_000_000
"""While nothing may start, what is missed is written down once in so long, not by the minute."""


class Fate(StrEnum):
    """What becomes of an occurrence."""

    FIRED = "fired"
    SKIPPED = "skipped"
    MISSED = "missed"
    WAITING = "waiting"


class Missed(NamedTuple):
    """Occurrences that never started: how many, and when the first and the last were due."""

    number: int
    first: int
    last: int
    exact: bool


class Plan(NamedTuple):
    """What is to be done about what is due: missed, start late or in time, or wait."""

    missed: Missed | None = None
    start: int | None = None
    late: bool = False
    keep: int | None = None
    """What stays due, because nothing may start now."""


def plan(span: Span, now: int, grace: int, catch_up: CatchUp, *, held: bool = False) -> Plan:
    """What to do about all that is due; `held`: nothing may start now."""
    if held and now - span.first < max(grace, _HELD_MICROSECONDS):
        return Plan(keep=span.first)
    late = now - span.newest > grace
    wanted = not late or catch_up is CatchUp.LATEST
    last = span.before if wanted else span.newest
    number = span.number - wanted
    missed = Missed(number, span.first, last, span.exact) if number and last is not None else None
    if wanted and held:
        return Plan(missed, keep=span.newest)
    return Plan(missed, span.newest if wanted else None, late)


def overlapping(policy: Overlap, under_way: str, waiting: int) -> tuple[Fate, str]:
    """What becomes of an occurrence that is due while another one may be under way, and why."""
    if policy is Overlap.PARALLEL or not (under_way or waiting):
        return Fate.FIRED, ""
    if policy is Overlap.SKIP:
        return Fate.SKIPPED, f"{under_way or 'another one'} is still under way"
    if waiting >= MOST_WAITING:
        return Fate.SKIPPED, f"{waiting} wait already"
    return Fate.WAITING, f"waits for {under_way or 'those before it'}"


class Turn(NamedTuple):
    """What follows an iteration: the next one, or the end of the cycle and why."""

    failures: int
    ended: str = ""


def turn(
    repeat: Repeat, iteration: int, failures: int, status: TaskStatus, *, sealed: bool, noop: bool
) -> Turn | None:
    """What follows an iteration; nothing while its task has no outcome.

    A rescued one has succeeded. That there is nothing left to do counts where checks carry it.
    """
    if sealed or status is TaskStatus.TERMINATED:
        return Turn(failures, f"iteration {iteration} was terminated")
    if status not in SETTLED:
        return None
    if status is TaskStatus.SUCCEEDED and noop:
        return Turn(0, f"converged: iteration {iteration} found nothing left to do")
    failures = 0 if status is TaskStatus.SUCCEEDED else failures + 1
    if failures >= repeat.stop_after_failures:
        return Turn(failures, f"stopped after {_times(failures)}")
    if iteration >= repeat.max_iterations:
        return Turn(failures, f"all {repeat.max_iterations} iterations are done")
    return Turn(failures)


def _times(failures: int) -> str:
    return "1 failure" if failures == 1 else f"{failures} failures in a row"


class Rollup(StrEnum):
    """What all members of a group come to."""

    GREEN = "green"
    RED = "red"
    UNKNOWN = "unknown"


def rollup(members: Iterable[TaskStatus | None]) -> Rollup:
    """Green only if every member has succeeded; one that nobody knows about makes it unknown."""
    found = set(members)
    settled_badly = {status for status in found if status in SETTLED} - {TaskStatus.SUCCEEDED}
    if settled_badly:
        return Rollup.RED
    return Rollup.GREEN if found == {TaskStatus.SUCCEEDED} else Rollup.UNKNOWN
