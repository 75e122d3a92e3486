"""Attacks on the rules about routines: what became of an occurrence stays, a cycle never goes back.

They stand beside those of `raw_attacks`, in the same list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.record.lives import OPERATOR, contract, opened
from tests.record.raw_attacks import Variants, attack
from tests.record.raw_conversations import ATTACKS
from truegreen.contract import Overlap, Repeat, Routine
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.routines import Definition, Known

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.record.raw_sql import Raw

__all__ = ["ATTACKS"]


def a_cycle(ledger: Ledger) -> Known:
    """A cycle at its first iteration."""
    routine = Routine(task="t", repeat=Repeat(max_iterations=3))
    ledger.take_routines("here", [Definition("rounds", routine, contract())])
    ledger.tend_routine("rounds")
    return ledger.routine("rounds")


def a_schedule(ledger: Ledger) -> Known:
    """A schedule that somebody ran by hand."""
    routine = Routine(task="t", schedule="@daily", overlap=Overlap.QUEUE)
    ledger.take_routines("there", [Definition("nightly", routine, contract())])
    ledger.run_routine("nightly", actor=OPERATOR)
    return ledger.routine("nightly")


def set_routine(known: Known, change: str) -> list[str]:
    row = known.row
    return [f"UPDATE routines SET revision = revision + 1, {change} WHERE key = {row.key}"]


@attack("routines_kept", "a routine keeps its name")
def _(ledger: Ledger, _: Raw) -> Variants:
    known = a_cycle(ledger)
    return [set_routine(known, change) for change in ("name = 'other'", "created_at = 1")]


@attack("routines_kept", "a cycle never goes back")
def _(ledger: Ledger, _: Raw) -> Variants:
    known = a_cycle(ledger)
    return [
        set_routine(known, "iteration = 0"),
        set_routine(known, "generation = 0, iteration = 9"),
        [f"UPDATE routines SET failures = 0 WHERE key = {known.row.key}"],
    ]


@attack(
    "routines_kept",
    "what a routine does changes only with its digest: settings taken over mend it",
)
def _(ledger: Ledger, _: Raw) -> Variants:
    known = a_cycle(ledger)
    return [set_routine(known, f"{name} = '{{}}'") for name in ("contract", "settings")]


@attack("occurrences_kept", "an occurrence stays what it is about")
def _(ledger: Ledger, raw: Raw) -> Variants:
    row = next(e.row for e in a_schedule(ledger).recent if e.row.state != "waiting")
    waits = {"key": row.key + 1000, "slot": "'later'", "state": "'waiting'", "task_key": "NULL"}
    raw.do(raw.copied("occurrences", row.key, **waits))
    becomes = "UPDATE occurrences SET state = 'skipped'"
    changes = ("slot = 'never'", "due_at = 1", "first_at = 1", "actor = 'x'", "generation = 7")
    return [[f"{becomes}, {change} WHERE key = {row.key + 1000}"] for change in changes]


@attack(
    "occurrences_kept", "what became of an occurrence stays; one that waits becomes something once"
)
def _(ledger: Ledger, _: Raw) -> Variants:
    row = next(e.row for e in a_schedule(ledger).recent if e.row.state != "waiting")
    other = opened(ledger).key
    return [
        [f"UPDATE occurrences SET state = '{state}', task_key = {task} WHERE key = {row.key}"]
        for state, task in (("missed", row.task_key), ("skipped", "NULL"), ("fired", other))
    ]


def _deleting(table: str) -> Callable[[Ledger, Raw], Variants]:
    def tried(ledger: Ledger, _: Raw) -> Variants:
        a_schedule(ledger)
        return [[f"DELETE FROM {table}"]]

    return tried


for _table in ("routines", "occurrences"):
    attack(f"{_table}_no_delete", f"{_table} are kept: delete is refused")(_deleting(_table))


@attack("routines_no_replace", "routines are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    key = a_schedule(ledger).row.key
    return [
        [raw.copied("routines", key, "REPLACE", paused_by="'x'", paused_at=1)],
        [raw.copied("routines", key, "REPLACE", key=key + 1000)],
    ]


@attack("occurrences_no_replace", "occurrences are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    key = a_schedule(ledger).recent[0].row.key
    return [
        [raw.copied("occurrences", key, "REPLACE", cause="'a lie'")],
        [raw.copied("occurrences", key, "REPLACE", key=key + 1000)],
    ]
