"""What holds a queued task back, in the order in which it is looked at.

The dispatcher's query, the claim of a batch and `truegreen why` are made from this one list, so
that they can't disagree: a task may start where none of these is true. It knows SQL and nothing
else.
"""

from __future__ import annotations

from truegreen.enums import StrEnum
from truegreen.record.conditions import unmet
from truegreen.record.fleet_rules import ONE_BY_ONE, SPENT, broken
from truegreen.record.folders import ABOUT_TO, BETWEEN_ATTEMPTS, held, overlapping


class Hold(StrEnum):
    """Why a queued task does not start now."""

    FROZEN = "frozen"
    SEALED = "sealed"
    NOT_BEFORE = "not_before"
    DEPENDS_ON = "depends_on"
    WAITS = "waits"
    OUTAGE = "outage"
    PROVIDER = "provider"
    BREAKER = "breaker"
    SPENT = "spent"
    RESERVED = "reserved"
    LANE = "lane"
    FOLDER = "folder"
    LABELS = "labels"
    HOST = "host"


HOST_LABEL = "host:"
NEEDED_STATUS = "(SELECT other.status FROM tasks other WHERE other.id = needed.value)"
UNMET = (
    f"COALESCE({NEEDED_STATUS}, '') <> 'succeeded' AND NOT EXISTS (SELECT 1 FROM waivers"
    " WHERE waivers.task_key = tasks.key AND waivers.needed = needed.value)"
)
"""A task that another one needs, and that nobody has let it do without."""

IN_USE = (
    "(EXISTS (SELECT 1 FROM demands JOIN leases ON"
    f" {held('leases', ':lease_now', ':boot')} AND {overlapping('leases', 'demands')}"
    f" WHERE demands.task_key = tasks.key {ONE_BY_ONE})"
    f" OR EXISTS (SELECT 1 {BETWEEN_ATTEMPTS} AND demands.task_key = tasks.key"
    f" AND (tasks.attempt = 0 OR begun.key < tasks.key) {ONE_BY_ONE})"
    f" OR EXISTS (SELECT 1 {ABOUT_TO} AND demands.task_key = tasks.key {ONE_BY_ONE}))"
)
"""A run works in the folder of a queued task, or in one above or below it, or is about to begin;
or another task has begun there and is queued for its next attempt, whose result must not contain
others' work."""

HOLDS = {
    Hold.FROZEN: "EXISTS (SELECT 1 FROM switches WHERE name = 'frozen')",
    Hold.SEALED: "tasks.sealed_at IS NOT NULL",
    Hold.NOT_BEFORE: "tasks.not_before > :now",
    Hold.DEPENDS_ON: f"EXISTS (SELECT 1 FROM {{needed}} WHERE {UNMET})",
    Hold.WAITS: unmet("tasks.key"),
    Hold.OUTAGE: broken("fleet"),
    Hold.PROVIDER: broken("provider"),
    Hold.BREAKER: broken("agent"),
    Hold.SPENT: SPENT,
    # A review is carried out with the task that it is about, by whoever has that one.
    Hold.RESERVED: (
        "EXISTS (SELECT 1 FROM reservations WHERE reservations.expires_at > :now"
        " AND reservations.task_key IN (tasks.key, tasks.qa_of_key))"
    ),
    Hold.LANE: (
        "EXISTS (SELECT 1 FROM demands JOIN runs ON runs.lane = demands.lane"
        f" WHERE demands.task_key = tasks.key AND runs.exit_reason IS NULL {ONE_BY_ONE})"
    ),
    Hold.FOLDER: IN_USE,
    Hold.LABELS: (
        "EXISTS (SELECT 1 FROM demands, {wanted} WHERE demands.task_key = tasks.key"
        f" AND wanted.value NOT IN ({{offered}}) {ONE_BY_ONE})"
    ),
    # A host is offered like a label, by a name that no label can have.
    Hold.HOST: (
        "EXISTS (SELECT 1 FROM demands WHERE demands.task_key = tasks.key"
        " AND demands.host IS NOT NULL"  # nothing is in no list, and neither is NULL
        f" AND '{HOST_LABEL}' || demands.host NOT IN ({{offered}}) {ONE_BY_ONE})"
    ),
}

OF_THE_FLEET = (Hold.OUTAGE, Hold.PROVIDER, Hold.BREAKER, Hold.SPENT)
"""What is looked at again by the start of a run itself."""

_READY = "workers.draining = 0 AND workers.seen_at >= :seen"
NOBODY = {
    Hold.HOST: (
        "EXISTS (SELECT 1 FROM demands WHERE demands.task_key = tasks.key"
        " AND demands.host IS NOT NULL AND NOT EXISTS (SELECT 1 FROM workers"
        f" WHERE {_READY} AND workers.name = demands.host))"
    ),
    Hold.LABELS: (
        "EXISTS (SELECT 1 FROM demands WHERE demands.task_key = tasks.key"
        " AND demands.labels <> '[]' AND NOT EXISTS (SELECT 1 FROM workers"
        f" WHERE {_READY} AND (demands.host IS NULL OR demands.host = workers.name)"
        " AND NOT EXISTS (SELECT 1 FROM {wanted} WHERE wanted.value NOT IN ({carried}))))"
    ),
}
"""The same two of everybody who was heard of lately: who has it is not told, but looked up."""


def _first(holds: dict[Hold, str]) -> str:
    whens = " ".join(f"WHEN {sql} THEN '{hold}'" for hold, sql in holds.items())
    return f"CASE {whens} END"


FIRST_HOLD = _first(HOLDS)
"""The first of them that is true of a task; NULL where it may start."""
HOLD_OF_ALL = _first({hold: sql for hold, sql in HOLDS.items() if hold not in NOBODY} | NOBODY)
"""The first that keeps a task from every worker that there is."""
