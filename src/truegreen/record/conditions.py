"""What a queued task waits for beside other tasks: the row, the hold, and what nobody rewrites.

A condition is met once, by an event of its task that names it, and is never unmet. A person's word
is given by a person. It knows SQL and nothing else.
"""

from __future__ import annotations

import msgspec

from truegreen.contract.waits import Wait, WaitKind
from truegreen.record.fleet_rules import ONE_BY_ONE
from truegreen.record.rows import Record
from truegreen.record.rules import Guard, Rule, changed


class Condition(Record, frozen=True, array_like=True):
    """One thing that a task waits for, or has waited for."""

    key: int
    id: str
    task_key: int
    kind: WaitKind
    what: str
    armed_by: str
    created_at: int
    met_at: int | None
    met_by: str
    fact: str
    """What is known of how it was met, as JSON."""

    @property
    def wait(self) -> Wait:
        """As it would be said."""
        return Wait(self.kind, self.what)

    def facts(self) -> dict[str, object]:
        """What is known of how it was met."""
        found: dict[str, object] = msgspec.json.decode(self.fact) if self.fact else {}
        return found


def unmet(task: str) -> str:
    """That a task still waits for something; `task` is its key, as SQL."""
    return (
        f"EXISTS (SELECT 1 FROM conditions WHERE conditions.task_key = {task}"
        f" AND conditions.met_at IS NULL {ONE_BY_ONE})"
    )


def _said(row: str, who: str, more: str = "") -> str:
    """That the newest event of a condition's task is by somebody, and names the condition."""
    return (
        "EXISTS (SELECT 1 FROM tasks t JOIN events e ON e.task_key = t.key"
        f" AND e.revision = t.revision WHERE t.key = {row}.task_key AND e.actor = {who}"
        f" AND ({more}replace(e.data, {row}.id, '') <> e.data))"
    )


def _is(role: str) -> str:
    return f"substr(NEW.met_by, 1, {len(role) + 1}) = '{role}:'"


WAITING = (
    Guard(
        "conditions_armed",
        "conditions",
        "BEFORE INSERT",
        (
            Rule(
                "stale",
                "NEW.met_at IS NOT NULL OR NOT EXISTS (SELECT 1 FROM tasks t"
                " WHERE t.key = NEW.task_key AND t.status = 'queued' AND t.sealed_at IS NULL)",
                "a queued task waits, and what it waits for has not happened yet",
            ),
            Rule(
                "forbidden",
                "NOT " + _said("NEW", "NEW.armed_by", "e.event = 'open' OR "),
                "a condition begins with its event",
            ),
        ),
    ),
    Guard(
        "conditions_kept",
        "conditions",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("key", "id", "task_key", "kind", "what", "armed_by", "created_at"),
                "a condition stays about what it was made for",
            ),
            Rule("stale", "OLD.met_at IS NOT NULL", "a condition is met once, and stays met"),
            Rule(
                "forbidden",
                "NOT " + _said("OLD", "NEW.met_by"),
                "a condition is met only with its event, which says by whom",
            ),
            Rule(
                "forbidden",
                f"OLD.kind = 'human' AND NOT {_is('operator')}",
                "what a person is asked is answered by a person",
            ),
            Rule(
                "forbidden",
                f"OLD.kind = 'file' AND NOT ({_is('system')} OR {_is('operator')})",
                "a file is seen by whoever would start the task",
            ),
        ),
    ),
    Guard(
        "runs_waited_for",
        "runs",
        "BEFORE INSERT",
        (
            Rule(
                "held",
                f"NEW.status <> 'missed' AND {unmet('NEW.task_key')}",
                "the task waits for something that has not happened: truegreen why",
            ),
        ),
    ),
)
